"""Log set-up: text or JSON lines on stderr, with the request id, one handler for us and uvicorn. Runs on: anywhere."""

from __future__ import annotations

import logging
import logging.config
import re
import time
from contextvars import ContextVar
from typing import Any, Literal

import orjson

ACCESS_LOGGER = "kernelport.access"
LEVELS: tuple[str, ...] = ("critical", "error", "warning", "info", "debug")
LogFormat = Literal["text", "json"]

# Set by the FastAPI side, where each request has its own context. The infer lane has none: it passes
# `extra={"request_id": ...}`, which wins.
request_id: ContextVar[str] = ContextVar("kernelport_request_id", default="")

_STANDARD_FIELDS = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "request_id", "color_message"}
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")


def _escape(match: re.Match[str]) -> str:
    return match.group().encode("unicode_escape").decode("ascii")


def one_line(text: str) -> str:
    """`text` with control characters escaped: a client cannot forge log lines or drive a terminal."""
    return text if text.isascii() and text.isprintable() else _CONTROL.sub(_escape, text)


def _extra_fields(record: logging.LogRecord) -> dict[str, Any]:
    """What the caller passed as `extra`."""
    return {key: value for key, value in vars(record).items() if key not in _STANDARD_FIELDS}


def _timestamp(record: logging.LogRecord) -> str:
    return f"{time.strftime('%Y-%m-%dT%H:%M:%S', time.gmtime(record.created))}.{int(record.msecs):03d}Z"


class RequestIdFilter(logging.Filter):
    """Gives every record a `request_id`; sits on the handler so that other libraries' records get one too."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Always lets the record through."""
        if not hasattr(record, "request_id"):
            record.request_id = request_id.get()
        return True


class TextFormatter(logging.Formatter):
    """One readable line: UTC time, level, logger, request id, message, `key=value` extras; then any traceback."""

    def format(self, record: logging.LogRecord) -> str:
        """See the class."""
        parts = [_timestamp(record), f"{record.levelname:<7}", record.name]
        identity = getattr(record, "request_id", "")
        if identity:
            parts.append(f"[{one_line(str(identity))}]")
        parts.append(one_line(record.getMessage()))
        parts.extend(f"{key}={one_line(str(value))}" for key, value in _extra_fields(record).items())
        line = " ".join(parts)
        if record.exc_info:
            line += "\n" + self.formatException(record.exc_info)
        if record.stack_info:
            line += "\n" + self.formatStack(record.stack_info)
        return line


class JsonFormatter(logging.Formatter):
    """One JSON object per line: time, level, logger, message, request_id, then whatever `extra` brought."""

    def format(self, record: logging.LogRecord) -> str:
        """See the class."""
        entry: dict[str, Any] = {
            "time": _timestamp(record),
            "level": record.levelname.lower(),
            "logger": record.name,
            "message": record.getMessage(),
        }
        identity = getattr(record, "request_id", "")
        if identity:
            entry["request_id"] = identity
        for key, value in _extra_fields(record).items():
            entry.setdefault(key, value)
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        if record.stack_info:
            entry["stack"] = self.formatStack(record.stack_info)
        return _dumps(entry)


def _dumps(entry: dict[str, Any]) -> str:
    """JSON that never fails on a value: what JSON cannot hold is written as its `str()`."""
    try:
        return orjson.dumps(entry, default=str, option=orjson.OPT_NON_STR_KEYS).decode()
    except orjson.JSONEncodeError:
        # Integers over 64 bits and lone surrogates: rare, so everything becomes text.
        return orjson.dumps({_encodable(key): _encodable(value) for key, value in entry.items()}).decode()


def _encodable(value: object) -> str:
    return str(value).encode("utf-8", "backslashreplace").decode()


def logging_config(level: str = "info", log_format: LogFormat = "text", access_log: bool = False) -> dict[str, Any]:
    """The dictConfig: `level` counts for our loggers and uvicorn's, other libraries speak from warning up.

    Uvicorn's own access log stays off, because the gate writes `kernelport.access` for both HTTP paths.
    """
    if level not in LEVELS:
        raise ValueError(f"log level {level!r} is unknown; use one of {', '.join(LEVELS)}")
    if log_format not in ("text", "json"):
        raise ValueError(f"log format {log_format!r} is unknown; use text or json")
    upper = level.upper()
    formatter = TextFormatter if log_format == "text" else JsonFormatter
    inherit = {"handlers": [], "propagate": True}
    return {
        "version": 1,
        "disable_existing_loggers": False,
        "filters": {"request_id": {"()": RequestIdFilter}},
        "formatters": {"line": {"()": formatter}},
        "handlers": {
            "stderr": {
                "class": "logging.StreamHandler",
                "stream": "ext://sys.stderr",
                "formatter": "line",
                "filters": ["request_id"],
            }
        },
        "root": {"level": upper if level in ("error", "critical") else "WARNING", "handlers": ["stderr"]},
        "loggers": {
            "kernelport": {"level": upper, **inherit},
            ACCESS_LOGGER: {"level": "INFO" if access_log else "CRITICAL", **inherit},
            "uvicorn": {"level": upper, **inherit},
            "uvicorn.error": {"level": upper, **inherit},
            "uvicorn.access": {"level": "CRITICAL", **inherit},
            "uvicorn.asgi": {"level": upper, **inherit},
        },
    }


def configure_logging(level: str = "info", log_format: LogFormat = "text", access_log: bool = False) -> None:
    """Apply `logging_config`; calling it again replaces the handler. Start uvicorn with `log_config=None`."""
    logging.config.dictConfig(logging_config(level, log_format, access_log))
    logging.captureWarnings(True)
