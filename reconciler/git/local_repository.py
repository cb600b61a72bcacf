"""Repositories on this machine: finding the work tree of a folder, reading the user's Git identity, and creation.

This module does not change work trees.
"""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

from reconciler.catalog.files import FileTree
from reconciler.git.command import GitCommand
from reconciler.git.errors import MirrorCorruptError
from reconciler.git.options import GitOptions
from reconciler.git.url import parse_url

_GIT_FILE_PREFIX = "gitdir: "
_BRANCH_PREFIX = "ref: refs/heads/"
_MISSING_OBJECT_EXIT_CODE = 128
_TIMEOUT_SECONDS = 10
_IDENTITY = re.compile(r"(?P<name>[^<>\n]*[^<>\s]) <(?P<mail>[^<>\s]+)>")


def find_uncommitted_files(folder: Path, files: FileTree, options: GitOptions) -> tuple[str, ...]:
    """Return the files of a folder that differ from the last commit, so that Git cannot restore them.

    Return an empty tuple if no work tree contains the folder. Git filters are not applied: the result contains each
    file that a filter changes on commit.

    Raises:
        GitError: The repository cannot be read.
    """
    repository = find_enclosing_repository(folder.resolve())
    if repository is None:
        return ()
    committed = _read_committed_files(*repository, options)
    return tuple(path for path, file in files.items() if committed.get(path) != (file.mode, str(file.id)))


def find_path_in_work_tree(path: Path) -> str | None:
    """Return the path of a file or folder in the work tree that contains it, or "" for the root of the work tree.

    Return None if no work tree contains `path`.
    """
    repository = find_enclosing_repository(path.resolve())
    return None if repository is None else "" if repository[1] == "." else repository[1]


def find_checked_out_branch(folder: Path) -> str:
    """Return the branch of the work tree that contains `folder`.

    Return "" if there is no work tree, or if HEAD is detached.
    """
    repository = find_enclosing_repository(folder.resolve())
    if repository is None:
        return ""
    head = (repository[0] / "HEAD").read_text(errors="replace").strip()
    return head.removeprefix(_BRANCH_PREFIX) if head.startswith(_BRANCH_PREFIX) else ""


def find_enclosing_repository(folder: Path) -> tuple[Path, str] | None:
    """Return the Git folder of the work tree that contains `folder`, and the path of `folder` in the work tree.

    Return None if no work tree contains `folder`.
    """
    for parent in (folder, *folder.parents):
        if (parent / ".git").exists():
            return _resolve_git_folder(parent / ".git"), folder.relative_to(parent).as_posix()
    return None


def _resolve_git_folder(dot_git: Path) -> Path:
    # Accept a file too, because in additional work trees and submodules, `.git` is a file with the location of the Git
    # folder.
    if dot_git.is_dir():
        return dot_git
    text = dot_git.read_text(errors="replace").strip()
    target = dot_git.parent / text.removeprefix(_GIT_FILE_PREFIX)
    if not text.startswith(_GIT_FILE_PREFIX) or not target.is_dir():
        raise MirrorCorruptError(
            f'{dot_git} must be a folder, or a file with "{_GIT_FILE_PREFIX}" and the location of the folder'
        )
    return target.resolve()


def _read_committed_files(git_folder: Path, path_in_tree: str, options: GitOptions) -> dict[str, tuple[str, str]]:
    command = GitCommand(git_folder, parse_url(str(git_folder)), options)
    tree = "HEAD:" if path_in_tree == "." else f"HEAD:{path_in_tree}"
    # Accept the exit code for a missing tree: if the repository has no commits, or the last commit does not contain the
    # folder, there are no committed files.
    result = command.run("ls-tree", "-r", "-z", "--full-tree", tree, accepted_exit_codes=(0, _MISSING_OBJECT_EXIT_CODE))
    rows = (row.split("\t", 1) for row in result.output.decode(errors="surrogateescape").split("\0") if row)
    entries = ((file_path, columns.split(" ")) for columns, file_path in rows)
    return {file_path: (mode, blob) for file_path, (mode, _, blob) in entries}


def read_user_identity(folder: Path) -> tuple[str, str] | None:
    """Return the user name and mail address in the Git configuration of `folder`. Return None if the name or address is
    missing.
    """
    # Set user.useConfigOnly, because Git otherwise guesses a name from the host name. A guess must not sign an
    # approval.
    command = ["git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"]
    try:
        process = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_TIMEOUT_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_identity(process.stdout.decode(errors="replace").strip()) if process.returncode == 0 else None


def parse_identity(text: str) -> tuple[str, str] | None:
    """Return the name and the mail address of a text `Name <mail>`. Return None for a text of any other form.

    Text after `>` is ignored.
    """
    match = _IDENTITY.match(text)
    return (match["name"], match["mail"]) if match else None


def create_repository(folder: Path, branch: str = "main", options: GitOptions | None = None) -> None:
    """Create an empty bare repository at `folder`. The folder must not exist.

    Raises:
        GitError: Git failed.
    """
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = GitCommand(folder, parse_url(str(folder)), options or GitOptions())
    command.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", f"--initial-branch={branch}")
