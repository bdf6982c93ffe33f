"""Bounds on connections, requests and replies, as one value. Runs on: anywhere (pure)."""

from __future__ import annotations

from dataclasses import dataclass

KIB = 1024
MIB = 1024 * 1024


@dataclass(slots=True, frozen=True)
class HttpLimits:
    """Every bound of both HTTP paths; 0 switches off the ones that say so."""

    max_request_bytes: int = 64 * MIB  # a body, before and after decompression
    max_inflight_bytes: int = 1024 * MIB  # bodies held and replies unsent, whole server
    max_header_bytes: int = 64 * KIB  # request line and header fields
    max_headers: int = 200
    max_url_bytes: int = 8 * KIB
    max_pipelined: int = 64  # requests waiting behind the one being answered
    max_connections: int = 2048
    max_connection_requests: int = 0  # 0: no bound
    max_connection_age_s: float = 0.0  # 0: no bound
    header_timeout_s: float = 10.0
    body_timeout_s: float = 60.0
    body_min_rate: int = KIB  # bytes per second, averaged, once `body_grace_s` are over
    body_grace_s: float = 20.0
    keep_alive_s: float = 75.0
    write_timeout_s: float = 60.0  # a reader must take `body_min_rate` bytes per second over this long
    linger_s: float = 5.0  # how long input is thrown away after a reply that closes the connection
    drain_bytes: int = 64 * KIB  # a rejected body up to this long is read to its end, so the connection lives on
    compress_min_bytes: int = KIB  # replies below are not compressed
    executor_bytes: int = 256 * KIB  # (de)compression above is done off the event loop
