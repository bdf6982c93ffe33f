"""Threads that run batches."""
