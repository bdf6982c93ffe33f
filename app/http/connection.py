"""One HTTP connection from accept to close: replies strictly in order, slow readers, orderly ends.

Runs on: event loop.

A subclass of uvicorn's httptools protocol; `reception.py` adds the reading of requests. Closing never resets a
connection under a reply that is still to be read: the rest of the client's input is thrown away first.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Callable
from typing import Any, ClassVar

from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

from ..core.errors import KernelPortError, TooManyInFlight
from .deadlines import NEVER, Deadline
from .gate import Gate
from .reply import Reply, error_reply

_log = logging.getLogger(__name__)

# Stages of the message being received.
IDLE = 0
HEAD = 1
BODY = 2


class Outlet:
    """The transport as uvicorn's request cycle sees it; closing is left to the connection."""

    __slots__ = ("_connection", "write")

    def __init__(self, connection: OrderedConnection) -> None:
        self._connection = connection
        self.write: Callable[[bytes], None] = connection.transport.write

    def close(self) -> None:
        """The reply is complete, or broken, and nothing else may follow it."""
        self._connection.end()

    def is_closing(self) -> bool:
        """Nothing can be written any more."""
        return bool(self._connection.lingers or self._connection.transport.is_closing())


class OrderedConnection(HttpToolsProtocol):
    """See the module. `running` is the request being answered: a cycle of uvicorn's, or a subclass's own object."""

    gate: ClassVar[Gate]
    pipeline: deque[tuple[Any, Any]]  # newest at the left: (cycle, app), (None, last reply) or (None, own request)

    def __init__(
        self, config: Any, server_state: Any, app_state: dict[str, Any], _loop: asyncio.AbstractEventLoop | None = None
    ) -> None:
        super().__init__(config, server_state, app_state, _loop)
        self.limits = self.gate.limits
        self.stage = IDLE
        self.running: Any = None
        self.served = 0  # requests answered, or being answered
        self.ignores_input = False
        self.lingers = False
        self.linger_left = 0
        self.ends_after_reply = False
        self.unsent = 0  # bytes of replies that the client has not taken, as charged to the budget
        self.deadline = Deadline(self.loop, self.on_deadline)
        self.write_deadline = Deadline(self.loop, self._on_write_deadline)
        self.closes_at_s = NEVER
        self.is_bounded = self.limits.max_connection_requests > 0 or self.limits.max_connection_age_s > 0

    # Beginning and end of the connection.

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection in, or answer 503 at once."""
        super().connection_made(transport)
        self.outlet = Outlet(self)
        now_s = self.loop.time()
        if self.limits.max_connection_age_s:
            self.closes_at_s = now_s + self.limits.max_connection_age_s
        if self.gate.connect():
            self.deadline.set(now_s + self.limits.header_timeout_s)
        else:
            limit = self.limits.max_connections
            self.refuse(TooManyInFlight(f"the server has max_connections = {limit} connections already"))

    def connection_lost(self, exc: Exception | None) -> None:
        """Whatever still runs for this client is told that it has gone."""
        self.gate.disconnect()
        self.deadline.close()
        self.write_deadline.close()
        self._settle_unsent()
        self.abandon()
        super().connection_lost(exc)
        # No cycles: what a connection holds shall go now, not with the next big garbage collection.
        del self.outlet
        self.cycle = self.scope = None  # type: ignore[assignment]
        self.headers = []

    def abandon(self) -> None:
        """Drop the requests of a client that has gone."""
        if isinstance(self.running, RequestResponseCycle):
            _disconnect(self.running)
        self.running = None
        self.pipeline.clear()

    def shutdown(self) -> None:
        """Uvicorn stops: finish the replies that are owed, then close."""
        self.ends_after_reply = True
        if self.running is None and not self.pipeline:
            self.close()
        elif isinstance(self.running, RequestResponseCycle):
            self.running.keep_alive = False

    def end(self) -> None:
        """Close after the last reply. Unread input would make the kernel reset the connection under that reply."""
        if self.lingers or self.transport.is_closing():
            return
        if self.ignores_input and self.stage == IDLE and not self.pipeline:
            self.close()  # the client asked for the end, so it sends nothing more
        else:
            self.linger()

    def close(self) -> None:
        """Close once the client has taken what is written; it gets the write timeout for that."""
        self.transport.close()
        if self.transport.get_write_buffer_size() and self.write_deadline.due_s == NEVER:
            self.unsent = 0
            self.write_deadline.set(self.loop.time() + self.limits.write_timeout_s)

    def linger(self) -> None:
        """Say that nothing more comes, throw away what the client still sends, close when it does or in a while."""
        self.lingers = self.ignores_input = True
        self.linger_left = self.limits.max_request_bytes
        self.stage = IDLE
        if self.transport.is_closing():
            return
        self.flow.resume_reading()
        if not self.transport.can_write_eof():
            self.close()
            return
        self.transport.write_eof()
        self.deadline.set(self.loop.time() + self.limits.linger_s)

    def discard(self, size: int) -> None:
        """Input that nobody reads has come."""
        if self.lingers:
            self.linger_left -= size
            if self.linger_left < 0:
                self.transport.abort()

    # Answering, strictly in order.

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        if self.running is None and not self.pipeline and not self.flow.write_paused:
            self._run_cycle(cycle, app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((cycle, app))

    def _run_cycle(self, cycle: RequestResponseCycle, app: Any) -> None:
        self.running = cycle
        self.served += 1
        cycle.transport = self.outlet  # type: ignore[assignment]
        if self.is_last_reply():
            cycle.keep_alive = False
        super()._start_asgi_task(cycle, app)

    def is_last_reply(self) -> bool:
        """The connection is to end after the reply to the request that runs now."""
        limits = self.limits
        return (
            self.gate.is_draining
            or self.ends_after_reply
            or 0 < limits.max_connection_requests <= self.served
            or self.loop.time() >= self.closes_at_s
        )

    def on_response_complete(self) -> None:
        """An ASGI reply is out."""
        self.server_state.total_requests += 1
        self.running = None
        self.advance()

    def advance(self) -> None:
        """Start the next request of the pipeline, or wait for one."""
        if self.lingers or self.transport.is_closing():
            return
        while self.pipeline and self.running is None and not self.flow.write_paused:
            cycle, what = self.pipeline.pop()
            if cycle is not None:
                self._run_cycle(cycle, what)
            elif isinstance(what, Reply):
                self._write_last(what)
                return
            else:
                self.run_queued(what)
        if self.running is None and not self.pipeline:
            self.flow.resume_reading()
            if self.stage == IDLE:
                self.deadline.set(min(self.loop.time() + self.limits.keep_alive_s, self.closes_at_s))

    def run_queued(self, request: Any) -> None:
        """Start a subclass's own request, whose turn has come."""
        raise NotImplementedError

    def refuse(self, error: KernelPortError, status: int = 0) -> None:
        """Answer an error as the last thing on this connection, in its turn; input after it is thrown away."""
        is_in_body = self.stage == BODY
        self.stage = IDLE
        self.ignores_input = True
        self.deadline.clear()
        if is_in_body and not self.drop_incoming():
            return
        reply = error_reply(error, status)
        if self.running is not None or self.pipeline or self.flow.write_paused:
            self.pipeline.appendleft((None, reply))
        else:
            self._write_last(reply)

    def drop_incoming(self) -> bool:
        """Forget the request whose body was being received; False if its reply had begun, and can only be cut."""
        cycle = self.cycle
        if cycle is self.running:
            self.running = None
            has_begun = cycle.response_started
            _disconnect(cycle)
        elif cycle.response_complete:
            has_begun = True
        else:
            self.pipeline.popleft()
            has_begun = False
        if has_begun:
            self.linger()
        return not has_begun

    def _write_last(self, reply: Reply) -> None:
        self.gate.http_stats.route("none", "none").observe(reply.status, 0, 0, reply.size)
        client = f"{self.client[0]}:{self.client[1]}" if self.client else ""
        self.gate.log_access(client, "-", "-", reply.status, reply.size, 0, b"")
        self.transport.write(reply.head(b"", b"", True) + reply.body)
        self.linger()

    # Deadlines.

    def on_deadline(self) -> None:
        """Nothing has come, or gone, for too long."""
        if self.lingers:
            if self.flow.write_paused:
                self.deadline.set(self.loop.time() + self.limits.linger_s)  # the write deadline decides how long
            else:
                self.close()
        elif self.stage == IDLE and self.running is None and not self.pipeline:
            self.close()

    def pause_writing(self) -> None:
        """The client reads slowly: what it has not taken counts as bytes in flight, and must keep flowing."""
        super().pause_writing()
        self._settle_unsent()
        self.unsent = self.transport.get_write_buffer_size()
        self.gate.bytes_in_flight += self.unsent
        self.write_deadline.set(self.loop.time() + self.limits.write_timeout_s)

    def resume_writing(self) -> None:
        """The client has caught up."""
        super().resume_writing()
        self._settle_unsent()
        self.write_deadline.clear()
        self.advance()

    def _settle_unsent(self) -> None:
        self.gate.bytes_in_flight -= self.unsent
        self.unsent = 0

    def _on_write_deadline(self) -> None:
        limits = self.limits
        left = self.transport.get_write_buffer_size()
        if self.unsent - left < limits.body_min_rate * limits.write_timeout_s:
            _log.info("connection closed: the client has %d bytes of a reply left to read and does not read", left)
            self.transport.abort()
            return
        self._settle_unsent()
        self.unsent = left
        self.gate.bytes_in_flight += left
        self.write_deadline.set(self.loop.time() + limits.write_timeout_s)


def _disconnect(cycle: RequestResponseCycle) -> None:
    """Tell an ASGI application that its client has gone."""
    if not cycle.response_complete:
        cycle.disconnected = True
        cycle.message_event.set()
