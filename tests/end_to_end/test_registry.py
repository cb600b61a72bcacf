"""A real OCI registry on this machine: charts that helm pushes, and signatures that cosign makes."""

from __future__ import annotations

import os
import socket
import subprocess
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from reconciler.bootstrap.sources import build_artifacts
from reconciler.packages.artifacts import (
    Artifact,
    ArtifactRepository,
    ResolvedTag,
    SourceProblem,
    VerifySpec,
    VersionList,
)
from reconciler.settings import Settings
from reconciler.settings.sources import SourceSettings
from reconciler.sources.artifacts import Artifacts
from tests.support.archives import pack
from tests.support.programs import chart_folder, find_program

pytestmark = pytest.mark.slow

CONFIG = """
version: 0.1
log: {{level: error}}
storage: {{filesystem: {{rootdirectory: {folder}}}}}
http: {{addr: 127.0.0.1:{port}}}
"""
START_SECONDS = 30


@pytest.fixture
def registry(tmp_path: Path) -> Iterator[str]:
    """Run docker-registry, and yield its host and port."""
    program = find_program("docker-registry")
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        port = unused.getsockname()[1]
    config = tmp_path / "registry.yml"
    config.write_text(CONFIG.format(folder=tmp_path / "registry", port=port))
    process = subprocess.Popen([program, "serve", str(config)], stderr=subprocess.DEVNULL, stdout=subprocess.DEVNULL)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _responds(port):
            assert process.poll() is None, "the registry has ended"
            assert time.monotonic() < deadline, "the registry does not respond"
            time.sleep(0.05)
        yield f"127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait()


def _responds(port: int) -> bool:
    try:
        return httpx.get(f"http://127.0.0.1:{port}/v2/").status_code == 200
    except httpx.TransportError:
        return False


@pytest.fixture
def artifacts(tmp_path: Path) -> Iterator[Artifacts]:
    sources = SourceSettings(poll_seconds=0, secrets_directory=str(tmp_path / "secrets"))
    artifacts = build_artifacts(Settings(cache=str(tmp_path / "cache"), sources=sources))
    yield artifacts
    artifacts.close()


def run(folder: Path, *command: str) -> None:
    environment = {"PATH": os.environ["PATH"], "HOME": str(folder), "COSIGN_PASSWORD": ""}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


def package_chart(folder: Path, seconds: int) -> Path:
    """Package a chart with helm, and let its archive have another time."""
    run(folder, find_program("helm"), "package", str(chart_folder("metrics-server")))
    [packed] = folder.glob("metrics-server-*.tgz")
    with tarfile.open(packed) as source:
        entries = [(entry, source.extractfile(entry)) for entry in source.getmembers()]
        contents = [(entry, content.read() if content else b"") for entry, content in entries]
    for entry, _ in contents:
        entry.mtime = seconds
    packed.write_bytes(pack(contents))
    return packed


def push_chart(folder: Path, registry: str, seconds: int = 0) -> None:
    archive = package_chart(folder, seconds)
    run(folder, find_program("helm"), "push", "--plain-http", str(archive), f"oci://{registry}/charts")


def find_version(artifacts: Artifacts, repository: ArtifactRepository) -> ResolvedTag:
    versions = artifacts.list_versions(repository, "metrics-server")
    assert isinstance(versions, VersionList), versions
    resolved = artifacts.find_tag(repository, "metrics-server", versions.versions[0].version)
    assert isinstance(resolved, ResolvedTag), resolved
    return resolved


def test_chart_that_helm_pushes(tmp_path: Path, registry: str, artifacts: Artifacts) -> None:
    """A chart that is packed and pushed twice has another digest and equal files (scenario 22)."""
    repository = ArtifactRepository("default", "charts", "helm", f"oci://{registry}/charts", insecure=True)
    contents = []
    for seconds in (1, 2):
        folder = tmp_path / str(seconds)
        folder.mkdir()
        push_chart(folder, registry, seconds)
        version = find_version(artifacts, repository).version
        artifact = artifacts.read(repository, "metrics-server", version)
        assert isinstance(artifact, Artifact), artifact
        assert "Chart.yaml" in artifact.files
        assert version.created_seconds > 0
        contents.append((version.digest, artifact.files.id))
    assert contents[0][0] != contents[1][0]
    assert contents[0][1] == contents[1][1]


@pytest.mark.parametrize("is_bundle", [True, False])
def test_signature_that_cosign_makes(is_bundle: bool, tmp_path: Path, registry: str, artifacts: Artifacts) -> None:
    cosign = find_program("cosign")
    push_chart(tmp_path, registry)
    keys = tmp_path / "secrets/default/keys"
    keys.mkdir(parents=True)
    run(keys, cosign, "generate-key-pair")
    verify = VerifySpec("cosign", "keys")
    repository = ArtifactRepository(
        "default", "charts", "helm", f"oci://{registry}/charts", insecure=True, verify=verify
    )
    version = find_version(artifacts, repository).version
    unsigned = artifacts.read(repository, "metrics-server", version)
    assert isinstance(unsigned, SourceProblem)
    assert unsigned.code == "SignatureMissing"

    options = (
        "--tlog-upload=false",
        f"--new-bundle-format={str(is_bundle).lower()}",
        "--use-signing-config=false",
        "--allow-http-registry",
    )
    image = f"{registry}/charts/metrics-server@{version.digest}"
    if is_bundle:
        # An attestation with the same key does not approve the artifact.
        (keys / "predicate.json").write_text("{}")
        run(keys, cosign, "attest", "--yes", "--key", "cosign.key", "--predicate", "predicate.json", *options, image)
        attested = artifacts.read(repository, "metrics-server", version)
        assert getattr(attested, "code", "") in {"SignatureMissing", "SignatureInvalid"}
    run(keys, cosign, "sign", "--yes", "--key", "cosign.key", *options, image)
    (keys / "cosign.key").unlink()
    settings = Settings(
        cache=str(tmp_path / "other"), sources=SourceSettings(secrets_directory=str(tmp_path / "secrets"))
    )
    reader = build_artifacts(settings)
    assert isinstance(reader.read(repository, "metrics-server", version), Artifact)
    run(keys, cosign, "generate-key-pair")
    wrong_key = reader.read(repository, "metrics-server", version)
    reader.close()
    assert isinstance(wrong_key, SourceProblem)
    assert wrong_key.code == "SignatureInvalid"
