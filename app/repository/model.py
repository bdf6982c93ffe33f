"""One model as found on disk, loaded or not. Runs on: anywhere (pure)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..config.model import ModelConfig
from ..config.version_policy import VersionChoice, choose_versions


@dataclass(slots=True, frozen=True)
class RepositoryModel:
    """A model's folder, its versions and its configuration at the time of a scan.

    `versions` maps a version to the folder with its files, or to the model file itself for a bare `name.onnx`.
    `config` is None exactly when `config_error` says why. `fingerprint` changes when any file of the model does,
    `version_fingerprints` when a file of that version does, `config_fingerprint` when anything outside them does.
    Links may lead anywhere inside `bounds`.
    """

    name: str
    model_dir: Path
    versions: Mapping[str, Path]
    config: ModelConfig | None
    config_error: str = ""
    fingerprint: str = ""
    version_fingerprints: Mapping[str, str] = field(default_factory=dict)
    config_fingerprint: str = ""
    warnings: tuple[str, ...] = ()
    bounds: tuple[Path, ...] = ()

    @property
    def problem(self) -> str:
        """Why nothing of this model can be loaded, or an empty text."""
        if self.config_error:
            return self.config_error
        if not self.versions:
            return f"no versions: {self.model_dir} has no version folder (1, 2, ...) and no model file"
        if not self.chosen.versions:
            return f"no versions: version_policy asks for {', '.join(self.chosen.missing)}, there is {self._present()}"
        return ""

    @property
    def chosen(self) -> VersionChoice:
        """The versions that the model's policy serves."""
        return choose_versions(self.config.version_policy if self.config else None, self.versions)

    def _present(self) -> str:
        return ", ".join(sorted(self.versions, key=int))
