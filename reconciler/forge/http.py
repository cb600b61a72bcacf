"""Requests to one forge: what every driver has in common. The only importer of httpx."""

from __future__ import annotations

import copy
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http.cookiejar import CookieJar, DefaultCookiePolicy
from threading import Lock
from typing import Any

import httpx

from reconciler.forge.answers import in_line, name_refusal, parse_json, said
from reconciler.forge.budget import Budget
from reconciler.forge.errors import ForgeAnswerError, ForgeBusyError, ForgeUnreachableError
from reconciler.forge.memory import Memory, Remembered

Authorize = Callable[[], Mapping[str, str]]
"""Returns the headers that carry the credentials. Raises ForgeCredentialsError."""

LARGEST_ANSWER = 16 * 1024 * 1024
MOST_PAGES = 100
_MOST_REDIRECTS = 3
_TIMEOUT = httpx.Timeout(30.0, connect=10.0)
# the time-out is for each piece of an answer: one that comes in drops would never end
_LONGEST_SECONDS = 120
_NONE: Mapping[str, Any] = {}


@dataclass(frozen=True)
class _Answer:
    status: int
    headers: httpx.Headers
    content: bytes
    following: str


class Client:
    """Talks JSON with one forge, as one account.

    `api` is the root of its interface, `clock` gives seconds since 1970; drivers read both. Reads are conditional: what
    was answered is remembered with its ETag, within bounds. Nothing is tried again, and nothing waits. Redirects to
    another origin are not followed, since the credentials would go along. Every call raises ForgeError, whose words
    hold no credentials. Threads may share it.
    """

    def __init__(
        self,
        api: str,
        authorize: Authorize,
        budget: Budget,
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
        self._memory = Memory()

    def speaking(self, headers: Mapping[str, str]) -> Client:
        """Return the same client with these headers on every request: what a product wants to be told."""
        client = copy.copy(self)
        client._headers = {**self._headers, **headers}
        return client

    def close(self) -> None:
        """Let go of all connections; the next call opens new ones."""
        self._connections.close()

    def get(self, path: str, params: Mapping[str, str | int] = _NONE) -> Any:
        """Return the JSON at a path below the API's root, or at a URL of the same origin."""
        return self._read(path, params)[0]

    def pages(self, path: str, params: Mapping[str, str | int] = _NONE) -> list[Any]:
        """Return a list of all pages, following the links to the next one (RFC 8288), at most 100 pages."""
        items: list[Any] = []
        call = f"GET {path}"
        for _ in range(MOST_PAGES):
            page, following = self._read(path, params)
            if not isinstance(page, list):
                raise ForgeAnswerError(f"{call}: the answer must be a list")
            items += page
            if not following:
                return items
            path, params = following, _NONE
        raise ForgeAnswerError(f"{call}: there are more than {MOST_PAGES} pages")

    def send(self, method: str, path: str, body: Mapping[str, Any], *, opens: bool = False) -> Any:
        """Write something, and return the JSON that the forge answers, or None.

        It takes a write from the budget first, and if it `opens` a pull request one of those, too.
        """
        take = self._budget.take_new if opens else self._budget.take
        take()
        answer = self._ask(method, self._place(path, _NONE), _NONE, body)
        return parse_json(answer.content, f"{method} {path}") if answer.content.strip() else None

    def busy(self, words: str) -> ForgeBusyError:
        """Take note of a limit that the forge told of in another way than HTTP's; return the error that says so."""
        error = ForgeBusyError(words, self.clock() + 60)
        self._budget.rest_until(error.until)
        return error

    def _read(self, path: str, params: Mapping[str, str | int]) -> tuple[Any, str]:
        self._budget.check_rest()
        place = self._place(path, params)
        known = self._memory.get(str(place))
        answer = self._ask("GET", place, {"If-None-Match": known.tag} if known else _NONE, None)
        if answer.status == 304 and known:
            content, following = known.content, answer.following or known.following
        else:
            content, following = answer.content, answer.following
            if tag := answer.headers.get("etag"):
                self._memory.keep(str(place), Remembered(tag, content, following))
        return parse_json(content, f"GET {place.path}"), following

    def _place(self, path: str, params: Mapping[str, str | int]) -> httpx.URL:
        place = httpx.URL(path) if "://" in path.partition("?")[0] else httpx.URL(self.api + path)
        if not self._is_ours(place):
            raise ForgeAnswerError(f"the forge at {self._root.host} refers to another one, {place.host!r}")
        return place.copy_merge_params(params) if params else place

    def _is_ours(self, place: httpx.URL) -> bool:
        root = self._root
        return (place.scheme, place.host, place.port) == (root.scheme, root.host, root.port) and not place.userinfo

    def _ask(
        self, method: str, place: httpx.URL, headers: Mapping[str, str], body: Mapping[str, Any] | None
    ) -> _Answer:
        credentials = self._authorize()
        call = f"{method} {place.path}"
        for _ in range(_MOST_REDIRECTS + 1):
            asked = self._connections.http.build_request(
                method, place, json=body, headers={**self._headers, **headers, **credentials}
            )
            answer = self._exchange(asked, call)
            onward = self._onward(method, place, answer)
            if not onward:
                return self._checked(answer, call, credentials, conditional=bool(headers))
            place = onward
        raise ForgeAnswerError(f"{call}: more than {_MOST_REDIRECTS} redirects")

    def _onward(self, method: str, place: httpx.URL, answer: _Answer) -> httpx.URL | None:
        # a repository that was renamed; a write is repeated only where its method and body stay what they are
        followed = {301, 302, 303, 307, 308} if method == "GET" else {307, 308}
        location = answer.headers.get("location")
        if answer.status not in followed or not location:
            return None
        onward = place.join(location)
        return onward if self._is_ours(onward) else None

    def _exchange(self, asked: httpx.Request, call: str) -> _Answer:
        # causes are left out: a complaint of the HTTP client may quote a header
        try:
            answer = self._connections.http.send(asked, stream=True)
            try:
                content = self._content(answer, call)
            finally:
                answer.close()
        except httpx.TimeoutException as error:
            raise ForgeUnreachableError(f"{call}: {asked.url.host} took too long ({type(error).__name__})") from None
        except httpx.NetworkError as error:
            raise ForgeUnreachableError(f"{call}: {asked.url.host} cannot be reached: {in_line(str(error))}") from None
        except httpx.HTTPError as error:
            raise ForgeUnreachableError(f"{call}: no answer of {asked.url.host} ({type(error).__name__})") from None
        return _Answer(answer.status_code, answer.headers, content, _following(answer, asked.url))

    def _content(self, answer: httpx.Response, call: str) -> bytes:
        pieces, size, started = [], 0, self.clock()
        for piece in answer.iter_bytes():
            size += len(piece)
            if size > LARGEST_ANSWER:
                raise ForgeAnswerError(f"{call}: the answer is larger than {LARGEST_ANSWER} bytes")
            if self.clock() - started > _LONGEST_SECONDS:
                raise ForgeUnreachableError(f"{call}: the answer took more than {_LONGEST_SECONDS} seconds")
            pieces.append(piece)
        return b"".join(pieces)

    def _checked(self, answer: _Answer, call: str, credentials: Mapping[str, str], conditional: bool) -> _Answer:
        if answer.status < 300 or (answer.status == 304 and conditional):
            return answer
        words = in_line(_without(said(answer.content), credentials))
        if 300 <= answer.status < 400:
            words = f"a redirect that is not followed, to {_host_of(answer)}"
        error = name_refusal(answer.status, answer.headers, words, call, self.clock())
        if isinstance(error, ForgeBusyError):
            self._budget.rest_until(error.until)
        raise error


class _Connections:
    """The connections to one forge, opened when somebody has something to ask. Threads may share them."""

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
    # a session that the forge begins would be another account than the token's
    return CookieJar(DefaultCookiePolicy(allowed_domains=[]))


def _following(answer: httpx.Response, place: httpx.URL) -> str:
    try:
        link = answer.links.get("next", {}).get("url", "")
        return str(place.join(link)) if link else ""
    except httpx.InvalidURL:
        raise ForgeAnswerError(f"GET {place.path}: the link to the next page is no URL") from None


def _host_of(answer: _Answer) -> str:
    try:
        return httpx.URL(answer.headers.get("location", "")).host or "nowhere"
    except httpx.InvalidURL:
        return "nowhere"


def _without(words: str, credentials: Mapping[str, str]) -> str:
    # a forge, or a proxy before it, that quotes the request
    secrets = {part for value in credentials.values() for part in (value, value.rpartition(" ")[2]) if part}
    for secret in sorted(secrets, key=len, reverse=True):
        words = words.replace(secret, "*****")
    return words
