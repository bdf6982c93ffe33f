"""The HTTP side of the commands that talk to a running server. Runs on: anywhere."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping
from contextlib import closing
from typing import Any
from urllib.parse import quote

import click
import httpx
import orjson

DEFAULT_URL = "http://127.0.0.1:8080"


class ServerClient:
    """One running server by its URL; every failure becomes a message that says what to do."""

    def __init__(self, url: str, timeout_s: float) -> None:
        if "://" not in url:
            url = f"http://{url}"
        self.url = url.rstrip("/")
        self._timeout_s = timeout_s
        try:
            # Not from the environment: a proxy for the internet must not swallow calls to one's own server.
            self._http = httpx.Client(timeout=timeout_s, trust_env=False)
            httpx.URL(self.url)
        except httpx.InvalidURL as error:
            raise click.UsageError(f"--url {url!r} is not a URL: {error}") from error

    def get(self, path: str) -> Any:
        """The parsed JSON body of a GET."""
        return _json_body(self.send("GET", path))

    def post(self, path: str, body: Any = None) -> Any:
        """The parsed JSON body of a POST with a JSON body; None when the answer is empty."""
        return _json_body(self.send("POST", path, orjson.dumps({} if body is None else body)))

    def send(
        self, method: str, path: str, content: bytes | None = None, headers: Mapping[str, str] | None = None
    ) -> httpx.Response:
        """One request; raises ClickException unless the server answers it with success."""
        try:
            response = self._http.request(method, self.url + path, content=content, headers=headers)
        except httpx.ConnectError as error:
            raise click.ClickException(
                f"no server answers at {self.url} ({error}); is it running (kernelport serve MODELS/)?"
                " Give another address with --url."
            ) from error
        except httpx.TimeoutException as error:
            raise click.ClickException(
                f"{self.url} did not answer within {self._timeout_s:g} s; raise --timeout"
            ) from error
        except (httpx.HTTPError, httpx.InvalidURL) as error:
            raise click.ClickException(f"{method} {self.url}{path} failed: {error}") from error
        if response.is_error:
            raise click.ClickException(f"{self.url} answered {response.status_code}: {_error_text(response)}")
        return response

    def close(self) -> None:
        """Close the connection."""
        self._http.close()


def model_path(name: str, version: str | None = None) -> str:
    """The v2 path of a model, its name escaped."""
    path = f"/v2/models/{quote(name, safe='')}"
    return path if version is None else f"{path}/versions/{quote(version, safe='')}"


def _json_body(response: httpx.Response) -> Any:
    if not response.content:
        return None
    try:
        return orjson.loads(response.content)
    except orjson.JSONDecodeError as error:
        raise click.ClickException(f"{response.url} did not answer JSON; is it an inference server?") from error


def _error_text(response: httpx.Response) -> str:
    try:
        text = orjson.loads(response.content)["error"]
    except (orjson.JSONDecodeError, KeyError, TypeError):
        text = response.text.strip()[:300] or response.reason_phrase
    return str(text)


def server_options(command: Callable[..., Any]) -> Callable[..., Any]:
    """Adds --url and --timeout; the command gets the open `client` instead, and it is closed afterwards."""

    @functools.wraps(command)
    def with_client(url: str, timeout_s: float, **others: Any) -> Any:
        with closing(ServerClient(url, timeout_s)) as client:
            return command(client=client, **others)

    with_timeout = click.option(
        "--timeout",
        "timeout_s",
        type=click.FloatRange(min=0.001),
        default=300.0,
        show_default=True,
        metavar="SECONDS",
        help="How long to wait for an answer.",
    )(with_client)
    return click.option(
        "--url",
        envvar="KERNELPORT_URL",
        default=DEFAULT_URL,
        show_default=True,
        help="Address of the running server (variable KERNELPORT_URL).",
    )(with_timeout)
