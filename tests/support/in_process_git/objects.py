"""Objects of a repository: loose objects, which this code reads and writes, and packed objects, which Git reads."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
import threading
import zlib
from collections.abc import Iterable, Iterator
from functools import lru_cache
from pathlib import Path

from tests.support.git_environment import HERMETIC

EMPTY_TREE = "4b825dc642cb6eb9a060e54bf8d69288fbee4904"
DIRECTORY, SUBMODULE = b"40000", b"160000"
_MAX_CACHED_OBJECTS = 30_000

GitObject = tuple[bytes, bytes]
"""The type of an object, such as `b"blob"`, and its content."""


class UnsupportedError(Exception):
    """Git itself must run this command."""


# The ID of an object determines its content, so that all repositories share the cache. A damaged file has another size.
_cache: dict[tuple[str, int], GitObject] = {}


class ObjectStore:
    """The objects of one repository."""

    def __init__(self, repository: Path) -> None:
        self._folder = f"{repository}/objects"
        self._packed: dict[str, GitObject] = {}
        if os.path.exists(f"{self._folder}/info/alternates"):
            raise UnsupportedError

    def contains(self, object_id: str) -> bool:
        """Return whether the repository contains an object."""
        return object_id in self._packed or os.path.exists(self._locate(object_id)) or object_id in self._read_packs()

    def find(self, object_id: str) -> GitObject | None:
        """Return an object, or None."""
        if object_id in self._packed:
            return self._packed[object_id]
        path = self._locate(object_id)
        try:
            key = (object_id, os.stat(path).st_size)
        except OSError:
            return self._read_packs().get(object_id)
        cached = _cache.get(key)
        if cached is None:
            if len(_cache) > _MAX_CACHED_OBJECTS:
                _cache.clear()
            cached = _cache[key] = _read_loose(path)
        return cached

    def get(self, object_id: str) -> GitObject:
        """Return an object that must exist."""
        found = self.find(object_id)
        if found is None:
            raise UnsupportedError
        return found

    def read(self, object_id: str, kind: bytes) -> bytes:
        """Return the content of an object of this type."""
        found_kind, content = self.get(object_id)
        if found_kind != kind:
            raise UnsupportedError
        return content

    def write(self, kind: bytes, content: bytes) -> str:
        """Write an object and return its ID."""
        data = b"%s %d\0%s" % (kind, len(content), content)
        object_id = hashlib.sha1(data, usedforsecurity=False).hexdigest()
        if not self.contains(object_id):
            self._write_loose(object_id, zlib.compress(data, 1))
        return object_id

    def copy_reachable(self, source: ObjectStore, tips: Iterable[str]) -> None:
        """Copy the objects that are reachable from `tips` and missing here."""
        missing = list(source._list_missing(self, tips))
        # Write the objects that others refer to first: an object in a repository means that all of its history is there.
        for object_id in reversed(missing):
            path = source._locate(object_id)
            if os.path.exists(path):
                with open(path, "rb") as file:
                    self._write_loose(object_id, file.read())
            else:
                self.write(*source._read_packs()[object_id])

    def _list_missing(self, target: ObjectStore, tips: Iterable[str]) -> Iterator[str]:
        pending, listed = list(tips), set[str]()
        while pending:
            object_id = pending.pop()
            if object_id in listed or target.contains(object_id):
                continue
            listed.add(object_id)
            pending += list_references(*self.get(object_id))
            yield object_id

    def find_commit(self, object_id: str) -> str | None:
        """Return the commit that a commit or tag refers to, or None."""
        found = self.find(object_id)
        while found and found[0] == b"tag":
            object_id = found[1][7:47].decode()
            found = self.find(object_id)
        return object_id if found and found[0] == b"commit" else None

    def _locate(self, object_id: str) -> str:
        return f"{self._folder}/{object_id[:2]}/{object_id[2:]}"

    def _write_loose(self, object_id: str, compressed: bytes) -> None:
        path = self._locate(object_id)
        temporary = f"{path}.{threading.get_ident()}"
        try:
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o444)
        except FileNotFoundError:
            os.makedirs(os.path.dirname(path), exist_ok=True)
            descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o444)
        try:
            assert os.write(descriptor, compressed) == len(compressed)
        finally:
            os.close(descriptor)
        os.rename(temporary, path)

    def _read_packs(self) -> dict[str, GitObject]:
        try:
            names = [name for name in os.listdir(f"{self._folder}/pack") if name.endswith(".pack")]
        except FileNotFoundError:
            names = []
        self._packed = _read_packs(self._folder, tuple(sorted(names))) if names else {}
        return self._packed


def read_text(path: str) -> str:
    """Return the text of a small file. `open` takes several times as long, and tests read 100,000 refs."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        return os.read(descriptor, os.fstat(descriptor).st_size).decode(errors="surrogateescape")
    finally:
        os.close(descriptor)


def _read_loose(path: str) -> GitObject:
    try:
        with open(path, "rb") as file:
            header, _, content = zlib.decompress(file.read()).partition(b"\0")
    except (OSError, zlib.error) as error:
        raise UnsupportedError from error
    kind, _, size = header.partition(b" ")
    if size != b"%d" % len(content):
        raise UnsupportedError
    return kind, content


@lru_cache(maxsize=64)
def _read_packs(folder: str, names: tuple[str, ...]) -> dict[str, GitObject]:
    """Return the objects of a repository with these packs."""
    command = ["git", f"--git-dir={Path(folder).parent}", "cat-file", "--batch", "--batch-all-objects"]
    process = subprocess.run(command, env=HERMETIC, capture_output=True, check=False)
    if process.returncode:
        raise UnsupportedError
    output, start, objects = process.stdout, 0, {}
    while start < len(output):
        end = output.index(b"\n", start)
        object_id, kind, size = output[start:end].split()
        content = output[end + 1 : end + 1 + int(size)]
        objects[object_id.decode()] = (kind, content)
        start = end + 2 + int(size)
    return objects


_REFERENCE = re.compile(rb"(?:tree|parent|object) ([0-9a-f]{40})\n")


def list_references(kind: bytes, content: bytes) -> list[str]:
    """Return the IDs of the objects that an object refers to. The commits of submodules are not objects."""
    if kind == b"blob":
        return []
    if kind == b"tree":
        return [object_id for mode, _, object_id in parse_tree(content) if mode != SUBMODULE]
    return [reference.decode() for reference in _REFERENCE.findall(content.partition(b"\n\n")[0] + b"\n")]


def parse_tree(content: bytes) -> Iterator[tuple[bytes, bytes, str]]:
    """Yield the mode, the name and the ID of each entry of a tree."""
    start = 0
    while start < len(content):
        blank = content.index(b" ", start)
        end = content.index(b"\0", blank)
        yield content[start:blank], content[blank + 1 : end], content[end + 1 : end + 21].hex()
        start = end + 21


def list_parents(store: ObjectStore, commit: str) -> list[str]:
    """Return the parents of a commit."""
    return list_references(b"commit", store.read(commit, b"commit"))[1:]


def find_path(store: ObjectStore, tree: str, path: str) -> tuple[bytes, str] | None:
    """Return the mode and the ID of the object at a path below a tree, or None. The path "" means the tree."""
    mode, object_id = DIRECTORY, tree
    for name in path.encode(errors="surrogateescape").split(b"/") if path else ():
        if mode != DIRECTORY:
            return None
        entries = {name: (mode, found) for mode, name, found in parse_tree(store.read(object_id, b"tree"))}
        if name not in entries:
            return None
        mode, object_id = entries[name]
    return mode, object_id


def read_tree_of(store: ObjectStore, commit: str) -> str:
    """Return the tree of a commit."""
    return store.read(commit, b"commit")[5:45].decode()
