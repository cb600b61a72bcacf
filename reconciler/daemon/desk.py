"""The desk of one pass: what it has at hand to plan each destination, contents by tree id among it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property

from reconciler.daemon.ahead import Ahead
from reconciler.daemon.codes import REPOSITORY_UNREACHABLE
from reconciler.daemon.config import ConfigSnapshot
from reconciler.daemon.isolation import repository_boundary
from reconciler.daemon.publish import HEADS, Written, proposed_ref
from reconciler.daemon.recollection import Known, Recollection
from reconciler.daemon.remotes import DestinationObjects, Remote, Remotes
from reconciler.daemon.request_board import Said
from reconciler.daemon.states import read_branches_ahead, read_state
from reconciler.daemon.tools import Tools
from reconciler.executors.port import Orders
from reconciler.gitio.errors import GitError, InternalGitError, ObjectMissingError, TooLargeError, TreeMalformedError
from reconciler.krm.codes import internal_error
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import InternalFailure
from reconciler.packages.functions.facts import is_function
from reconciler.planning.branches import Layout
from reconciler.planning.claims import Claims, Unready
from reconciler.planning.codes import CONFIG_HISTORY_REPLACED
from reconciler.planning.decide import Render
from reconciler.planning.destination import Destination, draft_branch
from reconciler.planning.fleet import DestinationPlan, FleetPlan
from reconciler.planning.ingredients import PackageMalformedError, TooLargeToReadError
from reconciler.planning.last_mile import LastMile
from reconciler.planning.left import left_by
from reconciler.planning.outcome import Rendered
from reconciler.planning.plan import Decided, decide_destination, new_state, plan_destination
from reconciler.planning.promoter import for_promoter, is_resting, metadata_path, proposed_branch
from reconciler.planning.recorded import Elsewhere, arrived, decide_as_recorded, departing, unwritten
from reconciler.planning.render import Renderer
from reconciler.planning.resets import empty_finding, reset_finding
from reconciler.planning.rollouts import Progresses, Rollouts, with_rollouts
from reconciler.planning.source import Ingredients
from reconciler.planning.standing import Heads, removal_names
from reconciler.planning.state import DestinationState
from reconciler.planning.survey import ConfigOrigin, Surveyed, Workshop, has_moved, survey
from reconciler.planning.tags import missing_tags, tag_start
from reconciler.planning.unmoved import comes_to_the_same
from reconciler.planning.wanted import Wanted
from reconciler.reporting.hydrator_metadata import metadata_file
from reconciler.rules.clusters.model import Cluster
from reconciler.rules.guards import acknowledged
from reconciler.rules.overrides.read_policy import Policies
from reconciler.rules.variant import RoomResult, Upstream, Variant
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE, PORCH_GROUP, Catalog
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import UNDATED_SECONDS, BlobId, CommitId, TreeId

_UNREAD = "; its result is based on what was last read of it, and a sync would leave it alone"

_KINDS = ("Repository", "PackageVariant", "PackageVariantSet")
_OWNERS = {(PORCH_GROUP, "PackageVariant"), (PORCH_GROUP, "PackageVariantSet")}


class Desk:
    """What one pass has at hand while it plans."""

    def __init__(
        self,
        snapshot: ConfigSnapshot,
        catalog: Catalog,
        remotes: Remotes,
        tools: Tools,
        room: RoomResult,
        wanted: Wanted,
        now: int,
        decide: Callable[[Surveyed, Workshop], Decided] = decide_destination,
        recollection: Recollection | None = None,
        elsewhere: Sequence[Destination] = (),
    ) -> None:
        self.snapshot = snapshot
        self._catalog = catalog
        self._remotes = remotes
        self._tools = tools
        self._room = room
        self._now = now
        self._decide_on = decide
        self._writer = tools.writer(snapshot.id)
        self._render = tools.renderer(catalog)
        self._tagging = tools.tagging(catalog)
        self._told_by_tags: set[str] = set()
        self._roots: dict[str, CommitId] = {}
        self._wanted = wanted
        # of an object that stands there twice nobody knows what it wants, but it is there (design 10.2)
        self._unplaced = frozenset(self._wanted.stalled | room.kept | catalog.duplicates)
        self.sources_read: dict[TreeId, FileTree] = {}
        self.renders = 0
        self.failures: list[InternalFailure] = []
        self.rollouts = Rollouts()
        self._clusters: dict[str, Surveyed | None] = {}
        self._decided: dict[ObjectKey, Decided] = {}
        self._states_read: dict[ObjectKey, CommitId | None] = {}
        # while rules come in waves, each cluster depends on all others
        self._recollection = recollection if not self._render.last_mile.rollouts else None
        if self._recollection:
            self._recollection.ask(self._render.answers, self.function)
        # of other shards: each is surveyed when somebody asks what it has
        self._elsewhere = {(one.key.namespace, one.name): one for one in elsewhere}
        self._seen_elsewhere: dict[ObjectKey, Surveyed | DestinationPlan] = {}

    def tell(self, stage: str, done: int, total: int) -> None:
        """Say how far the pass is."""
        self._tools.progress(stage, done, total)

    def remote(self, url: str) -> Remote | None:
        """Return a destination's remote; one that does not exist yet is empty where that is asked for."""
        if self._tools.missing_is_empty:
            return self._remotes.even_if_missing(url)
        return self._remotes.get(url)

    def note_heads(self, plans: Iterable[DestinationPlan]) -> None:
        """Note the heads of branches as this pass leaves them, for passes that find neither branch nor state."""
        for plan in plans:
            one, remote = plan.destination, self.remote(plan.destination.url)
            if remote and not plan.findings and (head := remote.refs.get(HEADS + one.branch)):
                self._tools.known_heads.note(one, head)

    @property
    def state_ref(self) -> str:
        """Where states stand, with `{repository}` in it."""
        return self._tools.state_ref

    @property
    def policies(self) -> Policies:
        """The override policies of the config."""
        return self._render.last_mile.policies

    @property
    def renderer(self) -> Renderer:
        """Who renders the packages of this pass, as far as rollouts have been looked at."""
        return self._render

    @property
    def clusters(self) -> Mapping[str, Cluster]:
        """The clusters of the config, by name."""
        return self._render.last_mile.clusters

    def contents(self, destination: Destination, tree: TreeId) -> FileTree:
        """Return the files of a tree that was planned with. Raises TooLargeToReadError, GitError."""
        remote = self.remote(destination.url)
        assert remote, "what cannot be read is not planned for"
        return _Sources(self, remote).standing(tree)

    def file(self, destination: Destination, blob: BlobId) -> bytes:
        """Return a file of a destination by its id. Raises GitError."""
        remote = self.remote(destination.url)
        assert remote, "what cannot be read is not planned for"
        return remote.blob(blob)

    def as_of(self) -> int:
        """Return the latest date among the commits that were read; 2000-01-01 where none has one (design 10.13)."""
        dates = [variant.source.committer_seconds for variant in self._room.variants]
        return max([self.snapshot.seconds, *dates]) or UNDATED_SECONDS

    def plan(self, destinations: Sequence[Destination], others: Iterable[DestinationPlan]) -> list[DestinationPlan]:
        """Return the plans of destinations; what cannot be read of one spoils it alone (tenet 6).

        `others` are planned already. First comes what is wanted, everywhere: only then can be said what may go.
        """
        stays = {one.key: plan for one in destinations if (plan := self._left_before(one))}
        moved = [one for one in destinations if one.key not in stays]
        if stays:
            # of what is recollected nothing was read so far
            read_branches_ahead(moved, self._remotes, self._tools.state_ref)
        surveyed = [self._survey(destination) for destination in moved]
        if self._render.last_mile.rollouts:
            for other in self._elsewhere.values():
                self._look_elsewhere(other)
        try:
            with repository_boundary("the rollouts of override policies"):
                self._look_at_rollouts()
        except InternalGitError as error:
            # Without the open waves, no package of any cluster can be rendered.
            surveyed = [_left_alone(one, _trouble(one, error)) for one in moved]
        decided = []
        ahead = Ahead(self._tools.executor, self._orders, self._decided_by, self._counted, self._taken)
        for index, one in enumerate(ahead.decided(surveyed)):
            self.tell("planning", len(stays) + index, len(destinations))
            decided.append(one)
        self.tell("planning", len(destinations), len(destinations))
        self._decided |= {one.destination.key: one for one in decided if isinstance(one, Decided)}
        settled = (*(one.reconciled for one in (*others, *stays.values(), *decided)), self._arrived_elsewhere(decided))
        reconciled: frozenset[ObjectKey] = frozenset().union(*settled)
        planned = {one.destination.key: self._finish(one, reconciled) for one in decided}
        return [stays.get(one.key) or planned[one.key] for one in destinations]

    def _left_before(self, destination: Destination) -> DestinationPlan | None:
        """Return the plan that the last pass left a destination with, if planning would come to it again."""
        try:
            with repository_boundary(destination.title):
                remote = self.remote(destination.url)
                if not self._recollection or remote is None or destination.key in self._conflicts:
                    return None
                return self._recollection.plan(destination, remote.refs, self._claims(destination), self._said_of)
        except InternalGitError as error:
            # Planning it again does the same work and reports what is wrong with it.
            self.failures.append(error.failure)
            return None

    def _said_of(self, known: Known) -> Said:
        """Return what pull requests say today of a destination as it was left."""
        one, after = known.destination, known.left.plan.after
        remote = self.remote(one.url)
        refs = remote.refs if remote else {}
        heads = {name: commit for name in after.drafts if (commit := refs.get(HEADS + name))}
        return self._tools.requests.board.said(one, after, heads)

    def has_planned(self, destination: Destination) -> bool:
        """Return whether this pass has planned for a destination, or tried to, and did not go by the last one."""
        return destination.key in self._states_read

    def left(self, plan: DestinationPlan, written: Written | None) -> Known | None:
        """Return a destination as it is left when its plan was carried out; None where the next pass has to look.

        Where GitOps Promoter looks, drafts name the commit of the config, and every pass looks.
        """
        one, remote = plan.destination, self.remote(plan.destination.url)
        decided = self._decided.get(one.key)
        if (
            decided is None
            or remote is None
            or (self.snapshot.dry and proposed_branch(one, self._tools.draft_template))
        ):
            return None
        state = written.state if written and written.state else plan.before
        commit = written.state_commit if written and written.state_commit else self._states_read[one.key]
        state_ref = self._tools.state_ref.format(repository=one.name)
        left = left_by(decided, plan, state, self._render.answers)
        if left is None or remote.refs.get(state_ref) != commit:
            return None
        names = self._branch_names(one, state, decided.claims)
        watched = (HEADS + one.branch, state_ref, *(HEADS + name for name in names), *map(proposed_ref, names))
        refs = {name: remote.refs.get(name) for name in watched}
        heads = self._heads(one, remote, state, decided.claims)
        left = replace(left, plan=replace(left.plan, heads=heads))
        return Known(one, left, refs, self._tools.requests.board.said(one, state, heads.drafts), commit)

    def plan_elsewhere(self, plans: Iterable[DestinationPlan]) -> Elsewhere:
        """Return the plans of other shards' destinations as far as they are recorded; `plans` are all of this shard.

        Nothing is rendered for them, and nothing of them is to be written.
        """
        decided: list[Decided | DestinationPlan] = []
        awaited: set[ObjectKey] = set()
        for surveyed in map(self._look_elsewhere, self._elsewhere.values()):
            one, waiting = self._decide_elsewhere(surveyed)
            decided.append(one)
            awaited |= waiting
        reconciled: frozenset[ObjectKey] = frozenset().union(*(one.reconciled for one in (*plans, *decided)))
        return Elsewhere(tuple(unwritten(self._finish(one, reconciled)) for one in decided), frozenset(awaited))

    def _decide_elsewhere(
        self, surveyed: Surveyed | DestinationPlan
    ) -> tuple[Decided | DestinationPlan, frozenset[ObjectKey]]:
        if isinstance(surveyed, DestinationPlan):
            return surveyed, frozenset()
        try:
            with repository_boundary(surveyed.destination.title):
                return decide_as_recorded(surveyed, replace(surveyed.shop, answers=self._render.answers))
        except GitError as error:
            return _left_alone(surveyed.destination, _trouble(surveyed.destination, error)), frozenset()

    def _look_elsewhere(self, destination: Destination) -> Surveyed | DestinationPlan:
        if destination.key not in self._seen_elsewhere:
            self._seen_elsewhere[destination.key] = self._survey(destination)
        return self._seen_elsewhere[destination.key]

    def _arrived_elsewhere(self, decided: Iterable[Decided | DestinationPlan]) -> frozenset[ObjectKey]:
        """Return the owners, of those who leave a place here, that have their package with another shard already."""
        homes = (place for owner in departing(decided) for place in self._wanted.homes.get(owner, ()))
        near = (self._elsewhere.get((home.namespace, home.repository)) for home in homes)
        found = {one.key: one for one in near if one}
        return frozenset(owner for one in found.values() for owner in arrived(self._look_elsewhere(one)))

    def plan_beside(
        self, destinations: Sequence[Destination], other: Desk, plans: Iterable[DestinationPlan]
    ) -> list[DestinationPlan]:
        """Return the plans of destinations; `plans` are those of another config over the same remotes, by its desk.

        What comes to the same by both is not decided again. Where rules come in waves, all of it is.
        """
        if self._render.last_mile.rollouts or other._render.last_mile.rollouts:
            return self.plan(destinations, ())
        known = {one.destination.key: one for one in plans}
        same = {
            one.key: replace(known[one.key], destination=one, tags=())
            for one in destinations
            if one.key in known and self._comes_to_the_same(one, other)
        }
        planned = self.plan([one for one in destinations if one.key not in same], same.values())
        found = {**same, **{one.destination.key: one for one in planned}}
        return [found[one.key] for one in destinations]

    def _comes_to_the_same(self, destination: Destination, other: Desk) -> bool:
        known = other._decided.get(destination.key)
        if known is None or replace(known.destination, where=destination.where) != destination:
            return False
        clashes = (destination.key in self._conflicts, destination.key in other._conflicts)
        return not any(clashes) and comes_to_the_same(known, self._claims(destination), self._render.answers)

    def look(self, destination: Destination, others: Iterable[Destination]) -> Surveyed | DestinationPlan:
        """Return one destination ready to be decided; only where rules come in waves, the others are looked at."""
        found = self._survey(destination)
        if self._render.last_mile.rollouts:
            for one in others:
                if one.deployment and one != destination:
                    self._survey(one)
            self._look_at_rollouts()
        if isinstance(found, DestinationPlan):
            return found
        return replace(found, shop=replace(found.shop, answers=self._render.answers))

    def _finish(self, decided: Decided | DestinationPlan, reconciled: frozenset[ObjectKey]) -> DestinationPlan:
        if isinstance(decided, DestinationPlan):
            return decided
        try:
            with repository_boundary(decided.destination.title):
                plan = plan_destination(decided, reconciled)
                tags = missing_tags(plan.destination, plan.after, self._tagging)
                return replace(plan, tags=tags, layouts=self._for_promoter(plan))
        except GitError as error:
            return _left_alone(decided.destination, _trouble(decided.destination, error))

    def _for_promoter(self, plan: DestinationPlan) -> tuple[Layout, ...]:
        # a plain folder has no commit that a draft could name
        dry = self.snapshot.dry
        if dry is None:
            return plan.layouts
        return for_promoter(plan, self._tools.draft_template, self._metadata)

    @cached_property
    def _metadata(self) -> bytes:
        assert self.snapshot.dry, "only a commit is named"
        return metadata_file(self.snapshot.dry)

    def _survey(self, destination: Destination) -> Surveyed | DestinationPlan:
        self._states_read[destination.key] = None
        try:
            with repository_boundary(destination.title):
                found = self._surveyed(destination)
        except GitError as error:
            found = _left_alone(destination, _trouble(destination, error))
        if destination.deployment:
            self._clusters[destination.name] = found if isinstance(found, Surveyed) else None
        return found

    def _look_at_rollouts(self) -> None:
        """Find out how far rules have come, of what all clusters have published: only then can be rendered."""
        mile = self._render.last_mile
        if mile.rollouts:
            found = (one for one in self._clusters.values() if one)
            since = {one.destination.name: self._published_since(one) for one in found}
            progresses = Progresses(self._clusters, self._render.answers, mile, since)
            self.rollouts = progresses.rollouts(self._now)
            self.failures += progresses.failures
            self._render = replace(self._render, last_mile=with_rollouts(mile, self.rollouts))

    def _published_since(self, surveyed: Surveyed) -> Mapping[str, int]:
        one, packages = surveyed.destination, surveyed.ground.state.packages
        # what people change of it afterwards is not published anew
        there = {package: str(record.ours.rendered) for package, record in packages.items() if record.ours}
        # a cache that knows nothing, as on a runner that starts afresh every time, must not hold a rollout up for ever
        return self._tools.published.look(f"{one.repository_id} {one.name}", there, self._now, start=0)

    def _decided_by(self, surveyed: Surveyed, render: Render) -> Decided | DestinationPlan:
        try:
            with repository_boundary(surveyed.destination.title):
                return self._decide_on(surveyed, replace(surveyed.shop, answers=self._render.answers, render=render))
        except GitError as error:
            return _left_alone(surveyed.destination, _trouble(surveyed.destination, error))

    def _orders(self) -> Orders:
        """Return what the renders of this pass go by."""
        mile, templating = self._render.last_mile, self._render.templating
        # without what has been worked out of it here
        plain = LastMile(mile.policies, mile.clusters, mile.options, mile.closed, mile.strict)
        return Orders(
            self.snapshot.files, plain, templating.rules, templating.options, self.snapshot.unreadable,
            self._catalog.doubts, self._catalog.settlement,
        )  # fmt: skip

    def _surveyed(self, destination: Destination) -> Surveyed | DestinationPlan:
        remote = self.remote(destination.url)
        clash = self._conflicts.get(destination.key)
        if clash or remote is None:
            finding = clash or self._unreachable(destination)
            return _left_alone(destination, finding)
        state = read_state(destination, remote, self._tools.state_ref) or new_state(destination)
        self._states_read[destination.key] = remote.refs.get(self._tools.state_ref.format(repository=destination.name))
        if isinstance(state, Finding):
            return _left_alone(destination, state)
        claims = self._claims(destination)
        heads = self._heads(destination, remote, state, claims)
        if self._states_read[destination.key] is None and heads.absent and (reset := self._reset(destination, remote)):
            return _left_alone(destination, reset)
        if not (state.packages or heads.absent):
            self._bring_tags(destination.url, remote)
        shop = Workshop(
            self._render.answers, _Sources(self, remote), self._counted, self._writer,
            self._tools.draft_template, self.snapshot.seconds, self._tools.removal_template, self._render.templating,
            self._origin,
        )  # fmt: skip
        proposed = proposed_branch(destination, self._tools.draft_template)
        besides = metadata_path(destination, proposed) if proposed else None
        objects = DestinationObjects(remote, destination, besides)
        found = survey(destination, claims, state, heads, objects, shop, self._head_before_move(destination, state))
        if self._recollection and isinstance(found, Surveyed):
            settled = self._recollection.settled(destination, remote.refs, claims, self._said_of)
            return replace(found, settled=settled)
        return found

    @cached_property
    def _origin(self) -> ConfigOrigin:
        lineage = self.snapshot.lineage
        # while the history is in doubt, state keeps the one that it knows
        is_in_doubt = any(one.code == CONFIG_HISTORY_REPLACED.name for one in self._catalog.doubts)
        return ConfigOrigin(self.snapshot.directory, "" if is_in_doubt or lineage is None else lineage.root)

    @cached_property
    def _conflicts(self) -> Mapping[ObjectKey, Finding]:
        return self._tools.conflicts(self._catalog)

    def _reset(self, destination: Destination, remote: Remote) -> Finding | None:
        """Return the error of a target without branch and state, if it had a branch, or if others in it had one."""
        if destination.url in self._remotes.failures:
            # nothing is known about what is there now
            return None
        if self._tools.known_heads.find(destination):
            return self._unacknowledged(destination)
        # a commit in an emptied repository would be in the way of who restores it
        is_held = not remote.refs and any(
            self._unacknowledged(one)
            for one in self._tools.destinations(self._catalog)
            if one.repository_id == destination.repository_id
        )
        return empty_finding(destination) if is_held else None

    def _head_before_move(self, destination: Destination, state: DestinationState) -> CommitId | None:
        """Return the last known head at the URL that a target had before, if it has another one now."""
        if not has_moved(destination, state):
            return None
        known = self._tools.known_heads.find(destination)
        is_before = known and known.branch == destination.branch and known.repository != destination.repository_id
        return known.head if known and is_before else None

    def _unacknowledged(self, destination: Destination) -> Finding | None:
        known = self._tools.known_heads.find(destination)
        written = self._catalog.get(destination.key)
        return reset_finding(destination, known, written.annotations if written else {}) if known else None

    def _unreachable(self, destination: Destination) -> Finding:
        return _trouble(destination, self._remotes.failures.get(destination.url))

    def _claims(self, destination: Destination) -> Claims:
        here = (destination.key.namespace, destination.name)
        written = self._catalog.get(destination.key)
        return Claims(
            self._wanted.at.get(here, ()), self._alive, self._unplaced, self._is_whole,
            self._wanted.stalled_at.get(here, frozenset()), self._wanted.homes, self._wanted.spreading,
            self._room.guards, self._wanted.dependents.get(here, {}), self._alike, self._is_ownerless,
            self._unready, acknowledged(written.annotations) if written else frozenset(),
            self._tools.max_delete_percent,
        )  # fmt: skip

    @cached_property
    def _unready(self) -> Unready:
        places = {(one.place.repository, one.place.package): one.owner.key for one in self._room.stalled if one.place}
        found = [key for key in sorted(self._unplaced) if (key.group, key.kind) in _OWNERS]
        copies = (self._catalog.copies.get(key) or (self._catalog.get(key),) for key in found)
        objects = tuple(one for each in copies for one in each if one)
        others = frozenset(key for key in self._unplaced if (key.group, key.kind) not in _OWNERS)
        packages = {package: one.owner.key for one in self._room.stalled for package in one.packages}
        return Unready(places, objects, others, packages)

    @cached_property
    def _alive(self) -> Set[ObjectKey]:
        return self._wanted.homes.keys() | self._unplaced if self._unplaced else self._wanted.homes.keys()

    @cached_property
    def _is_whole(self) -> bool:
        return self._catalog.is_whole

    @cached_property
    def _alike(self) -> Mapping[tuple[str, str], ObjectKey]:
        found = (key for key in self._catalog.objects if _is_unknown(key))
        return {(key.namespace or DEFAULT_NAMESPACE, key.name): key for key in found}

    @cached_property
    def _is_ownerless(self) -> bool:
        written = {*self._catalog.objects, *self._catalog.duplicates}
        return not self._alive and not any((key.group, key.kind) in _OWNERS for key in written)

    def _heads(self, destination: Destination, remote: Remote, state: DestinationState, claims: Claims) -> Heads:
        refs = remote.refs
        removals = removal_names(self._tools.removal_template, destination, state)
        names = self._branch_names(destination, state, claims)
        branch = refs.get(HEADS + destination.branch)
        mine = proposed_branch(destination, self._tools.draft_template) if self.snapshot.dry else None
        names |= {mine} if mine else set()
        drafts = {name: refs[HEADS + name] for name in names if HEADS + name in refs}
        rests = mine is not None and is_resting(drafts.get(mine), branch, state.seen)
        resting = drafts.pop(mine) if mine and rests else None
        proposed = {name: refs[proposed_ref(name)] for name in names if proposed_ref(name) in refs}
        said = self._tools.requests.board.said(destination, state, drafts)
        return Heads(
            branch or self._root(remote), branch is None, drafts, proposed, removals, said.held, said.closed, resting
        )

    def _branch_names(self, destination: Destination, state: DestinationState, claims: Claims) -> set[str]:
        """Return the names of all branches that drafts of a destination have, or may get."""
        packages = {*(one.place.package for one in claims.variants), *state.packages}
        names = {draft_branch(self._tools.draft_template, destination, package) for package in packages}
        return names | set(state.drafts) | removal_names(self._tools.removal_template, destination, state)

    def _bring_tags(self, url: str, remote: Remote) -> None:
        """Bring in one go what tags tell of all destinations of a remote that nobody remembers (planning/recovery)."""
        if url in self._told_by_tags:
            return
        self._told_by_tags.add(url)
        refs, state_ref = remote.refs, self._tools.state_ref
        near = (one for one in self._tools.destinations(self._catalog) if one.url == url)
        blank = (
            one for one in near if HEADS + one.branch in refs and state_ref.format(repository=one.name) not in refs
        )
        remote.bring_tags(
            tag_start(one, variant.place.package)
            for one in blank
            for variant in self._wanted.at.get((one.key.namespace, one.name), ())
        )

    def _root(self, remote: Remote) -> CommitId:
        url = remote.mirror.url
        if url not in self._roots:
            self._roots[url] = remote.mirror.root_commit()
        return self._roots[url]

    def _counted(self, variant: Variant, made: Ingredients) -> Rendered:
        self.renders += 1
        return self._render(variant, made)

    def _taken(self, rendered: Rendered) -> Rendered:
        """Take note of a render that was done elsewhere."""
        self.renders += 1
        for name in filter(is_function, rendered.trace):
            # a pass has to know all functions that anything depends on
            self._tools.functions.identity(name)
        return rendered

    def upstream_files(self, upstream: Upstream, destination: Remote) -> FileTree:
        """Return an upstream package's files, and remember them for the state that will name them by their tree.

        What a reference has moved away from may be gone there; the state of a destination keeps what it was made of.
        """
        remote = self._remotes.upstream(upstream.url)
        if remote is None:
            # it could be read when the pass began
            raise self._remotes.failures[upstream.url]
        try:
            files = _read_files(remote, upstream.tree)
        except ObjectMissingError:
            files = _read_files(destination, upstream.tree)
        self.sources_read[files.id] = files
        return files

    def lock_tree(self, files: FileTree) -> TreeId | None:
        """Return the upstream tree that a Kptfile's lock names."""
        return self._tools.lock_tree(files, self._catalog, self._remotes)

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        """Return whether an upstream's commit is in the history of another; False when that one is gone."""
        remote = self._remotes.upstream(upstream.url)
        return remote is not None and remote.is_behind(upstream.commit, commit)

    def function(self, name: str) -> str:
        """Return what a function outside this process is today."""
        return self._tools.functions.identity(name)


def _is_unknown(key: ObjectKey) -> bool:
    """Return whether nothing reads an object that looks like one which owns packages."""
    if key.group == PORCH_GROUP:
        return key.kind not in _KINDS
    return key.kind in _KINDS and key.kind != "Repository"


def _trouble(destination: Destination, error: GitError | None, more: str = "") -> Finding:
    if isinstance(error, InternalGitError):
        return internal_error(error.failure, destination.where)
    why = error.told if error else "it was not fetched"
    return REPOSITORY_UNREACHABLE.finding(f"{destination.title}: {why}{more}", destination.where)


def unread(plan: FleetPlan, remotes: Remotes) -> tuple[Finding, ...]:
    """Return an error for each destination that was planned for although it could not be read."""
    planned = (one.destination for one in plan.destinations if not one.findings)
    return tuple(finding for one in planned for finding in unread_of(one, remotes))


def unread_of(destination: Destination, remotes: Remotes) -> tuple[Finding, ...]:
    """Return an error for a destination that could not be read, so that a result about it is only a guess."""
    failure = remotes.failures.get(destination.url)
    return (_trouble(destination, failure, _UNREAD),) if failure else ()


def _left_alone(destination: Destination, finding: Finding) -> DestinationPlan:
    state = new_state(destination)
    return DestinationPlan(destination, Heads(), state, state, findings=(finding,))


class _Sources:
    """Contents of trees for one destination."""

    def __init__(self, desk: Desk, remote: Remote) -> None:
        self._desk = desk
        self.lock_tree = desk.lock_tree
        self.function = desk.function
        self._read = desk.sources_read
        self._remote = remote

    def upstream(self, upstream: Upstream) -> FileTree:
        """Return an upstream package's files."""
        return self._desk.upstream_files(upstream, self._remote)

    def is_behind(self, upstream: Upstream, commit: CommitId) -> bool:
        """Return whether an upstream's commit is in the history of another."""
        return self._desk.is_behind(upstream, commit)

    def keep(self, files: FileTree) -> TreeId:
        """Remember a tree that state will name."""
        self._read.setdefault(files.id, files)
        return files.id

    def standing(self, tree: TreeId) -> FileTree:
        """Return the files of a tree of the destination, or of a source that was read and is not there yet."""
        return self._read[tree] if tree in self._read else _read_package(self._remote, tree)


def _read_files(remote: Remote, tree: TreeId) -> FileTree:
    """Return an upstream package."""
    with _readable_package():
        return remote.upstream_tree(tree)


def _read_package(remote: Remote, tree: TreeId) -> FileTree:
    """Return a package of a target branch, with local links and submodules, which no upstream package has."""
    with _readable_package():
        return remote.package_tree(tree)


@contextmanager
def _readable_package() -> Iterator[None]:
    """Turn the errors of a tree that cannot be read into errors of its package alone."""
    try:
        yield
    except TooLargeError as error:
        raise TooLargeToReadError(error.message) from error
    except TreeMalformedError as error:
        raise PackageMalformedError(error.message) from error
