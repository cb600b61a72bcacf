"""Why a value is what it is, over real Git: the commit of the branch that made it so, and what led to that.

The branch is walked to the last change of the value. Where an offer of ours brought it, the configs and upstreams
between the inputs of the offer before and its own are halved by making the package again (tenet 8).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from reconciler.daemon.past import Opened, Past, Then, Told, Unmade, files_of, short
from reconciler.daemon.publish import HEADS
from reconciler.daemon.remotes import Remote
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.daemon.verify import chosen, is_ours, person
from reconciler.gitio.errors import GitError
from reconciler.krm.conflicts import ABSENT
from reconciler.packages.functions.function import InterruptedFunctionError
from reconciler.planning.destination import Destination
from reconciler.planning.remake import TREE, Recorded, Remade
from reconciler.planning.turning_point import find_turn
from reconciler.reporting.differences import setter_of
from reconciler.reporting.explain import alike_first
from reconciler.reporting.explanation import NothingToExplainError
from reconciler.reporting.verify import Person
from reconciler.reporting.why import (
    Asked,
    Found,
    Kind,
    ObjectChange,
    Reason,
    Turned,
    Why,
    config_changes,
    nothing_there,
    revealed,
)
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId

_MOST_MERGES = 10
# each is the whole fleet by one config
_KEPT_CONFIGS = 4
_NOTHING = Found()


def why(place: Place, asked: Asked, past: Past, *, drafts: bool = False) -> Why:
    """Return since when a value is what it is, and why.

    Raises UnknownPlaceError and NothingToExplainError for what is not there, GitError without a readable config.
    """
    opened = past.open(lambda known: chosen([place], known))
    (destination,) = opened.destinations
    remote = past.remote(destination)
    if remote is None:
        raise UnknownPlaceError(past.trouble(destination))
    branch, head = _head(place, destination, remote, opened, drafts=drafts)
    line = _Line(place, asked, destination, remote)
    turn = line.turn(head)
    return _Search(past, opened, line, branch, turn).answer()


def _head(
    place: Place, destination: Destination, remote: Remote, opened: Opened, *, drafts: bool
) -> tuple[str, CommitId]:
    state = opened.states.get(destination)
    record = state.packages.get(place.package) if state else None
    name = record.draft if drafts and record and record.put else destination.branch
    head = remote.refs.get(HEADS + name)
    if head is None or (drafts and name == destination.branch):
        if drafts and destination in opened.unreadable:
            raise UnknownPlaceError(f"{place}: whether a draft is open is unknown: {opened.unreadable[destination]}")
        what = "no draft of it is open" if drafts else f"it has no branch {name}"
        raise UnknownPlaceError(f"{place}: {what}")
    return name, head


@dataclass(frozen=True)
class _Turn:
    """A commit after which a value was another, with the commit before it."""

    commit: CommitId
    parent: CommitId | None
    before: Found
    now: Found


class _Line:
    """One value along the commits of a branch."""

    def __init__(self, place: Place, asked: Asked, destination: Destination, remote: Remote) -> None:
        self.place = place
        self.asked = asked
        self.destination = destination
        self.remote = remote
        self.path = destination.path(place.package)
        self._by_tree: dict[TreeId | None, Found] = {None: _NOTHING}
        self._file = ""

    def turn(self, head: CommitId) -> _Turn:
        """Return the last change of the value up to a commit."""
        commits = self.remote.mirror.changes(head, self.path)
        if not commits:
            raise UnknownPlaceError(
                f"{self.place}: {self.destination.name} has no such package; it has {self._others(head)}"
            )
        found = self._turned(commits)
        if found is None:
            files = self._files(head) or self._files(commits[-1]) or FileTree()
            raise NothingToExplainError(nothing_there(str(self.place), self.asked, files))
        return found

    def turn_among(self, commits: Sequence[CommitId], now: Found) -> CommitId | None:
        """Return the last of some commits after which the value was this, and another before it."""
        for commit in commits:
            parents = self.remote.commit(commit).parents
            before = self.at(parents[0]) if parents else _NOTHING
            if self.at(commit).is_like(now) and not before.is_like(now):
                return commit
        return None

    def _turned(self, commits: Sequence[CommitId]) -> _Turn | None:
        now = self.at(commits[0])
        for commit, older in zip(commits, [*commits[1:], None], strict=True):
            # between two of them nothing of the package has changed
            before = self.at(older) if older else _NOTHING
            if not before.is_like(now):
                parents = self.remote.commit(commit).parents
                return _Turn(commit, parents[0] if parents else None, before, now)
        return None

    def at(self, commit: CommitId) -> Found:
        """Return the value at a commit."""
        tree = self.remote.tree_at(commit, self.path)
        if tree not in self._by_tree:
            self._by_tree[tree] = self._read(commit, tree)
        return self._by_tree[tree]

    def _read(self, commit: CommitId, tree: TreeId | None) -> Found:
        # mostly it stays in its file: one blob is read of a package, and equal ones once
        blob = self.remote.blob_at(commit, f"{self.path}/{self._file}") if self._file else None
        if blob and (known := self.asked.in_file(self._file, self.remote.file(blob))):
            return known
        found = self.asked.in_package(self.remote.files(tree)) if tree else _NOTHING
        self._file = found.file or self._file
        return found

    def _files(self, commit: CommitId) -> FileTree | None:
        tree = self.remote.tree_at(commit, self.path)
        return self.remote.files(tree) if tree else None

    def _others(self, head: CommitId) -> str:
        folder = self.remote.tree_at(head, self.destination.path(".reconciler"))
        names = self.remote.paths(folder) if folder else ()
        return alike_first(self.place.package, [one.removesuffix(".yaml") for one in names])


class _Search:
    """The search for what led to one change of a value; it counts what it makes again."""

    def __init__(self, past: Past, opened: Opened, line: _Line, branch: str, turn: _Turn) -> None:
        self._past = past
        self._opened = opened
        self._line = line
        self._branch = branch
        self._turn = turn
        self._renders = 0
        self._among = 0
        self._made: dict[tuple[str, str], Found | None] = {}
        self._known: dict[str, Then | Unmade] = {}
        self._told = self._told_at(turn.commit)
        self._last = self._told_at(turn.parent) if turn.parent else None

    def _told_at(self, commit: CommitId) -> Told | None:
        found = self._past.told(self._line.destination, self._line.remote, self._line.place.package, commit)
        return found if isinstance(found, Told) else None

    def answer(self) -> Why:
        """Return the answer."""
        turn, line = self._turn, self._line
        reason, made = self._reason()
        now, before = turn.now, turn.before
        if made:
            now, before = revealed(now, made), replace(before, is_hidden=revealed(now, made).is_hidden)
            reason = replace(reason, by=setter_of(now.resource, now.pointer, made))
        configs = tuple(one.recorded.config if one else "" for one in (self._last, self._told))
        commit = person(line.remote.commit(turn.commit))
        turned = Turned(str(line.place), self._branch, line.asked, before, now, commit)
        reason = replace(reason, renders=self._renders, among=self._among)
        return Why(turned, reason, (configs[0], configs[1]))

    def _reason(self) -> tuple[Reason, Remade | None]:
        told = self._told
        if told is None:
            what = (
                "taken away with its package"
                if self._turn.now.value is ABSENT
                else "written by people: nothing records it"
            )
            kind: Kind = "removal" if self._turn.now.value is ABSENT else "edit"
            return Reason(kind, what, self._people()), None
        if reason := self._edit(told):
            return reason, None
        made = self._past_made(told)
        if isinstance(made, Unmade):
            return Reason("other", f"offered by the reconciler; why is not known any more: {made.why}"), None
        self._renders += 1
        if not made.is_usable or not self._value_of(made).is_like(self._turn.now):
            words = "offered by the reconciler, and it does not come out again: see verify"
            return Reason("other", words), made
        return self._offered(told), made

    def _past_made(self, told: Told) -> Remade | Unmade:
        then = self._then(told.recorded.config)
        try:
            if isinstance(then, Then):
                return self._past.remake(told, then, self._opened)
            return self._past.stand_in(told, self._opened, self._then(self._opened.snapshot.id)) or then
        except InterruptedFunctionError as error:
            return Unmade(str(error))

    # people

    def _edit(self, told: Told) -> Reason | None:
        """Return whose edit it was, if it was one: of what was offered, or of what went into the offer."""
        turn, line = self._turn, self._line
        made = self._value_in(told, told.recorded.rendered)
        if told.is_edited and made is not None and not made.is_like(turn.now):
            return Reason("edit", "edited by people", self._people())
        if not told.recorded.is_edited:
            return None
        base, merged = (self._value_in(told, one) for one in (told.recorded.base, told.recorded.merged))
        if base is None or merged is None or base.is_like(turn.now) or not merged.is_like(turn.now):
            return None
        before = line.remote.mirror.changes(turn.commit, line.path)
        edit = line.turn_among([*self._side(), *before], turn.now)
        people = (person(line.remote.commit(edit)),) if edit else ()
        return Reason("edit", "edited by people on a draft, and published with it", people)

    def _value_in(self, told: Told, tree: TreeId) -> Found | None:
        files = files_of(told.remote, tree)
        return self._line.asked.in_package(files) if files is not None else None

    def _side(self) -> list[CommitId]:
        remote = self._line.remote
        if len(remote.commit(self._turn.commit).parents) < 2:
            return []
        return remote.mirror.side_changes(self._turn.commit, self._line.path)

    def _people(self) -> tuple[Person, ...]:
        """Return who changed it: of a merge, the commit in it that did."""
        line, turn = self._line, self._turn
        inside = line.turn_among(self._side(), turn.now)
        commit = inside if inside and not is_ours(line.remote.commit(inside)) else turn.commit
        return (person(line.remote.commit(commit), turn.commit if commit != turn.commit else None),)

    # offers

    def _offered(self, told: Told) -> Reason:
        last = self._last.recorded if self._last else None
        return self._by_config(told, last) or self._by_upstream(told, last) or self._otherwise(told)

    def _by_config(self, told: Told, last: Recorded | None) -> Reason | None:
        """Return the commit of the config between two offers that made the value what it is."""
        new, old = told.recorded.config, last.config if last else ""
        if old == new:
            return None
        new, old = self._committed(new), self._committed(old)
        if TREE in old + new:
            return self._by_folders(old, new)
        try:
            commits = self._past.history.between(CommitId(old) if old else None, CommitId(new))
        except GitError as error:
            return Reason("config", f"by a change of the config whose commits are gone: {error.message}")
        if commits is None and self._past.history.between(CommitId(new), CommitId(old)) is not None:
            return Reason("edit", "taken back by people, to what an earlier config had made", self._people())
        if commits is None:
            return self._by_folders(old, new)
        if not commits or (old and self._is_new(old)):
            return None
        self._among += len(commits)
        line = [CommitId(old), *commits] if old else [CommitId(""), *commits]
        first, found = find_turn(0, len(line) - 1, lambda at: self._is_new(line[at]))
        return self._in_merges(
            line[first], line[found : found + 1] if found - first == 1 else line[first + 1 : found + 1]
        )

    def _committed(self, config: str) -> str:
        """Return the commit that has a plain folder as it was, the folder itself where none has."""
        if not config.startswith(TREE):
            return config
        today = self._opened.snapshot.id
        try:
            head = "HEAD" if today.startswith(TREE) else today
            return self._past.history.commit_of(TreeId(config.removeprefix(TREE)), head) or config
        except GitError:
            # a folder that no repository is around
            return config

    def _in_merges(self, before: CommitId, found: Sequence[CommitId]) -> Reason:
        """Return the commit, and if that is a merge, the commit in it that made the difference."""
        through: list[Person] = []
        while len(found) == 1 and len(through) < _MOST_MERGES:
            commit = self._past.history.commit(found[0])
            side = self._side_of_config(commit.id, commit.parents)
            if side is None:
                break
            through.append(person(commit))
            before, found = side
        return self._config_reason(before, found, through)

    def _side_of_config(
        self, merge: CommitId, parents: Sequence[CommitId]
    ) -> tuple[CommitId, Sequence[CommitId]] | None:
        """Return what in a merge made the difference, None if it is no merge, or only the merge as a whole did."""
        history = self._past.history
        start = history.merge_base(parents[0], parents[1]) if len(parents) == 2 else None
        commits = history.between(start, parents[1]) if start else None
        if start is None or not commits or not self._is_new(commits[-1]) or self._is_new(start) is not False:
            return None
        self._among += len(commits)
        line = [start, *commits]
        first, found = find_turn(0, len(line) - 1, lambda at: self._is_new(line[at]))
        return line[first], line[first + 1 : found + 1]

    def _config_reason(self, before: CommitId, found: Sequence[CommitId], through: Sequence[Person]) -> Reason:
        commits = tuple(person(self._past.history.commit(one)) for one in found)
        words = "by the config" if len(found) == 1 else "by one of these commits of the config"
        upstream = self._moved_upstream(found[-1])
        return Reason("config", words, commits, tuple(through), self._objects(before, found[-1]), upstream)

    def _objects(self, before: str, after: str) -> tuple[ObjectChange, ...]:
        made = self._otherwise_made(after, ())
        catalogs = [self._then(one) if one else None for one in (before, after)]
        old, new = (one.catalog if isinstance(one, Then) else None for one in catalogs)
        return config_changes(old, new, made if isinstance(made, Remade) else None) if old and new else ()

    def _by_folders(self, old: str, new: str) -> Reason | None:
        """Return what two configs without a history between them say differently."""
        if old and self._is_new(old):
            return None
        words = f"by the config, between {short(old)} and {short(new)}, of which no commits are known" if old else (
            f"by the config {short(new)}, with which the package came"
        )  # fmt: skip
        return Reason("config", words, objects=self._objects(old, new) if old else ())

    def _by_upstream(self, told: Told, last: Recorded | None) -> Reason | None:
        """Return the commit of the upstream between two offers that made the value what it is."""
        commit = self._turned_upstream(told.recorded, last, told.recorded.config) if last else None
        return Reason("upstream", "by the upstream", (commit,)) if commit else None

    def _moved_upstream(self, config: str) -> Person | None:
        """Return the commit of an upstream that a config had moved to, if that made the value what it is."""
        last = self._last.recorded if self._last else None
        return self._turned_upstream(self._told.recorded, last, config) if self._told and last else None

    def _turned_upstream(self, now: Recorded, last: Recorded | None, config: str) -> Person | None:
        to, came = now.upstream, last.upstream if last else {}
        if not to or not came or to["commit"] == came["commit"] or to["repo"] != came["repo"]:
            return None
        remote = self._past.upstream(now, self._opened)
        if remote is None:
            return None
        try:
            commits = remote.mirror.changes(CommitId(to["commit"]), to["directory"], CommitId(came["commit"]))[::-1]
        except GitError:
            # the commit that it came from before is gone
            return None
        line = [CommitId(came["commit"]), *commits]
        if len(line) < 2 or self._has_upstream(now, remote, line[0], config) is not False:
            return None
        self._among += len(commits)
        _, found = find_turn(0, len(line) - 1, lambda at: self._has_upstream(now, remote, line[at], config))
        return person(remote.commit(line[found]))

    def _has_upstream(self, now: Recorded, remote: Remote, commit: CommitId, config: str) -> bool | None:
        tree = remote.tree_at(commit, now.upstream["directory"])
        if tree is None:
            return self._turn.now.value is ABSENT
        at = replace(now, upstream={**now.upstream, "commit": commit, "tree": tree})
        return self._is_new(config, (at,))

    def _otherwise(self, told: Told) -> Reason:
        """Return what else made it what it is, as far as that can be told."""
        if rules := self._arrived(told):
            return Reason("rollout", f"by a rollout that has come to {told.destination.name}: {', '.join(rules)}")
        if partners := self._partners(told):
            listed = ", ".join(f"{told.destination.name}/{one}" for one in partners)
            return Reason(
                "templates", f"by templates: what it inherits is in {listed}, which changed as well; ask why there"
            )
        words = "neither by the config nor by its upstream: by another version of the reconciler, or of a function"
        return Reason("other", words)

    def _arrived(self, told: Told) -> list[str]:
        record = self._opened.record(told)
        offers = [record.offer_of(one.status) if record and one else None for one in (self._last, told)]
        then = self._then(told.recorded.config)
        if not all(offers) or isinstance(then, Unmade):
            return []
        before, now = (dict(one.rules) if one else {} for one in offers)
        rollouts = then.renderer.last_mile.rollouts
        return sorted(str(rule) for rule in rollouts if before.get(rule) != now.get(rule))

    def _partners(self, told: Told) -> list[str]:
        then = self._then(told.recorded.config)
        if isinstance(then, Unmade) or self._turn.parent is None:
            return []
        files = told.remote.files(told.tree) if told.tree else FileTree()
        if not then.renderer.templating.concerns(files):
            return []
        now, before = (self._past.concerned(told, then, one) for one in (told.commit, self._turn.parent))
        return sorted(one for one in {*now, *before} if now.get(one) != before.get(one))

    # making it otherwise

    def _is_new(self, config: str, upstreams: Sequence[Recorded] = ()) -> bool | None:
        """Return whether the value is what it is by a config, None where nobody can say."""
        if not config:
            return self._turn.now.value is ABSENT
        key = (config, upstreams[0].upstream["commit"] if upstreams else "")
        if key not in self._made:
            made = self._otherwise_made(config, upstreams)
            self._made[key] = self._judged(made)
        found = self._made[key]
        return None if found is None else found.is_like(self._turn.now)

    def _judged(self, made: Remade | Unmade) -> Found | None:
        if isinstance(made, Unmade):
            # by that config nobody wants the package
            return _NOTHING if made.is_wrong else None
        return self._value_of(made) if made.is_usable else None

    def _otherwise_made(self, config: str, upstreams: Sequence[Recorded]) -> Remade | Unmade:
        assert self._told, "nobody asks otherwise"
        then = self._then(config)
        if isinstance(then, Unmade):
            return then
        known = [one.recorded for one in (self._told, self._last) if one]
        self._renders += 1
        try:
            return self._past.otherwise(self._told, then, self._opened, upstreams or known)
        except InterruptedFunctionError as error:
            return Unmade(str(error))

    def _value_of(self, made: Remade) -> Found:
        return self._line.asked.in_package(made.rendered.files, self._turn.now.file)

    def _then(self, config: str) -> Then | Unmade:
        assert self._told, "nobody asks otherwise"
        if config not in self._known:
            self._known[config] = self._past.then(config, self._opened, [self._told])
            for forgotten in [*self._known][:-_KEPT_CONFIGS]:
                del self._known[forgotten]
        return self._known[config]
