"""How big, deep and wide a request or a reply may be. Runs on: anywhere (pure)."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..core.errors import ConfigError

MIB = 1024 * 1024

# simdjson counts the elements of an array in 24 bits, and pysimdjson's as_list() writes past its list beyond that;
# an element takes two bytes, so no array of a text up to this size can have more.
MAX_JSON_BYTES = 32 * MIB

# Nobody needs more of these; without an end they would cost seconds of the event loop in a body of legal size.
MAX_TENSORS = 4096  # inputs, and requested outputs
MAX_PARAMETERS = 256
MAX_NAME_LENGTH = 1000


@dataclass(slots=True, frozen=True)
class DecodeLimits:
    """Bounds that the decoder holds a request body to.

    An element takes at least one byte on the wire, so `max_elements` follows the body limit; it also bounds the
    non-zero dimensions of empty tensors, whose size no data vouches for. `strict_json_bytes` is the size up to which
    a document that simdjson refuses gets a second opinion from the slow parser. `max_strings` bounds the elements of
    one BYTES tensor, which are Python objects each.
    """

    max_json_bytes: int = 16 * MIB
    json_depth: int = 64
    tensor_rank: int = 16
    max_elements: int = 64 * MIB
    max_strings: int = 1_000_000
    strict_json_bytes: int = 1_000_000
    most_braces: int = field(init=False)  # so many objects cannot exceed json_depth on top of a tensor's arrays

    def __post_init__(self) -> None:
        if self.max_json_bytes > MAX_JSON_BYTES:
            raise ConfigError(
                f"max_json_bytes is {self.max_json_bytes}, the JSON parser can be trusted up to {MAX_JSON_BYTES}; "
                "bigger tensors go through the binary tensor data extension"
            )
        object.__setattr__(self, "most_braces", self.json_depth - self.tensor_rank - 3)


@dataclass(slots=True, frozen=True)
class EncodeLimits:
    """Bounds that the encoder holds a reply to."""

    max_response_bytes: int = 256 * MIB


DECODE_DEFAULTS = DecodeLimits()
ENCODE_DEFAULTS = EncodeLimits()
