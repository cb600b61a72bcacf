"""The HTTP client for an OpenID Connect provider. Responses are limited in size and time."""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from http import HTTPStatus
from typing import Any
from urllib.parse import urlsplit

import httpx

from reconciler.output.text import to_one_line
from reconciler.server.authentication.errors import ProviderRefusedError, ProviderUnavailableError

_TIMEOUT = httpx.Timeout(5.0)
_MAX_SECONDS = 15.0
_MAX_BYTES = 1024 * 1024
_MAX_ERROR_CHARACTERS = 100


class ProviderClient:
    """Sends requests to the provider, and reads JSON objects. It follows no redirects, and stores no cookies."""

    def get(self, url: str, access_token: str | None = None) -> Mapping[str, Any]:
        """Return the object at a URL.

        Raises:
            ProviderUnavailableError: There is no such object.
        """
        headers = {"Authorization": f"Bearer {access_token}"} if access_token else {}
        return self._send(httpx.Request("GET", url, headers={"Accept": "application/json", **headers}))

    def post(self, url: str, form: Mapping[str, str], credentials: tuple[str, str] | None) -> Mapping[str, Any]:
        """Return the response to a form.

        Args:
            credentials: The user and the password of the request. None if the form contains the credentials.

        Raises:
            ProviderRefusedError: The provider refused the form.
            ProviderUnavailableError: The provider does not respond as expected.
        """
        headers = {"Accept": "application/json"}
        request = httpx.Request("POST", url, data=dict(form), headers=headers)
        if credentials:
            request = next(httpx.BasicAuth(*credentials).auth_flow(request))
        return self._send(request)

    def _send(self, request: httpx.Request) -> Mapping[str, Any]:
        place = f"{request.method} {request.url.copy_with(query=None)}"
        try:
            with (
                httpx.Client(timeout=_TIMEOUT) as client,
                client.stream(request.method, request.url, headers=request.headers, content=request.read()) as response,
            ):
                content = _read_content(response, place)
        except httpx.HTTPError as error:
            raise ProviderUnavailableError(f"{place}: the provider does not respond ({type(error).__name__})") from None
        try:
            data = json.loads(content)
        except (ValueError, RecursionError):
            data = None
        if response.status_code == HTTPStatus.BAD_REQUEST and isinstance(data, dict) and "error" in data:
            code = to_one_line(str(data["error"]))[:_MAX_ERROR_CHARACTERS]
            raise ProviderRefusedError(code, f"{place}: the provider refused the request: {code}")
        if response.status_code != HTTPStatus.OK or not isinstance(data, dict):
            raise ProviderUnavailableError(
                f"{place}: the response must be a JSON object with the status 200; its status is {response.status_code}"
            )
        return data


def _read_content(response: httpx.Response, place: str) -> bytes:
    deadline, content = time.monotonic() + _MAX_SECONDS, b""
    for part in response.iter_bytes():
        content += part
        if len(content) > _MAX_BYTES or time.monotonic() > deadline:
            raise ProviderUnavailableError(f"{place}: the response is larger than {_MAX_BYTES} bytes, or too slow")
    return content


def check_endpoint(url: object, name: str, issuer: str) -> str:
    """Return the URL of an endpoint. The URL must use TLS, unless the URL of the issuer does not use TLS.

    Raises:
        ProviderUnavailableError: The URL is not allowed.
    """
    scheme = urlsplit(issuer).scheme
    if not isinstance(url, str) or urlsplit(url).scheme not in ("https", scheme) or not urlsplit(url).hostname:
        raise ProviderUnavailableError(
            f"the metadata of the provider must contain `{name}` with a URL that starts with {scheme}://"
        )
    return url
