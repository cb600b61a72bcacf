"""Requests results from the API of a running service."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import Any
from urllib.parse import urlencode, urlsplit

from reconciler.krm import field_text
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.text import to_one_line
from reconciler.server.address import API_PREFIX, LOOPBACK_NAMES
from reconciler.server.health_client import NoResponseError, send_request

_MAX_BYTES = 64 << 20
# An explanation can take 10 seconds, and can wait 10 seconds for other explanations.
_TIMEOUT_SECONDS = 30.0


class ApiRefusedError(Exception):
    """The service has refused a request. The message contains the URL, the reason and the next step.

    Attributes:
        problem: The problem (RFC 9457) in the response.
    """

    def __init__(self, message: str, problem: Mapping[str, Any]) -> None:
        super().__init__(message)
        self.problem = problem


@dataclass(frozen=True)
class ApiClient:
    """Sends requests to one service.

    Attributes:
        url: The URL of the service.
        token: The access token. "" sends no token.

    Raises:
        ValueError: The token would be sent without encryption over a network.
    """

    url: str
    token: str = field(default="", repr=False)

    def __post_init__(self) -> None:
        parts = urlsplit(self.url)
        if self.token and parts.scheme == "http" and parts.hostname not in LOOPBACK_NAMES:
            raise ValueError(
                "must start with https://, because HTTP does not encrypt the token, but is"
                f" {field_text.quote_value(self.url)}"
            )

    def read(self, path: str) -> Mapping[str, Any]:
        """Return the result of a path below `/api/v1`, for example `/status`.

        Raises:
            ValueError: The URL is not valid.
            NoResponseError: There is no valid response.
            ApiRefusedError: The service has refused the request.
        """
        return self._send(path, None, {})

    def read_pages(self, path: str, query: Mapping[str, str | Sequence[str]]) -> Iterator[Mapping[str, Any]]:
        """Yield the pages of a list. Query parameters without a value are omitted.

        Raises:
            ValueError: The URL is not valid.
            NoResponseError: There is no valid response.
            ApiRefusedError: The service has refused a request.
            LookupError: The response does not contain an expected field.
        """
        parameters = {name: value for name, value in query.items() if value}
        while True:
            page = self.read(f"{path}?{urlencode(parameters, doseq=True)}")
            yield page
            if not page["next"]:
                return
            parameters["cursor"] = page["next"]

    def post(self, path: str, body: object) -> Mapping[str, Any]:
        """Send an action to a path below `/api/v1`, and return the result.

        Raises:
            ValueError: The URL is not valid.
            NoResponseError: There is no valid response.
            ApiRefusedError: The service has refused the request.
        """
        return self._send(path, json.dumps(body).encode(), {"Content-Type": "application/json"})

    def _send(self, path: str, body: bytes | None, headers: Mapping[str, str]) -> Mapping[str, Any]:
        authorization = {"Authorization": f"Bearer {self.token}"} if self.token else {}
        response, text = send_request(
            self.url,
            API_PREFIX + path,
            _MAX_BYTES,
            headers={**headers, **authorization},
            body=body,
            timeout_seconds=_TIMEOUT_SECONDS,
        )
        try:
            data = json.loads(text)
        except ValueError:
            data = None
        if not isinstance(data, dict):
            raise NoResponseError(
                f"{self.url}: the response is not from the API of reconciler (status {response.status}); check the URL"
            )
        if response.status not in (HTTPStatus.OK, HTTPStatus.ACCEPTED):
            parts = [to_one_line(str(data[name])) for name in ("detail", "nextStep") if data.get(name)]
            raise ApiRefusedError(
                f"{self.url}: {'. '.join(parts) or 'the service refused the request'} (status {response.status})", data
            )
        return data
