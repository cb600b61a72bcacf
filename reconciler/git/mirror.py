"""Mirrors: bare copies of remotes in the cache folder, for reading, writing, fetching and pushing.

A mirror has this state between two calls:

- Its HEAD is not used. There is no index and no work tree.
- `refs/remotes/origin/<path below refs/>` contains the refs of the remote at the last fetch or push.
- `refs/out/` contains the refs that a running push sends. Between pushes, it contains no refs.
- Written objects are not reachable from any ref until they are pushed. Maintenance deletes such objects after one day.

A process holds the mirror's lock while it fetches, writes or pushes.
"""

from __future__ import annotations

import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, BinaryIO, Literal, TypeVar

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS, CommitId, ObjectId
from reconciler.git import remote_check, signed_commits
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
from reconciler.git.request_metrics import get_remote_label, record_push
from reconciler.git.url import GitUrl, check_url_allowed, parse_url
from reconciler.lazy_dataclasses import dataclass

if TYPE_CHECKING:
    from reconciler.git.remote_check import RemoteCheck
    from reconciler.git.signed_commits import OnSigningFailure
    from reconciler.git.signing import Signer

FetchKind = Literal["config", "upstream", "target", "both"]
STATE_REF_PREFIX = "refs/reconciler/state/"
_TAGS = "refs/tags/"
_ALL_TAGS = f"+{_TAGS}*:{TRACKING_PREFIX}{_TAGS.removeprefix('refs/')}*"
_COMMIT = re.compile(r"[0-9a-f]{4,40}(?:[~^][0-9]*)*\Z")
# Use constant values, so that all target branches of all replicas start with the same commit object.
_ROOT = NewCommit((), (), "Start of a cluster's configuration", FALLBACK_COMMIT_SECONDS, has_empty_base=True)
_ROOT_AUTHOR = ("reconciler", "reconciler@localhost")
_T = TypeVar("_T")
OnRebuild = Callable[[str, str], None]
"""Callback with the remote's address and the reason why a damaged mirror was rebuilt."""


def _ignore(url: str, reason: str) -> None:
    """Do nothing. This is the default callback for the rebuild of a mirror and for a failed signature."""


@dataclass(frozen=True)
class MirrorSigning:
    """The signer of a mirror's new commits and tags, and the callback for failed signatures."""

    signer: Signer
    on_failure: OnSigningFailure = _ignore


class Mirror:
    """The bare mirror of one remote. Several processes can use one mirror. Each thread needs its own Mirror object."""

    def __init__(
        self,
        cache_folder: Path,
        url: GitUrl,
        options: GitOptions,
        rate_limiter: PushRateLimiter,
        on_rebuild: OnRebuild = _ignore,
        signing: MirrorSigning | None = None,
    ) -> None:
        """Create the object without preparing the folder. Callers use `Mirror.open` instead."""
        self._on_rebuild = on_rebuild
        self._is_repair_useless = False
        self._tag_refspecs: dict[str, None] = {}
        self._storage = MirrorFolder(cache_folder, url, options)
        self._url = url
        self._options = options
        command = self._storage.command
        self._object_signer = signing and signed_commits.ObjectSigner(
            command, url.text, self.open_reader, signing.signer, signing.on_failure
        )
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
        on_rebuild: OnRebuild = _ignore,
        signing: MirrorSigning | None = None,
    ) -> Mirror:
        """Return the mirror of `url` in `cache_folder`. Create the mirror if it does not exist. Fetch nothing.

        If the mirror is damaged, it is rebuilt, and `on_rebuild` is called. Damage can be detected now or by a later
        call.

        Args:
            get_rate_limiter: Returns the push limiter for an address and a maximum of pushes per minute. All mirrors of
                one remote must get the same limiter.
            signing: The signer of new commits and tags. None if they are not signed.

        Raises:
            UrlRefusedError: The address is malformed or not allowed.
            MirrorBusyError: Another process holds the lock of the mirror.
            CacheUnusableError: The cache folder cannot be written.
        """
        address = url if isinstance(url, GitUrl) else parse_url(url)
        options = apply_remote_limits(options or GitOptions(), address)
        check_url_allowed(address, options.allowed_urls)
        pace = get_rate_limiter(address.text, options.max_pushes_per_minute)
        mirror = cls(Path(cache_folder), address, options, pace, on_rebuild, signing)
        if reason := mirror._storage.prepare():
            on_rebuild(mirror.url, reason)
        return mirror

    @property
    def folder(self) -> Path:
        """The path of the mirror in the cache."""
        return self._storage.path

    @property
    def url(self) -> str:
        """The address of the remote, without credentials."""
        return self._url.text

    @property
    def metric_label(self) -> str:
        """The label of the remote in metrics."""
        return get_remote_label(self._url)

    @property
    def options(self) -> GitOptions:
        """The Git options, with the limits for this remote."""
        return self._options

    @property
    def is_read_only(self) -> bool:
        """Whether the settings contain credentials for reading the remote, but none for pushes to it."""
        return self._options.credentials.is_read_only(self._url)

    def __repr__(self) -> str:
        return f"Mirror({self.url})"

    def fetch(
        self, kind: FetchKind, state_ref_prefix: str = STATE_REF_PREFIX, branches: Sequence[str] | None = None
    ) -> None:
        """Fetch refs of the remote with their whole history.

        The fetch also moves rewritten refs and removes deleted refs, so that `refs` then agrees with the remote. Each
        call also fetches the refs that earlier calls selected, because one repository can be an upstream and a target.

        Args:
            kind: Selects the refs. "config": branches. "upstream": branches and tags. "target": branches and state
                refs. "both": branches, tags and state refs.
            branches: Fetch only branches whose names start with one of these prefixes. None means all branches.

        Raises:
            GitError: The fetch failed.
        """
        self._refspecs |= dict.fromkeys(_build_refspecs(kind, state_ref_prefix, branches))
        self._fetch(self._refspecs)

    def fetch_tags(self, name_prefixes: Iterable[str]) -> None:
        """Fetch the tags whose names start with one of these prefixes, with one fetch. Remove deleted tags from `refs`.

        Do nothing if `fetch` already fetches all tags of this remote.

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
                self._check_online("the repository is not in the cache")
            return
        refspec_list = tuple(refspecs)
        # Treat a failure of unknown cause as possible damage of the mirror. A fetch into a new mirror then shows the
        # cause.
        self._run_with_repair(lambda: self._fetch_once(refspec_list), GitFailedError)

    def _fetch_once(self, refspecs: Sequence[str]) -> None:
        with self._storage.lock() as lock_descriptor:
            fetch_into(self._storage.command, refspecs, lock_descriptor)
            # List the refs only if the fetch may have changed a ref, because the list requires one more Git process.
            if (
                self._refs is None
                or self._ref_timestamps is None
                or self._storage.read_ref_timestamps() != self._ref_timestamps
            ):
                before = self._refs
                self._read_refs()
                self._has_new_objects = self._has_new_objects or before != self._refs

    def _run_with_repair(self, attempt: Callable[[], _T], *damage: type[GitError]) -> _T:
        """Return the result of `attempt`. If an error shows damage, rebuild the mirror and call `attempt` once more.

        MirrorCorruptError and the errors in `damage` can show damage. If the same error occurs after the rebuild,
        damage is not its cause. This object then does not rebuild the mirror again.
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
            # Keep the damaged mirror, because the new mirror could not be fetched. The caller raises the error that
            # showed the damage.
            self._is_repair_useless = True
            return False
        # Clear the cached refs, because the new mirror can contain newer values. The check before a push then detects
        # that a ref has moved since the plan was computed.
        self._refs, self._ref_timestamps, self._root, self._has_new_objects = None, None, None, True
        self._on_rebuild(self.url, error.message)
        return True

    def _check_online(self, reason: str) -> None:
        if self._options.offline:
            raise OfflineError(f"{self.url} cannot be contacted in offline mode: {reason}")

    def refs(self) -> Mapping[str, CommitId]:
        """Return all refs of the remote by full name, as of the last fetch or push.

        The value of an annotated tag is the ID of the tag object. `peel_ref` returns the commit.
        """
        if self._refs is None:
            self._read_refs()
        assert self._refs is not None
        return MappingProxyType(self._refs)

    @property
    def has_refs(self) -> bool:
        """Whether the mirror contains refs of an earlier fetch. This check starts no Git process."""
        return any((self.folder / name).exists() for name in ("packed-refs", "refs/remotes", "reftable"))

    def list_remote_branches(self) -> Mapping[str, CommitId]:
        """Read the current branches of the remote, and return them by full name. This does not change `refs`."""
        self._check_online("the current branches of the remote are required")
        lines = self._run("ls-remote", "--quiet", "--heads", "origin").lines
        return {ref: CommitId(commit) for commit, _, ref in (line.partition("\t") for line in lines)}

    def peel_ref(self, ref: str) -> CommitId | None:
        """Return the commit that a branch or tag of the remote points to. Return None if there is no commit."""
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
        """Return a reader of this mirror's objects. The caller must close the reader."""
        options = self._options
        return ObjectReader(
            self._storage.command,
            options.timeout_seconds,
            options.max_object_bytes,
            self._run_with_repair,
            self._is_head,
        )

    def _is_head(self, commit: str) -> bool:
        """Return whether a ref of the remote points to this commit. If so, an intact mirror must contain the commit."""
        return commit in self.refs().values()

    def find_default_branch(self) -> str:
        """Return the short name of the default branch of the remote, for example `main`.

        Raises:
            GitError: The remote cannot be read, or has no default branch.
        """
        self._check_online("the name of the default branch is required")
        for line in self._run("ls-remote", "--symref", "origin", "HEAD").lines:
            target, _, name = line.partition("\t")
            if name == "HEAD" and target.startswith("ref: refs/heads/"):
                return target.removeprefix("ref: refs/heads/")
        raise ObjectMissingError(f"{self.url} has no default branch: give the name of a branch, tag or commit")

    def resolve_remote_ref(self, ref: str) -> ObjectId | None:
        """Read the current object ID of one ref from the remote. Return None if the remote has no such ref.

        This does not change `refs`.
        """
        self._check_online(f"{ref} is not in the cache")
        rows = (line.partition("\t") for line in self._run("ls-remote", "--quiet", "origin", check_ref(ref)).lines)
        return next((ObjectId(object_id) for object_id, _, name in rows if name == ref), None)

    def find_commit(self, text: str) -> CommitId | None:
        """Return the commit for a commit ID or its first characters, with optional suffixes `~N` and `^N`.

        Return None if the mirror does not contain the commit.

        Raises:
            ValueError: `text` has a different form, such as a ref name. Ref names are not allowed, because refs have
                different names in the mirror and on the remote.
        """
        if not _COMMIT.match(text):
            raise ValueError(f"{text!r} must be a commit ID, which can have a suffix such as ~1 or ^2")
        lines = self._run(
            "rev-parse", "--verify", "--quiet", f"{text}^{{commit}}", accepted_exit_codes=(0, 1, 128)
        ).lines
        return CommitId(lines[0]) if lines else None

    def ensure_commit(self, commit: CommitId) -> CommitId:
        """Return `commit`. If the mirror does not contain the commit, fetch it from the remote first.

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
        """Return whether `ancestor` is equal to `commit` or is in the history of `commit`.

        Raises:
            GitError: The mirror does not contain one of the commits.
        """
        ids = (check_object_id(ancestor), check_object_id(commit))
        return self._run_query("merge-base", "--is-ancestor", *ids, accepted_exit_codes=(0, 1)).exit_code == 0

    def merge_base(self, first: CommitId, second: CommitId) -> CommitId | None:
        """Return the best common ancestor of two commits, as `git merge-base` does. Return None if there is no such
        ancestor.
        """
        lines = self._run_query(
            "merge-base", check_object_id(first), check_object_id(second), accepted_exit_codes=(0, 1)
        ).lines
        return CommitId(lines[0]) if lines else None

    def verify_signature(
        self, command: Literal["verify-commit", "verify-tag"], object_id: str, settings: Iterable[tuple[str, str]]
    ) -> str | None:
        """Return the output of git about an invalid or missing signature. Return None if the signature is valid.

        Args:
            settings: The Git settings that determine the allowed signers.

        Raises:
            GitError: Git cannot read the object.
        """
        options = [text for key, value in settings for text in ("-c", f"{key}={value}")]
        # Do not rebuild the mirror after an error: the object can be missing without damage, because callers also check
        # objects of earlier passes.
        result = self._run(*options, command, "--raw", check_object_id(object_id), accepted_exit_codes=(0, 1))
        return None if result.exit_code == 0 else result.stderr

    def list_root_commits(self, commit: CommitId) -> list[CommitId]:
        """Return the commits without parents in the history of a commit.

        The first element is the commit that is reached through first parents only.
        """
        roots = self._run("rev-list", "--max-parents=0", check_object_id(commit), "--").lines
        if len(roots) > 1:
            first = self._run("rev-list", "--max-parents=0", "--first-parent", commit, "--").lines
            roots = [*first, *sorted(set(roots) - set(first))]
        return [CommitId(root) for root in roots]

    def list_first_parent_commits(self, old: CommitId, new: CommitId) -> list[CommitId] | None:
        """Return the commits of `new` that are not in the history of `old`, oldest first. Follow only first parents.

        Return None if `old` is not an ancestor of `new`, or is not in the mirror.
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
        """Return the last commit that changed a path: `commit` or one of its ancestors. Follow only first parents.

        Return None if no such commit changed the path.
        """
        lines = self._run_query(
            "rev-list", "-1", "--first-parent", check_object_id(commit), "--", f":(literal){path}"
        ).lines
        return CommitId(lines[0]) if lines else None

    def list_commits_changing(self, commit: CommitId, path: str, since: CommitId | None = None) -> list[CommitId]:
        """Return the commits up to `commit` that changed a file or directory, newest first. Follow only first parents.

        If `since` is given, omit this commit and its history.
        """
        excluded = [f"^{check_object_id(since)}"] if since else []
        arguments = ("--first-parent", check_object_id(commit), *excluded, "--", f":(literal){path}")
        return [CommitId(line) for line in self._run_query("rev-list", *arguments).lines]

    def list_commits_changing_any(self, commit: CommitId, paths: Iterable[str], limit: int) -> list[CommitId]:
        """Return the last `limit` commits that changed any of `paths`, newest first. Follow only first parents."""
        arguments = (
            "--first-parent",
            f"--max-count={limit}",
            check_object_id(commit),
            "--",
            *(f":(literal){path}" for path in paths),
        )
        return [CommitId(line) for line in self._run_query("rev-list", *arguments).lines]

    def list_merged_commits_changing(self, merge: CommitId, path: str) -> list[CommitId]:
        """Return the commits that changed a path and that `merge` added to its first parent, newest first.

        The result does not contain the merge commit.
        """
        arguments = (check_object_id(merge), f"^{merge}^1", "--", f":(literal){path}")
        lines = self._run_query("rev-list", "--full-history", *arguments).lines
        return [CommitId(line) for line in lines if line != merge]

    def write_commits(self, commits: Sequence[NewCommit]) -> list[CommitId]:
        """Write commits with one fast-import process, and return their IDs in the same order. Change no ref.

        Equal commits always get equal IDs, unless the mirror signs commits with a key that gives a different signature
        each time.
        """
        return self._import(commits, self._options.author)

    def write_root_commit(self) -> CommitId:
        """Write the root commit with which each new target branch starts, and return its ID.

        The content of the commit is always the same. Its signature, and therefore its ID, depends on the signing key.
        """
        if self._root is None:
            self._root = self._import([_ROOT], _ROOT_AUTHOR)[0]
        return self._root

    def write_tags(self, tags: Sequence[NewTag]) -> list[ObjectId]:
        """Write annotated tag objects, and return their IDs in the same order. `push_tags` then creates the refs."""
        if not tags:
            return []
        with self._storage.lock() as lock_descriptor, tempfile.TemporaryDirectory() as folder:
            files = [Path(folder) / str(index) for index in range(len(tags))]
            for file, tag in zip(files, tags, strict=True):
                check_ref(_TAGS + tag.name)
                with translate_write_errors(file.parent):
                    file.write_bytes(self._compose_tag(tag))
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

    def _compose_tag(self, tag: NewTag) -> bytes:
        content = compose_tag(tag, self._options.author)
        signer = self._object_signer
        return signer.sign_tag(content) if signer and signer.signs("tags") else content

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
            ids = [CommitId(line) for line in result.lines]
            signer = self._object_signer
            return signer.sign_commits(commits, ids, lock_descriptor) if signer and signer.signs("commits") else ids

    def _import_stream(self, commits: Sequence[NewCommit], author: tuple[str, str]) -> BinaryIO:
        """Write the input of fast-import to a temporary file, and return the file.

        Raises:
            CacheUnusableError: The file cannot be written.
        """
        # Close the file inside of `translate_write_errors`, because closing the file fails too if the disk is full.
        with translate_write_errors(self.folder), ExitStack() as open_files:
            stream: BinaryIO = open_files.enter_context(tempfile.TemporaryFile(dir=self.folder))
            stream.writelines(compose_stream(commits, author))
            stream.seek(0)
            open_files.pop_all()
        return stream

    def push(self, units: Sequence[PushUnit], reserved_pushes: int = 0) -> PushReport:
        """Push `units` to the remote, and return the outcome of each unit. `refs` then contains the pushed values.

        Either all refs of a unit move or none. A ref moves only if it has its expected value, both at the last fetch
        and at the remote. Otherwise the outcome is PushStale. Failures of the remote are outcomes as well, and are not
        raised. If the rate limit does not allow a push now, the outcome is PushPostponed.

        A unit with push options is pushed separately. If the host does not support push options, the unit is pushed
        without options.

        Args:
            reserved_pushes: The number of pushes per minute that this call must leave to later calls.

        Raises:
            ValueError: A name or ID is invalid, or a ref occurs twice.
        """
        report = self._publisher.push(units, self.refs(), reserved_pushes)
        return self._record_pushed(units, report)

    def push_for_review(self, commit: CommitId, ref: str, options: Sequence[str]) -> PushOutcome:
        """Push a commit to `ref`, e.g. `refs/for/main`, to request its review (AGit). Return the outcome.

        The host creates a pull request instead of a ref. Therefore `refs` does not change, and the outcome is never
        PushStale. Use this method only for hosts that support AGit, because other hosts may create the ref.

        Raises:
            ValueError: `ref` is not below `refs/for/`.
        """
        return self._publisher.push_for_review(commit, ref, options)

    @property
    def can_use_push_options(self) -> bool:
        """Whether push options can be used. This is True until a push shows that the host does not support them."""
        return self._publisher.can_use_push_options

    def push_tags(self, tags: Mapping[str, ObjectId]) -> PushReport:
        """Create tags on the remote, and return the outcomes by tag name. A tag is created only if it does not exist.

        If the host refuses a tag, the other tags are still created. Failures of the remote are outcomes and are not
        raised.
        """
        units = [PushUnit(name, (RefUpdate(_TAGS + name, new, None),)) for name, new in tags.items()]
        return self._record_pushed(units, self._tag_publisher.push(units, self.refs()))

    def _record_pushed(self, units: Sequence[PushUnit], report: PushReport) -> PushReport:
        record_push(self._url, units, report)
        self._apply_updates([u for unit in units if isinstance(report[unit.name], PushDone) for u in unit.updates])
        return report

    def _apply_updates(self, updates: Iterable[RefUpdate]) -> None:
        assert self._refs is not None
        moved: dict[str, CommitId] = {}
        # Replace the dictionaries instead of changing them, because callers and copies of this object may still use
        # them.
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
        """Whether this object has fetched or written objects since its last call of `maintain`."""
        return self._has_new_objects

    def check_remote(self, clock: Callable[[], float], *, should_push: bool) -> RemoteCheck:
        """Check whether the remote can be read and, if `should_push` is True, pushed to. Change nothing on the remote.

        `clock` returns seconds since 1970.
        """
        write_commit = self.write_root_commit if should_push else None
        return remote_check.check_remote(self.folder, self._url, self._options, write_commit, clock)

    def interrupt(self) -> None:
        """End the Git processes that other threads run in this mirror. These threads get InterruptedGitError."""
        self._storage.interrupt()

    def maintain(self) -> bool:
        """Pack the mirror if it contains many loose objects, packs or refs, and return whether it was packed.

        Packing can delete unreachable objects that are older than one day. Younger objects are kept, because objects
        that are not pushed yet are unreachable too.

        Raises:
            GitError: Git failed.
        """
        # Clear the ID of the root commit, so that the commit is written again when it is needed. The maintenance may
        # delete the commit, because it is unreachable until a branch contains it.
        self._root = None
        self._has_new_objects = False
        return self._storage.maintain()

    def discard(self) -> None:
        """Delete this mirror from the cache, for example after MirrorCorruptError. `Mirror.open` creates a new mirror.

        This also deletes commits that were not pushed. The next pass writes these commits again.
        """
        self._root = None
        self._storage.discard()

    def _run_query(self, *arguments: str, stdin: bytes = b"", accepted_exit_codes: tuple[int, ...] = (0,)) -> GitResult:
        """Run a Git command that reads the mirror. If the mirror is damaged, rebuild it and run the command again."""

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
    # End each pattern with a star, because without the star, the whole fetch fails if the remote does not have the ref.
    patterns = ["refs/heads/*"] if branches is None else [check_ref(f"refs/heads/{name}") + "*" for name in branches]
    if kind in ("upstream", "both"):
        patterns.append(f"{_TAGS}*")
    if kind in ("target", "both") and not (branches is None and state_ref_prefix.startswith("refs/heads/")):
        patterns.append(check_ref(state_ref_prefix.rstrip("/")) + "/*")
    return [f"+{pattern}:{TRACKING_PREFIX}{pattern.removeprefix('refs/')}" for pattern in patterns]
