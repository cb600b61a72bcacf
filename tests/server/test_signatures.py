"""Signatures: a delivery is accepted only with the secret, in the format of each host."""

from __future__ import annotations

import base64
import hashlib
import hmac

import pytest

from reconciler.server.signatures import SignatureCheck, SignatureClaim, read_claim

SECRET = b"correct horse battery staple"
BODY = b'{"ref": "refs/heads/main"}'
# the result in the documentation of GitHub for these two values
GITHUB_SECRET, GITHUB_BODY = b"It's a Secret to Everybody", b"Hello, World!"
GITHUB_SIGNATURE = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17"
# the example in the specification of Standard Webhooks
STANDARD_SECRET = b"whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw"
STANDARD_BODY = b'{"test": 2432232314}'
STANDARD = {
    "webhook-id": "msg_p5jXN8AQM9LWM0D4loKWxJek",
    "webhook-timestamp": "1614265330",
    "webhook-signature": "v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=",
}


def compute_hex_signature(secret: bytes = SECRET, body: bytes = BODY) -> str:
    return hmac.new(secret, body, hashlib.sha256).hexdigest()


def compute_timed_signature(key: bytes, delivery: str = "m1", moment: str = "1700000000", body: bytes = BODY) -> str:
    signed = hmac.new(key, f"{delivery}.{moment}.".encode() + body, hashlib.sha256).digest()
    return f"v1,{base64.b64encode(signed).decode()}"


def standard(*signatures: str, delivery: str = "m1", moment: str = "1700000000") -> dict[str, str]:
    return {"webhook-id": delivery, "webhook-timestamp": moment, "webhook-signature": " ".join(signatures)}


def is_accepted(headers: dict[str, str], body: bytes, *secrets: bytes) -> bool:
    claim = read_claim(headers)
    if claim is None:
        return False
    check = SignatureCheck(claim, secrets)
    for start in range(0, len(body), 7):
        check.update(body[start : start + 7])
    return check.is_valid()


@pytest.mark.parametrize(
    ("headers", "body", "secret"),
    [
        pytest.param({"x-hub-signature-256": GITHUB_SIGNATURE}, GITHUB_BODY, GITHUB_SECRET, id="the-example-of-github"),
        pytest.param(STANDARD, STANDARD_BODY, STANDARD_SECRET, id="the-example-of-standard-webhooks"),
        pytest.param({"x-hub-signature-256": f"sha256={compute_hex_signature()}"}, BODY, SECRET, id="github"),
        pytest.param({"x-hub-signature": f"sha256={compute_hex_signature()}"}, BODY, SECRET, id="bitbucket"),
        pytest.param({"x-gitea-signature": compute_hex_signature()}, BODY, SECRET, id="gitea"),
        pytest.param({"x-forgejo-signature": compute_hex_signature()}, BODY, SECRET, id="forgejo"),
        pytest.param({"x-forgejo-signature": compute_hex_signature().upper()}, BODY, SECRET, id="in-capitals"),
        pytest.param({"x-gitlab-token": SECRET.decode()}, BODY, SECRET, id="the-token-of-gitlab"),
        pytest.param({"x-gitlab-token": "schlüssel".encode().decode("latin-1")}, BODY, "schlüssel".encode(), id="utf8"),
        pytest.param(standard(compute_timed_signature(SECRET)), BODY, SECRET, id="a-timed-signature-by-a-plain-secret"),
        pytest.param(
            standard("v1a,xx", compute_timed_signature(b"old"), compute_timed_signature(SECRET)),
            BODY,
            SECRET,
            id="one-of-several-signatures",
        ),
        pytest.param({"x-gitea-signature": compute_hex_signature(body=b"")}, b"", SECRET, id="an-empty-body"),
    ],
)
def test_a_delivery_with_the_secret_is_accepted(headers: dict[str, str], body: bytes, secret: bytes) -> None:
    assert is_accepted(headers, body, secret)
    assert is_accepted(headers, body, b"a newer one", secret)
    assert not is_accepted(headers, body, b"a newer one")
    assert not is_accepted(headers, body)


@pytest.mark.parametrize(
    "headers",
    [
        pytest.param({}, id="nothing-is-claimed"),
        pytest.param({"x-github-event": "push"}, id="an-event-alone"),
        pytest.param({"x-hub-signature-256": compute_hex_signature()}, id="without-the-name-of-the-algorithm"),
        pytest.param({"x-hub-signature-256": "sha256="}, id="an-empty-signature"),
        pytest.param({"x-hub-signature-256": f"sha256={compute_hex_signature()[:-2]}"}, id="a-short-signature"),
        pytest.param(
            {"x-hub-signature-256": f"sha256={compute_hex_signature()}, sha256={compute_hex_signature()}"},
            id="a-header-twice",
        ),
        pytest.param({"x-hub-signature": f"sha1={compute_hex_signature()[:40]}"}, id="sha1"),
        pytest.param({"x-gitea-signature": "not hex"}, id="no-hex"),
        pytest.param({"x-gitlab-token": ""}, id="an-empty-token"),
        pytest.param({"x-gitlab-token": compute_hex_signature()}, id="a-signature-as-token"),
        pytest.param({"x-gitea-signature": SECRET.decode()}, id="a-token-as-signature"),
        pytest.param(standard(compute_timed_signature(SECRET), delivery=""), id="a-timed-signature-without-id"),
        pytest.param(standard(compute_timed_signature(SECRET), delivery="m2"), id="of-another-id"),
        pytest.param(standard(compute_timed_signature(SECRET), moment="1700000001"), id="of-another-time"),
        pytest.param(standard(compute_timed_signature(SECRET, moment="soon"), moment="soon"), id="without-a-time"),
        pytest.param(standard(compute_timed_signature(SECRET, moment="-5"), moment="-5"), id="before-all-times"),
        pytest.param(standard(compute_timed_signature(SECRET).replace("v1,", "v2,")), id="of-another-version"),
        pytest.param(standard("v1,", "v1,!"), id="no-base64"),
        pytest.param(
            standard(*[compute_timed_signature(b"x")] * 16, compute_timed_signature(SECRET)), id="too-many-signatures"
        ),
        pytest.param(
            standard(compute_timed_signature(b"x")) | {"x-gitlab-token": SECRET.decode()},
            id="a-weaker-proof-beside-does-not-rescue-it",
        ),
    ],
)
def test_all_others_are_not(headers: dict[str, str]) -> None:
    assert not is_accepted(headers, BODY, SECRET)


def test_another_body_is_not_what_was_signed() -> None:
    assert not is_accepted({"x-hub-signature-256": f"sha256={compute_hex_signature()}"}, BODY + b" ", SECRET)
    assert not is_accepted(standard(compute_timed_signature(SECRET)), BODY + b" ", SECRET)


@pytest.mark.parametrize(
    ("headers", "event", "delivery"),
    [
        pytest.param(
            {"x-hub-signature-256": GITHUB_SIGNATURE, "x-github-event": "push", "x-github-delivery": "d"},
            "push", "d", id="github",
        ),
        pytest.param(
            {"x-forgejo-signature": compute_hex_signature(), "x-forgejo-event": "push", "x-forgejo-delivery": "f"},
            "push", "f", id="forgejo",
        ),
        pytest.param(
            {"x-gitea-signature": compute_hex_signature(), "x-hub-signature-256": "", "x-gitea-event": "push", "x-gitea-delivery": "g"},
            "push", "g", id="gitea-with-header-of-github",
        ),
        pytest.param(
            {"x-hub-signature": f"sha256={compute_hex_signature()}", "x-event-key": "repo:push", "x-request-uuid": "u"},
            "repo:push", "u", id="bitbucket-cloud",
        ),
        pytest.param(
            {"x-hub-signature": f"sha256={compute_hex_signature()}", "x-event-key": "repo:refs_changed", "x-request-id": "i"},
            "repo:refs_changed", "i", id="bitbucket-data-center",
        ),
        pytest.param(
            {"x-gitlab-token": "t", "x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "e", "idempotency-key": "k"},
            "Push Hook", "k", id="gitlab",
        ),
        pytest.param(
            {"x-gitlab-token": "t", "x-gitlab-event": "Push Hook", "x-gitlab-event-uuid": "e"},
            "Push Hook", "e", id="an-older-gitlab",
        ),
        pytest.param(standard("v1,"), "", "m1", id="standard-webhooks"),
        pytest.param({"x-gitlab-token": "t"}, "", "", id="no-more-than-a-token"),
    ],
)  # fmt: skip
def test_each_host_names_event_and_delivery_in_its_own_words(
    headers: dict[str, str], event: str, delivery: str
) -> None:
    claim = read_claim(headers)

    assert claim is not None
    assert (claim.event, claim.delivery) == (event, delivery)


def test_the_identity_of_a_signed_delivery_is_its_signature() -> None:
    signature = {"x-hub-signature-256": GITHUB_SIGNATURE}
    signature_claim, other = (read_claim(signature | {"x-github-delivery": name}) for name in ("one", "other"))

    assert isinstance(signature_claim, SignatureClaim)
    assert isinstance(other, SignatureClaim)
    assert signature_claim.identity == other.identity
