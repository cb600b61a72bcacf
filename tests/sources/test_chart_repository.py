"""Charts of a repository over HTTP: versions, downloads, failures of the server, and the last known list."""

from __future__ import annotations

import gzip
import json

import pytest

from reconciler.packages.artifacts import Artifact, ArtifactVersion, SourceProblem, VersionList
from reconciler.sources.limits import SourceLimits
from reconciler.sources.mirrors import Mirror
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import (
    CHART_LAYER,
    Answer,
    ArtifactServer,
    RegistryServer,
    compute_digest,
    helm_repository,
)

WEB = pack_chart("web", "1.0.0", {"templates/a.yaml": "a: 1\n"})


def list_versions(world: World, server: ArtifactServer, name: str = "web") -> VersionList:
    result = world.artifacts.list_versions(helm_repository(server), name)
    assert isinstance(result, VersionList), result
    return result


def read(world: World, server: ArtifactServer, version: ArtifactVersion) -> Artifact:
    result = world.artifacts.read(helm_repository(server), "web", version)
    assert isinstance(result, Artifact), result
    return result


def test_versions_and_files(world: World, charts: ArtifactServer) -> None:
    created = "2023-03-01T10:10:10.123456789Z"
    charts.add_chart("web", "1.0.0", WEB, created=created, appVersion="v7")
    [version] = list_versions(world, charts).versions
    assert version == ArtifactVersion(
        "1.0.0", compute_digest(WEB), "web-1.0.0.tgz", 1_677_665_410, "v7", 1_000_000
    )  # fmt: skip
    artifact = read(world, charts, version)
    assert (list(artifact.files), artifact.digest) == (["Chart.yaml", "templates/a.yaml"], version.digest)


def test_second_pass_and_restart_request_nothing(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    for _ in range(2):
        for _ in range(2):
            read(world, charts, list_versions(world, charts).versions[0])
        world.restart()
    assert charts.paths == ["GET /charts/index.yaml", "GET /charts/web-1.0.0.tgz"]


def test_index_is_requested_again_only_if_it_has_changed(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    list_versions(world, charts)
    world.now += 299
    list_versions(world, charts)
    assert charts.paths == ["GET /charts/index.yaml"]
    world.now += 1
    list_versions(world, charts)
    assert charts.requests[0].headers["if-none-match"]
    charts.add_chart("web", "1.1.0", WEB)
    world.now += 300
    versions = list_versions(world, charts).versions
    assert [(version.version, version.first_seen_seconds) for version in versions] == [
        ("1.0.0", 1_000_000), ("1.1.0", 1_000_600)
    ]  # fmt: skip


def test_clock_that_was_set_back_does_not_stop_polling(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    list_versions(world, charts)
    world.now -= 5_000
    list_versions(world, charts)
    assert len(charts.paths) == 2


def test_digest_of_an_index_without_digests(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB, digest=None)
    [version] = list_versions(world, charts).versions
    assert version.digest == ""
    read(world, charts, version)
    world.restart()
    [version] = list_versions(world, charts).versions
    assert version.digest == compute_digest(WEB)
    charts.paths  # noqa: B018  forgets the requests
    assert read(world, charts, version).digest == version.digest
    assert charts.paths == []


def test_other_content_with_the_same_digest_is_refused(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    [version] = list_versions(world, charts).versions
    other = pack_chart("web", "1.0.0", {"evil.yaml": ""})
    charts.files["/charts/web-1.0.0.tgz"] = other
    result = world.artifacts.read(helm_repository(charts), "web", version)
    assert isinstance(result, SourceProblem)
    assert (result.code, result.should_retry) == ("DigestMismatch", False)
    assert version.digest in result.message
    assert compute_digest(other) in result.message
    assert f"{charts.url}/charts/web-1.0.0.tgz" in result.message


@pytest.mark.parametrize(
    ("answer", "code"),
    [
        pytest.param(Answer(500), "SourceUnreachable", id="500"),
        pytest.param(Answer(429), "SourceUnreachable", id="429"),
        pytest.param(Answer(408), "SourceUnreachable", id="408"),
        pytest.param(Answer(401), "SourceUnauthorized", id="401"),
        pytest.param(Answer(403), "SourceUnauthorized", id="403"),
        pytest.param(Answer(404), "UpstreamNotFound", id="404"),
        pytest.param(Answer(418), "SourceInvalid", id="418"),
        pytest.param(Answer(body=b"entries: {}"), "UpstreamNotFound", id="empty-index"),
        pytest.param(Answer(body=b"entries: {web: []}"), "UpstreamNotFound", id="no-versions"),
        pytest.param(Answer(body=b"<html></html>"), "SourceInvalid", id="html"),
        pytest.param(Answer(body=b"entries: ["), "SourceInvalid", id="broken-yaml"),
        pytest.param(Answer(body=b"\xff\xfe"), "SourceInvalid", id="binary"),
        pytest.param(Answer(body=b"a: 1", headers={"Content-Encoding": "br"}), "SourceInvalid", id="unknown-encoding"),
        pytest.param(Answer(body=b"x" * 90, behavior="stop"), "SourceUnreachable", id="truncated"),
        pytest.param(Answer(304), "SourceInvalid", id="304-without-condition"),
        pytest.param(Answer(302, {"Location": "/charts/index.yaml"}), "SourceInvalid", id="redirect-loop"),
        pytest.param(Answer(302, {"Location": "http://[::"}), "SourceUnreachable", id="redirect-to-nowhere"),
        pytest.param(Answer(302, {"Location": "http://xn--/"}), "SourceUnreachable", id="redirect-to-an-invalid-name"),
        pytest.param(Answer(302, {"Location": "http:x"}), "SourceUnreachable", id="redirect-without-a-host"),
        pytest.param(Answer(302, {"Location": "http://public.example/x"}), "SourceAddressRefused", id="redirect-to-http"),
        pytest.param(Answer(302, {"Location": "file:///etc/passwd"}), "SourceAddressRefused", id="redirect-to-file"),
        pytest.param(Answer(302, {"Location": "https://169.254.169.254/x"}), "SourceAddressRefused", id="redirect-to-metadata"),
    ],
)  # fmt: skip
def test_failure_of_the_server_keeps_the_last_list(
    answer: Answer, code: str, world: World, charts: ArtifactServer
) -> None:
    repository = helm_repository(charts)
    charts.overrides["index.yaml"] = answer
    problem = world.artifacts.list_versions(repository, "web")
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry) == (code, code == "SourceUnreachable"), problem.message
    assert problem.message.startswith("chart web in Repository charts: ")

    charts.overrides.clear()
    charts.add_chart("web", "1.0.0", WEB)
    world.now += 400
    versions = list_versions(world, charts).versions
    if code == "SourceInvalid" and answer.status == 304:
        return
    charts.overrides["index.yaml"] = answer
    world.now += 400
    for _ in range(2):
        stale = list_versions(world, charts)
        assert stale.versions == versions
        assert stale.problem is not None
        assert stale.problem.code == code
        assert "The list of versions from 1970-01-12T13:53:20Z is used" in stale.problem.message
        world.restart()

    charts.overrides.clear()
    world.now += 400
    assert list_versions(world, charts) == VersionList(versions)


def test_stopped_server_keeps_the_last_list(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    versions = list_versions(world, charts).versions
    charts.port = 1
    world.now += 400
    result = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(result, SourceProblem)
    assert "127.0.0.1:1 cannot be reached ([Errno 111] Connection refused)" in result.message
    assert versions


@pytest.mark.parametrize("behavior", ["hang", "drip", "drip_headers"])
def test_slow_response_is_ended(behavior: str, world: World, charts: ArtifactServer) -> None:
    charts.overrides["index.yaml"] = Answer(body=b"#" * 10_000, behavior=behavior)  # type: ignore[arg-type]
    world.restart(timeout_seconds=0.3)
    problem = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry) == ("SourceUnreachable", True)
    assert problem.message.endswith("(it took too long to respond)")


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        pytest.param("2", 5, id="shorter-than-the-own-wait"),
        pytest.param("120", 120, id="longer-than-the-own-wait"),
        pytest.param("999999", 3600, id="longer-than-the-limit"),
        pytest.param("soon", 5, id="invalid"),
    ],
)
def test_host_gets_no_request_before_the_time_it_asks_for(
    header: str, seconds: int, world: World, charts: ArtifactServer
) -> None:
    charts.overrides["index.yaml"] = Answer(429, {"Retry-After": header})
    # The list of versions has its own wait of 10 seconds after its second failure.
    for wait, requests in ((0, 1), (seconds - 1, 0), (11, 1)):
        world.now += wait
        result = world.artifacts.list_versions(helm_repository(charts), "web")
        assert isinstance(result, SourceProblem)
        assert "HTTP status 429" in result.message
        assert len(charts.paths) == requests


@pytest.mark.parametrize("status", [500, 401, 404])
def test_failures_delay_the_next_requests(status: int, world: World, charts: ArtifactServer) -> None:
    charts.overrides["index.yaml"] = Answer(status)
    repository = helm_repository(charts)
    first = world.artifacts.list_versions(repository, "web")
    assert world.artifacts.list_versions(repository, "web") == first
    assert len(charts.paths) == 1
    for wait in (5, 10, 20):
        world.now += wait - 1
        world.artifacts.list_versions(repository, "web")
        assert charts.paths == []
        world.now += 1
        world.artifacts.list_versions(repository, "web")
        assert len(charts.paths) == 1


def test_missing_chart(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    problem = world.artifacts.list_versions(helm_repository(charts), "db")
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "has no chart 'db'" in problem.message) == ("UpstreamNotFound", True)


def test_invalid_entries_are_reported_and_skipped(world: World, charts: ArtifactServer) -> None:
    entries = [
        {"version": "1.0.0", "urls": ["a.tgz"]},
        {"urls": ["a.tgz"]},
        {"version": "2.0.0"},
        {"version": "3.0.0", "urls": ["a.tgz"], "digest": "md5"},
        {"version": "4.0.0", "urls": ["a.tgz"], "removed": True},
        "text",
    ]
    charts.files["/charts/index.yaml"] = json.dumps({"entries": {"web": entries}}).encode()
    result = list_versions(world, charts)
    assert [version.version for version in result.versions] == ["1.0.0"]
    assert [(note.code, note.message) for note in result.notes] == [
        ("ChartEntryInvalid", f"entry {number} of chart 'web': {message}")
        for number, message in [
            (2, "`version` must be a string of at most 128 characters"),
            (3, "version 2.0.0: `urls` must start with a URL"),
            (4, "version 3.0.0: `digest` must be 64 hexadecimal digits"),
            (6, "`version` must be a string of at most 128 characters"),
        ]
    ]


def test_compressed_index(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    body = gzip.compress(charts.files["/charts/index.yaml"])
    charts.overrides["index.yaml"] = Answer(200, {"Content-Encoding": "gzip"}, body)
    assert [version.version for version in list_versions(world, charts).versions] == ["1.0.0"]


@pytest.mark.parametrize("is_compressed", [False, True])
def test_large_index_is_refused(is_compressed: bool, world: World, charts: ArtifactServer) -> None:
    body = b"#" * 2_000_000
    headers = {"Content-Encoding": "gzip"} if is_compressed else {}
    charts.overrides["index.yaml"] = Answer(200, headers, gzip.compress(body) if is_compressed else body)
    world.restart(limits=SourceLimits(index_bytes=1_000_000))
    problem = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "sources.limits.index_bytes" in problem.message) == ("SourceTooLarge", True)


def test_large_archive_is_refused(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", b"x" * 200_000)
    world.restart(limits=SourceLimits(archive_bytes=100_000))
    problem = world.artifacts.read(helm_repository(charts), "web", list_versions(world, charts).versions[0])
    assert isinstance(problem, SourceProblem)
    assert (problem.code, "sources.limits.archive_bytes" in problem.message) == ("SourceTooLarge", True)


def test_archive_without_a_top_folder_is_refused(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", pack_files({"Chart.yaml": ""}))
    problem = world.artifacts.read(helm_repository(charts), "web", list_versions(world, charts).versions[0])
    assert isinstance(problem, SourceProblem)
    assert problem.code == "ArchiveInvalid"
    assert problem.message.startswith("chart web 1.0.0 in Repository charts: the archive of a chart must")


def test_index_with_urls_of_a_registry(world: World, charts: ArtifactServer, registry: RegistryServer) -> None:
    """Some chart repositories contain only the index. The mirror lets the test use plain HTTP."""
    registry.push("team/web", "1.0.0_1", WEB, CHART_LAYER)
    charts.add_chart("web", "1.0.0+1", WEB, urls=["oci://registry.example.com/team/web:1.0.0+1"])
    world.restart(mirrors=(Mirror("oci://registry.example.com", f"oci://{registry.host}", insecure=True),))
    [version] = list_versions(world, charts).versions
    assert list(read(world, charts, version).files) == ["Chart.yaml", "templates/a.yaml"]

    other = pack_chart("web", "1.0.0+1")
    charts.add_chart("web", "1.0.0+2", other, urls=["oci://registry.example.com/team/web:1.0.0+1"])
    world.now += 400
    problem = world.artifacts.read(helm_repository(charts), "web", list_versions(world, charts).versions[1])
    assert isinstance(problem, SourceProblem)
    assert problem.code == "DigestMismatch"


def test_offline(world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    world.restart(is_offline=True)
    problem = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "NotInCache"

    world.restart(is_offline=False)
    world.now += 400
    [version] = list_versions(world, charts).versions
    world.restart(is_offline=True)
    world.now += 1_000_000
    assert list_versions(world, charts) == VersionList((version,))
    problem = world.artifacts.read(helm_repository(charts), "web", version)
    assert isinstance(problem, SourceProblem)
    assert problem.code == "NotInCache"

    world.restart(is_offline=False)
    read(world, charts, version)
    world.restart(is_offline=True)
    assert read(world, charts, version).digest == version.digest
