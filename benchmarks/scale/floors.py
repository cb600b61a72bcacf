"""Floors: the cost of the same bytes with Git and libyaml alone."""

from __future__ import annotations

import json
import shutil
import subprocess
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from yaml._yaml import CParser

Refs = Mapping[str, Mapping[str, str]]
"""The refs of each repository, by its name."""
_TRACKING = "refs/remotes/origin/"
_STATES = "refs/reconciler/state/"
_AT_ONCE = 8


@dataclass(frozen=True)
class Floors:
    """Wall-clock seconds to read the bytes, parse them, write the result, push it, and fetch without changes."""

    read: float
    parse: float
    write: float
    push: float
    fetch: float

    @property
    def total(self) -> float:
        """The sum of all steps."""
        return self.read + self.parse + self.write + self.push + self.fetch

    def describe(self) -> str:
        """Return the steps as one line."""
        parts = {"read": self.read, "parse": self.parse, "write": self.write, "push": self.push, "fetch": self.fetch}
        return " + ".join(f"{name} {seconds:.2f}" for name, seconds in parts.items()) + f" = {self.total:.2f} s"


def refs_of(world: Path) -> dict[str, dict[str, str]]:
    """Return the refs of all fleet repositories and of the catalog."""
    repositories = sorted([*world.glob("fleet-*.git"), world / "catalog.git"])
    return {path.name: dict(_refs(path)) for path in repositories}


def floors_of(world: Path, before: Refs, after: Refs, place: Path) -> Floors:
    """Return the cost of a change from some refs to others in every changed repository, and of a fetch from all.

    Each new content of packages and their upstreams is read and parsed once. The written and pushed objects and refs
    are identical to those of the pass.
    """
    place.mkdir()
    moved = [name for name in after if before.get(name) != after[name]]
    read, contents = _timed(lambda: [*_contents(world, moved, before, after)])
    parse, _ = _timed(lambda: _parse(contents))
    streams = {name: _stream(world / name, before.get(name, {}), after[name]) for name in moved}
    for name in moved:
        _prepare(world / name, place / name, before.get(name, {}))
    write, _ = _timed(lambda: [_import(place / name, stream) for name, stream in streams.items()])
    push, _ = _timed(lambda: [_push(place / name) for name in moved])
    fetch = no_change_fetch(world)
    shutil.rmtree(place)
    return Floors(read, parse, write, push, fetch)


def no_change_fetch(world: Path) -> float:
    """Return the duration of fetches from all unchanged remotes, with the concurrency of a pass."""
    remotes = sorted([*world.glob("fleet-*.git"), world / "catalog.git"])
    mirrors = [next((world / "cache").glob(f"*-{path.stem}-????????????????.git")) for path in remotes]
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        seconds, _ = _timed(lambda: [*pool.map(_fetch, mirrors, remotes)])
    return seconds


def time_state_reads(world: Path) -> float:
    """Return the duration of reading all states with one process per repository. The object ids are given."""
    listed = {
        repository: [
            blob
            for files in _list_state_files(repository, _states(repository).values()).values()
            for blob in files.values()
        ]
        for repository in sorted(world.glob("fleet-*.git"))
    }

    def read() -> None:
        for repository, blobs in listed.items():
            for content in _blobs(repository, blobs):
                json.loads(content)

    seconds, _ = _timed(read)
    return seconds


def _states(repository: Path) -> dict[str, str]:
    return {name: commit for name, commit in _refs(repository) if name.startswith(_STATES)}


def _timed(work: Callable[[], object]) -> tuple[float, object]:
    began = time.perf_counter()
    result = work()
    return time.perf_counter() - began, result


def _git(folder: Path, *arguments: str, stdin: bytes = b"") -> bytes:
    return subprocess.run(["git", *arguments], cwd=folder, input=stdin, check=True, stdout=subprocess.PIPE).stdout


def _refs(repository: Path) -> Iterator[tuple[str, str]]:
    for line in _git(repository, "for-each-ref", "--format=%(refname) %(objectname)").decode().splitlines():
        name, _, commit = line.partition(" ")
        yield name, commit


def _contents(world: Path, moved: Iterable[str], before: Refs, after: Refs) -> Iterator[bytes]:
    """Yield each new content of drafts once, and the content of the catalog."""
    result: set[str] = set()
    for name in ("catalog.git", *moved):
        names = "".join(
            f"{commit}\n^{before.get(name, {}).get(ref)}\n" if before.get(name, {}).get(ref) else f"{commit}\n"
            for ref, commit in after[name].items()
            if name == "catalog.git"
            or (ref.startswith("refs/heads/drafts/") and before.get(name, {}).get(ref) != commit)
        )
        listed = _git(world / name, "rev-list", "--objects", "--stdin", stdin=names.encode()).decode().splitlines()
        paths = (line.partition(" ") for line in listed)
        expected = {
            item for item, _, path in paths if path.endswith((".yaml", "Kptfile")) and ".reconciler/" not in path
        }
        yield from _blobs(world / name, sorted(expected - result))
        result |= expected


def _rev_list_arguments(before: Mapping[str, str], after: Mapping[str, str], whole: bool) -> Iterator[str]:
    """Yield the arguments of `rev-list`: the new commits of drafts, or all."""
    for ref, commit in after.items():
        if whole or (ref.startswith("refs/heads/drafts/") and before.get(ref) != commit):
            yield f"{commit}\n"
            yield from [f"^{before[ref]}\n"] if ref in before and not whole else []


def _list_state_files(repository: Path, states: Iterable[str]) -> dict[str, dict[str, str]]:
    """Return the files of states by commit and path, without the trees that states keep alive."""
    mapping: dict[str, dict[str, str]] = {}
    for commit in states:
        lines = _git(repository, "ls-tree", "-r", commit, "--", "destination.json", "packages", "texts").decode()
        rows = (line.split(None, 3) for line in lines.splitlines())
        mapping[commit] = {path: blob for _, _, blob, path in rows}
    return mapping


def _blobs(repository: Path, ids: Sequence[str]) -> Iterator[bytes]:
    answer = _git(repository, "cat-file", "--batch", stdin="".join(f"{item}\n" for item in ids).encode())
    at = 0
    while at < len(answer):
        end = answer.index(b"\n", at)
        size = int(answer[at:end].rpartition(b" ")[2])
        yield answer[end + 1 : end + 1 + size]
        at = end + size + 2


def _parse(contents: object) -> None:
    assert isinstance(contents, list)
    for content in contents:
        parser = CParser(content)
        while parser.check_event():
            parser.get_event()


def _stream(repository: Path, before: Mapping[str, str], after: Mapping[str, str]) -> bytes:
    """Return the fast-import stream of the changes: branches as Git writes them, states without kept trees."""
    old = "".join(f"^{commit}\n" for name, commit in before.items() if not name.startswith(_STATES))
    moved = {name: commit for name, commit in after.items() if before.get(name) != commit}
    new = "".join(f"{name}\n" for name in moved if not name.startswith(_STATES))
    branches = _git(
        repository,
        "fast-export",
        "--reencode=no",
        "--reference-excluded-parents",
        "--stdin",
        stdin=(new + old).encode(),
    )
    states = {name: commit for name, commit in moved.items() if name.startswith(_STATES)}
    files = _list_state_files(repository, states.values())
    blobs = sorted({blob for file in files.values() for blob in file.values()})
    contents = dict(zip(blobs, _blobs(repository, blobs), strict=True))
    return branches + b"".join(_state(name, {path: contents[blob] for path, blob in files[commit].items()})
                               for name, commit in states.items())  # fmt: skip


def _state(name: str, files: Mapping[str, bytes]) -> bytes:
    head = f"reset {name}\ncommit {name}\ncommitter us <us@localhost> 0 +0000\ndata 0\n"
    puts = (b"M 100644 inline %s\ndata %d\n%s\n" % (path.encode(), len(data), data) for path, data in files.items())
    return head.encode() + b"".join(puts) + b"\n"


def _prepare(repository: Path, place: Path, before: Mapping[str, str]) -> None:
    """Create a remote in its earlier state, and an up-to-date mirror of it."""
    remote = place.with_suffix(".remote")
    for folder in (remote, place):
        folder.mkdir()
        _git(folder, "init", "--quiet", "--bare")
    if before:
        commits = "".join(f"{commit}\n" for commit in sorted({*before.values()}))
        pack = _git(repository, "pack-objects", "--revs", "--stdout", "--quiet", stdin=commits.encode())
        for folder in (remote, place):
            _git(folder, "index-pack", "--stdin", stdin=pack)
    updates = "".join(f"create {ref} {commit}\n" for ref, commit in before.items())
    _git(remote, "update-ref", "--stdin", stdin=updates.encode())
    known = "".join(
        f"create {ref} {commit}\ncreate {_TRACKING}{ref.removeprefix('refs/')} {commit}\n"
        for ref, commit in before.items()
    )
    _git(place, "update-ref", "--stdin", stdin=known.encode())
    _git(place, "config", "remote.origin.url", str(remote))
    _git(place, "config", "remote.origin.fetch", f"+refs/*:{_TRACKING}*")


def _import(folder: Path, stream: bytes) -> None:
    _git(folder, "fast-import", "--quiet", "--force", stdin=stream)


def _push(folder: Path) -> None:
    refspecs = ("refs/heads/*:refs/heads/*", "refs/reconciler/*:refs/reconciler/*")
    _git(folder, "push", "--quiet", "--atomic", "--force-with-lease", "origin", *refspecs)


def _fetch(mirror: Path, remote: Path) -> None:
    options = ("--quiet", "--no-tags", "--prune", "--refmap=", "--no-write-fetch-head")
    refs = (f"+refs/{name}/*:{_TRACKING}{name}/*" for name in ("heads", "reconciler"))
    _git(mirror, "fetch", *options, str(remote), *refs)
