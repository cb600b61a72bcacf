"""Tests of config sources, and of the resolution of repository URLs in a config."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.git.errors import RepositoryMissingError, UrlRefusedError
from reconciler.git.options import GitOptions
from reconciler.git.source import FolderSource, RepositoryOrFolder, RepositorySource, resolve_repository, resolve_source
from reconciler.git.url import parse_url
from tests.support.git_repositories import git, make_bare


@pytest.fixture
def world(tmp_path: Path) -> Path:
    make_bare(tmp_path / "bare.git")
    (tmp_path / "plain").mkdir()
    (tmp_path / "work").mkdir()
    git(tmp_path / "work", "init", "--quiet")
    (tmp_path / "work" / "inside").mkdir()
    (tmp_path / "file").write_bytes(b"")
    return tmp_path


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        pytest.param("bare.git", RepositorySource, id="bare-repository"),
        pytest.param("file://{world}/bare.git", RepositorySource, id="bare-repository-as-url"),
        pytest.param("plain", FolderSource, id="plain-folder"),
        pytest.param("file://{world}/plain", FolderSource, id="plain-folder-as-url"),
        pytest.param("work", FolderSource, id="work-tree-is-read-as-it-is"),
        pytest.param("work/inside", FolderSource, id="inside-a-work-tree"),
        pytest.param("file://{world}/work", RepositorySource, id="work-tree-as-url"),
        pytest.param("work/.git", RepositorySource, id="the-repository-of-a-work-tree"),
        pytest.param("https://example.com/a.git", RepositorySource, id="https"),
        pytest.param("git@example.com:a.git", RepositorySource, id="scp-style"),
    ],
)
def test_kind_of_a_source(world: Path, text: str, kind: type[RepositoryOrFolder]) -> None:
    assert type(resolve_source(text.format(world=world), str(world))) is kind


@pytest.mark.parametrize("text", [pytest.param("absent", id="absent"), pytest.param("file", id="a-file")])
def test_missing_source_is_an_error(world: Path, text: str) -> None:
    with pytest.raises(RepositoryMissingError):
        resolve_source(text, str(world))


def test_folder_source_has_its_path(world: Path) -> None:
    source = resolve_source("plain", str(world))

    assert isinstance(source, FolderSource)
    assert source.path == world / "plain"


@pytest.mark.parametrize(
    ("source", "text", "expected"),
    [
        pytest.param("/srv/config", "./up.git", "/srv/up.git", id="beside-a-folder"),
        pytest.param("/srv/config", "../up.git", "/up.git", id="above-a-folder"),
        pytest.param("/srv/config", "https://e.com/up.git", "https://e.com/up.git", id="a-url"),
        pytest.param("https://e.com/org/config.git", "./up.git", "https://e.com/org/up.git", id="beside-a-url"),
        pytest.param("git@e.com:org/config.git", "up.git", "git@e.com:org/up.git", id="beside-scp-style"),
    ],
)
def test_resolve_repository(source: str, text: str, expected: str) -> None:
    assert resolve_repository(text, RepositorySource(parse_url(source)), GitOptions()).text == expected


@pytest.mark.parametrize(
    ("text", "allowed"),
    [
        pytest.param("/etc/secrets.git", (), id="by-default"),
        pytest.param("file:///etc/secrets.git", (), id="as-a-url"),
        pytest.param("/etc/secrets.git", ("/srv/",), id="not-listed"),
    ],
)
def test_remote_config_cannot_refer_to_local_paths(text: str, allowed: tuple[str, ...]) -> None:
    source = RepositorySource(parse_url("https://e.com/org/config.git"))

    with pytest.raises(UrlRefusedError):
        resolve_repository(text, source, GitOptions(allowed_urls=allowed))
