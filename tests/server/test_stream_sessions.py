"""Streams of events end with the session of their person, and do not extend it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from pathlib import Path

import pytest

from reconciler.bootstrap.console_authentication import SignInState
from reconciler.review.people import Reviewer
from reconciler.server.application import create_app
from reconciler.server.authentication.access_tokens import create_token, format_line
from reconciler.server.authentication.session_store import ABSOLUTE_SECONDS, IDLE_SECONDS
from reconciler.server.console.events import EVENTS_PATH, EventStreams
from reconciler.server.console.routes import create_console_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import build_origin_rules
from tests.support.console import PROXY, ConsoleClient, use_authentication

ISSUER = "https://id.example.com"
ANA = Reviewer("Ana Silva", "ana@example.com", "f3c1", ISSUER, frozenset({"platform"}))
ROLES = [{"role": "admin", "groups": ["platform"]}]
RULES = build_origin_rules("127.0.0.1:8080", (), "", ("10.0.0.0/8",))


@pytest.fixture
def console(fleet: ConsoleClient) -> ConsoleClient:
    fleet.sign_ins = SignInState(lambda: float(fleet.world.now))
    return fleet


def read_stream(console: ConsoleClient, headers: Mapping[str, str], act: Callable[[], object]) -> tuple[int, int]:
    """Open a stream, and act after its first event. Return the status and the number of events when the stream ends."""
    sent: list[dict[str, object]] = []

    async def receive() -> dict[str, object]:
        return await asyncio.Event().wait()  # type: ignore[return-value]

    async def send(message: dict[str, object]) -> None:
        sent.append(message)
        if message.get("body") and sum(bool(item.get("body")) for item in sent) == 1:
            act()

    app = create_app(
        create_console_routes(lambda: console.context, EventStreams(poll_seconds=0)), ServerLimits(), lambda: RULES
    )
    raw = [(name.encode(), value.encode()) for name, value in {"host": "127.0.0.1", **headers}.items()]
    scope = {
        "type": "http", "asgi": {"spec_version": "2.4"}, "http_version": "1.1", "method": "GET", "scheme": "http",
        "path": EVENTS_PATH, "raw_path": EVENTS_PATH.encode(), "query_string": b"", "headers": raw,
        "client": (PROXY, 4000), "server": ("127.0.0.1", 8080),
    }  # fmt: skip
    asyncio.run(asyncio.wait_for(app(scope, receive, send), 20))
    return int(str(sent[0]["status"])), sum(bool(item.get("body")) for item in sent)


def use_sessions(console: ConsoleClient) -> tuple[str, Mapping[str, str]]:
    """Let people sign in at a provider. Return the ID of a new session, and the header of its browser."""
    use_authentication(console, auth=["oidc"], oidc={"issuer": ISSUER, "client_id": "console"}, roles=ROLES)
    identifier = console.sign_ins.sessions.create(ANA)
    return identifier, {"cookie": f"__Host-session={identifier}"}


def pass_time(console: ConsoleClient, seconds: int) -> None:
    console.world.now += seconds


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "end",
    [
        pytest.param(lambda console, session: console.sign_ins.sessions.delete(session), id="sign-out"),
        pytest.param(lambda console, _session: pass_time(console, IDLE_SECONDS), id="idle"),
        pytest.param(lambda console, _session: pass_time(console, ABSOLUTE_SECONDS), id="oldest-age"),
        pytest.param(lambda console, _session: use_authentication(console, auth=["none"]), id="other-settings"),
    ],
)
def test_a_stream_ends_with_the_session(end: Callable[[ConsoleClient, str], object], console: ConsoleClient) -> None:
    session, headers = use_sessions(console)

    assert read_stream(console, headers, lambda: end(console, session)) == (200, 1)


def test_without_a_session_there_is_no_stream(console: ConsoleClient) -> None:
    use_sessions(console)

    assert read_stream(console, {"cookie": "__Host-session=unknown"}, lambda: None)[0] == 401


@pytest.mark.parametrize("is_expired", [pytest.param(True, id="expired"), pytest.param(False, id="revoked")])
def test_a_stream_ends_with_the_token(is_expired: bool, console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    token = create_token()
    file.write_text(format_line("ci", "viewer", "", token, console.world.now + 60) + "\n")
    use_authentication(console, auth=["tokens"], token_file=str(file))

    def end() -> None:
        if is_expired:
            pass_time(console, 60)
        else:
            file.write_text("# no tokens\n")

    assert read_stream(console, {"authorization": f"Bearer {token}"}, end) == (200, 1)


@pytest.mark.slow
def test_a_stream_ends_when_the_secret_of_the_proxy_changes(console: ConsoleClient, tmp_path: Path) -> None:
    file = tmp_path / "secret"
    file.write_text("first-secret-of-the-proxy-0123456789\n")
    use_authentication(console, auth=["proxy"], proxy={"secret_file": str(file)}, roles=ROLES)
    headers = {
        "x-proxy-secret": "first-secret-of-the-proxy-0123456789", "x-forwarded-user": "ana",
        "x-forwarded-groups": "platform",
    }  # fmt: skip

    assert read_stream(console, headers, lambda: file.write_text("second-secret-of-the-proxy-012345678\n")) == (200, 1)


def test_an_open_stream_does_not_extend_the_session(console: ConsoleClient) -> None:
    """Each check of the stream is one hour after the last one. The session ends after 8 hours, and not after 24."""
    hours = [0]

    def read_clock() -> float:
        hours[0] += 1
        return 3_600.0 * hours[0]

    console.sign_ins = SignInState(read_clock)
    _, headers = use_sessions(console)
    read_stream(console, headers, lambda: None)

    assert hours[0] <= 10


@pytest.mark.slow
def test_an_automatic_request_does_not_extend_the_session(console: ConsoleClient) -> None:
    _, headers = use_sessions(console)
    statuses = []
    for more in ({}, {"x_automatic": "1"}, {}):
        pass_time(console, IDLE_SECONDS // 2)
        statuses.append(console.get("/changes", accept="text/html", **headers, **more).status_code)

    assert statuses == [200, 200, 303]
