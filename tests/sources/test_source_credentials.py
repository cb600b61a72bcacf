"""Credentials of chart repositories and registries, and the hosts that receive them."""

from __future__ import annotations

import base64
import json
import ssl
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.packages.artifacts import Artifact, ArtifactRepository, ResolvedTag, SourceProblem, VersionList
from reconciler.redaction import redact
from reconciler.sources import artifacts
from reconciler.sources.credentials import SourceCredentials
from reconciler.sources.errors import SourceError
from reconciler.sources.mirrors import Mirror
from tests.sources.conftest import World
from tests.support.archives import pack_chart, pack_files
from tests.support.artifact_servers import (
    CHART_LAYER,
    Answer,
    ArtifactServer,
    RegistryServer,
    helm_repository,
    oci_repository,
    serve,
)
from tests.support.certificates import write_certificate

USER, PASSWORD = "reader", "a-long/secret@value"
APP = pack_files({"a.yaml": "a: 1\n"})
WEB = pack_chart("web", "1.0.0")
AUTH = base64.b64encode(f"{USER}:{PASSWORD}".encode()).decode()


def write_secret(folder: Path, **keys: str) -> None:
    secret = folder / "default/pull"
    secret.mkdir(parents=True, exist_ok=True)
    for key, text in keys.items():
        (secret / key.replace("__", ".")).write_text(text)


def create_credentials(folder: Path, kind: str, host: str) -> tuple[SourceCredentials, str]:
    """Write credentials of one kind. Return them, and the name of the Secret."""
    if kind == "credentials_file":
        (folder / "credentials").write_text(f"http://{USER}:{PASSWORD.replace('@', '%40')}@{host}\n")
        return SourceCredentials(credentials_file=str(folder / "credentials")), ""
    config = json.dumps({"auths": {host: {"auth": AUTH}}})
    if kind == "docker_config":
        (folder / "config.json").write_text(config)
        return SourceCredentials(docker_config=str(folder / "config.json")), ""
    if kind == "secret":
        write_secret(folder, username=f"{USER}\n", password=PASSWORD)
    else:
        write_secret(folder, **{".dockerconfigjson": config})
    return SourceCredentials(secrets_directory=str(folder)), "pull"


KINDS = ["credentials_file", "docker_config", "secret", "docker_secret"]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("scheme", ["basic", "bearer"])
def test_private_registry(kind: str, scheme: str, tmp_path: Path, world: World, registry: RegistryServer) -> None:
    registry.scheme, registry.login = scheme, (USER, PASSWORD)  # type: ignore[assignment]
    registry.push("team/app", "v1", APP)
    problem = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceUnauthorized"
    assert "sources.credentials_file" in problem.message

    world.credentials, secret = create_credentials(tmp_path, kind, registry.host)
    world.restart()
    repository = oci_repository(registry, secret_name=secret)
    resolved = world.artifacts.find_tag(repository, "app", "v1")
    assert isinstance(resolved, ResolvedTag), resolved
    assert isinstance(world.artifacts.read(repository, "app", resolved.version), Artifact)
    tokens = [path for path in registry.paths if "/token" in path]
    # The token is used again for the manifest and the blob.
    assert len(tokens) == (2 if scheme == "bearer" else 0)


def use_identity_token(folder: Path, world: World, registry: RegistryServer) -> None:
    """Write the credentials that `az acr login` writes: the user of `auth` has no password."""
    registry.scheme, registry.identity_token = "bearer", "identity+token/value="
    registry.push("team/app", "v1", APP)
    auth = base64.b64encode(b"00000000-0000-0000-0000-000000000000:").decode()
    entry = {"auth": auth, "identitytoken": registry.identity_token}
    (folder / "config.json").write_text(json.dumps({"auths": {registry.host: entry}}))
    world.credentials = SourceCredentials(docker_config=str(folder / "config.json"))
    world.restart()


def test_identity_token_is_exchanged(tmp_path: Path, world: World, registry: RegistryServer) -> None:
    use_identity_token(tmp_path, world, registry)

    assert isinstance(world.artifacts.find_tag(oci_repository(registry), "app", "v1"), ResolvedTag)
    assert "POST /token" in registry.paths


def test_refused_identity_token(tmp_path: Path, world: World, registry: RegistryServer) -> None:
    use_identity_token(tmp_path, world, registry)
    registry.identity_token = "a newer token"

    problem = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceUnauthorized"
    assert "identity+token" not in problem.message


def test_redirect_receives_no_identity_token(
    tmp_path: Path, world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    use_identity_token(tmp_path, world, registry)
    registry.overrides["/token"] = Answer(307, {"Location": f"{other_registry.url}/token"})

    assert isinstance(world.artifacts.find_tag(oci_repository(registry), "app", "v1"), SourceProblem)
    assert [(request.method, request.body) for request in other_registry.requests] == [("POST", "")]


@pytest.mark.parametrize("kind", KINDS)
def test_private_chart_repository(kind: str, tmp_path: Path, world: World, charts: ArtifactServer) -> None:
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB)
    problem = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceUnauthorized"

    world.credentials, secret = create_credentials(tmp_path, kind, charts.host)
    world.restart()
    repository = helm_repository(charts, secret_name=secret)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList), versions
    assert isinstance(world.artifacts.read(repository, "web", versions.versions[0]), Artifact)


def test_changed_password_is_used_without_a_restart(tmp_path: Path, world: World, charts: ArtifactServer) -> None:
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB)
    write_secret(tmp_path, username=USER, password="old-password")
    world.credentials = SourceCredentials(secrets_directory=str(tmp_path))
    world.restart()
    repository = helm_repository(charts, secret_name="pull")
    assert isinstance(world.artifacts.list_versions(repository, "web"), SourceProblem)
    write_secret(tmp_path, password=PASSWORD)
    world.now += 10
    assert isinstance(world.artifacts.list_versions(repository, "web"), VersionList)


def test_repositories_with_different_credentials_share_no_list(
    tmp_path: Path, world: World, charts: ArtifactServer
) -> None:
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB)
    world.credentials, _ = create_credentials(tmp_path, "secret", charts.host)
    world.restart()
    assert isinstance(world.artifacts.list_versions(helm_repository(charts, secret_name="pull"), "web"), VersionList)
    assert isinstance(world.artifacts.list_versions(helm_repository(charts), "web"), SourceProblem)


@pytest.mark.parametrize("kind", KINDS)
def test_redirect_to_another_host_has_no_credentials(
    kind: str, tmp_path: Path, world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    registry.scheme, registry.login = "bearer", (USER, PASSWORD)
    digest = registry.push("team/app", "v1", APP)
    world.credentials, secret = create_credentials(tmp_path, kind, registry.host)
    world.restart()
    repository = oci_repository(registry, secret_name=secret, pass_credentials=True)
    resolved = world.artifacts.find_tag(repository, "app", "v1")
    assert isinstance(resolved, ResolvedTag)
    assert resolved.version.digest == digest
    registry.overrides["/blobs/"] = Answer(307, {"Location": f"{other_registry.url}/storage?sig=1"})
    other_registry.overrides["/storage"] = Answer(body=APP)
    assert isinstance(world.artifacts.read(repository, "app", resolved.version), Artifact)
    [request] = other_registry.requests
    assert "authorization" not in request.headers


def test_challenge_of_another_host_gets_no_credentials(
    tmp_path: Path, world: World, registry: RegistryServer, other_registry: RegistryServer
) -> None:
    registry.login = (USER, PASSWORD)
    world.credentials, secret = create_credentials(tmp_path, "secret", registry.host)
    world.restart()
    other_registry.scheme, other_registry.login = "basic", ("x", "y")
    registry.overrides["/tags/"] = Answer(307, {"Location": f"{other_registry.url}/v2/x/tags/list"})
    problem = world.artifacts.list_versions(oci_repository(registry, secret_name=secret), "app")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceUnauthorized"
    assert ["authorization" in request.headers for request in other_registry.requests] == [False]


@pytest.mark.parametrize("passes", [False, True])
def test_other_host_in_an_index(
    passes: bool, tmp_path: Path, world: World, charts: ArtifactServer, other_registry: RegistryServer
) -> None:
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB, urls=[f"{other_registry.url}/web.tgz"])
    other_registry.overrides["/web.tgz"] = Answer(body=WEB)
    world.credentials, secret = create_credentials(tmp_path, "secret", charts.host)
    world.restart()
    repository = helm_repository(charts, secret_name=secret, pass_credentials=passes)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    assert isinstance(world.artifacts.read(repository, "web", versions.versions[0]), Artifact)
    assert ["authorization" in request.headers for request in other_registry.requests] == [passes]


SETTINGS_KINDS = ["credentials_file", "docker_config"]


@pytest.mark.parametrize("kind", SETTINGS_KINDS)
@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("url", ["/secret/web.tgz", "SERVER/secret/web.tgz", "SERVER/charts-of-others/web.tgz"])
def test_index_cannot_use_the_settings_for_another_folder(
    kind: str, passes: bool, url: str, tmp_path: Path, world: World, charts: ArtifactServer
) -> None:
    """The author of an index cannot read other charts of the host for which the settings contain credentials."""
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB, urls=[url.replace("SERVER", charts.url)])
    charts.files |= {"/secret/web.tgz": WEB, "/charts-of-others/web.tgz": WEB}
    world.credentials, _ = create_credentials(tmp_path, kind, charts.host)
    world.restart()
    repository = helm_repository(charts, pass_credentials=passes)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList), versions

    result = world.artifacts.read(repository, "web", versions.versions[0])

    assert getattr(result, "code", "") == ("" if passes else "SourceUnauthorized")
    others = [request for request in charts.requests if not request.path.startswith("/charts/")]
    assert ["authorization" in request.headers for request in others] == [passes]


@pytest.mark.parametrize("kind", SETTINGS_KINDS)
@pytest.mark.parametrize("passes", [False, True])
@pytest.mark.parametrize("scheme", ["basic", "bearer"])
def test_index_cannot_use_the_settings_for_a_registry(
    kind: str, passes: bool, scheme: str, tmp_path: Path, world: World, charts: ArtifactServer, registry: RegistryServer
) -> None:
    registry.scheme, registry.login = scheme, (USER, PASSWORD)  # type: ignore[assignment]
    registry.push("secret/web", "1.0.0", WEB, CHART_LAYER)
    charts.add_chart("web", "1.0.0", WEB, urls=["oci://registry.example/secret/web:1.0.0"])
    world.credentials, _ = create_credentials(tmp_path, kind, registry.host)
    # The mirror lets the client use http.
    mirror = Mirror("oci://registry.example/", f"oci://{registry.host}/", insecure=True)
    world.restart(mirrors=(mirror,))
    # A package of another team gets an authorization for the same artifact.
    other = oci_repository(registry, url=f"oci://{registry.host}/secret")
    assert isinstance(world.artifacts.find_tag(other, "web", "1.0.0"), ResolvedTag)
    repository = helm_repository(charts, pass_credentials=passes)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList), versions

    result = world.artifacts.read(repository, "web", versions.versions[0])

    assert getattr(result, "code", "") == ("" if passes else "SourceUnauthorized")


@pytest.mark.parametrize("kind", SETTINGS_KINDS)
@pytest.mark.parametrize(("target", "is_sent"), [("/charts/moved.tgz", True), ("/secret/web.tgz", False)])
def test_redirect_cannot_use_the_settings_for_another_folder(
    kind: str, target: str, is_sent: bool, tmp_path: Path, world: World, charts: ArtifactServer
) -> None:
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB)
    charts.overrides["/charts/web-1.0.0.tgz"] = Answer(302, {"Location": target})
    charts.files[target] = WEB
    world.credentials, _ = create_credentials(tmp_path, kind, charts.host)
    world.restart()
    versions = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(versions, VersionList), versions

    result = world.artifacts.read(helm_repository(charts), "web", versions.versions[0])

    assert isinstance(result, Artifact) is is_sent
    assert "authorization" in charts.requests[-2].headers
    assert ("authorization" in charts.requests[-1].headers) is is_sent


@pytest.mark.parametrize(("target", "is_sent"), [("/v2/team/app/moved", True), ("/v2/secret/app/blobs/x", False)])
def test_redirect_of_a_registry_cannot_use_the_settings_for_another_artifact(
    target: str, is_sent: bool, tmp_path: Path, world: World, registry: RegistryServer
) -> None:
    registry.scheme, registry.login = "basic", (USER, PASSWORD)
    registry.push("team/app", "v1", APP)
    world.credentials, _ = create_credentials(tmp_path, "credentials_file", registry.host)
    world.restart()
    resolved = world.artifacts.find_tag(oci_repository(registry), "app", "v1")
    assert isinstance(resolved, ResolvedTag)
    registry.overrides["/v2/team/app/blobs/"] = Answer(307, {"Location": target})

    world.artifacts.read(oci_repository(registry), "app", resolved.version)

    assert registry.requests[-1].path == target
    assert ("authorization" in registry.requests[-1].headers) is is_sent


def test_messages_contain_no_credentials(tmp_path: Path, world: World, registry: RegistryServer) -> None:
    registry.scheme, registry.login = "basic", (USER, "another")
    world.credentials, secret = create_credentials(tmp_path, "secret", registry.host)
    world.restart()
    problem = world.artifacts.list_versions(oci_repository(registry, secret_name=secret), "app")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceUnauthorized"
    assert PASSWORD not in problem.message
    assert redact(f"x {PASSWORD} {AUTH} y") == "x ***** ***** y"


REPOSITORY = ArtifactRepository("default", "charts", "helm", "https://charts.example.com/stable", secret_name="pull")


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        pytest.param({"username": "me"}, "cannot read the credentials file .*password", id="no-password"),
        pytest.param({"username": "me", "password": ""}, "not empty", id="empty-password"),
        pytest.param({"username": "me", "password": "a\nb"}, "without line breaks", id="line-break"),
        pytest.param({".dockerconfigjson": "{"}, "must contain a JSON object", id="broken-json"),
        pytest.param({".dockerconfigjson": "[]"}, "must contain a JSON object", id="list"),
        pytest.param({".dockerconfigjson": '{"auths": {"charts.example.com": {"auth": "?"}}}'}, "base64", id="auth"),
    ],
)  # fmt: skip
def test_invalid_secrets(keys: dict[str, str], message: str, tmp_path: Path) -> None:
    write_secret(tmp_path, **keys)
    with pytest.raises(SourceError, match=message) as caught:
        SourceCredentials(str(tmp_path)).find_login(REPOSITORY, REPOSITORY.url)
    assert caught.value.code == "SourceUnauthorized"


@pytest.mark.parametrize(
    ("directory", "namespace", "name", "message"),
    [
        ("", "default", "pull", "set `sources.secrets_directory`"),
        ("DIR", "default", "other", "create the folder"),
        ("DIR", "default", "../pull", "invalid name"),
        ("DIR", "..", "pull", "invalid name"),
    ],
)
def test_missing_secrets(directory: str, namespace: str, name: str, message: str, tmp_path: Path) -> None:
    credentials = SourceCredentials(directory.replace("DIR", str(tmp_path)))
    with pytest.raises(SourceError, match=message):
        credentials.find_secret_folder(namespace, name)


@pytest.mark.parametrize(
    ("key", "url", "is_found"),
    [
        ("registry.example.com", "https://registry.example.com/v2/a/b/tags/list", True),
        ("https://registry.example.com", "https://registry.example.com/v2/a", True),
        ("https://registry.example.com/v2/", "https://registry.example.com/v2/a", True),
        ("registry.example.com/a", "https://registry.example.com/v2/a/b", True),
        ("registry.example.com/a", "https://registry.example.com/v2/ab", False),
        ("registry.example.com", "https://registry.example.com:5000/v2/a", False),
        ("registry.example.com:5000", "https://registry.example.com:5000/v2/a", True),
        ("Registry.Example.com:443", "https://registry.example.com/v2/a", True),
        ("registry.example.com", "https://registry.example.com:443/v2/a", True),
        ("registry.example.com", "https://evil.registry.example.com/v2/a", False),
        ("https://index.docker.io/v1/", "https://registry-1.docker.io/v2/library/a", True),
    ],
)
def test_keys_of_a_docker_config(key: str, url: str, is_found: bool, tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    file.write_text(json.dumps({"auths": {key: {"username": USER, "password": PASSWORD}}}))
    login = SourceCredentials(docker_config=str(file)).find_login(REPOSITORY, url)
    assert (login is not None) == is_found


def test_longest_key_of_a_docker_config_is_used(tmp_path: Path) -> None:
    file = tmp_path / "config.json"
    entries = {"r.example": {"auth": AUTH}, "r.example/a": {"username": "team-a", "password": PASSWORD}}
    file.write_text(json.dumps({"auths": entries}))
    login = SourceCredentials(docker_config=str(file)).find_login(REPOSITORY, "https://r.example/v2/a/b")
    assert login is not None
    assert login.username == "team-a"


@pytest.mark.parametrize(
    ("config", "is_reported"),
    [
        ({"credsStore": "desktop"}, True),
        ({"credHelpers": {"HOST": "gcloud"}}, True),
        ({"credHelpers": {"other.example": "gcloud"}}, False),
        ({"credsStore": "desktop", "auths": {"HOST": {"auth": AUTH}}}, False),
        ({"auths": {}}, False),
    ],
)
def test_credential_helpers_are_reported(
    config: dict[str, object], is_reported: bool, tmp_path: Path, world: World, charts: ArtifactServer
) -> None:
    charts.add_chart("web", "1.0.0", WEB)
    file = tmp_path / "config.json"
    file.write_text(json.dumps(config).replace("HOST", charts.host))
    world.credentials = SourceCredentials(docker_config=str(file))
    world.restart()
    result = world.artifacts.list_versions(helm_repository(charts), "web")
    assert isinstance(result, VersionList)
    assert [note.code for note in result.notes] == (["CredentialHelperIgnored"] if is_reported else [])


def test_certificates(tmp_path: Path, world: World) -> None:
    """A server with its own authority, which requires a certificate of the client."""
    server_files, client_files = write_certificate(tmp_path, "server"), write_certificate(tmp_path, "client")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_files[0]))
    tls.load_cert_chain(*map(str, server_files))
    tls.verify_mode = ssl.CERT_REQUIRED
    with serve(ArtifactServer(), tls) as server:
        server.add_chart("web", "1.0.0", WEB)
        url = f"https://127.0.0.1:{server.port}/charts"
        problem = world.artifacts.list_versions(helm_repository(server, url=url), "web")
        assert isinstance(problem, SourceProblem)
        assert "certificate verify failed" in problem.message

        secret = tmp_path / "default/tls"
        secret.mkdir(parents=True)
        for key, file in {"ca.crt": server_files[0], "tls.crt": client_files[0], "tls.key": client_files[1]}.items():
            (secret / key).write_bytes(file.read_bytes())
        world.credentials = SourceCredentials(secrets_directory=str(tmp_path))
        world.restart()
        repository = helm_repository(server, url=url, cert_secret_name="tls")
        versions = world.artifacts.list_versions(repository, "web")
        assert isinstance(versions, VersionList), versions
        assert isinstance(world.artifacts.read(repository, "web", versions.versions[0]), Artifact)

        (secret / "tls.key").unlink()
        world.now += 400
        stale = world.artifacts.list_versions(repository, "web")
        assert isinstance(stale, VersionList)
        assert stale.problem is not None
        assert "both tls.crt and tls.key" in stale.problem.message


@pytest.mark.parametrize("passes", [False, True])
def test_registry_in_an_index(
    passes: bool,
    tmp_path: Path,
    world: World,
    charts: ArtifactServer,
    registry: RegistryServer,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    # A registry in an index has TLS. The registry of the test has none.
    monkeypatch.setattr(artifacts, "rewrite_repository", lambda given, _: replace(given, insecure=True))
    charts.login = (USER, PASSWORD)
    charts.add_chart("web", "1.0.0", WEB, urls=[f"oci://localhost:{registry.port}/team/web:1.0.0"])
    registry.push("team/web", "1.0.0", WEB, CHART_LAYER)
    registry.scheme, registry.login = "basic", (USER, PASSWORD)
    world.credentials, secret = create_credentials(tmp_path, "secret", charts.host)
    world.restart()
    repository = helm_repository(charts, secret_name=secret, pass_credentials=passes)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    result = world.artifacts.read(repository, "web", versions.versions[0])
    assert isinstance(result, Artifact if passes else SourceProblem), result
    assert any("authorization" in request.headers for request in registry.requests) == passes


def test_certificate_is_sent_only_to_the_repository(tmp_path: Path, world: World) -> None:
    """Neither a redirect nor the URL of a chart sends the certificate of the client to another server."""
    server_files, client_files = write_certificate(tmp_path, "server"), write_certificate(tmp_path, "client")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=str(client_files[0]))
    tls.load_cert_chain(*map(str, server_files))
    tls.verify_mode = ssl.CERT_OPTIONAL
    secret = tmp_path / "default/tls"
    secret.mkdir(parents=True)
    for key, file in {"ca.crt": server_files[0], "tls.crt": client_files[0], "tls.key": client_files[1]}.items():
        (secret / key).write_bytes(file.read_bytes())
    world.credentials = SourceCredentials(secrets_directory=str(tmp_path))
    world.restart()
    with serve(ArtifactServer(), tls) as server, serve(ArtifactServer(), tls) as other:
        other_url = f"https://127.0.0.1:{other.port}/web.tgz"
        other.files["/web.tgz"] = WEB
        server.add_chart("web", "1.0.0", WEB, urls=[other_url])
        server.add_chart("web", "1.1.0", WEB, urls=["moved.tgz"], digest=None)
        server.overrides["moved.tgz"] = Answer(302, {"Location": other_url})
        url = f"https://127.0.0.1:{server.port}/charts"
        repository = helm_repository(server, url=url, cert_secret_name="tls")
        versions = world.artifacts.list_versions(repository, "web")
        assert isinstance(versions, VersionList), versions
        for version in versions.versions:
            assert isinstance(world.artifacts.read(repository, "web", version), Artifact)
        world.artifacts.close()
    assert {request.has_certificate for request in server.requests} == {True}
    assert [request.has_certificate for request in other.requests] == [False, False]


def test_mirror(tmp_path: Path, world: World, charts: ArtifactServer, registry: RegistryServer) -> None:
    """The mirror is used instead of the original host, and receives no Secret of the Repository."""
    charts.add_chart("web", "1.0.0", WEB, urls=["https://downloads.example.com/charts/web-1.0.0.tgz"])
    digest = registry.push("mirrored/team/app", "v1", APP)
    world.credentials, secret = create_credentials(tmp_path, "secret", charts.host)
    mirrors = (
        Mirror("https://charts.example.com/", charts.url),
        Mirror("https://downloads.example.com", charts.url),
        Mirror("oci://registry.example.com", f"oci://{registry.host}/mirrored/", insecure=True),
    )
    world.restart(mirrors=mirrors)
    repository = helm_repository(charts, url="https://charts.example.com/charts", secret_name=secret)
    versions = world.artifacts.list_versions(repository, "web")
    assert isinstance(versions, VersionList)
    assert isinstance(world.artifacts.read(repository, "web", versions.versions[0]), Artifact)
    oci = ArtifactRepository("default", "oci", "oci", "oci://registry.example.com/team", secret_name=secret)
    resolved = world.artifacts.find_tag(oci, "app", "v1")
    assert isinstance(resolved, ResolvedTag)
    assert resolved.version.digest == digest
    assert not any("authorization" in request.headers for request in [*charts.requests, *registry.requests])
    other = ArtifactRepository("default", "oci", "oci", "oci://registry.example.com.evil/team", insecure=True)
    problem = world.artifacts.find_tag(other, "app", "v1")
    assert isinstance(problem, SourceProblem)
    assert problem.code == "SourceAddressRefused"
