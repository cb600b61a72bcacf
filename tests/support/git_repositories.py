"""Git repositories on disk for tests: no user configuration, a fixed identity and fixed dates.

Functions that are called thousands of times start no Git process.
"""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from tests.support.git_environment import HERMETIC, SECONDS
from tests.support.in_process_git.history import is_ancestor
from tests.support.in_process_git.objects import (
    DIRECTORY,
    EMPTY_TREE,
    SUBMODULE,
    ObjectStore,
    find_path,
    parse_tree,
    read_tree_of,
)
from tests.support.in_process_git.refs import RefStore
from tests.support.in_process_git.trees import EditableTree

SQUASH_MESSAGE = "Take the draft"


def git(folder: Path, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
    """Run git in a folder and return its output without the last newline."""
    command = ["git", "-c", "maintenance.auto=false", *arguments]
    process = subprocess.run(command, cwd=folder, env=HERMETIC, input=stdin, capture_output=True, check=False)
    if check and process.returncode:
        raise AssertionError(f"git {arguments} ended with {process.returncode}: {process.stderr.decode()}")
    return process.stdout.decode(errors="surrogateescape").rstrip("\n")


def make_bare(folder: Path, **settings: str) -> Path:
    """Create an empty bare repository. Settings contain "__" instead of the dot: receive__advertiseAtomic.

    The result equals `git init`, without a process. It does not wait for the disk and runs no maintenance.
    """
    folder.mkdir(parents=True)
    for inside in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (folder / inside).mkdir(parents=True)
    (folder / "HEAD").write_text("ref: refs/heads/main\n")
    lines = (f"[{section}]\n\t{name} = {value}\n" for section, name, value in _bare_settings(settings))
    (folder / "config").write_text("".join(lines))
    return folder


def _bare_settings(settings: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    yield from [("core", "repositoryformatversion", "0"), ("core", "filemode", "true"), ("core", "bare", "true")]
    yield from [("core", "fsync", "none"), ("gc", "auto", "0"), ("receive", "autogc", "false")]
    for key, value in settings.items():
        section, name = key.split("__")
        yield section, name, value


def commit_files(
    repository: Path, ref: str, files: Mapping[str, bytes | None], message: str = "change", seconds: int = SECONDS
) -> str:
    """Commit on top of `ref` as a person does and return the commit. None removes a file."""
    store = ObjectStore(find_git_folder(repository))
    parent = read_ref(repository, ref)
    tree = EditableTree(store, read_tree_of(store, parent) if parent else EMPTY_TREE)
    for path, data in files.items():
        if data is None:
            tree.remove(os.fsencode(path))
        else:
            tree.put(os.fsencode(path), b"100644", store.write(b"blob", data))
    return write_commit(repository, ref, tree.write(), [parent] if parent else [], message, seconds)


def write_commit(
    repository: Path, ref: str, tree: str, parents: Sequence[str], message: str, seconds: int | None = None
) -> str:
    """Set a ref to a new commit with this tree, and return the commit."""
    folder = find_git_folder(repository)
    lines = [f"tree {tree}", *(f"parent {parent}" for parent in parents)]
    for role in ("author", "committer"):
        date = f"@{seconds} +0000" if seconds is not None else HERMETIC[f"GIT_{role.upper()}_DATE"]
        lines.append(f"{role} Ada <ada@example.com> {date.removeprefix('@')}")
    commit = ObjectStore(folder).write(b"commit", "\n".join([*lines, "", message]).encode())
    RefStore(folder).apply({ref: commit})
    return commit


def merge_descendant(repository: Path, branch: str, source: str, how: str) -> bool:
    """Merge a branch that contains all commits of the target branch, by `fast-forward`, `merge` or `squash`.

    Return False, and change nothing, if only Git can merge the branches.
    """
    ref = f"refs/heads/{branch}"
    head, tip = read_ref(repository, ref), read_ref(repository, f"refs/heads/{source}")
    store = ObjectStore(repository)
    if not head or not tip or head == tip or (repository / "hooks").exists() or not is_ancestor(store, head, tip):
        return False
    tree = read_tree_of(store, tip)
    match how:
        case "fast-forward":
            RefStore(repository).apply({ref: tip})
        case "merge":
            title = f"Merge remote-tracking branch 'origin/{source}' into {branch}\n"
            write_commit(repository, ref, tree, [head, tip], title)
        case "squash":
            write_commit(repository, ref, tree, [head], f"{SQUASH_MESSAGE}\n")
        case _:
            return False
    return True


def point_ref(repository: Path, ref: str, commit: str) -> None:
    """Set a ref of a bare repository to a commit."""
    path = repository / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{commit}\n")


def delete_ref(repository: Path, ref: str) -> None:
    """Delete a ref of a bare repository, if it exists."""
    RefStore(repository).apply({ref: None})


def read_ref(repository: Path, ref: str) -> str | None:
    """Return the object id of a ref or of another revision in a repository, or None."""
    if ref.startswith("refs/") and not set(ref) & set("^~@"):
        ref, colon, path = ref.partition(":")
        commit = read_refs(repository).get(ref)
        if not colon or commit is None:
            return commit
        found = _find_path(repository, commit, path)
        return found[1] if found else None
    return git(repository, "rev-parse", "--quiet", "--verify", ref, check=False) or None


def read_refs(repository: Path) -> dict[str, str]:
    """Return all refs of a repository."""
    return RefStore(find_git_folder(repository)).values


def find_git_folder(repository: Path) -> Path:
    """Return the Git folder of a bare repository or of a work tree."""
    work_tree = repository / ".git"
    return work_tree if work_tree.is_dir() else repository


def _find_path(repository: Path, revision: str, path: str) -> tuple[bytes, str] | None:
    store = ObjectStore(find_git_folder(repository))
    commit = store.find_commit(revision)
    return find_path(store, read_tree_of(store, commit), path) if commit else None


def read_file(repository: Path, ref: str, path: str) -> str:
    """Return the text of a file at a ref, without the last newline."""
    commit = read_refs(repository).get(ref) if ref.startswith("refs/") else None
    found = _find_path(repository, commit, path) if commit else None
    if found is None or found[0] in (DIRECTORY, SUBMODULE):
        return git(repository, "show", f"{ref}:{path}")
    content = ObjectStore(find_git_folder(repository)).read(found[1], b"blob")
    return content.decode(errors="surrogateescape").rstrip("\n")


def list_paths(repository: Path, ref: str, folder: str = "") -> list[str]:
    """Return the paths below a folder at a ref, or [] when the folder does not exist."""
    commit = read_refs(repository).get(ref)
    found = _find_path(repository, commit, folder) if commit else None
    if found is None or found[0] != DIRECTORY:
        return []
    return list(_walk(ObjectStore(find_git_folder(repository)), found[1], ""))


def _walk(store: ObjectStore, tree: str, prefix: str) -> Iterator[str]:
    for mode, name, object_id in parse_tree(store.read(tree, b"tree")):
        path = prefix + os.fsdecode(name)
        if mode == DIRECTORY:
            yield from _walk(store, object_id, f"{path}/")
        else:
            yield path


def read_tree(repository: Path, tree: str) -> dict[str, bytes]:
    """Return the files of a tree as bytes."""
    archive = ["git", "archive", "--format=tar", tree]
    content = subprocess.run(archive, cwd=repository, env=HERMETIC, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {
            tar_info.name: opened.read()
            for tar_info in tar
            if tar_info.isfile() and (opened := tar.extractfile(tar_info))
        }


def write_hook(repository: Path, name: str, script: str) -> None:
    """Install a hook, written for sh, in a repository."""
    hook = repository / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def assert_sound(repository: Path) -> None:
    """Fail when `git fsck` reports an error."""
    result = git(repository, "fsck", "--strict", "--no-dangling", "--no-progress")
    assert not [line for line in result.splitlines() if line.startswith(("error", "warning", "missing", "broken"))]
