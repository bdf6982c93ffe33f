"""One model version from files to a warm copy: snapshot, load, complete, row check, warm-up. Runs on: loader thread."""

from __future__ import annotations

import os
import shutil
import tempfile
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from ..backends.base import Accelerator, BackendModel, BackendOptions
from ..backends.registry import backend_class, backend_info, canonical_name, detect
from ..batcher.policy import BatchPolicy
from ..config.model import ModelConfig
from ..config.placement import AcceleratorConfig
from ..config.server import ServerSettings
from ..core.errors import LoadError
from ..core.model import ModelArtifact, ModelSpec
from ..core.tensor import Array, Shape, TensorSpec
from ..devices.device import CPU, Device
from ..devices.memory import return_freed_memory
from ..repository.layout import pick_model_file
from ..repository.model import RepositoryModel
from ..repository.snapshot import Snapshot, prepare
from .complete import CompletedModel, RowCheckUse, complete
from .loaded import LoadedVersion
from .rowcheck import check_rows
from .warmup import WarmupSample, samples_from_config, warm_up


class Loader:
    """Loads versions for the actors. `device` is where models run that do not say it; `cpus` the cores there are."""

    def __init__(self, settings: ServerSettings, device: Device, cpus: int) -> None:
        self._settings = settings
        self._device = device
        self._cpus = cpus
        self._scratch = Path(tempfile.mkdtemp(prefix="kernelport-models-"))

    def close(self) -> None:
        """Remove the private copies of files that are left."""
        shutil.rmtree(self._scratch, ignore_errors=True)

    def load(self, source: RepositoryModel, version: str) -> LoadedVersion:
        """Load, check and warm one version; raises KernelPortError with the reason, leaving nothing behind."""
        started_ns = time.monotonic_ns()
        config = source.config
        if config is None or version not in source.versions:
            raise LoadError(source.problem or f"version {version} is not in the repository")
        backend, filename = _backend_of(source, config, version)
        backend_class(backend)  # a missing framework is told before files are copied
        snapshot = prepare(source, version, filename, self._scratch)
        copies: list[BackendModel] = []
        try:
            loaded = self._load(source, config, backend, filename, snapshot.artifact, copies)
        except BaseException:
            for copy in copies:
                copy.close()
            snapshot.close()
            raise
        finally:
            return_freed_memory()
        loaded.release = lambda: _release(snapshot)
        loaded.load_ns = time.monotonic_ns() - started_ns
        return loaded

    def _load(
        self,
        source: RepositoryModel,
        config: ModelConfig,
        backend: str,
        filename: str,
        artifact: ModelArtifact,
        copies: list[BackendModel],
    ) -> LoadedVersion:
        wishes = self._instances(config)
        instances = sum(wishes.values())
        loads = backend_class(backend)
        permits: dict[str, list[BackendModel]] = {}
        for device, number in wishes.items():
            options = self._options(config, backend, device, instances)
            held: list[BackendModel] = []
            while len(held) < number:
                if not held or not held[0].is_thread_safe:
                    copies.append(loads.load(artifact, device, options))
                held.append(copies[-1])
            permits[str(device)] = held
        settings = self._settings
        completed = complete(
            source.name,
            artifact.version,
            config,
            copies[0].signature,
            backend,
            default_max_batch_size=settings.max_batch_size,
            default_max_queue_size=settings.max_queue_size,
            model_dir=source.model_dir,
            filename=filename,
            default_kind="KIND_CPU" if self._device.kind == "cpu" else "KIND_GPU",
        )
        samples = samples_from_config(completed.warmups, completed.spec.inputs, source.model_dir, source.name)
        notes = [*completed.warnings, *copies[0].signature.details.get("warnings", ()), *completed.notes]
        spec, policy, shown = self._decide(completed, copies[0], samples, notes)
        shapes: Mapping[str, Shape] = {}
        for copy in copies:
            report = warm_up(copy.execute, copy.signature.inputs, samples, source.name)
            shapes = report.shapes
            if report.note:
                notes.append(report.note)
        return LoadedVersion(
            spec,
            policy,
            completed.queue,
            permits,
            tuple(copies),
            shown,
            completed.json_nonfinite,
            tuple(notes),
            sample_shapes=shapes,
        )

    def _decide(
        self, completed: CompletedModel, copy: BackendModel, samples: list[WarmupSample], notes: list[str]
    ) -> tuple[ModelSpec, BatchPolicy, Mapping[str, Any]]:
        """Merge requests only if the rows are independent, or the user insists."""
        if completed.row_check is RowCheckUse.NONE:
            return completed.spec, completed.batch, completed.config_json
        inputs: list[Mapping[str, Array]] = [sample.inputs for sample in samples]
        verdict = check_rows(copy.execute, _as_framework_sees(completed.spec), inputs, completed.batch.max_rows)
        without = completed.without_batching
        if verdict.is_independent:
            return completed.spec, completed.batch, completed.config_json
        if without is None:
            notes.append(f"the configuration asks for batching, but rows are not independent: {verdict.reason}")
            return completed.spec, completed.batch, completed.config_json
        notes.append(f"requests are not merged: {verdict.reason}")
        return without.spec, without.batch, without.config_json

    def _instances(self, config: ModelConfig) -> dict[Device, int]:
        """Instances per device; one on the default device when the configuration names none."""
        wishes: dict[Device, int] = {}
        for group in config.instance_group:
            if group.kind == "KIND_CPU":
                devices = [CPU]
            elif group.kind == "KIND_GPU" or group.gpus:
                if self._device.kind == "cpu":
                    raise LoadError("instance_group asks for KIND_GPU, but the server runs on the CPU (--device)")
                devices = [Device("cuda", index) for index in group.gpus] or [self._device]
                others = [str(device) for device in devices if device != self._device]
                if others:
                    raise LoadError(f"instance_group asks for {others[0]}; this server runs models on {self._device}")
            else:
                devices = [self._device]
            for device in devices:
                wishes[device] = wishes.get(device, 0) + group.count
        return wishes or {self._device: 1}

    def _options(self, config: ModelConfig, backend: str, device: Device, instances: int) -> BackendOptions:
        settings = self._settings
        accelerators = config.optimization.execution_accelerators
        chosen: tuple[AcceleratorConfig, ...] = ()
        if accelerators is not None:
            # those for a GPU also on the CPU: the backend refuses them there, so nobody misses them without a word
            chosen = accelerators.gpu_execution_accelerator
            if device.kind == "cpu":
                chosen += accelerators.cpu_execution_accelerator
        extra = dict(config.backend_options)
        if config.optimization.graph is not None:
            extra.setdefault("graph_level", config.optimization.graph.level)
        return BackendOptions(
            threads=settings.intra_op_threads or max(1, self._cpus // instances),
            parameters=dict(config.parameters),
            server_parameters=settings.backend_parameters(backend),
            settings=extra,
            accelerators=tuple(Accelerator(one.name, dict(one.parameters)) for one in chosen),
        )


def _backend_of(source: RepositoryModel, config: ModelConfig, version: str) -> tuple[str, str]:
    """The backend's canonical name and the model's file name inside its version folder."""
    place = source.versions[version]
    names = [place.name] if place.is_file() or place.suffix == ".savedmodel" else sorted(os.listdir(place))
    wanted = config.backend_name
    backend = canonical_name(wanted) if wanted else detect(names)
    if backend is None:
        raise LoadError(f"version {version} holds no model file that a backend knows (for example model.onnx)")
    if config.default_model_filename:
        return backend, config.default_model_filename
    default = backend_info(backend).default_filename
    if not default:
        raise LoadError(f"backend {backend!r} has no file name of its own; write default_model_filename")
    filename = pick_model_file(names, default) if names != [place.name] else place.name
    if filename is None:
        raise LoadError(f"version {version} has no {default}; write default_model_filename if it is called otherwise")
    return backend, filename


def _as_framework_sees(spec: ModelSpec) -> ModelSpec:
    """The spec with every `reshape` applied, for running the model without the batcher."""

    def seen(one: TensorSpec) -> TensorSpec:
        return one if one.reshape is None else replace(one, shape=(-1, *one.reshape), symbols=())

    return replace(spec, inputs=tuple(map(seen, spec.inputs)), outputs=tuple(map(seen, spec.outputs)))


def _release(snapshot: Snapshot) -> None:
    snapshot.close()
    return_freed_memory()
