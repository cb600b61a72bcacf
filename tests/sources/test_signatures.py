"""Signatures of OCI artifacts by cosign, and provenance files of charts."""

from __future__ import annotations

import base64
import json
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec, ed25519, padding, rsa

from reconciler.packages.artifacts import (
    Artifact,
    ArtifactRepository,
    ArtifactVersion,
    SignerIdentity,
    SourceProblem,
    VerifySpec,
    VersionList,
)
from reconciler.sources.credentials import SourceCredentials
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import (
    ArtifactServer,
    RegistryServer,
    compute_digest,
    helm_repository,
    oci_repository,
)
from tests.support.programs import find_program
from tests.support.signing_keys import gpg_key
from tests.support.sigstore import Sigstore

APP = pack_files({"a.yaml": "a: 1\n"})
OTHER = pack_files({"b.yaml": "b: 1\n"})
WEB = pack_chart("web", "1.0.0")
PAYLOAD_TYPE = "application/vnd.dev.cosign.simplesigning.v1+json"
COSIGN = VerifySpec("cosign", "keys")

PrivateKey = ec.EllipticCurvePrivateKey | ed25519.Ed25519PrivateKey | rsa.RSAPrivateKey


def sign(key: PrivateKey, payload: bytes) -> bytes:
    if isinstance(key, rsa.RSAPrivateKey):
        return key.sign(payload, padding.PKCS1v15(), hashes.SHA256())
    if isinstance(key, ec.EllipticCurvePrivateKey):
        return key.sign(payload, ec.ECDSA(hashes.SHA256()))
    return key.sign(payload)


def make_payload(digest: str, **changes: Any) -> bytes:
    image = {"docker-manifest-digest": digest}
    critical = {"identity": {"docker-reference": "x"}, "image": image, "type": "cosign container image signature"}
    return json.dumps({"critical": {**critical, **changes}, "optional": None}).encode()


def make_layer(registry: RegistryServer, key: PrivateKey, digest: str, **changes: Any) -> dict[str, Any]:
    """Store a signed text in the registry, and return its layer."""
    payload = make_payload(digest, **changes)
    registry.blobs[compute_digest(payload)] = payload
    signature = base64.b64encode(sign(key, payload)).decode()
    return {
        "mediaType": PAYLOAD_TYPE, "digest": compute_digest(payload), "size": len(payload),
        "annotations": {"dev.cosignproject.cosign/signature": signature},
    }  # fmt: skip


def push_signatures(registry: RegistryServer, digest: str, *layers: object, name: str = "team/app") -> None:
    registry.push_manifest(name, f"{digest.replace(':', '-')}.sig", {"layers": layers})


def write_key(folder: Path, key: PrivateKey, name: str = "cosign.pub") -> None:
    pem = key.public_key().public_bytes(serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo)
    secret = folder / "default/keys"
    secret.mkdir(parents=True, exist_ok=True)
    (secret / name).write_bytes(pem)


@pytest.fixture
def keys(tmp_path: Path, world: World) -> Path:
    """Let the reader use the Secrets of this folder."""
    world.credentials = SourceCredentials(secrets_directory=str(tmp_path))
    world.restart()
    return tmp_path


def read_code(world: World, repository: ArtifactRepository, version: ArtifactVersion, name: str = "app") -> str:
    """Return the code of the problem. Return "" if the artifact was read."""
    result = world.artifacts.read(repository, name, version)
    return result.code if isinstance(result, SourceProblem) else ""


@pytest.mark.parametrize(
    "key",
    [
        pytest.param(ec.generate_private_key(ec.SECP256R1()), id="ecdsa"),
        pytest.param(ed25519.Ed25519PrivateKey.generate(), id="ed25519"),
        pytest.param(rsa.generate_private_key(65_537, 2_048), id="rsa"),
    ],
)
def test_signed_artifact(key: PrivateKey, keys: Path, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    write_key(keys, ec.generate_private_key(ec.SECP256R1()), "a-other.pub")
    write_key(keys, key)
    repository = oci_repository(registry, verify=COSIGN)
    assert read_code(world, repository, ArtifactVersion("v1", digest)) == "SignatureMissing"
    push_signatures(registry, digest, make_layer(registry, key, digest))
    world.now += 10
    assert read_code(world, repository, ArtifactVersion("v1", digest)) == ""


def test_manifest_without_a_signature(keys: Path, world: World, registry: RegistryServer) -> None:
    write_key(keys, ec.generate_private_key(ec.SECP256R1()))
    digest = registry.push("team/app", "v1", APP)
    push_signatures(registry, digest)

    result = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", ArtifactVersion("v1", digest))

    assert isinstance(result, SourceProblem)
    assert result.code == "SignatureInvalid"
    assert result.message.endswith("the manifest with the tag for signatures contains no signature")


def test_signature_must_be_valid(keys: Path, world: World, registry: RegistryServer) -> None:
    """An unsigned artifact, one signed by another key, and a valid signature of another digest (scenario 27)."""
    key, other_key = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))
    write_key(keys, key)
    digest, other = registry.push("team/app", "v1", APP), registry.push("team/app", "v2", OTHER)
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    right = make_layer(registry, key, digest)
    wrong_layers: list[list[object]] = [
        [],
        [make_layer(registry, other_key, digest)],
        [make_layer(registry, key, other)],
        [make_layer(registry, key, digest, type="another statement")],
        [make_layer(registry, key, digest, image={})],
        [{**right, "mediaType": "application/json"}],
        [{**right, "annotations": {}}],
        [{**right, "annotations": {"dev.cosignproject.cosign/signature": "not base64!"}}],
        [{**right, "annotations": {"dev.cosignproject.cosign/signature": "AAAA"}}],
        ["text", 5, None],
    ]
    for layers in wrong_layers:
        world.now += 400
        push_signatures(registry, digest, *layers)
        assert read_code(world, repository, version) == "SignatureInvalid", layers
    push_signatures(registry, digest, *(layer for layers in wrong_layers for layer in layers), right)
    world.now += 400
    assert read_code(world, repository, version) == ""


def test_message_names_the_signed_digest(keys: Path, world: World, registry: RegistryServer) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(keys, key)
    digest, other = registry.push("team/app", "v1", APP), registry.push("team/app", "v2", OTHER)
    push_signatures(registry, digest, make_layer(registry, key, other))
    problem = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", ArtifactVersion("v1", digest))
    assert isinstance(problem, SourceProblem)
    assert f"@{digest} is not valid: it is for {other}" in problem.message


def test_payload_with_a_repeated_key(keys: Path, world: World, registry: RegistryServer) -> None:
    """Parsers disagree about a repeated key, so that one of them would read another digest."""
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(keys, key)
    digest = registry.push("team/app", "v1", APP)
    text = '{"critical": {"type": "cosign container image signature", "image": {"docker-manifest-digest": "x", '
    payload = f'{text}"docker-manifest-digest": "{digest}"}}}}}}'.encode()
    registry.blobs[compute_digest(payload)] = payload
    annotations = {"dev.cosignproject.cosign/signature": base64.b64encode(sign(key, payload)).decode()}
    layer = {"mediaType": PAYLOAD_TYPE, "digest": compute_digest(payload), "annotations": annotations}
    push_signatures(registry, digest, layer)
    assert (
        read_code(world, oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)) == "SignatureInvalid"
    )


def test_result_is_stored_for_the_same_keys(keys: Path, world: World, registry: RegistryServer) -> None:
    key = ec.generate_private_key(ec.SECP256R1())
    write_key(keys, key)
    digest = registry.push("team/app", "v1", APP)
    push_signatures(registry, digest, make_layer(registry, key, digest))
    repository, version = oci_repository(registry, verify=COSIGN), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == ""
    registry.paths  # noqa: B018  forgets the requests
    world.restart()
    world.now += 1_000_000
    assert read_code(world, repository, version) == ""
    assert registry.paths == []
    write_key(keys, ec.generate_private_key(ec.SECP256R1()))
    assert read_code(world, repository, version) == "SignatureInvalid"


def test_unpacked_artifact_of_another_repository_is_verified(
    keys: Path, world: World, registry: RegistryServer
) -> None:
    write_key(keys, ec.generate_private_key(ec.SECP256R1()))
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    assert read_code(world, oci_repository(registry), version) == ""
    assert read_code(world, oci_repository(registry, verify=COSIGN), version) == "SignatureMissing"


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, r"must contain a key \*.pub", id="no-key"),
        pytest.param(b"text", "cosign.pub is not a public key in PEM format", id="no-pem"),
    ],
)
def test_unusable_keys(content: bytes | None, message: str, keys: Path, world: World, registry: RegistryServer) -> None:
    (keys / "default/keys").mkdir(parents=True)
    if content:
        (keys / "default/keys/cosign.pub").write_bytes(content)
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    problem = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", version)
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SignatureInvalid"
    assert re.search(message, problem.message), problem.message


def test_short_rsa_key(keys: Path, world: World, registry: RegistryServer) -> None:
    write_key(keys, rsa.generate_private_key(65_537, 1_024))
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    problem = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", version)
    assert isinstance(problem, SourceProblem)
    assert "must have at least 2048 bits, but has 1024" in problem.message


def test_missing_cryptography(
    keys: Path, world: World, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_key(keys, ec.generate_private_key(ec.SECP256R1()))
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    monkeypatch.setitem(sys.modules, "cryptography.exceptions", None)
    problem = world.artifacts.read(oci_repository(registry, verify=COSIGN), "app", version)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "pip install 'reconciler[verify]'" in problem.message) == ("VerifierUnavailable", True)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(VerifySpec("provenance", "keys"), id="provenance-in-a-registry"),
        pytest.param(VerifySpec("cosign", "", (SignerIdentity("https://issuer.example", "me"),)), id="no-trusted-root"),
    ],
)
def test_verifications_that_are_not_possible(spec: VerifySpec, world: World, registry: RegistryServer) -> None:
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    assert read_code(world, oci_repository(registry, verify=spec), version) == "VerifierUnavailable"


@pytest.fixture(scope="module")
def gpg_folder() -> Iterator[Path]:
    find_program("gpgv")
    with gpg_key() as (home, _):
        yield home


def sign_provenance(home: Path, files: dict[str, str]) -> bytes:
    text = "name: web\nversion: 1.0.0\n\n...\nfiles:\n" + "".join(
        f"  {name}: {digest}\n" for name, digest in files.items()
    )
    command = ["gpg", "--homedir", str(home), "--batch", "--quiet", "--passphrase", "", "--clearsign"]
    return subprocess.run(command, input=text.encode(), capture_output=True, check=True).stdout


def export_key(home: Path, *options: str) -> bytes:
    return subprocess.run(["gpg", "--homedir", str(home), "--export", *options], capture_output=True, check=True).stdout


def read_chart(world: World, charts: ArtifactServer) -> Artifact | SourceProblem:
    repository = helm_repository(charts, verify=VerifySpec("provenance", "keys"))
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    return world.artifacts.read(repository, "web", versions.versions[0])


@pytest.mark.parametrize("suffix", [".gpg", ".asc"])
def test_provenance_file(suffix: str, gpg_folder: Path, keys: Path, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    secret = keys / "default/keys"
    secret.mkdir(parents=True)
    (secret / f"key{suffix}").write_bytes(export_key(gpg_folder, *(["--armor"] if suffix == ".asc" else [])))
    missing = read_chart(world, charts)
    assert isinstance(missing, SourceProblem)
    assert missing.code == "SignatureMissing"

    world.now += 400
    signed = sign_provenance(gpg_folder, {"web-1.0.0.tgz": compute_digest(WEB)})
    charts.files["/charts/web-1.0.0.tgz.prov"] = signed
    assert isinstance(read_chart(world, charts), Artifact)
    charts.paths  # noqa: B018  forgets the requests
    world.restart()
    assert isinstance(read_chart(world, charts), Artifact)
    assert charts.paths == []


def test_wrong_provenance_files(gpg_folder: Path, keys: Path, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    secret = keys / "default/keys"
    secret.mkdir(parents=True)
    (secret / "key.gpg").write_bytes(export_key(gpg_folder))
    right = sign_provenance(gpg_folder, {"web-1.0.0.tgz": compute_digest(WEB)})
    digest = compute_digest(WEB).encode()
    for name, content in {
        "another archive": sign_provenance(gpg_folder, {"web-1.0.0.tgz": compute_digest(APP)}),
        "an older version": sign_provenance(gpg_folder, {"web-0.9.0.tgz": compute_digest(WEB)}),
        "no files": sign_provenance(gpg_folder, {}),
        "changed text": right.replace(b"name: web", b"name: wab"),
        "no signature": b"...\nfiles:\n  web-1.0.0.tgz: " + digest,
        "text before the signed text": b"...\nfiles:\n  web-1.0.0.tgz: " + digest + b"\n\n"
        + sign_provenance(gpg_folder, {"web-1.0.0.tgz": compute_digest(APP)}),
    }.items():  # fmt: skip
        charts.files["/charts/web-1.0.0.tgz.prov"] = content
        world.now += 400
        problem = read_chart(world, charts)
        assert isinstance(problem, SourceProblem), name
        assert problem.code == "SignatureInvalid", name


def test_key_of_another_person(gpg_folder: Path, keys: Path, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    charts.files["/charts/web-1.0.0.tgz.prov"] = sign_provenance(gpg_folder, {"web-1.0.0.tgz": compute_digest(WEB)})
    secret = keys / "default/keys"
    secret.mkdir(parents=True)
    with gpg_key() as (home, _):
        (secret / "key.gpg").write_bytes(export_key(home))
    problem = read_chart(world, charts)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "gpgv does not accept" in problem.message) == ("SignatureInvalid", True)
    (secret / "key.gpg").write_bytes(b"text")
    assert isinstance(read_chart(world, charts), SourceProblem)


def test_missing_gpgv(tmp_path: Path, keys: Path, world: World, charts: ArtifactServer) -> None:
    world.programs["gpgv"] = tmp_path / "gpgv"
    world.restart()
    charts.add_chart("web", "1.0.0", WEB)
    charts.files["/charts/web-1.0.0.tgz.prov"] = b"text"
    secret = keys / "default/keys"
    secret.mkdir(parents=True)
    (secret / "key.gpg").write_bytes(b"key")
    problem = read_chart(world, charts)
    assert isinstance(problem, SourceProblem)
    assert problem.code == "VerifierUnavailable"
    assert f"the program gpgv, which is not at {tmp_path}/gpgv. Install it: install gpgv" in problem.message


def test_cosign_in_a_chart_repository(keys: Path, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    repository = helm_repository(charts, verify=COSIGN)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    assert read_code(world, repository, versions.versions[0], "web") == "VerifierUnavailable"


SUBJECT, ISSUER = "robot@example.com", "https://issuer.example.com"
KEYLESS = VerifySpec(
    "cosign", "", (SignerIdentity("^https://other$", "^x$"), SignerIdentity(f"^{ISSUER}$", f"^{SUBJECT}$"))
)


@pytest.fixture
def sigstore(tmp_path: Path, world: World) -> Sigstore:
    """Let the reader trust a new authority, and run the program cosign."""
    sigstore = Sigstore()
    world.programs["cosign"] = Path(find_program("cosign"))
    world.trusted_root = str(tmp_path / "trusted_root.json")
    (tmp_path / "trusted_root.json").write_bytes(sigstore.trusted_root())
    world.restart()
    return sigstore


def push_keyless(registry: RegistryServer, sigstore: Sigstore, digest: str, payload: bytes, **changes: str) -> None:
    """Push a keyless signature of a payload. `changes` are the fields `subject` and `issuer`, and annotations."""
    subject, issuer = changes.pop("subject", SUBJECT), changes.pop("issuer", ISSUER)
    annotations = {**sigstore.sign(payload, subject, issuer), **changes}
    registry.blobs[compute_digest(payload)] = payload
    layer = {"mediaType": PAYLOAD_TYPE, "digest": compute_digest(payload), "annotations": annotations}
    push_signatures(registry, digest, layer)


def test_keyless_signature(sigstore: Sigstore, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    repository, version = oci_repository(registry, verify=KEYLESS), ArtifactVersion("v1", digest)
    assert read_code(world, repository, version) == "SignatureMissing"
    push_keyless(registry, sigstore, digest, make_payload(digest))
    world.now += 400
    assert read_code(world, repository, version) == ""
    world.restart()
    registry.paths  # noqa: B018  forgets the requests
    assert read_code(world, repository, version) == ""
    assert registry.paths == []


def test_wrong_keyless_signatures(sigstore: Sigstore, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    repository, version = (
        oci_repository(registry, verify=replace(KEYLESS, identities=KEYLESS.identities[1:])),
        ArtifactVersion("v1", digest),
    )
    other_signature = Sigstore().sign(make_payload(digest), SUBJECT, ISSUER)
    wrong: dict[str, dict[str, str]] = {
        "subject": {"subject": "robot@example.com.evil"},
        "issuer": {"issuer": "https://issuer.example.com.evil"},
        "authority": other_signature,
        "log": {"dev.sigstore.cosign/bundle": other_signature["dev.sigstore.cosign/bundle"]},
        "no log": {"dev.sigstore.cosign/bundle": ""},
        "no certificate": {"dev.sigstore.cosign/certificate": ""},
        "signature": {"dev.cosignproject.cosign/signature": other_signature["dev.cosignproject.cosign/signature"]},
    }
    for name, changes in wrong.items():
        push_keyless(registry, sigstore, digest, make_payload(digest), **changes)
        world.now += 400
        assert read_code(world, repository, version) == "SignatureInvalid", name
    push_keyless(registry, sigstore, digest, make_payload(registry.push("team/app", "v2", OTHER)))
    world.now += 400
    assert read_code(world, repository, version) == "SignatureInvalid"


def test_missing_cosign(tmp_path: Path, world: World, registry: RegistryServer) -> None:
    world.programs["cosign"] = tmp_path / "cosign"
    world.trusted_root = str(tmp_path / "trusted_root.json")
    sigstore = Sigstore()
    digest = registry.push("team/app", "v1", APP)
    push_keyless(registry, sigstore, digest, make_payload(digest))
    for message in ("cannot be read", "Install it: install cosign"):
        world.restart()
        problem = world.artifacts.read(oci_repository(registry, verify=KEYLESS), "app", ArtifactVersion("v1", digest))
        assert isinstance(problem, SourceProblem)
        assert (problem.code, message in problem.message) == ("VerifierUnavailable", True), problem.message
        (tmp_path / "trusted_root.json").write_bytes(sigstore.trusted_root())
