"""What a name means: the version that answers, or why none does."""

from __future__ import annotations

from dataclasses import replace

import pytest
from fakes.batching import spec
from fakes.clock import FakeClock
from fakes.models import loaded
from hypothesis import given
from hypothesis import strategies as st
from kernelport.batcher.dispatcher import Dispatcher
from kernelport.batcher.queue import ModelQueue
from kernelport.core.errors import ModelNotFound, ModelNotReady
from kernelport.lifecycle.catalog import Catalog, CatalogEntry
from kernelport.lifecycle.served_model import ServedModel
from kernelport.telemetry.stats import ModelStats

DISPATCHER = Dispatcher(FakeClock())


def served(version: str = "1", name: str = "m") -> ServedModel:
    model = replace(spec(0), name=name, version=version)
    return ServedModel(loaded(model=model), DISPATCHER, ModelQueue(name), ModelStats())


def catalog_of(*versions: str, is_loading: bool = False) -> Catalog:
    catalog = Catalog()
    catalog.publish("m", CatalogEntry.of({version: served(version) for version in versions}, is_loading))
    return catalog


def test_without_a_version_the_highest_one_answers_by_number_not_by_text() -> None:
    catalog = catalog_of("9", "10", "2")
    assert catalog.find("m", None).spec.version == "10"
    assert list(catalog.versions("m")) == ["2", "9", "10"]


def test_a_version_that_is_named_answers_itself_and_stays_itself() -> None:
    catalog = catalog_of("1", "2")
    found = catalog.find("m", "1")
    assert found.spec.version == "1"
    assert found is catalog.versions("m")["1"].pinned


def test_an_unknown_name_is_not_found() -> None:
    with pytest.raises(ModelNotFound, match="unknown model: 'other' is not found"):
        catalog_of("1").find("other", None)
    assert catalog_of("1").versions("other") == {}


def test_a_very_long_name_is_not_repeated_whole() -> None:
    with pytest.raises(ModelNotFound) as found:
        Catalog().find("x" * 10_000, "1" * 10_000)
    assert len(str(found.value)) < 200


@given(st.text(max_size=12).filter(lambda text: text not in ("1", "2")))
def test_only_the_exact_text_of_a_version_finds_it(version: str) -> None:
    with pytest.raises(ModelNotFound, match="is not found; served: 1, 2"):
        catalog_of("1", "2").find("m", version)


def test_a_model_that_loads_for_the_first_time_says_come_back() -> None:
    catalog = catalog_of(is_loading=True)
    for version in (None, "1"):
        with pytest.raises(ModelNotReady, match="model 'm' is loading") as found:
            catalog.find("m", version)
        assert found.value.retry_after_s


@pytest.mark.parametrize("version", [None, "1"])
def test_a_model_that_failed_or_was_unloaded_has_no_versions(version: str | None) -> None:
    with pytest.raises(ModelNotFound, match="'m' has no available versions"):
        catalog_of().find("m", version)


def test_a_new_entry_replaces_the_old_one_whole() -> None:
    catalog = catalog_of("1")
    catalog.publish("m", CatalogEntry.of({"2": served("2")}))
    assert catalog.find("m", None).spec.version == "2"
    with pytest.raises(ModelNotFound):
        catalog.find("m", "1")


def test_everything_served_is_listed_by_name_then_by_number() -> None:
    catalog = catalog_of("2", "10")
    catalog.publish("a", CatalogEntry.of({"1": served(name="a")}))
    catalog.publish("z", CatalogEntry.of({}))
    assert [(one.spec.name, one.spec.version) for one in catalog.served()] == [("a", "1"), ("m", "2"), ("m", "10")]
