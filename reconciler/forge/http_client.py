"""The HTTP client that all forge clients use. In `forge`, only this module and `github_app.py` import httpx.

Channels of notifications have their own client (`notifications/http.py`), with different rules for hosts and addresses.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import Any

import httpx

from reconciler.forge.errors import ForgeAnswerError, ForgeBusyError, ForgeError, ForgeUnreachableError
from reconciler.forge.rate_limits import ForgeQuota, RateLimiter
from reconciler.forge.response_cache import CachedResponse, ResponseCache
from reconciler.forge.responses import (
    create_status_error,
    extract_error_message,
    parse_json,
    read_quota,
    to_one_line,
)
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.telemetry import metrics
from reconciler.telemetry.credential_expiry import record_credential_expiry
from reconciler.telemetry.traces import span

Authorize = Callable[[], Mapping[str, str]]
"""A function that returns the headers with the credentials, or raises ForgeCredentialsError."""

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
MAX_PAGES = 100
_MAX_REDIRECTS = 3
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
# The timeout of httpx limits the time for each chunk of a response. This limit is for the complete response.
_MAX_RESPONSE_SECONDS = 120
_NONE: Mapping[str, Any] = {}
# GitHub: the tokens of a GitHub App start with these characters. Such a token is valid for one hour.
_INSTALLATION_TOKEN = " ghs_"  # noqa: S105 - the prefix of all these tokens, not a token


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    content: bytes
    following: str


class ForgeClient:
    """Sends and receives JSON with the credentials of one account of a forge. The object is thread-safe.

    `api` is the URL of the API, and `clock` returns seconds since 1970. Read requests are conditional: they contain the
    ETag of the cached response. The client does not retry and does not wait. It does not follow redirects to a
    different origin, because the redirected request would contain the credentials. All methods raise ForgeError. The
    error message contains no credentials.
    """

    def __init__(
        self,
        api: str,
        authorize: Authorize,
        rate_limiter: RateLimiter,
        clock: Callable[[], float],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.api = _parse_root(api)
        self._root_url = httpx.URL(self.api)
        self._authorize = authorize
        self._rate_limiter = rate_limiter
        self.clock = clock
        self._headers: Mapping[str, str] = {"Accept": "application/json", "User-Agent": "reconciler"}
        self._connections = _Connections(transport)
        self._cache = ResponseCache()

    def with_headers(self, headers: Mapping[str, str]) -> ForgeClient:
        """Return a client that shares the connections of this client and adds these headers to every request."""
        client = copy.copy(self)
        client._headers = {**self._headers, **headers}
        return client

    def close(self) -> None:
        """Close all connections. The next request opens new connections."""
        self._connections.close()

    def get(self, path: str, params: Mapping[str, str | int] = _NONE) -> Any:
        """Return the JSON at a URL. `path` is a path below the URL of the API, or a full URL of the same origin."""
        return self._read(path, params)[0]

    def get_all_pages(self, path: str, params: Mapping[str, str | int] = _NONE) -> list[Any]:
        """Return the items of all pages of a list. Follow the links to the next page (RFC 8288)."""
        items: list[Any] = []
        call = f"GET {path}"
        for _ in range(MAX_PAGES):
            page, next_page = self._read(path, params)
            if not isinstance(page, list):
                raise ForgeAnswerError(f"{call}: the response must be a list")
            items += page
            if not next_page:
                return items
            path, params = next_page, _NONE
        raise ForgeAnswerError(f"{call}: the result has more than {MAX_PAGES} pages")

    def send(self, method: str, path: str, body: Mapping[str, Any], *, is_new_request: bool = False) -> Any:
        """Send a write request, and return the JSON of the response. Return None if the response is empty.

        The rate limiter counts the write. If `is_new_request` is True, it also counts a new pull request.
        """
        count_request = self._rate_limiter.count_new_request if is_new_request else self._rate_limiter.count_write
        count_request()
        answer = self._send_request(method, self._build_url(path, _NONE), _NONE, body)
        return parse_json(answer.content, f"{method} {path}") if answer.content.strip() else None

    def record_rate_limit(self, message: str) -> ForgeBusyError:
        """Return the error for a rate limit that the forge reported without an HTTP status, and pause all requests."""
        error = ForgeBusyError(message, self.clock() + 60)
        self._rate_limiter.pause_until(error.until)
        return error

    def _read(self, path: str, params: Mapping[str, str | int]) -> tuple[Any, str]:
        self._rate_limiter.check_pause()
        url = self._build_url(path, params)
        cached = self._cache.get(str(url))
        answer = self._send_request("GET", url, {"If-None-Match": cached.tag} if cached else _NONE, None)
        if answer.status == 304 and cached:
            content, next_page = cached.content, answer.following or cached.following
        else:
            content, next_page = answer.content, answer.following
            if tag := answer.headers.get("etag"):
                self._cache.store(str(url), CachedResponse(tag, content, next_page))
        return parse_json(content, f"GET {url.path}"), next_page

    def _build_url(self, path: str, params: Mapping[str, str | int]) -> httpx.URL:
        url = httpx.URL(path) if "://" in path.partition("?")[0] else httpx.URL(self.api + path)
        if not self._is_same_origin(url):
            raise ForgeAnswerError(
                f"the forge at {self._root_url.host} returned a URL of a different host: {url.host!r}"
            )
        return url.copy_merge_params(params) if params else url

    def _is_same_origin(self, url: httpx.URL) -> bool:
        root_url = self._root_url
        return (url.scheme, url.host, url.port) == (root_url.scheme, root_url.host, root_url.port) and not url.userinfo

    def _send_request(
        self, method: str, url: httpx.URL, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> _Answer:
        credentials = self._authorize()
        call = f"{method} {url.path}"
        for _ in range(_MAX_REDIRECTS + 1):
            request = self._connections.http.build_request(
                method, url, json=body, headers={**self._headers, **headers, **credentials}
            )
            answer = self._fetch_measured(request, call)
            redirect = self._find_redirect(method, url, answer)
            if not redirect:
                return self._check_answer(answer, call, credentials, is_conditional=bool(headers))
            url = redirect
        raise ForgeAnswerError(f"{call}: the forge sent more than {_MAX_REDIRECTS} redirects")

    def _find_redirect(self, method: str, url: httpx.URL, answer: _Answer) -> httpx.URL | None:
        # Follow redirects, because a forge redirects requests for a renamed repository. Repeat a write request only if
        # the redirect status preserves the method and the body of the request.
        followed = {301, 302, 303, 307, 308} if method == "GET" else {307, 308}
        location = answer.headers.get("location")
        if answer.status not in followed or not location:
            return None
        redirect = url.join(location)
        return redirect if self._is_same_origin(redirect) else None

    def _fetch_measured(self, request: httpx.Request, call: str) -> _Answer:
        host, operation = request.url.host, request.method.lower()
        attributes = {"http.request.method": request.method, "server.address": host, "url.path": request.url.path}
        with span(f"{request.method} {host}", attributes) as opened:
            try:
                answer = self._fetch_answer(request, call)
            except ForgeError:
                metrics.FORGE_REQUESTS.add(host, operation, "error")
                raise
            if opened is not None:
                opened.set_attribute("http.response.status_code", answer.status)
        metrics.FORGE_REQUESTS.add(host, operation, f"{answer.status // 100}xx")
        quota = read_quota(answer.headers, self.clock())
        if _INSTALLATION_TOKEN in request.headers.get("authorization", ""):
            # The reconciler renews this token. Therefore, the expiry of the token must cause no alert.
            quota = replace(quota, token_expires_at=None)
        self._rate_limiter.quota = quota
        _record_quota(host, answer.headers, quota)
        return answer

    def _fetch_answer(self, request: httpx.Request, call: str) -> _Answer:
        # Do not chain the original exceptions, because messages of the HTTP client can contain a header.
        try:
            answer = self._connections.http.send(request, stream=True)
            try:
                content = self._read_content(answer, call)
            finally:
                answer.close()
        except httpx.TimeoutException as error:
            raise ForgeUnreachableError(f"{call}: {request.url.host} took too long ({type(error).__name__})") from None
        except httpx.NetworkError as error:
            raise ForgeUnreachableError(
                f"{call}: {request.url.host} cannot be reached: {to_one_line(str(error))}"
            ) from None
        except httpx.HTTPError as error:
            raise ForgeUnreachableError(
                f"{call}: no valid response from {request.url.host} ({type(error).__name__})"
            ) from None
        return _Answer(answer.status_code, answer.headers, content, _get_next_page(answer, request.url))

    def _read_content(self, answer: httpx.Response, call: str) -> bytes:
        chunks, size, started = [], 0, self.clock()
        for chunk in answer.iter_bytes():
            size += len(chunk)
            if size > MAX_RESPONSE_BYTES:
                raise ForgeAnswerError(f"{call}: the response is larger than {MAX_RESPONSE_BYTES} bytes")
            if self.clock() - started > _MAX_RESPONSE_SECONDS:
                raise ForgeUnreachableError(f"{call}: the response took more than {_MAX_RESPONSE_SECONDS} seconds")
            chunks.append(chunk)
        return b"".join(chunks)

    def _check_answer(
        self, answer: _Answer, call: str, credentials: Mapping[str, str], is_conditional: bool
    ) -> _Answer:
        if answer.status < 300 or (answer.status == 304 and is_conditional):
            return answer
        message = to_one_line(_remove_credentials(extract_error_message(answer.content), credentials))
        if 300 <= answer.status < 400:
            message = f"a redirect to {_get_redirect_host(answer)}, which the client does not follow"
        error = create_status_error(answer.status, answer.headers, message, call, self.clock())
        if isinstance(error, ForgeBusyError):
            self._rate_limiter.pause_until(error.until)
        raise error


class _Connections:
    """The connections to one forge. The first request opens the HTTP client. The object is thread-safe."""

    def __init__(self, transport: httpx.BaseTransport | None) -> None:
        self._transport = transport
        self._lock = Lock()
        self._open: httpx.Client | None = None

    @property
    def http(self) -> httpx.Client:
        with self._lock:
            if self._open is None:
                self._open = httpx.Client(
                    timeout=_TIMEOUT, transport=self._transport, cookies=_create_empty_cookie_jar()
                )
            return self._open

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None


def _record_quota(host: str, headers: httpx.Headers, quota: ForgeQuota) -> None:
    resource = headers.get("x-ratelimit-resource", "core")
    if quota.remaining is not None:
        metrics.FORGE_RATE_LIMIT_REMAINING.set(quota.remaining, host, resource)
    if quota.resets_at is not None:
        metrics.FORGE_RATE_LIMIT_RESET.set(quota.resets_at, host, resource)
    if quota.token_expires_at is not None:
        record_credential_expiry(host, "api", quota.token_expires_at)


def _parse_root(api: str) -> str:
    try:
        root = httpx.URL(api)
    except httpx.InvalidURL:
        raise ValueError("the address of a forge's API must be a URL") from None
    if root.scheme not in {"https", "http"} or not root.host or root.userinfo or root.query or root.fragment:
        raise ValueError(
            f"the address of the API at {root.host!r} must be https://HOST/PATH without credentials, query and fragment"
        )
    return api.rstrip("/")


def _create_empty_cookie_jar() -> CookieJar:
    # Reject all cookies, because a session cookie could belong to a different account than the token.
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _get_next_page(answer: httpx.Response, url: httpx.URL) -> str:
    try:
        link = answer.links.get("next", {}).get("url", "")
        return str(url.join(link)) if link else ""
    except httpx.InvalidURL:
        raise ForgeAnswerError(f"GET {url.path}: the link to the next page is not a URL") from None


def _get_redirect_host(answer: _Answer) -> str:
    try:
        return httpx.URL(answer.headers.get("location", "")).host or "nowhere"
    except httpx.InvalidURL:
        return "nowhere"


def _remove_credentials(text: str, credentials: Mapping[str, str]) -> str:
    # Remove credentials, because the response of a forge or of a proxy can contain the headers of the request.
    secrets = {part for value in credentials.values() for part in (value, value.rpartition(" ")[2]) if part}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "*****")
    return text
