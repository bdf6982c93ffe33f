"""The path prefix under which a proxy publishes the server. Runs on: event loop."""

from __future__ import annotations

from starlette.types import ASGIApp, Receive, Scope, Send


class PathPrefix:
    """ASGI middleware: some proxies take the prefix off the path, others leave it; both find the server.

    The HTTP server puts `root_path` before every path, so one that still had it now has it twice.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        prefix = scope.get("root_path", "")
        if prefix and f"{scope['path']}/".startswith(f"{prefix}{prefix}/"):
            scope = {**scope, "path": scope["path"][len(prefix) :]}
        await self._app(scope, receive, send)
