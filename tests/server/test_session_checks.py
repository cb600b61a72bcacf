"""Checks of people at their provider during a session: new groups, revoked people, and logout by the provider."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import httpx
import jwt
import pytest
from structlog.testing import capture_logs

from reconciler.bootstrap.console_authentication import SignInState
from reconciler.server.authentication.session_store import CHECK_SECONDS
from reconciler.server.rate_limit import AddressRateLimit
from tests.support.console import ConsoleClient
from tests.support.oidc_provider import ANA, CLIENT, SECRET, OidcProvider, create_rsa_key, serve_provider, sign_token
from tests.support.sign_in import Browser, configure

EVENT = "http://schemas.openid.net/event/backchannel-logout"
LOGOUT = "/sign-in/back-channel-logout"


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with serve_provider() as served:
        served.refresh_tokens = set()
        yield served


@pytest.fixture
def console(fleet: ConsoleClient, tmp_path: Path, provider: OidcProvider) -> ConsoleClient:
    fleet.sign_ins = SignInState(lambda: float(fleet.world.now))
    configure(fleet, tmp_path, provider)
    return fleet


@pytest.fixture
def browser(console: ConsoleClient, provider: OidcProvider) -> Browser:
    created = Browser(console)
    created.sign_in(provider)
    return created


def wait_for_check(console: ConsoleClient, seconds: int = CHECK_SECONDS) -> None:
    console.world.now += seconds


def test_groups_are_read_again_after_15_minutes(
    console: ConsoleClient, provider: OidcProvider, browser: Browser
) -> None:
    provider.claims["groups"] = ["other"]
    wait_for_check(console, CHECK_SECONDS - 1)
    before = browser.get("/").status_code
    wait_for_check(console, 1)
    after = browser.get("/").status_code
    provider.claims["groups"] = ["platform"]
    wait_for_check(console)

    assert (before, after, browser.get("/").status_code) == (200, 403, 200)
    assert provider.requests.count("/token") == 3


def test_an_automatic_request_reads_the_groups_and_does_not_extend_the_session(
    console: ConsoleClient, provider: OidcProvider, browser: Browser
) -> None:
    provider.claims["groups"] = ["other"]
    wait_for_check(console)

    assert browser.get("/", x_automatic="1").status_code == 403
    wait_for_check(console, 8 * 3_600 - CHECK_SECONDS)
    assert browser.get("/").status_code == 303


def test_without_a_refresh_token_the_groups_of_the_sign_in_are_used(
    console: ConsoleClient, provider: OidcProvider
) -> None:
    provider.refresh_tokens = None
    browser = Browser(console)
    browser.sign_in(provider)
    provider.claims["groups"] = ["other"]
    wait_for_check(console)

    assert browser.get("/").status_code == 200
    assert provider.requests.count("/token") == 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("tokens", "userinfo", "status"),
    [
        pytest.param({"id_token": None}, {**ANA, "groups": ["other"]}, 403, id="groups-of-the-userinfo-endpoint"),
        pytest.param({"id_token": None}, {"groups": ["platform"]}, 200, id="no-mail-address"),
        pytest.param({"id_token": None, "access_token": None}, {}, 200, id="no-claims"),
        pytest.param({"id_token": None}, {"email": "ana@example.com"}, 303, id="mail-address-without-verification"),
    ],
)
def test_responses_without_an_id_token(
    tokens: dict[str, Any],
    userinfo: dict[str, Any],
    status: int,
    console: ConsoleClient,
    provider: OidcProvider,
    browser: Browser,
) -> None:
    provider.more_tokens, provider.userinfo = tokens, userinfo
    wait_for_check(console)

    assert browser.get("/").status_code == status


def refuse_refresh(code: str, provider: OidcProvider) -> None:
    """Refuse refresh tokens with a code other than `invalid_grant`, as Dex and other providers do."""
    provider.answers["/token"] = (400, json.dumps({"error": code}).encode())


@pytest.mark.quick_cases(every=4)
@pytest.mark.emits("session_revoked")
@pytest.mark.parametrize(
    "change",
    [
        pytest.param(lambda provider: provider.refresh_tokens.clear(), id="revoked"),
        *(
            pytest.param(partial(refuse_refresh, code), id=code)
            for code in ("invalid_request", "access_denied", "interaction_required")
        ),
        pytest.param(lambda provider: provider.claims.update(email_verified=False), id="unverified"),
        pytest.param(lambda provider: provider.claims.update(sub="other"), id="another-person"),
        pytest.param(lambda provider: provider.claims.update(iss="https://evil.example.com"), id="another-issuer"),
        pytest.param(lambda provider: provider.claims.update(aud="other"), id="another-client"),
        pytest.param(
            lambda provider: setattr(provider, "sign", lambda claims: sign_token(claims, create_rsa_key("other"))),
            id="another-key",
        ),
    ],
)
def test_a_person_who_is_not_confirmed_any_more_is_signed_out(
    change: Callable[[OidcProvider], object], console: ConsoleClient, provider: OidcProvider, browser: Browser
) -> None:
    change(provider)
    wait_for_check(console)

    assert [browser.get("/").status_code for _ in range(2)] == [303, 303]


@pytest.mark.quick_cases(every=4)
@pytest.mark.emits("session_check_failed")
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param("/token", (503, b""), id="provider-unavailable"),
        pytest.param("/token", (400, b'{"error": "invalid_client"}'), id="wrong-client-secret"),
        pytest.param("/userinfo", (500, b""), id="no-userinfo"),
        pytest.param("secret", (0, b""), id="client-secret-unreadable"),
    ],
)
def test_a_check_that_fails_is_tried_again_after_a_minute(
    path: str, answer: tuple[int, bytes], console: ConsoleClient, provider: OidcProvider, browser: Browser,
    tmp_path: Path,
) -> None:  # fmt: skip
    del provider.claims["name"]
    provider.claims["groups"] = ["other"]
    if path == "secret":
        (tmp_path / "secret").unlink()
    else:
        provider.answers[path] = answer
    wait_for_check(console)
    during = browser.get("/").status_code
    count = len(provider.requests)
    same_minute = browser.get("/").status_code
    repeated = len(provider.requests) - count
    provider.answers.clear()
    (tmp_path / "secret").write_text(SECRET)
    wait_for_check(console, 60)

    assert (during, same_minute, repeated) == (200, 200, 0)
    assert browser.get("/").status_code == 403


def build_logout_claims(provider: OidcProvider, **changes: Any) -> dict[str, Any]:
    now = int(time.time())
    claims = {"iss": provider.issuer, "aud": CLIENT, "iat": now, "jti": "1", "sub": "f3c1", "events": {EVENT: {}}}
    return {name: value for name, value in {**claims, **changes}.items() if value is not None}


def send_logout(console: ConsoleClient, token: str) -> httpx.Response:
    """Send a request as the provider does, without a cookie and without headers of browsers."""
    return Browser(console).post(LOGOUT, {"logout_token": token}, sec_fetch_site="", accept="*/*")


@pytest.mark.quick_cases(every=5)
@pytest.mark.emits("back_channel_logout_completed")
@pytest.mark.parametrize(
    ("changes", "statuses"),
    [
        pytest.param({}, [303, 303, 200], id="all-sessions-of-the-person"),
        pytest.param({"sid": "1"}, [303, 200, 200], id="one-session"),
        pytest.param({"sid": "1", "sub": None}, [303, 200, 200], id="one-session-without-a-subject"),
        pytest.param({"sid": "unknown"}, [200, 200, 200], id="another-session"),
        pytest.param({"sub": "unknown"}, [200, 200, 200], id="another-person"),
    ],
)
def test_the_provider_ends_sessions(
    changes: dict[str, Any], statuses: list[int], console: ConsoleClient, provider: OidcProvider
) -> None:
    browsers = []
    for subject, session in (("f3c1", "1"), ("f3c1", "2"), ("a7d2", "3")):
        provider.claims |= {"sub": subject, "sid": session}
        browser = Browser(console)
        browser.sign_in(provider)
        browsers.append(browser)
    response = send_logout(console, sign_token(build_logout_claims(provider, **changes)))

    assert (response.status_code, response.headers["cache-control"]) == (200, "no-store")
    assert [browser.get("/").status_code for browser in browsers] == statuses


@pytest.mark.emits("back_channel_logout_completed")
@pytest.mark.parametrize(
    ("changes", "status"),
    [
        pytest.param({"sid": "1"}, 303, id="session-of-the-person"),
        pytest.param({"sid": "1", "sub": "unknown"}, 200, id="session-of-another-person"),
        pytest.param({"sid": "1", "sub": None}, 200, id="session-without-a-subject"),
    ],
)
def test_the_provider_ends_a_session_whose_id_token_had_no_session(
    changes: dict[str, Any], status: int, console: ConsoleClient, provider: OidcProvider, browser: Browser
) -> None:
    response = send_logout(console, sign_token(build_logout_claims(provider, **changes)))

    assert response.status_code == 200
    assert browser.get("/").status_code == status


FORGED: dict[str, Any] = {
    "no-event": {"events": None}, "other-event": {"events": {"other": {}}}, "event-without-content": {"events": {EVENT: 1}},
    "nonce": {"nonce": "1"}, "another-issuer": {"iss": "https://evil.example.com"}, "another-client": {"aud": "other"},
    "no-subject": {"sub": None}, "empty-subject": {"sub": ""}, "no-time": {"iat": None}, "future": {"iat": 2**33},
    "expired": {"exp": 1},
}  # fmt: skip
SIGNED: dict[str, Callable[[dict[str, Any]], str]] = {
    "another-key": lambda claims: sign_token(claims, create_rsa_key("other")),
    "hmac-with-the-client-secret": lambda claims: jwt.encode(claims, SECRET * 3, "HS256", {"kid": "main"}),
    "no-signature": lambda claims: jwt.encode(claims, None, "none"),
    "not-a-token": lambda _claims: "abc",
    "empty": lambda _claims: "",
}


@pytest.mark.quick_cases(every=4)
@pytest.mark.emits("back_channel_logout_refused")
@pytest.mark.parametrize("name", [*FORGED, *SIGNED])
def test_a_forged_logout_token_ends_no_session(
    name: str, console: ConsoleClient, provider: OidcProvider, browser: Browser
) -> None:
    claims = build_logout_claims(provider, **FORGED.get(name, {}))
    response = send_logout(console, SIGNED.get(name, sign_token)(claims))

    assert response.status_code == 400
    assert browser.get("/").status_code == 200


def test_an_id_token_is_not_a_logout_token(console: ConsoleClient, provider: OidcProvider) -> None:
    tokens: list[str] = []

    def sign(claims: dict[str, Any]) -> str:
        tokens.append(sign_token(claims))
        return tokens[-1]

    provider.sign = sign
    browser = Browser(console)
    browser.sign_in(provider)

    assert send_logout(console, tokens[0]).status_code == 400
    assert browser.get("/").status_code == 200


def test_a_logout_token_that_is_sent_again_ends_no_newer_session(
    console: ConsoleClient, provider: OidcProvider
) -> None:
    token = sign_token(build_logout_claims(provider))
    console.world.now = int(time.time()) + 61
    browser = Browser(console)
    browser.sign_in(provider)

    assert send_logout(console, token).status_code == 200
    assert browser.get("/").status_code == 200


@pytest.mark.emits("back_channel_logout_refused")
def test_logouts_have_their_own_limit(console: ConsoleClient, tmp_path: Path, provider: OidcProvider) -> None:
    console.sign_ins.logout_limit = AddressRateLimit(2, console.sign_ins.clock)
    configure(console, tmp_path, provider)
    statuses = [send_logout(console, "forged").status_code for _ in range(3)]

    assert statuses == [400, 400, 429]
    assert Browser(console).sign_in(provider).status_code == 303


def test_a_logout_while_the_keys_are_unavailable_can_be_sent_again(
    console: ConsoleClient, provider: OidcProvider
) -> None:
    token = sign_token(build_logout_claims(provider))
    provider.answers["/keys"] = (500, b"")
    with capture_logs() as events:
        response = send_logout(console, token)

    assert response.status_code == 503
    assert token not in str(events)
