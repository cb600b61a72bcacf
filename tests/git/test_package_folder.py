"""Package folders on a real file system: what differs is replaced, nothing else is touched, all of it or nothing."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.git import folder as package_folder
from reconciler.git.errors import FolderChangedError, PathRefusedError
from reconciler.git.folder import read_package, write_new_package, write_package


def tree(files: Mapping[str, str]) -> FileTree:
    return FileTree({path: File(text.encode()) for path, text in files.items()})


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    new_path = tmp_path / "web"
    for path, text in {"a.yaml": "a\n", "b/c.yaml": "c\n", "b/d/e.yaml": "e\n", "run.sh": "#!\n"}.items():
        (new_path / path).parent.mkdir(parents=True, exist_ok=True)
        (new_path / path).write_text(text)
    (new_path / "run.sh").chmod(0o750)
    return new_path


def everything(folder: Path) -> dict[str, tuple[int, int, bytes]]:
    """Return every path with inode, mode and content; links by their target, folders by nothing but their mode."""
    mapping = {}
    for place in sorted(folder.rglob("*")):
        status, is_folder = place.lstat(), place.is_dir() and not place.is_symlink()
        content = os.fsencode(place.readlink()) if place.is_symlink() else b"" if is_folder else place.read_bytes()
        mapping[str(place.relative_to(folder))] = (0 if is_folder else status.st_ino, status.st_mode, content)
    return mapping


def test_only_what_differs_is_touched(folder: Path) -> None:
    (folder / ".git").mkdir()
    (folder / ".git/HEAD").write_text("ref: refs/heads/main\n")
    (folder / "link").symlink_to("a.yaml")
    before, old = read_package(folder), everything(folder)

    write_package(folder, before, before.with_files({"a.yaml": b"A\n", "new/f": b"f\n"}).without_files("b/d/e.yaml"))

    new = everything(folder)
    assert {path for path in {*old, *new} if old.get(path) != new.get(path)} == {
        "a.yaml", "new", "new/f", "b/d", "b/d/e.yaml",
    }  # fmt: skip
    assert read_package(folder)["a.yaml"].data == b"A\n"
    assert not (folder / "b/d").exists()
    assert [path.name for path in folder.parent.iterdir()] == ["web"]


@pytest.mark.parametrize(
    ("change", "mode"),
    [
        pytest.param(File(b"other", executable=True), 0o750, id="content-keeps-the-mode"),
        pytest.param(File(b"#!\n"), 0o640, id="no-more-executable"),
    ],
)
def test_modes_are_kept(folder: Path, change: File, mode: int) -> None:
    before = read_package(folder)

    write_package(folder, before, before.with_files({"run.sh": change}))

    assert (folder / "run.sh").stat().st_mode & 0o777 == mode


def test_a_file_becomes_executable_for_those_who_read_it(folder: Path) -> None:
    (folder / "a.yaml").chmod(0o640)
    before = read_package(folder)

    write_package(folder, before, before.with_files({"a.yaml": File(b"a\n", executable=True), "x": File(b"", True)}))

    assert (folder / "a.yaml").stat().st_mode & 0o777 == 0o750
    assert (folder / "x").stat().st_mode & 0o100


def test_a_file_takes_the_place_of_a_folder_and_back(folder: Path) -> None:
    first, second = read_package(folder), tree({"a.yaml": "a\n", "run.sh": "#!\n", "b": "a file now\n"})

    write_package(folder, first, second)
    assert (folder / "b").is_file()
    write_package(folder, read_package(folder), first)

    assert {path: file.data for path, file in read_package(folder).items()} == {
        path: file.data for path, file in first.items()
    }


@pytest.mark.parametrize(
    ("spoil", "after", "error"),
    [
        pytest.param(lambda f: (f / "a.yaml").write_text("mine"), {"a.yaml": "A"}, FolderChangedError, id="changed"),
        pytest.param(lambda f: (f / "a.yaml").unlink(), {"a.yaml": "A"}, FolderChangedError, id="removed"),
        pytest.param(lambda f: (f / "new").write_text("mine"), {"new": "A"}, PathRefusedError, id="made-meanwhile"),
        pytest.param(lambda f: (f / "new").symlink_to("/etc/passwd"), {"new": "A"}, PathRefusedError, id="a-link"),
        pytest.param(lambda f: (f / "l").symlink_to(f.parent), {"l/x": "A"}, PathRefusedError, id="through-a-link"),
        pytest.param(lambda f: None, {"../x": "A"}, PathRefusedError, id="out-of-it"),
        pytest.param(lambda f: None, {".git/hooks/x": "A"}, PathRefusedError, id="into-git"),
        pytest.param(lambda f: None, {"x": "A", "x/y": "A"}, PathRefusedError, id="file-and-folder-at-once"),
    ],
)
def test_what_is_in_the_way_leaves_all_as_it_was(folder: Path, spoil, after, error) -> None:  # type: ignore[no-untyped-def]
    before = read_package(folder)
    spoil(folder)
    old, outside = everything(folder), set(folder.parent.iterdir())

    with pytest.raises(error):
        write_package(folder, before, FileTree({**before.without_files("b/c.yaml"), **tree({"b/new": "n", **after})}))

    assert everything(folder) == old
    assert set(folder.parent.iterdir()) == outside


def test_a_failure_in_the_middle_brings_everything_back(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    before, old = read_package(folder), everything(folder)
    put = package_folder._move_into_place

    def full(new: Path, target: Path, undo: package_folder.UndoSteps) -> None:
        put(new, target, undo)
        if target.name == "z":
            raise OSError(28, "No space left on device")

    monkeypatch.setattr(package_folder, "_move_into_place", full)
    after = FileTree({**tree({"a.yaml": "A", "n/f": "f", "z": "z"}), "run.sh": File(b"#!2\n", executable=True)})
    with pytest.raises(OSError, match="No space left"):
        write_package(folder, before, after)

    assert everything(folder) == old


def test_files_are_staged_in_the_package_if_its_parent_is_read_only(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(os, "access", lambda place, mode: False)
    before = read_package(folder)

    write_package(folder, before, before.with_files({"a.yaml": b"A\n"}))

    assert read_package(folder) == before.with_files({"a.yaml": b"A\n"})


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_package(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "deep" / "web"
    if exists:
        folder.mkdir(parents=True)

    write_new_package(folder, tree({"Kptfile": "k", "a/b": "b"}))

    assert {path: file.data for path, file in read_package(folder).items()} == {"Kptfile": b"k", "a/b": b"b"}


@pytest.mark.parametrize("exists", [True, False])
def test_a_new_package_that_cannot_be_written_leaves_nothing(tmp_path: Path, exists: bool) -> None:
    folder = tmp_path / "deep" / "web"
    if exists:
        folder.mkdir(parents=True)
    old = everything(tmp_path)

    with pytest.raises(PathRefusedError):
        write_new_package(folder, tree({"Kptfile": "k", "a": "a", "a/b": "b"}))

    assert everything(tmp_path) == old


def test_a_file_that_cannot_be_read_is_not_taken_for_deleted(folder: Path) -> None:
    (folder / os.fsdecode(b"\xff.yaml")).write_text("x")

    with pytest.raises(PathRefusedError, match="must be readable"):
        read_package(folder)
