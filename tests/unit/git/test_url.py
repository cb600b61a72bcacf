"""Tests of URLs: which are accepted, their normal form, and hidden passwords."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.git.errors import UrlRefusedError
from reconciler.git.url import check_url_allowed, find_parent_location, parse_url, split_host_and_path


@pytest.mark.parametrize(
    ("text", "base", "normal", "scheme"),
    [
        pytest.param("https://example.com/a/b.git", "", "https://example.com/a/b.git", "https", id="https"),
        pytest.param("HTTPS://Example.COM:443/a/b.git/", "", "https://example.com/a/b.git", "https", id="normal-form"),
        pytest.param("https://example.com:8443/a", "", "https://example.com:8443/a", "https", id="port"),
        pytest.param("https://[::1]:8443/a", "", "https://[::1]:8443/a", "https", id="ipv6"),
        pytest.param("ssh://git@example.com/a.git", "", "ssh://git@example.com/a.git", "ssh", id="ssh"),
        pytest.param("git@example.com:a/b.git", "", "git@example.com:a/b.git", "ssh", id="scp-style"),
        pytest.param("example.com:a/b.git", "", "example.com:a/b.git", "ssh", id="scp-style-without-user"),
        pytest.param("file:///srv/a%20b.git", "", "/srv/a b.git", "file", id="file-url"),
        pytest.param("/srv/../srv/a.git/", "", "/srv/a.git", "file", id="absolute-path"),
        pytest.param("./x.git", "/srv/configs", "/srv/configs/x.git", "file", id="relative"),
        pytest.param("../x.git", "/srv/configs", "/srv/x.git", "file", id="relative-upwards"),
        pytest.param("./a:b", "/srv", "/srv/a:b", "file", id="relative-with-colon"),
        pytest.param("x.git", "https://e.com/org", "https://e.com/org/x.git", "https", id="beside-a-url"),
        pytest.param("../o/x.git", "https://e.com/org", "https://e.com/o/x.git", "https", id="beside-and-up"),
        pytest.param("./x.git", "git@e.com:org", "git@e.com:org/x.git", "ssh", id="beside-scp-style"),
        pytest.param("./x.git", "git@e.com:", "git@e.com:x.git", "ssh", id="beside-scp-style-at-the-top"),
        pytest.param(
            "./x.git", "git@e.com:/srv/org", "git@e.com:/srv/org/x.git", "ssh", id="beside-absolute-scp-style"
        ),
        pytest.param("./x.git", "https://e.com/", "https://e.com/x.git", "https", id="beside-a-url-at-the-top"),
        pytest.param("./x.git", "file:///srv/a%20b", "/srv/a b/x.git", "file", id="beside-a-file-url"),
        pytest.param("../../../x.git", "https://e.com/org", "https://e.com/x.git", "https", id="not-above-the-host"),
        pytest.param("/srv/x.git", "https://e.com/org", "/srv/x.git", "file", id="absolute-beside-a-url"),
    ],
)
def test_valid_urls(text: str, base: str, normal: str, scheme: str) -> None:
    url = parse_url(text, base)

    assert (url.text, url.scheme) == (normal, scheme)
    assert parse_url(url.text) == url


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("-x", id="an-option"),
        pytest.param(" https://example.com/a", id="leading-blank"),
        pytest.param("https://example.com/a\nb", id="line-break"),
        pytest.param("ext::sh -c id", id="remote-helper"),
        pytest.param("fd::3", id="another-helper"),
        pytest.param("git://example.com/a", id="git-protocol"),
        pytest.param("ftp://example.com/a", id="ftp"),
        pytest.param("https://", id="no-host"),
        pytest.param("https://example.com", id="no-path"),
        pytest.param("https://example.com/a?token=1", id="query"),
        pytest.param("https://example.com/a#b", id="fragment"),
        pytest.param("https://example.com/org/../evil", id="upwards"),
        pytest.param("https://example.com/org/%2e%2e/evil", id="upwards-escaped"),
        pytest.param("https://example.com\\@evil.com/a", id="backslash"),
        pytest.param("https://example.com:99999/a", id="port-out-of-range"),
        pytest.param("https://[::1/a", id="broken-ipv6"),
        pytest.param("ssh://-oProxyCommand=id/a", id="option-as-host"),
        pytest.param("ssh://-oProxyCommand=id@example.com/a", id="option-as-user"),
        pytest.param("ssh://example.com/-x", id="option-as-path"),
        pytest.param("git@example.com:-x", id="option-as-scp-path"),
        pytest.param("git@example.com:a/../../b", id="scp-upwards"),
        pytest.param("file://elsewhere/a", id="file-on-another-host"),
        pytest.param("file:a", id="file-without-slashes"),
    ],
)
def test_invalid_urls_are_refused(text: str) -> None:
    with pytest.raises(UrlRefusedError):
        check_url_allowed(parse_url(text, "/base"), ("https://*", "ssh://*", "/*", "git@example.com:*"))


@given(st.text("abc:/@.%20[]\\-~", max_size=30))
def test_any_text_is_parsed_or_refused_without_its_password(text: str) -> None:
    for start in ("", "https://", "https://u:sesame@", "ssh://", "git@e.com:"):
        try:
            url = parse_url(start + text, "/base")
        except UrlRefusedError as error:
            assert "sesame" not in error.message  # noqa: PT017
        else:
            assert "sesame" not in url.text
            assert not url.connection_url.startswith("-")


@pytest.mark.parametrize(
    ("url", "allowed", "ok"),
    [
        pytest.param("https://e.com/a", (), True, id="https-by-default"),
        pytest.param("git@e.com:a", (), True, id="ssh-by-default"),
        pytest.param("/srv/a", (), True, id="local-by-default"),
        pytest.param("http://e.com/a", (), False, id="not-http-by-default"),
        pytest.param("http://e.com/a", ("http://e.com/",), True, id="http-when-listed"),
        pytest.param("https://e.com/org/a", ("https://e.com/org",), True, id="below-a-prefix"),
        pytest.param("https://e.com/org", ("https://e.com/org",), True, id="itself"),
        pytest.param("https://e.com/organism/a", ("https://e.com/org",), False, id="not-a-longer-name"),
        pytest.param("https://e.com.evil.org/a", ("https://e.com",), False, id="not-a-longer-host"),
        pytest.param("https://e.com@evil.org/a", ("https://e.com*",), False, id="not-a-login-like-a-host"),
        pytest.param("https://e.com/org/a", ("https://e.com/*/a",), True, id="glob"),
        pytest.param("https://E.com/org/a", ("https://e.com/org/*",), True, id="host-in-capitals"),
        pytest.param("git@e.com:org/a", ("git@e.com:org/*",), True, id="scp-style"),
        pytest.param("git@e.com:org/a", ("ssh://git@e.com/org",), True, id="scp-style-as-a-url"),
        pytest.param("git@e.com:org/a", ("git@e.com:",), True, id="scp-style-host"),
        pytest.param("/srv/git/a", ("/srv/git",), True, id="path"),
        pytest.param("/srv/git/a", ("file:///srv/git",), True, id="path-as-a-url"),
        pytest.param("/srv/git/../../etc", ("/srv/git",), False, id="path-upwards"),
        pytest.param("/srv/a", ("https://e.com",), False, id="local-not-listed"),
    ],
)
def test_check_url_allowed(url: str, allowed: tuple[str, ...], ok: bool) -> None:
    if ok:
        check_url_allowed(parse_url(url), allowed)
        return

    with pytest.raises(UrlRefusedError):
        check_url_allowed(parse_url(url), allowed)


@pytest.mark.parametrize(
    ("url", "host", "path"),
    [
        ("https://github.com/acme/fleet.git", "github.com", "acme/fleet"),
        ("https://GitHub.com:8443/acme/fleet/", "github.com", "acme/fleet"),
        ("ssh://git@git.example.com:2222/a/b/c", "git.example.com", "a/b/c"),
        ("git@github.com:acme/fleet.git", "github.com", "acme/fleet"),
        ("git@github.com:/acme/fleet", "github.com", "acme/fleet"),
        ("https://[::1]:3000/acme/fleet", "[::1]", "acme/fleet"),
        ("/srv/git/fleet.git", "", "srv/git/fleet"),
        ("file:///srv/git/fleet", "", "srv/git/fleet"),
    ],
)
def test_split_host_and_path(url: str, host: str, path: str) -> None:
    assert split_host_and_path(parse_url(url)) == (host, path)


@pytest.mark.parametrize(
    ("url", "folder"),
    [
        pytest.param("/srv/config", "/srv", id="path"),
        pytest.param("https://e.com/org/config.git", "https://e.com/org", id="https"),
        pytest.param("git@e.com:org/config.git", "git@e.com:org", id="scp-style"),
        pytest.param("git@e.com:config.git", "git@e.com:", id="scp-style-at-the-top"),
    ],
)
def test_find_parent_location(url: str, folder: str) -> None:
    assert find_parent_location(parse_url(url)) == folder
