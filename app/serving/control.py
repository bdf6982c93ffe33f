"""The door for everything about the server that is not one request. Runs on: event loop."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..config.load import parse_model_config
from ..core.errors import (
    InvalidRequest,
    KernelPortError,
    Unsupported,
    WrongControlMode,
)
from ..core.model import ModelSpec, ModelStatus
from ..core.tensor import Shape
from ..lifecycle.brought import BroughtFiles
from ..lifecycle.catalog import Catalog
from ..lifecycle.manager import ModelManager
from ..lifecycle.served_model import ServedModel
from ..telemetry.stats import ModelStats


class ControlPlane:
    """Health, metadata, index, load and unload, statistics; reads what is in memory, never the disk.

    `faults` are checks outside the models (lanes, the shutdown): each returns a reason for not being ready, or "".
    """

    def __init__(
        self,
        manager: ModelManager,
        catalog: Catalog,
        mode: str,
        strict_readiness: bool,
        faults: tuple[Callable[[], str], ...] = (),
        brought: BroughtFiles | None = None,
    ) -> None:
        self.mode = mode
        self._manager = manager
        self._catalog = catalog
        self._strict = strict_readiness
        self._faults = faults
        self._brought = brought

    # -- health ----------------------------------------------------------------------------------------------------

    def is_live(self) -> bool:
        """The loop turns; that this runs is the proof."""
        return True

    def is_ready(self) -> bool:
        """All that should be loaded is (strict), or the server itself is up; a dead worker counts either way."""
        return not self.why_not_ready()

    def why_not_ready(self) -> str:
        """Empty when ready."""
        for fault in self._faults:
            reason = fault()
            if reason:
                return reason
        return self._manager.why_not_ready if self._strict else ""

    def is_model_ready(self, name: str, version: str | None) -> bool:
        """The version (None: the one that would answer) takes requests."""
        try:
            self._catalog.find(name, version)
        except KernelPortError:
            return False
        return not any(fault() for fault in self._faults)

    # -- what there is ---------------------------------------------------------------------------------------------

    def model_names(self) -> list[str]:
        """Names with at least one version that takes requests."""
        return sorted({served.spec.name for served in self._catalog.served()})

    def metadata(self, name: str, version: str | None) -> tuple[ModelSpec, list[str]]:
        """The signature, and the served versions (only the one asked for, if one was); raises ModelNotFound."""
        spec = self._catalog.find(name, version).spec
        return spec, list(self._catalog.versions(name)) if version is None else [spec.version]

    def config(self, name: str, version: str | None) -> dict[str, Any]:
        """The model's configuration as Triton's ModelConfig in JSON, filled-in values included."""
        return dict(self._served(name, version).loaded.config)

    def sample_shapes(self, name: str) -> Mapping[str, Shape]:
        """Input shapes that the model's warm-up ran with, to make examples of; empty when none is known."""
        return self._served(name, None).loaded.sample_shapes

    def index(self, ready_only: bool = False) -> list[ModelStatus]:
        """Every model of the repository with the states of its versions."""
        lines = self._manager.statuses()
        return [line for line in lines if line.state.value == "READY"] if ready_only else lines

    def served(self) -> list[ServedModel]:
        """Every version that takes requests."""
        return self._catalog.served()

    def statistics(self, name: str | None = None, version: str | None = None) -> list[tuple[ModelSpec, ModelStats]]:
        """Counters per served version; raises InvalidRequest for a name or version that is not served."""
        if name is None:
            return [(served.spec, served.stats) for served in self._catalog.served()]
        versions = self._catalog.versions(name)
        if version is not None:
            versions = {version: versions[version]} if version in versions else {}
        if not versions:
            wanted = f"'{name}'" if version is None else f"'{name}' version {version}"
            raise InvalidRequest(f"requested model {wanted} is not available")
        return [(served.spec, served.stats) for served in versions.values()]

    # -- load and unload -------------------------------------------------------------------------------------------

    async def load(
        self, name: str, config: dict[str, Any] | None = None, files: dict[str, bytes] | None = None
    ) -> None:
        """Load or reload a model, with `config` instead of the repository's; returns when it serves.

        `files` ("<version>/<name>" to content) replace the model's folder altogether and need `config`.
        """
        self._refuse_unless_explicit()
        parsed = None if config is None else parse_model_config(config, f"load of model '{name}': config")
        if not files:
            await self._manager.load(name, parsed)
            return
        if self._brought is None:
            raise Unsupported("load requests may not bring files; start the server with --allow-file-override")
        if parsed is None:
            raise InvalidRequest(f"load of model '{name}': files need a config parameter beside them")
        model = await self._brought.write(name, parsed, files)
        try:
            await self._manager.load(name, brought=model)
        finally:
            await self._brought.keep(name, self._manager.brought(name))

    async def unload(self, name: str, unload_dependents: bool = False) -> None:
        """Unload a model; unknown and unloaded names are fine. No model depends on another in this release."""
        self._refuse_unless_explicit()
        await self._manager.unload(name)
        if self._brought is not None:
            await self._brought.keep(name, self._manager.brought(name))

    def _refuse_unless_explicit(self) -> None:
        if self.mode != "explicit":
            raise WrongControlMode(
                f"explicit model load / unload is not allowed: the model control mode is {self.mode}; "
                "start the server with --model-control-mode explicit"
            )

    def _served(self, name: str, version: str | None) -> ServedModel:
        found = self._catalog.find(name, version)
        return self._catalog.versions(name)[found.spec.version]
