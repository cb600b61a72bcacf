"""Trees that are changed path by path, as `git fast-import` does."""

from __future__ import annotations

from tests.support.in_process_git.objects import DIRECTORY, EMPTY_TREE, ObjectStore, UnsupportedError, parse_tree


class EditableTree:
    """A tree whose directories are read when a change needs them."""

    def __init__(self, store: ObjectStore, tree: str = EMPTY_TREE) -> None:
        self._store = store
        self._id = tree
        self._loaded: dict[bytes, tuple[bytes, str | EditableTree]] | None = {} if tree == EMPTY_TREE else None

    @property
    def _entries(self) -> dict[bytes, tuple[bytes, str | EditableTree]]:
        if self._loaded is None:
            content = self._store.read(self._id, b"tree")
            self._loaded = {name: (mode, object_id) for mode, name, object_id in parse_tree(content)}
        return self._loaded

    def put(self, path: bytes, mode: bytes, object_id: str) -> None:
        """Replace the entry at a path. A file in the place of a parent directory is removed."""
        if mode == DIRECTORY and object_id == EMPTY_TREE:
            self.remove(path)
            return
        name, _, rest = path.partition(b"/")
        if not name or name in (b".", b".."):
            raise UnsupportedError
        if rest:
            self._open(name).put(rest, mode, object_id)
        else:
            self._entries[name] = (mode, object_id)

    def remove(self, path: bytes) -> None:
        """Delete the entry at a path, if it exists, and the directories that become empty."""
        name, _, rest = path.partition(b"/")
        entry = self._entries.get(name)
        if entry is None or (rest and entry[0] != DIRECTORY):
            return
        if rest:
            folder = self._open(name)
            folder.remove(rest)
            if folder._entries:
                return
        del self._entries[name]

    def _open(self, name: bytes) -> EditableTree:
        mode, content = self._entries.get(name, (b"", EMPTY_TREE))
        if mode != DIRECTORY:
            content = EMPTY_TREE
        folder = content if isinstance(content, EditableTree) else EditableTree(self._store, content)
        self._entries[name] = (DIRECTORY, folder)
        return folder

    def write(self) -> str:
        """Write the tree with its directories and return its ID."""
        if self._loaded is None:
            return self._id
        rows = [
            (name, mode, content.write() if isinstance(content, EditableTree) else content)
            for name, (mode, content) in self._loaded.items()
        ]
        rows.sort(key=lambda row: row[0] + b"/" if row[1] == DIRECTORY else row[0])
        return self._store.write(
            b"tree", b"".join(b"%s %s\0%s" % (mode, name, bytes.fromhex(object_id)) for name, mode, object_id in rows)
        )
