"""Sign-in at an OpenID Connect provider: the complete flow, sessions, and attacks on each of its steps."""

from __future__ import annotations

import base64
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

import httpx
import jwt
import pytest
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from structlog.testing import capture_logs

from reconciler.bootstrap.console_authentication import SignInState
from reconciler.server.authentication.access_tokens import create_token, format_line
from tests.support.console import PROXY, ConsoleClient, find_value, use_authentication
from tests.support.oidc_provider import (
    CLIENT,
    SECRET,
    OidcProvider,
    build_jwk,
    create_ec_key,
    create_rsa_key,
    serve_provider,
    sign_token,
)
from tests.support.sign_in import Browser, configure


@pytest.fixture
def provider() -> Iterator[OidcProvider]:
    with serve_provider() as served:
        yield served


@pytest.fixture
def console(fleet: ConsoleClient, tmp_path: Path, provider: OidcProvider) -> ConsoleClient:
    fleet.requested_passes, fleet.sign_ins = 0, SignInState(lambda: float(fleet.world.now))
    configure(fleet, tmp_path, provider)
    return fleet


@pytest.mark.slow
@pytest.mark.emits("sign_in_completed")
def test_a_person_signs_in_and_returns_to_the_page(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    with capture_logs() as events:
        redirect = browser.get("/changes?state=waiting&q=gate%20way")
        page = browser.get(redirect.headers["location"])
        link = page.text.partition('class="button primary" href="')[2].partition('"')[0].replace("&amp;", "&")
        completed = browser.get(provider.authorize(browser.get(link).headers["location"]))

    assert redirect.status_code == 303
    assert "gateway" not in page.text
    assert (completed.status_code, completed.headers["location"]) == (303, "/changes?state=waiting&q=gate%20way")
    assert "Ana Silva" in browser.get("/").text
    assert "No authentication" not in browser.get("/").text
    assert [event["actor"] for event in events if event["event"] == "sign_in_completed"] == [
        "Ana Silva <ana@example.com>"
    ]


def test_the_request_to_the_provider(console: ConsoleClient, provider: OidcProvider) -> None:
    first, second = (parse_qs(urlsplit(Browser(console).start()).query) for _ in range(2))
    random_names = ("state", "nonce", "code_challenge")

    assert {name: values for name, values in first.items() if name not in random_names} == {
        "response_type": ["code"], "client_id": [CLIENT], "scope": ["openid profile email"],
        "redirect_uri": ["https://console.example.com/sign-in/callback"], "code_challenge_method": ["S256"],
    }  # fmt: skip
    assert all(len(first[name][0]) == 43 and first[name] != second[name] for name in random_names)


def test_offline_access_requires_a_consent(console: ConsoleClient, provider: OidcProvider, tmp_path: Path) -> None:
    prompts = []
    for scopes in (["openid"], ["openid", "offline_access"]):
        oidc = {"issuer": provider.issuer, "client_id": CLIENT, "scopes": scopes}
        configure(console, tmp_path, provider, oidc=oidc)
        prompts.append(parse_qs(urlsplit(Browser(console).start()).query).get("prompt"))

    assert prompts == [None, ["consent"]]


def test_the_flags_of_cookies(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    started = browser.get("/sign-in/start")
    completed = browser.get(provider.authorize(started.headers["location"]))
    flags = [
        sorted(line.partition(";")[2].lower().replace(" ", "").split(";"))
        for response in (started, completed)
        for line in response.headers.get_list("set-cookie")
        if "__Host-" in line and "Max-Age=0" not in line
    ]

    assert flags == [["httponly", "path=/", "samesite=lax", "secure"]] * 2
    assert set(browser.cookies) == {"__Host-session"}
    assert len(browser.session) == 43
    assert completed.headers["cache-control"] == "no-store"


@pytest.mark.slow
def test_without_tls_on_this_machine_cookies_have_no_prefix(
    console: ConsoleClient, provider: OidcProvider, tmp_path: Path
) -> None:
    configure(console, tmp_path, provider, external_url="http://127.0.0.1:8080")
    browser = Browser(console)
    browser.sign_in(provider)

    assert set(browser.cookies) == {"session"}
    assert browser.get("/").status_code == 200


@pytest.mark.slow
def test_the_id_of_a_session_is_new_after_each_sign_in(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.cookies["__Host-session"] = "chosen-by-an-attacker"
    browser.sign_in(provider)
    first = browser.session
    browser.get(provider.authorize(browser.start()))

    assert len({"chosen-by-an-attacker", first, browser.session}) == 3
    assert browser.get("/").status_code == 200
    assert browser.get("/", cookie=f"__Host-session={first}").status_code == 303
    assert browser.get("/", cookie="__Host-session=chosen-by-an-attacker").status_code == 303


@pytest.mark.slow
def test_a_person_without_a_role_can_sign_out(console: ConsoleClient, provider: OidcProvider) -> None:
    provider.claims["groups"] = ["other"]
    browser = Browser(console)
    browser.sign_in(provider)
    page = browser.get("/changes")

    assert page.status_code == 403
    assert "Ana Silva has no role" in page.text
    assert "platform@example.com" in page.text
    assert "gateway" not in page.text
    assert browser.post("/sign-out", {"csrf": find_value(page.text, "csrf")}).status_code == 303
    assert browser.get("/changes").status_code == 303


@pytest.mark.slow
@pytest.mark.emits("sign_out_completed")
def test_sign_out_ends_the_session(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    session, token = browser.session, find_value(browser.get("/").text, "csrf")
    refused = [
        browser.post("/sign-out", {"csrf": ""}),
        browser.post("/sign-out", {"csrf": token}, sec_fetch_site="cross-site"),
        browser.post("/sign-out", {"csrf": token}, content_type="text/plain"),
    ]
    before = browser.get("/").status_code
    with capture_logs() as events:
        response = browser.post("/sign-out", {"csrf": token})

    assert [item.status_code for item in refused] == [403, 403, 403]
    assert before == 200
    assert (response.status_code, response.headers["location"]) == (303, "/sign-in")
    assert browser.cookies == {}
    assert browser.get("/", cookie=f"__Host-session={session}").status_code == 303
    assert "sign_out_completed" in [event["event"] for event in events]


@pytest.mark.slow
def test_a_get_request_does_not_sign_out(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)

    assert browser.get("/sign-out").status_code == 405
    assert browser.get("/").status_code == 200


@pytest.mark.slow
def test_a_form_needs_the_token_of_its_session(console: ConsoleClient, provider: OidcProvider) -> None:
    ana, other = Browser(console), Browser(console)
    ana.sign_in(provider)
    other.sign_in(provider)
    tokens = [find_value(browser.get("/").text, "csrf") for browser in (other, ana)]

    assert [ana.post("/system/pass", {"csrf": token}).status_code for token in tokens] == [403, 303]
    assert console.requested_passes == 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("steps", "status"),
    [
        pytest.param([8 * 3_600 - 1], 200, id="almost-8-hours"),
        pytest.param([8 * 3_600], 303, id="8-hours-without-a-request"),
        pytest.param([7 * 3_600] * 3, 200, id="21-hours-with-requests"),
        pytest.param([7 * 3_600] * 3 + [3 * 3_600], 303, id="24-hours-with-requests"),
    ],
)
def test_sessions_expire(steps: list[int], status: int, console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    for step in steps:
        console.world.now += step
        response = browser.get("/changes")

    assert response.status_code == status


def test_a_person_can_extend_a_session(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    shown = browser.get("/").text.partition('data-session="')[2].partition('"')[0]
    found = []
    for step, headers in ((3_600, {"x_automatic": "1"}), (7 * 3_600 - 60, {"x_automatic": "1"}), (0, {}), (60, {})):
        console.world.now += step
        found.append(browser.get("/sign-in/session", **headers).json()["seconds"])
    console.world.now += 8 * 3_600

    assert (shown, found) == ("28800", [7 * 3_600, 60, 8 * 3_600, 8 * 3_600])
    assert browser.get("/sign-in/session").status_code == 401


def test_a_session_is_extended_to_24_hours(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    for _ in range(3):
        console.world.now += 7 * 3_600
        found = browser.get("/sign-in/session").json()["seconds"]

    assert found == 3 * 3_600


def test_other_modes_have_no_session_to_extend(console: ConsoleClient, provider: OidcProvider, tmp_path: Path) -> None:
    (tmp_path / "proxy").write_text("proxy-secret")
    configure(console, tmp_path, provider, auth=["oidc", "proxy"], proxy={"secret_file": str(tmp_path / "proxy")})
    luis = {"x_proxy_secret": "proxy-secret", "x_forwarded_user": "luis", "x_forwarded_email": "luis@example.com"}

    assert "data-session=" not in Browser(console).get("/", client=PROXY, **luis).text
    assert Browser(console).get("/sign-in/session", client=PROXY, **luis).status_code == 401


@pytest.mark.slow
def test_roles_and_issuers_are_those_of_the_current_settings(
    console: ConsoleClient, provider: OidcProvider, tmp_path: Path
) -> None:
    browser = Browser(console)
    browser.sign_in(provider)
    configure(console, tmp_path, provider, roles=[{"role": "viewer", "users": [f"f3c1@{provider.issuer}"]}])
    as_viewer = browser.post("/system/pass", {"csrf": find_value(browser.get("/").text, "csrf")})
    configure(console, tmp_path, provider, roles=[])
    without_role = browser.get("/")
    with serve_provider() as other:
        configure(console, tmp_path, other)
        other_issuer = browser.get("/")

    assert (as_viewer.status_code, without_role.status_code, other_issuer.status_code) == (403, 403, 303)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "text",
    [
        "//evil.example.com", "/\\evil.example.com", "/%5C/../\\evil", "https://evil.example.com", "https:evil", "javascript:alert(1)",
        "evil.example.com", "/\t/evil.example.com", "/\n/evil", " //evil", "", "/sign-in?return_to=/", "/sign-out", "/é",
        "/" + "a" * 2_000,
    ],
)  # fmt: skip
def test_a_person_never_returns_to_another_host(text: str, console: ConsoleClient, provider: OidcProvider) -> None:
    quoted = "".join(f"%{byte:02x}" for byte in text.encode())
    browser = Browser(console)
    completed = browser.get(provider.authorize(browser.start(quoted)))

    assert (completed.status_code, completed.headers["location"]) == (303, "/")
    assert browser.get(f"/sign-in?return_to={quoted}").headers["location"] == "/"


def test_a_form_after_the_end_of_a_session_returns_to_its_page(console: ConsoleClient) -> None:
    response = Browser(console).post("/changes/confirm", {}, referer="http://127.0.0.1/changes?risk=high")
    foreign = Browser(console).post("/changes/confirm", {}, referer="http://evil.example.com/x")

    assert response.headers["location"] == "/sign-in?return_to=/changes%3Frisk%3Dhigh"
    assert foreign.headers["location"] == "/sign-in?return_to=/"


def test_programs_and_scripts_get_a_problem(console: ConsoleClient) -> None:
    for headers in ({"accept": "*/*"}, {"authorization": "Bearer rcr_wrong"}, {"accept": "application/json"}):
        response = Browser(console).get("/changes", **headers)

        assert (response.status_code, response.headers["content-type"]) == (401, "application/problem+json"), headers
        assert response.headers["hx-refresh"] == "true"


def encode_part(data: dict[str, Any]) -> str:
    return base64.urlsafe_b64encode(json.dumps(data).encode()).decode().rstrip("=")


def sign_with_nothing(claims: dict[str, Any]) -> str:
    return f"{encode_part({'alg': 'none', 'kid': 'main'})}.{encode_part(claims)}."


def sign_with_hmac(secret: bytes) -> Callable[[dict[str, Any]], str]:
    def sign(claims: dict[str, Any]) -> str:
        text = f"{encode_part({'alg': 'HS256', 'kid': 'main'})}.{encode_part(claims)}"
        algorithm = jwt.algorithms.HMACAlgorithm(jwt.algorithms.HMACAlgorithm.SHA256)
        return f"{text}.{base64.urlsafe_b64encode(algorithm.sign(text.encode(), secret)).decode().rstrip('=')}"

    return sign


PUBLIC_KEY = create_rsa_key("main").public_key().public_bytes(Encoding.PEM, PublicFormat.SubjectPublicKeyInfo)


def change(**values: Any) -> Callable[[dict[str, Any]], dict[str, Any]]:
    """Return a function that changes claims. None removes a claim. Times are relative to now."""

    def apply(claims: dict[str, Any]) -> dict[str, Any]:
        times = {name: int(time.time()) + values[name] for name in ("exp", "iat", "nbf") if values.get(name)}
        return {name: value for name, value in {**claims, **values, **times}.items() if value is not None}

    return apply


SIGNATURES = {
    "algorithm-none": sign_with_nothing,
    "hmac-with-the-public-key": sign_with_hmac(PUBLIC_KEY),
    "hmac-with-the-client-secret": sign_with_hmac(SECRET.encode()),
    "another-key": lambda claims: sign_token(claims, create_rsa_key("other")),
    "unknown-key-id": lambda claims: sign_token(claims, key_id="unknown"),
    "rs512": lambda claims: sign_token(claims, algorithm="RS512"),
    "changed-claims": lambda claims: ".".join(
        [sign_token(claims).split(".")[0], encode_part({**claims, "sub": "root"}), sign_token(claims).split(".")[2]]
    ),
    "not-a-token": lambda _claims: "abc",
}
CLAIMS = {
    "wrong-nonce": {"nonce": "wrong"}, "no-nonce": {"nonce": None}, "nonce-of-another-type": {"nonce": 1},
    "wrong-issuer": {"iss": "https://evil.example.com"}, "no-issuer": {"iss": None},
    "wrong-audience": {"aud": "other"}, "no-audience": {"aud": None}, "longer-audience": {"aud": f"{CLIENT}2"},
    "shared-audience": {"aud": [CLIENT, "other"]},
    "other-authorized-party": {"aud": [CLIENT, "other"], "azp": "other"}, "other-azp": {"azp": "other"},
    "expired": {"exp": -90}, "no-expiry": {"exp": None}, "issued-in-the-future": {"iat": 3_600},
    "not-yet-valid": {"nbf": 3_600}, "no-subject": {"sub": None}, "empty-subject": {"sub": ""},
    "unverified": {"email_verified": False}, "verified-as-a-text": {"email_verified": "true"},
    "no-verification": {"email_verified": None}, "no-mail-address": {"email": None}, "mail-list": {"email": ["a@b"]},
    "groups-of-another-type": {"groups": {"platform": True}},
}  # fmt: skip


@pytest.mark.quick_cases(every=4)
@pytest.mark.emits("sign_in_refused")
@pytest.mark.parametrize("name", [*SIGNATURES, *CLAIMS])
def test_a_forged_token_creates_no_session(name: str, console: ConsoleClient, provider: OidcProvider) -> None:
    if name in SIGNATURES:
        provider.sign = SIGNATURES[name]
    else:
        provider.change_token = change(**CLAIMS[name])
    browser = Browser(console)
    with capture_logs() as events:
        response = browser.sign_in(provider)

    assert response.status_code == 403, response.text
    assert "The sign-in failed" in response.text
    assert browser.session == ""
    assert browser.get("/").status_code == 303
    refused = [event["reason"] for event in events if event["event"] == "sign_in_refused"]
    assert refused in (["TokenInvalid"], ["ClaimInvalid"])


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    "values",
    [
        pytest.param({"exp": -30, "iat": -300}, id="expired-within-the-clock-skew"),
        pytest.param({"aud": [CLIENT]}, id="list-of-one-audience"),
        pytest.param({"aud": [CLIENT, "other"], "azp": CLIENT}, id="authorized-party"),
        pytest.param({"groups": "platform"}, id="one-group"),
        pytest.param({"name": None}, id="no-name"),
    ],
)
def test_other_valid_tokens(values: dict[str, Any], console: ConsoleClient, provider: OidcProvider) -> None:
    provider.change_token = change(**values)
    browser = Browser(console)

    assert browser.sign_in(provider).status_code == 303
    assert browser.get("/").status_code == 200


def test_a_token_with_an_elliptic_curve_key(console: ConsoleClient, provider: OidcProvider) -> None:
    provider.keys.append(build_jwk(create_ec_key(), "curve"))
    provider.sign = lambda claims: sign_token(claims, create_ec_key(), "ES256", "curve")

    assert Browser(console).sign_in(provider).status_code == 303


def test_a_code_is_used_once(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    callback = provider.authorize(browser.start())
    pending = browser.cookies["__Host-sign-in"]
    first = browser.get(callback)
    replayed = Browser(console).get(callback, cookie=f"__Host-sign-in={pending}")

    assert (first.status_code, replayed.status_code) == (303, 403)
    assert "set-cookie" not in replayed.headers


def test_the_code_of_another_sign_in_is_refused(console: ConsoleClient, provider: OidcProvider) -> None:
    victim, attacker = Browser(console), Browser(console)
    stolen = parse_qs(urlsplit(provider.authorize(victim.start())).query)["code"][0]
    own_state = parse_qs(urlsplit(attacker.start()).query)["state"][0]
    response = attacker.get(f"/sign-in/callback?code={stolen}&state={own_state}")

    assert response.status_code == 403
    assert "invalid_grant" in response.text
    assert attacker.session == ""


@pytest.mark.slow
def test_the_response_for_another_browser_is_refused(console: ConsoleClient, provider: OidcProvider) -> None:
    attacker, victim = Browser(console), Browser(console)
    callback = provider.authorize(attacker.start())
    provider.authorize(victim.start())

    assert victim.get(callback).status_code == 403
    assert Browser(console).get(callback).status_code == 403
    assert victim.session == ""


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    "replaced",
    [
        pytest.param({"state": "wrong"}, id="wrong-state"),
        pytest.param({"state": ""}, id="empty-state"),
        pytest.param({"state": None}, id="no-state"),
        pytest.param({"state": "é"}, id="state-with-another-letter"),
        pytest.param({"iss": "https://evil.example.com"}, id="another-provider"),
        pytest.param({"code": None, "error": "access_denied"}, id="refused"),
        pytest.param({"code": "wrong"}, id="wrong-code"),
    ],
)
def test_a_forged_response_is_refused(
    replaced: dict[str, str | None], console: ConsoleClient, provider: OidcProvider
) -> None:
    browser = Browser(console)
    path, _, query = provider.authorize(browser.start()).partition("?")
    values = {name: value[0] for name, value in parse_qs(query).items()} | replaced
    response = browser.get(
        str(httpx.URL(path, params={name: text for name, text in values.items() if text is not None}))
    )

    assert response.status_code == 403
    assert browser.session == ""


@pytest.mark.slow
def test_a_sign_in_expires(console: ConsoleClient, provider: OidcProvider) -> None:
    browser = Browser(console)
    callback = provider.authorize(browser.start())
    console.world.now += 600

    assert browser.get(callback).status_code == 403


DISCOVERY = "/.well-known/openid-configuration"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("path", "answer"),
    [
        pytest.param(DISCOVERY, (500, b""), id="no-metadata"),
        pytest.param(DISCOVERY, (200, b"<html>"), id="page-instead-of-metadata"),
        pytest.param(DISCOVERY, (200, b"[" * 100_000), id="deep-metadata"),
        pytest.param(DISCOVERY, (200, b'{"issuer": "https://evil.example.com"}'), id="metadata-of-another-issuer"),
        pytest.param(DISCOVERY, (302, b""), id="redirect"),
        pytest.param("/keys", (200, b'{"keys": 1}'), id="invalid-keys"),
        pytest.param("/keys", (200, b" " * 2_000_000), id="large-keys"),
        pytest.param("/token", (500, b""), id="no-token"),
        pytest.param("/token", (200, b"{}"), id="empty-token-response"),
    ],
)
def test_a_failing_provider(
    path: str, answer: tuple[int, bytes], console: ConsoleClient, provider: OidcProvider
) -> None:
    provider.answers[path] = answer
    browser = Browser(console)
    started = browser.get("/sign-in/start")
    response = (
        browser.get(provider.authorize(started.headers["location"])) if "location" in started.headers else started
    )

    assert response.status_code in (403, 503)
    assert "The sign-in failed" in response.text
    assert browser.session == ""
    provider.answers.clear()
    assert browser.sign_in(provider).status_code == 303


@pytest.mark.slow
def test_endpoints_without_tls_are_refused(console: ConsoleClient, provider: OidcProvider) -> None:
    metadata = {**provider.build_metadata(), "token_endpoint": "file:///etc/passwd"}
    provider.answers[DISCOVERY] = (200, json.dumps(metadata).encode())
    response = Browser(console).get("/sign-in/start")

    assert response.status_code == 503
    assert "token_endpoint" in response.text


@pytest.mark.slow
def test_claims_of_the_userinfo_endpoint(console: ConsoleClient, provider: OidcProvider) -> None:
    provider.userinfo = {name: provider.claims.pop(name) for name in ("email", "email_verified", "groups", "name")}
    browser = Browser(console)

    assert browser.sign_in(provider).status_code == 303
    assert "Ana Silva" in browser.get("/").text


@pytest.mark.slow
@pytest.mark.parametrize(
    "userinfo",
    [
        pytest.param({"sub": "other", "email": "ana@example.com", "email_verified": True}, id="another-person"),
        pytest.param({"email_verified": True}, id="verification-without-the-address"),
    ],
)
def test_unusable_userinfo(userinfo: dict[str, Any], console: ConsoleClient, provider: OidcProvider) -> None:
    del provider.claims["email_verified"]
    provider.userinfo = userinfo

    assert Browser(console).sign_in(provider).status_code == 403


@pytest.mark.slow
def test_the_client_secret_is_read_again_after_a_change(
    console: ConsoleClient, provider: OidcProvider, tmp_path: Path
) -> None:
    (tmp_path / "secret").write_text("a-wrong-secret")
    wrong = Browser(console).sign_in(provider)
    (tmp_path / "secret").unlink()
    missing = Browser(console).sign_in(provider)
    (tmp_path / "secret").write_text(SECRET)

    assert "invalid_client" in wrong.text
    assert "The file in the setting console.oidc.client_secret_file cannot be read." in missing.text
    assert Browser(console).sign_in(provider).status_code == 303


def test_metadata_and_keys_are_cached(console: ConsoleClient, provider: OidcProvider) -> None:
    for _ in range(3):
        Browser(console).sign_in(provider)

    assert [provider.requests.count(path) for path in (DISCOVERY, "/keys", "/token")] == [1, 1, 3]


def test_one_address_can_start_a_limited_number_of_sign_ins(console: ConsoleClient) -> None:
    statuses = [Browser(console).get("/sign-in/start").status_code for _ in range(61)]

    assert (statuses[:60].count(303), statuses[60]) == (60, 429)


def test_without_a_provider_nobody_can_sign_in(tmp_path: Path, console: ConsoleClient) -> None:
    use_authentication(console)
    paths = ["/sign-in", "/sign-in/start", "/sign-in/callback?code=1&state=1"]

    assert [console.get(path).status_code for path in paths] == [404, 404, 404]
    assert console.post("/sign-out", {}).status_code == 404


@pytest.mark.emits("sessions_ended")
def test_an_admin_ends_the_sessions_of_a_person(console: ConsoleClient, provider: OidcProvider) -> None:
    ana, luis = Browser(console), [Browser(console), Browser(console)]
    ana.sign_in(provider)
    provider.claims |= {"sub": "a7d2", "name": "Luis <b>Vega", "email": "luis@example.com", "groups": []}
    for browser in luis:
        browser.sign_in(provider)
    page = ana.get("/system").text
    refused = luis[0].post(
        "/system/sessions/end", {"csrf": find_value(luis[0].get("/system").text, "csrf"), "subject": "x"}
    )
    form = {"csrf": find_value(page, "csrf"), "subject": f"a7d2@{provider.issuer}"}
    without_subject = ana.post("/system/sessions/end", {**form, "subject": ""})
    before = [browser.get("/").status_code for browser in luis]
    response = ana.post("/system/sessions/end", form)

    assert "Luis &lt;b&gt;Vega" in page
    assert 'data-label="Sessions">2<' in page
    assert "People who are signed in" not in luis[0].get("/system").text
    assert (refused.status_code, without_subject.status_code, before) == (403, 303, [200, 200])
    assert response.headers["location"] == "/system"
    assert [browser.get("/").status_code for browser in luis] == [303, 303]
    assert "Luis" not in ana.get("/system").text


def test_the_page_of_tokens_contains_no_secrets(console: ConsoleClient, provider: OidcProvider, tmp_path: Path) -> None:
    tokens = [create_token() for _ in range(2)]
    lines = [
        format_line("ci", "viewer", "", tokens[0], None),
        format_line("old", "reviewer", "stage=dev", tokens[1], console.world.now - 1),
    ]
    (tmp_path / "tokens").write_text("\n".join(lines))
    configure(console, tmp_path, provider, auth=["oidc", "tokens"], token_file=str(tmp_path / "tokens"))
    browser = Browser(console)
    browser.sign_in(provider)
    page = browser.get("/system/tokens").text
    paths = ("/system", "/system/tokens")
    overview, as_program = (
        console.get(path, authorization=f"Bearer {tokens[0]}", accept="text/html") for path in paths
    )

    assert ">ci</th>" in page
    assert 'data-label="Targets">stage=dev<' in page
    assert page.count("expired</span>") == 1
    assert not [line for line in lines if line.split(":")[3] in page]
    assert "/system/tokens" not in overview.text
    assert (as_program.status_code, ">ci</th>" in as_program.text) == (403, False)


@pytest.mark.slow
def test_several_modes_are_combined(console: ConsoleClient, provider: OidcProvider, tmp_path: Path) -> None:
    token = create_token()
    (tmp_path / "tokens").write_text(format_line("ci", "viewer", "", token, None))
    (tmp_path / "proxy").write_text("proxy-secret")
    files = {"token_file": str(tmp_path / "tokens"), "proxy": {"secret_file": str(tmp_path / "proxy")}}
    configure(console, tmp_path, provider, auth=["oidc", "proxy", "tokens"], **files)
    browser = Browser(console)
    browser.sign_in(provider)
    luis = {"x_proxy_secret": "proxy-secret", "x_forwarded_user": "luis", "x_forwarded_email": "luis@example.com"}
    by_session = browser.get("/")
    by_token = browser.get("/", authorization=f"Bearer {token}")
    by_wrong_token = browser.get("/", authorization="Bearer rcr_wrong")
    by_foreign_header = browser.get("/", authorization="Basic YTpi")
    by_proxy = Browser(console).get("/", client=PROXY, **luis)
    form = {"csrf": find_value(by_session.text, "csrf")}

    assert 'class="person">Ana Silva<' in by_session.text
    assert 'class="person">ci<' in by_token.text
    assert by_wrong_token.status_code == 401
    assert 'class="person">Ana Silva<' in by_foreign_header.text
    assert 'class="person">luis<' in by_proxy.text
    # The token of the program decides, and not the session of the admin.
    assert browser.post("/system/pass", form, authorization=f"Bearer {token}").status_code == 403
    assert browser.post("/system/pass", form).status_code == 303


@pytest.mark.slow
def test_a_session_stays_valid_after_a_reload_but_not_without_the_mode(
    console: ConsoleClient, provider: OidcProvider, tmp_path: Path
) -> None:
    (tmp_path / "tokens").write_text("")
    browser = Browser(console)
    browser.sign_in(provider)
    form = {"csrf": find_value(browser.get("/").text, "csrf")}
    configure(console, tmp_path, provider, contact="another@example.com")
    after_reload = browser.post("/system/pass", form)
    configure(console, tmp_path, provider, auth=["tokens"], token_file=str(tmp_path / "tokens"))

    assert (after_reload.status_code, browser.post("/system/pass", form).status_code) == (303, 401)
