"""The selection of the driver by the address of a repository."""

from __future__ import annotations

import pytest

from reconciler.forge.drivers import ApiCredentials, Host, Hosts
from reconciler.forge.gitea import Gitea
from reconciler.forge.github import GitHub
from reconciler.forge.github_app import AppTokens
from reconciler.forge.gitlab import GitLab
from reconciler.forge.rate_limits import ForgeLimit, ForgeQuota

HOSTS = (
    Host("github", "github.com", "acme", credentials=ApiCredentials("token")),
    Host("github", "git.example.com", credentials=ApiCredentials("token")),
    Host("gitlab", "gitlab.com", credentials=ApiCredentials("token")),
    Host("gitea", "codeberg.org", credentials=ApiCredentials("token")),
    Host("agit", "codeberg.org", "by-push"),
    Host("gitlab-push-options", "gitlab.com", "by-push"),
    Host("gitea", "", "srv/git", api="http://127.0.0.1:3000/api/v1", credentials=ApiCredentials("token")),
)


def make_hosts() -> Hosts:
    def clock() -> float:
        return 0.0

    return Hosts(HOSTS, 0, 0, clock, AppTokens(clock))


def test_forges_with_an_api_have_limits() -> None:
    quota = ForgeQuota(5_000, 4_999)
    hosts = [Host("github", "github.com", "acme"), Host("agit", "gitea.example.com"), Host("gitea", "")]
    forges = Hosts(hosts, 0, 0, lambda: 0.0, AppTokens(lambda: 0.0))
    forge = forges.get_forge("github.com", "acme/fleet")
    assert isinstance(forge, GitHub)
    limiter = forges._rate_limiters[hosts[0]]
    limiter.quota = quota
    limiter.pause_until(60.0)

    assert forges.list_limits() == (
        ForgeLimit("github.com/acme", "github", quota, 60.0), ForgeLimit("", "gitea", ForgeQuota()),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("host", "path", "kind", "driver"),
    [
        ("github.com", "acme/fleet", "github", GitHub),
        ("github.com", "acmeltd/fleet", None, None),
        ("github.com", "acme", "github", None),
        ("github.com", "acme/fleet/wiki", "github", None),
        ("git.example.com", "any/fleet", "github", GitHub),
        ("gitlab.com", "group/sub/fleet", "gitlab", GitLab),
        ("gitlab.com", "by-push/fleet", "gitlab-push-options", None),
        ("codeberg.org", "acme/fleet", "gitea", Gitea),
        ("codeberg.org", "by-push/fleet", "agit", None),
        ("", "srv/git/acme/fleet", "gitea", Gitea),
        ("", "srv/gitter/acme/fleet", None, None),
        ("elsewhere.org", "acme/fleet", None, None),
    ],
)
def test_forge_with_the_longest_path_is_selected(host: str, path: str, kind: str | None, driver: type | None) -> None:
    hosts = make_hosts()
    forge = hosts.get_forge(host, path)
    assert hosts.get_kind(host, path) == kind
    assert (None if forge is None else type(forge)) is driver
    assert hosts.get_forge(host, path) is forge, "each repository has one client, which caches responses"


@pytest.mark.parametrize(
    ("host", "root"),
    [
        (Host("github", "github.com"), "https://api.github.com"),
        (Host("github", "git.example.com"), "https://git.example.com/api/v3"),
        (Host("github", "acme.ghe.com"), "https://api.acme.ghe.com"),
        (Host("gitlab", "gitlab.com"), "https://gitlab.com/api/v4"),
        (Host("gitea", "codeberg.org"), "https://codeberg.org/api/v1"),
        (Host("gitea", "codeberg.org", api="https://api.codeberg.org"), "https://api.codeberg.org"),
    ],
)
def test_default_url_of_the_api(host: Host, root: str) -> None:
    assert host.root == root


@pytest.mark.parametrize(
    ("host", "path", "page"),
    [
        ("github.com", "acme/fleet", "https://github.com/acme/fleet/commit/1234"),
        ("gitlab.com", "a/b/c", "https://gitlab.com/a/b/c/-/commit/1234"),
        ("codeberg.org", "acme/fleet", "https://codeberg.org/acme/fleet/commit/1234"),
        ("", "srv/git/acme/fleet", ""),
        ("elsewhere.org", "acme/fleet", ""),
        ("gitlab.com", "a/b) [free](https://evil.example", ""),
    ],
)
def test_url_of_the_page_of_a_commit(host: str, path: str, page: str) -> None:
    assert make_hosts().build_commit_url(host, path, "1234") == page
