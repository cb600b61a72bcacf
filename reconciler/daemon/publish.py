"""Publishing: plans become commits in the mirrors first, and refs of the remotes last (tenet 3, git.md 4.9)."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

from reconciler.daemon.remotes import Remote
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.verdicts import Done, Failed, Lost, Outcome, Postponed, PushUnit, RefUpdate, Refused
from reconciler.gitio.writer import Change, Drop, Graft, NewCommit, Put
from reconciler.krm.digest import digest
from reconciler.planning.branches import End, Grow, Rest, Step, Sync
from reconciler.planning.destination import Destination
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Draft
from reconciler.planning.plan import grows
from reconciler.planning.state import DestinationState, DraftBranch, write_state, written_anew
from reconciler.reporting.commit_message import state_message, sync_message
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import UNDATED_SECONDS, CommitId, TreeId

HEADS = "refs/heads/"
# the push options that go with what a plan puts on drafts
Announce = Callable[[DestinationPlan], tuple[str, ...]]


@dataclass(frozen=True)
class Written:
    """A destination's plan with its commits in the mirror: the heads of its draft branches, and its state."""

    plan: DestinationPlan
    heads: Mapping[str, CommitId] = field(default_factory=dict)
    state: DestinationState | None = None
    state_commit: CommitId | None = None

    @property
    def name(self) -> str:
        """The destination's name; also the name of its push unit."""
        return self.plan.destination.name

    @property
    def id(self) -> str:
        """What the packages would become, and on what; the config commit that asks for it does not matter."""
        plan = self.plan
        drafts = [one for one in plan.outcomes if isinstance(one, Draft)]
        offered = {one.variant.place.package: [one.rendered.files.id, one.rendered.review] for one in drafts}
        ended = [layout.branch for layout in plan.layouts if isinstance(layout, End | Rest)]
        leaving = [[one.package, one.how, one.is_new] for one in plan.leaving]
        return digest([plan.destination.url, self.name, plan.heads.branch, offered, ended, leaving])


def write_plans(
    remote: Remote,
    plans: Sequence[DestinationPlan],
    config_seconds: int,
    source_of: Mapping[TreeId, FileTree],
    state_ref: str,
) -> list[Written]:
    """Write the drafts of one remote's destinations, then their states; no ref moves.

    `source_of` holds the contents of the trees that states name and that are in no commit of this remote.
    """
    if any(plan.heads.absent and grows(plan) for plan in plans):
        remote.mirror.root_commit()
    heads = _write_drafts(remote, plans, config_seconds, _sources(plans, source_of))
    states = {plan.destination.name: _with_heads(plan, heads[plan.destination.name]) for plan in plans}
    changed = [plan for plan in plans if states[plan.destination.name] != plan.before]
    commits = write_states(remote, [(one.destination, states[one.destination.name]) for one in changed], state_ref)
    written = {
        plan.destination.name: Written(plan, heads[plan.destination.name], states[plan.destination.name], commit)
        for plan, commit in zip(changed, commits, strict=True)
    }
    return [written.get(plan.destination.name, Written(plan, heads[plan.destination.name])) for plan in plans]


def _write_drafts(
    remote: Remote, plans: Iterable[DestinationPlan], config_seconds: int, sources: Iterable[NewCommit]
) -> dict[str, dict[str, CommitId]]:
    commits: list[NewCommit] = []
    last: dict[tuple[str, str], int] = {}
    for plan in plans:
        for grow in grows(plan):
            commits += _chain(remote, plan.destination, grow, len(commits), config_seconds)
            last[plan.destination.name, grow.branch] = len(commits) - 1
    # one stream for both: states name the trees of the sources
    ids = remote.mirror.write([*commits, *sources])
    heads: dict[str, dict[str, CommitId]] = {plan.destination.name: {} for plan in plans}
    for (name, branch), index in last.items():
        heads[name][branch] = ids[index]
    return heads


def _chain(
    remote: Remote, destination: Destination, grow: Grow, first: int, config_seconds: int
) -> Iterator[NewCommit]:
    parent: CommitId | int = grow.start
    seconds = max(remote.commit(grow.start).seconds, config_seconds)
    if grow.sync:
        yield _merge_of(remote, destination, grow.start, grow.sync, seconds)
        parent, first = first, first + 1
    for index, step in enumerate(grow.steps):
        seconds = max(seconds, step.seconds)
        beside = (Put(*grow.metadata),) if grow.metadata else ()
        yield NewCommit((parent,), (*_changes(remote, destination, step), *beside), step.message, seconds)
        parent = first + index


def _merge_of(remote: Remote, destination: Destination, head: CommitId, sync: Sync, seconds: int) -> NewCommit:
    """Return a pure merge: a tree that "Rebase and merge" comes to as well (git.md finding 5)."""
    moved = remote.moves(sync.since, sync.commit, head)
    changes = tuple(Graft(path, entry.id, entry.mode) if entry else Drop(path) for path, entry in moved)
    seconds = max(seconds, remote.commit(sync.commit).seconds)
    return NewCommit((head, sync.commit), changes, sync_message(destination), seconds)


def _changes(remote: Remote, destination: Destination, step: Step) -> Iterator[Change]:
    path, status = destination.path(step.package), destination.status_path(step.package)
    match step.content:
        case FileTree():
            yield Drop(path)
            yield from (Put(f"{path}/{name}", file.data, file.mode) for name, file in step.content.items())
            yield from (Graft(f"{path}/{name}", one.id, one.mode) for name, one in step.content.special.items())
        case None:
            yield Drop(path)
        case tree:
            yield Graft(path, tree)
    match step.status:
        case None:
            yield Drop(status)
        case bytes():
            yield Put(status, step.status)
        case blob:
            yield Put(status, remote.blob(blob))


def _with_heads(plan: DestinationPlan, heads: Mapping[str, CommitId]) -> DestinationState:
    drafts = dict(plan.after.drafts)
    for grow in grows(plan):
        removes = grow.branch in plan.heads.removals
        # a pull request follows its branch; a closed one does not come back
        known = drafts.get(grow.branch) if grow.branch not in plan.heads.closed else None
        request = known.request if known else None
        drafts[grow.branch] = DraftBranch(heads[grow.branch], grow.base, grow.edited, removes, request)
    return replace(plan.after, drafts=drafts)


def _sources(plans: Iterable[DestinationPlan], source_of: Mapping[TreeId, FileTree]) -> list[NewCommit]:
    # a source that fans out to a fleet is written once; every state only names it
    new = {tree for plan in plans for tree in plan.after.trees() - plan.before.trees() if tree in source_of}
    contents = [source_of[tree] for tree in sorted(new)]
    return [NewCommit((), tuple(_puts(files)), "source", UNDATED_SECONDS, fresh=True) for files in contents]


def _puts(files: FileTree) -> Iterator[Put]:
    return (Put(path, file.data, file.mode) for path, file in files.items())


def write_states(
    remote: Remote, states: Sequence[tuple[Destination, DestinationState]], state_ref: str
) -> list[CommitId]:
    """Write the commits of states; the trees that they name must be in the mirror.

    Each has the files of the one that stands there, but for those that differ: a package that did not move costs
    nothing. Equal states give equal commits all the same.
    """
    refs = [state_ref.format(repository=one.name) for one, _ in states]
    remote.read_commits_ahead(remote.refs[ref] for ref in refs if ref in remote.refs)
    changes = [tuple(_state_changes(remote, state, ref)) for (_, state), ref in zip(states, refs, strict=True)]
    commits = remote.mirror.write(
        [
            NewCommit((), change, state_message(one), UNDATED_SECONDS, fresh=True)
            for (one, _), change in zip(states, changes, strict=True)
        ]
    )
    for commit, (_, state) in zip(commits, states, strict=True):
        # who notes more in it before the pass ends need not read it
        remote.know_state(commit, state)
    return commits


def _state_changes(remote: Remote, state: DestinationState, ref: str) -> Iterator[Change]:
    """Yield what makes the tree of a state, out of the one that stands there if any does."""
    standing = remote.refs.get(ref)
    if standing is None:
        yield from (Put(path, content) for path, content in sorted(write_state(state).items()))
        yield from _kept_trees(state.trees())
        return
    known = remote.state(standing)
    yield Graft("", remote.commit(standing).tree)
    files = sorted(written_anew(state, known).items())
    yield from (Drop(path) for path, content in files if content is None)
    yield from (Put(path, content) for path, content in files if content is not None)
    yield from (Drop(f"trees/{tree}") for tree in sorted(known.trees() - state.trees()))
    yield from _kept_trees(state.trees() - known.trees())


def _kept_trees(trees: Iterable[TreeId]) -> Iterator[Graft]:
    return (Graft(f"trees/{tree}", tree) for tree in sorted(trees))


def push_states(
    remote: Remote, states: Sequence[tuple[Destination, DestinationState]], state_ref: str
) -> Mapping[str, Outcome]:
    """Write and push states alone, each only onto the one that was read; return what became of each, by destination."""
    commits = write_states(remote, states, state_ref)
    refs = [state_ref.format(repository=one.name) for one, _ in states]
    moves = [RefUpdate(ref, commit, remote.refs.get(ref)) for ref, commit in zip(refs, commits, strict=True)]
    units = [PushUnit(one.name, (move,)) for (one, _), move in zip(states, moves, strict=True)]
    return remote.mirror.push(units).outcomes


def push_all(
    mirror: Mirror, written: Sequence[Written], state_ref: str, announce: Announce = lambda plan: (), leave: int = 0
) -> dict[str, Outcome]:
    """Push one remote's destinations: new cluster branches in a push of their own, then drafts with their states.

    `announce` gives the push options that go with a destination's drafts, by which its host opens a pull request;
    `leave` of the pushes of a minute are left for others.
    """
    outcomes: dict[str, Outcome] = {}
    new = [one for one in written if one.plan.heads.absent and grows(one.plan)]
    if new:
        root = mirror.root_commit()
        # destinations in directories of their own may share a branch, which is made once
        branches = {one.name: one.plan.destination.branch for one in new}
        unique = dict.fromkeys(branches.values())
        first = mirror.push([PushUnit(branch, (RefUpdate(HEADS + branch, root, None),)) for branch in unique], leave)
        outcomes = {name: end for name, branch in branches.items() if not isinstance(end := first[branch], Done)}
    refs = mirror.refs()
    units = [
        unit for one in written if one.name not in outcomes and (unit := _unit(refs, one, state_ref, announce)).updates
    ]
    if units:
        report = mirror.push(units, leave)
        outcomes |= {unit.name: report[unit.name] for unit in units}
    return {one.name: outcomes.get(one.name, Done()) for one in written}


def _unit(refs: Mapping[str, CommitId], one: Written, state_ref: str, announce: Announce) -> PushUnit:
    plan = one.plan
    updates = [RefUpdate(HEADS + grow.branch, one.heads[grow.branch], grow.old) for grow in grows(plan)]
    for layout in plan.layouts:
        if isinstance(layout, End | Rest):
            left = layout.commit if isinstance(layout, Rest) else None
            updates.append(RefUpdate(HEADS + layout.branch, left, layout.old))
            if layout.branch in plan.heads.proposed:
                updates.append(RefUpdate(proposed_ref(layout.branch), None, plan.heads.proposed[layout.branch]))
    updates += [RefUpdate(kept_ref(state_ref, one.name, head), head, None) for head in plan.kept]
    if one.state_commit:
        ref = state_ref.format(repository=one.name)
        updates.append(RefUpdate(ref, one.state_commit, refs.get(ref)))
    return PushUnit(one.name, tuple(updates), announce(plan) if grows(plan) else ())


def kept_ref(state_ref: str, name: str, head: CommitId) -> str:
    """Return the ref that keeps a head with people's work; a branch, where the host allows only branches (git.md 3)."""
    start = HEADS if state_ref.startswith(HEADS) else "refs/"
    return f"{start}reconciler/kept/{name}/{head[:12]}"


def proposed_ref(draft: str) -> str:
    """Return the ref that proposes a draft branch: `proposed/` in place of `drafts/` (git.md 3)."""
    return f"{HEADS}proposed/{draft.removeprefix('drafts/')}"


def describe(outcome: Outcome) -> str:
    """Return what became of a push, in words."""
    match outcome:
        case Done():
            return "done"
        case Lost(ref):
            return f"another writer moved {ref}"
        case Refused(words):
            return f"the host refused the push: {words}"
        case Failed(error):
            return error.told
        case Postponed(why):
            return why
