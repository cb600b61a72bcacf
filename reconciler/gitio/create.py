"""Making a repository: an empty bare one on this machine, for a world that starts from nothing."""

from __future__ import annotations

from pathlib import Path

from reconciler.gitio.command import GitCommand
from reconciler.gitio.options import GitOptions
from reconciler.gitio.url import parse_url


def create_repository(folder: Path, branch: str = "main", options: GitOptions | None = None) -> None:
    """Make an empty bare repository at `folder`, which must not exist yet. Raises GitError."""
    folder.parent.mkdir(parents=True, exist_ok=True)
    command = GitCommand(folder, parse_url(str(folder)), options or GitOptions())
    command.run("init", "--quiet", "--bare", "--template=", "--object-format=sha1", f"--initial-branch={branch}")
