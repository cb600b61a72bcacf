"""Rules for addresses: allowed URLs, plain HTTP, and network addresses that are always refused."""

from __future__ import annotations

import socket
from typing import Any

import pytest

from reconciler.packages.artifacts import ArtifactVersion, SourceProblem
from reconciler.sources.addresses import AddressPolicy, has_same_origin, is_below, resolve_host
from reconciler.sources.errors import SourceError
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import Answer, ArtifactServer, RegistryServer, helm_repository, oci_repository


@pytest.mark.parametrize(
    ("first", "second", "is_same"),
    [
        pytest.param("https://a.example/x", "https://a.example/y?z", True, id="paths"),
        pytest.param("https://a.example", "https://a.example:443/", True, id="default-port"),
        pytest.param("http://a.example:80", "http://a.example", True, id="default-port-of-http"),
        pytest.param("HTTPS://A.example/", "https://a.EXAMPLE:443", True, id="case"),
        pytest.param("https://[::1]:5000/", "https://[::1]:5000", True, id="ipv6"),
        pytest.param("https://user@a.example", "https://a.example", True, id="user"),
        pytest.param("https://a.example:443", "http://a.example:443", False, id="scheme"),
        pytest.param("https://a.example", "http://a.example", False, id="scheme-and-default-port"),
        pytest.param("https://a.example", "https://a.example:80", False, id="port"),
        pytest.param("https://a.example", "https://a.example:0", False, id="port-zero"),
        pytest.param("https://a.example", "https://b.a.example", False, id="host"),
        pytest.param("https://a.example", "https://a.example@b.example", False, id="host-as-user"),
        pytest.param("https://a.example:x", "https://a.example:x", False, id="malformed-port"),
        pytest.param("https://[::1", "https://[::1", False, id="malformed-host"),
        pytest.param("oci://a.example", "oci://a.example", False, id="scheme-without-port"),
        pytest.param("", "", False, id="empty"),
    ],
)
def test_same_origin(first: str, second: str, is_same: bool) -> None:
    assert has_same_origin(first, second) is is_same
    assert has_same_origin(second, first) is is_same


@pytest.mark.parametrize(
    ("url", "folder", "is_inside"),
    [
        pytest.param("https://a.example/team/x", "https://a.example/team", True, id="below"),
        pytest.param("https://a.example:443/team/x", "https://A.example/team/", True, id="normalized"),
        pytest.param("https://a.example/team", "https://a.example/team/", True, id="folder"),
        pytest.param("https://a.example/x", "https://a.example", True, id="root"),
        pytest.param("https://a.example/team-b/x", "https://a.example/team", False, id="name-with-the-same-start"),
        pytest.param("https://a.example/x", "https://a.example/team", False, id="parent"),
        pytest.param("https://a.example/te%61m/x", "https://a.example/team", False, id="escaped"),
        pytest.param("https://b.example/team/x", "https://a.example/team", False, id="host"),
        pytest.param("http://a.example/team/x", "https://a.example/team", False, id="scheme"),
        pytest.param("https://a.example?/team/x", "https://a.example/team", False, id="query"),
    ],
)
def test_is_below(url: str, folder: str, is_inside: bool) -> None:
    assert is_below(url, folder) is is_inside


@pytest.mark.parametrize(
    ("url", "allowed", "message"),
    [
        pytest.param("https://a.example/x", [], "", id="https"),
        pytest.param("http://a.example/x", [], "must use https", id="http"),
        pytest.param("http://b.example/x", [], "", id="insecure-host"),
        pytest.param("http://c.example:5000/x", [], "", id="insecure-host-with-port"),
        pytest.param("http://c.example/x", [], "must use https", id="another-port"),
        pytest.param("http://127.0.0.9:81/x", [], "", id="loopback"),
        pytest.param("http://[::1]/x", [], "", id="loopback-6"),
        pytest.param("http://localhost/x", [], "", id="localhost"),
        pytest.param("http://localhost.example/x", [], "must use https", id="not-localhost"),
        pytest.param("https://169.254.169.254/x", [], "always refused", id="metadata-service"),
        pytest.param("https://[fe80::1]/x", [], "always refused", id="link-local"),
        pytest.param("ftp://a.example/x", [], "must start with https", id="ftp"),
        pytest.param("file:///etc/passwd", [], "must start with https", id="file"),
        pytest.param("https:///x", [], "have a host", id="no-host"),
        pytest.param("https://[::1/x", [], "malformed", id="malformed"),
        pytest.param("https://a.example:99999/x", [], "malformed", id="port"),
        pytest.param("https://user:hunter2@a.example/x", [], "must not contain a user name", id="credentials"),
        pytest.param("https://a.example/team/x", ["https://a.example/team"], "", id="folder"),
        pytest.param("https://A.example:443/team/x", ["https://a.example/team"], "", id="normalized"),
        pytest.param(
            "https://a.example/teams", ["https://a.example/team"], "must match a pattern", id="not-the-folder"
        ),
        pytest.param("https://a.example.evil/", ["https://a.example"], "must match a pattern", id="longer-host"),
        pytest.param("https://a.example/team/../x", ["https://a.example/team"], 'without ".."', id="parent"),
        pytest.param(
            "https://a.example/team/..;/x", ["https://a.example/team"], 'without ".."', id="parent-with-parameter"
        ),
        pytest.param(
            "https://a.example/team/%2e%2E/x", ["https://a.example/team"], 'without ".."', id="escaped-parent"
        ),
        pytest.param("https://a.example/team/..%5cx", ["https://a.example/team"], "backslashes", id="backslash"),
        pytest.param("https://x.a.example/y", ["https://*.a.example/*"], "", id="glob"),
        pytest.param("https://a.example/v2/team/x", ["oci://a.example/team"], "", id="other-form"),
    ],
)
def test_allowed_urls(url: str, allowed: list[str], message: str) -> None:
    policy = AddressPolicy(tuple(allowed), ("b.example", "c.example:5000"))
    forms = ("oci://a.example/team/x",) if "v2" in url else ()
    if not message:
        policy.check_url(url, *forms)
        return
    with pytest.raises(SourceError, match=message) as caught:
        policy.check_url(url, *forms)
    assert "hunter2" not in caught.value.message


@pytest.mark.parametrize(
    ("address", "is_refused"),
    [
        ("169.254.169.254", True),
        ("169.254.0.1", True),
        ("fe80::1", True),
        ("fe80::1%eth0", True),
        ("fd00:ec2::254", True),
        ("::ffff:169.254.169.254", True),
        ("::169.254.169.254", True),
        ("64:ff9b::a9fe:a9fe", True),
        ("2002:a9fe:a9fe::1", True),
        ("127.0.0.1", False),
        ("10.0.0.1", False),
        ("::1", False),
        ("2001:db8::1", False),
        ("64:ff9b::808:808", False),
    ],
)
def test_refused_addresses(address: str, is_refused: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """All addresses of a name are checked, so that a name cannot hide a refused address behind an allowed one."""

    def resolve(host: str, port: int, **_: Any) -> list[tuple[object, ...]]:
        return [(0, 0, 0, "", ("192.0.2.1", port)), (0, 0, 0, "", (address, port, 0, 0))]

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    if is_refused:
        with pytest.raises(SourceError, match="always refused"):
            resolve_host("charts.example.com", 443)
    else:
        assert resolve_host("charts.example.com", 443) == ("192.0.2.1", address)


def test_connection_uses_the_checked_address(
    world: World, charts: ArtifactServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A second resolution could return another address (DNS rebinding). There is only one resolution."""
    charts.add_chart("web", "1.0.0", b"")
    original, calls = socket.getaddrinfo, []

    def resolve(host: str, port: int, *arguments: Any, **options: Any) -> Any:
        calls.append(host)
        return original("127.0.0.1" if host == "localhost" else host, port, *arguments, **options)

    monkeypatch.setattr(socket, "getaddrinfo", resolve)
    repository = helm_repository(charts, url=f"http://localhost:{charts.port}/charts")
    assert not isinstance(world.artifacts.list_versions(repository, "web"), SourceProblem)
    assert calls.count("localhost") == 1


@pytest.mark.parametrize("address", ["169.254.169.254", "[fe80::1]", "[::ffff:169.254.169.254]"])
def test_redirect_to_a_metadata_service(address: str, world: World, registry: RegistryServer) -> None:
    registry.overrides["/blobs/"] = Answer(307, {"Location": f"https://{address}/latest"})
    digest = registry.push("team/app", "v1", b"")
    resolved = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert not isinstance(resolved, SourceProblem)
    assert resolved.version.digest == digest
    problem = world.artifacts.read(oci_repository(registry), "app", resolved.version)
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceAddressRefused"


def test_every_url_must_be_allowed(world: World, charts: ArtifactServer, other_registry: RegistryServer) -> None:
    """The URL of a chart in an index, and each redirect, must match the list too."""
    archive = pack_chart("web", "1.0.0")
    other_registry.overrides["/chart.tgz"] = Answer(body=archive)
    for number, url in enumerate((f"{other_registry.url}/chart.tgz", "moved.tgz")):
        charts.overrides["moved.tgz"] = Answer(302, {"Location": f"{other_registry.url}/chart.tgz"})
        charts.add_chart("web", f"1.{number}.0", archive, urls=[url])
    repository = helm_repository(charts)
    for allowed, code in (([charts.url], "SourceAddressRefused"), ([charts.url, other_registry.url], "")):
        world.restart(policy=AddressPolicy(tuple(allowed)))
        versions = world.artifacts.list_versions(repository, "web")
        assert not isinstance(versions, SourceProblem)
        assert len(versions.versions) == 2
        for version in versions.versions:
            result = world.artifacts.read(repository, "web", version)
            assert (result.code if isinstance(result, SourceProblem) else "") == code


def test_redirect_does_not_match_with_the_oci_url(
    world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    """The pattern of a registry allows requests to it, and not the redirects of these requests."""
    archive = pack_files({"a.yaml": "a: 1\n"})
    digest = registry.push("team/app", "v1", archive)
    registry.overrides["/blobs/"] = Answer(307, {"Location": f"{other_registry.url}/storage"})
    other_registry.overrides["/storage"] = Answer(body=archive)
    oci_url = f"oci://{registry.host}/team"
    for allowed, code in (((oci_url,), "SourceAddressRefused"), ((oci_url, other_registry.url), "")):
        world.restart(policy=AddressPolicy(allowed))
        result = world.artifacts.read(oci_repository(registry), "app", ArtifactVersion("v1", digest))
        assert (result.code if isinstance(result, SourceProblem) else "") == code


def test_registry_matches_with_its_oci_url(world: World, registry: RegistryServer) -> None:
    registry.push("team/app", "v1", b"")
    for allowed, code in (("oci://HOST/team", ""), ("oci://HOST/other", "SourceAddressRefused")):
        world.restart(policy=AddressPolicy((allowed.replace("HOST", registry.host),)))
        world.now += 400
        result = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
        problem = result if isinstance(result, SourceProblem) else result.problem
        assert (problem.code if problem else "") == code
