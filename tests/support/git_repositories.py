"""Real Git repositories for tests: no user configuration, a fixed identity and fixed dates."""

from __future__ import annotations

import io
import os
import subprocess
import tarfile
from collections.abc import Iterator, Mapping
from contextlib import suppress
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
    parent = read_ref(repository, ref)
    stream = [
        f"commit {ref}\ncommitter Ada <ada@example.com> {seconds} +0000\ndata {len(message)}\n{message}\n".encode()
    ]
    stream += [f"from {parent}\n".encode()] if parent else []
    for path, data in files.items():
        change = b"D %s\n" if data is None else b"M 100644 inline %s\ndata " + b"%d\n%s\n" % (len(data), data)
        stream.append(change.replace(b"%s", path.encode(), 1))
    git(repository, "fast-import", "--quiet", "--date-format=raw", stdin=b"".join(stream))
    result = read_ref(repository, ref)
    assert result
    return result


def point_ref(repository: Path, ref: str, commit: str) -> None:
    """Set a ref of a bare repository to a commit."""
    path = repository / ref
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(f"{commit}\n")


def read_ref(repository: Path, ref: str) -> str | None:
    """Return the object id of a ref or of another revision in a repository, or None."""
    if ref.startswith("refs/") and not set(ref) & set(":^~@"):
        return read_refs(repository).get(ref)
    return git(repository, "rev-parse", "--quiet", "--verify", ref, check=False) or None


def read_refs(repository: Path) -> dict[str, str]:
    """Return all refs of a repository. They are read from files, because a process per read is slow."""
    work_tree = repository / ".git"
    place = work_tree if work_tree.is_dir() else repository
    refs = dict([*_packed_refs(place), *_loose_refs(place)])
    followed = {name: refs.get(value.removeprefix("ref: "), value) for name, value in refs.items()}
    return {name: value for name, value in sorted(followed.items()) if not value.startswith("ref: ")}


def _packed_refs(place: Path) -> Iterator[tuple[str, str]]:
    packed = place / "packed-refs"
    lines = packed.read_text(errors="surrogateescape").splitlines() if packed.exists() else []
    for line in lines:
        if not line.startswith(("#", "^")):
            value, _, name = line.partition(" ")
            yield name, value


def _loose_refs(place: Path) -> Iterator[tuple[str, str]]:
    for folder, _, names in os.walk(place / "refs"):
        for path in (Path(folder, name) for name in names if not name.endswith(".lock")):
            # Another process may delete the file between the two reads.
            with suppress(FileNotFoundError):
                yield path.relative_to(place).as_posix(), path.read_text(errors="surrogateescape").rstrip("\n")


def read_file(repository: Path, ref: str, path: str) -> str:
    """Return the text of a file at a ref, without the last newline."""
    return git(repository, "show", f"{ref}:{path}")


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
