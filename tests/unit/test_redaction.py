"""Tests of the redaction of URLs: which texts contain credentials, and the text that messages show."""

from __future__ import annotations

import pickle
import time
from concurrent.futures import ThreadPoolExecutor

import pytest

from reconciler.git.errors import CredentialInUrlError
from reconciler.git.url import parse_url
from reconciler.krm.findings import CommonCodes
from reconciler.redaction import Secret, has_credentials, redact, redact_url, redact_urls, register_secret

SECRET = "sesame"
PART = "same"

WITH_CREDENTIALS = [
    pytest.param("https://u:sesame@host/p", id="user-and-password"),
    pytest.param("HTTPS://u:sesame@host/p", id="scheme-in-capitals"),
    pytest.param("https://sesame@host/p", id="token-without-user"),
    pytest.param("https://:sesame@host/p", id="password-without-user"),
    pytest.param("https://u:se/same@host/p", id="slash-in-password"),
    pytest.param("https://se/same@github.com/a/b", id="slash-in-token"),
    pytest.param("https://u:se//same@host/p", id="two-slashes-in-password"),
    pytest.param("https://u:p@ss/sesame@host/p", id="at-and-slash-in-password"),
    pytest.param("https://user:1234/sesame@host/x", id="beginning-like-a-port"),
    pytest.param("https://first.last:80/sesame@host/x", id="user-like-a-host"),
    pytest.param("https://u:se?same@h.com/x", id="question-mark-in-password"),
    pytest.param("https://u:se#same@h.com/x", id="hash-in-password"),
    pytest.param("https://git/x?private_token=u@sesame", id="at-in-a-parameter"),
    pytest.param("https://git/x?a=b&c=d@sesame.com/y", id="at-in-a-query"),
    pytest.param("https://git/x#access_token=u@sesame", id="at-in-a-fragment"),
    pytest.param("https://u:se\\same@h.com/x", id="backslash-in-password"),
    pytest.param("https://u:%73e@same@h.com/x", id="escaped-password"),
    pytest.param("https://e.com/u:sesame@b/y", id="in-the-path"),
    pytest.param("https://u:sesame%40h.com/x", id="escaped-at"),
    pytest.param("https://u:sesame\uff20h.com/x", id="full-width-at"),
    pytest.param("https://u:sesame\ufe6bh.com/x", id="small-at"),
    pytest.param("git+https://u:sesame@h/x", id="compound-scheme"),
    pytest.param("x://u:sesame@h", id="unknown-scheme"),
    pytest.param("https:/u:sesame@h/x", id="one-slash"),
    pytest.param("https:u:sesame@h/x", id="no-slash"),
    pytest.param("http:///u:sesame@h/x", id="three-slashes"),
    pytest.param("//u:sesame@h/x", id="without-a-scheme-and-with-slashes"),
    pytest.param("user:sesame@github.com/a/b", id="without-a-scheme"),
    pytest.param("user:sesame@git/a/b", id="without-a-scheme-short-host"),
    pytest.param("user:sesame@github.com:a/b", id="scp-style-with-password"),
    pytest.param("user:sesame@git:a/b", id="scp-style-with-password-short-host"),
    pytest.param("user:se/same@git:a/b", id="scp-style-with-slash-in-password-short-host"),
    pytest.param("user:se/same@github.com/a", id="without-a-scheme-slash-in-password"),
    pytest.param("sesame@github.com/a/b.git", id="token-without-a-scheme"),
    pytest.param("se/same@github.com/a/b", id="token-with-slash-without-a-scheme"),
    pytest.param("john@corp.com:sesame@dev.azure.com/o/r", id="mail-address-as-user"),
    pytest.param("ssh://git:sesame@h/x", id="ssh-with-password"),
    pytest.param("ssh://git:se/same@h/x", id="ssh-slash-in-password"),
    pytest.param("ssh://git@h:se/same@h2/x", id="ssh-two-at"),
    pytest.param("file://u:sesame@h/x", id="file-with-authority"),
]


@pytest.mark.parametrize("url", WITH_CREDENTIALS)
def test_url_with_credentials_is_refused_and_not_shown(url: str) -> None:
    with pytest.raises(CredentialInUrlError) as error:
        parse_url(url, "/base")

    assert has_credentials(url)
    assert PART not in f"{error.value} {error.value!r}"
    assert PART not in redact_url(url)


@pytest.mark.parametrize("url", WITH_CREDENTIALS)
@pytest.mark.parametrize("frame", ["fatal: unable to access '{}/': refused", "{}", "url={} x", "see ({}),", '"{}"'])
def test_credentials_are_removed_from_running_text(url: str, frame: str) -> None:
    assert PART not in redact_urls(frame.format(url))


@pytest.mark.parametrize("url", WITH_CREDENTIALS)
def test_finding_contains_no_credentials(url: str) -> None:
    assert PART not in CommonCodes.CREDENTIAL_IN_URL.finding(f"must not be {url!r}").message


@pytest.mark.parametrize(
    "url",
    [
        pytest.param("https://e.com/a@b", id="at-in-a-path"),
        pytest.param("https://127.0.0.1:8080/a@b", id="at-in-a-path-after-a-port"),
        pytest.param("https://[::1]:80/x@y", id="at-in-a-path-after-ipv6"),
        pytest.param("https://e.com/a%40b", id="escaped-at"),
        pytest.param("git@e.com:a/b.git", id="scp-style"),
        pytest.param("git@[::1]:x", id="scp-style-ipv6"),
        pytest.param("e.com:a/b.git", id="scp-style-without-user"),
        pytest.param("ssh://git@e.com:22/a", id="ssh-user"),
        pytest.param("/srv/a@b", id="path"),
        pytest.param("./team@x.com/y", id="relative-path"),
        pytest.param("file:///srv/a@b.com/x", id="file-url"),
    ],
)
def test_url_without_credentials_is_accepted_and_shown(url: str) -> None:
    parse_url(url)

    assert not has_credentials(url)
    assert (redact_url(url), redact_urls(f"see {url}")) == (url, f"see {url}")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("me@example.com wrote <a@b.c>", id="mail-addresses"),
        pytest.param("reg.example.com:5000/app:1@sha256:0123456789abcdef", id="image-digest"),
        pytest.param("registry:5000/app:1@sha256:0123456789abcdef", id="image-digest-short-host"),
        pytest.param("no Kptfile at web in catalog@release/1.0", id="package-at-a-ref"),
        pytest.param("https://github.com/a/b.git/web@v1", id="url-of-a-package-at-a-ref"),
        pytest.param("config/a.yaml:12:5: x", id="place"),
        pytest.param("a=b&key of the map", id="ordinary-signs"),
    ],
)
def test_other_text_stays(text: str) -> None:
    assert redact_urls(text) == text


@pytest.mark.parametrize("name", ["access_token", "private_token", "password", "api_key", "X-Amz-Signature", "sig"])
def test_secret_parameters_of_urls_are_masked(name: str) -> None:
    assert redact_urls(f"GET https://e.com/a?page=2&{name}=sesame failed") == (
        f"GET https://e.com/a?page=2&{name}=***** failed"
    )
    assert SECRET not in redact_url(f"https://e.com/a?{name}=sesame")


@pytest.mark.parametrize("start", ["?", "&", ";", "#"])
@pytest.mark.parametrize("value", ["sesame", "p@sesame", "'sesame", "p/u@sesame.com/x"])
def test_secret_parameters_are_masked_at_any_position_and_with_any_content(start: str, value: str) -> None:
    assert PART not in redact_urls(f"GET https://e.com/a{start}access_token={value}&b=c failed")


def test_registered_secret_is_masked_in_every_text() -> None:
    register_secret("correct-horse-battery")
    register_secret("short")

    assert redact("x correct-horse-batteryy short") == "x *****y short"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a" * 200_000 + "@", id="one-word"),
        pytest.param("@" * 200_000, id="at-signs"),
        pytest.param("a.b" * 60_000 + "@" + "a." * 60_000, id="labels"),
        pytest.param("http:" * 40_000 + "@", id="schemes"),
        pytest.param("&a" * 100_000 + "=", id="parameters"),
        pytest.param("(" * 200_000 + "@x.com/", id="punctuation"),
    ],
)
def test_redaction_takes_linear_time(text: str) -> None:
    began = time.process_time()

    redact_urls(text)

    assert time.process_time() - began < 5  # A quadratic regular expression takes minutes.


def test_secret_is_in_no_text_of_its_object() -> None:
    secret = Secret("planted/value-1")

    assert {repr(secret), str(secret), f"{secret}", f"{[secret]}", "%s" % secret} == {"*****", "[*****]"}  # noqa: UP031
    assert secret.reveal() == "planted/value-1"
    assert (secret == Secret("planted/value-1"), secret == "planted/value-1") == (True, False)
    with pytest.raises(TypeError, match="must not be pickled"):
        pickle.dumps(secret)


def test_value_of_a_secret_is_masked_until_it_is_unregistered() -> None:
    secret, longer = Secret("planted/value-2"), Secret("planted/value-2-longer")

    assert redact("a planted/value-2 b planted%2Fvalue-2 c planted/value-2-longer") == "a ***** b ***** c *****"
    secret.unregister()

    assert redact("planted/value-2 planted%2Fvalue-2") == "planted/value-2 planted%2Fvalue-2"
    assert redact(longer.reveal()) == "*****"


def test_short_secret_is_not_masked() -> None:
    Secret("planted")

    assert redact("planted") == "planted"


def test_threads_register_all_secrets() -> None:
    values = [f"planted-thread-{number}-" for number in range(500)]
    with ThreadPoolExecutor(8) as pool:
        secrets = list(pool.map(Secret, values))

    assert redact(" ".join(values)) == " ".join("*****" for _ in values)
    for secret in secrets:
        secret.unregister()
