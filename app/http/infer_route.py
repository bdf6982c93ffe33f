"""Which request targets are inferences, and of what. Runs on: event loop."""

from __future__ import annotations

import re
import urllib.parse

import httptools

from ..telemetry.http_stats import HttpStats, RouteStats

_PATH = re.compile(r"/v2/models/([^/]+)(?:/versions/([0-9]+))?/infer")
_HANDLER = "/v2/models/{model}/infer"
_VERSION_HANDLER = "/v2/models/{model}/versions/{version}/infer"
_MAX_KNOWN = 1024
_MAX_KNOWN_BYTES = 512


class InferRoute:
    """The target of one inference: model, version as written or None, and the counters of its route template."""

    __slots__ = ("model", "path", "stats", "version")

    def __init__(self, model: str, version: str | None, path: str, stats: RouteStats) -> None:
        self.model = model
        self.version = version
        self.path = path
        self.stats = stats


class InferRoutes:
    """Reads request targets, and remembers the last thousand or so; `known` may be asked directly."""

    __slots__ = ("_root_path", "_stats", "_version_stats", "known")

    def __init__(self, stats: HttpStats, root_path: str = "") -> None:
        self._root_path = root_path.rstrip("/")
        self._stats = stats.route(_HANDLER, "POST")
        self._version_stats = stats.route(_VERSION_HANDLER, "POST")
        self.known: dict[bytes, InferRoute | None] = {}

    def resolve(self, url: bytes) -> InferRoute | None:
        """The inference that a POST to `url` asks for; None for every other target and for invalid ones."""
        route = self._read(url)
        if len(url) <= _MAX_KNOWN_BYTES:
            if len(self.known) >= _MAX_KNOWN:
                self.known.clear()
            self.known[url] = route
        return route

    def _read(self, url: bytes) -> InferRoute | None:
        raw_path = path_of(url)
        if raw_path is None or not raw_path.endswith(b"infer"):
            return None
        path = urllib.parse.unquote(raw_path.decode("ascii"))
        root = self._root_path
        if root and path.startswith(root + "/"):
            path = path[len(root) :]
        match = _PATH.fullmatch(path)
        if match is None:
            return None
        model, version = match.groups()
        return InferRoute(model, version, path, self._stats if version is None else self._version_stats)


def path_of(url: bytes) -> bytes | None:
    """The path of a request target, still percent-encoded; None if there is none or it is not a valid target."""
    if not url.isascii():
        return None
    try:
        path: bytes | None = httptools.parse_url(url).path
    except httptools.HttpParserInvalidURLError:
        return None
    return path or None
