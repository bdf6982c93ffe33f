"""`ServerSettings`: everything that can be said to the server itself. Runs on: anywhere (pure)."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, BeforeValidator, ConfigDict, Field, model_validator
from pydantic_core import PydanticCustomError

from .part import Natural, Positive, no_bool
from .sizes import ByteSize

_MAX_JSON_BYTES = 32 * 1024**2
_DEVICE = re.compile(r"auto|cpu|cuda(:(0|[1-9][0-9]{0,3}))?", re.ASCII)
_BACKEND_CONFIG = re.compile(r"([a-z0-9_-]+,)?[A-Za-z0-9_.-]+=.*", re.ASCII)


def _comma_list(value: Any) -> Any:
    """A text is a list with commas, as an environment variable has to spell it."""
    return [one.strip() for one in value.split(",") if one.strip()] if isinstance(value, str) else value


def _yes_or_no(value: Any) -> Any:
    """The words of environment variables."""
    if isinstance(value, str):
        word = value.strip().lower()
        if word in ("1", "true", "yes", "on"):
            return True
        if word in ("0", "false", "no", "off"):
            return False
        raise PydanticCustomError("flag_expected", "true or false is expected, not {word}", {"word": repr(value)})
    return value


def _device(value: Any) -> Any:
    if isinstance(value, str) and not _DEVICE.fullmatch(value):
        raise PydanticCustomError(
            "device", "{value} is no device; use auto, cpu or cuda:N (for example cuda:0)", {"value": repr(value)}
        )
    return "cuda:0" if value == "cuda" else value


def _backend_config(value: Any) -> Any:
    entries = [value] if isinstance(value, str) else value
    for entry in entries if isinstance(entries, list | tuple) else ():
        if isinstance(entry, str) and not _BACKEND_CONFIG.fullmatch(entry):
            raise PydanticCustomError(
                "backend_config",
                "{entry} is not of the form BACKEND,KEY=VALUE (for example onnxruntime,enable-mem-arena=0)",
                {"entry": repr(entry)},
            )
    return entries


def _root_path(value: Any) -> Any:
    if isinstance(value, str) and value:
        value = "/" + value.strip("/")
        return "" if value == "/" else value
    return value


Bool = Annotated[bool, BeforeValidator(_yes_or_no, json_schema_input_type=bool | str), Field(strict=True)]
Port = Annotated[int, Field(ge=0, le=65535), BeforeValidator(no_bool)]
Seconds = Annotated[float, Field(ge=0, allow_inf_nan=False), BeforeValidator(no_bool)]
PollSeconds = Annotated[float, Field(gt=0, le=86400), BeforeValidator(no_bool)]
Words = Annotated[tuple[str, ...], BeforeValidator(_comma_list, json_schema_input_type=list[str] | str)]


class ServerSettings(BaseModel):
    """The server's options: each a flag `--some-name`, a variable `KERNELPORT_SOME_NAME`, a file key `some_name`."""

    model_config = ConfigDict(frozen=True, extra="forbid", protected_namespaces=())

    # Where it listens
    host: str = Field(default="0.0.0.0", description="Address to listen on; `::` for IPv6.")
    port: Port = Field(default=8080, description="HTTP port; 0 picks a free one and prints it.")
    uds: str = Field(default="", description="Unix socket to listen on instead of host and port.")
    root_path: Annotated[str, BeforeValidator(_root_path)] = Field(
        default="", description="Path prefix under which a proxy publishes the server, for example /models."
    )
    forwarded_allow_ips: str = Field(
        default="127.0.0.1", description="Proxies whose X-Forwarded headers are believed, comma separated; * for all."
    )

    # What it serves
    models: Words = Field(default=(), description="Model repositories (folders) or single model files.")
    model_path: str = Field(default="", description="One model to serve: a file or a model's folder.")
    model_name: str = Field(
        default="", description="Name of the model given by model_path; made from the path when absent."
    )
    model_control_mode: Literal["none", "poll", "explicit"] = Field(
        default="none",
        description="none: load all at start; poll: also follow changes on disk; explicit: load on request.",
    )
    load_model: Words = Field(default=(), description="Models to load at start in explicit mode; * for all.")
    repository_poll_secs: PollSeconds = Field(
        default=15, description="Seconds between looks at the repository in poll mode."
    )
    strict_readiness: Bool = Field(
        default=True,
        description="Ready only while every model that should be loaded is; else as soon as the server is up.",
    )
    exit_on_error: Bool = Field(default=False, description="Stop at start-up when a model fails to load.")
    allow_file_override: Bool = Field(
        default=False, description="Allow load requests to bring model files along (explicit mode only)."
    )

    # How it computes
    device: Annotated[str, BeforeValidator(_device)] = Field(
        default="auto", description="Where models run by default: auto, cpu or cuda:N."
    )
    cpu_lanes: Natural = Field(default=0, description="Threads that run batches on the CPU; 0 finds a number.")
    intra_op_threads: Natural = Field(default=0, description="Threads inside one run of a model; 0 finds a number.")
    backend_config: Annotated[Words, BeforeValidator(_backend_config)] = Field(
        default=(), description="Default parameters of a backend, each BACKEND,KEY=VALUE."
    )
    max_batch_size: Positive = Field(default=32, description="max_batch_size of models whose configuration names none.")
    max_queue_size: Positive = Field(default=1024, description="Waiting requests per model, unless it says otherwise.")

    # What it accepts
    infer_lane: Bool = Field(default=True, description="Serve infer requests on the fast path; false: through FastAPI.")
    max_request_bytes: ByteSize = Field(
        default=64 * 1024**2, description="Largest request body, also once decompressed."
    )
    max_json_bytes: ByteSize = Field(
        default=16 * 1024**2, description="Largest JSON of a request; larger tensors go binary."
    )
    max_inflight_bytes: ByteSize = Field(default=1024**3, description="Request bytes the whole server holds at a time.")
    max_response_bytes: ByteSize = Field(default=256 * 1024**2, description="Largest response body.")
    max_connections: Positive = Field(default=2048, description="Open HTTP connections.")
    max_connection_requests: Natural = Field(default=0, description="Requests per connection; 0 for no limit.")
    max_connection_age_s: Seconds = Field(default=0, description="Age at which a connection is closed; 0 for no limit.")
    header_timeout_s: Seconds = Field(default=10, description="Seconds a client may take to send its headers.")
    body_timeout_s: Seconds = Field(default=60, description="Seconds a client may take to send its body.")
    body_min_rate: ByteSize = Field(default=1024, description="Bytes per second a body must arrive with.")
    keep_alive_s: Seconds = Field(default=75, description="Seconds an idle connection is kept open.")
    json_depth: Positive = Field(default=64, description="Deepest nesting of a JSON body.")
    tensor_rank: Positive = Field(default=16, description="Most dimensions of a tensor.")

    # How it stops and what it tells
    drain_delay_s: Seconds = Field(default=5, description="Seconds it still serves after SIGTERM while not ready.")
    exit_timeout_s: Seconds = Field(default=30, description="Seconds accepted requests may take to finish at shutdown.")
    log_level: Literal["debug", "info", "warning", "error", "critical"] = Field(
        default="info", description="Least severe level logged."
    )
    log_format: Literal["text", "json"] = Field(default="text", description="Form of log lines.")
    access_log: Bool = Field(default=False, description="One log line per request.")
    slow_request_ms: Seconds = Field(
        default=0, description="Log requests slower than this many milliseconds; 0 for none."
    )
    config: str = Field(default="", description="YAML file with these options.")

    @model_validator(mode="after")
    def _options_go_together(self) -> ServerSettings:
        if self.model_name and not self.model_path:
            raise PydanticCustomError("model_name", "--model-name names the model of --model-path, which is not given")
        if self.load_model and self.model_control_mode != "explicit":
            raise PydanticCustomError("load_model", "--load-model needs --model-control-mode explicit")
        if self.allow_file_override and self.model_control_mode != "explicit":
            raise PydanticCustomError("file_override", "--allow-file-override needs --model-control-mode explicit")
        if self.max_json_bytes > _MAX_JSON_BYTES:
            # Larger documents cost seconds of the event loop, and overrun the JSON parser's list conversion.
            raise PydanticCustomError("max_json_bytes", "--max-json-bytes can be 32MiB at most")
        if self.max_json_bytes > self.max_request_bytes and "max_json_bytes" in self.model_fields_set:
            raise PydanticCustomError("max_json_bytes", "--max-json-bytes is above --max-request-bytes")
        return self

    @property
    def repositories(self) -> tuple[Path, ...]:
        """The positional paths: repositories and single files."""
        return tuple(Path(one) for one in self.models)

    def backend_parameters(self, backend: str) -> dict[str, str]:
        """The `--backend-config` values for `backend`; entries without a backend hold for all."""
        parameters: dict[str, str] = {}
        for entry in self.backend_config:
            head, _, value = entry.partition("=")
            owner, comma, key = head.rpartition(",")
            if not comma or owner == backend:
                parameters[key] = value
        return parameters
