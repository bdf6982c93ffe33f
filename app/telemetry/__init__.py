"""Counters, metrics, logs."""
