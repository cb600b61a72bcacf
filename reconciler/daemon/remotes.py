"""The remotes of one pass: a mirror each, fetched once, read by id; the ports of planning over real Git."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import ExitStack
from copy import copy
from functools import lru_cache
from typing import Self, TypeVar

from reconciler.daemon.backoff import Backoff
from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.lanes import Ended, Flow, Lane
from reconciler.daemon.tree_moves import Move, collide, moves, offered
from reconciler.daemon.upkeep import maintain
from reconciler.gitio.errors import (
    GitError,
    InternalGitError,
    MirrorCorruptError,
    ObjectMissingError,
    TooLargeError,
    TreeMalformedError,
    UnderWayError,
)
from reconciler.gitio.mirror import Kind, Mirror
from reconciler.gitio.names import is_ref
from reconciler.gitio.reader import Commit, ObjectReader, TreeEntry
from reconciler.gitio.verdicts import Outcome
from reconciler.krm.codes import internal_error
from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.trailers import read_trailers
from reconciler.planning.branches import Step
from reconciler.planning.destination import Destination
from reconciler.planning.open_drafts import Offered
from reconciler.planning.state import DestinationState, read_state
from reconciler.planning.tags import TaggedRevision, tag_start
from reconciler.redaction import redact_urls
from reconciler.rules.variants.revision_names import number_of
from reconciler.snapshot.files import File, FileTree, SpecialEntry
from reconciler.snapshot.objects import DIRECTORY, EXECUTABLE, FILE, LINK, SUBMODULE, BlobId, CommitId, ObjectId, TreeId

REMEMBERED_TREES = 2_000
# how far a branch is walked commit by commit before git is asked
_NEAR = 50
_TAGS = "refs/tags/"
_PACKAGE_TRAILER = "Reconciler-Package"
_T = TypeVar("_T")


class Remote:
    """One mirror as the rooms below see it: planning's Repository and History, and the upstream refs of a room."""

    def __init__(self, mirror: Mirror, reader: ObjectReader, *, is_there: bool = True) -> None:
        self.mirror = mirror
        self._is_there = is_there
        self._reader = reader
        self._commits: dict[CommitId, Commit] = {}
        self._states: dict[CommitId, DestinationState] = {}
        self._tag_starts: set[str] = set()
        self._numbered: dict[str, list[int]] = {}
        # equal trees are equal packages: an upstream that fans out to a fleet is read once
        self.files = lru_cache(REMEMBERED_TREES)(self._files)
        self.upstream_tree = lru_cache(REMEMBERED_TREES)(self._upstream_tree)
        self.package_tree = lru_cache(REMEMBERED_TREES)(self._package_tree)
        self.file = lru_cache(REMEMBERED_TREES)(self._file)
        self.skipped = lru_cache(REMEMBERED_TREES)(self._skipped)
        self.changed_seconds = lru_cache(None)(self._changed_seconds)
        self.is_behind = lru_cache(None)(self._is_behind)
        self.last_change = lru_cache(None)(mirror.last_change)
        self._moved: Mapping[str, CommitId | None] = {}
        self._refs_then: Mapping[str, CommitId] = {}

    @property
    def refs(self) -> Mapping[str, CommitId]:
        """The remote's refs as of the last fetch or push, by full name."""
        return self._refs_then if self._moved else self.mirror.refs()

    def peeled(self, ref: str) -> CommitId | None:
        """Return the commit that a ref stands for, annotated tags followed; None if there is none."""
        return self._moved[ref] if ref in self._moved else self.mirror.peeled(ref)

    def as_of(self, moved: Mapping[str, CommitId | None]) -> Remote:
        """Return this remote with some refs at other commits, or gone; what is read of it is remembered for both."""
        then = copy(self)
        then._moved = {**self._moved, **moved}
        known = {**self.mirror.refs(), **then._moved}
        then._refs_then = {ref: commit for ref, commit in known.items() if commit}
        return then

    def commit(self, commit: CommitId) -> Commit:
        """Return a commit; remembered, because commits never change."""
        if commit not in self._commits:
            self._commits[commit] = self._reader.commit(commit)
        return self._commits[commit]

    def tagged_seconds(self, ref: str) -> int:
        """Return when a tag was made: the tagger's date, else the date of the commit that it names."""
        tag, commit = self.refs[ref], self.peeled(ref)
        assert commit, "a tag of something else is no revision, and nobody asks for its date"
        tagger = self._reader.tagger(ObjectId(tag)) if tag != commit else None
        return tagger.seconds if tagger else self.commit(commit).seconds

    def message(self, ref: str) -> str:
        """Return the message of a tag, of a lightweight one that of its commit."""
        tag, commit = self.refs[ref], self.peeled(ref)
        return self.commit(tag).message if tag == commit else self._reader.tag_message(ObjectId(tag))

    def tagged(self, destination: Destination, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        """Return the revisions of a destination's packages that have tags; asks the remote for these only.

        Raises GitError.
        """
        starts = {package: tag_start(destination, package) for package in packages}
        self.bring_tags(starts.values())
        return {package: tuple(self._revisions(start)) for package, start in starts.items()}

    def bring_tags(self, starts: Iterable[str]) -> None:
        """Fetch the tags of revisions that start so, in one go, and once in a pass; raises GitError.

        Of a remote that could not be fetched, nothing more is asked.
        """
        wanted = {start for start in starts if is_ref(f"{_TAGS}{start}1")} - self._tag_starts
        if not wanted or not self._is_there:
            return
        self.mirror.fetch_tags(wanted)
        self._tag_starts |= wanted
        for ref in self.refs:
            start, slash, suffix = ref.removeprefix(_TAGS).rpartition("/")
            number = number_of(suffix)
            if ref.startswith(_TAGS) and f"{start}/v" in wanted and slash and number > 0:
                self._numbered.setdefault(f"{start}/v", []).append(number)

    def _revisions(self, start: str) -> Iterator[TaggedRevision]:
        for number in sorted(self._numbered.get(start, ())):
            ref = f"{_TAGS}{start}{number}"
            if commit := self.peeled(ref):
                yield TaggedRevision(number, commit, ObjectId(self.refs[ref]), self.message(ref))

    def _is_behind(self, commit: CommitId, other: CommitId) -> bool:
        try:
            return self.mirror.is_ancestor(commit, other)
        except GitError:
            # a tag that moves can leave behind a commit that nobody else names
            return False

    def _changed_seconds(self, commit: CommitId, path: str) -> int:
        changed = self.last_change(commit, path)
        return self.commit(changed or commit).seconds

    def read_ahead(self, commits: Iterable[CommitId], folder: str) -> list[TreeId]:
        """Read commits with their root trees and one folder of each in one go; return the folders' ids.

        A question at a time costs a large fleet most of a pass.
        """
        new = [commit for commit in commits if commit not in self._commits]
        self._reader.read_ahead(map(ObjectId, new))
        roots = [self.commit(commit).tree for commit in new]
        self._reader.read_ahead(map(ObjectId, roots))
        found = [entry for root in roots for entry in self._reader.tree(root)]
        folders = [entry.id for entry in found if entry.is_tree and entry.name == folder]
        self._reader.read_ahead(folders)
        return [TreeId(one) for one in folders]

    def read_states_ahead(self, commits: Sequence[CommitId]) -> None:
        """Read all that `state` wants of these state commits in one go."""
        new = [commit for commit in commits if commit not in self._states]
        folders = self.read_ahead(new, "packages")
        trees = [*folders, *(self.commit(commit).tree for commit in new)]
        found = [entry for tree in trees for entry in self._reader.tree(tree)]
        self._reader.read_ahead([entry.id for entry in found if not entry.is_tree])

    def tree_at(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree that stands at a path of a commit."""
        entry = self._reader.entry(self.commit(commit).tree, path)
        return TreeId(entry.id) if entry and entry.is_tree else None

    def tree_if_known(self, commit: CommitId, path: str) -> TreeId | None:
        """Return the tree at a path of a commit that somebody names; None when the remote has no such commit."""
        try:
            return self.tree_at(commit, path)
        except (ObjectMissingError, ValueError):
            return None

    def blob_at(self, commit: CommitId, path: str) -> BlobId | None:
        """Return the regular file that stands at a path of a commit."""
        entry = self._reader.entry(self.commit(commit).tree, path)
        return BlobId(entry.id) if entry and entry.mode in {FILE, EXECUTABLE} else None

    def blob(self, blob: BlobId) -> bytes:
        """Return a file's bytes."""
        return self._reader.blob(blob)

    def blobs(self, blobs: Iterable[BlobId]) -> Mapping[BlobId, bytes]:
        """Return the bytes of files, by id, read in one go."""
        return self._reader.blobs(blobs)

    def _file(self, blob: BlobId) -> File:
        return File(self._reader.blob(blob))

    def offers_more(self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()) -> bool:
        """Return whether a path at `head` differs from what `base` and `branch` have there, `besides` some paths."""
        return self._differs(*(self.commit(one).tree for one in (head, base, branch)), besides=besides)

    def collides(self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]) -> bool:
        """Return whether `head` and `branch` have both changed a path since `base`, differently and in no `outside`."""
        trees = [self.commit(one).tree for one in (head, base, branch)]
        return collide(self._reader, trees[0], trees[1], trees[2], outside)

    def moves(self, since: CommitId, commit: CommitId, head: CommitId) -> Iterator[Move]:
        """Yield the paths that differ between two commits with what stands there in the second, to be put on `head`."""
        return moves(self._reader, *(self.commit(one).tree for one in (since, commit, head)))

    def offered(self, head: CommitId, base: CommitId, branch: CommitId) -> tuple[Offered, ...]:
        """Return each file that `head` has changed since `base` and that `branch` does not have so."""
        return tuple(offered(self._reader, *(self.commit(one).tree for one in (head, base, branch))))

    def _differs(self, head: str | None, *others: str | None, besides: Collection[str], folder: str = "") -> bool:
        inside, *known = (self._entries(tree) for tree in (head, *others))
        names = {*inside, *(name for entries in known for name in entries)}
        return any(
            self._entry_differs(inside.get(name), [entries.get(name) for entries in known], besides, folder + name)
            for name in sorted(names)
        )

    def _entry_differs(
        self, entry: TreeEntry | None, others: Sequence[TreeEntry | None], besides: Collection[str], path: str
    ) -> bool:
        if entry in others or path in besides:
            return False
        head, *folders = (one.id if one and one.is_tree else None for one in (entry, *others))
        # a folder that people changed on both sides may still hold nothing of its own
        looks_inside = (head and any(folders)) or any(one.startswith(f"{path}/") for one in besides)
        return not looks_inside or self._differs(head, *folders, besides=besides, folder=f"{path}/")

    def _entries(self, tree: str | None) -> dict[str, TreeEntry]:
        return {entry.name: entry for entry in self._reader.tree(TreeId(tree))} if tree else {}

    def first_parents(self, old: CommitId, new: CommitId) -> Sequence[CommitId] | None:
        """Return the commits after `old` up to `new` along first parents, oldest first; None if it is no ancestor."""
        if old == new:
            return ()
        return self._steps_to(old, new) or self.mirror.first_parent_log(old, new)

    def _steps_to(self, old: CommitId, new: CommitId) -> list[CommitId]:
        """Return the same where `old` is near on that line, which starts no process; [] where it is not."""
        found: list[CommitId] = []
        at = new
        while at != old:
            parents = self.commit(at).parents
            if not parents or len(found) == _NEAR:
                return []
            found.append(at)
            at = parents[0]
        return found[::-1]

    def fork(self, head: CommitId, branch: CommitId) -> CommitId | None:
        """Return the last commit that `head` and `branch` both hold; None without one."""
        return self.mirror.merge_base(head, branch)

    def state(self, commit: CommitId) -> DestinationState:
        """Return what a state commit says. Raises EngineTooOldError."""
        if commit not in self._states:
            self._states[commit] = read_state(self._state_files(commit))
        return self._states[commit]

    def read_commits_ahead(self, commits: Iterable[CommitId]) -> None:
        """Read commits in one go."""
        self._reader.read_ahead([ObjectId(commit) for commit in commits if commit not in self._commits])

    def know_state(self, commit: CommitId, state: DestinationState) -> None:
        """Take note of what a state commit says, so that it need not be read."""
        self._states[commit] = state

    def _state_files(self, commit: CommitId) -> dict[str, bytes]:
        # the trees that a state keeps alive are read one by one, when somebody wants them
        root = self.commit(commit).tree
        found = {entry.name: BlobId(entry.id) for entry in self._reader.tree(root) if not entry.is_tree}
        for folder in ("packages", "texts"):
            if tree := self._reader.subtree(root, folder):
                found |= {path: blob for path, _, blob in self._reader.walk(TreeId(tree), f"{folder}/")}
        contents = self._reader.blobs(found.values())
        return {path: contents[blob] for path, blob in found.items()}

    def paths(self, tree: TreeId) -> tuple[str, ...]:
        """Return the paths of all that is not a directory below a tree, without reading any of it."""
        return tuple(path for path, _, _ in self._reader.walk(tree))

    def _skipped(self, tree: TreeId) -> tuple[str, ...]:
        """Return the paths of the links and submodules of a tree, which no package of ours gets (design 10.18)."""
        try:
            found = self._reader.walk(tree, most=self.mirror.options.max_folder_files)
            return tuple(sorted(path for path, mode, _ in found if mode not in {FILE, EXECUTABLE}))
        except (TooLargeError, TreeMalformedError):
            # whoever wants its files is told
            return ()

    def _files(self, tree: TreeId) -> FileTree:
        """Return the regular files of a tree; links and submodules are left out (design 10.18)."""
        found = [(path, mode, blob) for path, mode, blob in self._reader.walk(tree) if mode in {FILE, EXECUTABLE}]
        contents = self._reader.blobs(blob for _, _, blob in found)
        return FileTree({path: File(contents[blob], mode == EXECUTABLE) for path, mode, blob in found})

    def _upstream_tree(self, tree: TreeId) -> FileTree:
        """Return the regular files of an upstream package. Raises TooLargeError beyond the limit for one package."""
        # the limit is checked before any content is read
        deque(self._reader.walk(tree, most=self.mirror.options.max_folder_files), maxlen=0)
        return self.files(tree)

    def _package_tree(self, tree: TreeId) -> FileTree:
        """Return everything in a tree of a target branch: its regular files, and local links and submodules."""
        special = {
            path: SpecialEntry(mode, ObjectId(entry))
            for path, mode, entry in self._reader.walk(tree, most=self.mirror.options.max_folder_files)
            if mode in {LINK, SUBMODULE}
        }
        return self.files(tree).with_special(special)

    def obstacle(self, commit: CommitId, path: str, *, is_file: bool = False) -> str | None:
        """Return the path of what occupies the place of a folder, or of a regular file; None if the place is free."""
        found = TreeEntry(DIRECTORY, "", ObjectId(self.commit(commit).tree))
        names = path.split("/")
        for index, name in enumerate(names):
            inside = self._reader.tree(TreeId(found.id))
            step = next((entry for entry in inside if entry.name == name), None)
            if step is None:
                return None
            is_last = index + 1 == len(names)
            if not (step.mode in {FILE, EXECUTABLE} if is_file and is_last else step.is_tree):
                return "/".join(names[: index + 1])
            found = step
        return None


class DestinationObjects:
    """A destination's remote as planning sees it: paths are whole, and our own commits are read as steps.

    `besides` is a file of ours that is no package's, and no work of anybody's.
    """

    def __init__(self, remote: Remote, destination: Destination, besides: str | None = None) -> None:
        self._besides = [besides] if besides else []
        self._destination = destination
        self._tagged = remote.tagged
        self.tree_at, self.blob_at = remote.tree_at, remote.blob_at
        self.files, self.first_parents = remote.files, remote.first_parents
        self.fork, self.obstacle = remote.fork, remote.obstacle
        self.blob, self.offered = remote.blob, remote.offered
        self._remote, self._commit = remote, remote.commit

    def offers_more(self, head: CommitId, base: CommitId, branch: CommitId, besides: Collection[str] = ()) -> bool:
        """Return whether a path at `head` differs from what `base` and `branch` have there, `besides` some packages."""
        where = self._destination
        paths = [path for one in besides for path in (where.path(one), where.status_path(one))]
        return self._remote.offers_more(head, base, branch, [*paths, *self._besides])

    def collides(self, head: CommitId, base: CommitId, branch: CommitId, outside: Collection[str]) -> bool:
        """Return whether `head` and `branch` have both changed a path since `base`, differently and in no `outside`."""
        return self._remote.collides(head, base, branch, [*outside, *self._besides])

    def tagged(self, packages: Collection[str]) -> Mapping[str, Sequence[TaggedRevision]]:
        """Return the revisions of these packages that have tags, by package."""
        return self._tagged(self._destination, packages)

    def steps(self, head: CommitId, base: CommitId) -> Sequence[Step]:
        """Return our commits after `base` up to `head`, oldest first; each names its package in a trailer."""
        return [self._step(commit) for commit in self.first_parents(base, head) or ()]

    def seconds(self, commit: CommitId) -> int:
        """Return the committer date of a commit."""
        return self._commit(commit).seconds

    def is_ours(self, commit: CommitId) -> bool:
        """Return whether a commit says that it is one of ours: such a one has the date of its content."""
        return _PACKAGE_TRAILER in read_trailers(self._commit(commit).message)

    def _step(self, commit: CommitId) -> Step:
        message = self._commit(commit).message
        package = read_trailers(message).get(_PACKAGE_TRAILER, "")
        content = self.tree_at(commit, self._destination.path(package))
        status = self.blob_at(commit, self._destination.status_path(package))
        return Step(package, content, status, message, self._commit(commit).seconds)


def _kinds(upstreams: set[str], destinations: set[str]) -> dict[str, Kind]:
    kinds: dict[str, Kind] = {**dict.fromkeys(upstreams, "upstream"), **dict.fromkeys(destinations, "destination")}
    return kinds | dict.fromkeys(upstreams & destinations, "both")


class Remotes:
    """Every remote that a pass reads, by URL. Use it as a context manager: it ends the reading processes.

    `at_end` lets go of what else a pass has open to its hosts. `fetched_again`: a remote was read anew in this pass, so
    that its refs may hold what nobody has planned for. `flow` says how long a pass waits for a remote. What takes
    longer is under way: its mirror is left to the thread that is at it, and it stands in `failures` until a later pass
    takes what it came to. With `keeps_earlier_refs`, `earlier_refs` has the refs of each mirror as they were
    before the first fetch, unless the mirror is new.
    """

    def __init__(
        self,
        open_mirror: Callable[[str], Mirror],
        state_prefix: str,
        backoff: Backoff,
        at_end: Callable[[], None] = lambda: None,
        flow: Flow | None = None,
        *,
        keeps_earlier_refs: bool = False,
    ) -> None:
        self._open_mirror = open_mirror
        self._at_end = at_end
        self._backoff = backoff
        self._state_prefix = state_prefix
        self._remotes: dict[str, Remote] = {}
        self._mirrors: dict[str, Mirror] = {}
        self._open = ExitStack()
        self._fetched: set[str] = set()
        self.failures: dict[str, GitError] = {}
        self.fetched_again = False
        flow = flow or Flow()
        self._fetches: Lane[GitError | None] = Lane(flow.max_fetches, flow)
        self._pushes: Lane[Mapping[str, Outcome]] = Lane(flow.max_pushes, flow)
        # what each was fetched as, in the order in which that began
        self._kinds: dict[str, Kind] = {}
        # those that were late when they were last fetched: nobody waits for them until they are in time again
        self._slow: set[str] = set()
        # what was known of each before the last fetch or push of it began, by those that ever were fetched whole
        self._known: dict[str, Mirror] = {}
        self._whole: set[str] = set()
        self._gone_without: frozenset[str] = frozenset()
        self._only_collects = False
        self._keeps_earlier_refs = keeps_earlier_refs
        self.earlier_refs: dict[str, Mapping[str, CommitId]] = {}

    def __enter__(self) -> Self:
        self._fetched, self.fetched_again = set(), False
        return self

    def __exit__(self, *error: object) -> None:
        self._open.close()
        self._remotes.clear()
        self._at_end()

    def fetch(self, upstreams: Iterable[str], destinations: Iterable[str]) -> None:
        """Fetch these remotes at once; what fails stands in `failures`, and cannot be read in this pass.

        A remote that rests after failures is not asked; its last failure stands. What an earlier pass could not wait
        for is taken if it has ended, and left alone if it has not.
        """
        kinds = _kinds({*upstreams}, {*destinations})
        self.fetched_again = self.fetched_again or not self._fetched.isdisjoint(kinds)
        self._fetched |= kinds.keys()
        only_collects, self._only_collects = self._only_collects, False
        known = {url for url in kinds if self._kinds.get(url) == kinds[url]} if only_collects else set()
        known |= {url for url in sorted(kinds) if self._take(url, kinds[url])} | self._under_way
        turns = {url: index for index, url in enumerate(self._kinds)}
        due = sorted(kinds.keys() - known, key=lambda url: (turns.get(url, -1), url))
        self._fetch([url for url in due if not self._backoff.rests(url)], kinds)

    @property
    def read(self) -> Set[str]:
        """The remotes that this pass has fetched, or tried to."""
        return self._fetched

    def only_collect(self) -> None:
        """Let the next pass take what earlier ones could not wait for, and ask no remote that it knows already."""
        self._only_collects = True

    def _fetch(self, urls: Iterable[str], kinds: Mapping[str, Kind]) -> None:
        mirrors = {url: mirror for url in urls if (mirror := self._mirror(url))}
        jobs = {url: self._fetching(url, mirror, kinds[url]) for url, mirror in mirrors.items()}
        self._remember(mirrors)
        ended = self._run(self._fetches, jobs, self._slow)
        under_way = self._fetches.under_way
        for url in mirrors:
            if url in ended or url in under_way:
                self._kinds.pop(url, None)
                self._kinds[url] = kinds[url]
            if url in ended:
                self._note_end(url, ended[url])
            else:
                # whatever it failed at before stands until more is known
                self.failures.setdefault(url, _late(mirrors[url], "fetched"))

    def _fetching(self, url: str, mirror: Mirror, kind: Kind) -> Callable[[], GitError | None]:
        def fetch() -> GitError | None:
            try:
                with repository_boundary(f"fetching {mirror.url}"):
                    self._note_earlier_refs(url, mirror)
                    mirror.fetch(kind, self._state_prefix)
            except GitError as error:
                return error
            return None

        return fetch

    def _note_earlier_refs(self, url: str, mirror: Mirror) -> None:
        if self._keeps_earlier_refs and url not in self.earlier_refs and mirror.has_refs:
            self.earlier_refs[url] = dict(mirror.refs())

    def push(self, jobs: Mapping[str, Callable[[], Mapping[str, Outcome]]]) -> dict[str, Mapping[str, Outcome]]:
        """Push to remotes, each by a job that touches its mirror alone; return what those came to that are in time.

        The others are under way: they go on beside this pass, and are left alone by all until a next one.
        """
        self._remember(jobs)
        ended = self._run(self._pushes, jobs)
        for url in jobs.keys() - ended.keys():
            self.failures[url] = _late(self._mirrors[url], "pushed to")
            self._remotes.pop(url, None)
        return {url: end.result for url, end in ended.items()}

    def _run(
        self, lane: Lane[_T], jobs: Mapping[str, Callable[[], _T]], unawaited: Set[str] = frozenset()
    ) -> dict[str, Ended[_T]]:
        try:
            return lane.run(jobs, unawaited)
        except BaseException:
            self.close()
            raise

    def _remember(self, urls: Iterable[str]) -> None:
        # a copy stays as it is, whatever becomes of the mirror's refs
        self._known |= {url: copy(self._mirrors[url]) for url in urls if url in self._whole}

    def _take(self, url: str, kind: Kind) -> bool:
        """Take what came of a remote that an earlier pass could not wait for; return whether that will do."""
        if self._pushes.take(url):
            # only its host knows what came of that
            self._kinds.pop(url, None)
            self.failures.pop(url, None)
        end = self._fetches.take(url)
        if end is None:
            return False
        self._remotes.pop(url, None)
        self._note_end(url, end)
        return self._kinds[url] == kind

    def _note_end(self, url: str, end: Ended[GitError | None]) -> None:
        if end.in_time:
            self._slow.discard(url)
        else:
            self._slow.add(url)
        self._take_note(url, end.result)

    @property
    def _under_way(self) -> Set[str]:
        """Those whose mirrors are another thread's."""
        return self._fetches.under_way | self._pushes.under_way

    def _is_under_way(self, url: str) -> bool:
        return self._fetches.is_under_way(url) or self._pushes.is_under_way(url)

    def go_without(self) -> None:
        """Go on without those that are under way: from now on it counts that this pass could not read them."""
        self._gone_without = frozenset(url for url, error in self.failures.items() if isinstance(error, UnderWayError))

    def close(self) -> None:
        """End what is under way; nobody takes it any more."""
        for url in self._under_way:
            self._mirrors[url].interrupt()
        self._fetches.join()
        self._pushes.join()

    def as_of(self, moved: Mapping[str, Mapping[str, CommitId | None]]) -> Remotes:
        """Return these remotes with some refs, by URL and name, at other commits, or gone; nothing is fetched."""
        then = copy(self)
        known = {url: remote for url in moved if (remote := self.even_if_missing(url))}
        then._remotes = {**self._remotes, **{url: remote.as_of(moved[url]) for url, remote in known.items()}}
        return then

    def digest(self) -> str:
        """Return a digest of all refs and failures: equal digests mean that no remote has changed.

        Of one that is under way counts what was known before: a pass that could read it need not be repeated for that.
        """
        read = {**self._mirrors, **{url: self._known.get(url) for url in self._under_way}}
        refs = {url: self._refs_of(url, mirror) if mirror else {} for url, mirror in read.items()}
        failures = {
            url: error.message
            for url, error in self.failures.items()
            if not isinstance(error, UnderWayError) or url in self._gone_without
        }
        return digest({"refs": refs, "failures": failures})

    def _refs_of(self, url: str, mirror: Mirror) -> Mapping[str, CommitId]:
        """Return a remote's refs; one of which they cannot be read has failed, and the others are not affected."""
        try:
            with repository_boundary(f"reading the refs of {mirror.url}"):
                return dict(mirror.refs())
        except GitError as error:
            self.failures.setdefault(url, error)
            return {}

    def _take_note(self, url: str, error: GitError | None) -> None:
        if error:
            self.failures[url] = error
            self._backoff.failed(url)
            self._replace_if_damaged(url, error)
        else:
            self.failures.pop(url, None)
            self._backoff.worked(url)
            self._whole.add(url)

    def _replace_if_damaged(self, url: str, error: GitError) -> None:
        # a mirror is only a cache: a damaged one is made anew when the remote is asked next
        if isinstance(error, MirrorCorruptError) and url in self._mirrors:
            self._mirrors.pop(url).discard()
            self._known.pop(url, None)
            self._whole.discard(url)

    def maintain(self) -> tuple[Finding, ...]:
        """Tidy the mirrors that need it: many small packs make every later read slow.

        Return a finding for each where that failed unexpectedly.
        """
        under_way, findings = self._under_way, []
        for mirror in (mirror for url, mirror in self._mirrors.items() if url not in under_way):
            try:
                with repository_boundary(f"maintaining {mirror.url}"):
                    maintain(mirror)
            except InternalGitError as error:
                findings.append(internal_error(error.failure))
        return tuple(findings)

    def _mirror(self, url: str) -> Mirror | None:
        try:
            with repository_boundary(f"opening the mirror of {redact_urls(url)}"):
                self._mirrors[url] = self._mirrors.get(url) or self._open_mirror(url)
        except GitError as error:
            self._take_note(url, error)
            return None
        return self._mirrors[url]

    def get(self, url: str) -> Remote | None:
        """Return a remote that was fetched without failure in this pass."""
        if url in self.failures or url not in self._mirrors:
            return None
        return self.even_if_missing(url)

    def branches_now(self, url: str) -> Mapping[str, CommitId] | None:
        """Return the branches of a remote as they are now, by full name; None if it does not answer."""
        remote = self.get(url)
        try:
            return remote.mirror.look() if remote else None
        except GitError:
            # the outcome of the push that failed says what is wrong with the remote
            return None

    def upstream(self, url: str) -> Remote | None:
        """Return a remote to read packages from: one that is under way is read as it was before that began.

        Nothing may be written to it, and nobody may take what is not there for gone since.
        """
        if not isinstance(self.failures.get(url), UnderWayError):
            return self.get(url)
        return self._read(url, self._known[url]) if url in self._known else None

    def even_if_missing(self, url: str) -> Remote | None:
        """Return a remote as its mirror knows it, fetched or not: one that never existed is empty."""
        if url not in self._mirrors or self._is_under_way(url):
            return None
        return self._read(url, self._mirrors[url])

    def _read(self, url: str, mirror: Mirror) -> Remote:
        if url not in self._remotes:
            reader = self._open.enter_context(mirror.read())
            self._remotes[url] = Remote(mirror, reader, is_there=url not in self.failures)
        return self._remotes[url]


def _late(mirror: Mirror, how: str) -> UnderWayError:
    return UnderWayError(f"{mirror.url} is still being {how}, and is left alone until that has ended")
