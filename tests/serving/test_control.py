"""The door for everything about the server that is not one request."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from fakes.models import fake_file
from fakes.world import Run, World, runner, until
from kernelport.core.errors import (
    ConfigError,
    InvalidRequest,
    LoadError,
    ModelNotFound,
    ModelNotReady,
    PayloadTooLarge,
    Unavailable,
    Unsupported,
)
from kernelport.lifecycle.brought import BroughtFiles
from kernelport.serving.control import ControlPlane

FILES = {"5/model.fake": fake_file().encode()}


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return runner(tmp_path)


def control_of(
    world: World, mode: str = "explicit", strict: bool = True, faults: tuple[Callable[[], str], ...] = (), **more: Any
) -> ControlPlane:
    return ControlPlane(world.manager, world.catalog, mode, strict, faults, **more)


# -- health ------------------------------------------------------------------------------------------------------------


def test_a_server_that_runs_is_live_whatever_its_models_do(run: Run) -> None:
    async def scenario(world: World) -> None:
        control = control_of(world)
        assert control.is_live()
        assert not control.is_ready()
        world.loader.broken = {"a": "no", "b": "no"}
        await world.manager.start(None)
        assert control.is_live()
        assert not control.is_ready()
        assert control.why_not_ready() == "model 'a': version 1 UNAVAILABLE: no; model 'b': version 1 UNAVAILABLE: no"

    run(scenario)


def test_strict_readiness_waits_for_every_model_and_the_other_kind_for_none(run: Run) -> None:
    async def scenario(world: World) -> None:
        strict, lax = control_of(world), control_of(world, strict=False)
        assert (strict.is_ready(), lax.is_ready()) == (False, True)
        world.loader.broken["a"] = "no"
        await world.manager.start(None)
        assert (strict.is_ready(), lax.is_ready()) == (False, True)
        world.loader.broken.clear()
        await world.manager.load("a")
        assert (strict.is_ready(), lax.is_ready()) == (True, True)

    run(scenario)


def test_a_fault_of_the_server_counts_either_way_and_for_every_model(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        trouble = [""]
        faults = (lambda: "", lambda: trouble[0])
        for strict in (True, False):
            control = control_of(world, strict=strict, faults=faults)
            trouble[0] = ""
            assert control.is_ready()
            assert control.is_model_ready("a", None)
            trouble[0] = "1 of 2 workers on cpu are down"
            assert control.why_not_ready() == "1 of 2 workers on cpu are down"
            assert not control.is_model_ready("a", None)

    run(scenario)


def test_a_model_is_ready_when_the_version_that_would_answer_takes_requests(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(["a"])
        control = control_of(world)
        asked = [("a", None), ("a", "1"), ("a", "2"), ("b", None), ("never_heard_of", None)]
        assert [control.is_model_ready(*one) for one in asked] == [True, True, False, False, False]
        await control.unload("a")
        assert not control.is_model_ready("a", None)

    run(scenario)


# -- what there is -----------------------------------------------------------------------------------------------------


def test_metadata_names_the_versions_that_are_served_or_the_one_asked_for(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("a", "2", "10", config="version_policy: {all: {}}")
        await world.manager.start(None)
        control = control_of(world)
        spec, versions = control.metadata("a", None)
        assert (spec.version, versions) == ("10", ["1", "2", "10"])
        spec, versions = control.metadata("a", "2")
        assert (spec.version, versions) == ("2", ["2"])
        with pytest.raises(ModelNotFound, match="version 3 is not found; served: 1, 2, 10"):
            control.metadata("a", "3")
        assert control.model_names() == ["a", "b"]
        assert [one.spec.version for one in control.served()] == ["1", "2", "10", "1"]

    run(scenario)


def test_what_is_loading_is_not_ready_rather_than_unknown(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.gate.clear()
        starting = asyncio.ensure_future(world.manager.start(["a"]))
        await until(lambda: bool(world.events))
        control = control_of(world)
        for ask in (control.metadata, control.config):
            with pytest.raises(ModelNotReady, match="model 'a' is loading"):
                ask("a", None)
        world.loader.gate.set()
        await starting
        assert control.config("a", None)["name"] == "a"

    run(scenario)


def test_the_configuration_is_that_of_the_version_and_a_copy(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        control = control_of(world)
        await control.load("a", {"max_batch_size": 8})
        shown = control.config("a", None)
        assert shown == control.config("a", "1") == {"name": "a", "max_batch_size": 8}
        shown["name"] = "changed by a reader"
        assert control.config("a", None)["name"] == "a"
        for name, version in (("a", "2"), ("nope", None)):
            with pytest.raises(ModelNotFound):
                control.config(name, version)

    run(scenario)


def test_sample_shapes_are_those_of_the_warm_up(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        control = control_of(world)
        world.catalog.versions("a")["1"].loaded.sample_shapes = {"X": (1, 4)}
        assert control.sample_shapes("a") == {"X": (1, 4)}
        assert control.sample_shapes("b") == {}

    run(scenario)


def test_the_index_lists_everything_or_only_what_is_ready(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.broken["b"] = "no"
        world.put("c")
        await world.manager.start(["a", "b"])
        control = control_of(world)
        assert [(one.name, one.state.value) for one in control.index()] == [
            ("a", "READY"), ("b", "UNAVAILABLE"), ("c", "UNKNOWN"),
        ]  # fmt: skip
        assert [one.name for one in control.index(ready_only=True)] == ["a"]

    run(scenario)


def test_statistics_are_of_all_of_a_name_or_of_a_version(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("a", "2", config="version_policy: {all: {}}")
        await world.manager.start(None)
        control = control_of(world)

        def listed(*asked: str) -> list[str]:
            return [f"{spec.name}/{spec.version}" for spec, _ in control.statistics(*asked)]

        assert listed() == ["a/1", "a/2", "b/1"]
        assert listed("a") == ["a/1", "a/2"]
        assert listed("a", "2") == ["a/2"]
        assert (await world.submit("a", "2")).response is not None
        assert control.statistics("a", "2")[0][1].outcomes["success"] == 1
        await control.unload("b")
        for asked, text in (
            (("nope",), "requested model 'nope' is not available"),
            (("b",), "requested model 'b' is not available"),
            (("a", "7"), "requested model 'a' version 7 is not available"),
        ):
            with pytest.raises(InvalidRequest, match=text):
                control.statistics(*asked)

    run(scenario)


# -- load and unload ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("mode", ["none", "poll"])
def test_load_and_unload_are_for_the_explicit_mode_only(run: Run, mode: str) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        control = control_of(world, mode)
        for operation in (control.load("a"), control.unload("a"), control.load("nope", {"nonsense": 1})):
            with pytest.raises(Unavailable) as refused:
                await operation
            assert str(refused.value) == (
                f"explicit model load / unload is not allowed: the model control mode is {mode}; "
                "start the server with --model-control-mode explicit"
            )
        assert world.loader.loads.count("a/1") == 1
        assert control.is_model_ready("a", None)

    run(scenario)


def test_a_model_is_loaded_and_unloaded_by_name(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start([])
        control = control_of(world)
        await control.load("b")
        assert control.model_names() == ["b"]
        await control.unload("b", unload_dependents=True)
        assert control.model_names() == []
        await control.unload("never_heard_of")
        with pytest.raises(ModelNotFound, match="failed to load 'nope': no such model in the repository"):
            await control.load("nope")
        world.loader.broken["a"] = "its weights are missing"
        with pytest.raises(LoadError, match="version 1 is at UNAVAILABLE state: its weights are missing;"):
            await control.load("a")

    run(scenario)


@pytest.mark.parametrize(
    ("config", "text"),
    [
        ({"max_batch_sise": 4}, "load of model 'a': config: unknown key 'max_batch_sise'"),
        ({"max_batch_size": -1}, "load of model 'a': config: max_batch_size"),
        ([1, 2], "load of model 'a': config: a mapping of configuration keys is expected, not list"),
    ],
)
def test_a_configuration_that_cannot_be_honoured_touches_nothing(run: Run, config: Any, text: str) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        with pytest.raises(ConfigError, match=text):
            await control_of(world).load("a", config)
        assert world.loader.loads.count("a/1") == 1
        assert world.max_batch_size("a") == 0

    run(scenario)


def test_files_are_refused_unless_the_server_allows_them(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start([])
        with pytest.raises(Unsupported, match="start the server with --allow-file-override"):
            await control_of(world).load("new", {}, FILES)

    run(scenario)


class Bringing:
    """A control plane that takes files, and where it keeps them."""

    def __init__(self, world: World) -> None:
        self.files = BroughtFiles(world.executor, max_bytes=10_000)
        self.control = control_of(world, brought=self.files)

    def kept(self) -> list[str]:
        """What is on disk, as model/version."""
        return sorted(f"{path.parent.parent.name}/{path.parent.name}" for path in self.files._root.rglob("model.fake"))


def test_files_replace_the_folder_and_go_when_they_are_no_longer_meant(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        bringing = Bringing(world)
        control = bringing.control
        await control.load("a", {"max_batch_size": 2}, FILES)
        await control.load("new", {}, FILES)
        assert world.served() == ["a/5", "b/1", "new/5"]
        assert world.max_batch_size("a") == 2
        await control.load("a", {}, {"6/model.fake": FILES["5/model.fake"]})
        assert world.served() == ["a/6", "b/1", "new/5"]
        assert bringing.kept() == ["a/6", "new/5"]
        await control.load("a")
        assert world.served()[0] == "a/6"
        await control.unload("a")
        await control.load("a")
        assert world.served() == ["a/1", "b/1", "new/5"]
        assert bringing.kept() == ["new/5"]
        await control.unload("b")
        assert bringing.kept() == ["new/5"]
        bringing.files.close()

    run(scenario)


def test_files_that_fail_to_load_leave_the_old_model_serving(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        bringing = Bringing(world)
        world.loader.broken["a/5"] = "not a model"
        with pytest.raises(LoadError, match="not a model"):
            await bringing.control.load("a", {}, FILES)
        assert world.served() == ["a/1", "b/1"]
        assert bringing.control.is_ready()
        bringing.files.close()

    run(scenario)


def test_files_need_a_configuration_and_bounds_hold(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start([])
        bringing = Bringing(world)
        with pytest.raises(InvalidRequest, match="load of model 'new': files need a config parameter beside them"):
            await bringing.control.load("new", None, FILES)
        with pytest.raises(PayloadTooLarge):
            await bringing.control.load("new", {}, {"1/model.fake": b"x" * 10_001})
        assert bringing.kept() == []
        assert bringing.control.index() == control_of(world).index()
        bringing.files.close()

    run(scenario)
