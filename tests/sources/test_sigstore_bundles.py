"""Signatures of cosign 3: Sigstore bundles in manifests that refer to the signed manifest."""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, rsa

from reconciler.packages.artifacts import ArtifactVersion, SourceProblem
from tests.sources.conftest import World
from tests.sources.test_signatures import (
    APP,
    COSIGN,
    ISSUER,
    KEYLESS,
    OTHER,
    SUBJECT,
    PrivateKey,
    make_layer,
    push_signatures,
    read_code,
    sign,
    write_key,
)
from tests.sources.test_signatures import keys as keys
from tests.sources.test_signatures import sigstore as sigstore
from tests.support.artifact_servers import (
    INDEX,
    MANIFEST,
    Answer,
    RegistryServer,
    compute_digest,
    describe_manifest,
    oci_repository,
)
from tests.support.sigstore import Sigstore

BUNDLE = "application/vnd.dev.sigstore.bundle.v0.3+json"
IN_TOTO = "application/vnd.in-toto+json"
SIGN = "https://sigstore.dev/cosign/sign/v1"


def encode(content: bytes) -> str:
    return base64.b64encode(content).decode()


def make_statement(digest: str, **changes: object) -> bytes:
    subject = {"digest": {"sha256": digest.removeprefix("sha256:")}, "annotations": {}}
    statement = {"_type": "https://in-toto.io/Statement/v1", "subject": [subject], "predicateType": SIGN}
    return json.dumps({**statement, "predicate": {}, **changes}).encode()


def make_envelope(key: PrivateKey, payload: bytes, payload_type: str = IN_TOTO) -> dict[str, Any]:
    signed = f"DSSEv1 {len(payload_type)} {payload_type} {len(payload)} ".encode() + payload
    signatures = [{"sig": encode(sign(key, signed))}]
    return {"payload": encode(payload), "payloadType": payload_type, "signatures": signatures}


def make_bundle(**content: object) -> dict[str, Any]:
    return {"mediaType": BUNDLE, "verificationMaterial": {"publicKey": {"hint": "x"}}, **content}


def make_statement_bundle(key: PrivateKey, digest: str, **changes: object) -> dict[str, Any]:
    return make_bundle(dsseEnvelope=make_envelope(key, make_statement(digest, **changes)))


def make_message_bundle(key: PrivateKey, message: bytes) -> dict[str, Any]:
    digest = {"algorithm": "SHA2_256", "digest": encode(hashlib.sha256(message).digest())}
    return make_bundle(messageSignature={"messageDigest": digest, "signature": encode(sign(key, message))})


def push_bundle(registry: RegistryServer, digest: str, bundle: object, **changes: object) -> str:
    """Push a bundle that refers to a manifest, and return the digest of its own manifest."""
    content = bundle if isinstance(bundle, bytes) else json.dumps(bundle).encode()
    registry.blobs[compute_digest(content)] = content
    layer = {"mediaType": BUNDLE, "digest": compute_digest(content), "size": len(content)}
    subject = {"mediaType": MANIFEST, "digest": digest}
    manifest = {"mediaType": MANIFEST, "artifactType": BUNDLE, "layers": [layer], "subject": subject, **changes}
    bundle_digest = registry.push_manifest("team/app", "unused", manifest)
    registry.manifests.pop(("team/app", "unused"))
    return bundle_digest


def push_referrers_tag(registry: RegistryServer, digest: str, *manifests: str) -> None:
    """Push the index that cosign writes into registries without the API for referrers."""
    registry.has_referrers = False
    descriptors = [describe_manifest(registry.manifests["team/app", manifest]) for manifest in manifests]
    index = {"mediaType": INDEX, "manifests": descriptors}
    registry.push_manifest("team/app", digest.replace(":", "-"), index)


@pytest.fixture
def key(keys: Path) -> ec.EllipticCurvePrivateKey:
    """Return a key that the Repository accepts."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(keys, key)
    return key


@pytest.mark.parametrize("has_referrers", [True, False])
@pytest.mark.parametrize("content", ["statement", "message"])
@pytest.mark.parametrize(
    "signer",
    [
        pytest.param(ec.generate_private_key(ec.SECP256R1()), id="ecdsa"),
        pytest.param(ed25519.Ed25519PrivateKey.generate(), id="ed25519"),
        pytest.param(rsa.generate_private_key(65_537, 2_048), id="rsa"),
    ],
)
def test_signed_artifact(
    signer: PrivateKey, content: str, has_referrers: bool, keys: Path, world: World, registry: RegistryServer
) -> None:
    write_key(keys, signer)
    digest = registry.push("team/app", "v1", APP)
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == "SignatureMissing"

    manifest = registry.manifests["team/app", digest]
    is_message = content == "message"
    bundle = make_message_bundle(signer, manifest) if is_message else make_statement_bundle(signer, digest)
    bundle_digest = push_bundle(registry, digest, bundle)
    if not has_referrers:
        push_referrers_tag(registry, digest, bundle_digest)
    world.now += 400

    assert read_code(world, repository, version) == ""
    registry.paths  # noqa: B018  forgets the requests
    world.restart()
    assert read_code(world, repository, version) == ""
    assert registry.paths == []


def list_wrong_bundles(
    key: PrivateKey, other_key: PrivateKey, digest: str, other: str, manifest: bytes
) -> Mapping[str, object]:
    right = make_statement_bundle(key, digest)
    envelope = right["dsseEnvelope"]
    other_envelope = make_envelope(other_key, make_statement(digest))
    repeated = make_statement(digest).replace(b'"subject"', b'"subject": [], "subject"', 1)
    signed_without_header = {**envelope, "signatures": [{"sig": encode(sign(key, make_statement(digest)))}]}
    return {
        "another key": make_bundle(dsseEnvelope=other_envelope),
        "another digest": make_statement_bundle(key, other),
        "another purpose": make_statement_bundle(key, digest, predicateType="https://slsa.dev/provenance/v1"),
        "no purpose": make_statement_bundle(key, digest, predicateType=None),
        "another statement": make_statement_bundle(key, digest, _type="https://example.com/Statement"),
        "no subject": make_statement_bundle(key, digest, subject=[]),
        "subject without a digest": make_statement_bundle(key, digest, subject=[{"name": digest}]),
        "several subjects": make_statement_bundle(
            key, digest, subject=json.loads(make_statement(digest))["subject"] * 2
        ),
        "repeated field": make_bundle(dsseEnvelope=make_envelope(key, repeated)),
        "another payload type": make_bundle(dsseEnvelope=make_envelope(key, make_statement(digest), "text/plain")),
        "payload type that is not signed": make_bundle(
            dsseEnvelope={**make_envelope(key, make_statement(digest), "text/plain"), "payloadType": IN_TOTO}
        ),
        "payload without a header": make_bundle(dsseEnvelope=signed_without_header),
        "another payload": make_bundle(dsseEnvelope={**envelope, "payload": encode(make_statement(digest) + b" ")}),
        "no signature": make_bundle(dsseEnvelope={**envelope, "signatures": []}),
        "several signatures": make_bundle(
            dsseEnvelope={**envelope, "signatures": [*other_envelope["signatures"], *envelope["signatures"]]}
        ),
        "signature that is not base64": make_bundle(dsseEnvelope={**envelope, "signatures": [{"sig": "not base64!"}]}),
        "signature that is a number": make_bundle(dsseEnvelope={**envelope, "signatures": [{"sig": 1}]}),
        "another message": make_message_bundle(key, manifest + b" "),
        "digest as the message": make_message_bundle(key, digest.encode()),
        "message of another key": make_message_bundle(other_key, manifest),
        "no content": make_bundle(),
        "another version": {**right, "mediaType": "application/vnd.dev.sigstore.bundle+json;version=0.1"},
        "no material": {**right, "verificationMaterial": None},
        "list": [right],
        "no JSON": b"{",
        "deeply nested": b"[" * 100_000,
    }


@pytest.mark.slow
def test_wrong_bundles(key: PrivateKey, world: World, registry: RegistryServer) -> None:
    """A wrong bundle is not valid, and does not change the result for a valid one."""
    digest, other = registry.push("team/app", "v1", APP), registry.push("team/app", "v2", OTHER)
    manifest, other_key = registry.manifests["team/app", digest], ec.generate_private_key(ec.SECP256R1())
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    before = dict(registry.manifests)
    for name, bundle in list_wrong_bundles(key, other_key, digest, other, manifest).items():
        registry.manifests = dict(before)
        push_bundle(registry, digest, bundle)
        world.now += 400
        assert read_code(world, repository, version) == "SignatureInvalid", name
        push_bundle(registry, digest, make_statement_bundle(key, digest), annotations={"n": name})
        world.now += 400
        assert read_code(world, repository, version) == "", name
        # The cache contains the positive result.
        rmtree(world.folder)
        world.restart()


@pytest.mark.parametrize(
    "changes",
    [
        pytest.param({"artifactType": "application/spdx+json"}, id="another-type"),
        pytest.param({"annotations": {"dev.sigstore.bundle.predicateType": "https://cyclonedx.org/bom"}}, id="purpose"),
    ],
)
def test_other_referrers_are_not_read(
    changes: dict[str, object], key: PrivateKey, world: World, registry: RegistryServer
) -> None:
    digest = registry.push("team/app", "v1", APP)
    other = push_bundle(registry, digest, make_statement_bundle(key, digest), **changes)
    version = ArtifactVersion("v1", digest)
    assert read_code(world, oci_repository(registry, verify=COSIGN), version) == "SignatureMissing"
    assert not [path for path in registry.paths if other in path]


@pytest.mark.parametrize(
    "layers",
    [
        pytest.param([], id="no-layer"),
        pytest.param(None, id="no-list"),
        pytest.param([{"mediaType": "text/plain", "digest": compute_digest(APP)}], id="another-type"),
        pytest.param([{"mediaType": BUNDLE, "digest": "sha512:00"}], id="another-digest"),
        pytest.param([{"mediaType": BUNDLE, "digest": compute_digest(b"missing")}], id="missing-blob"),
        pytest.param([{"mediaType": BUNDLE, "digest": compute_digest(b"x" * 2_000_000)}], id="large-blob"),
        pytest.param([{"mediaType": BUNDLE, "digest": compute_digest(APP)}] * 2, id="two-layers"),
    ],
)
def test_unreadable_bundle(layers: object, key: PrivateKey, world: World, registry: RegistryServer) -> None:
    registry.blobs[compute_digest(b"x" * 2_000_000)] = b"x" * 2_000_000
    digest = registry.push("team/app", "v1", APP)
    push_bundle(registry, digest, {}, layers=layers)
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == "SignatureInvalid"
    push_bundle(registry, digest, make_statement_bundle(key, digest))
    world.now += 400
    assert read_code(world, repository, version) == ""


def test_number_of_bundles_is_limited(key: PrivateKey, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    registry.page_size = 7
    for number in range(30):
        push_bundle(registry, digest, {}, annotations={"n": str(number)})
    push_bundle(registry, digest, make_statement_bundle(key, digest))
    version = ArtifactVersion("v1", digest)
    assert read_code(world, oci_repository(registry, verify=COSIGN), version) == "SignatureInvalid"
    assert len([path for path in registry.paths if "/manifests/sha256:" in path]) == 20


def test_pages_of_referrers(key: PrivateKey, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    registry.page_size = 2
    for number in range(5):
        push_bundle(registry, digest, {}, annotations={"n": str(number)})
    push_bundle(registry, digest, make_statement_bundle(key, digest))
    assert read_code(world, oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)) == ""


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(Answer(400), id="400"),
        pytest.param(Answer(401), id="401"),
        pytest.param(Answer(405), id="405"),
        pytest.param(Answer(200, {}, b"<html>"), id="web-page"),
        pytest.param(Answer(200, {}, b"{}"), id="no-list"),
        pytest.param(Answer(200, {}, b'{"manifests": [1, null, {"digest": 5}]}'), id="no-descriptors"),
    ],
)
def test_registry_without_referrers(answer: Answer, key: PrivateKey, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    push_referrers_tag(registry, digest, push_bundle(registry, digest, make_statement_bundle(key, digest)))
    registry.overrides["/referrers/"] = answer
    expected = "" if b"null" not in answer.body else "SignatureMissing"
    version = ArtifactVersion("v1", digest)
    assert read_code(world, oci_repository(registry, verify=COSIGN), version) == expected


def test_unreachable_registry_is_no_invalid_signature(key: PrivateKey, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    push_bundle(registry, digest, make_statement_bundle(key, digest))
    registry.overrides["/referrers/"] = Answer(503)
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == "SourceUnreachable"
    registry.overrides.clear()
    world.now += 400
    assert read_code(world, repository, version) == ""


def test_wrong_signature_with_a_tag_and_a_valid_bundle(key: PrivateKey, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    push_signatures(registry, digest, make_layer(registry, ec.generate_private_key(ec.SECP256R1()), digest))
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == "SignatureInvalid"
    push_bundle(registry, digest, make_statement_bundle(key, digest))
    world.now += 400
    assert read_code(world, repository, version) == ""


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        pytest.param({}, "not made with a key of the Secret", id="key"),
        pytest.param(
            {"verificationMaterial": {"certificate": {}}}, "`verify` has no `matchOIDCIdentity`", id="keyless"
        ),
        pytest.param({"mediaType": "text/plain"}, "Sigstore bundle is not valid", id="bundle"),
    ],
)
def test_messages(
    changes: dict[str, object], message: str, key: PrivateKey, world: World, registry: RegistryServer
) -> None:
    digest = registry.push("team/app", "v1", APP)
    bundle = make_statement_bundle(ec.generate_private_key(ec.SECP256R1()), digest)
    push_bundle(registry, digest, {**bundle, **changes})
    problem = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", ArtifactVersion("v1", digest))
    assert isinstance(problem, SourceProblem)
    assert message in problem.message
    assert problem.code == "SignatureInvalid"


def sign_keyless(
    sigstore: Sigstore, registry: RegistryServer, digest: str, kind: str, **changes: str
) -> dict[str, Any]:
    """Return a bundle with a keyless signature of a manifest. `changes` are `subject`, `issuer` and the predicate."""
    signer = changes.pop("subject", SUBJECT), changes.pop("issuer", ISSUER)
    if kind == "statement":
        return sigstore.sign_statement_bundle(make_statement(digest, **changes), *signer)
    return sigstore.sign_message_bundle(registry.manifests["team/app", digest], *signer)


@pytest.mark.parametrize("kind", ["statement", "message"])
def test_keyless_bundle(kind: str, sigstore: Sigstore, world: World, registry: RegistryServer) -> None:
    """The program cosign verifies the bundle without a network. The result is stored."""
    digest = registry.push("team/app", "v1", APP)
    repository, version = oci_repository(registry, verify=KEYLESS), ArtifactVersion("v1", digest)
    push_bundle(registry, digest, sign_keyless(sigstore, registry, digest, kind))
    assert read_code(world, repository, version) == ""
    world.restart()
    registry.requests.clear()
    assert read_code(world, repository, version) == ""
    assert registry.requests == []


@pytest.mark.slow
@pytest.mark.parametrize("kind", ["statement", "message"])
def test_wrong_keyless_bundles(kind: str, sigstore: Sigstore, world: World, registry: RegistryServer) -> None:
    digest, other_digest = registry.push("team/app", "v1", APP), registry.push("team/app", "v2", OTHER)
    repository = oci_repository(registry, verify=replace(KEYLESS, identities=KEYLESS.identities[1:]))
    right = sign_keyless(sigstore, registry, digest, kind)
    other = sign_keyless(sigstore, registry, other_digest, kind)
    content = "dsseEnvelope" if kind == "statement" else "messageSignature"
    wrong = {
        "subject": sign_keyless(sigstore, registry, digest, kind, subject="robot@example.com.evil"),
        "issuer": sign_keyless(sigstore, registry, digest, kind, issuer="https://issuer.example.com.evil"),
        "authority": sign_keyless(Sigstore(), registry, digest, kind),
        "another artifact": other,
        "signature of another artifact": {**right, content: other[content]},
        "certificate": {**right, "verificationMaterial": other["verificationMaterial"]},
        "no log": {**right, "verificationMaterial": {**right["verificationMaterial"], "tlogEntries": []}},
    }
    for name, bundle in wrong.items():
        pushed = push_bundle(registry, digest, bundle)
        world.now += 400
        assert read_code(world, repository, ArtifactVersion("v1", digest)) == "SignatureInvalid", name
        registry.manifests.pop(("team/app", pushed))


def test_keyless_attestation_is_no_signature(sigstore: Sigstore, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    bundle = sign_keyless(sigstore, registry, digest, "statement", predicateType="https://cyclonedx.org/bom")
    push_bundle(registry, digest, bundle)
    version = ArtifactVersion("v1", digest)
    assert read_code(world, oci_repository(registry, verify=KEYLESS), version) == "SignatureInvalid"
