"""The infer endpoint as a route; the protocol lane answers the same paths without it. Runs on: event loop."""

from __future__ import annotations

from typing import Any

from fastapi import APIRouter, Request, Response
from starlette.types import Receive, Scope, Send

from ..http.asgi_limits import disconnect_of, read_body, send_reply
from ..http.endpoint import infer_headers
from ..http.reply import Reply
from ..telemetry.logging import request_id
from .bodies import Responses, answers, ref
from .paths import MODEL, VERSION, Target
from .planes import Inference

router = APIRouter(tags=["Inference"], default_response_class=Response)

BINARY = "application/octet-stream"

_BODY: dict[str, Any] = {
    "requestBody": {
        "required": True,
        "description": (
            "JSON, or JSON followed by binary tensors, with the length of the JSON part in the header "
            "`Inference-Header-Content-Length`. The Content-Type does not matter."
        ),
        "content": {
            "application/json": {"schema": ref("InferenceRequest")},
            BINARY: {"schema": {"type": "string", "format": "binary"}},
        },
    },
    "parameters": [
        {
            "name": "Inference-Header-Content-Length",
            "in": "header",
            "required": False,
            "schema": {"type": "integer", "minimum": 0},
            "description": "Bytes of the JSON part when binary tensors follow it; 0 when the body is one raw tensor.",
        }
    ],
}


def _responses() -> Responses:
    responses = answers("InferenceResponse", 400, 404, 408, 413, 500, 501, 503, 504)
    responses[200]["content"][BINARY] = {"schema": {"type": "string", "format": "binary"}}
    responses[200]["headers"] = {
        "Server-Timing": {"description": "What each step took, in milliseconds.", "schema": {"type": "string"}},
        "KernelPort-Non-Finite": {
            "description": "Outputs in which null stands for NaN or an infinity.",
            "schema": {"type": "string"},
        },
    }
    return responses


class ReplyResponse(Response):
    """A finished reply of the endpoint as a response; its parts are sent one by one, not joined."""

    def __init__(self, reply: Reply) -> None:
        super().__init__(status_code=reply.status)
        self._reply = reply

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await send_reply(self._reply, send)


@router.post(f"{VERSION}/infer", summary="Infer with a version", responses=_responses(), openapi_extra=_BODY)
@router.post(f"{MODEL}/infer", summary="Infer", responses=_responses(), openapi_extra=_BODY)
async def infer(request: Request, endpoint: Inference, target: Target) -> Response:
    """Run a model on the input tensors of the body, and return its output tensors."""
    body = await read_body(request.scope, request.receive)
    headers = infer_headers(request.headers.raw, request_id.get().encode("latin-1"))
    hang_up = disconnect_of(request.receive)
    return ReplyResponse(await endpoint.infer_async(target.name, target.version, body, headers, hang_up))
