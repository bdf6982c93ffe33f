"""The vocabulary every other package speaks: tensors, models, requests, errors, time. Runs on: anywhere (pure)."""
