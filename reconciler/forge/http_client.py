"""The HTTP client that all forge clients use. Only this module and `github_app.py` import httpx."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import Any

import httpx

from reconciler.forge.errors import ForgeAnswerError, ForgeBusyError, ForgeUnreachableError
from reconciler.forge.rate_limits import RateLimiter
from reconciler.forge.response_cache import CachedResponse, ResponseCache
from reconciler.forge.responses import error_for_status, parse_json, refusal_message, to_one_line

Authorize = Callable[[], Mapping[str, str]]
"""Returns the headers with the credentials, or raises ForgeCredentialsError."""

MAX_RESPONSE_BYTES = 16 * 1024 * 1024
MAX_PAGES = 100
_MAX_REDIRECTS = 3
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
# The timeout of httpx applies to each chunk of a response. This limit applies to the complete response.
_MAX_RESPONSE_SECONDS = 120
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    content: bytes
    following: str


class ForgeClient:
    """Sends and receives JSON as one account of a forge.

    `api` is the URL of the API, and `clock` returns seconds since 1970. Reads are conditional requests with the ETag of
    the cached response. The client does not retry and does not wait. It does not follow redirects to another origin,
    because the redirected request would contain the credentials. All methods raise ForgeError, whose message contains
    no credentials. Threads can share the object.
    """

    def __init__(
        self,
        api: str,
        authorize: Authorize,
        budget: RateLimiter,
        clock: Callable[[], float],
        transport: httpx.BaseTransport | None = None,
    ) -> None:
        self.api = _checked_root(api)
        self._root = httpx.URL(self.api)
        self._authorize = authorize
        self._budget = budget
        self.clock = clock
        self._headers: Mapping[str, str] = {"Accept": "application/json", "User-Agent": "reconciler"}
        self._connections = _Connections(transport)
        self._memory = ResponseCache()

    def with_headers(self, headers: Mapping[str, str]) -> ForgeClient:
        """Return a client with the same connections that adds these headers to every request."""
        client = copy.copy(self)
        client._headers = {**self._headers, **headers}
        return client

    def close(self) -> None:
        """Close all connections. The next request opens new connections."""
        self._connections.close()

    def get(self, path: str, params: Mapping[str, str | int] = _NONE) -> Any:
        """Return the JSON at a path below the URL of the API, or at a URL of the same origin."""
        return self._read(path, params)[0]

    def pages(self, path: str, params: Mapping[str, str | int] = _NONE) -> list[Any]:
        """Return the items of all pages of a list. The method follows the links to the next page (RFC 8288)."""
        items: list[Any] = []
        call = f"GET {path}"
        for _ in range(MAX_PAGES):
            page, following = self._read(path, params)
            if not isinstance(page, list):
                raise ForgeAnswerError(f"{call}: the response must be a list")
            items += page
            if not following:
                return items
            path, params = following, _NONE
        raise ForgeAnswerError(f"{call}: there are more than {MAX_PAGES} pages")

    def send(self, method: str, path: str, body: Mapping[str, Any], *, opens: bool = False) -> Any:
        """Send a write request, and return the JSON of the response or None.

        The rate limiter counts the write. If `opens` is set, it also counts a new pull request.
        """
        take = self._budget.take_new if opens else self._budget.take
        take()
        answer = self._ask(method, self._place(path, _NONE), _NONE, body)
        return parse_json(answer.content, f"{method} {path}") if answer.content.strip() else None

    def record_rate_limit(self, message: str) -> ForgeBusyError:
        """Pause the rate limiter for a limit that the forge did not report with an HTTP status. Return the error."""
        error = ForgeBusyError(message, self.clock() + 60)
        self._budget.pause_until(error.until)
        return error

    def _read(self, path: str, params: Mapping[str, str | int]) -> tuple[Any, str]:
        self._budget.check_pause()
        place = self._place(path, params)
        known = self._memory.get(str(place))
        answer = self._ask("GET", place, {"If-None-Match": known.tag} if known else _NONE, None)
        if answer.status == 304 and known:
            content, following = known.content, answer.following or known.following
        else:
            content, following = answer.content, answer.following
            if tag := answer.headers.get("etag"):
                self._memory.keep(str(place), CachedResponse(tag, content, following))
        return parse_json(content, f"GET {place.path}"), following

    def _place(self, path: str, params: Mapping[str, str | int]) -> httpx.URL:
        place = httpx.URL(path) if "://" in path.partition("?")[0] else httpx.URL(self.api + path)
        if not self._is_ours(place):
            raise ForgeAnswerError(f"the forge at {self._root.host} refers to another host, {place.host!r}")
        return place.copy_merge_params(params) if params else place

    def _is_ours(self, place: httpx.URL) -> bool:
        root = self._root
        return (place.scheme, place.host, place.port) == (root.scheme, root.host, root.port) and not place.userinfo

    def _ask(
        self, method: str, place: httpx.URL, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> _Answer:
        credentials = self._authorize()
        call = f"{method} {place.path}"
        for _ in range(_MAX_REDIRECTS + 1):
            request = self._connections.http.build_request(
                method, place, json=body, headers={**self._headers, **headers, **credentials}
            )
            answer = self._exchange(request, call)
            onward = self._onward(method, place, answer)
            if not onward:
                return self._checked(answer, call, credentials, conditional=bool(headers))
            place = onward
        raise ForgeAnswerError(f"{call}: more than {_MAX_REDIRECTS} redirects")

    def _onward(self, method: str, place: httpx.URL, answer: _Answer) -> httpx.URL | None:
        # A renamed repository has a redirect. A write is repeated only if the status preserves its method and body.
        followed = {301, 302, 303, 307, 308} if method == "GET" else {307, 308}
        location = answer.headers.get("location")
        if answer.status not in followed or not location:
            return None
        onward = place.join(location)
        return onward if self._is_ours(onward) else None

    def _exchange(self, request: httpx.Request, call: str) -> _Answer:
        # The original exceptions are omitted, because messages of the HTTP client can contain a header.
        try:
            answer = self._connections.http.send(request, stream=True)
            try:
                content = self._content(answer, call)
            finally:
                answer.close()
        except httpx.TimeoutException as error:
            raise ForgeUnreachableError(f"{call}: {request.url.host} took too long ({type(error).__name__})") from None
        except httpx.NetworkError as error:
            raise ForgeUnreachableError(
                f"{call}: {request.url.host} cannot be reached: {to_one_line(str(error))}"
            ) from None
        except httpx.HTTPError as error:
            raise ForgeUnreachableError(f"{call}: no answer of {request.url.host} ({type(error).__name__})") from None
        return _Answer(answer.status_code, answer.headers, content, _following(answer, request.url))

    def _content(self, answer: httpx.Response, call: str) -> bytes:
        pieces, size, started = [], 0, self.clock()
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > MAX_RESPONSE_BYTES:
                raise ForgeAnswerError(f"{call}: the answer is larger than {MAX_RESPONSE_BYTES} bytes")
            if self.clock() - started > _MAX_RESPONSE_SECONDS:
                raise ForgeUnreachableError(f"{call}: the answer took more than {_MAX_RESPONSE_SECONDS} seconds")
            pieces.append(piece)
        return b"".join(pieces)

    def _checked(self, answer: _Answer, call: str, credentials: Mapping[str, str], conditional: bool) -> _Answer:
        if answer.status < 300 or (answer.status == 304 and conditional):
            return answer
        message = to_one_line(_remove_credentials(refusal_message(answer.content), credentials))
        if 300 <= answer.status < 400:
            message = f"a redirect to {_host_of(answer)}, which the client does not follow"
        error = error_for_status(answer.status, answer.headers, message, call, self.clock())
        if isinstance(error, ForgeBusyError):
            self._budget.pause_until(error.until)
        raise error


class _Connections:
    """The connections to one forge, which the first request opens. Threads can share the object."""

    def __init__(self, transport: httpx.BaseTransport | None) -> None:
        self._transport = transport
        self._lock = Lock()
        self._open: httpx.Client | None = None

    @property
    def http(self) -> httpx.Client:
        with self._lock:
            if self._open is None:
                self._open = httpx.Client(timeout=_TIMEOUT, transport=self._transport, cookies=_no_cookies())
            return self._open

    def close(self) -> None:
        with self._lock:
            if self._open is not None:
                self._open.close()
            self._open = None


def _checked_root(api: str) -> str:
    try:
        root = httpx.URL(api)
    except httpx.InvalidURL:
        raise ValueError("the address of a forge's API must be a URL") from None
    if root.scheme not in {"https", "http"} or not root.host or root.userinfo or root.query or root.fragment:
        raise ValueError(f"the address of the API at {root.host!r} must be https://HOST/PATH and nothing else")
    return api.rstrip("/")


def _no_cookies() -> CookieJar:
    # With a session cookie, a request could run as another account than that of the token.
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _following(answer: httpx.Response, place: httpx.URL) -> str:
    try:
        link = answer.links.get("next", {}).get("url", "")
        return str(place.join(link)) if link else ""
    except httpx.InvalidURL:
        raise ForgeAnswerError(f"GET {place.path}: the link to the next page is not a URL") from None


def _host_of(answer: _Answer) -> str:
    try:
        return httpx.URL(answer.headers.get("location", "")).host or "nowhere"
    except httpx.InvalidURL:
        return "nowhere"


def _remove_credentials(text: str, credentials: Mapping[str, str]) -> str:
    # The response of a forge or of a proxy can contain the headers of the request.
    secrets = {part for value in credentials.values() for part in (value, value.rpartition(" ")[2]) if part}
    for secret in sorted(secrets, key=len, reverse=True):
        text = text.replace(secret, "*****")
    return text
