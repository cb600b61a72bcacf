"""Mirrors: a bare copy of one remote in the cache folder, its reading, writing, fetching and pushing.

Resting state of a mirror: no HEAD that anybody uses, no index, no work tree. `refs/remotes/origin/<path below refs/>`
is what the last fetch or push saw of the remote, and nothing else writes there; `refs/out/` is the stage of a push and
empty between pushes. Objects that we write are unreachable until they are pushed; maintenance prunes them after a
day. A process that fetches, writes or pushes holds the mirror's lock.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal, TypeVar

from reconciler.gitio.cache import MirrorFolder, Stamp, fetch_into, writing
from reconciler.gitio.command import TRACKING, Result
from reconciler.gitio.errors import GitError, GitFailedError, MirrorCorruptError, ObjectMissingError, OfflineError
from reconciler.gitio.limits import with_limits
from reconciler.gitio.names import check_id, check_ref
from reconciler.gitio.options import GitOptions
from reconciler.gitio.pace import Pace
from reconciler.gitio.publisher import Publisher
from reconciler.gitio.reader import ObjectReader
from reconciler.gitio.url import GitUrl, check_allowed, parse_url
from reconciler.gitio.verdicts import Done, Outcome, PushReport, PushUnit, RefUpdate
from reconciler.gitio.writer import NewCommit, NewTag, compose_stream, compose_tag
from reconciler.snapshot.objects import UNDATED_SECONDS, CommitId, ObjectId

Kind = Literal["config", "upstream", "destination", "both"]
STATE_PREFIX = "refs/reconciler/state/"
_TAGS = "refs/tags/"
_ALL_TAGS = f"+{_TAGS}*:{TRACKING}{_TAGS.removeprefix('refs/')}*"
_COMMIT = re.compile(r"[0-9a-f]{4,40}(?:[~^][0-9]*)*\Z")
# one object for all clusters and replicas, whoever makes it (finding 20)
_ROOT = NewCommit((), (), "Start of a cluster's configuration", UNDATED_SECONDS, fresh=True)
_ROOT_AUTHOR = ("reconciler", "reconciler@localhost")
_T = TypeVar("_T")
OnRebuild = Callable[[str, str], None]
"""Called with the remote's address and a reason when a damaged mirror was rebuilt."""


def _ignore_rebuild(url: str, reason: str) -> None:
    """Report nothing."""


class Mirror:
    """One bare mirror of one remote. Safe to use from several processes; from several threads, one Mirror each."""

    def __init__(
        self, cache_folder: Path, url: GitUrl, options: GitOptions, pace: Pace, on_rebuild: OnRebuild = _ignore_rebuild
    ) -> None:
        """Use `Mirror.open`."""
        self._on_rebuild = on_rebuild
        self._is_beyond_repair = False
        self._tag_refspecs: dict[str, None] = {}
        self._place = MirrorFolder(cache_folder, url, options)
        self._url = url
        self._options = options
        self._publisher = Publisher(self._place.command, self._place.lock, options, pace)
        self._tag_publisher = Publisher(self._place.command, self._place.lock, options, pace, atomic=False)
        self._refspecs: dict[str, None] = {}
        self._refs: dict[str, CommitId] | None = None
        self._peeled: dict[str, CommitId] = {}
        self._root: CommitId | None = None
        self._has_grown = True
        self._stamp: Stamp | None = None

    @classmethod
    def open(
        cls,
        cache_folder: Path | str,
        url: str | GitUrl,
        options: GitOptions | None = None,
        pace_of: Callable[[str, int], Pace] = lambda url, per_minute: Pace(per_minute),
        on_rebuild: OnRebuild = _ignore_rebuild,
    ) -> Mirror:
        """Return the mirror of `url` below `cache_folder`, made if it is not there yet; nothing is fetched.

        A damaged mirror is rebuilt, here or when the damage is found, and `on_rebuild` is called. `pace_of` returns
        the pace of pushes to an address with so many pushes per minute; mirrors of one remote share it.
        Raises UrlRefusedError for an address that is malformed or not allowed, MirrorBusyError, CacheUnusableError.
        """
        address = url if isinstance(url, GitUrl) else parse_url(url)
        options = with_limits(options or GitOptions(), address)
        check_allowed(address, options.allowed_urls)
        pace = pace_of(address.text, options.max_pushes_per_minute)
        mirror = cls(Path(cache_folder), address, options, pace, on_rebuild)
        if reason := mirror._place.prepare():
            on_rebuild(mirror.url, reason)
        return mirror

    @property
    def folder(self) -> Path:
        """Where the mirror is."""
        return self._place.path

    @property
    def url(self) -> str:
        """The remote's address, without credentials."""
        return self._url.text

    @property
    def options(self) -> GitOptions:
        """How it talks to Git."""
        return self._options

    def __repr__(self) -> str:
        return f"Mirror({self.url})"

    def fetch(self, kind: Kind, state_ref_prefix: str = STATE_PREFIX, branches: Sequence[str] | None = None) -> None:
        """Bring refs and their whole history: heads; state too of destinations, tags too of upstreams, and of both.

        `branches` are short names that narrow the heads to those that begin so; an absent branch is no error, it is
        absent from `refs`.
        Forced and pruned, so that afterwards `refs` is what the remote has. What was fetched once through this
        object is fetched again, so that a repository can be upstream and destination at once. Raises GitError.
        """
        self._refspecs |= dict.fromkeys(_refspecs(kind, state_ref_prefix, branches))
        self._fetch(self._refspecs)

    def fetch_tags(self, starts: Iterable[str]) -> None:
        """Bring the tags whose names start so, and forget those that are gone; one listing of the remote for all.

        A remote whose tags come with every fetch is not asked again. Raises GitError.
        """
        wanted = [f"{_TAGS}{check_ref(_TAGS + start).removeprefix(_TAGS)}*" for start in starts]
        if wanted and _ALL_TAGS not in self._refspecs:
            refspecs = [f"+{one}:{TRACKING}{one.removeprefix('refs/')}" for one in sorted({*wanted})]
            self._fetch(refspecs)
            self._tag_refspecs |= dict.fromkeys(refspecs)

    def _fetch(self, refspecs: Iterable[str]) -> None:
        if self._options.offline:
            self._read_refs()
            if not self._refs:
                self._check_online("it is not in the cache")
            return
        wanted = tuple(refspecs)
        # A failure that has no name may come from the mirror: a fetch into a new one decides.
        self._repairing(lambda: self._fetch_once(wanted), GitFailedError)

    def _fetch_once(self, refspecs: Sequence[str]) -> None:
        with self._place.lock() as hold:
            fetch_into(self._place.command, refspecs, hold)
            # a fetch that brought nothing has moved nothing, and asking git for all refs takes a process
            if self._refs is None or self._stamp is None or self._place.stamp() != self._stamp:
                before = self._refs
                self._read_refs()
                self._has_grown = self._has_grown or before != self._refs

    def _repairing(self, attempt: Callable[[], _T], *damage: type[GitError]) -> _T:
        """Return what `attempt` returns; when it finds damage, rebuild the mirror and try once more.

        `damage` are more errors than MirrorCorruptError that are signs of it. An error that a rebuilt mirror has as
        well does not come from the mirror: this object does not rebuild it again.
        """
        signs: tuple[type[GitError], ...] = (MirrorCorruptError, *damage)
        try:
            return attempt()
        except signs as error:
            if not self._rebuild_after(error):
                raise
            try:
                return attempt()
            except signs:
                self._is_beyond_repair = True
                raise

    def _rebuild_after(self, error: GitError) -> bool:
        refspecs = [*self._refspecs, *self._tag_refspecs]
        if self._options.offline or self._is_beyond_repair or not refspecs:
            return False
        try:
            self._place.rebuild(refspecs)
        except GitError:
            # The damaged mirror stays, and so does the error that it caused.
            self._is_beyond_repair = True
            return False
        # The refs may have moved since the last fetch: a push must not take them for the ones that were planned with.
        self._refs, self._stamp, self._root, self._has_grown = None, None, None, True
        self._on_rebuild(self.url, error.message)
        return True

    def _check_online(self, why: str) -> None:
        if self._options.offline:
            raise OfflineError(f"{self.url} is not asked, though {why}: nothing is fetched")

    def refs(self) -> Mapping[str, CommitId]:
        """Return the remote's refs by full name as of the last fetch or push; an annotated tag has its own id."""
        if self._refs is None:
            self._read_refs()
        assert self._refs is not None
        return MappingProxyType(self._refs)

    @property
    def has_refs(self) -> bool:
        """Whether an earlier fetch has left refs; asked without a process."""
        return any((self.folder / name).exists() for name in ("packed-refs", "refs/remotes", "reftable"))

    def look(self) -> Mapping[str, CommitId]:
        """Return the remote's branches by full name as they are at this moment; `refs` stays as it is."""
        self._check_online("its branches are wanted as they are now")
        lines = self._run("ls-remote", "--quiet", "--heads", "origin").lines
        return {ref: CommitId(commit) for commit, _, ref in (line.partition("\t") for line in lines)}

    def peeled(self, ref: str) -> CommitId | None:
        """Return the commit that a remote ref stands for, annotated tags followed; None if there is none."""
        self.refs()
        return self._peeled.get(ref)

    def _read_refs(self) -> None:
        self._stamp = self._place.stamp()
        form = "--format=%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)"
        rows = [line.split(" ") for line in self._query("for-each-ref", form, TRACKING).lines]
        refs = {"refs/" + row[0].removeprefix(TRACKING): row[1:] for row in rows}
        self._refs = {ref: CommitId(own) for ref, (own, *_) in refs.items()}
        self._peeled = {ref: CommitId(own) for ref, (own, kind, *_) in refs.items() if kind == "commit"}
        self._peeled |= {ref: CommitId(inner) for ref, (_, _, inner, kind) in refs.items() if kind == "commit"}
        self._peel({ref: own for ref, (own, _, _, kind) in refs.items() if kind == "tag"})

    def _peel(self, tags: Mapping[str, str]) -> None:
        if not tags:
            return
        asked = "".join(f"{tag}^{{commit}}\n" for tag in tags.values())
        answers = self._query("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=asked.encode()).lines
        found = zip(tags, (answer.split(" ") for answer in answers), strict=True)
        self._peeled |= {ref: CommitId(words[0]) for ref, words in found if words[1:] == ["commit"]}

    def read(self) -> ObjectReader:
        """Return a reader of this mirror's objects; close it, or use it as a context manager."""
        options = self._options
        return ObjectReader(
            self._place.command, options.timeout_seconds, options.max_object_bytes, self._repairing, self._is_head
        )

    def _is_head(self, commit: str) -> bool:
        """Return whether a ref of the remote names this commit, so that the mirror must hold it."""
        return commit in self.refs().values()

    def default_branch(self) -> str:
        """Ask the remote which branch is its own, and return the short name. Raises GitError."""
        self._check_online("its own branch is wanted")
        for line in self._run("ls-remote", "--symref", "origin", "HEAD").lines:
            target, _, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: refs/heads/"):
                return target.removeprefix("ref: refs/heads/")
        raise ObjectMissingError(f"{self.url} must have a default branch, or a ref must be named")

    def look_at(self, ref: str) -> ObjectId | None:
        """Return what a ref of any name is at the remote at this moment, or None; `refs` stays as it is."""
        self._check_online(f"{ref} is not in the cache")
        rows = (line.partition("\t") for line in self._run("ls-remote", "--quiet", "origin", check_ref(ref)).lines)
        return next((ObjectId(found) for found, _, name in rows if name == ref), None)

    def find_commit(self, text: str) -> CommitId | None:
        """Return the commit that an id, or its beginning, with `~N` and `^N` after it stands for, or None.

        The mirror's own refs are no names of the remote's: text that is anything else raises ValueError.
        """
        if not _COMMIT.match(text):
            raise ValueError(f"{text!r} is no commit id with its ancestry")
        lines = self._run("rev-parse", "--verify", "--quiet", f"{text}^{{commit}}", accept=(0, 1, 128)).lines
        return CommitId(lines[0]) if lines else None

    def commit_of(self, commit: CommitId) -> CommitId:
        """Return the commit, brought from the remote when no ref of it leads there any more. Raises GitError."""
        known = self._run("cat-file", "-e", f"{check_id(commit)}^{{commit}}", accept=(0, 1, 128)).code == 0
        if not known:
            self._check_online(f"commit {commit} is not in the cache")
            with self._place.lock() as hold:
                self._run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
                          "--no-recurse-submodules", "--refmap=", "origin", commit, hold=hold)  # fmt: skip
        return commit

    def is_ancestor(self, ancestor: CommitId, commit: CommitId) -> bool:
        """Tell whether `ancestor` is `commit` or in its history; ids that the mirror does not hold raise GitError."""
        ids = (check_id(ancestor), check_id(commit))
        return self._query("merge-base", "--is-ancestor", *ids, accept=(0, 1)).code == 0

    def merge_base(self, one: CommitId, other: CommitId) -> CommitId | None:
        """Return the last commit that is in the history of both, by git's choice among several; None without one."""
        lines = self._query("merge-base", check_id(one), check_id(other), accept=(0, 1)).lines
        return CommitId(lines[0]) if lines else None

    def root_commits(self, commit: CommitId) -> list[CommitId]:
        """Return the commits without parents in the history of a commit: first that along first parents."""
        roots = self._run("rev-list", "--max-parents=0", check_id(commit), "--").lines
        if len(roots) > 1:
            first = self._run("rev-list", "--max-parents=0", "--first-parent", commit, "--").lines
            roots = [*first, *sorted(set(roots) - set(first))]
        return [CommitId(one) for one in roots]

    def first_parent_log(self, old: CommitId, new: CommitId) -> list[CommitId] | None:
        """Return the commits of `new` that `old` does not have, along first parents, oldest first.

        None when `old` is not an ancestor of `new`, or the mirror does not hold it any more.
        """
        known = self._run("cat-file", "-e", f"{check_id(old)}^{{commit}}", accept=(0, 1, 128)).code == 0
        if not known or not self.is_ancestor(old, new):
            return None
        lines = self._query("rev-list", "--first-parent", "--reverse", new, f"^{old}", "--").lines
        return [CommitId(line) for line in lines]

    def last_change(self, commit: CommitId, path: str) -> CommitId | None:
        """Return the last commit, along first parents up to `commit`, that changed a file or directory."""
        lines = self._query("rev-list", "-1", "--first-parent", check_id(commit), "--", f":(literal){path}").lines
        return CommitId(lines[0]) if lines else None

    def changes(self, commit: CommitId, path: str, since: CommitId | None = None) -> list[CommitId]:
        """Return the commits along first parents up to `commit` that changed a file or directory, newest first.

        Those that `since` has in its history are left out.
        """
        without = [f"^{check_id(since)}"] if since else []
        asked = ("--first-parent", check_id(commit), *without, "--", f":(literal){path}")
        return [CommitId(line) for line in self._query("rev-list", *asked).lines]

    def changes_of(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return at most `limit` commits along first parents up to `commit` that changed any path, newest first."""
        asked = (
            "--first-parent",
            f"--max-count={limit}",
            check_id(commit),
            "--",
            *(f":(literal){one}" for one in paths),
        )
        return [CommitId(line) for line in self._query("rev-list", *asked).lines]

    def side_changes(self, merge: CommitId, path: str) -> list[CommitId]:
        """Return the commits that a merge brought along, and that changed a file or directory, newest first."""
        asked = (check_id(merge), f"^{merge}^1", "--", f":(literal){path}")
        lines = self._query("rev-list", "--full-history", *asked).lines
        return [CommitId(line) for line in lines if line != merge]

    def write(self, commits: Sequence[NewCommit]) -> list[CommitId]:
        """Write commits in one stream and return their ids in order; equal input, equal ids. No ref moves."""
        return self._import(commits, self._options.author)

    def root_commit(self) -> CommitId:
        """Write the one constant first commit of every branch that we create, and return its id."""
        if self._root is None:
            self._root = self._import([_ROOT], _ROOT_AUTHOR)[0]
        return self._root

    def write_tags(self, tags: Sequence[NewTag]) -> list[ObjectId]:
        """Write annotated tag objects and return their ids in order; their refs are made by `push`."""
        if not tags:
            return []
        with self._place.lock() as hold, tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(index) for index in range(len(tags))]
            for file, tag in zip(files, tags, strict=True):
                check_ref(_TAGS + tag.name)
                with writing(file.parent):
                    file.write_bytes(compose_tag(tag, self._options.author))
            names = "".join(f"{file}\n" for file in files).encode()
            result = self._run(
                "hash-object", "-t", "tag", "-w", "--no-filters", "--stdin-paths", stdin=names, hold=hold
            )
        return [ObjectId(line) for line in result.lines]

    def _import(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> list[CommitId]:
        if not commits:
            return []
        self._has_grown = True
        return self._repairing(lambda: self._import_once(commits, author))

    def _import_once(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> list[CommitId]:
        with self._place.lock() as hold, self._import_stream(commits, author) as stream:
            result = self._run("fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, hold=hold)
        return [CommitId(line) for line in result.lines]

    def _import_stream(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> BinaryIO:
        """Return the input of fast-import in a file. Raises CacheUnusableError."""
        # on a full disk the file fails again when it is closed, which must happen inside of `writing`
        with writing(self.folder), ExitStack() as open_files:
            stream: BinaryIO = open_files.enter_context(tempfile.TemporaryFile(dir=self.folder))
            stream.writelines(compose_stream(commits, author))
            stream.seek(0)
            open_files.pop_all()
        return stream

    def push(self, units: Sequence[PushUnit], leave: int = 0) -> PushReport:
        """Move refs of the remote, each unit whole or not at all, and only from where they are expected.

        Expected values are also compared with the last fetch: what moved since is `Lost`. Nothing is raised for
        what the remote did; it is in the report. Names and ids must be valid and no ref may be named twice
        (ValueError). Afterwards `refs` has what is done. A unit with push options is a push of its own; a host that
        does not take options gets it without them. `leave` of the pushes of a minute are left for what comes later;
        what the pace of the remote puts off is Postponed.
        """
        report = self._publisher.push(units, self.refs(), leave)
        return self._remembered(units, report)

    def push_for_review(self, commit: CommitId, ref: str, options: Sequence[str]) -> Outcome:
        """Ask the host to review a commit, by a push to `refs/for/<branch>` (AGit), and say what became of it.

        What the host makes of it is a pull request and no ref of this name, so `refs` does not change, and nobody can
        be Lost. Meant for hosts that know AGit; any other one might make such a ref. ValueError for another ref.
        """
        return self._publisher.push_for_review(commit, ref, options)

    @property
    def takes_push_options(self) -> bool:
        """Whether the host takes push options, as far as is known: True until a push with some was refused for it."""
        return self._publisher.takes_options

    def push_tags(self, tags: Mapping[str, ObjectId]) -> PushReport:
        """Make tags by name, each on its own and only where there is none; the report has them by name.

        What one of them is refused for holds up no other. Nothing is raised for what the remote did.
        """
        units = [PushUnit(name, (RefUpdate(_TAGS + name, new, None),)) for name, new in tags.items()]
        return self._remembered(units, self._tag_publisher.push(units, self.refs()))

    def _remembered(self, units: Iterable[PushUnit], report: PushReport) -> PushReport:
        self._remember([u for unit in units if isinstance(report[unit.name], Done) for u in unit.updates])
        return report

    def _remember(self, updates: Iterable[RefUpdate]) -> None:
        assert self._refs is not None
        moved: dict[str, CommitId] = {}
        # what `refs` has returned stays as it is, and so does what a copy of this mirror knows
        self._refs, self._peeled = dict(self._refs), dict(self._peeled)
        for update in updates:
            for known in (self._refs, self._peeled):
                known.pop(update.ref, None)
            if update.new is not None:
                moved[update.ref] = CommitId(update.new)
        self._refs |= moved
        self._peeled |= {ref: new for ref, new in moved.items() if not ref.startswith(_TAGS)}
        self._peel({ref: new for ref, new in moved.items() if ref.startswith(_TAGS)})

    @property
    def has_grown(self) -> bool:
        """Whether this object has brought or written anything since it was tidied last."""
        return self._has_grown

    def interrupt(self) -> None:
        """End what git is doing here for other threads; they get InterruptedGitError."""
        self._place.interrupt()

    def maintain(self) -> bool:
        """Pack loose objects, merge packs and prune objects that were unreachable for a day; True if there was a need.

        Objects that are written and not yet pushed are younger than that. Raises GitError.
        """
        # the root may be older, and on no branch yet
        self._root = None
        self._has_grown = False
        return self._place.maintain()

    def discard(self) -> None:
        """Remove this mirror from the cache, as after MirrorCorruptError; `Mirror.open` makes a new one.

        What was written and not pushed is gone; the next pass makes the same commits again.
        """
        self._root = None
        self._place.discard()

    def _query(self, *arguments: str, stdin: bytes = b"", accept: tuple[int, ...] = (0,)) -> Result:
        """Run a command that reads the mirror; a damaged mirror is rebuilt."""
        return self._repairing(lambda: self._run(*arguments, stdin=stdin, accept=accept), GitFailedError)

    def _run(
        self, *arguments: str, stdin: bytes | BinaryIO = b"", hold: int | None = None, accept: tuple[int, ...] = (0,)
    ) -> Result:
        return self._place.command.run(*arguments, stdin=stdin, hold=hold, accept=accept)


def _refspecs(kind: Kind, state_ref_prefix: str, branches: Sequence[str] | None) -> list[str]:
    # a trailing star, because a plain name that the remote does not have would fail the whole fetch
    patterns = ["refs/heads/*"] if branches is None else [check_ref(f"refs/heads/{name}") + "*" for name in branches]
    if kind in ("upstream", "both"):
        patterns.append(f"{_TAGS}*")
    if kind in ("destination", "both") and not (branches is None and state_ref_prefix.startswith("refs/heads/")):
        patterns.append(check_ref(state_ref_prefix.rstrip("/")) + "/*")
    return [f"+{pattern}:{TRACKING}{pattern.removeprefix('refs/')}" for pattern in patterns]
