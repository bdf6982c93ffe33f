"""Fixtures of the loader's tests."""

from fakes.loading import load, scratch

__all__ = ["load", "scratch"]
