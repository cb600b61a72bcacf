"""Why a value is what it is, over real Git: the commit of the branch that made it so, and what led to that.

The branch is walked to the last change of the value. Where an offer of ours brought it, the configs and upstreams
between the inputs of the offer before and its own are halved by making the package again (tenet 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconciler.catalog.files import CommitId, FileTree, TreeId
from reconciler.git.errors import GitError
from reconciler.inspect.past import (
    CommittedPackage,
    CurrentConfig,
    PastConfig,
    PastReader,
    ReRenderFailure,
    read_files,
    shorten_id,
)
from reconciler.inspect.verify import build_commit_info, is_reconciler_commit, select_targets
from reconciler.krm.merge3.rules import ABSENT
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.output.explain.verification import CommitInfo, find_setter
from reconciler.output.explain.why import (
    BranchValueChange,
    ChangeReason,
    ChangeReasonKind,
    ConfigObjectChange,
    FoundValue,
    ValueQuery,
    WhyResult,
    find_config_changes,
    format_value_not_found,
    reveal_value,
)
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.attribution.re_render import TREE_PREFIX, RecordedRender, ReRenderedPackage, find_change_point
from reconciler.planning.model.targets import Target
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import BRANCH_PREFIX, TargetReference, UnknownTargetError

_MOST_MERGES = 10
# each is the whole fleet by one config
_KEPT_CONFIGS = 4
_NOTHING = FoundValue()


def explain_value(place: TargetReference, asked: ValueQuery, past: PastReader, *, drafts: bool = False) -> WhyResult:
    """Return since when a value is what it is, and why.

    Raises UnknownPlaceError and NothingToExplainError for what is not there, GitError without a readable config.
    """
    opened = past.open_config(lambda known: select_targets([place], known))
    (destination,) = opened.targets
    remote = past.get_remote(destination)
    if remote is None:
        raise UnknownTargetError(past.describe_fetch_failure(destination))
    branch, head = _head(place, destination, remote, opened, drafts=drafts)
    line = _Line(place, asked, destination, remote)
    turn = line.turn(head)
    return _Search(past, opened, line, branch, turn).answer()


def _head(
    place: TargetReference, destination: Target, remote: Remote, opened: CurrentConfig, *, drafts: bool
) -> tuple[str, CommitId]:
    state = opened.states.get(destination)
    record = state.packages.get(place.package) if state else None
    name = record.draft_branch if drafts and record and record.draft_version else destination.branch
    head = remote.refs.get(BRANCH_PREFIX + name)
    if head is None or (drafts and name == destination.branch):
        if drafts and destination in opened.unreadable:
            raise UnknownTargetError(f"{place}: whether a draft is open is unknown: {opened.unreadable[destination]}")
        what = "no draft of it is open" if drafts else f"it has no branch {name}"
        raise UnknownTargetError(f"{place}: {what}")
    return name, head


@dataclass(frozen=True)
class _Turn:
    """A commit after which a value was another, with the commit before it."""

    commit: CommitId
    parent: CommitId | None
    before: FoundValue
    now: FoundValue


class _Line:
    """One value along the commits of a branch."""

    def __init__(self, place: TargetReference, asked: ValueQuery, destination: Target, remote: Remote) -> None:
        self.place = place
        self.asked = asked
        self.destination = destination
        self.remote = remote
        self.path = destination.package_path(place.package)
        self._by_tree: dict[TreeId | None, FoundValue] = {None: _NOTHING}
        self._file = ""

    def turn(self, head: CommitId) -> _Turn:
        """Return the last change of the value up to a commit."""
        commits = self.remote.mirror.list_commits_changing(head, self.path)
        if not commits:
            raise UnknownTargetError(
                f"{self.place}: {self.destination.name} has no such package; it has {self._others(head)}"
            )
        found = self._turned(commits)
        if found is None:
            files = self._files(head) or self._files(commits[-1]) or FileTree()
            raise ValueNotFoundError(format_value_not_found(str(self.place), self.asked, files))
        return found

    def turn_among(self, commits: Sequence[CommitId], now: FoundValue) -> CommitId | None:
        """Return the last of some commits after which the value was this, and another before it."""
        for commit in commits:
            parents = self.remote.read_commit(commit).parents
            before = self.at(parents[0]) if parents else _NOTHING
            if self.at(commit).is_same_value(now) and not before.is_same_value(now):
                return commit
        return None

    def _turned(self, commits: Sequence[CommitId]) -> _Turn | None:
        now = self.at(commits[0])
        for commit, older in zip(commits, [*commits[1:], None], strict=True):
            # between two of them nothing of the package has changed
            before = self.at(older) if older else _NOTHING
            if not before.is_same_value(now):
                parents = self.remote.read_commit(commit).parents
                return _Turn(commit, parents[0] if parents else None, before, now)
        return None

    def at(self, commit: CommitId) -> FoundValue:
        """Return the value at a commit."""
        tree = self.remote.find_tree_at(commit, self.path)
        if tree not in self._by_tree:
            self._by_tree[tree] = self._read(commit, tree)
        return self._by_tree[tree]

    def _read(self, commit: CommitId, tree: TreeId | None) -> FoundValue:
        # mostly it stays in its file: one blob is read of a package, and equal ones once
        blob = self.remote.find_blob_at(commit, f"{self.path}/{self._file}") if self._file else None
        if blob and (known := self.asked.find_in_file(self._file, self.remote.read_file(blob))):
            return known
        found = self.asked.find_in_package(self.remote.read_files(tree)) if tree else _NOTHING
        self._file = found.file or self._file
        return found

    def _files(self, commit: CommitId) -> FileTree | None:
        tree = self.remote.find_tree_at(commit, self.path)
        return self.remote.read_files(tree) if tree else None

    def _others(self, head: CommitId) -> str:
        folder = self.remote.find_tree_at(head, self.destination.package_path(".reconciler"))
        names = self.remote.list_paths(folder) if folder else ()
        return format_closest_names(self.place.package, [one.removesuffix(".yaml") for one in names])


class _Search:
    """The search for what led to one change of a value; it counts what it makes again."""

    def __init__(self, past: PastReader, opened: CurrentConfig, line: _Line, branch: str, turn: _Turn) -> None:
        self._past = past
        self._opened = opened
        self._line = line
        self._branch = branch
        self._turn = turn
        self._renders = 0
        self._among = 0
        self._made: dict[tuple[str, str], FoundValue | None] = {}
        self._known: dict[str, PastConfig | ReRenderFailure] = {}
        self._told = self._told_at(turn.commit)
        self._last = self._told_at(turn.parent) if turn.parent else None

    def _told_at(self, commit: CommitId) -> CommittedPackage | None:
        found = self._past.read_package(self._line.destination, self._line.remote, self._line.place.package, commit)
        return found if isinstance(found, CommittedPackage) else None

    def answer(self) -> WhyResult:
        """Return the answer."""
        turn, line = self._turn, self._line
        reason, made = self._reason()
        now, before = turn.now, turn.before
        if made:
            now, before = reveal_value(now, made), replace(before, is_hidden=reveal_value(now, made).is_hidden)
            reason = replace(reason, set_by=find_setter(now.resource, now.pointer, made))
        configs = tuple(one.recorded.config if one else "" for one in (self._last, self._told))
        commit = build_commit_info(line.remote.read_commit(turn.commit))
        turned = BranchValueChange(str(line.place), self._branch, line.asked, before, now, commit)
        reason = replace(reason, render_count=self._renders, commit_count=self._among)
        return WhyResult(turned, reason, (configs[0], configs[1]))

    def _reason(self) -> tuple[ChangeReason, ReRenderedPackage | None]:
        told = self._told
        if told is None:
            what = (
                "taken away with its package"
                if self._turn.now.value is ABSENT
                else "written by people: nothing records it"
            )
            kind: ChangeReasonKind = "removal" if self._turn.now.value is ABSENT else "edit"
            return ChangeReason(kind, what, self._people()), None
        if reason := self._edit(told):
            return reason, None
        made = self._past_made(told)
        if isinstance(made, ReRenderFailure):
            return ChangeReason("other", f"offered by the reconciler; why is not known any more: {made.message}"), None
        self._renders += 1
        if not made.is_usable or not self._value_of(made).is_same_value(self._turn.now):
            words = "offered by the reconciler, and it does not come out again: see verify"
            return ChangeReason("other", words), made
        return self._offered(told), made

    def _past_made(self, told: CommittedPackage) -> ReRenderedPackage | ReRenderFailure:
        then = self._then(told.recorded.config)
        try:
            if isinstance(then, PastConfig):
                return self._past.re_render(told, then, self._opened)
            return (
                self._past.re_render_with_current_config(told, self._opened, self._then(self._opened.snapshot.id))
                or then
            )
        except InterruptedFunctionError as error:
            return ReRenderFailure(str(error))

    # people

    def _edit(self, told: CommittedPackage) -> ChangeReason | None:
        """Return whose edit it was, if it was one: of what was offered, or of what went into the offer."""
        turn, line = self._turn, self._line
        made = self._value_in(told, told.recorded.rendered)
        if told.is_edited and made is not None and not made.is_same_value(turn.now):
            return ChangeReason("edit", "edited by people", self._people())
        if not told.recorded.is_edited:
            return None
        base, merged = (self._value_in(told, one) for one in (told.recorded.base, told.recorded.merged))
        if base is None or merged is None or base.is_same_value(turn.now) or not merged.is_same_value(turn.now):
            return None
        before = line.remote.mirror.list_commits_changing(turn.commit, line.path)
        edit = line.turn_among([*self._side(), *before], turn.now)
        people = (build_commit_info(line.remote.read_commit(edit)),) if edit else ()
        return ChangeReason("edit", "edited by people on a draft, and published with it", people)

    def _value_in(self, told: CommittedPackage, tree: TreeId) -> FoundValue | None:
        files = read_files(told.remote, tree)
        return self._line.asked.find_in_package(files) if files is not None else None

    def _side(self) -> list[CommitId]:
        remote = self._line.remote
        if len(remote.read_commit(self._turn.commit).parents) < 2:
            return []
        return remote.mirror.list_merged_commits_changing(self._turn.commit, self._line.path)

    def _people(self) -> tuple[CommitInfo, ...]:
        """Return who changed it: of a merge, the commit in it that did."""
        line, turn = self._line, self._turn
        inside = line.turn_among(self._side(), turn.now)
        commit = inside if inside and not is_reconciler_commit(line.remote.read_commit(inside)) else turn.commit
        return (build_commit_info(line.remote.read_commit(commit), turn.commit if commit != turn.commit else None),)

    # offers

    def _offered(self, told: CommittedPackage) -> ChangeReason:
        last = self._last.recorded if self._last else None
        return self._by_config(told, last) or self._by_upstream(told, last) or self._otherwise(told)

    def _by_config(self, told: CommittedPackage, last: RecordedRender | None) -> ChangeReason | None:
        """Return the commit of the config between two offers that made the value what it is."""
        new, old = told.recorded.config, last.config if last else ""
        if old == new:
            return None
        new, old = self._committed(new), self._committed(old)
        if TREE_PREFIX in old + new:
            return self._by_folders(old, new)
        try:
            commits = self._past.history.list_commits_between(CommitId(old) if old else None, CommitId(new))
        except GitError as error:
            return ChangeReason("config", f"by a change of the config whose commits are gone: {error.message}")
        if commits is None and self._past.history.list_commits_between(CommitId(new), CommitId(old)) is not None:
            return ChangeReason("edit", "taken back by people, to what an earlier config had made", self._people())
        if commits is None:
            return self._by_folders(old, new)
        if not commits or (old and self._is_new(old)):
            return None
        self._among += len(commits)
        line = [CommitId(old), *commits] if old else [CommitId(""), *commits]
        first, found = find_change_point(0, len(line) - 1, lambda at: self._is_new(line[at]))
        return self._in_merges(
            line[first], line[found : found + 1] if found - first == 1 else line[first + 1 : found + 1]
        )

    def _committed(self, config: str) -> str:
        """Return the commit that has a plain folder as it was, the folder itself where none has."""
        if not config.startswith(TREE_PREFIX):
            return config
        today = self._opened.snapshot.id
        try:
            head = "HEAD" if today.startswith(TREE_PREFIX) else today
            return self._past.history.find_commit_with_tree(TreeId(config.removeprefix(TREE_PREFIX)), head) or config
        except GitError:
            # a folder that no repository is around
            return config

    def _in_merges(self, before: CommitId, found: Sequence[CommitId]) -> ChangeReason:
        """Return the commit, and if that is a merge, the commit in it that made the difference."""
        through: list[CommitInfo] = []
        while len(found) == 1 and len(through) < _MOST_MERGES:
            commit = self._past.history.read_commit(found[0])
            side = self._side_of_config(commit.id, commit.parents)
            if side is None:
                break
            through.append(build_commit_info(commit))
            before, found = side
        return self._config_reason(before, found, through)

    def _side_of_config(
        self, merge: CommitId, parents: Sequence[CommitId]
    ) -> tuple[CommitId, Sequence[CommitId]] | None:
        """Return what in a merge made the difference, None if it is no merge, or only the merge as a whole did."""
        history = self._past.history
        start = history.merge_base(parents[0], parents[1]) if len(parents) == 2 else None
        commits = history.list_commits_between(start, parents[1]) if start else None
        if start is None or not commits or not self._is_new(commits[-1]) or self._is_new(start) is not False:
            return None
        self._among += len(commits)
        line = [start, *commits]
        first, found = find_change_point(0, len(line) - 1, lambda at: self._is_new(line[at]))
        return line[first], line[first + 1 : found + 1]

    def _config_reason(
        self, before: CommitId, found: Sequence[CommitId], through: Sequence[CommitInfo]
    ) -> ChangeReason:
        commits = tuple(build_commit_info(self._past.history.read_commit(one)) for one in found)
        words = "by the config" if len(found) == 1 else "by one of these commits of the config"
        upstream = self._moved_upstream(found[-1])
        return ChangeReason("config", words, commits, tuple(through), self._objects(before, found[-1]), upstream)

    def _objects(self, before: str, after: str) -> tuple[ConfigObjectChange, ...]:
        made = self._otherwise_made(after, ())
        catalogs = [self._then(one) if one else None for one in (before, after)]
        old, new = (one.catalog if isinstance(one, PastConfig) else None for one in catalogs)
        return (
            find_config_changes(old, new, made if isinstance(made, ReRenderedPackage) else None) if old and new else ()
        )

    def _by_folders(self, old: str, new: str) -> ChangeReason | None:
        """Return what two configs without a history between them say differently."""
        if old and self._is_new(old):
            return None
        words = f"by the config, between {shorten_id(old)} and {shorten_id(new)}, of which no commits are known" if old else (  # noqa: E501
            f"by the config {shorten_id(new)}, with which the package came"
        )  # fmt: skip
        return ChangeReason("config", words, objects=self._objects(old, new) if old else ())

    def _by_upstream(self, told: CommittedPackage, last: RecordedRender | None) -> ChangeReason | None:
        """Return the commit of the upstream between two offers that made the value what it is."""
        commit = self._turned_upstream(told.recorded, last, told.recorded.config) if last else None
        return ChangeReason("upstream", "by the upstream", (commit,)) if commit else None

    def _moved_upstream(self, config: str) -> CommitInfo | None:
        """Return the commit of an upstream that a config had moved to, if that made the value what it is."""
        last = self._last.recorded if self._last else None
        return self._turned_upstream(self._told.recorded, last, config) if self._told and last else None

    def _turned_upstream(self, now: RecordedRender, last: RecordedRender | None, config: str) -> CommitInfo | None:
        to, came = now.upstream, last.upstream if last else {}
        if not to or not came or to["commit"] == came["commit"] or to["repo"] != came["repo"]:
            return None
        remote = self._past.find_upstream(now, self._opened)
        if remote is None:
            return None
        try:
            commits = remote.mirror.list_commits_changing(
                CommitId(to["commit"]), to["directory"], CommitId(came["commit"])
            )[::-1]
        except GitError:
            # the commit that it came from before is gone
            return None
        line = [CommitId(came["commit"]), *commits]
        if len(line) < 2 or self._has_upstream(now, remote, line[0], config) is not False:
            return None
        self._among += len(commits)
        _, found = find_change_point(0, len(line) - 1, lambda at: self._has_upstream(now, remote, line[at], config))
        return build_commit_info(remote.read_commit(line[found]))

    def _has_upstream(self, now: RecordedRender, remote: Remote, commit: CommitId, config: str) -> bool | None:
        tree = remote.find_tree_at(commit, now.upstream["directory"])
        if tree is None:
            return self._turn.now.value is ABSENT
        at = replace(now, upstream={**now.upstream, "commit": commit, "tree": tree})
        return self._is_new(config, (at,))

    def _otherwise(self, told: CommittedPackage) -> ChangeReason:
        """Return what else made it what it is, as far as that can be told."""
        if rules := self._arrived(told):
            return ChangeReason("rollout", f"by a rollout that has come to {told.target.name}: {', '.join(rules)}")
        if partners := self._partners(told):
            listed = ", ".join(f"{told.target.name}/{one}" for one in partners)
            return ChangeReason(
                "templates", f"by templates: what it inherits is in {listed}, which changed as well; ask why there"
            )
        words = "neither by the config nor by its upstream: by another version of the reconciler, or of a function"
        return ChangeReason("other", words)

    def _arrived(self, told: CommittedPackage) -> list[str]:
        record = self._opened.find_record(told)
        offers = [record.find_version(one.status) if record and one else None for one in (self._last, told)]
        then = self._then(told.recorded.config)
        if not all(offers) or isinstance(then, ReRenderFailure):
            return []
        before, now = (dict(one.rules) if one else {} for one in offers)
        rollouts = then.renderer.cluster_overrides.rollouts
        return sorted(str(rule) for rule in rollouts if before.get(rule) != now.get(rule))

    def _partners(self, told: CommittedPackage) -> list[str]:
        then = self._then(told.recorded.config)
        if isinstance(then, ReRenderFailure) or self._turn.parent is None:
            return []
        files = told.remote.read_files(told.tree) if told.tree else FileTree()
        if not then.renderer.template_merger.has_template_roles(files):
            return []
        now, before = (self._past.read_related_packages(told, then, one) for one in (told.commit, self._turn.parent))
        return sorted(one for one in {*now, *before} if now.get(one) != before.get(one))

    # making it otherwise

    def _is_new(self, config: str, upstreams: Sequence[RecordedRender] = ()) -> bool | None:
        """Return whether the value is what it is by a config, None where nobody can say."""
        if not config:
            return self._turn.now.value is ABSENT
        key = (config, upstreams[0].upstream["commit"] if upstreams else "")
        if key not in self._made:
            made = self._otherwise_made(config, upstreams)
            self._made[key] = self._judged(made)
        found = self._made[key]
        return None if found is None else found.is_same_value(self._turn.now)

    def _judged(self, made: ReRenderedPackage | ReRenderFailure) -> FoundValue | None:
        if isinstance(made, ReRenderFailure):
            # by that config nobody wants the package
            return _NOTHING if made.is_mismatch else None
        return self._value_of(made) if made.is_usable else None

    def _otherwise_made(self, config: str, upstreams: Sequence[RecordedRender]) -> ReRenderedPackage | ReRenderFailure:
        assert self._told, "nobody asks otherwise"
        then = self._then(config)
        if isinstance(then, ReRenderFailure):
            return then
        known = [one.recorded for one in (self._told, self._last) if one]
        self._renders += 1
        try:
            return self._past.re_render_with_other_config(self._told, then, self._opened, upstreams or known)
        except InterruptedFunctionError as error:
            return ReRenderFailure(str(error))

    def _value_of(self, made: ReRenderedPackage) -> FoundValue:
        return self._line.asked.find_in_package(made.rendered.files, self._turn.now.file)

    def _then(self, config: str) -> PastConfig | ReRenderFailure:
        assert self._told, "nobody asks otherwise"
        if config not in self._known:
            self._known[config] = self._past.read_config(config, self._opened, [self._told])
            for forgotten in [*self._known][:-_KEPT_CONFIGS]:
                del self._known[forgotten]
        return self._known[config]
