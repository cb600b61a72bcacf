"""Servers that try to exhaust the memory or the time of the reader, or to mislead it."""

from __future__ import annotations

import gzip
import io
import json
import tracemalloc
from dataclasses import dataclass, replace
from urllib.parse import parse_qs, urlsplit

import pytest

from reconciler.packages.artifacts import Artifact, ArtifactVersion, ResolvedTag, SourceProblem, VersionList
from reconciler.sources import chart_index, connections
from reconciler.sources.addresses import AddressPolicy
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.limits import SourceLimits
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import (
    FLUX_LAYER,
    MANIFEST,
    Answer,
    ArtifactServer,
    Received,
    RegistryServer,
    compute_digest,
    helm_repository,
    oci_repository,
    serve,
)

APP = pack_files({"a.yaml": "a: 1\n"})
WEB = pack_chart("web", "1.0.0")


def get_code(result: object) -> str:
    """Return the code of the problem, also of a list that is not up to date. Return "" if there is none."""
    problem = result if isinstance(result, SourceProblem) else getattr(result, "problem", None)
    return problem.code if problem else ""


@dataclass
class EndlessTags(RegistryServer):
    """A registry whose list of tags has no end. Each page has `tags_per_page` new tags."""

    tags_per_page: int = 0

    def respond(self, request: Received) -> Answer:
        number = int(parse_qs(urlsplit(request.path).query).get("last", ["0"])[0]) + 1
        link = f'</v2/team/app/tags/list?last={number}>; rel="next"'
        tags = [f"t{number}-{index}" for index in range(self.tags_per_page)] or ["same"]
        return Answer(200, {"Link": link}, json.dumps({"tags": tags}).encode())


@pytest.mark.parametrize(
    ("tags_per_page", "max_tags", "code"),
    [
        pytest.param(10, 95, "SourceTooLarge", id="tags"),
        pytest.param(1, 10_000, "SourceUnreachable", id="pages"),
        pytest.param(0, 10_000, "", id="the-same-page"),
    ],
)
def test_endless_tag_pages(tags_per_page: int, max_tags: int, code: str, world: World) -> None:
    """The time limit is for the whole list, so that a server cannot use it for each of many pages."""
    world.restart(limits=SourceLimits(tags=max_tags), timeout_seconds=0.5 if code == "SourceUnreachable" else 10.0)
    with serve(EndlessTags(tags_per_page=tags_per_page)) as server:
        result = world.artifacts.list_versions(oci_repository(server), "app")
    assert get_code(result) == code
    assert isinstance(result, SourceProblem if code else VersionList)


def test_next_page_on_another_host(world: World, registry: RegistryServer, other_registry: RegistryServer) -> None:
    link = {"Link": f'<{other_registry.url}/v2/team/app/tags/list>; rel="next"'}
    registry.overrides["tags/list"] = Answer(200, link, b'{"tags": ["a"]}')
    assert get_code(world.artifacts.list_versions(oci_repository(registry), "app")) == "SourceInvalid"
    assert other_registry.requests == []


@pytest.mark.parametrize(
    "headers", [{"X-Large": "x" * 1_000_000}, {f"X-{number}": "x" * 1_000 for number in range(1_000)}]
)
def test_large_headers(headers: dict[str, str], world: World, charts: ArtifactServer) -> None:
    charts.overrides["index.yaml"] = Answer(200, headers, b"entries: {}")
    assert get_code(world.artifacts.list_versions(helm_repository(charts), "web")) == "SourceUnreachable"


@pytest.mark.parametrize("behavior", ["hang", "drip", "drip_headers"])
@pytest.mark.parametrize("path", ["manifests", "/blobs/"])
def test_slow_registry(behavior: str, path: str, world: World, registry: RegistryServer) -> None:
    version = ArtifactVersion("v1", registry.push("team/app", "v1", APP))
    registry.overrides[path] = Answer(body=b"{" * 10_000, behavior=behavior)  # type: ignore[arg-type]
    world.restart(timeout_seconds=0.3)
    problem = world.artifacts.read(oci_repository(registry), "app", version)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry) == ("SourceUnreachable", True)


def test_slow_host_does_not_delay_other_hosts(
    world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    registry.overrides["tags/list"] = Answer(500)
    other_registry.push("team/app", "v1", APP)
    for _ in range(3):
        assert get_code(world.artifacts.list_versions(oci_repository(registry), "app")) == "SourceUnreachable"
        assert get_code(world.artifacts.list_versions(oci_repository(registry), "other")) == "SourceUnreachable"
        assert get_code(world.artifacts.list_versions(oci_repository(other_registry), "app")) == ""
    assert len(registry.paths) == 1


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"[" * 1_000_000, id="deep"),
        pytest.param(b'{"a":' * 500_000, id="deep-objects"),
        pytest.param(b'{"layers": ' + b"9" * 1_000_000 + b"}", id="large-number"),
        pytest.param(b'{"layers": [' + b"{}," * 50_000 + b"{}]}", id="many-layers"),
        pytest.param(b'{"layers": [null, 5, "x", []]}', id="other-types"),
        pytest.param(b'{"manifests": [null, 5, "x", []]}', id="index-of-other-types"),
        pytest.param(b'{"manifests": [{"digest": {"a": 1}}]}', id="digest-of-another-type"),
        pytest.param(
            b'{"layers": [{"mediaType": ["tar+gzip"], "digest": [], "size": "x"}]}', id="fields-of-other-types"
        ),
        pytest.param(b"\xff\xfe", id="binary"),
        pytest.param(b" " * 5_000_000, id="too-large"),
    ],
)
def test_hostile_manifests(body: bytes, world: World, registry: RegistryServer) -> None:
    digest = compute_digest(body)
    registry.manifests["team/app", digest] = registry.manifests["team/app", "v1"] = body
    assert (
        get_code(world.artifacts.read(oci_repository(registry), "app", ArtifactVersion("v1", digest)))
        == "SourceInvalid"
    )
    world.now += 400
    assert get_code(world.artifacts.find_tag(oci_repository(registry), "app", "v1")) == "SourceInvalid"


def test_index_that_contains_itself_has_one_level(world: World, registry: RegistryServer) -> None:
    inner = registry.push_manifest("team/app", "inner", {"manifests": [{"digest": compute_digest(b"x")}]})
    outer = registry.push_manifest("team/app", "outer", {"manifests": [{"digest": inner}]})
    result = world.artifacts.read(oci_repository(registry), "app", ArtifactVersion("outer", outer))
    assert get_code(result) == "SourceInvalid"


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(b"entries: " + b"[" * 100_000, id="deep"),
        pytest.param(b"a: &a [x, x]\nb: &b [*a, *a]\nc: &c [*b, *b]\nentries: {web: [*c]}\n", id="aliases"),
        pytest.param(b"entries: &a\n  web: *a\n", id="alias-of-itself"),
        pytest.param(b"entries:\n  web: 5\n  ? [a, b]\n  : [c]\n", id="other-types"),
        pytest.param(b"entries: {web: [{version: {a: b}, urls: {c: d}}]}", id="fields-of-other-types"),
        pytest.param(b"--- 5\n--- {entries: {web: []}}\n", id="documents"),
        pytest.param(b"entries: \x00", id="control-character"),
        pytest.param(b"", id="empty"),
    ],
)
def test_hostile_indexes(body: bytes, world: World, charts: ArtifactServer) -> None:
    charts.overrides["index.yaml"] = Answer(body=body)
    assert get_code(world.artifacts.list_versions(helm_repository(charts), "web")) in {
        "SourceInvalid", "UpstreamNotFound"
    }  # fmt: skip


def test_index_with_too_many_versions(world: World, charts: ArtifactServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(chart_index, "MAX_ENTRIES", 1_000)
    charts.overrides["index.yaml"] = Answer(body=b"entries: {a: [" + b"{version: 1, urls: [x]}," * 1_001 + b"]}")
    problem = world.artifacts.list_versions(helm_repository(charts), "a")
    assert isinstance(problem, SourceProblem)
    assert "at most 1,000 versions" in problem.message


def test_large_index_uses_little_memory(world: World, charts: ArtifactServer) -> None:
    """An index of 10 MB in a response of 10 kB: the text is in memory once, and its invalid entries are not."""
    body = gzip.compress(b"entries: {a: [" + b"{v: 1}," * 2_000 + b"]}\n" + b"#" * 10_000_000, 1)
    charts.overrides["index.yaml"] = Answer(200, {"Content-Encoding": "gzip"}, body)
    tracemalloc.start()
    try:
        assert get_code(world.artifacts.list_versions(helm_repository(charts), "a")) == "UpstreamNotFound"
        assert tracemalloc.get_traced_memory()[1] < 25_000_000
    finally:
        tracemalloc.stop()


def test_bomb_in_a_large_archive_is_found_early(world: World, charts: ArtifactServer) -> None:
    """The ratio is compared while the archive is read. Random data at its end does not help a bomb."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=9) as stream:
        for _ in range(40):
            stream.write(bytes(2**20))
    # The trailing data makes the total ratio small.
    archive = buffer.getvalue() + gzip.compress(bytes(range(256)) * 40_000, 0)
    charts.add_chart("web", "1.0.0", archive)
    versions = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(versions, VersionList)
    tracemalloc.start()
    try:
        problem = world.artifacts.read(helm_repository(charts), "web", versions.versions[0])
        assert get_code(problem) in {"SourceTooLarge", "ArchiveInvalid"}
        assert tracemalloc.get_traced_memory()[1] < 50_000_000
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize(
    "url",
    [
        "//169.254.169.254/x.tgz",
        "https://169.254.169.254/x.tgz",
        "https://user:hunter2@charts.example/x.tgz",
        "https://allowed.example\\@evil.example/x.tgz",
        "https://allowed.example%5c@evil.example/x.tgz",
        "file:///etc/passwd",
        "javascript:alert(1)",
        "../../../../v1/secrets",
        "https://",
        "https://[::1",
        "https://allowed.example:99999/x",
        "oci://registry.example/web:1",
        "oci://127.0.0.1/web:1",
        "oci://user:hunter2@registry.example/web:1",
    ],
)
def test_hostile_urls_in_an_index(url: str, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", WEB, urls=[url])
    world.restart(policy=AddressPolicy((charts.url + "/charts", "https://allowed.example")))
    versions = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(versions, VersionList)
    problem = world.artifacts.read(helm_repository(charts), "web", versions.versions[0])
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceAddressRefused", problem.message
    assert "hunter2" not in problem.message


def test_host_that_parsers_read_differently(world: World, charts: ArtifactServer) -> None:
    """The list of allowed URLs would be compared with another name than that of the connection."""
    charts.add_chart("web", "1.0.0", WEB, urls=["https://b\u00fccher.example/x.tgz"])
    versions = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(versions, VersionList)
    problem = world.artifacts.read(helm_repository(charts), "web", versions.versions[0])
    assert get_code(problem) == "SourceAddressRefused"


@pytest.fixture
def public(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the name public.example lead to a server of the test, which is then not a loopback address by its name."""
    resolve = connections.resolve_host
    monkeypatch.setattr(
        connections,
        "resolve_host",
        lambda host, port: ("127.0.0.1",) if host == "public.example" else resolve(host, port),
    )
    world.restart(policy=AddressPolicy((), ("public.example",)))


@pytest.mark.usefixtures("public")
def test_server_cannot_name_services_of_this_machine(
    world: World, charts: ArtifactServer, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    """A redirect, a token service, and the URL of a chart cannot lead to a loopback address."""
    target = f"{other_registry.url}/internal"
    charts.add_chart("web", "1.0.0", WEB, urls=[target])
    repository = helm_repository(charts, url=f"http://public.example:{charts.port}/charts")
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    assert get_code(world.artifacts.read(repository, "web", versions.versions[0])) == "SourceAddressRefused"

    charts.overrides["index.yaml"] = Answer(302, {"Location": target})
    world.now += 400
    assert get_code(world.artifacts.list_versions(repository, "web")) == "SourceAddressRefused"

    oci = oci_repository(registry, url=f"oci://public.example:{registry.port}/team")
    for realm in (target, "https://169.254.169.254/token", "file:///etc/passwd", ""):
        challenge = {"WWW-Authenticate": f'Bearer realm="{realm}",service="x"'}
        registry.overrides["tags/list"] = Answer(401, challenge)
        world.now += 400
        assert get_code(world.artifacts.list_versions(oci, "app")) == "SourceAddressRefused"
    assert other_registry.requests == []


@pytest.mark.parametrize(
    "token",
    [
        b"{}",
        b"[]",
        b'{"token": 5}',
        b'{"token": ""}',
        b'{"token": "a\\r\\nX-Injected: 1"}',
        b'{"token": "\xc3\xa9"}',
        b"x" * 300_000,
        b"[" * 100_000,
    ],
)
def test_hostile_tokens(token: bytes, world: World, registry: RegistryServer) -> None:
    registry.scheme = "bearer"
    registry.overrides["/token"] = Answer(body=token)
    assert get_code(world.artifacts.list_versions(oci_repository(registry), "app")) == "SourceInvalid"


@pytest.mark.parametrize("lifetime", ["1e999", "-5", "NaN", '"x"', "null", "true", "1" + "0" * 400, "-1" + "0" * 400])
def test_lifetime_of_a_token(lifetime: str, world: World, registry: RegistryServer) -> None:
    registry.scheme = "bearer"
    registry.push("team/app", "v1", APP)
    body = f'{{"token": "registry-token-value", "expires_in": {lifetime}}}'.encode()
    registry.overrides["/token"] = Answer(body=body)
    assert get_code(world.artifacts.list_versions(oci_repository(registry), "app")) == ""


def test_cookies_are_ignored(world: World, registry: RegistryServer) -> None:
    """A cookie can be a credential, and the next request can belong to a Repository with other credentials."""
    cookies = Answer(200, {"Set-Cookie": "session=\xe9; Path=/"}, b'{"tags": ["v1"]}')
    registry.overrides["tags/list"] = cookies
    assert get_code(world.artifacts.list_versions(oci_repository(registry), "app")) == ""
    assert get_code(world.artifacts.list_versions(oci_repository(registry), "other")) == ""
    assert [request.headers.get("cookie") for request in registry.requests] == [None, None]


def test_cached_content_needs_access(world: World, registry: RegistryServer, charts: ArtifactServer) -> None:
    """A Repository without access cannot read content from the cache that another Repository has downloaded."""
    registry.scheme, registry.login = "basic", ("reader", "password-of-the-reader")
    digest = registry.push("team/app", "v1", APP)
    charts.login = registry.login
    charts.add_chart("web", "1.0.0", WEB)
    secret = world.folder / "secrets/default/pull"
    secret.mkdir(parents=True)
    (secret / "username").write_text("reader")
    (secret / "password").write_text("password-of-the-reader")
    world.credentials = SourceCredentials(str(world.folder / "secrets"))
    world.restart()
    oci, helm = oci_repository(registry, secret_name="pull"), helm_repository(charts, secret_name="pull")
    version = ArtifactVersion("v1", digest)
    assert isinstance(world.artifacts.read(oci, "app", version), Artifact)
    versions = world.artifacts.list_versions(helm, "web")
    assert isinstance(versions, VersionList)
    chart = versions.versions[0]
    assert isinstance(world.artifacts.read(helm, "web", chart), Artifact)

    assert get_code(world.artifacts.read(replace(oci, secret_name=""), "app", version)) == "SourceUnauthorized"
    assert get_code(world.artifacts.read(replace(helm, secret_name=""), "web", chart)) == "SourceUnauthorized"


def test_digest_of_a_withdrawn_version_stays_readable(world: World, charts: ArtifactServer) -> None:
    """A lock has no URL. The content comes from the cache, or from the index by its digest or version."""
    charts.add_chart("web", "1.0.0", WEB)
    charts.add_chart("web", "2.0.0", pack_chart("web", "2.0.0"))
    locked = ArtifactVersion("1.0.0", compute_digest(WEB))
    assert isinstance(world.artifacts.read(helm_repository(charts), "web", locked), Artifact)
    charts.files["/charts/index.yaml"] = b'{"entries": {"web": [{"version": "2.0.0", "urls": ["web-2.0.0.tgz"]}]}}'
    world.now += 400
    world.restart()
    assert isinstance(world.artifacts.read(helm_repository(charts), "web", locked), Artifact)
    world.artifacts.evict(())
    for file in (world.folder / "sources/sha256").iterdir():
        file.unlink()
    world.restart()
    problem = world.artifacts.read(helm_repository(charts), "web", locked)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry) == ("DigestUnavailable", True)


def test_blob_that_is_gone(world: World, registry: RegistryServer) -> None:
    digest = registry.push("team/app", "v1", APP)
    registry.blobs.clear()
    resolved = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(resolved, ResolvedTag)
    problem = world.artifacts.read(oci_repository(registry), "app", resolved.version)
    assert isinstance(problem, SourceProblem)
    assert (problem.code, problem.should_retry, resolved.version.digest) == ("DigestUnavailable", True, digest)


def test_layer_type_of_a_chart_in_a_package(world: World, registry: RegistryServer) -> None:
    layer = {"mediaType": FLUX_LAYER, "digest": compute_digest(WEB), "size": -5}
    registry.blobs[compute_digest(WEB)] = WEB
    digest = registry.push_manifest("team/app", "v1", {"mediaType": MANIFEST, "layers": [layer]})
    artifact = world.artifacts.read(oci_repository(registry), "app", ArtifactVersion("v1", digest))
    assert isinstance(artifact, Artifact)
    assert list(artifact.files) == ["web/Chart.yaml"]


def test_malformed_url_of_a_repository(world: World, charts: ArtifactServer) -> None:
    for url in ("https://[::1", "https://charts.example:99999", "https://charts.example:x"):
        repository = helm_repository(charts, url=url)
        assert get_code(world.artifacts.list_versions(repository, "web")) == "SourceAddressRefused"
        assert get_code(world.artifacts.read(repository, "web", ArtifactVersion("1"))) == "SourceAddressRefused"
