"""Artifacts of an OCI registry: tags, digests, layers, authentication and failures."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from reconciler.packages.artifacts import Artifact, ArtifactVersion, ResolvedTag, SourceProblem, VersionList
from reconciler.sources.limits import SourceLimits
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import (
    CHART_LAYER,
    FLUX_LAYER,
    INDEX,
    MANIFEST,
    Answer,
    RegistryServer,
    compute_digest,
    helm_repository,
    oci_repository,
)

FILES = {"deploy.yaml": "kind: Deployment\n", "docs/readme.md": "text\n"}
APP = pack_files(FILES)


def read(
    world: World, registry: RegistryServer, version: ArtifactVersion, **fields: object
) -> Artifact | SourceProblem:
    return world.artifacts.read(oci_repository(registry, **fields), "app", version)


def read_code(world: World, registry: RegistryServer, digest: str, **fields: object) -> str:
    result = read(world, registry, ArtifactVersion("1", digest), **fields)
    assert isinstance(result, SourceProblem), result
    return result.code


def test_tag_and_files(world: World, registry: RegistryServer) -> None:
    created = {"org.opencontainers.image.created": "2001-09-09T01:46:40Z"}
    digest = registry.push("team/app", "1.0.0_build.5", APP, annotations=created)
    repository = oci_repository(registry)
    resolved = world.artifacts.find_tag(repository, "app", "1.0.0+build.5")
    version = ArtifactVersion("1.0.0+build.5", digest, "", 1_000_000_000, "", 1_000_000)
    assert resolved == ResolvedTag(version)
    artifact = world.artifacts.read(repository, "app", version)
    assert isinstance(artifact, Artifact)
    assert {path: file.data.decode() for path, file in artifact.files.items()} == FILES
    assert artifact.digest == digest
    assert artifact.created_seconds == 1_000_000_000


def test_manifest_cannot_name_the_archive_of_another_repository(
    world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    """The cache contains the archive, but the second registry does not serve it."""
    digest = registry.push("team/app", "v1", APP)
    assert isinstance(world.artifacts.read(oci_repository(registry), "app", ArtifactVersion("v1", digest)), Artifact)
    other_digest = other_registry.push("team/app", "v1", APP)
    other_registry.blobs.clear()
    version = ArtifactVersion("v1", other_digest)

    problem = world.artifacts.read(oci_repository(other_registry), "app", version)

    assert isinstance(problem, SourceProblem)
    assert problem.code == "DigestUnavailable"
    other_registry.push("team/app", "v1", APP)
    world.now += 1_000
    assert isinstance(world.artifacts.read(oci_repository(other_registry), "app", version), Artifact)
    # The archive is not downloaded again.
    assert [path.partition(" ")[0] for path in other_registry.paths if "/blobs/" in path] == ["HEAD", "HEAD"]


def test_second_pass_and_restart_request_nothing(world: World, registry: RegistryServer) -> None:
    registry.push("team/app", "v1", APP)
    for _ in range(2):
        for _ in range(2):
            resolved = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
            assert isinstance(resolved, ResolvedTag)
            read(world, registry, resolved.version)
        world.restart()
    assert [path.partition("sha256")[0] for path in registry.paths] == [
        "HEAD /v2/team/app/manifests/v1", "GET /v2/team/app/manifests/", "GET /v2/team/app/blobs/"
    ]  # fmt: skip


def test_registry_without_the_digest_header(world: World, registry: RegistryServer) -> None:
    registry.sends_digest = False
    digest = registry.push("team/app", "v1", APP)
    resolved = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(resolved, ResolvedTag)
    assert resolved.version.digest == digest


def test_moved_tag_is_found_after_the_poll_time(world: World, registry: RegistryServer) -> None:
    repository = oci_repository(registry)
    digests = []
    for content in ("a", "b"):
        digests.append(registry.push("team/app", "v1", pack_files({"a": content})))
        resolved = world.artifacts.find_tag(repository, "app", "v1")
        assert isinstance(resolved, ResolvedTag)
        assert resolved.version.digest == digests[-1]
        world.now += 300
    assert digests[0] != digests[1]


def test_tags_of_several_pages(world: World, registry: RegistryServer) -> None:
    for number in range(10):
        registry.push("team/app", f"1.{number}.0", APP)
    registry.push("team/app", "1.0.0_meta", APP)
    registry.push("team/app", "my_tag", APP)
    registry.page_size = 3
    result = world.artifacts.list_versions(oci_repository(registry), "app")
    assert isinstance(result, VersionList)
    assert [version.version for version in result.versions] == sorted(
        [*(f"1.{number}.0" for number in range(10)), "1.0.0+meta", "my_tag"]
    )
    assert len(registry.paths) == 4


def test_too_many_tags(world: World, registry: RegistryServer) -> None:
    for number in range(10):
        registry.push("team/app", str(number), APP)
    registry.page_size = 3
    world.restart(limits=SourceLimits(tags=5))
    result = world.artifacts.list_versions(oci_repository(registry), "app")
    assert isinstance(result, SourceProblem)
    assert (result.code, "sources.limits.tags" in result.message) == ("SourceTooLarge", True)


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(500), "SourceUnreachable", id="500"),
        pytest.param(Answer(429), "SourceUnreachable", id="429"),
        pytest.param(Answer(403), "SourceUnauthorized", id="403"),
        pytest.param(Answer(401), "SourceUnauthorized", id="401-without-challenge"),
        pytest.param(Answer(401, {"WWW-Authenticate": "Negotiate"}), "SourceInvalid", id="unknown-challenge"),
        pytest.param(Answer(404), "UpstreamNotFound", id="404"),
        pytest.param(Answer(body=b'{"tags": []}'), "UpstreamNotFound", id="no-tags"),
        pytest.param(Answer(body=b'{"tags": null}'), "UpstreamNotFound", id="null-tags"),
        pytest.param(Answer(body=b'{"tags": 5}'), "SourceInvalid", id="tags-are-a-number"),
        pytest.param(Answer(body=b"[" * 100_000), "SourceInvalid", id="deep-json"),
        pytest.param(Answer(body=b'{"tags": ["a"]}', behavior="stop"), "SourceUnreachable", id="truncated"),
    ],
)
def test_failure_of_the_registry_keeps_the_last_list(
    answer: Answer, code: str, world: World, registry: RegistryServer
) -> None:
    repository = oci_repository(registry)
    registry.overrides["tags/list"] = answer
    problem = world.artifacts.list_versions(repository, "app")
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry) == (code, code == "SourceUnreachable"), problem.message

    registry.overrides.clear()
    registry.push("team/app", "v1", APP)
    world.now += 400
    versions = world.artifacts.list_versions(repository, "app")
    assert isinstance(versions, VersionList)
    registry.overrides["tags/list"] = answer
    world.now += 400
    stale = world.artifacts.list_versions(repository, "app")
    assert isinstance(stale, VersionList)
    assert stale.problem is not None
    assert (stale.versions, stale.problem.code) == (versions.versions, code)


def test_failure_of_the_registry_keeps_the_digest_of_a_tag(world: World, registry: RegistryServer) -> None:
    registry.push("team/app", "v1", APP)
    first = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    registry.overrides["manifests"] = Answer(404)
    world.now += 400
    second = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(first, ResolvedTag)
    assert isinstance(second, ResolvedTag)
    assert second.problem is not None
    assert (second.version, second.problem.code) == (first.version, "UpstreamNotFound")


@pytest.mark.parametrize("behavior", ["", "stop"])
def test_blob_with_another_digest_is_refused(behavior: str, world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    registry.overrides["/blobs/"] = Answer(body=pack_files({"evil": ""}), behavior=behavior)  # type: ignore[arg-type]
    assert read_code(world, registry, digest) == ("SourceUnreachable" if behavior else "DigestMismatch")
    registry.overrides.clear()
    world.now += 60
    assert isinstance(read(world, registry, ArtifactVersion("v1", digest)), Artifact)


def test_manifest_with_another_digest_is_refused(world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    other = registry.push("team/app", "v2", pack_files({"evil": ""}))
    registry.manifests["team/app", digest] = registry.manifests["team/app", other]
    assert read_code(world, registry, digest) == "DigestMismatch"


@pytest.mark.parametrize("digest", ["sha512:" + "a" * 128, "sha256:short", "md5:" + "a" * 32, "sha256:../../x"])
def test_other_digest_algorithms_are_refused(digest: str, world: World, registry: RegistryServer) -> None:
    layer = {"mediaType": FLUX_LAYER, "digest": digest, "size": 1}
    manifest = registry.push_manifest("team/app", "v1", {"mediaType": MANIFEST, "layers": [layer]})
    assert read_code(world, registry, manifest) == "SourceInvalid"
    assert read_code(world, registry, digest) == "SourceInvalid"
    registry.overrides["manifests/v1"] = Answer(200, {"Docker-Content-Digest": digest})
    problem = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceInvalid"


@pytest.mark.parametrize(
    ("layers", "media_type", "code"),
    [
        pytest.param([FLUX_LAYER], "", "", id="flux"),
        pytest.param(["application/vnd.docker.image.rootfs.diff.tar.gzip"], "", "", id="docker"),
        pytest.param(["application/json", FLUX_LAYER], "", "", id="first-archive"),
        pytest.param(["application/x", FLUX_LAYER], "application/x", "", id="selected"),
        pytest.param(["application/vnd.oci.image.layer.v1.tar"], "", "SourceInvalid", id="not-compressed"),
        pytest.param([FLUX_LAYER], "application/x", "SourceInvalid", id="not-found"),
        pytest.param([], "", "SourceInvalid", id="none"),
    ],
)
def test_selected_layer(layers: list[str], media_type: str, code: str, world: World, registry: RegistryServer) -> None:
    registry.push("team/app", "v1", APP)
    wrong = {"digest": compute_digest(b"x"), "size": 1}
    right = {"digest": compute_digest(APP), "size": len(APP)}
    entries = [
        {"mediaType": layer, **(right if layer == (media_type or layer) and layer != "application/json" else wrong)}
        for layer in layers
    ]
    digest = registry.push_manifest("team/app", "v2", {"mediaType": MANIFEST, "layers": entries})
    result = read(world, registry, ArtifactVersion("v2", digest), layer_media_type=media_type)
    assert (result.code if isinstance(result, SourceProblem) else "") == code, result


def test_layer_with_a_large_declared_size(world: World, registry: RegistryServer) -> None:
    layer = {"mediaType": FLUX_LAYER, "digest": compute_digest(APP), "size": 2**40}
    digest = registry.push_manifest("team/app", "v1", {"mediaType": MANIFEST, "layers": [layer]})
    assert read_code(world, registry, digest) == "SourceTooLarge"
    assert [path for path in registry.paths if "/blobs/" in path] == []


def test_image_index(world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    platform = {"os": "linux", "architecture": "amd64"}
    entries = [{"digest": compute_digest(b"x"), "platform": platform}, {"digest": digest}]
    index = registry.push_manifest("team/app", "v2", {"mediaType": INDEX, "manifests": entries})
    artifact = read(world, registry, ArtifactVersion("v2", index))
    assert isinstance(artifact, Artifact)
    assert artifact.digest == index
    only_platforms = registry.push_manifest("team/app", "v3", {"mediaType": INDEX, "manifests": entries[:1]})
    assert read_code(world, registry, only_platforms) == "SourceInvalid"
    assert read_code(world, registry, index, type="helm") == "SourceInvalid"


def test_chart(world: World, registry: RegistryServer) -> None:
    registry.push("team/web", "1.0.0", pack_chart("web", "1.0.0"), CHART_LAYER)
    repository = helm_repository(registry, url=f"oci://{registry.host}/team", insecure=True)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    artifact = world.artifacts.read(repository, "web", versions.versions[0])
    assert isinstance(artifact, Artifact)
    assert list(artifact.files) == ["Chart.yaml"]


def test_ignored_files(world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    artifact = read(world, registry, ArtifactVersion("v1", digest), ignore="*.md\n!keep.md\n")
    assert isinstance(artifact, Artifact)
    assert list(artifact.files) == ["deploy.yaml"]


@pytest.mark.parametrize(
    ("url", "name", "code"),
    [
        pytest.param("oci://HOST/team", "../other", "SourceInvalid", id="parent"),
        pytest.param("oci://HOST/team", "App", "SourceInvalid", id="capitals"),
        pytest.param("oci://HOST/team", "", "UpstreamNotFound", id="no-name"),
        pytest.param("oci://HOST/team?x=1", "app", "SourceInvalid", id="query"),
        pytest.param("oci://HOST:port/team", "app", "SourceAddressRefused", id="port"),
        pytest.param("oci://[::1/team", "app", "SourceAddressRefused", id="brackets"),
        pytest.param("oci://", "app", "SourceInvalid", id="no-host"),
        pytest.param("oci://user:hunter2@HOST/team", "app", "SourceAddressRefused", id="credentials"),
        pytest.param("oci://registry.example/team", "app", "SourceAddressRefused", id="plain-http"),
    ],
)
def test_names(url: str, name: str, code: str, world: World, registry: RegistryServer) -> None:
    repository = replace(oci_repository(registry), url=url.replace("HOST", registry.host))
    problem = world.artifacts.list_versions(repository, name)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "hunter2" in problem.message) == (code, False), problem.message


@pytest.mark.parametrize("tag", ["", "-x", "a/b", "a b", "x" * 129, "../x"])
def test_invalid_tags(tag: str, world: World, registry: RegistryServer) -> None:
    problem = world.artifacts.find_tag(oci_repository(registry), "app", tag)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, registry.paths) == ("SourceInvalid", [])


def test_tags_that_are_not_valid_are_ignored(world: World, registry: RegistryServer) -> None:
    tags = ["v1", "../x", "a/b", 5, None, "x" * 200]
    registry.overrides["tags/list"] = Answer(body=json.dumps({"tags": tags}).encode())
    result = world.artifacts.list_versions(oci_repository(registry), "app")
    assert isinstance(result, VersionList)
    assert [version.version for version in result.versions] == ["v1"]
