"""Reading of many Git objects with one `git cat-file --batch` process. The time and size of each object are limited."""

from __future__ import annotations

import os
import re
import select
import subprocess
from collections import Counter, OrderedDict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, suppress
from functools import partial
from types import TracebackType
from typing import Protocol, Self, TypeVar

from reconciler.catalog.files import (
    DIRECTORY_MODE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    BlobId,
    CommitId,
    ObjectId,
    TreeId,
)
from reconciler.git.command import GitCommand
from reconciler.git.errors import (
    GitError,
    GitTimeoutError,
    MirrorCorruptError,
    ObjectMissingError,
    TooLargeError,
    TreeMalformedError,
)
from reconciler.git.names import check_object_id
from reconciler.lazy_dataclasses import dataclass

MAX_COMMIT_SECONDS = 2**32 - 1
_MAX_CACHED_TREES = 4_000
# Send at most 500 requests (41 bytes each) before reading the answers. A larger batch could fill the pipe to git, while
# git waits until its answers are read.
_BATCH_SIZE = 500
_CHUNK = 1 << 18
_MAX_ENTRIES = 1_000_000
_MAX_DEPTH = 200
_INVALID_NAMES = frozenset({"", ".", ".."})
_MODES = frozenset({DIRECTORY_MODE, FILE_MODE, EXECUTABLE_MODE, SYMLINK_MODE, SUBMODULE_MODE})
_IDENTITY = re.compile(rb"(?P<name>.*?) ?<(?P<mail>[^>]*)> *(?P<seconds>-?\d+)?")


_T = TypeVar("_T")


class RetryAfterRepair(Protocol):
    """Calls a function. If the function detects damage of the mirror, repairs the mirror and repeats the call."""

    def __call__(self, attempt: Callable[[], _T], *damage: type[GitError]) -> _T:
        """Return the result of `attempt`. If `attempt` detects damage, repair the mirror and repeat the call.

        Args:
            damage: The errors that show damage, in addition to MirrorCorruptError.
        """
        ...


@dataclass(frozen=True)
class GitIdentity:
    """The author, committer or tagger of a Git object.

    `seconds` is the date since 1970, limited to 0..2^32-1. An unreadable date becomes 0.
    """

    name: str
    email: str
    seconds: int


@dataclass(frozen=True)
class Commit:
    """The content of a commit object."""

    id: CommitId
    tree: TreeId
    parents: tuple[CommitId, ...]
    author: GitIdentity
    committer: GitIdentity
    message: str

    @property
    def seconds(self) -> int:
        """The committer date in seconds since 1970, limited to 0..2^32-1."""
        return self.committer.seconds


@dataclass(frozen=True)
class TreeEntry:
    """One entry of a Git tree.

    `mode` is the mode in Git, such as "40000" or "100644". `id` is the ID of a blob, a tree, or the commit of a
    submodule.
    """

    mode: str
    name: str
    id: ObjectId

    @property
    def is_tree(self) -> bool:
        """Whether this tree entry is a directory."""
        return self.mode == DIRECTORY_MODE


class ObjectReader:
    """Reads objects of one repository. Use a reader as a context manager and in one thread. The first read starts git.

    The methods raise ObjectMissingError if the repository does not contain an ID, or if the object has a different
    type. They raise TooLargeError if an object is larger than `max_object_bytes`. GitTimeoutError and
    MirrorCorruptError are possible as well.
    """

    def __init__(
        self,
        command: GitCommand,
        timeout_seconds: float,
        max_object_bytes: int,
        retry_after_repair: RetryAfterRepair | None = None,
        is_head: Callable[[str], bool] = lambda commit: False,
    ) -> None:
        """Create a reader. The first read starts the process.

        Args:
            is_head: Returns whether any ref points to this commit. If such a commit is missing, the mirror is damaged.
        """
        self._repairing = retry_after_repair
        self._is_head = is_head
        self._command = command
        self._timeout = timeout_seconds
        self._limit = max_object_bytes
        self._running = ExitStack()
        self._pipe: _Pipe | None = None
        self._trees: OrderedDict[TreeId, tuple[TreeEntry, ...]] = OrderedDict()
        self._prefetched: dict[str, tuple[bytes, bytes]] = {}

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        """End the git process. The next read starts a new process."""
        self._pipe = None
        self._running.close()

    def prefetch(self, ids: Iterable[ObjectId]) -> None:
        """Read many objects at once. Store each object until another method requests it for the first time.

        A missing or too large object is not an error here. The later call that requests the object raises the error.

        Raises:
            GitTimeoutError: Git did not answer in time.
            MirrorCorruptError: The mirror is damaged.
        """
        missing = [
            object_id
            for object_id in dict.fromkeys(ids)
            if object_id not in self._prefetched and TreeId(object_id) not in self._trees
        ]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            self._read_with_repair(partial(self._prefetch_batch, batch))

    def _prefetch_batch(self, batch: Sequence[ObjectId]) -> None:
        self._request(batch)
        for object_id in batch:
            with suppress(ObjectMissingError, TooLargeError):
                self._prefetched[object_id] = self._read_answer(object_id)

    def read_commit(self, commit: CommitId) -> Commit:
        """Return the commit with this id."""
        return _parse_commit(commit, self._read_object(commit, b"commit"))

    def read_commit_content(self, commit: CommitId) -> bytes:
        """Return the unparsed content of a commit."""
        return self._read_object(commit, b"commit")

    def read_tagger(self, tag: ObjectId) -> GitIdentity | None:
        """Return the tagger of an annotated tag. Return None if the tag has no tagger."""
        header, _, _ = self._read_object(tag, b"tag").partition(b"\n\n")
        lines = (line for line in header.split(b"\n") if line.startswith(b"tagger "))
        return next((_parse_identity(line.removeprefix(b"tagger ")) for line in lines), None)

    def read_tag_message(self, tag: ObjectId) -> str:
        """Return the message of an annotated tag. If the tag is signed, the message includes the signature."""
        return self._read_object(tag, b"tag").partition(b"\n\n")[2].decode(errors="replace")

    def read_tree(self, tree: TreeId) -> tuple[TreeEntry, ...]:
        """Return the entries of a tree in the order of Git. Trees that were read recently are cached."""
        entries = self._trees.get(tree)
        if entries is None:
            entries = self._trees[tree] = tuple(_parse_tree(tree, self._read_object(tree, b"tree")))
        self._trees.move_to_end(tree)
        if len(self._trees) > _MAX_CACHED_TREES:
            self._trees.popitem(last=False)
        return entries

    def find_entry(self, tree: TreeId, path: str) -> TreeEntry | None:
        """Return the entry at `path` below `tree`. Return None if there is no entry. The path "" means the tree."""
        current = TreeEntry(DIRECTORY_MODE, "", ObjectId(tree))
        for name in path.split("/") if path else ():
            children = self.read_tree(TreeId(current.id)) if current.is_tree else ()
            child = next((entry for entry in children if entry.name == name), None)
            if child is None:
                return None
            current = child
        return current

    def find_object_id(self, tree: TreeId, path: str) -> ObjectId | None:
        """Return the ID of the object at `path` below `tree`. Return None if there is no entry."""
        entry = self.find_entry(tree, path)
        return entry.id if entry else None

    def read_blob(self, blob: BlobId) -> bytes:
        """Return the content of a blob (a file)."""
        return self._read_object(blob, b"blob")

    def read_blobs(self, ids: Iterable[BlobId]) -> dict[BlobId, bytes]:
        """Return the contents of many files by blob ID. The files are read in batches."""
        unique_ids = list(dict.fromkeys(ids))
        contents = {
            blob_id: self._prefetched.pop(blob_id)[1]
            for blob_id in unique_ids
            if self._prefetched.get(blob_id, (b"",))[0] == b"blob"
        }
        missing = [blob_id for blob_id in unique_ids if blob_id not in contents]
        for start in range(0, len(missing), _BATCH_SIZE):
            batch = missing[start : start + _BATCH_SIZE]
            answers = self._read_with_repair(partial(self._read_answers, batch), ObjectMissingError)
            # Check the type after the repair, because a wrong type is not damage: a new mirror would contain the same
            # object.
            contents |= {blob: _check_kind(blob, b"blob", kind, content) for blob, (kind, content) in answers.items()}
        return contents

    def _read_answers(self, batch: list[BlobId]) -> dict[BlobId, tuple[bytes, bytes]]:
        self._request(batch)
        try:
            return {blob: self._read_answer(blob) for blob in batch}
        except GitError:
            # End the process, because the pipe still contains the answers to the remaining requests.
            self.close()
            raise

    def walk(
        self, tree: TreeId, prefix: str = "", max_entries: int = _MAX_ENTRIES
    ) -> Iterator[tuple[str, str, BlobId]]:
        """Yield (path, mode, ID) for each file, link and submodule below a tree. Yield nothing for directories.

        `prefix` is prepended to the paths.

        Raises:
            TooLargeError: The tree has more than `max_entries` entries, or more than 200 levels. The limit is
                necessary, because a small pack can describe a tree of any size.
            TreeMalformedError: The tree has an entry that a file system cannot store.
        """
        count = 0
        pending = [(tree, prefix, 0)]
        while pending:
            folder, folder_prefix, depth = pending.pop()
            entries = self.read_tree(folder)
            if malformed := find_malformed_entries(entries):
                location = f' (folder "{folder_prefix}")' if folder_prefix else ""
                raise TreeMalformedError(f"{next(iter(malformed.values()))}{location}")
            count += len(entries)
            if count > max_entries or depth > _MAX_DEPTH:
                hint = "" if max_entries == _MAX_ENTRIES else ", or raise the setting `limits.folder_files`"
                raise TooLargeError(
                    f"the folder (tree {tree}) must have at most {max_entries:,} files and folders, and at most"
                    f" {_MAX_DEPTH} levels of folders; remove files{hint}"
                )
            yield from (
                (folder_prefix + entry.name, entry.mode, BlobId(entry.id)) for entry in entries if not entry.is_tree
            )
            pending += [
                (TreeId(entry.id), f"{folder_prefix}{entry.name}/", depth + 1)
                for entry in reversed(entries)
                if entry.is_tree
            ]

    def _read_object(self, object_id: str, kind: bytes) -> bytes:
        prefetched_kind, content = self._prefetched.pop(object_id, (b"", b""))
        if prefetched_kind == kind:
            return content
        # Treat a missing object as damage, unless it is a commit without a ref: users can enter the ID of any commit.
        # The ID of a tree, blob or tag comes from an object or a ref in the mirror.
        must_exist = kind != b"commit" or self._is_head(object_id)
        damage = [ObjectMissingError] if must_exist else []
        found_kind, content = self._read_with_repair(partial(self._request_object, object_id), *damage)
        # Check the type after the repair, because a wrong type is not damage: a new mirror would contain the same
        # object.
        return _check_kind(object_id, kind, found_kind, content)

    def _request_object(self, object_id: str) -> tuple[bytes, bytes]:
        self._request([object_id])
        return self._read_answer(object_id)

    def _read_with_repair(self, read: Callable[[], _T], *damage: type[GitError]) -> _T:
        damage_types: tuple[type[GitError], ...] = (MirrorCorruptError, *damage)

        def attempt() -> _T:
            try:
                return read()
            except damage_types:
                # End the process, because it has opened files of the damaged mirror.
                self.close()
                raise

        return self._repairing(attempt, *damage) if self._repairing else attempt()

    def _request(self, ids: Iterable[str]) -> None:
        request = "".join(f"{check_object_id(object_id)}\n" for object_id in ids).encode()
        if self._pipe is None:
            process = self._running.enter_context(self._command.start("cat-file", "--batch"))
            self._pipe = _Pipe(process, self._timeout)
        try:
            self._pipe.write(request)
        except BaseException:
            self.close()
            raise

    def _read_answer(self, object_id: str) -> tuple[bytes, bytes]:
        """Read the next answer of the process, and return the type and the content of the object."""
        # End the process after a failure, because the next request would read the rest of this answer. This is not
        # necessary for missing and too large objects, because their answers are read completely.
        assert self._pipe is not None
        try:
            header = self._pipe.read_line().split()
            content = None if header[1:] == [b"missing"] else self._pipe.read_content(int(header[2]), self._limit)
        except BaseException:
            self.close()
            raise
        if content is None:
            raise ObjectMissingError(f"there is no object {object_id} in the mirror")
        if len(content) < int(header[2]):
            raise TooLargeError(
                f"{header[1].decode()} {object_id} has {int(header[2])} bytes, more than the limit of {self._limit}"
            )
        return header[1], content


def _check_kind(object_id: str, expected_kind: bytes, found_kind: bytes, content: bytes) -> bytes:
    """Return `content` if the object has the expected type.

    Raises:
        ObjectMissingError: The object has a different type.
    """
    if found_kind != expected_kind:
        raise ObjectMissingError(
            f"the object {object_id} in the mirror must be a {expected_kind.decode()}, but is a {found_kind.decode()}"
        )
    return content


def find_malformed_entries(entries: Sequence[TreeEntry]) -> dict[str, str]:
    """Return the names of tree entries that a file system cannot store, each with a reason.

    A remote can contain such trees, because Git accepts them.
    """
    reasons: dict[str, str] = {}
    for entry in entries:
        if entry.name in _INVALID_NAMES or "/" in entry.name:
            reasons[entry.name] = f"the Git tree has an entry with the name {quote_name(entry.name)}"
        elif entry.mode not in _MODES:
            reasons[entry.name] = (
                f"the entry {quote_name(entry.name)} of the Git tree has the unknown mode {quote_name(entry.mode)}"
            )
    if len({entry.name for entry in entries}) < len(entries):
        counts = Counter(entry.name for entry in entries)
        reasons |= {
            name: f"the Git tree has more than one entry {quote_name(name)}" for name, n in counts.items() if n > 1
        }
    return reasons


def quote_name(name: str) -> str:
    r"""Return a name in quotes, for messages. Bytes that are not UTF-8 are replaced by escapes such as \xe9."""
    return '"' + name.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace") + '"'


class _Pipe:
    """The pipes of a `git cat-file --batch` process. Reads have a time limit."""

    def __init__(self, process: subprocess.Popen[bytes], timeout_seconds: float) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._stdin, self._stdout, self._stderr = (
            process.stdin.fileno(),
            process.stdout.fileno(),
            process.stderr.fileno(),
        )
        self._timeout = timeout_seconds
        self._stderr_output = b""
        self._buffer = bytearray()
        self._poll = select.poll()
        for descriptor in (self._stdout, self._stderr):
            self._poll.register(descriptor, select.POLLIN)

    def write(self, request: bytes) -> None:
        try:
            while request:
                request = request[os.write(self._stdin, request) :]
        except BrokenPipeError as error:
            raise self._build_ended_error() from error

    def read_line(self) -> bytes:
        while (end := self._buffer.find(b"\n")) < 0:
            self._fill()
        line = bytes(self._buffer[:end])
        del self._buffer[: end + 1]
        return line

    def read_content(self, size: int, limit: int) -> bytes:
        """Read `size` bytes and a newline, and return the bytes. If `size` exceeds `limit`, return b"" instead."""
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
            raise GitTimeoutError(f"git cat-file did not respond within {self._timeout:g} seconds and was stopped")
        for descriptor, _ in ready:
            chunk = os.read(descriptor, _CHUNK)
            if descriptor == self._stdout:
                self._buffer += chunk
            else:
                self._stderr_output = (self._stderr_output + chunk)[-_CHUNK:]
            if not chunk:
                self._close(descriptor)

    def _close(self, descriptor: int) -> None:
        self._poll.unregister(descriptor)
        if descriptor == self._stdout:
            raise self._build_ended_error()

    def _build_ended_error(self) -> MirrorCorruptError:
        message = self._stderr_output.decode(errors="replace").strip()
        return MirrorCorruptError(f"git cat-file ended early: {message or 'no reason given'}")


def _parse_commit(commit: CommitId, content: bytes) -> Commit:
    header, _, message = content.partition(b"\n\n")
    fields: dict[bytes, list[bytes]] = {}
    for line in header.split(b"\n"):
        # Ignore the continuation lines of a signature: their key is empty, because they start with a space.
        key, _, value = line.partition(b" ")
        fields.setdefault(key, []).append(value)
    if b"tree" not in fields:
        raise MirrorCorruptError(f"commit {commit} is malformed")
    return Commit(
        id=commit,
        tree=TreeId(fields[b"tree"][0].decode()),
        parents=tuple(CommitId(parent.decode()) for parent in fields.get(b"parent", [])),
        author=_parse_identity(fields.get(b"author", [b""])[0]),
        committer=_parse_identity(fields.get(b"committer", [b""])[0]),
        message=message.decode(errors="replace"),
    )


def _parse_identity(line: bytes) -> GitIdentity:
    match = _IDENTITY.match(line)
    if not match:
        return GitIdentity(line.decode(errors="replace"), "", 0)
    name, mail = (match[part].decode(errors="replace") for part in ("name", "mail"))
    # Use only the first 20 digits, because int() in Python refuses very long numbers.
    digits = (match["seconds"] or b"0")[:20]
    return GitIdentity(name, mail, min(max(int(digits), 0), MAX_COMMIT_SECONDS))


def _parse_tree(tree: TreeId, content: bytes) -> Iterator[TreeEntry]:
    start = 0
    while start < len(content):
        blank = content.find(b" ", start)
        end = content.find(b"\0", blank)
        if blank < 0 or end < 0 or end + 21 > len(content):
            raise MirrorCorruptError(f"tree {tree} is malformed")
        mode, name = content[start:blank].decode(errors="replace"), content[blank + 1 : end]
        start = end + 21
        yield TreeEntry(
            _normalize_mode(mode), name.decode(errors="surrogateescape"), ObjectId(content[end + 1 : start].hex())
        )


def _normalize_mode(mode: str) -> str:
    # Normalize modes as Git does, because old tools wrote modes such as 040000 and 100664 instead of 40000 and 100644.
    mode = mode.lstrip("0")
    if mode in {DIRECTORY_MODE, SUBMODULE_MODE} or not mode.startswith("100"):
        return mode
    return "100755" if mode[3:4] in "7531" else "100644"
