"""Tests of normalized repository URLs: equal for all spellings of one repository, and different otherwise."""

from __future__ import annotations

import pytest

from reconciler.krm.git_formats import is_same_repository, normalize_repository_url


@pytest.mark.parametrize(
    ("url", "other"),
    [
        pytest.param("https://git.example.com/a/b.git", "https://git.example.com/a/b", id="suffix"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com/a/b/", id="trailing-slash"),
        pytest.param("https://git.example.com/a/b.git", "https://git.example.com/a/b.git/", id="suffix-and-slash"),
        pytest.param("https://git.example.com/a/b", "HTTPS://Git.Example.COM/a/b", id="case-of-scheme-and-host"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com:443/a/b", id="default-port"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com:/a/b", id="empty-port"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com./a/b", id="root-of-dns"),
        pytest.param("ssh://git.example.com/a/b", "ssh://git@git.example.com:22/a/b.git", id="user-and-port"),
        pytest.param("ssh://git.example.com/a/b", "git@git.example.com:a/b.git", id="scp-style"),
        pytest.param("ssh://git.example.com/a/b", "git.example.com:/a/b", id="scp-style-with-a-slash"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com//a//b", id="double-slashes"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com/./a/./b", id="dot-segments"),
        pytest.param("https://git.example.com/a-b/c", "https://git.example.com/a%2db/%63", id="escapes"),
        pytest.param("https://git.example.com/a%2Fb", "https://git.example.com/a%2fb", id="case-of-an-escape"),
        pytest.param("https://[2001:db8::1]/a", "https://[2001:DB8::1]:443/a.git", id="ipv6"),
        pytest.param("/srv/fleet.git", "file:///srv/fleet.git", id="file-url"),
        pytest.param("/srv/fleet.git", "file://localhost/srv/fleet", id="file-url-with-a-host"),
        pytest.param("/srv/a b.git", "file:///srv/a%20b.git", id="file-url-with-an-escape"),
        pytest.param("/srv/fleet.git", "/srv/./x/..//fleet/", id="path"),
        pytest.param("/srv/fleet", "/srv/fleet/.git", id="work-tree"),
        pytest.param("/srv/fleet.git", "//srv/fleet.git", id="two-slashes-at-the-start"),
        pytest.param("./fleet.git", "fleet", id="relative"),
    ],
)
def test_spellings_of_one_repository_are_equal(url: str, other: str) -> None:
    assert normalize_repository_url(url) == normalize_repository_url(other)
    assert normalize_repository_url(normalize_repository_url(url)) == normalize_repository_url(url)
    assert is_same_repository(url, other)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        pytest.param("https://git.example.com/a/b", "https://git.example.com/a/c", id="path"),
        pytest.param("https://git.example.com/a/b", "https://git.example.com/A/b", id="case-of-the-path"),
        pytest.param("https://git.example.com/a/b", "https://git.example.org/a/b", id="host"),
        pytest.param("ssh://git.example.com/a/b", "ssh://git.example.com/~/a/b", id="home"),
        pytest.param("https://git.example.com/a/b", "/a/b", id="a-local-path"),
        pytest.param("https://git.example.com/a%2Fb", "https://git.example.com/a/b", id="an-escaped-slash"),
        pytest.param("/srv/fleet.git", "fleet.git", id="relative-and-absolute"),
        pytest.param("/srv/fleet.git", "/srv/fleet.github", id="only-looks-like-the-suffix"),
    ],
)
def test_other_repositories_are_different(url: str, other: str) -> None:
    assert normalize_repository_url(url) != normalize_repository_url(other)
    assert not is_same_repository(url, other)


@pytest.mark.parametrize(
    ("url", "other"),
    [
        pytest.param("https://git.example.com/a/b", "git@git.example.com:a/b.git", id="https-and-ssh"),
        pytest.param("https://git.example.com/a/b", "ssh://git@git.example.com:7999/a/b", id="ports-of-protocols"),
        pytest.param("http://git.example.com/a/b", "https://git.example.com/a/b", id="http-and-https"),
    ],
)
def test_same_repository_with_another_protocol(url: str, other: str) -> None:
    assert normalize_repository_url(url) != normalize_repository_url(other)
    assert is_same_repository(url, other)
