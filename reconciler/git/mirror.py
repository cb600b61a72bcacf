"""Mirrors: bare copies of remotes in the cache folder, with reading, writing, fetching and pushing.

State of a mirror between calls:

- It has no used HEAD, no index and no work tree.
- `refs/remotes/origin/<path below refs/>` contains the remote's refs as of the last fetch or push.
- `refs/out/` contains the refs of a running push, and is empty between pushes.
- Written objects are unreachable until they are pushed; maintenance prunes them after one day.

A process that fetches, writes or pushes holds the mirror's lock.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import BinaryIO, Literal, TypeVar

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, CommitId, ObjectId
from reconciler.git.command import TRACKING_PREFIX, GitResult
from reconciler.git.errors import GitError, GitFailedError, MirrorCorruptError, ObjectMissingError, OfflineError
from reconciler.git.mirror_folder import MirrorFolder, RefTimestamps, fetch_into, translate_write_errors
from reconciler.git.names import check_object_id, check_ref
from reconciler.git.object_reader import ObjectReader
from reconciler.git.object_writer import NewCommit, NewTag, compose_stream, compose_tag
from reconciler.git.options import GitOptions, apply_remote_limits
from reconciler.git.push import RefPusher
from reconciler.git.push_outcomes import PushDone, PushOutcome, PushReport, PushUnit, RefUpdate
from reconciler.git.rate_limit import PushRateLimiter
from reconciler.git.url import GitUrl, check_url_allowed, parse_url

FetchKind = Literal["config", "upstream", "target", "both"]
STATE_REF_PREFIX = "refs/reconciler/state/"
_TAGS = "refs/tags/"
_ALL_TAGS = f"+{_TAGS}*:{TRACKING_PREFIX}{_TAGS.removeprefix('refs/')}*"
_COMMIT = re.compile(r"[0-9a-f]{4,40}(?:[~^][0-9]*)*\Z")
# This commit is the same object for all clusters and replicas.
_ROOT = NewCommit((), (), "Start of a cluster's configuration", FALLBACK_COMMIT_SECONDS, has_empty_base=True)
_ROOT_AUTHOR = ("reconciler", "reconciler@localhost")
_T = TypeVar("_T")
OnRebuild = Callable[[str, str], None]
"""Callback with the remote's address and the reason why a damaged mirror was rebuilt."""


def _ignore_rebuild(url: str, reason: str) -> None:
    """Ignore the rebuild."""


class Mirror:
    """One bare mirror of one remote. Several processes may use it; each thread needs its own Mirror object."""

    def __init__(
        self,
        cache_folder: Path,
        url: GitUrl,
        options: GitOptions,
        rate_limiter: PushRateLimiter,
        on_rebuild: OnRebuild = _ignore_rebuild,
    ) -> None:
        """Use `Mirror.open`."""
        self._on_rebuild = on_rebuild
        self._is_repair_useless = False
        self._tag_refspecs: dict[str, None] = {}
        self._storage = MirrorFolder(cache_folder, url, options)
        self._url = url
        self._options = options
        self._publisher = RefPusher(self._storage.command, self._storage.lock, options, rate_limiter)
        self._tag_publisher = RefPusher(self._storage.command, self._storage.lock, options, rate_limiter, atomic=False)
        self._refspecs: dict[str, None] = {}
        self._refs: dict[str, CommitId] | None = None
        self._peeled: dict[str, CommitId] = {}
        self._root: CommitId | None = None
        self._has_new_objects = True
        self._ref_timestamps: RefTimestamps | None = None

    @classmethod
    def open(
        cls,
        cache_folder: Path | str,
        url: str | GitUrl,
        options: GitOptions | None = None,
        get_rate_limiter: Callable[[str, int], PushRateLimiter] = lambda url, per_minute: PushRateLimiter(per_minute),
        on_rebuild: OnRebuild = _ignore_rebuild,
    ) -> Mirror:
        """Return the mirror of `url` in `cache_folder`, and create it if it does not exist; nothing is fetched.

        A damaged mirror is rebuilt, here or when the damage is detected, and `on_rebuild` is called.

        Args:
            get_rate_limiter: Returns the rate limiter for an address and its pushes per minute; mirrors of one remote
                share it.

        Raises:
            UrlRefusedError: The address is malformed or not allowed.
            MirrorBusyError: Another process holds the mirror.
            CacheUnusableError: The cache folder cannot be written.
        """
        address = url if isinstance(url, GitUrl) else parse_url(url)
        options = apply_remote_limits(options or GitOptions(), address)
        check_url_allowed(address, options.allowed_urls)
        pace = get_rate_limiter(address.text, options.max_pushes_per_minute)
        mirror = cls(Path(cache_folder), address, options, pace, on_rebuild)
        if reason := mirror._storage.prepare():
            on_rebuild(mirror.url, reason)
        return mirror

    @property
    def folder(self) -> Path:
        """The mirror's folder."""
        return self._storage.path

    @property
    def url(self) -> str:
        """The remote's address, without credentials."""
        return self._url.text

    @property
    def options(self) -> GitOptions:
        """The mirror's Git options."""
        return self._options

    def __repr__(self) -> str:
        return f"Mirror({self.url})"

    def fetch(
        self, kind: FetchKind, state_ref_prefix: str = STATE_REF_PREFIX, branches: Sequence[str] | None = None
    ) -> None:
        """Fetch refs with their whole history: branches, state refs of targets, and tags of upstreams.

        The fetch is forced and pruned, so that `refs` then contains exactly the remote's refs. Refs that this object
        has fetched before are fetched again, so that one repository can be an upstream and a target.

        Args:
            branches: Prefixes of short names that limit the branches; an absent branch is not an error.

        Raises:
            GitError: The fetch failed.
        """
        self._refspecs |= dict.fromkeys(_build_refspecs(kind, state_ref_prefix, branches))
        self._fetch(self._refspecs)

    def fetch_tags(self, name_prefixes: Iterable[str]) -> None:
        """Fetch the tags with these name prefixes, and remove deleted ones, in one call for all.

        Nothing is done for a remote whose tags are part of every fetch.

        Raises:
            GitError: The fetch failed.
        """
        patterns = [f"{_TAGS}{check_ref(_TAGS + prefix).removeprefix(_TAGS)}*" for prefix in name_prefixes]
        if patterns and _ALL_TAGS not in self._refspecs:
            refspecs = [
                f"+{pattern}:{TRACKING_PREFIX}{pattern.removeprefix('refs/')}" for pattern in sorted({*patterns})
            ]
            self._fetch(refspecs)
            self._tag_refspecs |= dict.fromkeys(refspecs)

    def _fetch(self, refspecs: Iterable[str]) -> None:
        if self._options.offline:
            self._read_refs()
            if not self._refs:
                self._check_online("it is not in the cache")
            return
        refspec_list = tuple(refspecs)
        # A failure without a known cause may come from the mirror: a fetch into a new mirror decides.
        self._run_with_repair(lambda: self._fetch_once(refspec_list), GitFailedError)

    def _fetch_once(self, refspecs: Sequence[str]) -> None:
        with self._storage.lock() as lock_descriptor:
            fetch_into(self._storage.command, refspecs, lock_descriptor)
            # Listing all refs takes a process; it is not needed if the fetch has not changed any ref.
            if (
                self._refs is None
                or self._ref_timestamps is None
                or self._storage.read_ref_timestamps() != self._ref_timestamps
            ):
                before = self._refs
                self._read_refs()
                self._has_new_objects = self._has_new_objects or before != self._refs

    def _run_with_repair(self, attempt: Callable[[], _T], *damage: type[GitError]) -> _T:
        """Return the result of `attempt`; if it detects damage, rebuild the mirror and try once more.

        `damage` are errors, in addition to MirrorCorruptError, that can be signs of damage. If the error also occurs in
        the rebuilt mirror, it does not come from the mirror, and this object does not rebuild it again.
        """
        damage_types: tuple[type[GitError], ...] = (MirrorCorruptError, *damage)
        try:
            return attempt()
        except damage_types as error:
            if not self._rebuild_after(error):
                raise
            try:
                return attempt()
            except damage_types:
                self._is_repair_useless = True
                raise

    def _rebuild_after(self, error: GitError) -> bool:
        refspecs = [*self._refspecs, *self._tag_refspecs]
        if self._options.offline or self._is_repair_useless or not refspecs:
            return False
        try:
            self._storage.rebuild(refspecs)
        except GitError:
            # The damaged mirror stays, and so does its original error.
            self._is_repair_useless = True
            return False
        # The refs may have moved since the last fetch: a push must not compare with refs that the plan did not use.
        self._refs, self._ref_timestamps, self._root, self._has_new_objects = None, None, None, True
        self._on_rebuild(self.url, error.message)
        return True

    def _check_online(self, reason: str) -> None:
        if self._options.offline:
            raise OfflineError(f"{self.url} cannot be contacted in offline mode: {reason}")

    def refs(self) -> Mapping[str, CommitId]:
        """Return the remote's refs by full name as of the last fetch or push; an annotated tag has its own id."""
        if self._refs is None:
            self._read_refs()
        assert self._refs is not None
        return MappingProxyType(self._refs)

    @property
    def has_refs(self) -> bool:
        """Whether an earlier fetch has stored refs; starts no process."""
        return any((self.folder / name).exists() for name in ("packed-refs", "refs/remotes", "reftable"))

    def list_remote_branches(self) -> Mapping[str, CommitId]:
        """Return the remote's branches by full name as they are now; does not change `refs`."""
        self._check_online("the current branches of the remote are required")
        lines = self._run("ls-remote", "--quiet", "--heads", "origin").lines
        return {ref: CommitId(commit) for commit, _, ref in (line.partition("\t") for line in lines)}

    def peel_ref(self, ref: str) -> CommitId | None:
        """Return the commit of a remote ref, resolving annotated tags; None if there is none."""
        self.refs()
        return self._peeled.get(ref)

    def _read_refs(self) -> None:
        self._ref_timestamps = self._storage.read_ref_timestamps()
        ref_format = "--format=%(refname) %(objectname) %(objecttype) %(*objectname) %(*objecttype)"
        rows = [line.split(" ") for line in self._run_query("for-each-ref", ref_format, TRACKING_PREFIX).lines]
        refs = {"refs/" + row[0].removeprefix(TRACKING_PREFIX): row[1:] for row in rows}
        self._refs = {ref: CommitId(object_id) for ref, (object_id, *_) in refs.items()}
        self._peeled = {ref: CommitId(object_id) for ref, (object_id, kind, *_) in refs.items() if kind == "commit"}
        self._peeled |= {ref: CommitId(inner) for ref, (_, _, inner, kind) in refs.items() if kind == "commit"}
        self._peel({ref: object_id for ref, (object_id, _, _, kind) in refs.items() if kind == "tag"})

    def _peel(self, tags: Mapping[str, str]) -> None:
        if not tags:
            return
        request = "".join(f"{tag}^{{commit}}\n" for tag in tags.values())
        lines = self._run_query("cat-file", "--batch-check=%(objectname) %(objecttype)", stdin=request.encode()).lines
        results = zip(tags, (line.split(" ") for line in lines), strict=True)
        self._peeled |= {ref: CommitId(columns[0]) for ref, columns in results if columns[1:] == ["commit"]}

    def open_reader(self) -> ObjectReader:
        """Return a reader of this mirror's objects; close it, or use it as a context manager."""
        options = self._options
        return ObjectReader(
            self._storage.command,
            options.timeout_seconds,
            options.max_object_bytes,
            self._run_with_repair,
            self._is_head,
        )

    def _is_head(self, commit: str) -> bool:
        """Return whether a ref of the remote points to this commit, so that the mirror must contain it."""
        return commit in self.refs().values()

    def find_default_branch(self) -> str:
        """Return the short name of the remote's default branch.

        Raises:
            GitError: The remote cannot be read, or has no default branch.
        """
        self._check_online("the name of its default branch is required")
        for line in self._run("ls-remote", "--symref", "origin", "HEAD").lines:
            target, _, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: refs/heads/"):
                return target.removeprefix("ref: refs/heads/")
        raise ObjectMissingError(f"{self.url} has no default branch: name a ref")

    def resolve_remote_ref(self, ref: str) -> ObjectId | None:
        """Return the current object id of any ref at the remote, or None; does not change `refs`."""
        self._check_online(f"{ref} is not in the cache")
        rows = (line.partition("\t") for line in self._run("ls-remote", "--quiet", "origin", check_ref(ref)).lines)
        return next((ObjectId(object_id) for object_id, _, name in rows if name == ref), None)

    def find_commit(self, text: str) -> CommitId | None:
        """Return the commit of an id or its prefix, optionally followed by `~N` and `^N`, or None.

        Raises:
            ValueError: `text` has another form. In particular, the mirror's own refs are not names of the remote.
        """
        if not _COMMIT.match(text):
            raise ValueError(f"{text!r} is not a commit id with an optional ancestry suffix")
        lines = self._run(
            "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}", accepted_exit_codes=(0, 1, 128)
        ).lines
        return CommitId(lines[0]) if lines else None

    def ensure_commit(self, commit: CommitId) -> CommitId:
        """Return the commit, after fetching it from the remote if the mirror does not contain it.

        Raises:
            GitError: The remote does not have the commit, or cannot be reached.
        """
        exists = (
            self._run(
                "cat-file", "-e", f"{check_object_id(commit)}^{{commit}}", accepted_exit_codes=(0, 1, 128)
            ).exit_code
            == 0
        )
        if not exists:
            self._check_online(f"commit {commit} is not in the cache")
            with self._storage.lock() as lock_descriptor:
                self._run("fetch", "--quiet", "--no-tags", "--no-write-fetch-head", "--no-auto-maintenance",
                          "--no-recurse-submodules", "--refmap=", "origin", commit,
                          lock_descriptor=lock_descriptor)  # fmt: skip
        return commit

    def is_ancestor(self, ancestor: CommitId, commit: CommitId) -> bool:
        """Return whether `ancestor` is `commit` or in its history.

        Raises:
            GitError: The mirror does not contain one of the commits.
        """
        ids = (check_object_id(ancestor), check_object_id(commit))
        return self._run_query("merge-base", "--is-ancestor", *ids, accepted_exit_codes=(0, 1)).exit_code == 0

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the last commit in both histories (git chooses among several); None if there is none."""
        lines = self._run_query(
            "merge-base", check_object_id(first), check_object_id(second), accepted_exit_codes=(0, 1)
        ).lines
        return CommitId(lines[0]) if lines else None

    def list_root_commits(self, commit: CommitId) -> list[CommitId]:
        """Return the commits without parents in the history of a commit, that of the first parents first."""
        roots = self._run("rev-list", "--max-parents=0", check_object_id(commit), "--").lines
        if len(roots) > 1:
            first = self._run("rev-list", "--max-parents=0", "--first-parent", commit, "--").lines
            roots = [*first, *sorted(set(roots) - set(first))]
        return [CommitId(root) for root in roots]

    def list_first_parent_commits(self, old: CommitId, new: CommitId) -> list[CommitId] | None:
        """Return the commits of `new` that `old` does not contain, along first parents, oldest first.

        The result is None if `old` is not an ancestor of `new`, or is not in the mirror.
        """
        exists = (
            self._run("cat-file", "-e", f"{check_object_id(old)}^{{commit}}", accepted_exit_codes=(0, 1, 128)).exit_code
            == 0
        )
        if not exists or not self.is_ancestor(old, new):
            return None
        lines = self._run_query("rev-list", "--first-parent", "--reverse", new, f"^{old}", "--").lines
        return [CommitId(line) for line in lines]

    def find_last_change(self, commit: CommitId, path: str) -> CommitId | None:
        """Return the last commit along first parents up to `commit` that changed a file or directory."""
        lines = self._run_query(
            "rev-list", "-1", "--first-parent", check_object_id(commit), "--", f":(literal){path}"
        ).lines
        return CommitId(lines[0]) if lines else None

    def list_commits_changing(self, commit: CommitId, path: str, since: CommitId | None = None) -> list[CommitId]:
        """Return the commits along first parents up to `commit` that changed a file or directory, newest first.

        Commits in the history of `since` are excluded.
        """
        excluded = [f"^{check_object_id(since)}"] if since else []
        arguments = ("--first-parent", check_object_id(commit), *excluded, "--", f":(literal){path}")
        return [CommitId(line) for line in self._run_query("rev-list", *arguments).lines]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return at most `limit` commits along first parents up to `commit` that changed any path, newest first."""
        arguments = (
            "--first-parent",
            f"--max-count={limit}",
            check_object_id(commit),
            "--",
            *(f":(literal){path}" for path in paths),
        )
        return [CommitId(line) for line in self._run_query("rev-list", *arguments).lines]

    def list_merged_commits_changing(self, merge: CommitId, path: str) -> list[CommitId]:
        """Return the commits of the merged branch that changed a file or directory, newest first, without the merge."""
        arguments = (check_object_id(merge), f"^{merge}^1", "--", f":(literal){path}")
        lines = self._run_query("rev-list", "--full-history", *arguments).lines
        return [CommitId(line) for line in lines if line != merge]

    def write_commits(self, commits: Sequence[NewCommit]) -> list[CommitId]:
        """Write commits in one stream and return their ids in order. Equal input gives equal ids. No ref is changed."""
        return self._import(commits, self._options.author)

    def write_root_commit(self) -> CommitId:
        """Write the constant first commit of every created branch, and return its id."""
        if self._root is None:
            self._root = self._import([_ROOT], _ROOT_AUTHOR)[0]
        return self._root

    def write_tags(self, tags: Sequence[NewTag]) -> list[ObjectId]:
        """Write annotated tag objects and return their ids in order; `push` creates their refs."""
        if not tags:
            return []
        with self._storage.lock() as lock_descriptor, tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(index) for index in range(len(tags))]
            for file, tag in zip(files, tags, strict=True):
                check_ref(_TAGS + tag.name)
                with translate_write_errors(file.parent):
                    file.write_bytes(compose_tag(tag, self._options.author))
            file_names = "".join(f"{file}\n" for file in files).encode()
            result = self._run(
                "hash-object",
                "-t",
                "tag",
                "-w",
                "--no-filters",
                "--stdin-paths",
                stdin=file_names,
                lock_descriptor=lock_descriptor,
            )
        return [ObjectId(line) for line in result.lines]

    def _import(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> list[CommitId]:
        if not commits:
            return []
        self._has_new_objects = True
        return self._run_with_repair(lambda: self._import_once(commits, author))

    def _import_once(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> list[CommitId]:
        with self._storage.lock() as lock_descriptor, self._import_stream(commits, author) as stream:
            result = self._run(
                "fast-import", "--quiet", "--done", "--date-format=raw", stdin=stream, lock_descriptor=lock_descriptor
            )
        return [CommitId(line) for line in result.lines]

    def _import_stream(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> BinaryIO:
        """Return a file with the input of fast-import.

        Raises:
            CacheUnusableError: The file cannot be written.
        """
        # On a full disk, closing the file fails as well; this must happen inside of `translate_write_errors`.
        with translate_write_errors(self.folder), ExitStack() as open_files:
            stream: BinaryIO = open_files.enter_context(tempfile.TemporaryFile(dir=self.folder))
            stream.writelines(compose_stream(commits, author))
            stream.seek(0)
            open_files.pop_all()
        return stream

    def push(self, units: Sequence[PushUnit], reserved_pushes: int = 0) -> PushReport:
        """Update refs of the remote, each unit completely or not at all, and only from their expected values.

        Expected values are also compared with the last fetch: a ref that has moved since gives PushStale. Failures of
        the remote are in the report and raise nothing. Afterwards, `refs` contains the pushed values. A unit with push
        options is pushed separately; if the host does not support options, it is pushed without them. Pushes that the
        rate limit delays are PushPostponed.

        Args:
            reserved_pushes: The number of pushes per minute that are kept for later calls.

        Raises:
            ValueError: A name or id is invalid, or a ref occurs twice.
        """
        report = self._publisher.push(units, self.refs(), reserved_pushes)
        return self._record_pushed(units, report)

    def push_for_review(self, commit: CommitId, ref: str, options: Sequence[str]) -> PushOutcome:
        """Request a review of a commit by a push to `refs/for/<branch>` (AGit), and return the outcome.

        The host creates a pull request and no ref of this name, so that `refs` does not change and PushStale is
        impossible. Use it only for hosts that support AGit; other hosts may create such a ref.

        Raises:
            ValueError: `ref` is not below `refs/for/`.
        """
        return self._publisher.push_for_review(commit, ref, options)

    @property
    def can_use_push_options(self) -> bool:
        """Whether the host supports push options; True until the host has refused one."""
        return self._publisher.can_use_push_options

    def push_tags(self, tags: Mapping[str, ObjectId]) -> PushReport:
        """Create tags, each in its own unit and only if it does not exist yet; the report is by tag name.

        A refused tag does not affect other tags. Failures of the remote raise nothing.
        """
        units = [PushUnit(name, (RefUpdate(_TAGS + name, new, None),)) for name, new in tags.items()]
        return self._record_pushed(units, self._tag_publisher.push(units, self.refs()))

    def _record_pushed(self, units: Iterable[PushUnit], report: PushReport) -> PushReport:
        self._apply_updates([u for unit in units if isinstance(report[unit.name], PushDone) for u in unit.updates])
        return report

    def _apply_updates(self, updates: Iterable[RefUpdate]) -> None:
        assert self._refs is not None
        moved: dict[str, CommitId] = {}
        # Copies: mappings that `refs` has returned, and copies of this mirror, must not change.
        self._refs, self._peeled = dict(self._refs), dict(self._peeled)
        for update in updates:
            for refs in (self._refs, self._peeled):
                refs.pop(update.ref, None)
            if update.new is not None:
                moved[update.ref] = CommitId(update.new)
        self._refs |= moved
        self._peeled |= {ref: new for ref, new in moved.items() if not ref.startswith(_TAGS)}
        self._peel({ref: new for ref, new in moved.items() if ref.startswith(_TAGS)})

    @property
    def has_new_objects(self) -> bool:
        """Whether this object has fetched or written objects since the last maintenance."""
        return self._has_new_objects

    def interrupt(self) -> None:
        """End the Git processes of other threads in this mirror; they raise InterruptedGitError."""
        self._storage.interrupt()

    def maintain(self) -> bool:
        """Pack loose objects, merge packs and prune objects that were unreachable for a day, if there are many.

        Objects that are written and not yet pushed are younger than one day.

        Returns:
            Whether there was a need.

        Raises:
            GitError: Git failed.
        """
        # The root commit may be older than a day and not on a branch yet, so that pruning may remove it.
        self._root = None
        self._has_new_objects = False
        return self._storage.maintain()

    def discard(self) -> None:
        """Remove this mirror from the cache, for example after MirrorCorruptError; `Mirror.open` creates a new one.

        Written commits that were not pushed are lost; the next pass writes the same commits again.
        """
        self._root = None
        self._storage.discard()

    def _run_query(self, *arguments: str, stdin: bytes = b"", accepted_exit_codes: tuple[int, ...] = (0,)) -> GitResult:
        """Run a command that reads the mirror; if the mirror is damaged, rebuild it."""

        def run() -> GitResult:
            return self._run(*arguments, stdin=stdin, accepted_exit_codes=accepted_exit_codes)

        return self._run_with_repair(run, GitFailedError)

    def _run(
        self,
        *arguments: str,
        stdin: bytes | BinaryIO = b"",
        lock_descriptor: int | None = None,
        accepted_exit_codes: tuple[int, ...] = (0,),
    ) -> GitResult:
        return self._storage.command.run(
            *arguments, stdin=stdin, lock_descriptor=lock_descriptor, accepted_exit_codes=accepted_exit_codes
        )


def _build_refspecs(kind: FetchKind, state_ref_prefix: str, branches: Sequence[str] | None) -> list[str]:
    # The patterns end with a star, because an exact name that the remote does not have fails the whole fetch.
    patterns = ["refs/heads/*"] if branches is None else [check_ref(f"refs/heads/{name}") + "*" for name in branches]
    if kind in ("upstream", "both"):
        patterns.append(f"{_TAGS}*")
    if kind in ("target", "both") and not (branches is None and state_ref_prefix.startswith("refs/heads/")):
        patterns.append(check_ref(state_ref_prefix.rstrip("/")) + "/*")
    return [f"+{pattern}:{TRACKING_PREFIX}{pattern.removeprefix('refs/')}" for pattern in patterns]
