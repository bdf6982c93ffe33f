"""All models of a server: what should be loaded, what is, and what the index and readiness say about it."""

from __future__ import annotations

import asyncio
import shutil
from pathlib import Path

import pytest
from fakes.models import put_model
from fakes.world import Run, World, runner, until
from kernelport.config.model import ModelConfig
from kernelport.core.errors import IllegalTransition, LoadError, ModelNotFound, ServerStopping
from kernelport.repository.repository import ModelRepository, with_config

ALL = "version_policy: {all: {}}\n"


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return runner(tmp_path)


# -- start and readiness -----------------------------------------------------------------------------------------------


def test_before_the_first_scan_the_server_is_not_ready(run: Run) -> None:
    async def scenario(world: World) -> None:
        assert world.manager.why_not_ready == "the model repository has not been read yet"
        assert await world.manager.start([]) == {}
        assert world.manager.why_not_ready == ""

    run(scenario)


def test_a_start_loads_everything_side_by_side(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.gate.clear()
        starting = asyncio.ensure_future(world.manager.start(None))
        await until(lambda: len(world.events) == 2)
        assert {(event.name, event.state.value) for event in world.events} == {("a", "LOADING"), ("b", "LOADING")}
        assert "model 'a': LOADING" in world.manager.why_not_ready
        assert "model 'b': LOADING" in world.manager.why_not_ready
        world.loader.gate.set()
        assert await starting == {}
        assert world.served() == ["a/1", "b/1"]
        assert world.manager.why_not_ready == ""
        assert sorted(world.manager.actors) == sorted(world.manager.found) == ["a", "b"]

    run(scenario)


def test_an_explicit_start_loads_only_what_was_named_and_the_index_shows_the_rest_as_unknown(run: Run) -> None:
    async def scenario(world: World) -> None:
        assert await world.manager.start(["b"]) == {}
        assert world.index() == [("a", "", "UNKNOWN", ""), ("b", "1", "READY", "")]
        assert world.manager.why_not_ready == ""

    run(scenario)


def test_a_name_asked_for_at_start_that_does_not_exist_keeps_the_server_unready_until_it_is_unloaded(run: Run) -> None:
    async def scenario(world: World) -> None:
        failures = await world.manager.start(["a", "typo"])
        assert failures == {"typo": "failed to load 'typo': no such model in the repository"}
        assert world.served() == ["a/1"]
        assert world.manager.why_not_ready == "model 'typo': not loaded"
        await world.manager.unload("typo")
        assert world.manager.why_not_ready == ""

    run(scenario)


def test_a_model_that_fails_at_start_is_told_by_name_and_keeps_the_others_out_of_it(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.broken["a"] = "its weights are missing"
        failures = await world.manager.start(None)
        assert list(failures) == ["a"]
        assert failures["a"] == (
            "load failed for model 'a': version 1 is at UNAVAILABLE state: its weights are missing;"
        )
        assert world.served() == ["b/1"]
        assert world.manager.why_not_ready == "model 'a': version 1 UNAVAILABLE: its weights are missing"
        assert world.index()[0] == ("a", "1", "UNAVAILABLE", "its weights are missing")

    run(scenario)


def test_unloading_a_failed_model_makes_the_server_ready_again(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.broken["a"] = "no"
        await world.manager.start(None)
        await world.manager.unload("a")
        assert world.manager.why_not_ready == ""
        assert world.index()[0] == ("a", "1", "UNAVAILABLE", "unloaded")

    run(scenario)


def test_a_model_with_a_broken_configuration_has_that_as_its_reason(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("c", config="max_batch_sise: 4\n")
        failures = await world.manager.start(None)
        assert "max_batch_sise" in failures["c"]
        assert world.loader.loads.count("c/1") == 0
        assert world.index()[2][:3] == ("c", "1", "UNAVAILABLE")

    run(scenario)


def test_the_index_is_sorted_by_name_and_by_the_number_of_the_version(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("a", "2", "10", config=ALL)
        await world.manager.start(None)
        assert [line[:2] for line in world.index()] == [("a", "1"), ("a", "2"), ("a", "10"), ("b", "1")]

    run(scenario)


def test_what_the_repository_warns_about_is_logged_once(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        (world.folder / "datasets").mkdir()
        await world.manager.scan()
        await world.manager.scan()

    run(scenario)
    assert caplog.text.count("datasets is ignored") == 1


def test_what_the_loader_decided_is_logged_when_the_version_serves(run: Run, caplog: pytest.LogCaptureFixture) -> None:
    async def scenario(world: World) -> None:
        world.loader.notes = ("requests are not merged: the rows depend on each other",)
        await world.manager.start(["a"])
        assert world.manager.actors["a"].why_not_ready == ""

    caplog.set_level("INFO")
    run(scenario)
    assert "model 'a' version 1: requests are not merged: the rows depend on each other" in caplog.text


def test_a_loader_that_raises_anything_is_a_failed_load_with_its_traceback_logged(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        world.loader.broken["a"] = RuntimeError("a hole in the framework")
        failures = await world.manager.start(None)
        assert "version 1 is at UNAVAILABLE state: RuntimeError while loading: a hole in the framework" in failures["a"]
        assert world.served() == ["b/1"]

    run(scenario)
    assert "Traceback" in caplog.text


def test_a_model_without_versions_fails_under_its_name_alone_and_is_forgotten_when_unloaded(run: Run) -> None:
    async def scenario(world: World) -> None:
        (world.folder / "c").mkdir()
        (world.folder / "c" / "model.yaml").write_text("max_batch_size: 4\n")
        failures = await world.manager.start(None)
        assert "no versions" in failures["c"]
        name, version, state, reason = world.index()[2]
        assert (name, version, state) == ("c", "", "UNAVAILABLE")
        assert "has no version folder" in reason
        world.put("c", "4")
        await world.manager.load("c")
        assert world.index()[2] == ("c", "4", "READY", "")
        shutil.rmtree(world.folder / "c" / "4")
        with pytest.raises(LoadError, match="no versions"):
            await world.manager.load("c")
        assert world.index()[2][:3] == ("c", "4", "READY")
        assert "the version loaded before serves on" in world.index()[2][3]

    run(scenario)


def test_a_model_without_versions_is_unknown_again_after_unload(run: Run) -> None:
    async def scenario(world: World) -> None:
        (world.folder / "c").mkdir()
        (world.folder / "c" / "model.yaml").write_text("max_batch_size: 4\n")
        await world.manager.start(None)
        await world.manager.unload("c")
        assert world.index()[2] == ("c", "", "UNKNOWN", "")
        assert world.manager.why_not_ready == ""

    run(scenario)


# -- load and unload ---------------------------------------------------------------------------------------------------


def test_a_load_sees_the_repository_as_it_is_now(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start([])
        world.put("late", "3")
        await world.manager.load("late")
        assert world.served() == ["late/3"]
        await world.manager.load("late")
        assert world.loader.loads == ["late/3"]

    run(scenario)


def test_a_load_of_a_name_that_is_not_there_leaves_no_trace(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        with pytest.raises(ModelNotFound, match="failed to load 'nope': no such model in the repository"):
            await world.manager.load("nope", ModelConfig(max_batch_size=8))
        assert [line[0] for line in world.index()] == ["a", "b"]
        assert world.manager.why_not_ready == ""
        world.put("nope")
        await world.manager.load("nope")
        assert world.max_batch_size("nope") == 0

    run(scenario)


def test_a_failed_model_that_has_left_the_repository_is_no_longer_expected(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.loader.broken["a"] = "no"
        await world.manager.start(None)
        shutil.rmtree(world.folder / "a")
        with pytest.raises(ModelNotFound):
            await world.manager.load("a")
        assert world.manager.why_not_ready == ""

    run(scenario)


def test_a_served_model_that_has_left_the_repository_serves_on_and_stays_expected(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        shutil.rmtree(world.folder / "a")
        with pytest.raises(ModelNotFound):
            await world.manager.load("a", ModelConfig(max_batch_size=8))
        assert world.served() == ["a/1", "b/1"]
        assert world.manager.actors["a"].is_expected

    run(scenario)


def test_a_configuration_that_came_with_a_load_holds_until_the_model_is_unloaded(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        await world.manager.load("a", ModelConfig(max_batch_size=8))
        assert world.max_batch_size("a") == 8
        await world.manager.load("a")
        assert world.max_batch_size("a") == 8
        await world.manager.load("a", ModelConfig(max_batch_size=4))
        assert world.max_batch_size("a") == 4
        await world.manager.unload("a")
        await world.manager.load("a")
        assert world.max_batch_size("a") == 0

    run(scenario)


def test_files_that_came_with_a_load_take_the_place_of_the_repositorys_until_unload(run: Run, tmp_path: Path) -> None:
    elsewhere = tmp_path / ".elsewhere"
    put_model(elsewhere, "a", "7")
    put_model(elsewhere, "new", "5")
    found = ModelRepository([elsewhere]).scan()

    async def scenario(world: World) -> None:
        await world.manager.start(None)
        await world.manager.load("a", ModelConfig(max_batch_size=8))
        await world.manager.load("a", brought=found["a"])
        assert world.max_batch_size("a") == 0
        await world.manager.load("new", brought=with_config(found["new"], ModelConfig(max_batch_size=2)))
        assert world.served() == ["a/7", "b/1", "new/5"]
        assert world.manager.brought("new") is not None
        assert world.manager.brought("b") is None
        await world.manager.load("new")
        assert world.max_batch_size("new") == 2
        await world.manager.unload("a")
        await world.manager.load("a")
        assert world.served() == ["a/1", "b/1", "new/5"]
        await world.manager.unload("new")
        with pytest.raises(ModelNotFound):
            await world.manager.load("new")
        assert world.manager.brought("a") is None
        assert world.manager.brought("new") is None

    run(scenario)


def test_a_configuration_that_failed_does_not_stand_in_the_way_of_the_next_load(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        await world.manager.load("a", ModelConfig(max_batch_size=8))
        world.loader.broken["a"] = "no"
        with pytest.raises(LoadError, match="no"):
            await world.manager.load("a", ModelConfig(max_batch_size=2))
        world.loader.broken.clear()
        await world.manager.load("a")
        assert world.max_batch_size("a") == 8

    run(scenario)


def test_unload_takes_unknown_and_unloaded_names(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        for _ in range(2):
            await world.manager.unload("a")
        await world.manager.unload("never_heard_of")
        assert world.index() == [("a", "1", "UNAVAILABLE", "unloaded"), ("b", "1", "READY", "")]
        assert world.manager.why_not_ready == ""

    run(scenario)


def test_an_unloaded_model_that_left_the_repository_stays_in_the_index_as_unloaded(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        shutil.rmtree(world.folder / "a")
        await world.manager.apply([], ["a"])
        await world.manager.scan()
        assert world.index() == [("a", "1", "UNAVAILABLE", "unloaded"), ("b", "1", "READY", "")]

    run(scenario)


def test_a_load_while_the_last_one_still_drains_is_refused_and_works_later(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("a", "1", "2", config=ALL)
        await world.manager.start(None)
        (held,) = world.loader.copies["a/2"]
        held.gate.clear()
        running = world.submit("a", "2")
        await asyncio.get_running_loop().run_in_executor(world.executor, held.entered.wait, 20)
        await world.manager.unload("a")
        for _ in range(2):
            with pytest.raises(IllegalTransition, match="model 'a' version 2 still answers what it accepted"):
                await world.manager.load("a")
        assert [line[:3] for line in world.index()[:2]] == [("a", "1", "UNAVAILABLE"), ("a", "2", "UNLOADING")]
        assert "UNLOADING" in world.manager.why_not_ready
        (world.folder / "a" / "model.yaml").write_text("nonsense: 1\n")
        with pytest.raises(LoadError, match="nonsense"):
            await world.manager.load("a")
        (world.folder / "a" / "model.yaml").write_text(ALL)
        held.gate.set()
        assert (await running).response is not None
        await until(lambda: held.is_closed)
        await world.manager.load("a")
        assert world.served() == ["a/1", "a/2", "b/1"]

    run(scenario, drain_limit_s=0.01)


# -- polling -----------------------------------------------------------------------------------------------------------


def test_a_poll_loads_what_changed_unloads_what_went_and_logs_what_failed(
    run: Run, caplog: pytest.LogCaptureFixture
) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        world.put("c")
        world.put("d")
        world.loader.broken["d"] = "half a file"
        shutil.rmtree(world.folder / "b")
        await world.manager.scan()
        await world.manager.apply(["c", "d"], ["b"])
        assert world.served() == ["a/1", "c/1"]

    run(scenario)
    assert "model 'd'" in caplog.text
    assert "half a file" in caplog.text


def test_a_fault_of_our_own_is_not_mistaken_for_a_model_that_failed(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.fault = RuntimeError("the screen is gone")
        with pytest.raises(RuntimeError, match="the screen is gone"):
            await world.manager.start(None)

    run(scenario)


# -- the end -----------------------------------------------------------------------------------------------------------


def test_a_server_that_stops_answers_what_it_accepted_unloads_everything_and_refuses_the_rest(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(None)
        accepted = [world.submit(name) for name in ("a", "b", "a")]
        closing = asyncio.ensure_future(world.manager.close())
        await asyncio.sleep(0)
        for operation in (world.manager.load("a"), world.manager.unload("a")):
            with pytest.raises(ServerStopping, match="neither loaded nor unloaded"):
                await operation
        await closing
        assert [call.result().error for call in accepted] == [None] * 3
        assert all(copy.is_closed for copies in world.loader.copies.values() for copy in copies)
        assert world.served() == []

    run(scenario)
