"""HTTP below the framework: the infer endpoint, its protocol lane, limits and error statuses."""
