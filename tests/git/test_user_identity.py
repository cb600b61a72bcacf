"""Identity of the local user, read from a real Git with a test configuration."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.git.local_repository import parse_identity, read_user_identity


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a home folder without a Git configuration."""
    for name in ("GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL", "EMAIL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path))
    monkeypatch.setenv("GIT_CONFIG_NOSYSTEM", "1")
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(tmp_path / ".gitconfig"))
    return tmp_path


def test_no_identity_is_derived_from_the_machine(home: Path) -> None:
    assert read_user_identity(home) is None


def test_the_git_configuration_identifies_the_user(home: Path) -> None:
    (home / ".gitconfig").write_text("[user]\n\tname = Ada Lovelace\n\temail = ada@example.com\n")

    assert read_user_identity(home) == ("Ada Lovelace", "ada@example.com")


def test_the_environment_takes_precedence(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("GIT_AUTHOR_NAME", "Grace")
    monkeypatch.setenv("GIT_AUTHOR_EMAIL", "grace@example.com")

    assert read_user_identity(home) == ("Grace", "grace@example.com")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("Ada <ada@example.com>", ("Ada", "ada@example.com"), id="plain"),
        pytest.param("Ada L. <a@b> 1700000000 +0100", ("Ada L.", "a@b"), id="with-a-date"),
        pytest.param("ada@example.com", None, id="no-name"),
        pytest.param("<ada@example.com>", None, id="empty-name"),
        pytest.param("Ada <>", None, id="empty-address"),
        pytest.param("Ada <a\nb>", None, id="two-lines"),
    ],
)
def test_what_is_a_person(text: str, expected: tuple[str, str] | None) -> None:
    assert parse_identity(text) == expected
