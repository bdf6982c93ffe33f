"""The listening socket: uvicorn with our protocol class, started and stopped by us. Runs on: event loop."""

from __future__ import annotations

import asyncio
import contextlib
import os
import socket
import stat
from collections.abc import Callable
from typing import Any

import uvicorn

from ..config.server import ServerSettings
from ..core.errors import ConfigError

_BACKLOG = 2048


class Listener:
    """Accepts connections between `start` and `stop`; signals stay ours."""

    def __init__(self, app: Any, protocol_class: Callable[..., asyncio.Protocol], settings: ServerSettings) -> None:
        self._settings = settings
        config = uvicorn.Config(
            app,
            http=protocol_class,  # type: ignore[arg-type]  # uvicorn takes any protocol factory
            lifespan="off",
            ws="none",
            log_config=None,
            access_log=False,
            server_header=False,
            date_header=False,
            proxy_headers=True,
            forwarded_allow_ips=settings.forwarded_allow_ips,
            root_path=settings.root_path,
            backlog=_BACKLOG,
            timeout_keep_alive=int(settings.keep_alive_s),
        )
        config.load()
        self._server = uvicorn.Server(config)
        self._serving: asyncio.Task[None] | None = None
        self._sockets: list[socket.socket] = []

    async def start(self) -> None:
        """Bind and listen; raises ConfigError when the address cannot be had."""
        self._sockets = [self._bind()]
        self._serving = asyncio.ensure_future(self._server._serve(self._sockets))
        while not self._server.started:
            if self._serving.done():
                self._serving.result()
            await asyncio.sleep(0)

    @property
    def address(self) -> str:
        """Base URL as a client on this machine would type it; for a unix socket `unix:PATH`."""
        if self._settings.uds:
            return f"unix:{self._settings.uds}"
        host, port = self._sockets[0].getsockname()[:2]
        host = {"0.0.0.0": "127.0.0.1", "::": "[::1]"}.get(host, f"[{host}]" if ":" in host else host)
        return f"http://{host}:{port}"

    async def stop(self, limit_s: float) -> None:
        """Close the listening socket and the connections, giving replies under way up to `limit_s` seconds."""
        self._server.config.timeout_graceful_shutdown = max(1, int(limit_s))
        self._server.should_exit = True
        if self._serving is not None:
            await asyncio.wait([self._serving], timeout=limit_s + 1)
        if self._settings.uds and self._sockets:
            with contextlib.suppress(FileNotFoundError):
                os.unlink(self._settings.uds)

    def _bind(self) -> socket.socket:
        settings = self._settings
        where = settings.uds or f"{settings.host}:{settings.port}"
        try:
            if settings.uds:
                return _bind_unix(settings.uds)
            family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
            if family == socket.AF_INET and not _is_ipv4(settings.host):
                family = socket.getaddrinfo(settings.host, settings.port, type=socket.SOCK_STREAM)[0][0]
            bound = socket.create_server(
                (settings.host, settings.port),
                family=family,
                backlog=_BACKLOG,
                dualstack_ipv6=settings.host == "::" and socket.has_dualstack_ipv6(),
            )
        except OSError as error:
            hint = "; is another server running? --port 0 picks a free port" if error.errno == 98 else ""
            raise ConfigError(f"cannot listen on {where}: {error.strerror or error}{hint}") from error
        bound.setblocking(False)
        return bound


def _bind_unix(path: str) -> socket.socket:
    """Bind a unix socket, taking over a path that an earlier server left behind."""
    with contextlib.suppress(FileNotFoundError):
        if not stat.S_ISSOCK(os.stat(path).st_mode):
            raise ConfigError(f"cannot listen on {path}: it exists and is no socket")
        probe = socket.socket(socket.AF_UNIX)
        try:
            probe.connect(path)
        except ConnectionRefusedError:
            os.unlink(path)
        else:
            raise ConfigError(f"cannot listen on {path}: another server is listening there")
        finally:
            probe.close()
    bound = socket.socket(socket.AF_UNIX)
    bound.bind(path)
    bound.setblocking(False)
    return bound


def _is_ipv4(host: str) -> bool:
    try:
        socket.inet_pton(socket.AF_INET, host)
    except OSError:
        return False
    return True
