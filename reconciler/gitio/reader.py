"""Reading objects in bulk through one `cat-file --batch` process, with a limit on time and size for each answer."""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

from reconciler.gitio.command import GitCommand
from reconciler.gitio.errors import (
    GitError,
    MirrorCorruptError,
    ObjectMissingError,
    TimedOutError,
    TooLargeError,
    TreeMalformedError,
)
from reconciler.gitio.names import check_id
from reconciler.snapshot.objects import DIRECTORY, EXECUTABLE, FILE, LINK, SUBMODULE, BlobId, CommitId, ObjectId, TreeId

LATEST_SECONDS = 2**32 - 1
_TREES_REMEMBERED = 4_000
_IN_FLIGHT = 500  # requests of 41 bytes that fit into a pipe while git waits for us to take its answers
_CHUNK = 1 << 18
_MOST_ENTRIES = 1_000_000
_DEEPEST = 200
_IMPOSSIBLE_NAMES = frozenset({"", ".", ".."})
_MODES = frozenset({DIRECTORY, FILE, EXECUTABLE, LINK, SUBMODULE})
_PERSON = re.compile(rb"(?P<name>.*?) ?<(?P<mail>[^>]*)> *(?P<seconds>-?\d+)?")


_T = TypeVar("_T")


class Repairing(Protocol):
    """Calls a function, and once more after a repair where it raised a sign of damage."""

    def __call__(self, attempt: Callable[[], _T], *damage: type[GitError]) -> _T:
        """Return what `attempt` returns; `damage` are errors that are signs of it besides MirrorCorruptError."""
        ...


@dataclass(frozen=True)
class Person:
    """Who wrote or committed, and when: seconds since 1970, clamped to 0..2^32-1; 0 where unreadable (finding 9)."""

    name: str
    mail: str
    seconds: int


@dataclass(frozen=True)
class Commit:
    """What a commit object says."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    author: Person
    committer: Person
    message: str

    @property
    def seconds(self) -> int:
        """The committer's time, clamped to 0..2^32-1."""
        return self.committer.seconds


@dataclass(frozen=True)
class TreeEntry:
    """One line of a tree: Git's mode ("40000", "100644", …), a name, the id of a blob, tree or foreign commit."""

    mode: str
    name: str
    id: ObjectId

    @property
    def is_tree(self) -> bool:
        """Whether this entry is a directory."""
        return self.mode == DIRECTORY


class ObjectReader:
    """Reads one mirror's objects; use it as a context manager, from one thread. The process starts when first needed.

    Every method raises ObjectMissingError for an id that the mirror does not hold (or of another kind),
    TooLargeError beyond `max_object_bytes`, TimedOutError, and MirrorCorruptError.
    """

    def __init__(
        self,
        command: GitCommand,
        timeout_seconds: float,
        max_object_bytes: int,
        repairing: Repairing | None = None,
        is_head: Callable[[str], bool] = lambda commit: False,
    ) -> None:
        """Read by `command`. `repairing` rebuilds a damaged mirror; `is_head` is true for commits that it must hold."""
        self._repairing = repairing
        self._is_head = is_head
        self._command = command
        self._timeout = timeout_seconds
        self._limit = max_object_bytes
        self._running = ExitStack()
        self._pipe: _Pipe | None = None
        self._trees: OrderedDict[TreeId, tuple[TreeEntry, ...]] = OrderedDict()
        self._ahead: dict[str, tuple[bytes, bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the process; the reader starts another one when used again."""
        self._pipe = None
        self._running.close()

    def read_ahead(self, ids: Iterable[ObjectId]) -> None:
        """Read objects in one go that will be asked for one by one: each answer is kept for one question.

        What is missing or too large is left to that question. Raises TimedOutError, MirrorCorruptError.
        """
        wanted = [one for one in dict.fromkeys(ids) if one not in self._ahead]
        for start in range(0, len(wanted), _IN_FLIGHT):
            batch = wanted[start : start + _IN_FLIGHT]
            self._repaired(partial(self._read_batch_ahead, batch))

    def _read_batch_ahead(self, batch: Sequence[ObjectId]) -> None:
        self._ask(batch)
        for one in batch:
            with suppress(ObjectMissingError, TooLargeError):
                self._ahead[one] = self._any_answer(one)

    def commit(self, commit: CommitId) -> Commit:
        """Return the commit of this id."""
        return _parse_commit(commit, self._one(commit, b"commit"))

    def tagger(self, tag: ObjectId) -> Person | None:
        """Return who made an annotated tag, and when; None for one that does not say."""
        head, _, _ = self._one(tag, b"tag").partition(b"\n\n")
        lines = (line for line in head.split(b"\n") if line.startswith(b"tagger "))
        return next((_parse_person(line.removeprefix(b"tagger ")) for line in lines), None)

    def tag_message(self, tag: ObjectId) -> str:
        """Return the message of an annotated tag, its signature included."""
        return self._one(tag, b"tag").partition(b"\n\n")[2].decode(errors="replace")

    def tree(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return the entries of a tree, in Git's order; recently read ones are remembered."""
        known = self._trees.get(tree)
        if known is None:
            known = self._trees[tree] = tuple(_parse_tree(tree, self._one(tree, b"tree")))
        self._trees.move_to_end(tree)
        if len(self._trees) > _TREES_REMEMBERED:
            self._trees.popitem(last=False)
        return known

    def entry(self, tree: TreeId, path: str) -> TreeEntry | None:
        """Return what stands at `path` below `tree`, or None; "" is the tree itself."""
        found = TreeEntry(DIRECTORY, "", ObjectId(tree))
        for name in path.split("/") if path else ():
            inside = self.tree(TreeId(found.id)) if found.is_tree else ()
            step = next((entry for entry in inside if entry.name == name), None)
            if step is None:
                return None
            found = step
        return found

    def subtree(self, tree: TreeId, path: str) -> ObjectId | None:
        """Return the id of the tree or blob at `path` below `tree`, or None."""
        found = self.entry(tree, path)
        return found.id if found else None

    def blob(self, blob: BlobId) -> bytes:
        """Return a file's bytes."""
        return self._one(blob, b"blob")

    def blobs(self, ids: Iterable[BlobId]) -> dict[BlobId, bytes]:
        """Return many files' bytes by id, asked for in one go."""
        asked = list(dict.fromkeys(ids))
        found = {one: self._ahead.pop(one)[1] for one in asked if self._ahead.get(one, (b"",))[0] == b"blob"}
        wanted = [one for one in asked if one not in found]
        for start in range(0, len(wanted), _IN_FLIGHT):
            batch = wanted[start : start + _IN_FLIGHT]
            answers = self._repaired(partial(self._answers, batch), ObjectMissingError)
            # An object of another kind is what the remote has: a new mirror would have the same.
            found |= {blob: _of_kind(blob, b"blob", kind, content) for blob, (kind, content) in answers.items()}
        return found

    def _answers(self, batch: list[BlobId]) -> dict[BlobId, tuple[bytes, bytes]]:
        self._ask(batch)
        try:
            return {blob: self._any_answer(blob) for blob in batch}
        except GitError:
            # the rest of the answers is still in the pipe
            self.close()
            raise

    def walk(self, tree: TreeId, prefix: str = "", most: int = _MOST_ENTRIES) -> Iterator[tuple[str, str, BlobId]]:
        """Yield (path, mode, id) of all that is not a directory below a tree, links and submodules included.

        `prefix` is put before the paths. Raises TooLargeError after `most` entries, or 200 directories down: a small
        pack can spell a tree of any size. Raises TreeMalformedError for a tree that no file system can hold.
        """
        seen = 0
        waiting = [(tree, prefix, 0)]
        while waiting:
            folder, start, depth = waiting.pop()
            entries = self.tree(folder)
            if faults := malformed_entries(entries):
                raise TreeMalformedError(f"{start or 'the folder'}: {next(iter(faults.values()))}")
            seen += len(entries)
            if seen > most or depth > _DEEPEST:
                hint = "" if most == _MOST_ENTRIES else ", or raise the setting limits.folder_files"
                raise TooLargeError(
                    f"the folder (tree {tree}) must have at most {most:,} files and folders, {_DEEPEST} levels deep;"
                    f" remove files{hint}"
                )
            yield from ((start + e.name, e.mode, BlobId(e.id)) for e in entries if not e.is_tree)
            waiting += [(TreeId(e.id), f"{start}{e.name}/", depth + 1) for e in reversed(entries) if e.is_tree]

    def has(self, object_id: ObjectId) -> bool:
        """Tell whether the mirror holds this object, of whatever kind."""
        self._ask([object_id])
        try:
            self._any_answer(object_id)
        except ObjectMissingError:
            return False
        except TooLargeError:
            return True
        return True

    def _one(self, object_id: str, kind: bytes) -> bytes:
        known, content = self._ahead.pop(object_id, (b"", b""))
        if known == kind:
            return content
        # A tree, blob or tag is asked for because another object names it. A commit may be named by a person.
        must_exist = kind != b"commit" or self._is_head(object_id)
        damage = [ObjectMissingError] if must_exist else []
        found, content = self._repaired(partial(self._read_one, object_id), *damage)
        # An object of another kind is what the remote has: a new mirror would have the same.
        return _of_kind(object_id, kind, found, content)

    def _read_one(self, object_id: str) -> tuple[bytes, bytes]:
        self._ask([object_id])
        return self._any_answer(object_id)

    def _repaired(self, read: Callable[[], _T], *damage: type[GitError]) -> _T:
        signs: tuple[type[GitError], ...] = (MirrorCorruptError, *damage)

        def attempt() -> _T:
            try:
                return read()
            except signs:
                # The process has the files of the damaged mirror open.
                self.close()
                raise

        return self._repairing(attempt, *damage) if self._repairing else attempt()

    def _ask(self, ids: Iterable[str]) -> None:
        request = "".join(f"{check_id(object_id)}\n" for object_id in ids).encode()
        if self._pipe is None:
            process = self._running.enter_context(self._command.start("cat-file", "--batch"))
            self._pipe = _Pipe(process, self._timeout)
        try:
            self._pipe.write(request)
        except BaseException:
            self.close()
            raise

    def _any_answer(self, object_id: str) -> tuple[bytes, bytes]:
        """Return (kind, content) of the next answer."""
        # an answer left half read would be taken for the next one's: whatever fails here ends the process,
        # but for "missing" and "too large", whose answers are read whole
        assert self._pipe is not None
        try:
            header = self._pipe.line().split()
            content = None if header[1:] == [b"missing"] else self._pipe.content(int(header[2]), self._limit)
        except BaseException:
            self.close()
            raise
        if content is None:
            raise ObjectMissingError(f"there is no object {object_id} in the mirror")
        if len(content) < int(header[2]):
            raise TooLargeError(f"{header[1].decode()} {object_id} has {int(header[2])} bytes, more than {self._limit}")
        return header[1], content


def _of_kind(object_id: str, wanted: bytes, found: bytes, content: bytes) -> bytes:
    """Return the content of an object. Raises ObjectMissingError for an object of another kind."""
    if found != wanted:
        raise ObjectMissingError(
            f"there is no {wanted.decode()} {object_id} in the mirror: the object with this id is a {found.decode()}"
        )
    return content


def malformed_entries(entries: Sequence[TreeEntry]) -> dict[str, str]:
    """Return the names of entries that no file system can hold, with the reasons; Git accepts them from a remote."""
    found: dict[str, str] = {}
    for entry in entries:
        if entry.name in _IMPOSSIBLE_NAMES or "/" in entry.name:
            found[entry.name] = f"the tree has an entry with the name {shown(entry.name)}"
        elif entry.mode not in _MODES:
            found[entry.name] = f"the entry {shown(entry.name)} of the tree has the unknown mode {shown(entry.mode)}"
    if len({entry.name for entry in entries}) < len(entries):
        counts = Counter(entry.name for entry in entries)
        found |= {name: f"the tree has more than one entry {shown(name)}" for name, n in counts.items() if n > 1}
    return found


def shown(name: str) -> str:
    """Return a name in quotes, for messages: bytes that are not UTF-8 become escapes."""
    return '"' + name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") + '"'


class _Pipe:
    """The two ends of a batch process, read with a time limit."""

    def __init__(self, process: subprocess.Popen[bytes], timeout_seconds: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._to, self._from, self._words = process.stdin.fileno(), process.stdout.fileno(), process.stderr.fileno()
        self._timeout = timeout_seconds
        self._said = b""
        self._buffer = bytearray()
        self._poll = select.poll()
        for descriptor in (self._from, self._words):
            self._poll.register(descriptor, select.POLLIN)

    def write(self, request: bytes) -> None:
        try:
            while request:
                request = request[os.write(self._to, request) :]
        except BrokenPipeError as error:
            raise self._ended() from error

    def line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def content(self, size: int, limit: int) -> bytes:
        """Read `size` bytes and the newline after them; beyond `limit` they are read and dropped."""
        if size > limit:
            return self._drop(size + 1)
        while len(self._buffer) <= size:
            self._fill()
        content = bytes(self._buffer[:size])
        del self._buffer[: size + 1]
        return content

    def _drop(self, size: int) -> bytes:
        while size > len(self._buffer):
            size -= len(self._buffer)
            self._buffer.clear()
            self._fill()
        del self._buffer[:size]
        return b""

    def _fill(self) -> None:
        ready = self._poll.poll(self._timeout * 1000)
        if not ready:
            raise TimedOutError(f"git cat-file gave no answer for {self._timeout:g} seconds and was ended")
        for descriptor, _ in ready:
            chunk = os.read(descriptor, _CHUNK)
            if descriptor == self._from:
                self._buffer += chunk
            else:
                self._said = (self._said + chunk)[-_CHUNK:]
            if not chunk:
                self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        if descriptor == self._from:
            raise self._ended()

    def _ended(self) -> MirrorCorruptError:
        words = self._said.decode(errors="replace").strip()
        return MirrorCorruptError(f"git cat-file ended early: {words or 'no reason given'}")


def _parse_commit(commit: CommitId, content: bytes) -> Commit:
    head, _, message = content.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in head.split(b"\n"):
        # lines of a signature start with a blank and belong to the field above
        key, _, value = line.partition(b" ")
        fields.setdefault(key, []).append(value)
    if b"tree" not in fields:
        raise MirrorCorruptError(f"commit {commit} is malformed")
    return Commit(
        id=commit,
        tree=TreeId(fields[b"tree"][0].decode()),
        parents=tuple(CommitId(parent.decode()) for parent in fields.get(b"parent", [])),
        author=_parse_person(fields.get(b"author", [b""])[0]),
        committer=_parse_person(fields.get(b"committer", [b""])[0]),
        message=message.decode(errors="replace"),
    )


def _parse_person(line: bytes) -> Person:
    found = _PERSON.match(line)
    if not found:
        return Person(line.decode(errors="replace"), "", 0)
    name, mail = (found[part].decode(errors="replace") for part in ("name", "mail"))
    # no more digits than a date can have: int() of a very long number is refused by Python
    digits = (found["seconds"] or b"0")[:20]
    return Person(name, mail, min(max(int(digits), 0), LATEST_SECONDS))


def _parse_tree(tree: TreeId, content: bytes) -> Iterator[TreeEntry]:
    start = 0
    while start < len(content):
        blank = content.find(b" ", start)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise MirrorCorruptError(f"tree {tree} is malformed")
        mode, name = content[start:blank].decode(errors="replace"), content[blank + 1 : end]
        start = end + 21
        yield TreeEntry(_plain(mode), name.decode(errors="surrogateescape"), ObjectId(content[end + 1 : start].hex()))


def _plain(mode: str) -> str:
    # old tools wrote modes such as 040000 and 100664; Git reads them as these
    mode = mode.lstrip("0")
    if mode in {DIRECTORY, SUBMODULE} or not mode.startswith("100"):
        return mode
    return "100755" if mode[3:4] in "7531" else "100644"
