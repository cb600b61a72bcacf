"""Input for Git commands that write objects: commits as one fast-import stream, and the content of annotated tags.

This module starts no process.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from reconciler.catalog.files import (
    DIRECTORY_MODE,
    EXECUTABLE_MODE,
    FILE_MODE,
    SUBMODULE_MODE,
    SYMLINK_MODE,
    CommitId,
    ObjectId,
    TreeId,
)
from reconciler.git.names import check_object_id, check_tree_path
from reconciler.git.object_reader import MAX_COMMIT_SECONDS
from reconciler.lazy_dataclasses import dataclass

# Use a temporary ref, because fast-import requires a ref. The stream resets the ref at its end, so that git does not
# create the ref.
_TEMPORARY_REF = b"refs/reconciler-tmp/work"
_NULL_ID = b"0" * 40
_FILE_MODES = frozenset({FILE_MODE, EXECUTABLE_MODE, SYMLINK_MODE})
_MODES = _FILE_MODES | {DIRECTORY_MODE, SUBMODULE_MODE}


@dataclass(frozen=True)
class PutFile:
    """A change that writes a file. `mode` is the mode in Git: "100644", "100755" or "120000"."""

    path: str
    data: bytes
    mode: str = FILE_MODE


@dataclass(frozen=True)
class PutObject:
    """A change that puts an existing object at `path` and replaces the current entry. The path "" means the root.

    The mirror must already contain the object, unless the object is the commit of a submodule.
    """

    path: str
    id: TreeId | ObjectId
    mode: str = DIRECTORY_MODE


@dataclass(frozen=True)
class DeletePath:
    """A change that deletes a file or directory, if it exists."""

    path: str


TreeChange = PutFile | PutObject | DeletePath


@dataclass(frozen=True)
class NewCommit:
    """A commit to write. Its tree is the tree of its first parent after all `changes`, applied in order.

    Attributes:
        parents: IDs of commits, or indexes of earlier commits in the same sequence.
        seconds: The date of author and committer in seconds since 1970, limited to 0..2^32-1. The time zone is +0000.
        has_empty_base: Whether to apply `changes` to an empty tree instead of the tree of the first parent.
        author: Name and mail address of the person who caused the commit. None means the daemon, which is always the
            committer.
    """

    parents: tuple[CommitId | int, ...]
    changes: tuple[TreeChange, ...]
    message: str
    seconds: int
    has_empty_base: bool = False
    author: tuple[str, str] | None = None


@dataclass(frozen=True)
class NewTag:
    """An annotated tag to write. `name` is the ref name without refs/tags/."""

    name: str
    target: CommitId
    message: str
    seconds: int


def compose_stream(commits: Sequence[NewCommit], author: tuple[str, str]) -> Iterator[bytes]:
    """Yield the fast-import stream that writes `commits`. Git then prints the commit IDs in order, one per line."""
    committer = _format_identity(author)
    for index, commit in enumerate(commits):
        yield from _compose_commit(index, commit, committer)
    yield from (b"get-mark :%d\n" % (index + 1) for index in range(len(commits)))
    yield b"reset %s\nfrom %s\n\ndone\n" % (_TEMPORARY_REF, _NULL_ID)


def compose_tag(tag: NewTag, author: tuple[str, str]) -> bytes:
    """Return the content of an annotated tag object."""
    header = f"object {check_object_id(tag.target)}\ntype commit\ntag {tag.name}\n".encode()
    return (
        header
        + b"tagger %s %d +0000\n\n" % (_format_identity(author), clamp_seconds(tag.seconds))
        + _encode_message(tag.message)
    )


def clamp_seconds(seconds: int) -> int:
    """Limit a date to 0..2^32-1 seconds since 1970, because hosts refuse other dates."""
    return min(max(seconds, 0), MAX_COMMIT_SECONDS)


def _format_identity(author: tuple[str, str]) -> bytes:
    if any(character in part for part in author for character in "<>\n\0"):
        raise ValueError(f"an author must be a name and a mail address without < and >, but is {author!r}")
    return f"{author[0]} <{author[1]}>".encode()


def _encode_message(message: str) -> bytes:
    return message.rstrip("\n").replace("\0", "").encode(errors="replace") + b"\n"


def _compose_commit(index: int, commit: NewCommit, committer: bytes) -> Iterator[bytes]:
    yield b"reset %s\ncommit %s\nmark :%d\n" % (_TEMPORARY_REF, _TEMPORARY_REF, index + 1)
    author, seconds = _format_identity(commit.author) if commit.author else committer, clamp_seconds(commit.seconds)
    yield b"author %s %d +0000\ncommitter %s %d +0000\n" % (author, seconds, committer, seconds)
    yield _format_data(_encode_message(commit.message))
    for verb, parent in zip([b"from", *[b"merge"] * len(commit.parents)], commit.parents, strict=False):
        yield b"%s %s\n" % (verb, _format_parent(parent, index))
    if commit.has_empty_base:
        yield b"deleteall\n"
    for change in commit.changes:
        yield _format_change(change)
    yield b"\n"


def _format_parent(parent: CommitId | int, index: int) -> bytes:
    if isinstance(parent, str):
        return check_object_id(parent).encode()
    if not 0 <= parent < index:
        raise ValueError(f"commit {index} must name an earlier commit as its parent, but names {parent}")
    return b":%d" % (parent + 1)


def _format_change(change: TreeChange) -> bytes:
    match change:
        case PutFile(path, data, mode):
            if mode not in _FILE_MODES:
                raise ValueError(f"a file's mode must be one of {sorted(_FILE_MODES)}, but is {mode!r}")
            return b"M %s inline %s\n" % (mode.encode(), _quote_path(check_tree_path(path))) + _format_data(data)
        case PutObject(path, object_id, mode):
            if mode not in _MODES:
                raise ValueError(f"a mode must be one of {sorted(_MODES)}, but is {mode!r}")
            return b"M %s %s %s\n" % (
                mode.encode(),
                check_object_id(object_id).encode(),
                _quote_path(path and check_tree_path(path)),
            )
        case DeletePath(path):
            return b"D %s\n" % _quote_path(check_tree_path(path))


def _format_data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quote_path(path: str) -> bytes:
    raw = path.encode(errors="surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
