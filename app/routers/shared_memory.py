"""The shared-memory extensions as far as clients need them: status and unregister work, register is refused.

Runs on: event loop.
"""

from __future__ import annotations

from fastapi import APIRouter, Request, Response

from ..core.errors import NotFound, Unsupported
from .bodies import answers

router = APIRouter(tags=["Shared memory"], default_response_class=Response)

_KINDS = {"systemsharedmemory": "system", "cudasharedmemory": "CUDA"}


async def status() -> Response:
    """The registered regions: none."""
    return Response(b"[]", media_type="application/json")


async def region_status(request: Request) -> Response:
    """There is no such region."""
    raise NotFound(f"no shared-memory region {request.path_params['region']!r} is registered")


async def unregister(request: Request) -> Response:
    """Succeeds: what is not registered need not be removed. Clients do this before they start."""
    await request.body()
    return Response(media_type="application/json")


async def register(request: Request) -> Response:
    """Refused; tensors go through the binary data extension."""
    await request.body()
    raise Unsupported("shared memory is not supported; send tensors with the binary data extension")


for path, kind in _KINDS.items():
    root, region = f"/v2/{path}", f"/v2/{path}/region/{{region}}"
    router.get(f"{root}/status", summary=f"Regions of {kind} memory", responses=answers("Regions"))(status)
    router.get(f"{region}/status", summary=f"A region of {kind} memory", responses=answers("", 404))(region_status)
    for each in (root, region):
        router.post(f"{each}/unregister", summary=f"Unregister {kind} memory", responses=answers(""))(unregister)
        router.post(f"{each}/register", include_in_schema=False)(register)
