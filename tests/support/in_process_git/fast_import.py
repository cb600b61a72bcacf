"""The streams of `git fast-import` that the product and the tests write."""

from __future__ import annotations

import re
from typing import BinaryIO

from tests.support.in_process_git.objects import (
    DIRECTORY,
    EMPTY_TREE,
    ObjectStore,
    UnsupportedError,
    read_tree_of,
)
from tests.support.in_process_git.trees import EditableTree

_ESCAPE = re.compile(rb"\\(.)", re.DOTALL)
_MODES = {b"100644", b"100755", b"120000", DIRECTORY, b"160000"}


class StreamImporter:
    """Writes the commits of one stream."""

    def __init__(self, store: ObjectStore, stream: BinaryIO) -> None:
        self._store = store
        self._stream = stream
        self._line = b""
        self._marks: dict[bytes, str] = {}
        self.output: list[str] = []

    def run(self) -> None:
        """Write the commits. `output` then contains the requested IDs."""
        self._advance()
        while self._line and self._line != b"done":
            name, _, argument = self._line.partition(b" ")
            if name == b"commit":
                self._import_commit()
                continue
            if name == b"get-mark":
                self.output.append(self._marks[argument])
            elif name not in (b"reset", b"from"):
                raise UnsupportedError
            self._advance()

    def _advance(self) -> bytes:
        """Move to the next line that is not empty, and return the previous one."""
        line = self._line
        self._line = b"\n"
        while self._line == b"\n":
            self._line = self._stream.readline()
        self._line = self._line.removesuffix(b"\n")
        return line

    def _read_data(self) -> bytes:
        name, _, size = self._line.partition(b" ")
        if name != b"data":
            raise UnsupportedError
        content = self._stream.read(int(size))
        self._advance()
        return content

    def _take(self, name: bytes) -> bytes | None:
        """Return the argument of the current line and move to the next line, if the line has this command."""
        if not self._line.startswith(name + b" "):
            return None
        return self._advance()[len(name) + 1 :]

    def _import_commit(self) -> None:
        self._advance()
        mark = self._take(b"mark")
        author = self._take(b"author")
        committer = self._take(b"committer")
        message = self._read_data()
        parents = []
        for command in (b"from", b"merge"):
            while (parent := self._take(command)) is not None:
                parents.append(self._resolve(parent))
        tree = EditableTree(self._store, read_tree_of(self._store, parents[0]) if parents else EMPTY_TREE)
        while self._line:
            name, _, argument = self._line.partition(b" ")
            if name == b"deleteall":
                tree = EditableTree(self._store)
                self._advance()
            elif name == b"D":
                tree.remove(_unquote(argument))
                self._advance()
            elif name == b"M":
                tree = self._change(tree, *argument.split(b" ", 2))
            else:
                break
        lines = [f"tree {tree.write()}".encode(), *(f"parent {parent}".encode() for parent in parents)]
        lines += [b"author " + (author or committer or b""), b"committer " + (committer or b""), b"", message]
        commit = self._store.write(b"commit", b"\n".join(lines))
        if mark:
            self._marks[mark] = commit

    def _change(self, tree: EditableTree, mode: bytes, source: bytes, path: bytes) -> EditableTree:
        self._advance()
        path = _unquote(path)
        object_id = self._store.write(b"blob", self._read_data()) if source == b"inline" else source.decode()
        if mode not in _MODES or (mode != b"160000" and not self._store.contains(object_id)):
            raise UnsupportedError
        if not path:
            return EditableTree(self._store, object_id)
        tree.put(path, mode, object_id)
        return tree

    def _resolve(self, commit: bytes) -> str:
        return self._marks[commit] if commit.startswith(b":") else commit.decode()


def _unquote(path: bytes) -> bytes:
    if not path.startswith(b'"'):
        return path
    return _ESCAPE.sub(lambda match: b"\n" if match[1] == b"n" else match[1], path[1:-1])
