"""Tests of the limits of individual remotes."""

from __future__ import annotations

import pytest

from reconciler.git.options import GitOptions, GitRemoteLimits, apply_remote_limits
from reconciler.git.url import parse_url


@pytest.mark.parametrize(
    ("pattern", "url", "matches"),
    [
        pytest.param("github.com", "https://github.com/acme/fleet", True, id="a-host"),
        pytest.param("github.com", "git@github.com:acme/fleet.git", True, id="however-git-reaches-it"),
        pytest.param("GitHub.com", "ssh://git@github.com:22/acme/fleet", True, id="hosts-have-no-case"),
        pytest.param("github.com", "https://github.com.evil.example/acme/fleet", False, id="not-one-that-begins-so"),
        pytest.param("https://github.com/acme", "git@github.com:acme/fleet.git", True, id="an-address-of-a-folder"),
        pytest.param("github.com/acme", "https://github.com/acme-two/fleet", False, id="not-another-folder"),
        pytest.param("github.com/acme/fleet.git", "https://github.com/acme/fleet", True, id="one-remote"),
        pytest.param("github.com/*", "https://github.com/acme/fleet", True, id="a-glob"),
        pytest.param("github.com/*/fleet", "https://github.com/acme/fleet", True, id="a-glob-in-the-middle"),
        pytest.param("*.example.com", "https://git.example.com/acme/fleet", False, id="a-glob-is-over-all-of-it"),
        pytest.param("*.example.com/*", "https://git.example.com/acme/fleet", True, id="many-hosts"),
        pytest.param("*", "/srv/git/fleet.git", True, id="everything"),
        pytest.param("/srv/git", "/srv/git/fleet.git", True, id="a-local-folder"),
        pytest.param("file:///srv/git", "/srv/git/fleet.git", True, id="a-local-folder-as-an-address"),
        pytest.param("github.com/Acme", "https://github.com/acme/fleet", False, id="paths-have-case"),
        pytest.param("github.com", "https://github.com:8443/acme/fleet", False, id="another-port"),
        pytest.param("github.com:8443", "https://github.com:8443/acme/fleet", True, id="a-port"),
        pytest.param("github.com:8443/acme", "ssh://git@github.com:8443/acme/fleet", True, id="a-port-of-ssh"),
        pytest.param("[::1]/acme", "https://[::1]/acme/fleet", True, id="a-number-for-a-host"),
    ],
)
def test_remotes_that_match_a_pattern(pattern: str, url: str, matches: bool) -> None:
    options = GitOptions(remotes=(GitRemoteLimits(pattern, max_refs_per_push=3),))

    assert apply_remote_limits(options, parse_url(url)).max_refs_per_push == (3 if matches else 500)


def test_first_match_is_used_and_missing_limits_come_from_the_defaults() -> None:
    first = GitRemoteLimits("github.com/acme", max_pushes_per_minute=6)
    second = GitRemoteLimits("github.com", 3, 2)
    options = GitOptions(max_refs_per_push=100, max_pushes_per_minute=60, remotes=(first, second))
    mapping = {
        name: apply_remote_limits(options, parse_url(f"https://{name}"))
        for name in ("github.com/acme/a", "github.com/b", "gitlab.com/c")
    }

    assert {name: (git_options.max_refs_per_push, git_options.max_pushes_per_minute) for name, git_options in mapping.items()} == {
        "github.com/acme/a": (100, 6), "github.com/b": (3, 2), "gitlab.com/c": (100, 60),
    }  # fmt: skip


def test_limit_can_be_removed_for_a_remote() -> None:
    options = GitOptions(
        max_pushes_per_minute=6, remotes=(GitRemoteLimits("git.example.com", max_pushes_per_minute=0),)
    )

    assert apply_remote_limits(options, parse_url("https://git.example.com/a")).max_pushes_per_minute == 0
