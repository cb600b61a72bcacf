"""GitHub Apps in `git.credentials`: tokens for Git and for pull requests, with the permissions of each use."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from reconciler.bootstrap.credentials import build_remote_credentials
from reconciler.bootstrap.forges import ForgeRegistry
from reconciler.forge.errors import ForgeCredentialsError
from reconciler.git.errors import AccessDeniedError
from reconciler.git.remote_credentials import CredentialUse, RemoteCredentials
from reconciler.git.url import parse_url
from reconciler.settings import Settings
from tests.forge.test_app_token import APP, World, private_pem, public_pem
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.server import serve

FLEET = "https://github.com/acme/fleet.git"


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    world = World(tmp_path, rsa.generate_private_key(65537, 2048))
    with serve(GitHubWire(world.forge, app=world.app)) as url:
        world.url = url
        yield world


def read_settings(world: World, uses: dict[str, Any], **forge: Any) -> Settings:
    entry = {"url": "github.com/acme/*", **uses}
    host = {"url": "https://github.com/acme", "kind": "github", "api": world.url}
    return Settings.model_validate({"git": {"credentials": [entry]}, "forge": {"hosts": [host], **forge}})


def build_credentials(world: World, settings: Settings) -> RemoteCredentials:
    return build_remote_credentials(settings, ForgeRegistry(settings, world.clock))


def open_access(credentials: RemoteCredentials, use: CredentialUse, url: str = FLEET) -> str:
    """Return the input of git for a use of a remote, which contains the user name and the password."""
    with credentials.open(parse_url(url), use) as access:
        return Path(f"/proc/self/fd/{access.descriptors[0]}").read_text()


def test_git_gets_tokens_with_the_permissions_of_each_use(world: World) -> None:
    app = {"github_app": {"app_id": APP, "key_file": str(world.key_file)}}
    credentials = build_credentials(world, read_settings(world, {"read": app, "write": app}))

    inputs = [open_access(credentials, use) for use in ("read", "read", "write")]

    assert inputs == [f"username=x-access-token\npassword=ghs_secret{number}\n" for number in (1, 1, 2)]
    assert world.app.limits == [
        {"permissions": {"contents": level}, "repositories": ["fleet"]} for level in ("read", "write")
    ]


def test_token_is_requested_again_shortly_before_it_expires(world: World) -> None:
    app = {"github_app": {"app_id": APP, "key_file": str(world.key_file), "installation": 4711}}
    credentials = build_credentials(world, read_settings(world, {"read": app}))
    first = open_access(credentials, "read")
    world.clock.now += 3301

    assert open_access(credentials, "read") != first


@pytest.mark.slow
def test_rotated_private_key_is_used_after_a_refusal(world: World) -> None:
    app = {"github_app": {"app_id": APP, "key_file": str(world.key_file)}}
    credentials = build_credentials(world, read_settings(world, {"read": app}))
    open_access(credentials, "read")
    other = rsa.generate_private_key(65537, 2048)
    world.app.public_key = public_pem(other)
    world.key_file.write_bytes(private_pem(other))

    assert credentials.expire(parse_url(FLEET), "read")
    assert "ghs_secret2" in open_access(credentials, "read")


@pytest.mark.parametrize(
    ("url", "app", "message"),
    [
        pytest.param(FLEET, "other", r"cannot get a token of the GitHub App for .*fleet\.git", id="unknown-app"),
        pytest.param("https://github.com/acme/a/b", APP, "must be https://HOST/OWNER/NAME", id="deep-path"),
    ],
)
def test_failure_is_an_error_of_git(world: World, url: str, app: str, message: str) -> None:
    source = {"github_app": {"app_id": app, "key_file": str(world.key_file)}}
    credentials = build_credentials(world, read_settings(world, {"read": source}))

    with pytest.raises(AccessDeniedError, match=message) as caught:
        open_access(credentials, "read", url)

    assert "PRIVATE KEY" not in str(caught.value)


@pytest.mark.parametrize(
    ("forge", "permissions"),
    [
        pytest.param({}, {"contents": "write", "pull_requests": "write", "statuses": "write"}, id="default"),
        pytest.param({"check": False}, {"contents": "write", "pull_requests": "write"}, id="without-checks"),
    ],
)
def test_pull_requests_use_the_credentials_of_the_api(
    world: World, forge: dict[str, Any], permissions: dict[str, str]
) -> None:
    app = {"github_app": {"app_id": APP, "key_file": str(world.key_file)}}
    registry = ForgeRegistry(read_settings(world, {"api": app}, **forge), world.clock)

    client = registry.get_forge(FLEET)
    assert client is not None
    client.list_open_requests()

    assert world.app.limits == [{"permissions": permissions, "repositories": ["fleet"]}]
    registry.close()


def test_each_repository_of_an_installation_has_its_own_token(world: World) -> None:
    world.forge.create_repository("acme/stores")
    app = {"github_app": {"app_id": APP, "key_file": str(world.key_file), "installation": 4711}}
    registry = ForgeRegistry(read_settings(world, {"api": app}), world.clock)

    for url in (FLEET, "https://github.com/acme/stores.git", FLEET):
        client = registry.get_forge(url)
        assert client is not None
        # GitHub answers "Not Found" for a token of another repository.
        client.list_open_requests()

    assert [limits["repositories"] for limits in world.app.limits] == [["fleet"], ["stores"]]
    registry.close()


@pytest.mark.parametrize(
    ("entries", "message"),
    [
        pytest.param(
            [{"url": "github.com/acme/fleet", "read": {"token_file": "t"}}, {"url": "h", "api": {"token_file": "t"}}],
            r"no entry of `git\.credentials` with `api` matches github\.com/acme/fleet",
            id="no-entry",
        ),
        pytest.param(
            [
                {"url": "github.com/acme/fleet", "read": {"token_file": "t"}},
                {"url": "*", "api": {"token_file": "lost"}},
            ],
            "cannot read the credentials file lost",
            id="later-entry",
        ),
    ],
)
def test_first_matching_entry_with_api_applies(world: World, entries: list[dict[str, Any]], message: str) -> None:
    host = {"url": "https://github.com/acme", "kind": "github", "api": world.url}
    settings = Settings.model_validate({"git": {"credentials": entries}, "forge": {"hosts": [host]}})

    client = ForgeRegistry(settings, world.clock).get_forge(FLEET)

    assert client is not None
    with pytest.raises(ForgeCredentialsError, match=message):
        client.list_open_requests()


@pytest.mark.parametrize("url", ["https://github.com", "https://github.com/"])
def test_forge_without_a_path_contains_all_repositories_of_its_host(world: World, url: str) -> None:
    host = {"url": url, "kind": "github", "api": world.url}
    entries = [{"url": "github.com", "api": {"token_file": "t"}}]
    settings = Settings.model_validate({"git": {"credentials": entries}, "forge": {"hosts": [host]}})
    registry = ForgeRegistry(settings, world.clock)

    assert registry.get_forge(FLEET) is not None
    assert registry.get_forge("https://git.example.com/acme/fleet.git") is None


def test_entry_with_only_an_api_has_no_effect_on_git(world: World) -> None:
    entries = [{"url": "*", "api": {"token_file": "t"}}, {"url": "github.com", "read": {"token_file": "lost"}}]
    credentials = build_credentials(world, Settings.model_validate({"git": {"credentials": entries}}))

    entry = credentials.find_entry(parse_url(FLEET))

    assert entry is not None
    assert entry.setting == "git.credentials[1]"
    assert credentials.find_entry(parse_url("https://h.example/a.git")) is None
