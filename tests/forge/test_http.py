"""Requests to a forge: they are conditional and limited, use one origin, and never expose credentials."""

from __future__ import annotations

import gzip
import random
import socket
import threading
import traceback
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from email.utils import formatdate

import httpx
import pytest

from reconciler.forge import http_client as module
from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeBusyError,
    ForgeCredentialsError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
)
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.forge.response_cache import CachedResponse, ResponseCache
from tests.support.fake_forge.clock import Clock

API = "https://forge.example/api"
SECRET = "pat-planted-5ecret"
Answering = Callable[[httpx.Request], httpx.Response]


def make_client(answering: Answering, clock: Clock | None = None, budget: RateLimiter | None = None) -> ForgeClient:
    clock = clock or Clock()
    authorize = {"Authorization": f"Bearer {SECRET}"}
    return ForgeClient(
        API, lambda: authorize, budget or RateLimiter(0, 0, clock), clock, httpx.MockTransport(answering)
    )


def respond_with(status: int, **answer: object) -> Answering:
    return lambda _: httpx.Response(status, **answer)  # type: ignore[arg-type]


def respond_in_order(*answers: httpx.Response) -> tuple[Answering, list[httpx.Request]]:
    """Return a handler that returns the given responses in order, and the list of its requests."""
    values: list[httpx.Request] = []
    waiting = iter(answers)

    def answering(request: httpx.Request) -> httpx.Response:
        values.append(request)
        return next(waiting)

    return answering, values


# reads


def test_a_read_asks_below_the_root_with_its_parameters_encoded() -> None:
    answering, values = respond_in_order(httpx.Response(200, json={"a": 1}))

    assert make_client(answering).get("/pulls", {"head": "acme:drafts/a&b", "per_page": 100}) == {"a": 1}
    assert str(values[0].url) == "https://forge.example/api/pulls?head=acme%3Adrafts%2Fa%26b&per_page=100"
    assert values[0].headers["user-agent"] == "reconciler"
    assert values[0].headers["authorization"] == f"Bearer {SECRET}"


def test_headers_of_a_product_are_in_requests_of_its_driver_only() -> None:
    answering, values = respond_in_order(*(httpx.Response(200, json={}) for _ in range(2)))
    client = make_client(answering)
    client.with_headers({"Accept": "application/special"}).get("/a")
    client.get("/a")

    assert [item.headers["accept"] for item in values] == ["application/special", "application/json"]


def test_a_read_is_asked_again_with_its_tag_and_remembered_if_nothing_changed() -> None:
    answering, values = respond_in_order(
        httpx.Response(200, json=[1], headers={"etag": 'W/"one"'}),
        httpx.Response(304),
        httpx.Response(200, json=[2], headers={"etag": 'W/"two"'}),
        httpx.Response(304),
    )
    client = make_client(answering)

    assert [client.get("/a") for _ in range(4)] == [[1], [1], [2], [2]]
    assert [item.headers.get("if-none-match") for item in values] == [None, 'W/"one"', 'W/"one"', 'W/"two"']


def test_changes_of_a_returned_response_are_not_cached() -> None:
    answering, _ = respond_in_order(httpx.Response(200, json=[1], headers={"etag": "x"}), httpx.Response(304))
    client = make_client(answering)
    client.get("/a").append(2)

    assert client.get("/a") == [1]


def test_reads_with_other_parameters_are_cached_separately() -> None:
    answering, values = respond_in_order(*(httpx.Response(200, json=[], headers={"etag": "x"}) for _ in range(2)))
    client = make_client(answering)
    client.get("/a", {"page": 1})
    client.get("/a", {"page": 2})

    assert "if-none-match" not in values[1].headers


def test_not_modified_without_a_stored_response_is_an_error() -> None:
    with pytest.raises(ForgeAnswerError, match="GET /api/a: 304"):
        make_client(respond_with(304)).get("/a")


def test_the_cache_evicts_the_least_recently_used_response() -> None:
    memory = ResponseCache(max_bytes=2500)
    for address in "ab":
        memory.store(address, CachedResponse(address, random.Random(address).randbytes(1000), ""))
    memory.get("a")
    memory.store("c", CachedResponse("c", random.Random("c").randbytes(1000), ""))
    memory.store("c", CachedResponse("c2", random.Random("c2").randbytes(1100), "next"))

    assert [address for address in "abc" if memory.get(address)] == ["a", "c"]
    assert memory.get("c") == CachedResponse("c2", random.Random("c2").randbytes(1100), "next")


def test_memory_does_not_keep_what_is_too_large_for_it() -> None:
    memory = ResponseCache(max_bytes=1000)
    memory.store("a", CachedResponse("a", random.Random(1).randbytes(1001), ""))

    assert memory.get("a") is None


def test_memory_packs_what_repeats_itself() -> None:
    memory = ResponseCache(max_bytes=1000)
    memory.store("a", CachedResponse("a", b"https://forge.example/" * 1000, ""))

    assert memory.get("a") == CachedResponse("a", b"https://forge.example/" * 1000, "")


def test_a_session_that_the_forge_begins_is_not_carried_on() -> None:
    answering, values = respond_in_order(
        *(httpx.Response(200, json={}, headers={"set-cookie": "session=1"}) for _ in range(2))
    )
    client = make_client(answering)
    client.get("/a")
    client.get("/a")

    assert "cookie" not in values[1].headers


def test_threads_share_the_cache() -> None:
    def answering(request: httpx.Request) -> httpx.Response:
        tag = f'"{request.url.path}"'
        fresh = request.headers.get("if-none-match") != tag
        return httpx.Response(200, json=request.url.path, headers={"etag": tag}) if fresh else httpx.Response(304)

    client = make_client(answering)
    paths = [f"/{number % 7}" for number in range(400)]
    with ThreadPoolExecutor(8) as pool:
        answers = list(pool.map(client.get, paths))

    assert answers == [f"/api{path}" for path in paths]


# pages


def next_page(url: str) -> dict[str, str]:
    return {"link": f'<{API}/first>; rel="first", <{url}>; rel="next"'}


def test_all_pages_are_read() -> None:
    answering, values = respond_in_order(
        httpx.Response(200, json=[1, 2], headers=next_page(f"{API}/a?cursor=x%2Fy&per_page=2")),
        httpx.Response(200, json=[3], headers={"link": f'<{API}/a>; rel="prev"'}),
    )

    assert make_client(answering).get_all_pages("/a", {"per_page": 2}) == [1, 2, 3]
    assert str(values[1].url) == f"{API}/a?cursor=x%2Fy&per_page=2"


def test_pages_that_did_not_change_lead_on_as_before() -> None:
    answering, _ = respond_in_order(
        httpx.Response(200, json=[1], headers={"etag": "a"} | next_page(f"{API}/a?page=2")),
        httpx.Response(200, json=[2], headers={"etag": "b"}),
        httpx.Response(304),
        httpx.Response(304),
    )
    client = make_client(answering)

    assert client.get_all_pages("/a") == client.get_all_pages("/a") == [1, 2]


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://evil.example/a?page=2", id="other-host"),
        pytest.param("http://forge.example/a?page=2", id="other-scheme"),
        pytest.param("https://forge.example:8443/a?page=2", id="other-port"),
        pytest.param("https://me:pw@forge.example/a?page=2", id="userinfo"),
        pytest.param("//evil.example/a", id="scheme-relative"),
    ],
)
def test_a_next_page_of_another_origin_is_not_requested(url: str) -> None:
    answering, values = respond_in_order(httpx.Response(200, json=[1], headers=next_page(url)))
    with pytest.raises(ForgeAnswerError, match="a URL of a different host"):
        make_client(answering).get_all_pages("/a")

    assert len(values) == 1


def test_a_next_page_without_an_address_is_no_forge_s() -> None:
    with pytest.raises(ForgeAnswerError, match="the link to the next page is not a URL"):
        make_client(respond_with(200, json=[], headers=next_page("https://forge.example:port/"))).get_all_pages("/a")


def test_pages_without_end_are_given_up() -> None:
    with pytest.raises(ForgeAnswerError, match="more than 100 pages"):
        make_client(respond_with(200, json=[1], headers=next_page(f"{API}/a?page=2"))).get_all_pages("/a")


def test_a_page_must_be_a_list() -> None:
    with pytest.raises(ForgeAnswerError, match="must be a list"):
        make_client(respond_with(200, json={"a": 1})).get_all_pages("/a")


# writes


def test_a_write_sends_json_and_returns_what_came_back() -> None:
    answering, values = respond_in_order(httpx.Response(201, json={"number": 1}))

    assert make_client(answering).send("POST", "/a", {"title": "é"}) == {"number": 1}
    assert (values[0].method, values[0].headers["content-type"]) == ("POST", "application/json")
    assert values[0].read().decode() == '{"title":"é"}'


def test_a_write_can_have_an_empty_response() -> None:
    assert make_client(respond_with(204)).send("DELETE", "/a", {}) is None


def test_a_write_over_the_budget_is_not_sent() -> None:
    clock = Clock()
    answering, values = respond_in_order(httpx.Response(204), httpx.Response(204))
    client = make_client(answering, clock, RateLimiter(2, 1, clock))
    client.send("POST", "/a", {}, is_new_request=True)
    with pytest.raises(ForgeBusyError, match="1 new pull requests per hour"):
        client.send("POST", "/a", {}, is_new_request=True)
    client.send("PATCH", "/a", {})
    with pytest.raises(ForgeBusyError, match="2 writes per minute"):
        client.send("PATCH", "/a", {})

    assert len(values) == 2


# errors


@pytest.mark.parametrize(
    ("status", "kind"),
    [
        (400, ForgeRefusedError),
        (401, ForgeCredentialsError),
        (403, ForgeRefusedError),
        (404, ForgeMissingError),
        (405, ForgeRefusedError),
        (409, ForgeRefusedError),
        (410, ForgeRefusedError),
        (422, ForgeRefusedError),
        (429, ForgeBusyError),
        (500, ForgeUnreachableError),
        (502, ForgeUnreachableError),
        (503, ForgeUnreachableError),
        (301, ForgeAnswerError),
        (300, ForgeAnswerError),
    ],
)
def test_a_status_is_named_by_what_to_do_next(status: int, kind: type[ForgeError]) -> None:
    with pytest.raises(ForgeError) as refused:
        make_client(respond_with(status, json={"message": "no"})).send("PUT", "/pulls/3/merge", {})

    assert type(refused.value) is kind
    assert refused.value.message.startswith(f"PUT /api/pulls/3/merge: {status} ")
    assert getattr(refused.value, "status", status) == status


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        pytest.param({"json": {"message": "no\r\nway\t!\x1b[31m"}}, "no way ! [31m", id="one-line"),
        pytest.param(
            {"json": {"message": "Validation Failed", "errors": [{"resource": "PullRequest", "message": "exists"}]}},
            "Validation Failed; exists",
            id="github",
        ),
        pytest.param(
            {"json": {"message": "Validation Failed", "errors": [{"field": "head", "code": "invalid"}]}},
            "Validation Failed; field head, code invalid",
            id="github-field",
        ),
        pytest.param({"json": {"message": ["one", "two"]}}, "one; two", id="gitlab-list"),
        pytest.param({"json": {"message": {"title": ["is long"]}}}, "title is long", id="gitlab-field"),
        pytest.param({"json": {"error": "bad", "error_description": "scope"}}, "bad; scope", id="oauth"),
        pytest.param({"json": ["no"]}, '["no"]', id="other-json"),
        pytest.param({"text": "<h1>no</h1>"}, "<h1>no</h1>", id="text"),
        pytest.param({"content": b""}, "", id="nothing"),
        pytest.param({"content": b"\xff no"}, "\ufffd no", id="bytes"),
        pytest.param({"json": {"message": "x" * 501}}, "x" * 499 + "…", id="long"),
        pytest.param({"json": {"message": "see https://me:pw@h/x"}}, "see https://h/x", id="userinfo"),
        pytest.param({"text": "[" * 100_000}, "[" * 499 + "…", id="deep"),
    ],
)
def test_a_refusal_has_the_forge_s_words_in_one_line(answer: dict[str, object], words: str) -> None:
    with pytest.raises(ForgeRefusedError) as refused:
        make_client(respond_with(422, **answer)).get("/a")

    assert refused.value.message == f"GET /api/a: 422 {words}".rstrip()


NOW = Clock().now


@pytest.mark.parametrize(
    ("status", "headers", "words", "rest"),
    [
        pytest.param(403, {"retry-after": "30"}, "", 30, id="retry-after"),
        pytest.param(403, {"retry-after": formatdate(NOW + 90, usegmt=True)}, "", 90, id="retry-after-date"),
        pytest.param(403, {"retry-after": "soon"}, "", 60, id="retry-after-nonsense"),
        pytest.param(429, {"retry-after": "0"}, "", 1, id="retry-after-nothing"),
        pytest.param(
            403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW + 120))}, "", 120, id="primary"
        ),
        pytest.param(429, {"ratelimit-remaining": "0", "ratelimit-reset": str(int(NOW + 120))}, "", 120, id="gitlab"),
        pytest.param(
            403, {"x-ratelimit-remaining": "0", "x-ratelimit-reset": str(int(NOW - 9))}, "", 60, id="reset-is-past"
        ),
        pytest.param(403, {"x-ratelimit-remaining": "0"}, "", 60, id="no-reset"),
        pytest.param(403, {}, "You have exceeded a secondary rate limit.", 60, id="secondary-in-words"),
        pytest.param(429, {}, "", 60, id="no-word"),
        pytest.param(429, {"retry-after": "99999999"}, "", 6 * 3600, id="days"),
        pytest.param(503, {"retry-after": "30"}, "", 30, id="maintenance"),
    ],
)
def test_retry_after_stops_requests(status: int, headers: dict[str, str], words: str, rest: float) -> None:
    clock = Clock()
    answering, values = respond_in_order(
        httpx.Response(status, headers=headers, json={"message": words}), httpx.Response(200, json={})
    )
    client = make_client(answering, clock)
    with pytest.raises(ForgeBusyError) as refused:
        client.get("/a")
    assert refused.value.until == clock.now + rest
    clock.now += rest - 0.5
    with pytest.raises(ForgeBusyError):
        client.get("/a")
    assert len(values) == 1
    clock.now += 0.5

    assert client.get("/a") == {}


def test_a_forbidden_write_is_no_limit() -> None:
    headers = {"x-ratelimit-remaining": "10", "x-ratelimit-reset": str(int(NOW + 120))}
    with pytest.raises(ForgeRefusedError, match="403 Resource not accessible"):
        make_client(respond_with(403, headers=headers, json={"message": "Resource not accessible"})).send(
            "POST", "/a", {}
        )


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param({"text": f"<html>please log in, {SECRET}</html>"}, id="page"),
        pytest.param({"content": b""}, id="nothing"),
        pytest.param({"content": b"\xff\xfe"}, id="bytes"),
        pytest.param({"text": "[" * 100_000}, id="deep"),
    ],
)
def test_a_response_that_is_not_json_is_an_error(answer: dict[str, object]) -> None:
    with pytest.raises(ForgeAnswerError, match="GET /api/a: the response is not JSON"):
        make_client(respond_with(200, **answer)).get("/a")


@pytest.mark.parametrize(
    ("error", "words"),
    [
        pytest.param(httpx.ConnectError("Connection refused"), "cannot be reached: Connection refused", id="refused"),
        pytest.param(httpx.ReadError(""), "cannot be reached", id="broken"),
        pytest.param(httpx.ConnectTimeout("x"), "took too long (ConnectTimeout)", id="connect-time-out"),
        pytest.param(httpx.ReadTimeout("x"), "took too long (ReadTimeout)", id="read-time-out"),
        pytest.param(httpx.RemoteProtocolError(SECRET), "no valid response from forge.example", id="not-http"),
        pytest.param(httpx.LocalProtocolError(f"Illegal header value {SECRET}"), "no valid response from", id="header"),
        pytest.param(httpx.DecodingError("bad gzip"), "no valid response from", id="decoding"),
        pytest.param(httpx.ProxyError("407"), "no valid response from", id="proxy"),
    ],
)
def test_a_forge_that_cannot_be_heard_is_unreachable(error: httpx.HTTPError, words: str) -> None:
    def answering(_: httpx.Request) -> httpx.Response:
        raise error

    with pytest.raises(ForgeUnreachableError) as refused:
        make_client(answering).get("/a")

    assert words in refused.value.message
    assert SECRET not in "".join(traceback.format_exception(refused.value))


# redirects


@pytest.mark.parametrize("status", [301, 302, 307, 308])
def test_a_read_follows_a_repository_that_was_renamed(status: int) -> None:
    answering, values = respond_in_order(
        httpx.Response(status, headers={"location": "/api/repositories/7?page=2"}), httpx.Response(200, json=[1])
    )

    assert make_client(answering).get("/repos/a/b") == [1]
    assert str(values[1].url) == f"{API}/repositories/7?page=2"
    assert values[1].headers["authorization"] == f"Bearer {SECRET}"


def test_a_write_is_repeated_as_it_was_where_the_forge_asks_for_that() -> None:
    answering, values = respond_in_order(
        httpx.Response(307, headers={"location": f"{API}/repositories/7"}), httpx.Response(200, json=1)
    )

    assert make_client(answering).send("PATCH", "/repos/a/b", {"a": 1}) == 1
    assert [(item.method, item.read()) for item in values] == [("PATCH", b'{"a":1}')] * 2


def test_a_write_does_not_become_a_read() -> None:
    answering, values = respond_in_order(httpx.Response(302, headers={"location": f"{API}/x"}))
    with pytest.raises(
        ForgeAnswerError, match=r"POST /api/a: 302 a redirect to forge\.example, which the client does not follow"
    ):
        make_client(answering).send("POST", "/a", {})

    assert len(values) == 1


@pytest.mark.parametrize(
    "location",
    [
        f"https://evil.example/{SECRET}?t={SECRET}",
        "http://forge.example/api/a",
        "https://forge.example:444/api/a",
        "//evil.example/a",
        f"https://{SECRET}@forge.example/a",
        "",
    ],
)
@pytest.mark.parametrize("method", ["GET", "POST"])
def test_a_redirect_elsewhere_is_not_followed(location: str, method: str) -> None:
    answering, values = respond_in_order(httpx.Response(307, headers={"location": location}))
    client = make_client(answering)
    with pytest.raises(ForgeAnswerError, match="which the client does not follow") as refused:
        client.get("/a") if method == "GET" else client.send(method, "/a", {})

    assert len(values) == 1
    assert SECRET not in refused.value.message


@pytest.mark.parametrize(("status", "kind"), [(300, ForgeAnswerError), (301, ForgeUnreachableError)])
def test_a_redirect_to_no_address_is_not_followed(status: int, kind: type[ForgeError]) -> None:
    client = make_client(respond_with(status, headers={"location": f"https://forge.example:{SECRET}/"}))
    with pytest.raises(kind) as refused:
        client.get("/a")

    assert SECRET not in "".join(traceback.format_exception(refused.value))


def test_redirects_in_a_circle_end() -> None:
    with pytest.raises(ForgeAnswerError, match="more than 3 redirects"):
        make_client(respond_with(301, headers={"location": "/api/a"})).get("/a")


# limits


class Pieces(httpx.SyncByteStream):
    def __init__(self, pieces: Iterator[bytes]) -> None:
        self.pieces = pieces

    def __iter__(self) -> Iterator[bytes]:
        return self.pieces


def test_a_response_over_the_limit_is_refused_before_it_is_read_completely() -> None:
    sent: list[int] = []

    def endless() -> Iterator[bytes]:
        while True:
            sent.append(1)
            yield b" " * 1024 * 1024

    with pytest.raises(ForgeAnswerError, match="larger than 16777216 bytes"):
        make_client(respond_with(200, stream=Pieces(endless()))).get("/a")

    assert len(sent) == 17


@pytest.mark.slow
def test_a_compressed_response_over_the_limit_is_refused() -> None:
    packed = gzip.compress(b" " * 64 * 1024 * 1024)
    headers = {"content-encoding": "gzip"}
    with pytest.raises(ForgeAnswerError, match="larger than 16777216 bytes"):
        make_client(respond_with(200, stream=Pieces(iter([packed])), headers=headers)).get("/a")


def test_a_slow_response_ends_after_the_time_limit() -> None:
    clock = Clock()

    def drops() -> Iterator[bytes]:
        while True:
            clock.now += 29
            yield b" "

    with pytest.raises(ForgeUnreachableError, match="took more than 120 seconds"):
        make_client(respond_with(200, stream=Pieces(drops())), clock).get("/a")


def test_a_forge_that_is_silent_is_given_up(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_TIMEOUT", httpx.Timeout(0.05))
    with socket.create_server(("127.0.0.1", 0)) as server:
        clock = Clock()
        client = ForgeClient(f"http://127.0.0.1:{server.getsockname()[1]}", dict, RateLimiter(0, 0, clock), clock)
        with pytest.raises(ForgeUnreachableError, match=r"took too long \(ReadTimeout\)"):
            client.get("/a")
        client.close()


def test_a_forge_that_talks_nonsense_is_unreachable() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        speaker = threading.Thread(target=_talk_nonsense, args=(server,))
        speaker.start()
        clock = Clock()
        client = ForgeClient(f"http://127.0.0.1:{server.getsockname()[1]}", dict, RateLimiter(0, 0, clock), clock)
        with pytest.raises(ForgeUnreachableError, match=r"no valid response from 127\.0\.0\.1"):
            client.get("/a")
        client.close()
        speaker.join()


def _talk_nonsense(server: socket.socket) -> None:
    connection, _ = server.accept()
    with connection:
        connection.recv(65536)
        connection.sendall(b"SSH-2.0-OpenSSH_9\r\n\r\n")


# credentials


def test_credentials_that_fail_are_an_error_before_anything_is_sent() -> None:
    def refuse() -> dict[str, str]:
        raise ForgeCredentialsError("no token")

    answering, values = respond_in_order()
    clock = Clock()
    client = ForgeClient(API, refuse, RateLimiter(0, 0, clock), clock, httpx.MockTransport(answering))
    with pytest.raises(ForgeCredentialsError):
        client.get("/a")

    assert not values


@pytest.mark.quick_cases(every=36)
@pytest.mark.parametrize("status", [301, 400, 401, 403, 404, 409, 422, 429, 500])
@pytest.mark.parametrize(
    "words",
    [
        pytest.param(f"you sent Authorization: Bearer {SECRET} and that", id="whole-header"),
        pytest.param(f"the token {SECRET}", id="token"),
        pytest.param("x" * 490 + SECRET, id="where-words-are-cut"),
        pytest.param(f"https://me:{SECRET}@forge.example/", id="url"),
    ],
)
def test_a_forge_that_quotes_the_request_does_not_make_us_tell_the_token(status: int, words: str) -> None:
    client = make_client(respond_with(status, json={"message": words}))
    with pytest.raises(ForgeError) as refused:
        client.get("/a")

    assert SECRET[:8] not in "".join(traceback.format_exception(refused.value))
    assert SECRET not in repr(client)
    assert SECRET not in repr(vars(client))


@pytest.mark.parametrize(
    "api",
    [
        f"https://me:{SECRET}@forge.example/api",
        f"https://forge.example/api?token={SECRET}",
        "forge.example/api",
        "ftp://forge.example",
        "https://",
        "https://forge.example:port/",
        "https://forge.example/#x",
    ],
)
def test_an_api_must_be_a_plain_address(api: str) -> None:
    with pytest.raises(ValueError, match="API") as refused:
        ForgeClient(api, dict, RateLimiter(0, 0, Clock()), Clock())

    assert SECRET not in str(refused.value)
