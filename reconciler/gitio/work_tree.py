"""Work trees of people: where their repository is, and what of a folder is in its last commit; nothing is written."""

from __future__ import annotations

from pathlib import Path

from reconciler.gitio.command import GitCommand
from reconciler.gitio.errors import MirrorCorruptError
from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import parse_url
from reconciler.snapshot.files import FileTree

_LINK = "gitdir: "
_NOTHING_THERE = 128


def uncommitted_files(folder: Path, files: FileTree, options: GitOptions) -> tuple[str, ...]:
    """Return the files of a folder that are in no commit as they are: Git could not bring them back. Raises GitError.

    A folder outside of any work tree has none. Filters do not count: what they store in another form is uncommitted.
    """
    found = repository_of(folder.resolve())
    if found is None:
        return ()
    committed = _committed(*found, options)
    return tuple(path for path, file in files.items() if committed.get(path) != (file.mode, str(file.id)))


def place_in_work_tree(path: Path) -> str | None:
    """Return where a file or folder lies in the work tree around it, "" for its root; None outside of any."""
    found = repository_of(path.resolve())
    return None if found is None else "" if found[1] == "." else found[1]


def repository_of(folder: Path) -> tuple[Path, str] | None:
    """Return the Git folder of the work tree around a folder, and the folder's place in it."""
    for place in (folder, *folder.parents):
        if (place / ".git").exists():
            return _git_folder(place / ".git"), folder.relative_to(place).as_posix()
    return None


def _git_folder(found: Path) -> Path:
    # work trees beside the main one, and submodules, have a file there that tells where
    if found.is_dir():
        return found
    text = found.read_text(errors="replace").strip()
    target = found.parent / text.removeprefix(_LINK)
    if not text.startswith(_LINK) or not target.is_dir():
        raise MirrorCorruptError(f'{found} must be a folder, or say "{_LINK}" and where that is')
    return target.resolve()


def _committed(git_folder: Path, place: str, options: GitOptions) -> dict[str, tuple[str, str]]:
    command = GitCommand(git_folder, parse_url(str(git_folder)), options)
    tree = "HEAD:" if place == "." else f"HEAD:{place}"
    # a repository without a commit, or without this folder in it, has committed nothing of it
    result = command.run("ls-tree", "-r", "-z", "--full-tree", tree, accept=(0, _NOTHING_THERE))
    rows = (row.split("\t", 1) for row in result.output.decode(errors="surrogateescape").split("\0") if row)
    entries = ((path, words.split(" ")) for words, path in rows)
    return {path: (mode, blob) for path, (mode, _, blob) in entries}
