"""Server and model configuration, pydantic at the edge."""
