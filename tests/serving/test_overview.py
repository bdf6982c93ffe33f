"""The models of a server as lines for people."""

from __future__ import annotations

from pathlib import Path

import pytest
from fakes.world import Run, World, runner
from kernelport.serving.control import ControlPlane
from kernelport.serving.overview import ModelRow, model_rows


@pytest.fixture
def run(tmp_path: Path) -> Run:
    return runner(tmp_path)


def test_a_row_says_where_a_version_runs_how_long_it_loaded_or_why_it_does_not_serve(run: Run) -> None:
    async def scenario(world: World) -> None:
        world.put("c", "1", "2", config="version_policy: {all: {}}")
        world.loader.broken["b"] = "its weights are missing"
        world.put("d")
        await world.manager.start(["a", "b", "c"])
        control = ControlPlane(world.manager, world.catalog, "explicit", strict_readiness=True)
        assert model_rows(control) == [
            ModelRow("a", "1", "test", "cpu", 0.007, "READY"),
            ModelRow("b", "1", state="UNAVAILABLE", reason="its weights are missing"),
            ModelRow("c", "1", "test", "cpu", 0.007, "READY"),
            ModelRow("c", "2", "test", "cpu", 0.007, "READY"),
            ModelRow("d", "", state="UNKNOWN"),
        ]

    run(scenario)


def test_a_failed_reload_shows_its_reason_beside_the_version_that_serves_on(run: Run) -> None:
    async def scenario(world: World) -> None:
        await world.manager.start(["a"])
        control = ControlPlane(world.manager, world.catalog, "explicit", strict_readiness=True)
        world.loader.broken["a"] = "half a file"
        await world.manager.apply([], [])
        (world.folder / "a" / "1" / "model.fake").write_text("{}")
        await world.manager.scan()
        assert list(await world.manager.load_all(["a"])) == ["a"]
        row = model_rows(control)[0]
        assert (row.state, row.device) == ("READY", "cpu")
        assert row.reason == "reload failed, the version loaded before serves on: half a file"

    run(scenario)
