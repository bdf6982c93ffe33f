"""How a backend of somebody else is asked to load."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from fakes.loading import Load, configure, files_in
from fakes.models import fake_file
from kernelport.core.errors import LoadError
from kernelport.devices.device import Device

CUDA = Device("cuda", 0)
OUTSIDE = """\
from kernelport.backends.fake import FakeModel
from kernelport.core.errors import LoadError


class Recording(FakeModel):
    loaded = []
    options = []

    @classmethod
    def load(cls, artifact, device, options):
        if len(cls.loaded) == 2:
            raise LoadError("no memory for a third copy")
        cls.options.append((str(device), options))
        cls.loaded.append(super().load(artifact, device, options))
        return cls.loaded[-1]
"""


@pytest.fixture
def recording(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Any]:
    """The class of an installed backend package, which keeps how it was asked to load."""
    site = tmp_path / ".site"
    (site / "recording-1.0.dist-info").mkdir(parents=True)
    (site / "recording-1.0.dist-info" / "METADATA").write_text("Metadata-Version: 2.1\nName: recording\nVersion: 1.0\n")
    (site / "recording-1.0.dist-info" / "entry_points.txt").write_text(
        "[kernelport.backends]\nrecording = recording_backend:Recording\n"
    )
    (site / "recording_backend.py").write_text(OUTSIDE)
    monkeypatch.syspath_prepend(site)
    import recording_backend  # type: ignore[import-not-found]

    yield recording_backend.Recording
    del sys.modules["recording_backend"]


def put_outside(folder: Path, config: str) -> None:
    (folder / "m" / "1").mkdir(parents=True)
    (folder / "m" / "1" / "data.bin").write_text(fake_file(is_thread_safe=False))
    configure(folder, "m", f"backend: recording\ndefault_model_filename: data.bin\n{config}")


def test_options_come_from_the_model_then_from_the_server(tmp_path: Path, load: Load, recording: Any) -> None:
    put_outside(
        tmp_path,
        dedent("""\
        instance_group: [{count: 2}]
        parameters: {enable_mem_arena: "0"}
        backend_options: {providers: [a, b]}
        optimization:
          graph: {level: 1}
          execution_accelerators:
            cpu_execution_accelerator: [{name: openvino, parameters: {precision: FP16}}]
        """),
    )
    version = load("m", cpus=8, backend_config=("recording,threads=3", "onnxruntime,x=1", "all=yes"))
    (device, options), _ = recording.options
    assert device == "cpu"
    assert options.threads == 4
    assert options.parameters == {"enable_mem_arena": "0"}
    assert options.server_parameters == {"threads": "3", "all": "yes"}
    assert options.settings == {"providers": ["a", "b"], "graph_level": 1}
    assert [(one.name, one.parameters) for one in options.accelerators] == [("openvino", {"precision": "FP16"})]
    assert version.spec.backend == "recording"


def test_a_gpu_hears_only_of_accelerators_for_a_gpu(tmp_path: Path, load: Load, recording: Any) -> None:
    put_outside(
        tmp_path,
        "optimization: {execution_accelerators: {gpu_execution_accelerator: [{name: tensorrt}],\n"
        "  cpu_execution_accelerator: [{name: openvino}]}}",
    )
    load("m", device=CUDA, intra_op_threads=5)
    ((device, options),) = recording.options
    assert device == "cuda:0"
    assert [one.name for one in options.accelerators] == ["tensorrt"]
    assert options.threads == 5
    assert options.settings == {}


def test_the_backends_own_option_is_stronger_than_tritons(tmp_path: Path, load: Load, recording: Any) -> None:
    put_outside(tmp_path, "backend_options: {graph_level: 2}\noptimization: {graph: {level: 1}}")
    load("m")
    assert recording.options[0][1].settings == {"graph_level": 2}


def test_more_instances_than_cores_still_get_a_thread_each(tmp_path: Path, load: Load, recording: Any) -> None:
    put_outside(tmp_path, "instance_group: [{count: 2}]")
    load("m", cpus=1)
    assert {options.threads for _, options in recording.options} == {1}


def test_copies_that_were_made_before_one_failed_are_closed(
    tmp_path: Path, load: Load, scratch: Path, recording: Any
) -> None:
    put_outside(tmp_path, "instance_group: [{count: 3}]")
    with pytest.raises(LoadError, match="no memory for a third copy"):
        load("m")
    assert [copy.is_closed for copy in recording.loaded] == [True, True]
    assert files_in(scratch) == []


def test_a_backend_without_a_file_name_of_its_own_wants_one(tmp_path: Path, load: Load, recording: Any) -> None:
    put_outside(tmp_path, "")
    configure(tmp_path, "m", "backend: recording")
    with pytest.raises(LoadError, match="backend 'recording' has no file name of its own; write default_model_file"):
        load("m")


# -- what the rest of the configuration becomes ------------------------------------------------------------------------
