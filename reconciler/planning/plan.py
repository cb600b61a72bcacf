"""One destination's plan: from its variants, its state and its branches to outcomes, draft layouts and a new state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Protocol

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, Severity, Where
from reconciler.krm.identity import ObjectKey
from reconciler.planning.branches import End, Grow, HoldBack, Keep, Layout, Step, Wishes, lay_out, moved_here
from reconciler.planning.decide import (
    READY,
    VALID,
    Question,
    Render,
    Sources,
    decide,
    failed,
    finding_data,
    stalled,
)
from reconciler.planning.destination import Destination, draft_branch, nested_packages
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.outcome import Blocked, Draft, Held, Outcome, Unchanged
from reconciler.planning.standing import Heads, Repository, look, recognise, settle_drafts
from reconciler.planning.state import DestinationState, Offer, PackageRecord, Seen
from reconciler.rules.variant import Owner, Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.objects import CommitId, TreeId, blob_id


@dataclass(frozen=True)
class Words:
    """What a person reads of one draft: its status file, and its commit message."""

    status: bytes
    message: str


class Writer(Protocol):
    """Finds the words for a draft."""

    def words(self, draft: Draft, destination: Destination) -> Words:
        """Return the status file and the commit message of a draft."""
        ...


class Objects(Repository, Protocol):
    """A destination's repository, draft histories included."""

    def steps(self, head: CommitId, base: CommitId) -> Sequence[Step]:
        """Return the commits after `base` up to `head` as steps, oldest first."""
        ...


@dataclass(frozen=True)
class Claims:
    """Who wants what on one destination, and which owners are alive.

    `alive` are all owners of the config; `unplaced` those of them, and sets, whose packages could not be worked
    out; `complete` is False while a file of the config could not be read, so that nobody's absence is proved
    (design 10.5).
    """

    variants: tuple[Variant, ...]
    alive: frozenset[ObjectKey]
    unplaced: frozenset[ObjectKey]
    complete: bool

    def has(self, owner: Owner) -> bool:
        """Return whether the owner is in the config: itself, or through a set that could not be expanded."""
        return owner.key in self.alive or owner.set in self.unplaced

    def keeps(self, owner: Owner) -> bool:
        """Return whether the owner is there, but where its package goes cannot be told in this pass."""
        return owner.key in self.unplaced or owner.set in self.unplaced


@dataclass(frozen=True)
class Workshop:
    """What planning works with: the config's objects, contents by tree id, the renderer, the words."""

    catalog: Catalog
    sources: Sources
    render: Render
    writer: Writer
    draft_template: str
    config_seconds: int


def plan_destination(
    destination: Destination, claims: Claims, state: DestinationState, heads: Heads, objects: Objects, shop: Workshop
) -> DestinationPlan:
    """Return everything that is to happen on one destination; touches nothing (design 4.4 to 4.9)."""
    if finding := _missing(destination, state, heads):
        return DestinationPlan(destination, heads, state, state, findings=(finding,))
    names = _branch_names(destination, claims, state, shop.draft_template)
    now = recognise(state, destination, heads, objects)
    now = settle_drafts(now, destination, heads, names, objects)
    questions, losers = _questions(destination, claims, now, heads, names, objects)
    outcomes = (*(decide(one, shop.catalog, shop.sources, shop.render) for one in questions), *losers)
    words = {
        one.variant.place.package: shop.writer.words(one, destination) for one in outcomes if isinstance(one, Draft)
    }
    layouts = _lay_out_all(destination, outcomes, words, state, now, heads, names, objects, shop.config_seconds)
    outcomes = tuple(_held_back(outcome, layouts) for outcome in outcomes)
    held = _held(claims, now)
    after = _after(now, heads, outcomes, held, words, layouts)
    return DestinationPlan(destination, heads, state, after, outcomes, held, layouts)


def _missing(destination: Destination, state: DestinationState, heads: Heads) -> Finding | None:
    """A branch seen before that is gone or has another address is left alone (git.md finding 8)."""
    known = (state.url, state.branch, state.directory)
    wanted = (destination.url_text, destination.branch, destination.directory)
    if known != wanted:
        message = (
            f"Repository {destination.name} pointed to {_place(known)} before and to {_place(wanted)} now; left alone"
        )
    elif state.seen and (heads.branch is None or heads.absent):
        message = (
            f"branch {destination.branch} of {destination.url_text} is gone, though it was there before; left alone"
        )
    else:
        return None
    return Finding("DestinationMissing", message, destination.where)


def _place(place: tuple[str, str, str]) -> str:
    url, branch, directory = place
    return f"{url} branch {branch} directory /{directory}"


def _branch_names(destination: Destination, claims: Claims, state: DestinationState, template: str) -> dict[str, str]:
    packages = {*state.packages, *(variant.place.package for variant in claims.variants)}
    return {package: draft_branch(template, destination, package) for package in sorted(packages)}


def _questions(
    destination: Destination, claims: Claims, state: DestinationState, heads: Heads,
    names: Mapping[str, str], objects: Objects,
) -> tuple[list[Question], list[Blocked]]:  # fmt: skip
    """Return a question for each package's rightful claimant, and the outcome of all others (design 10.14)."""
    chosen: dict[str, Variant] = {}
    losers: list[Blocked] = []
    for variant in sorted(claims.variants, key=lambda one: _rank(one, state)):
        package = variant.place.package
        rivals = [chosen[other] for other in (package, *nested_packages(package, chosen)) if other in chosen]
        if rivals:
            message = f"package {variant.place} is also wanted by {rivals[0].owner.key} as {rivals[0].place.package}"
            question = Question(variant, None, Seen())
            losers.append(stalled(question, "DownstreamConflict", message))
        else:
            chosen[package] = variant
    asked = [
        _question(destination, chosen[package], claims, state, heads, names, objects) for package in sorted(chosen)
    ]
    return asked, losers


def _rank(variant: Variant, state: DestinationState) -> tuple[bool, ObjectKey]:
    record = state.packages.get(variant.place.package)
    return (not (record and record.owned and record.owner.key == variant.owner.key), variant.owner.key)


def _question(
    destination: Destination, variant: Variant, claims: Claims, state: DestinationState, heads: Heads,
    names: Mapping[str, str], objects: Objects,
) -> Question:  # fmt: skip
    package = variant.place.package
    record = state.packages.get(package)
    seen = look(destination, package, heads, names[package], state, objects)
    head = heads.drafts.get(names[package])
    frozen = head is not None and heads.proposed.get(names[package]) == head
    owned = [name for name, one in state.packages.items() if one.owned and name != package]
    nested = (
        ()
        if record and record.owned
        else (*nested_packages(package, owned), *_standing_above(destination, package, heads, objects))
    )
    owner_gone = record is not None and claims.complete and not claims.has(record.owner)
    return Question(variant, record, replace(seen, frozen=frozen), nested, owner_gone)


def _standing_above(destination: Destination, package: str, heads: Heads, objects: Objects) -> tuple[str, ...]:
    if heads.branch is None:
        return ()
    segments = package.split("/")
    above = ["/".join(segments[:count]) for count in range(1, len(segments))]
    return tuple(one for one in above if objects.blob_at(heads.branch, destination.path(one) + "/Kptfile"))


def _lay_out_all(
    destination: Destination, outcomes: Iterable[Outcome], words: Mapping[str, Words], before: DestinationState,
    now: DestinationState, heads: Heads, names: Mapping[str, str], objects: Objects, config_seconds: int,
) -> tuple[Layout, ...]:  # fmt: skip
    if heads.branch is None:
        return ()
    by_package = {outcome.variant.place.package: outcome for outcome in outcomes if not _lost(outcome)}
    layouts = []
    for branch in sorted({*names.values()}):
        mine = [package for package, name in names.items() if name == branch]
        changed = {
            package: _step(outcome, words[package], config_seconds)
            for package in mine
            if isinstance(outcome := by_package.get(package), Draft)
        }
        withdrawn = {package for package in mine if _withdrawn(by_package.get(package))}
        offered = {
            package: now.packages[package] for package in mine if package in now.packages and now.packages[package].put
        }
        published = {package: objects.tree_at(heads.branch, destination.path(package)) for package in offered}
        moved = moved_here(offered, published) or any(_recognised(package, before, now) for package in mine)
        wishes = Wishes(changed, frozenset(withdrawn), frozenset(offered), moved)
        layout = lay_out(branch, heads.drafts.get(branch), now, heads.branch, wishes, objects)
        frozen = branch in heads.drafts and heads.proposed.get(branch) == heads.drafts[branch]
        layouts.append(Keep(branch) if frozen and isinstance(layout, Grow) else layout)
    return tuple(layouts)


def _withdrawn(outcome: Outcome | None) -> bool:
    return isinstance(outcome, Unchanged) and outcome.withdraw


def _recognised(package: str, before: DestinationState, now: DestinationState) -> bool:
    old, new = before.packages.get(package), now.packages.get(package)
    return bool(old and new and old.put and not new.put and new.ours != old.ours)


def _lost(outcome: Outcome) -> bool:
    return isinstance(outcome, Blocked) and outcome.conditions[0].reason == "DownstreamConflict"


def _foreign(outcome: Outcome) -> bool:
    # the record of a package that another owner holds is that owner's
    return (
        isinstance(outcome, Blocked) and bool(outcome.record) and outcome.record.owner.key != outcome.variant.owner.key
    )


def _step(draft: Draft, words: Words, config_seconds: int) -> Step:
    seconds = max(config_seconds, draft.variant.upstream.committer_seconds)
    return Step(draft.variant.place.package, draft.rendered.files, words.status, words.message, seconds)


def _held_back(outcome: Outcome, layouts: Iterable[Layout]) -> Outcome:
    for layout in layouts:
        if (
            isinstance(layout, HoldBack)
            and isinstance(outcome, Draft)
            and outcome.variant.place.package in layout.packages
        ):
            finding = Finding("DraftEdited", layout.reason, Where(object=str(outcome.variant.owner.key)))
            question = Question(outcome.variant, outcome.record, outcome.seen)
            return failed(question, (finding,), outcome.record.trace)
    return outcome


def _held(claims: Claims, state: DestinationState) -> tuple[Held, ...]:
    """Packages of ours that no variant wants any more: kept, visibly, until removals are decided (design 10.15)."""
    wanted = {variant.place.package for variant in claims.variants}
    gone = {
        package: record
        for package, record in state.packages.items()
        if record.owned and package not in wanted and not claims.keeps(record.owner)
    }
    return tuple(Held(package, record, _held_finding(package, record, claims)) for package, record in gone.items())


def _held_finding(package: str, record: PackageRecord, claims: Claims) -> Finding:
    where = Where(object=str(record.owner.key))
    if not claims.complete:
        message = f"whether package {package} is still wanted cannot be told while a config file is unreadable; kept"
        return Finding("DeletionHeld", message, where, Severity.WARNING)
    why = "wants another package now" if record.owner.key in claims.alive else "is gone"
    return Finding(
        "DeletionHeld", f"package {package} is kept though {record.owner.key} {why}: removals are held", where
    )


def _after(
    state: DestinationState, heads: Heads, outcomes: Iterable[Outcome], held: Iterable[Held],
    words: Mapping[str, Words], layouts: Iterable[Layout],
) -> DestinationState:  # fmt: skip
    records = dict(state.packages)
    for outcome in outcomes:
        package = outcome.variant.place.package
        if not _lost(outcome) and not _foreign(outcome):
            records[package] = _record(outcome, words.get(package))
    for one in held:
        records[one.package] = replace(one.record, outcome={"kind": "held", "findings": [finding_data(one.finding)]})
    drafts = dict(state.drafts)
    for layout in layouts:
        if isinstance(layout, End):
            drafts.pop(layout.branch, None)
    # a branch that nothing was drafted for is not created, and must not count as seen
    stands = not heads.absent or any(isinstance(layout, Grow) for layout in layouts)
    seen = heads.branch if stands and heads.branch else state.seen
    return replace(state, seen=seen, packages=dict(sorted(records.items())), drafts=drafts)


def _record(outcome: Outcome, words: Words | None) -> PackageRecord:
    match outcome:
        case Draft():
            assert words is not None
            offer = _offer(outcome, words)
            record = (
                outcome.record
                if outcome.record.put
                else replace(outcome.record, workspace=outcome.record.workspace + 1)
            )
            drafted = None if offer.rendered == outcome.seen.published else offer.rendered
            seen = replace(outcome.seen, drafted=drafted)
            return replace(
                record.offered(offer), seen=seen, outcome=_found("drafted", outcome.variant, outcome.rendered.findings)
            )
        case Unchanged():
            record = replace(outcome.record, put=None) if outcome.withdraw else outcome.record
            return replace(record, outcome=_found(outcome.why, outcome.variant, outcome.findings))
        case Blocked():
            record = outcome.record or PackageRecord(
                outcome.variant.owner, labels=outcome.variant.labels, annotations=outcome.variant.annotations
            )
            found = _found("blocked", outcome.variant, outcome.findings, outcome.conditions)
            return replace(record, trace=outcome.trace, seen=outcome.seen, outcome=found)


def _offer(draft: Draft, words: Words) -> Offer:
    return Offer(
        rendered=draft.rendered.files.id,
        status=blob_id(words.status),
        base=draft.base,
        merged=draft.merged,
        plain=draft.merged,
        review=draft.rendered.review,
        against=draft.seen.published,
    )


def _found(
    kind: str, variant: Variant, findings: Iterable[Finding], conditions: tuple[Condition, ...] = (VALID, READY)
) -> dict[str, Any]:
    return {
        "kind": kind,
        "conditions": [condition.as_data() for condition in conditions],
        "findings": [finding_data(finding) for finding in findings],
        "upstream": {**variant.upstream.as_data(), "seconds": variant.upstream.committer_seconds},
    }


def new_state(destination: Destination) -> DestinationState:
    """Return the state of a destination that was never seen."""
    return DestinationState(destination.url_text, destination.branch, destination.directory)


def trees_to_keep(plan: DestinationPlan) -> frozenset[TreeId]:
    """Return the trees that the new state names."""
    return plan.after.trees()


def grows(plan: DestinationPlan) -> tuple[Grow, ...]:
    """Return the branches that get commits."""
    return tuple(layout for layout in plan.layouts if isinstance(layout, Grow))
