"""Parsing of the arguments of the `pkg` commands."""

from __future__ import annotations

from pathlib import Path

import click
import pytest

from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.package_target import parse_package_target, parse_upstream
from reconciler.git.errors import UrlRefusedError
from tests.support.git_repositories import git, make_bare


@pytest.mark.parametrize(
    ("text", "directory", "ref", "expected"),
    [
        pytest.param("https://h/o/r.git/a/b@v1", None, None, ("https://h/o/r.git", "/a/b", "v1"), id="all-of-it"),
        pytest.param("https://h/r.git@v1", None, None, ("https://h/r.git", "/", "v1"), id="the-whole-repository"),
        pytest.param("https://h/r.git/a", None, None, ("https://h/r.git", "/a", ""), id="no-ref"),
        pytest.param("git@h:o/r.git/a@web/v1", None, None, ("git@h:o/r.git", "/a", "web/v1"), id="ssh-short"),
        pytest.param("ssh://git@h/r.git/a@x", None, None, ("ssh://git@h/r.git", "/a", "x"), id="an-at-in-the-address"),
        pytest.param("https://github.com/o/r/a/b@v1", None, None, ("https://github.com/o/r", "/a/b", "v1"), id="known"),
        pytest.param("https://h/g/s/r@v1", "a/b", None, ("https://h/g/s/r", "/a/b", "v1"), id="directory-apart"),
        pytest.param("git@h:o/r", "a", "v1", ("git@h:o/r", "/a", "v1"), id="all-apart"),
        pytest.param("https://h/r.git/a", None, "a@1.0", ("https://h/r.git", "/a", "a@1.0"), id="a-ref-with-an-at"),
        pytest.param("https://h/x.gitlab/r.git/a", None, None, ("https://h/x.gitlab/r.git", "/a", ""), id="only-like"),
    ],
)
def test_upstream_arguments(text: str, directory: str | None, ref: str | None, expected: tuple[str, str, str]) -> None:
    source = parse_upstream(text, directory, ref)

    assert (source.repo, source.directory, source.ref) == expected


@pytest.mark.parametrize(
    ("text", "repo"),
    [
        pytest.param("bare.git/a@v1", "bare.git", id="bare"),
        pytest.param("bare/a@v1", "bare", id="bare-without-ending"),
        pytest.param("./tree/a@v1", "tree", id="a-work-tree"),
    ],
)
def test_local_repository_has_its_absolute_path(
    text: str, repo: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_bare(tmp_path / "bare.git")
    make_bare(tmp_path / "bare")
    git(tmp_path, "init", "--quiet", "tree")
    monkeypatch.chdir(tmp_path)

    source = parse_upstream(text, None, None)

    assert (source.repo, source.directory, source.ref) == (str(tmp_path / repo), "/a", "v1")


@pytest.mark.parametrize(
    ("text", "directory", "content"),
    [
        pytest.param(
            "https://h/g/s/r/a@v1", None, "cannot determine where the URL of the repository ends", id="no-end"
        ),
        pytest.param("nowhere/a", None, "cannot determine where the URL of the repository ends", id="no-repository"),
        pytest.param("https://ada:hunter2@h/r.git/a", None, "CredentialInUrl", id="credentials"),
        pytest.param("https://ada:hunter/2@h/r.git/a", None, "CredentialInUrl", id="a-password-with-a-slash"),
        pytest.param("hunter2@github.com/acme/r.git/a", None, "CredentialInUrl", id="a-token-without-a-scheme"),
        pytest.param("hunter2@github.com/acme/r/a", None, "cannot determine where", id="a-token-without-an-end"),
        pytest.param("https://h/r.git/../a", None, 'must be inside its repository, but is "../a"', id="out-of-it"),
        pytest.param("https://h/r.git", "a/../../b", "must be inside its repository", id="out-of-it-apart"),
    ],
)
def test_invalid_upstream_arguments_are_refused(
    text: str, directory: str | None, content: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)

    with pytest.raises((CannotRunError, UrlRefusedError), match=content) as error:
        parse_upstream(text, directory, None)

    assert "hunter" not in str(error.value)


def test_second_ref_is_a_usage_error() -> None:
    with pytest.raises(click.UsageError, match="a ref is given twice"):
        parse_upstream("https://h/r.git/a@v1", None, "v2")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("web", ("web", ""), id="a-folder"),
        pytest.param("web@v2", ("web", "v2"), id="a-folder-at-a-ref"),
        pytest.param("@web/v2", (".", "web/v2"), id="here"),
        pytest.param("odd@name", ("odd@name", ""), id="a-folder-with-an-at"),
        pytest.param("odd@name@v2", ("odd@name", "v2"), id="such-a-folder-at-a-ref"),
    ],
)
def test_target_arguments(
    text: str, expected: tuple[str, str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "odd@name").mkdir()
    monkeypatch.chdir(tmp_path)

    folder, ref = parse_package_target(text, None)

    assert (str(folder), ref) == expected
