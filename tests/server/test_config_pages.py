"""Tests of the config files that the console shows, for a config in a folder and in a repository."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.bootstrap.console_config import build_config_pages
from reconciler.bootstrap.services import build_services
from reconciler.git.errors import GitError
from reconciler.krm.findings import SourceLocation
from reconciler.settings import Settings
from tests.support.git_repositories import commit_files, make_bare


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings.model_validate({"cache": str(tmp_path / "cache"), "config": {"directory": "fleet"}})


def test_a_file_of_a_repository_has_the_content_of_the_commit(settings: Settings, tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "config.git")
    commit_files(repository, "refs/heads/main", {"fleet/sets/web.yaml": b"kind: A\n", "other.yaml": b"kind: B\n"})
    services = build_services(settings, str(repository))
    with services.remotes:
        config = services.source.read().id
    commit_files(repository, "refs/heads/main", {"fleet/sets/web.yaml": b"kind: C\n"})
    pages = build_config_pages(settings, str(repository))

    assert pages.read_file(config, "sets/web.yaml") == b"kind: A\n"
    assert pages.read_file(config, "sets") is None
    assert pages.read_file(config, "other.yaml") is None
    assert pages.build_commit_url(config) == ""


def test_a_file_of_a_folder_has_its_current_content(settings: Settings, tmp_path: Path) -> None:
    file = tmp_path / "config" / "fleet" / "web.yaml"
    file.parent.mkdir(parents=True)
    file.write_text("kind: A\n")
    pages = build_config_pages(settings, str(tmp_path / "config"))

    assert pages.read_file("tree:c0ffee", "web.yaml") == b"kind: A\n"
    assert pages.read_file("tree:c0ffee", "other.yaml") is None


def test_the_author_of_a_config_commit(settings: Settings, tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "config.git")
    commit_files(repository, "refs/heads/main", {"fleet/web.yaml": b"kind: A\n"})
    services = build_services(settings, str(repository))
    with services.remotes:
        config = services.source.read().id
    pages = build_config_pages(settings, str(repository))

    assert pages.read_author(config) == "ada@example.com"
    assert [pages.read_author(config) for config in ("", "tree:c0ffee")] == ["", ""]
    with pytest.raises(GitError):
        pages.read_author("f" * 40)


def test_links_to_files_of_the_config(settings: Settings) -> None:
    commit = "0123456789abcdef0123456789abcdef01234567"
    pages = build_config_pages(settings, "https://github.com/acme/config")
    url = pages.build_location_url(commit, SourceLocation("sets/web.yaml", 3))

    assert url == f"https://github.com/acme/config/blob/{commit}/fleet/sets/web.yaml#L3"
    assert pages.build_location_url(commit, SourceLocation("web.yaml", 3, package="berlin/web")) == ""
    assert pages.build_location_url(commit, SourceLocation(object="A/b/c")) == ""
