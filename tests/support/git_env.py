"""Real repositories for tests: git with nobody's configuration, a fixed identity and fixed dates."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Mapping
from pathlib import Path

SECONDS = 1_000_000_000
HERMETIC = {
    "PATH": os.environ["PATH"],
    "HOME": "/nonexistent",
    "LC_ALL": "C",
    "GIT_CONFIG_NOSYSTEM": "1",
    "GIT_CONFIG_GLOBAL": os.devnull,
    "GIT_AUTHOR_NAME": "Ada",
    "GIT_AUTHOR_EMAIL": "ada@example.com",
    "GIT_AUTHOR_DATE": f"@{SECONDS} +0000",
    "GIT_COMMITTER_NAME": "Ada",
    "GIT_COMMITTER_EMAIL": "ada@example.com",
    "GIT_COMMITTER_DATE": f"@{SECONDS} +0000",
}


def git(folder: Path, *arguments: str, stdin: bytes = b"", check: bool = True) -> str:
    """Run git in a folder and return its output without the last newline."""
    done = subprocess.run(["git", *arguments], cwd=folder, env=HERMETIC, input=stdin, capture_output=True, check=False)
    if check and done.returncode:
        raise AssertionError(f"git {arguments} ended with {done.returncode}: {done.stderr.decode()}")
    return done.stdout.decode(errors="surrogateescape").rstrip("\n")


def make_bare(folder: Path, **settings: str) -> Path:
    """Make an empty bare repository; settings are spelled with "__" for the dot: receive__advertiseAtomic."""
    folder.mkdir(parents=True)
    git(folder, "init", "--quiet", "--bare", "--initial-branch=main")
    for name, value in settings.items():
        git(folder, "config", name.replace("__", "."), value)
    return folder


def commit_files(
    repository: Path, ref: str, files: Mapping[str, bytes | None], message: str = "change", seconds: int = SECONDS
) -> str:
    """Commit on top of `ref` as a person would, and return the id; None removes a file."""
    parent = read_ref(repository, ref)
    stream = [
        f"commit {ref}\ncommitter Ada <ada@example.com> {seconds} +0000\ndata {len(message)}\n{message}\n".encode()
    ]
    stream += [f"from {parent}\n".encode()] if parent else []
    for path, data in files.items():
        change = b"D %s\n" if data is None else b"M 100644 inline %s\ndata " + b"%d\n%s\n" % (len(data), data)
        stream.append(change.replace(b"%s", path.encode(), 1))
    git(repository, "fast-import", "--quiet", "--date-format=raw", stdin=b"".join(stream))
    return git(repository, "rev-parse", ref)


def read_ref(repository: Path, ref: str) -> str | None:
    """Return the id that a ref has in a repository, or None."""
    return git(repository, "rev-parse", "--quiet", "--verify", ref, check=False) or None


def read_refs(repository: Path) -> dict[str, str]:
    """Return all refs of a repository."""
    lines = git(repository, "for-each-ref", "--format=%(refname) %(objectname)").splitlines()
    return dict(line.split(" ") for line in lines)


def read_file(repository: Path, ref: str, path: str) -> str:
    """Return a file's text as of a ref, to the last newline."""
    return git(repository, "show", f"{ref}:{path}")


def read_tree(repository: Path, tree: str) -> dict[str, bytes]:
    """Return the files of a tree, to the byte."""
    archive = ["git", "archive", "--format=tar", tree]
    content = subprocess.run(archive, cwd=repository, env=HERMETIC, check=True, capture_output=True).stdout
    with tarfile.open(fileobj=io.BytesIO(content)) as tar:
        return {one.name: opened.read() for one in tar if one.isfile() and (opened := tar.extractfile(one))}


def write_hook(repository: Path, name: str, script: str) -> None:
    """Give a repository a hook, written for sh."""
    hook = repository / "hooks" / name
    hook.parent.mkdir(exist_ok=True)
    hook.write_text(f"#!/bin/sh\n{script}\n")
    hook.chmod(0o755)


def assert_sound(repository: Path) -> None:
    """Fail unless git finds nothing wrong with a repository's objects."""
    found = git(repository, "fsck", "--strict", "--no-dangling", "--no-progress")
    assert not [line for line in found.splitlines() if line.startswith(("error", "warning", "missing", "broken"))]
