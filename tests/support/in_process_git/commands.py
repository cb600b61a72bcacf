"""Git commands of the product, each as a function. A function returns the exit code and the output of the command.

A function raises UnsupportedError before it changes a repository.
"""

from __future__ import annotations

import io
import os
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

from tests.support.in_process_git.fast_import import StreamImporter
from tests.support.in_process_git.history import (
    find_merge_base,
    has_changed,
    is_ancestor,
    list_first_parents,
)
from tests.support.in_process_git.objects import ObjectStore, UnsupportedError, read_text
from tests.support.in_process_git.refs import RefStore

_ID = re.compile(r"[0-9a-f]{40}\Z")
_TRACKING = "refs/remotes/origin/"
_STAGING = "refs/out/"
_LITERAL = ":(literal)"
_NEW_CONFIG = "[core]\n\trepositoryformatversion = 0\n\tfilemode = true\n\tbare = true\n"
# With another setting, Git can refuse a push or find no repository.
_USUAL_CONFIG_LINES = {
    *_NEW_CONFIG.splitlines(),
    "\tfsync = none",
    "[gc]",
    "\tauto = 0",
    "[receive]",
    "\tautogc = false",
}


@dataclass(frozen=True)
class Invocation:
    """One call of git.

    Attributes:
        folder: The repository of the call.
        remote: The repository of its remote `origin`, or None if the remote is not a folder.
    """

    folder: Path
    remote: Path | None
    arguments: tuple[str, ...]
    stdin: bytes | BinaryIO

    @property
    def stream(self) -> BinaryIO:
        """The standard input of the call."""
        return io.BytesIO(self.stdin) if isinstance(self.stdin, bytes) else self.stdin

    @property
    def lines(self) -> list[str]:
        """The standard input of the call as lines."""
        return self.stream.read().decode(errors="surrogateescape").splitlines()

    def open_remote(self) -> Path:
        """Return the folder of the remote, if this code supports the remote."""
        if self.remote is None:
            raise UnsupportedError
        names = check_repository(self.remote)
        if not names.isdisjoint((".git", "hooks")) or os.stat(self.remote).st_uid != os.geteuid():
            raise UnsupportedError
        return self.remote


Result = tuple[int, str]


def check_repository(folder: Path) -> set[str]:
    """Return the names in a repository.

    Raises:
        UnsupportedError: The folder is not a complete repository with usual settings and refs in files.
    """
    names = set(os.listdir(folder))
    if not names.issuperset(("HEAD", "objects", "refs")) or "reftable" in names:
        raise UnsupportedError
    if not _USUAL_CONFIG_LINES.issuperset(read_text(f"{folder}/config").splitlines()):
        raise UnsupportedError
    return names


def open_refs(folder: Path) -> RefStore:
    """Return the refs of a repository. Git handles repositories with malformed refs."""
    refs = RefStore(folder)
    if refs.malformed:
        raise UnsupportedError
    return refs


def initialize(call: Invocation) -> Result:
    """Create a bare repository."""
    flags = ("--quiet", "--bare", "--template=", "--object-format=sha1")
    *given, branch = call.arguments
    if tuple(given) != flags or call.folder.exists():
        raise UnsupportedError
    for name in ("objects/info", "objects/pack", "refs/heads", "refs/tags"):
        (call.folder / name).mkdir(parents=True)
    (call.folder / "HEAD").write_text(f"ref: refs/heads/{branch.removeprefix('--initial-branch=')}\n")
    (call.folder / "config").write_text(_NEW_CONFIG)
    return 0, ""


def fetch(call: Invocation) -> Result:
    """Fetch the refspecs of the standard input, and delete the tracking refs without a remote ref."""
    if call.arguments[-2:] != ("--stdin", "origin") or "--prune" not in call.arguments:
        raise UnsupportedError
    remote = call.open_remote()
    theirs, ours = open_refs(remote).values, open_refs(call.folder)
    changes: dict[str, str | None] = {}
    for refspec in call.lines:
        source, _, target = refspec.removeprefix("+").partition(":")
        if not (source.endswith("*") and target.endswith("*")):
            raise UnsupportedError
        source, target = source[:-1], target[:-1]
        changes |= {ref: None for ref in ours.values if ref.startswith(target) and ref not in changes}
        changes |= {target + ref.removeprefix(source): value for ref, value in theirs.items() if ref.startswith(source)}
    moved = {ref: value for ref, value in changes.items() if ours.values.get(ref) != value}
    tips = [value for value in moved.values() if value is not None]
    ObjectStore(call.folder).copy_reachable(ObjectStore(remote), tips)
    ours.apply(moved)
    return 0, ""


def list_refs(call: Invocation) -> Result:
    """Print refs in one of the formats of the product."""
    line_format, *prefixes = call.arguments
    store = ObjectStore(call.folder)
    refs = {ref: value for ref, value in open_refs(call.folder).values.items() if _matches(ref, prefixes)}
    match line_format.removeprefix("--format="):
        case "%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)":
            lines = [f"{ref} {value} {_describe(store, value)}" for ref, value in refs.items()]
        case "%(objectname) %(refname)":
            lines = [f"{value} {ref}" for ref, value in refs.items()]
        case "delete %(refname)":
            lines = [f"delete {ref}" for ref in refs]
        case _:
            raise UnsupportedError
    return 0, _join(lines)


def _matches(ref: str, prefixes: Sequence[str]) -> bool:
    return any(ref == prefix or ref.startswith(prefix.rstrip("/") + "/") for prefix in prefixes)


def _describe(store: ObjectStore, object_id: str) -> str:
    kind, content = store.get(object_id)
    if kind != b"tag":
        return f"{kind.decode()}  "
    target = content[7:47].decode()
    target_kind, _ = store.get(target)
    return f"tag {target} {target_kind.decode()}"


def read_objects(call: Invocation) -> Result:
    """Print the types of objects, or return whether an object exists."""
    store = ObjectStore(call.folder)
    match call.arguments:
        case ("-e", revision) if revision.endswith("^{commit}"):
            store.read(revision.removesuffix("^{commit}"), b"commit")
            return 0, ""
        case ("--batch-check=%(objectname) %(objecttype)",):
            lines = []
            for revision in call.lines:
                commit = store.find_commit(revision.removesuffix("^{commit}"))
                if not revision.endswith("^{commit}") or commit is None:
                    raise UnsupportedError
                lines.append(f"{commit} commit")
            return 0, _join(lines)
    raise UnsupportedError


def import_commits(call: Invocation) -> Result:
    """Write the commits of a stream and print their IDs."""
    importer = StreamImporter(ObjectStore(call.folder), call.stream)
    importer.run()
    return 0, _join(importer.output)


def list_remote(call: Invocation) -> Result:
    """Print the refs of the remote."""
    refs = open_refs(call.open_remote())
    match call.arguments:
        case ("--quiet", "--symref", "--heads", "origin"):
            lines = []
            for ref, value in refs.values.items():
                if ref.startswith("refs/heads/"):
                    lines += [f"ref: {refs.symbolic[ref]}\t{ref}"] if ref in refs.symbolic else []
                    lines.append(f"{value}\t{ref}")
        case ("--quiet", "--heads", "origin"):
            lines = [f"{value}\t{ref}" for ref, value in refs.values.items() if ref.startswith("refs/heads/")]
        case ("--symref", "origin", "HEAD") if refs.head in refs.values:
            lines = [f"ref: {refs.head}\tHEAD", f"{refs.values[refs.head]}\tHEAD"]
        case ("--quiet", "--refs", "origin"):
            lines = [f"{value}\t{ref}" for ref, value in refs.values.items()]
        case ("--quiet", "origin", name) if name.startswith("refs/"):
            lines = [f"{value}\t{ref}" for ref, value in refs.values.items() if ref == name]
        case _:
            raise UnsupportedError
    return 0, _join(lines)


def update_refs(call: Invocation) -> Result:
    """Create, update and delete refs in one transaction."""
    refs, store = open_refs(call.folder), ObjectStore(call.folder)
    before, changes = refs.values, dict[str, str | None]()
    for line in call.lines:
        verb, ref, *values = line.split(" ")
        if ref in changes or (verb == "create" and ref in before):
            raise UnsupportedError
        if verb == "delete" and not values:
            changes[ref] = None
        elif verb in ("create", "update") and len(values) == 1 and store.contains(values[0]):
            changes[ref] = values[0]
        else:
            raise UnsupportedError
    refs.apply(changes)
    return 0, ""


_PUSH_FLAGS = {
    "--porcelain",
    "--atomic",
    "--force-with-lease",
    "--no-verify",
    "--no-progress",
    "--no-signed",
    "--recurse-submodules=no",
}
_TRACK_ALL = ("-c", f"remote.origin.fetch=+refs/*:{_TRACKING}*", "push")


def push(call: Invocation) -> Result:
    """Push the staged refs and the deletions. Git itself runs if the remote would refuse a ref."""
    start = len(_TRACK_ALL)
    flags = {argument for argument in call.arguments[start:] if argument.startswith("--")}
    refspecs = [argument for argument in call.arguments[start:] if not argument.startswith("--")][1:]
    if call.arguments[:start] != _TRACK_ALL or not flags <= _PUSH_FLAGS or "--force-with-lease" not in flags:
        raise UnsupportedError
    remote = call.open_remote()
    ours, theirs = open_refs(call.folder), open_refs(remote)
    changes: dict[str, str | None] = {}
    for refspec in refspecs:
        source, _, target = refspec.partition(":")
        if source == f"{_STAGING}*":
            staged = {ref: value for ref, value in ours.values.items() if ref.startswith(_STAGING)}
            changes |= {f"refs/{ref.removeprefix(_STAGING)}": value for ref, value in staged.items()}
        elif not source:
            changes[target] = None
        else:
            raise UnsupportedError
    tracked = {ref: _TRACKING + ref.removeprefix("refs/") for ref in changes}
    if any(theirs.values.get(ref) != ours.values.get(tracking) for ref, tracking in tracked.items()):
        raise UnsupportedError
    if changes.get(theirs.head, "") is None:
        raise UnsupportedError
    if any(value is None and ref not in theirs.values for ref, value in changes.items()):
        raise UnsupportedError
    tips = [value for value in changes.values() if value is not None]
    # A Git host refuses a new ref whose name is a folder of another ref, even if the push deletes this ref.
    if any(_is_folder_of_other(ref, theirs.values) for ref, value in changes.items() if value is not None):
        raise UnsupportedError
    ObjectStore(remote).copy_reachable(ObjectStore(call.folder), tips)
    theirs.apply(changes)
    ours.apply({tracked[ref]: value for ref, value in changes.items()})
    return 0, ""


def _is_folder_of_other(ref: str, others: dict[str, str]) -> bool:
    return any(other.startswith(f"{ref}/") or ref.startswith(f"{other}/") for other in others)


def resolve_revision(call: Invocation) -> Result:
    """Print the commit with a full ID."""
    match call.arguments:
        case ("--verify", "--quiet", revision) if _ID.match(revision.removesuffix("^{commit}")):
            commit = ObjectStore(call.folder).find_commit(revision.removesuffix("^{commit}"))
            if commit is not None and revision.endswith("^{commit}"):
                return 0, f"{commit}\n"
    raise UnsupportedError


def compare_history(call: Invocation) -> Result:
    """Print the merge base of two commits, or return whether one is an ancestor of the other."""
    store = ObjectStore(call.folder)
    match call.arguments:
        case ("--is-ancestor", first, second) if _ID.match(first) and _ID.match(second):
            return 0 if is_ancestor(store, first, second) else 1, ""
        case (first, second) if _ID.match(first) and _ID.match(second):
            base = find_merge_base(store, first, second)
            return (0, f"{base}\n") if base else (1, "")
    raise UnsupportedError


def list_commits(call: Invocation) -> Result:
    """Print commits of a history that follows first parents."""
    store = ObjectStore(call.folder)
    arguments = call.arguments
    index = arguments.index("--") if "--" in arguments else len(arguments)
    paths = [path.removeprefix(_LITERAL) for path in arguments[index + 1 :] if path.startswith(_LITERAL)]
    flags = {argument for argument in arguments[:index] if argument.startswith("-")}
    commits = [argument for argument in arguments[:index] if not argument.startswith(("-", "^"))]
    excluded = [argument[1:] for argument in arguments[:index] if argument.startswith("^")]
    limits = [flag for flag in flags if flag == "-1" or flag.startswith("--max-count=")]
    if "--first-parent" not in flags or flags - {"--first-parent", "--reverse", *limits} or len(commits) != 1:
        raise UnsupportedError
    if not all(map(_ID.match, commits + excluded)) or len(paths) != len(arguments[index + 1 :]):
        raise UnsupportedError
    found = [
        commit
        for commit in list_first_parents(store, commits[0], excluded)
        if not paths or has_changed(store, commit, paths)
    ]
    for limit in limits:
        found = found[: int(limit.removeprefix("--max-count=").removeprefix("-"))]
    return 0, _join(reversed(found) if "--reverse" in flags else found)


def write_tags(call: Invocation) -> Result:
    """Write the tag objects in files and print their IDs."""
    if call.arguments != ("-t", "tag", "-w", "--no-filters", "--stdin-paths"):
        raise UnsupportedError
    store = ObjectStore(call.folder)
    return 0, _join(store.write(b"tag", Path(file).read_bytes()) for file in call.lines)


def _join(lines: Iterable[str]) -> str:
    return "".join(f"{line}\n" for line in lines)


COMMANDS: dict[str, Callable[[Invocation], Result]] = {
    "init": initialize,
    "fetch": fetch,
    "for-each-ref": list_refs,
    "cat-file": read_objects,
    "fast-import": import_commits,
    "ls-remote": list_remote,
    "update-ref": update_refs,
    "rev-parse": resolve_revision,
    "merge-base": compare_history,
    "rev-list": list_commits,
    "hash-object": write_tags,
}
