"""Removals: what becomes of packages that nothing in the config wants any more (porch 6, design 10.15, git.md 3)."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace

from reconciler.krm.findings import Code, Finding, Where, softened
from reconciler.krm.identity import ObjectKey
from reconciler.planning.branches import End, Grow, Keep, Layout, Step, Wishes, begin_anew, lay_out
from reconciler.planning.claims import Claims
from reconciler.planning.codes import REMOVAL_DECLINED, REMOVAL_PROPOSED, REMOVAL_WAITS
from reconciler.planning.confirmed import is_named_in_finding
from reconciler.planning.destination import are_nested
from reconciler.planning.drafts import as_it_is, put_back
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Held, Leaving
from reconciler.planning.state import DestinationState, DraftBranch, PackageRecord, Removal, Seen
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.guards import ACK_DELETIONS, deletion_hash, exceeds, held_message
from reconciler.rules.variant import Place
from reconciler.rules.variants.naming import TargetKey
from reconciler.snapshot.objects import CommitId, TreeId

_STUCK = (
    "holds people's changes of files that the cluster branch has changed as well, so that it cannot be brought up to"
    " date; merge it or delete it"
)


@dataclass(frozen=True)
class Departures:
    """The packages that nobody wants any more: those that are kept all the same, and those that go."""

    held: tuple[Held, ...] = ()
    leaving: tuple[Leaving, ...] = ()

    def on_drafts(self, ground: Ground) -> frozenset[str]:
        """Return those that are on a draft and must be taken out of it; the drafts of orphans stay (porch 6.2)."""
        going = [one.package for one in self.leaving if one.how != "orphaned"]
        return frozenset(one for one in going if is_on_draft(ground.state.packages[one], ground.look(one)))


def find_departures(ground: Ground, claims: Claims, reconciled: Collection[ObjectKey]) -> Departures:
    """Return what becomes of each owned package that no variant wants; `reconciled` owners have theirs without error.

    What cannot be proved to be unwanted, or is too much at once, is held: nothing of it is touched.
    """
    gone = {
        package: record
        for package, record in ground.state.packages.items()
        if record.owned and not claims.wants(package) and not claims.keeps(record.owner)
    }
    doubt = _doubt(gone, ground, claims)
    found = [_departure(_Gone(package, record, ground, claims), doubt, reconciled) for package, record in gone.items()]
    departures = Departures(
        tuple(one for one in found if isinstance(one, Held)), tuple(one for one in found if isinstance(one, Leaving))
    )
    return _guard_target(departures, gone, ground, claims)


def _guard_target(
    departures: Departures, gone: Mapping[str, PackageRecord], target: Ground, claims: Claims
) -> Departures:
    """Return the departures, with all that would leave the target held where it is too much at once.

    Only published packages count: a withdrawn draft loses nothing. Packages that are confirmed on their set need no
    second confirmation. Records of earlier versions do not have the file of the owner, so that its deletion is not
    proved: those packages always wait for a confirmation.
    """
    leaving = [one for one in departures.leaving if _removes_published(one, target, claims)]
    if not leaving:
        return departures
    name = target.destination.name
    doomed = [TargetKey(name, one.package) for one in leaving]
    records = [target.state.packages[one.package] for one in leaving]
    if _is_confirmed(doomed, records, gone, claims):
        return departures
    counted = [record.outcome.get("onTarget") for record in records]
    published = _published(target)
    total = min([published, *(count for count in counted if count)])
    is_recorded = all(one.sources for one in records)
    if is_recorded and not exceeds(len(doomed), total, claims.max_delete_percent):
        return departures
    title = target.destination.title
    why = held_message(doomed, total, f"published packages of {title}", title)
    if not is_recorded:
        why = f"an earlier version has not recorded the file of its owner, which would prove the deletion; {why}"
    held = [replace(_held_on_target(one, target, why), on_target=total) for one in leaving]
    return Departures((*departures.held, *held), tuple(one for one in departures.leaving if one not in leaving))


def _removes_published(one: Leaving, target: Ground, claims: Claims) -> bool:
    """Return whether this pass removes or orphans a published package without a confirmation."""
    record, key = target.state.packages[one.package], target.destination.key
    if record.removal is not None or one.how not in ("proposed", "orphaned"):
        return False
    guard = claims.guards.get(record.owner.set or record.owner.key)
    is_confirmed = guard is not None and Place(key.namespace, key.name, one.package) in guard.confirmed
    return not is_confirmed and target.at(target.heads.branch, one.package)[0] is not None


def _is_confirmed(
    doomed: Collection[TargetKey], records: Collection[PackageRecord], gone: Mapping[str, PackageRecord], claims: Claims
) -> bool:
    """Return whether the object of the target confirms these removals.

    By their hash, by the hash of all departing packages, or by the hash in the recorded finding of each.
    """
    name = next(iter(doomed)).repo
    everything = [TargetKey(name, package) for package, one in gone.items() if one.removal is None]
    if not claims.acknowledged.isdisjoint({deletion_hash(doomed), deletion_hash(everything)}):
        return True
    return any(all(is_named_in_finding(record, token) for record in records) for token in claims.acknowledged)


def _published(target: Ground) -> int:
    """Return how many packages of the target are published and not on their way out."""
    packages = (package for package, _ in target.state.standing())
    return sum(target.at(target.heads.branch, package)[0] is not None for package in packages)


def _held_on_target(one: Leaving, target: Ground, why: str) -> Held:
    place = f"{target.destination.name}/{one.package}"
    finding = DELETION_HELD.finding(f"package {place} is kept though {one.why}: {why}", target.destination.where)
    return Held(one.package, target.state.packages[one.package], finding)


def _doubt(gone: Mapping[str, PackageRecord], target: Ground, claims: Claims) -> str:
    """Return why it is not proved that anything is gone, or ""."""
    if claims.doubt:
        return f"whether it is still wanted cannot be told: {claims.doubt}"
    new = [TargetKey(target.destination.name, package) for package, one in gone.items() if one.removal is None]
    token = deletion_hash(new)
    if not claims.ownerless or not new or token in claims.acknowledged:
        return ""
    return (
        "the config has nothing at all that wants packages, as if another folder were read; to confirm,"
        f' annotate {target.destination.title} with {ACK_DELETIONS}: "{token}"'
    )


@dataclass(frozen=True)
class _Gone:
    """One package that no variant wants, and all that there is to know of it."""

    package: str
    record: PackageRecord
    ground: Ground
    claims: Claims

    @property
    def place(self) -> str:
        return f"{self.ground.destination.name}/{self.package}"

    @property
    def why(self) -> str:
        """Why it is not wanted."""
        owner = self.record.owner
        if home := self.claims.home(owner):
            return f"{owner.key} wants {home} now"
        if owner.key in self.claims.homes:
            return f"{owner.key} has nothing there any more"
        if owner.set in self.claims.guards:
            return f"{owner.set} does not select it any more"
        return f"{owner.key} is gone"

    def told(self, code: Code, message: str) -> Finding:
        return code.finding(message, Where(object=str(self.record.owner.key)))

    def held(self, code: Code, message: str) -> Held:
        return Held(self.package, self.record, self.told(code, message))


def _departure(one: _Gone, doubt: str, reconciled: Collection[ObjectKey]) -> Held | Leaving:
    if why := doubt or one.claims.look_alike(one.record.owner):
        held = one.held(DELETION_HELD, f"package {one.place} is kept: {why}")
        # what hides the owner is an error of its own; here it is only the consequence
        return replace(held, finding=softened(held.finding)) if one.claims.doubt else held
    seen = one.ground.look(one.package)
    is_there = seen.published is not None or is_on_draft(one.record, seen)
    # what is under way was let go before, and an approved removal is none of the guards' business any more
    if is_there and one.record.removal is None and (held_up := _guarded(one) or _early(one, reconciled)):
        return held_up
    if one.record.deletion == "orphan":
        return Leaving(one.package, one.record.owner, "orphaned", one.record.tombstone(), one.why)
    if is_on_draft(one.record, seen) and (seen.frozen or seen.stuck):
        why = "is proposed" if seen.frozen else "holds people's changes that the cluster branch would undo"
        return one.held(REMOVAL_WAITS, f"{one.why}; package {one.place} waits, because its draft {why}")
    if seen.published is None:
        return Leaving(one.package, one.record.owner, "withdrawn", one.record.tombstone(), one.why)
    return _removal(one, seen.published)


def is_on_draft(record: PackageRecord, seen: Seen) -> bool:
    """Return whether a draft offers the package; what people change of a published one on a draft is theirs."""
    return record.put is not None or (seen.drafted is not None and seen.published is None)


def _guarded(one: _Gone) -> Held | None:
    """Return why the set that made the owner, being there, does not let the package go (porch 11.6)."""
    owner = one.record.owner
    maker = owner.set or owner.key
    guard = one.claims.guards.get(maker)
    destination = one.ground.destination.key
    if guard is None or guard.releases(Place(destination.namespace, destination.name, one.package)):
        return None
    why = guard.why or f"{maker} was not asked about it yet"
    held = one.held(DELETION_HELD, f"package {one.place} is kept though {one.why}: {why}")
    return replace(held, existing=guard.existing)


def _early(one: _Gone, reconciled: Collection[ObjectKey]) -> Held | None:
    """Return why it is too early.

    The new place is not there yet, another owner that is not ready may ask for the package, or the package is the
    upstream of others.
    """
    home, key = one.claims.home(one.record.owner), one.record.owner.key
    if home and key not in reconciled and not _in_each_others_way(one, home.repository, home.package):
        return one.held(REMOVAL_WAITS, f"package {one.place} stays until {key} has its package at {home}")
    owner, destination = one.record.owner, one.ground.destination.key
    place = Place(destination.namespace, destination.name, one.package)
    if claimant := one.claims.unready.claimant(place, owner, is_gone=one.claims.is_gone(owner)):
        message = f"package {one.place} stays though {one.why}: {claimant}, which is not ready, may ask for it"
        return one.held(REMOVAL_WAITS, message)
    if dependent := one.claims.dependents.get(one.package):
        return one.held(REMOVAL_WAITS, f"package {one.place} stays though {one.why}: it is the upstream of {dependent}")
    return None


def _in_each_others_way(one: _Gone, repository: str, package: str) -> bool:
    # the new place cannot be had before the old one is given up
    return repository == one.ground.destination.name and are_nested(package, one.package)


def _removal(one: _Gone, published: TreeId) -> Held | Leaving:
    """Return the removal of a published package: people have to approve it (porch 6.2)."""
    known, owner = one.record.removal, one.record.owner
    rest = replace(one.record, put=None)
    if known and known.declined and known.against == published:
        message = (
            f"the removal of package {one.place} was declined ({one.why});"
            " it is proposed again when the package changes there, or has been wanted in between"
        )
        return Leaving(one.package, owner, "declined", rest, one.why, finding=one.told(REMOVAL_DECLINED, message))
    standing = known.branch if known and not known.declined else ""
    branch = standing or one.ground.removal_branch(one.package)
    if not standing and (fault := _branch_fault(branch, one.ground)):
        return one.held(REMOVAL_WAITS, f"package {one.place} waits for its removal ({one.why}): {fault}")
    message = f"package {one.place} is to be removed, because {one.why}; merging {branch} approves that"
    record = replace(rest, removal=Removal(branch, published))
    finding = one.told(REMOVAL_PROPOSED, message)
    return Leaving(one.package, owner, "proposed", record, one.why, None if standing else published, finding)


def _branch_fault(branch: str, ground: Ground) -> str:
    if ground.is_frozen(branch):
        return f"{branch} is proposed as it stands"
    if _is_stuck(ground, branch):
        return f"{branch} {_STUCK}"
    drafts = [name for name, draft in ground.state.drafts.items() if not draft.removes]
    taken = next((name for name in (*drafts, ground.destination.branch) if are_nested(name, branch)), "")
    return f"the branch {branch} cannot be made beside {taken}" if taken else ""


def give_up(ground: Ground, departures: Departures) -> Ground:
    """Return the ground on which drafts are laid out: the drafts of orphans are people's from now on (porch 6.2)."""
    orphans = [one.package for one in departures.leaving if one.how == "orphaned"]
    theirs = {ground.branch_of(one) for one in orphans if ground.state.packages[one].put}
    drafts = {
        name: replace(draft, edited=True) if name in theirs else draft for name, draft in ground.state.drafts.items()
    }
    return replace(ground, state=replace(ground.state, drafts=drafts))


def lay_out_removals(
    ground: Ground, claims: Claims, departures: Departures, messages: Mapping[str, str], config_seconds: int
) -> tuple[Layout, ...]:
    """Return what becomes of every removal draft; `messages` are those of the packages that are put up anew."""
    published = ground.heads.branch
    if published is None:
        return ()
    known = {name for name, draft in ground.state.drafts.items() if draft.removes}
    known |= ground.heads.closed & ground.heads.removals
    new = {one.package: one.record.removal.branch for one in departures.leaving if one.is_new and one.record.removal}
    layouts = []
    for branch in sorted(known | {*new.values()}):
        if _is_at_rest(ground, branch):
            layouts.append(_at_rest(ground, branch, published))
            continue
        changed = {
            one: Step(one, None, None, messages[one], config_seconds) for one, name in new.items() if name == branch
        }
        wishes = _wishes(ground, claims, branch, published, changed)
        head = ground.heads.drafts.get(branch)
        if branch in ground.heads.closed:
            layouts.append(begin_anew(branch, head, published, wishes))
        else:
            layouts.append(lay_out(branch, head, ground.state, published, wishes, ground.objects))
    return tuple(layouts)


def _is_at_rest(ground: Ground, branch: str) -> bool:
    """Return whether nothing may be written to a removal draft now: it is proposed, or would undo people's work."""
    return ground.is_frozen(branch) or _is_stuck(ground, branch)


def _is_stuck(ground: Ground, branch: str) -> bool:
    # one whose pull request was closed is laid anew
    return branch not in ground.heads.closed and ground.is_stuck(branch)


def _at_rest(ground: Ground, branch: str, published: CommitId) -> Layout:
    head = ground.heads.drafts[branch]
    standing = any(one.removal and one.removal.branch == branch for one in ground.state.packages.values())
    more = ground.objects.offers_more(head, ground.state.drafts[branch].base, published)
    return Keep(branch) if standing or more else End(branch, head)


def _wishes(ground: Ground, claims: Claims, branch: str, published: CommitId, changed: Mapping[str, Step]) -> Wishes:
    draft, head = ground.state.drafts.get(branch), ground.heads.drafts.get(branch)
    standing = {
        package
        for package, record in ground.state.packages.items()
        if record.removal and not record.removal.declined and record.removal.branch == branch
    }
    withdrawn = {one: put_back(ground, one, "It is wanted again.") for one in sorted(standing) if claims.wants(one)}
    moved = _moved(ground, draft, head, published, {*standing, *changed}) if draft else set()
    as_they_are = {one: as_it_is(ground, one, None, None) for one in moved & standing - withdrawn.keys()}
    return Wishes(changed, withdrawn, frozenset(standing), frozenset(moved), frozenset(), as_they_are)


def _moved(
    ground: Ground, draft: DraftBranch, head: CommitId | None, published: CommitId, mine: Collection[str]
) -> set[str]:
    """Return the packages that the cluster branch has changed since the removal draft began, approved ones included."""
    return {
        one
        for one in ground.state.packages
        if (known := ground.at(draft.base, one)) != ground.at(published, one)
        and (one in mine or ground.at(head, one) != known)
    }


def kept_heads(ground: Ground, departures: Departures, layouts: Collection[Layout]) -> tuple[CommitId, ...]:
    """Return the heads with people's work that goes because nobody wants the package any more (git.md finding 22)."""
    left = {one.branch for one in layouts if isinstance(one, End) or (isinstance(one, Grow) and one.start != one.old)}
    found: dict[CommitId, None] = {}
    for one in departures.leaving:
        branch, record = ground.branch_of(one.package), ground.state.packages[one.package]
        draft, seen = ground.state.drafts.get(branch), ground.look(one.package)
        if one.how == "orphaned" or draft is None or not draft.edited or not is_on_draft(record, seen):
            continue
        if branch in left or _is_edited(record, seen):
            found[ground.heads.drafts[branch]] = None
    found |= dict.fromkeys(_heads_with_edits_of_removed(ground, departures))
    return tuple(found)


def _heads_with_edits_of_removed(ground: Ground, departures: Departures) -> Iterator[CommitId]:
    """Yield the removal drafts on which people have changed a package that is to go from there as well."""
    for one in departures.leaving:
        branch = one.record.removal.branch if one.is_new and one.record.removal else ""
        draft = ground.state.drafts.get(branch)
        if draft is None or not draft.edited:
            continue
        head = ground.heads.drafts[branch]
        (there, _), *known = (ground.at(commit, one.package) for commit in (head, draft.base, ground.heads.branch))
        if there is not None and there not in [tree for tree, _ in known]:
            yield head


def _is_edited(record: PackageRecord, seen: Seen) -> bool:
    """Return whether people changed the package on its draft: since the last offer, or so that it holds their edits."""
    put = record.put
    return put is None or seen.drafted not in (None, put.rendered) or put.merged != put.plain


def without_recalled(state: DestinationState, ground: Ground, claims: Claims) -> DestinationState:
    """Return the state in which nothing that is wanted is on its way out; what is on a draft at rest stays known."""
    packages = {
        package: replace(record, removal=None)
        if record.removal and claims.wants(package) and not _is_at_rest(ground, record.removal.branch)
        else record
        for package, record in state.packages.items()
    }
    return replace(state, packages=packages)


def recalled(ground: Ground, claims: Claims) -> tuple[Leaving, ...]:
    """Return the packages that are wanted again while nothing may be written to the draft that removes them."""
    return tuple(
        _recalled(package, record, record.removal, ground)
        for package, record in ground.state.packages.items()
        if record.removal and claims.wants(package) and _is_at_rest(ground, record.removal.branch)
    )


def _recalled(package: str, record: PackageRecord, removal: Removal, ground: Ground) -> Leaving:
    place = f"{ground.destination.name}/{package}"
    if ground.is_frozen(removal.branch):
        why = f"its removal is proposed on {removal.branch}; reject that, or the package is removed and drafted anew"
    else:
        why = f"the draft that removes it, {removal.branch}, {_STUCK}"
    message = f"package {place} is wanted again, but {why}"
    finding = REMOVAL_WAITS.finding(message, Where(object=str(record.owner.key)))
    return Leaving(package, record.owner, "recalled", record, "it is wanted again", finding=finding)
