"""Writing commits in bulk: the text of one fast-import stream. Objects only; no ref is ever left behind."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from reconciler.gitio.names import check_id, check_path
from reconciler.gitio.reader import LATEST_SECONDS
from reconciler.snapshot.objects import DIRECTORY, EXECUTABLE, FILE, LINK, SUBMODULE, CommitId, ObjectId, TreeId

# fast-import insists on a ref; it is forgotten before the stream ends, so it never gets to the disk
_WORK_REF = b"refs/reconciler-tmp/work"
_NOWHERE = b"0" * 40
_FILE_MODES = frozenset({FILE, EXECUTABLE, LINK})
_MODES = _FILE_MODES | {DIRECTORY, SUBMODULE}


@dataclass(frozen=True)
class Put:
    """Write a file; `mode` is Git's: "100644", "100755" or "120000"."""

    path: str
    data: bytes
    mode: str = FILE


@dataclass(frozen=True)
class Graft:
    """Put what stands elsewhere by its id at `path`, replacing what stands there; "" is the root.

    The mirror must hold a tree and a file already; a submodule's commit is another repository's.
    """

    path: str
    id: TreeId | ObjectId
    mode: str = DIRECTORY


@dataclass(frozen=True)
class Drop:
    """Remove a file or directory; absent is fine."""

    path: str


Change = Put | Graft | Drop


@dataclass(frozen=True)
class NewCommit:
    """A commit to write: its first parent's tree with `changes` applied in order.

    A parent is an id, or the index of an earlier commit of the same sequence. `seconds` since 1970 is author's
    and committer's date, clamped to 0..2^32-1, zone +0000. `fresh` starts from the empty tree instead. `author` is
    the person whose act it is, name and mail address; without one the committer, who is always us.
    """

    parents: tuple[CommitId | int, ...]
    changes: tuple[Change, ...]
    message: str
    seconds: int
    fresh: bool = False
    author: tuple[str, str] | None = None


@dataclass(frozen=True)
class NewTag:
    """An annotated tag object to write; `name` is the part below refs/tags/."""

    name: str
    target: CommitId
    message: str
    seconds: int


def compose_stream(commits: Sequence[NewCommit], author: tuple[str, str]) -> Iterator[bytes]:
    """Yield the fast-import stream that writes `commits` and answers with their ids, a line each, in order."""
    who = _person(author)
    for index, commit in enumerate(commits):
        yield from _commit(index, commit, who)
    yield from (b"get-mark :%d\n" % (index + 1) for index in range(len(commits)))
    yield b"reset %s\nfrom %s\n\ndone\n" % (_WORK_REF, _NOWHERE)


def compose_tag(tag: NewTag, author: tuple[str, str]) -> bytes:
    """Return the content of a tag object."""
    head = f"object {check_id(tag.target)}\ntype commit\ntag {tag.name}\n".encode()
    return head + b"tagger %s %d +0000\n\n" % (_person(author), clamp(tag.seconds)) + _text(tag.message)


def clamp(seconds: int) -> int:
    """Return a date that every host takes: hosts refuse negative and oversized ones (finding 9)."""
    return min(max(seconds, 0), LATEST_SECONDS)


def _person(author: tuple[str, str]) -> bytes:
    if any(character in part for part in author for character in "<>\n\0"):
        raise ValueError(f"an author must be a name and a mail address without < and >, not {author!r}")
    return f"{author[0]} <{author[1]}>".encode()


def _text(message: str) -> bytes:
    return message.rstrip("\n").replace("\0", "").encode(errors="replace") + b"\n"


def _commit(index: int, commit: NewCommit, who: bytes) -> Iterator[bytes]:
    yield b"reset %s\ncommit %s\nmark :%d\n" % (_WORK_REF, _WORK_REF, index + 1)
    author, seconds = _person(commit.author) if commit.author else who, clamp(commit.seconds)
    yield b"author %s %d +0000\ncommitter %s %d +0000\n" % (author, seconds, who, seconds)
    yield _data(_text(commit.message))
    for verb, parent in zip([b"from", *[b"merge"] * len(commit.parents)], commit.parents, strict=False):
        yield b"%s %s\n" % (verb, _parent(parent, index))
    if commit.fresh:
        yield b"deleteall\n"
    for change in commit.changes:
        yield _change(change)
    yield b"\n"


def _parent(parent: CommitId | int, index: int) -> bytes:
    if isinstance(parent, str):
        return check_id(parent).encode()
    if not 0 <= parent < index:
        raise ValueError(f"commit {index} must name an earlier commit as its parent, not {parent}")
    return b":%d" % (parent + 1)


def _change(change: Change) -> bytes:
    match change:
        case Put(path, data, mode):
            if mode not in _FILE_MODES:
                raise ValueError(f"a file's mode must be one of {sorted(_FILE_MODES)}, not {mode!r}")
            return b"M %s inline %s\n" % (mode.encode(), _quote(check_path(path))) + _data(data)
        case Graft(path, one, mode):
            if mode not in _MODES:
                raise ValueError(f"a mode must be one of {sorted(_MODES)}, not {mode!r}")
            return b"M %s %s %s\n" % (mode.encode(), check_id(one).encode(), _quote(path and check_path(path)))
        case Drop(path):
            return b"D %s\n" % _quote(check_path(path))


def _data(content: bytes) -> bytes:
    return b"data %d\n%s\n" % (len(content), content)


def _quote(path: str) -> bytes:
    raw = path.encode(errors="surrogateescape")
    return b'"' + raw.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n") + b'"'
