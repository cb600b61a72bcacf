"""Tokens of a GitHub App, from a fake GitHub that checks each signature."""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import httpx
import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from reconciler.forge.errors import ForgeAnswerError, ForgeCredentialsError, ForgeError, ForgeMissingError
from reconciler.forge.github import GitHub
from reconciler.forge.github_app import AppToken, AppTokens, TokenRequest
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.redaction import redact
from tests.support.fake_forge.clock import Clock
from tests.support.fake_forge.core import FakeForge
from tests.support.fake_forge.github import FakeApp, GitHubWire
from tests.support.fake_forge.server import serve

APP = "Iv23liPlanted"


def private_pem(key: rsa.RSAPrivateKey | ec.EllipticCurvePrivateKey) -> bytes:
    kind = serialization.PrivateFormat.TraditionalOpenSSL
    return key.private_bytes(serialization.Encoding.PEM, kind, serialization.NoEncryption())


def public_pem(key: rsa.RSAPrivateKey) -> bytes:
    kind = serialization.PublicFormat.SubjectPublicKeyInfo
    return key.public_key().public_bytes(serialization.Encoding.PEM, kind)


@pytest.fixture(scope="module")
def key() -> rsa.RSAPrivateKey:
    return rsa.generate_private_key(65537, 2048)


class World:
    """A GitHub with an App and a repository, and the App's key in a file."""

    def __init__(self, folder: Path, key: rsa.RSAPrivateKey) -> None:
        self.clock = Clock()
        self.forge = FakeForge(folder / "forge", self.clock)
        self.forge.create_repository("acme/fleet")
        self.app = FakeApp(APP, public_pem(key))
        self.key_file = folder / "app.pem"
        self.key_file.write_bytes(private_pem(key))
        self.url = ""

    @contextmanager
    def token(self, app: str = APP, repository: str = "acme/fleet", installation: int = 0) -> Iterator[AppToken]:
        yield AppToken(TokenRequest(self.url, app, str(self.key_file), repository, installation), self.clock)


@pytest.fixture
def world(tmp_path: Path, key: rsa.RSAPrivateKey) -> Iterator[World]:
    world = World(tmp_path, key)
    with serve(GitHubWire(world.forge, app=world.app)) as url:
        world.url = url
        yield world


def test_a_token_opens_the_forge(world: World) -> None:
    with world.token() as token:
        client = ForgeClient(world.url, token, RateLimiter(0, 0, world.clock), world.clock)

        assert GitHub(client, "acme", "fleet").list_open_requests() == ()
        client.close()


def test_an_installation_that_is_given_is_not_looked_for(world: World) -> None:
    with world.token(installation=4711) as token:
        token()

    assert world.forge.calls == [("POST", "/app/installations/4711/access_tokens")]


def test_a_token_is_renewed_when_less_than_five_minutes_are_left(world: World) -> None:
    with world.token() as token:
        first = token()
        world.clock.now += 3300
        assert token() == first
        world.clock.now += 1

        assert token() != first
    assert len(world.app.issued) == 2


def test_threads_share_one_token(world: World) -> None:
    with world.token() as token, ThreadPoolExecutor(8) as pool:
        tokens = list(pool.map(lambda _: token()["Authorization"], range(30)))

    assert len(set(tokens)) == len(world.app.issued) == 1


def test_a_key_that_was_exchanged_signs_the_next_request(world: World) -> None:
    other = rsa.generate_private_key(65537, 2048)
    with world.token() as token:
        token()
        world.app.public_key = public_pem(other)
        world.key_file.write_bytes(private_pem(other))
        world.clock.now += 3500

        assert token() == {"Authorization": "Bearer ghs_secret2"}


@pytest.mark.parametrize(
    ("mapping", "kind", "words"),
    [
        pytest.param({"app": "other"}, ForgeCredentialsError, "'Issuer' claim", id="other-app"),
        pytest.param({"repository": "acme/none"}, ForgeMissingError, "404 Not Found", id="not-installed-there"),
        pytest.param({"installation": 1}, ForgeMissingError, "404 Not Found", id="no-such-installation"),
    ],
)
def test_a_refused_request_has_the_message_of_github(
    world: World, mapping: dict[str, str], kind: type[ForgeError], words: str
) -> None:
    with world.token(**mapping) as token, pytest.raises(kind, match=words):  # type: ignore[arg-type]
        token()


def test_a_clock_that_is_a_little_ahead_does_no_harm(world: World) -> None:
    ahead = Clock(world.clock.now + 59)
    token = AppToken(TokenRequest(world.url, APP, str(world.key_file), "acme/fleet"), ahead)

    assert token()


@pytest.mark.parametrize("content", ["", "planted-5ecret", "-----BEGIN RSA PRIVATE KEY-----\nplanted-5ecret\n", "ec"])
def test_a_file_without_an_rsa_key_is_named_and_not_quoted(world: World, content: str) -> None:
    if content == "ec":
        content = private_pem(ec.generate_private_key(ec.SECP256R1())).decode()
    world.key_file.write_text(content)
    with world.token() as token, pytest.raises(ForgeCredentialsError, match="must contain the private key") as refused:
        token()

    text = "".join(traceback.format_exception(refused.value))
    assert str(world.key_file) in refused.value.message
    assert not any(line in text for line in content.splitlines() if line)
    assert not world.forge.calls


def test_without_the_extra_it_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jwt", None)
    with world.token() as token, pytest.raises(ForgeCredentialsError, match=r"reconciler\[forge-app\]"):
        token()


def test_without_its_cryptography_the_extra_is_named(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("jwt.algorithms.has_crypto", False)
    with world.token() as token, pytest.raises(ForgeCredentialsError, match=r"reconciler\[forge-app\]"):
        token()


@pytest.mark.parametrize("text", ["a b", "a\r\nX-Evil: 1", "", "é"])
def test_a_token_that_no_header_can_hold_is_no_token(world: World, text: str) -> None:
    answer = {"token": text, "expires_at": "2030-01-01T00:00:00Z"}
    transport = httpx.MockTransport(lambda _: httpx.Response(201, json=answer))
    token = AppToken(
        TokenRequest("https://api.github.com", APP, str(world.key_file), "acme/fleet", 1), world.clock, transport
    )
    with pytest.raises(ForgeAnswerError, match="the token in the response must be"):
        token()


def test_nothing_shows_a_token(world: World) -> None:
    with world.token() as token:
        token()

        assert "ghs_secret" not in repr(token) + repr(vars(token))


def test_a_token_is_limited_to_its_permissions_and_repository(world: World) -> None:
    request = TokenRequest(world.url, APP, str(world.key_file), "acme/fleet", 4711, (("contents", "read"),))

    AppToken(request, world.clock).get_secret()

    assert world.app.limits == [{"permissions": {"contents": "read"}, "repositories": ["fleet"]}]


def test_equal_requests_share_one_token_and_a_refused_token_is_replaced(world: World) -> None:
    tokens = AppTokens(world.clock)
    request = TokenRequest(world.url, APP, str(world.key_file), "acme/fleet", 4711)
    first = tokens.get(request).get_secret()

    assert tokens.get(replace(request)).get_secret() == first
    tokens.get(request).expire()

    assert tokens.get(request).get_secret() != first


def test_tokens_and_lines_of_the_key_are_masked_until_the_token_expires(world: World) -> None:
    with world.token() as token:
        first = token.get_secret().reveal()
        line = world.key_file.read_text().splitlines()[1]
        world.clock.now += 3301
        second = token.get_secret().reveal()

        assert redact(f"{first} {second} {line}") == "***** ***** *****"
        # The first token expires after an hour. The next renewal deletes it.
        world.clock.now += 3301
        token.get_secret()

        assert redact(f"{first} {second}") == f"{first} *****"
