"""Every failure as `{"error": text}` with the right status; 404, 405 and 500 included. Runs on: event loop."""

from __future__ import annotations

import logging

from fastapi import FastAPI, Request, Response
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.requests import ClientDisconnect
from starlette.routing import Match
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..core.errors import KernelPortError
from ..http.reply import error_reply
from ..http.status import error_text

log = logging.getLogger(__name__)

_METHODS = ("GET", "HEAD", "POST")


def _text_response(status: int, text: str, headers: dict[str, str] | None = None) -> Response:
    return Response(error_text(text), status, headers, "application/json")


async def _on_kernelport_error(_: Request, error: Exception) -> Response:
    assert isinstance(error, KernelPortError)
    reply = error_reply(error)
    response = Response(reply.body, reply.status)
    response.raw_headers = reply.headers
    return response


async def _on_http_error(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    headers = dict(error.headers or {})
    if error.status_code == 405:
        headers["Allow"] = ", ".join(_methods_of(request))
    return _text_response(error.status_code, error.detail, headers)


def _methods_of(request: Request) -> list[str]:
    """Methods that the path has; asked of the routes because each of them knows only its own."""
    routes = request.app.router.routes
    return [
        method
        for method in _METHODS
        if any(route.matches({**request.scope, "method": method})[0] is Match.FULL for route in routes)
    ]


async def _on_invalid(_: Request, error: Exception) -> Response:
    assert isinstance(error, RequestValidationError)
    text = "; ".join(f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors())
    return _text_response(400, text)


async def _on_disconnect(_: Request, error: Exception) -> Response:
    assert isinstance(error, ClientDisconnect)
    return _text_response(499, "the client went away before its request was complete")


def add_exception_handlers(app: FastAPI) -> None:
    """Install the one error format on an app."""
    app.add_exception_handler(KernelPortError, _on_kernelport_error)
    app.add_exception_handler(HTTPException, _on_http_error)
    app.add_exception_handler(RequestValidationError, _on_invalid)
    app.add_exception_handler(ClientDisconnect, _on_disconnect)


class LastResort:
    """ASGI middleware: an exception that nothing handled becomes "internal error", its traceback one log entry.

    Starlette's own place for this answers and then raises again, so that the server logs it a second time.
    """

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        has_started = False

        async def watched_send(message: Message) -> None:
            nonlocal has_started
            has_started = True
            await send(message)

        try:
            await self._app(scope, receive, watched_send)
        except Exception:
            if has_started:  # half an answer is out: only breaking the connection tells the client
                raise
            log.exception("unexpected failure answering %s %s", scope["method"], scope["path"])
            await _text_response(500, "internal error")(scope, receive, send)
