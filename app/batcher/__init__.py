"""Waiting requests, batching decisions, merging and splitting."""
