"""Bytes to core types and back; pure functions."""
