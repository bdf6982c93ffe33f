"""Admission and accounts of the whole HTTP front: both paths ask and tell the same object. Runs on: event loop."""

from __future__ import annotations

import asyncio
import logging
import os
import re

from ..core.errors import ServerStopping, TooManyInFlight
from ..telemetry.http_stats import HttpStats
from ..telemetry.logging import ACCESS_LOGGER
from .limits import HttpLimits

_access = logging.getLogger(ACCESS_LOGGER)
_SANE_ID = re.compile(rb"[!-~]{1,128}")


class Gate:
    """Who may come in: the server's state, its connections, its bytes in flight. Plain integers, no locks.

    `is_draining`: replies ask clients to go elsewhere (`Connection: close`), requests are still served.
    `is_open` False: no new inference is admitted.
    """

    __slots__ = (
        "_idle",
        "_next_id",
        "bytes_in_flight",
        "connections",
        "http_stats",
        "id_prefix",
        "in_flight",
        "is_awaited",
        "is_draining",
        "is_open",
        "limits",
        "logs_access",
        "makes_ids",
    )

    def __init__(self, limits: HttpLimits, makes_ids: bool = False) -> None:
        self.limits = limits
        self.http_stats = HttpStats()
        self.is_open = True
        self.is_draining = False
        self.connections = 0
        self.bytes_in_flight = 0
        self.in_flight = 0  # inferences between receipt and reply
        self.logs_access = _access.isEnabledFor(logging.INFO)
        self.makes_ids = makes_ids or self.logs_access
        self.id_prefix = os.urandom(4).hex().encode()
        self._next_id = 0
        self.is_awaited = False  # somebody waits for in_flight to be 0
        self._idle: asyncio.Future[None] | None = None

    def check_open(self) -> None:
        """Raise ServerStopping once admission is closed."""
        if not self.is_open:
            raise ServerStopping("the server is stopping and takes no new requests")

    def charge(self, size: int) -> None:
        """Take `size` bytes of the budget, or raise TooManyInFlight and take nothing."""
        total = self.bytes_in_flight + size
        if total > self.limits.max_inflight_bytes:
            raise TooManyInFlight(
                f"the server holds {self.bytes_in_flight} bytes of requests and replies; "
                f"{size} more would exceed max_inflight_bytes = {self.limits.max_inflight_bytes}"
            )
        self.bytes_in_flight = total

    def release(self, size: int) -> None:
        """Give `size` bytes back."""
        self.bytes_in_flight -= size

    def connect(self) -> bool:
        """Count a new connection; False when it is one too many (it is counted all the same until `disconnect`)."""
        self.connections += 1
        return self.connections <= self.limits.max_connections

    def disconnect(self) -> None:
        """A connection has gone."""
        self.connections -= 1

    def wake_idle(self) -> None:
        """An inference has ended while somebody waits for the last one."""
        if self._idle is not None and self.in_flight == 0:
            self._idle.set_result(None)
            self._idle = None
            self.is_awaited = False

    def begin_drain(self) -> None:
        """From now on every reply closes its connection."""
        self.is_draining = True

    def close_admission(self) -> None:
        """From now on new inferences are refused; those in flight go on."""
        self.is_draining = True
        self.is_open = False

    async def until_idle(self) -> None:
        """Return once no inference is in flight."""
        while self.in_flight:
            if self._idle is None:
                self.is_awaited = True
                self._idle = asyncio.get_running_loop().create_future()
            await asyncio.shield(self._idle)

    def request_id(self, sent: bytes) -> bytes:
        """The id under which a request is known: what the client sent if that is sane, else a new one or b""."""
        if sent and _SANE_ID.fullmatch(sent):
            return sent
        if not self.makes_ids:
            return b""
        self._next_id += 1
        return b"%b-%x" % (self.id_prefix, self._next_id)

    def log_access(
        self, client: str, method: str, path: str, status: int, size: int, elapsed_ns: int, request_id: bytes
    ) -> None:
        """One line per request, if access logging was on when the gate was built."""
        if self.logs_access:
            _access.info(
                "%s %s %d",
                method,
                path,
                status,
                extra={
                    "client": client,
                    "bytes": size,
                    "duration_ms": round(elapsed_ns / 1e6, 3),
                    "request_id": request_id.decode("ascii", "replace"),
                },
            )
