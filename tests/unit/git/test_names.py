"""Tests of ref names and paths. Git is the reference for refs, and the rules of fsck for paths."""

from __future__ import annotations

import subprocess

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.git.names import check_object_id, check_ref, check_tree_path, is_ref_name, is_tree_path
from tests.support.examples import examples


@pytest.mark.parametrize(
    ("name", "ok"),
    [
        pytest.param("refs/heads/main", True, id="plain"),
        pytest.param("refs/heads/drafts/c1/api_v1.2", True, id="deep"),
        pytest.param("refs/heads/größe", True, id="not-ascii"),
        pytest.param("main", False, id="short"),
        pytest.param("refs/main", False, id="outside-a-folder"),
        pytest.param("refs/heads/a.lock", False, id="lock"),
        pytest.param("refs/heads/a.lock/b", False, id="lock-inside"),
        pytest.param("refs/heads/.a", False, id="hidden"),
        pytest.param("refs/heads/a..b", False, id="two-dots"),
        pytest.param("refs/heads/a.", False, id="dot-at-the-end"),
        pytest.param("refs/heads/a@{1}", False, id="reflog-syntax"),
        pytest.param("refs/heads/a b", False, id="blank"),
        pytest.param("refs/heads/a\n", False, id="line-break"),
        pytest.param("refs/heads/a*", False, id="star"),
        pytest.param("refs/heads/-a", False, id="like-an-option"),
        pytest.param("refs/heads/" + "x" * 250, False, id="too-long-for-a-lock-file"),
        pytest.param("refs/heads//a", False, id="empty-segment"),
    ],
)
def test_is_ref_name(name: str, ok: bool) -> None:
    assert is_ref_name(name) == ok


@settings(max_examples=examples(60), deadline=None)
@given(st.text("ab./-@{~^:?*[\\ lock\x7fü", min_size=1, max_size=12))
def test_accepted_ref_names_are_valid_in_git(name: str) -> None:
    if is_ref_name(f"refs/heads/{name}"):
        assert subprocess.run(["git", "check-ref-format", f"refs/heads/{name}"], check=False).returncode == 0


@pytest.mark.parametrize(
    ("path", "ok"),
    [
        pytest.param("a/b.yaml", True, id="plain"),
        pytest.param(".reconciler/a.yaml", True, id="hidden"),
        pytest.param("a/.gitignore", True, id="gitignore"),
        pytest.param("a\nb", True, id="line-break"),
        pytest.param("", False, id="empty"),
        pytest.param("/a", False, id="absolute"),
        pytest.param("a//b", False, id="empty-segment"),
        pytest.param("a/../b", False, id="upwards"),
        pytest.param("./a", False, id="dot"),
        pytest.param("a/", False, id="slash-at-the-end"),
        pytest.param("a\0b", False, id="nul"),
        pytest.param("a/.git/config", False, id="dot-git"),
        pytest.param("a/.GiT", False, id="dot-git-in-capitals"),
        pytest.param(".g\u200cit/config", False, id="dot-git-on-macos"),
        pytest.param("GIT~1/config", False, id="dot-git-on-windows"),
        pytest.param(".git . /config", False, id="dot-git-with-dots"),
        pytest.param(".git::$INDEX_ALLOCATION/a", False, id="dot-git-as-a-stream"),
        pytest.param("a\\.git\\config", False, id="dot-git-with-backslashes"),
    ],
)
def test_is_tree_path(path: str, ok: bool) -> None:
    assert is_tree_path(path) == ok


def test_checks_return_valid_values() -> None:
    assert check_ref("refs/heads/a") == "refs/heads/a"
    assert check_tree_path("a") == "a"
    assert check_object_id("0" * 40) == "0" * 40


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="empty"),
        pytest.param("HEAD", id="a-name"),
        pytest.param("0" * 39, id="short"),
        pytest.param("A" * 40, id="capitals"),
        pytest.param("0" * 40 + "\n", id="line-break"),
    ],
)
def test_invalid_object_ids_are_refused(text: str) -> None:
    with pytest.raises(ValueError, match="full Git object ID"):
        check_object_id(text)
