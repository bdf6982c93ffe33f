"""From the server's settings to the limits of the HTTP front and of the codecs. Runs on: anywhere (pure)."""

from __future__ import annotations

from ..config.server import ServerSettings
from ..protocol.limits import DecodeLimits, EncodeLimits
from .limits import HttpLimits


def http_limits(settings: ServerSettings) -> HttpLimits:
    """Bounds on connections, requests and replies."""
    return HttpLimits(
        max_request_bytes=settings.max_request_bytes,
        max_inflight_bytes=settings.max_inflight_bytes,
        max_connections=settings.max_connections,
        max_connection_requests=settings.max_connection_requests,
        max_connection_age_s=settings.max_connection_age_s,
        header_timeout_s=settings.header_timeout_s,
        body_timeout_s=settings.body_timeout_s,
        body_min_rate=settings.body_min_rate,
        keep_alive_s=settings.keep_alive_s,
    )


def decode_limits(settings: ServerSettings) -> DecodeLimits:
    """Bounds on what a body may say."""
    return DecodeLimits(
        max_json_bytes=settings.max_json_bytes,
        json_depth=settings.json_depth,
        tensor_rank=settings.tensor_rank,
        max_elements=settings.max_request_bytes,
    )


def encode_limits(settings: ServerSettings) -> EncodeLimits:
    """Bounds on what a reply may be."""
    return EncodeLimits(settings.max_response_bytes)
