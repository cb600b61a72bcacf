"""The limits of stored sessions and sign-ins, and the cached keys of a provider."""

from __future__ import annotations

import itertools
from base64 import urlsafe_b64encode
from collections import Counter
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor, as_completed
from threading import Event
from typing import Any

import pytest

from reconciler.review.people import Reviewer
from reconciler.server.authentication.errors import ProviderUnavailableError
from reconciler.server.authentication.id_tokens import SigningKeys
from reconciler.server.authentication.oidc import MAX_LOGOUTS, MAX_SIGN_INS, OidcOptions, OidcProvider
from reconciler.server.authentication.pending_sign_ins import PendingSignIns
from reconciler.server.authentication.provider_client import ProviderClient
from reconciler.server.authentication.session_store import SessionStore


class Clock:
    def __init__(self) -> None:
        self.now = 1_000.0

    def __call__(self) -> float:
        return self.now


def create_person(number: int) -> Reviewer:
    return Reviewer(f"person {number}", f"p{number}@example.com", str(number), "https://id.example.com")


def test_a_person_has_a_limited_number_of_sessions() -> None:
    store = SessionStore(Clock(), max_per_person=2)
    other = store.create(create_person(2))
    first, second, third = (store.create(create_person(1)) for _ in range(3))

    assert [store.find(session) is not None for session in (other, first, second, third)] == [True, False, True, True]


def test_the_session_without_a_request_for_the_longest_time_ends_first() -> None:
    store = SessionStore(Clock(), max_sessions=2)
    first, second = (store.create(create_person(number)) for number in (1, 2))
    store.find(first)
    third = store.create(create_person(3))

    assert [store.find(session) is not None for session in (first, second, third)] == [True, False, True]


def test_the_oldest_sign_in_is_deleted_first() -> None:
    pending = PendingSignIns(Clock(), max_pending=2)
    (old, old_state), (_, _), (new, new_state) = (pending.create("/") for _ in range(3))

    assert pending.take(old, old_state.state) is None
    assert pending.take(new, new_state.state) == new_state
    assert pending.take(new, new_state.state) is None


def build_key(key_id: str | None, **changes: object) -> dict[str, Any]:
    key = {"kty": "RSA", "kid": key_id, **changes}
    return {name: value for name, value in key.items() if value is not None}


class KeySet:
    def __init__(self, *keys: dict[str, Any]) -> None:
        self.keys: object = [*keys]
        self.fetches = 0

    def fetch(self) -> Mapping[str, Any]:
        self.fetches += 1
        return {"keys": self.keys}


@pytest.mark.parametrize(
    ("keys", "key_id", "found"),
    [
        pytest.param([build_key("a"), build_key("b")], "b", "b", id="key-id"),
        pytest.param([build_key("a")], None, "a", id="only-key-without-an-id-in-the-token"),
        pytest.param([build_key("a"), build_key("b")], None, None, id="ambiguous"),
        pytest.param([build_key("a")], "b", None, id="unknown"),
        pytest.param([build_key("a", use="enc")], "a", None, id="encryption-key"),
        pytest.param([build_key("a", alg="RS512")], "a", None, id="key-of-another-algorithm"),
        pytest.param([build_key("a", kty="oct")], "a", None, id="secret-key"),
        pytest.param([build_key("a", kty="EC", crv="P-256")], "a", None, id="key-of-another-type"),
    ],
)
def test_the_key_of_a_token(keys: list[dict[str, Any]], key_id: str | None, found: str | None) -> None:
    key = SigningKeys(KeySet(*keys).fetch, Clock()).find("RS256", key_id)

    assert (key["kid"] if key else None) == found


def test_curves_of_other_algorithms_are_refused() -> None:
    keys = KeySet(build_key("a", kty="EC", crv="P-384"), build_key("b", kty="EC", crv="P-256"))
    signing_keys = SigningKeys(keys.fetch, Clock())

    assert signing_keys.find("ES256", "a") is None
    assert signing_keys.find("ES256", "b")


def test_an_unknown_key_is_fetched_at_most_once_per_minute() -> None:
    clock, keys = Clock(), KeySet(build_key("old"))
    signing_keys = SigningKeys(keys.fetch, clock)
    signing_keys.find("RS256", "old")
    keys.keys = [build_key("new")]
    # The provider can have rotated its keys. A refusal would end sessions, or would lose the end of a session.
    with pytest.raises(ProviderUnavailableError, match="try again in a minute"):
        signing_keys.find("RS256", "new")
    clock.now += 60
    after_a_minute = signing_keys.find("RS256", "new")
    clock.now += 60

    assert (after_a_minute, keys.fetches) == (build_key("new"), 2)
    assert signing_keys.find("RS256", "unknown") is None


def test_a_withdrawn_key_is_refused_after_an_hour() -> None:
    clock, keys = Clock(), KeySet(build_key("old"))
    signing_keys = SigningKeys(keys.fetch, clock)
    signing_keys.find("RS256", "old")
    keys.keys = []
    clock.now += 3_599
    before = signing_keys.find("RS256", "old")
    clock.now += 1

    assert (before is None, signing_keys.find("RS256", "old")) == (False, None)


def test_invalid_keys_of_a_provider_are_an_error() -> None:
    keys = KeySet()
    keys.keys = "none"

    with pytest.raises(ProviderUnavailableError, match="must contain the list `keys`"):
        SigningKeys(keys.fetch, Clock()).find("RS256", "a")


class BlockedClient(ProviderClient):
    """A client whose requests end when the test allows it."""

    def __init__(self) -> None:
        self.is_free = Event()

    def get(self, _url: str, _access_token: str | None = None) -> Mapping[str, Any]:
        self.is_free.wait(60)
        raise ProviderUnavailableError("the provider does not respond")


OPTIONS = OidcOptions("https://id.example.com", "c", lambda: "", "https://c.example.com", ("openid",), "n", "e", "g")


def start_sign_in(provider: OidcProvider) -> str:
    """Start a sign-in, and return the reason why the provider cannot be used."""
    with pytest.raises(ProviderUnavailableError) as error:
        provider.build_authorization_url(PendingSignIns(Clock()).create("/")[1])
    return str(error.value)


def test_forged_logout_tokens_do_not_prevent_sign_ins() -> None:
    client = BlockedClient()
    provider = OidcProvider(OPTIONS, client)
    header = urlsafe_b64encode(b'{"alg": "RS256", "typ": "JWT"}').decode().rstrip("=")

    def end_sessions() -> str:
        with pytest.raises(ProviderUnavailableError) as error:
            provider.read_logout(f"{header}.e30.c2ln")
        return str(error.value)

    with ThreadPoolExecutor(MAX_SIGN_INS + 1) as pool:
        logouts = [pool.submit(end_sessions) for _ in range(MAX_SIGN_INS)]
        refused = [
            future.result(60) for future in itertools.islice(as_completed(logouts, 60), MAX_SIGN_INS - MAX_LOGOUTS)
        ]
        sign_in = pool.submit(start_sign_in, provider)
        client.is_free.set()

    assert {text[:17] for text in refused} == {"the provider ends"}
    assert sign_in.result() == "the provider does not respond"


def test_a_slow_provider_blocks_a_limited_number_of_threads() -> None:
    client = BlockedClient()
    provider = OidcProvider(OPTIONS, client)

    def start() -> str:
        return start_sign_in(provider)

    with ThreadPoolExecutor(MAX_SIGN_INS + 4) as pool:
        started = [pool.submit(start) for _ in range(MAX_SIGN_INS + 4)]
        refused = [future.result(60) for future in itertools.islice(as_completed(started, 60), 4)]
        client.is_free.set()
        others = Counter(future.result(60) for future in started)

    assert {text[:15] for text in refused} == {"too many people"}
    assert others["the provider does not respond"] == MAX_SIGN_INS
    assert start() == "the provider does not respond"
