"""Writes objects and refs of a bare repository as files, like commits by users but without a process for each."""

from __future__ import annotations

import hashlib
import os
import subprocess
import zlib
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import make_bare

FOLDER, FILE = "40000", "100644"
# a path's blob; a repository without submodules and links needs no more
Files = Mapping[str, str]


class BareRepository:
    """Objects are read by one process that stays, and remembered; `close` ends it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._known: dict[str, bytes] = {}
        self._flat: dict[str, dict[str, str]] = {}
        self._reader: subprocess.Popen[bytes] | None = None

    @classmethod
    def new(cls, folder: Path) -> BareRepository:
        """Make an empty one; nothing in it waits for a disk, or tidies up behind the tests."""
        make_bare(folder, core__fsync="none", gc__auto="0", receive__autogc="false")
        return cls(folder)

    def close(self) -> None:
        """End the reading process."""
        if self._reader:
            self._reader.communicate()
            self._reader = None

    # refs

    def refs(self) -> dict[str, str]:
        """Return all refs."""
        mapping = {}
        for base, _, names in os.walk(self.folder / "refs"):
            for name in names:
                path = Path(base, name)
                mapping[path.relative_to(self.folder).as_posix()] = path.read_text().strip()
        assert not (self.folder / "packed-refs").exists()
        return dict(sorted(mapping.items()))

    def point(self, ref: str, commit: str | None) -> None:
        """Point a ref at a commit, or delete it; folders that are empty then go, too."""
        path = self.folder / ref
        if commit is not None:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(f"{commit}\n")
            return
        path.unlink()
        for parent in path.parents:
            if parent == self.folder / "refs" or any(parent.iterdir()):
                break
            parent.rmdir()

    # objects

    def read(self, name: str) -> bytes:
        """Return an object's content."""
        if name not in self._known:
            self._known[name] = self._ask(name)
        return self._known[name]

    def _ask(self, name: str) -> bytes:
        if self._reader is None:
            command = ["git", "cat-file", "--batch"]
            self._reader = subprocess.Popen(
                command, cwd=self.folder, env=HERMETIC, stdin=subprocess.PIPE, stdout=subprocess.PIPE
            )
        assert self._reader.stdin
        assert self._reader.stdout
        self._reader.stdin.write(f"{name}\n".encode())
        self._reader.stdin.flush()
        header = self._reader.stdout.readline().split()
        assert len(header) == 3, f"{name} is missing in {self.folder.name}"
        content = self._reader.stdout.read(int(header[2]))
        self._reader.stdout.read(1)
        return content

    def write(self, kind: str, content: bytes) -> str:
        """Write an object and return its id."""
        whole = b"%s %d\0%s" % (kind.encode(), len(content), content)
        name = hashlib.sha1(whole).hexdigest()
        path = self.folder / "objects" / name[:2] / name[2:]
        if not path.exists():
            path.parent.mkdir(exist_ok=True)
            path.write_bytes(zlib.compress(whole, 1))
        self._known[name] = content
        return name

    def parents(self, commit: str) -> list[str]:
        """Return the parents of a commit."""
        return [line[7:] for line in self._header(commit) if line.startswith("parent ")]

    def tree(self, commit: str) -> str:
        """Return the root tree of a commit."""
        return self._header(commit)[0][5:]

    def _header(self, commit: str) -> list[str]:
        return self.read(commit).decode().partition("\n\n")[0].splitlines()

    def entries(self, tree: str) -> Iterator[tuple[str, str, str]]:
        """Yield mode, name and id of what a tree holds."""
        content, at = self.read(tree), 0
        while at < len(content):
            end = content.index(0, at)
            mode, name = content[at:end].decode().split(" ", 1)
            yield mode, name, content[end + 1 : end + 21].hex()
            at = end + 21

    def subtree(self, commit: str, name: str) -> str | None:
        """Return the tree of a folder of a commit."""
        result: str | None = self.tree(commit)
        for part in name.split("/"):
            inside = {path: item for mode, path, item in self.entries(result) if mode == FOLDER} if result else {}
            result = inside.get(part)
        return result

    def files(self, commit: str | None) -> dict[str, str]:
        """Return the blobs of a commit by path."""
        return self.below(self.tree(commit)) if commit else {}

    def below(self, tree: str) -> dict[str, str]:
        """Return the blobs of a tree by path."""
        return dict(self._flatten(tree))

    def _flatten(self, tree: str) -> dict[str, str]:
        if tree not in self._flat:
            flat: dict[str, str] = {}
            for mode, name, entry in self.entries(tree):
                if mode == FOLDER:
                    flat |= {f"{name}/{path}": blob for path, blob in self._flatten(entry).items()}
                else:
                    flat[name] = entry
            self._flat[tree] = flat
        return self._flat[tree]

    def write_tree(self, files: Files) -> str:
        """Write a tree of these blobs and return its id."""
        inside: dict[str, dict[str, str]] = {}
        entries: list[tuple[str, str, str]] = []
        for path, blob in files.items():
            name, slash, rest = path.partition("/")
            if slash:
                inside.setdefault(name, {})[rest] = blob
            else:
                entries.append((name, FILE, blob))
        entries += [(name, FOLDER, self.write_tree(below)) for name, below in inside.items()]
        # git sorts folders as if their names ended with a slash
        entries.sort(key=lambda values: values[0] + "/" * (values[1] == FOLDER))
        return self.write(
            "tree", b"".join(b"%s %s\0%s" % (m.encode(), n.encode(), bytes.fromhex(o)) for n, m, o in entries)
        )

    def commit(self, files: Files, parents: Iterable[str], message: str, seconds: int) -> str:
        """Write a commit of these blobs, as a person, and return its id."""
        person = f"Ada <ada@example.com> {seconds} +0000"
        lines = [f"tree {self.write_tree(files)}", *(f"parent {parent}" for parent in parents)]
        lines += [f"author {person}", f"committer {person}", "", message, ""]
        return self.write("commit", "\n".join(lines).encode())

    # history

    def ancestors(self, commit: str) -> set[str]:
        """Return a commit and all that came before it."""
        items, open_ = {commit}, [commit]
        while open_:
            new = set(self.parents(open_.pop())) - items
            items |= new
            open_ += new
        return items

    def beyond(self, head: str, branch: str) -> list[str]:
        """Return the ordinary commits of `head` that `branch` does not have, oldest first, as a rebase takes them."""
        known, found, output = self.ancestors(branch), [], set()

        def visit(commit: str) -> None:
            if commit in known or commit in output:
                return
            output.add(commit)
            for parent in self.parents(commit):
                visit(parent)
            if len(self.parents(commit)) == 1:
                found.append(commit)

        visit(head)
        return found

    def merged(self, text: str, other: str) -> dict[str, str] | None:
        """Return the files of two commits merged by Git, or None if the merge has a conflict."""
        command = ["git", "merge-tree", "--write-tree", text, other]
        process = subprocess.run(command, cwd=self.folder, env=HERMETIC, capture_output=True, check=False)
        return None if process.returncode else dict(self._flatten(process.stdout.decode().split()[0]))

    def replayed(self, old: str, new: str, on: Files) -> dict[str, str] | None:
        """Return files with what changed from one commit to another; None when they have it differently already."""
        before, after, files = self.files(old), self.files(new), dict(on)
        for path in {*before, *after}:
            was, will = before.get(path), after.get(path)
            if was == will or files.get(path) == will:
                continue
            if files.get(path) != was:
                return None
            files.pop(path, None)
            files |= {path: will} if will else {}
        return files
