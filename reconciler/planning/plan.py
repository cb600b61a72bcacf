"""One destination's plan: from its variants, its state and its branches to outcomes, draft layouts and a new state."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import ScopeFailedError, boundary
from reconciler.planning.branches import End, Grow, Layout
from reconciler.planning.claims import Claims, ask, chosen
from reconciler.planning.decide import READY, VALID, Question, failed_unexpectedly, finding_data
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Words, closed_heads, lay_out_all
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.ground import Ground
from reconciler.planning.ingredients import Sources, TooLargeToReadError
from reconciler.planning.outcome import Blocked, Draft, Held, Outcome, Rendered, Unchanged, reconciled_owners
from reconciler.planning.removals import (
    Departures,
    find_departures,
    give_up,
    kept_heads,
    lay_out_removals,
    recalled,
    without_recalled,
)
from reconciler.planning.state import DestinationState, Offer, PackageRecord
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.planning.together import decide_together
from reconciler.rules.variant import ConfigSources, Variant
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.objects import CommitId, TreeId, blob_id


@dataclass(frozen=True)
class Decided(Surveyed):
    """One destination with what becomes of the packages that are wanted; what nobody wants is not decided yet.

    `words` are those of its drafts, by package.
    """

    outcomes: tuple[Outcome, ...]
    losers: tuple[Outcome, ...]
    words: Mapping[str, Words] = field(default_factory=dict)

    @property
    def reconciled(self) -> frozenset[ObjectKey]:
        """The owners whose package is as they want it, or drafted, without error."""
        return reconciled_owners(self.outcomes)


def decide_destination(one: Surveyed, shop: Workshop) -> Decided:
    """Return what becomes of the packages that are wanted on one destination."""
    return decide_wanted(one, shop, ask)[0]


def decide_wanted(
    one: Surveyed, shop: Workshop, asking: Callable[[Variant, Claims, Ground], Question]
) -> tuple[Decided, Mapping[str, Rendered]]:
    """Return what becomes of the packages that are wanted, by what is asked of each, and the renders that it took."""
    winners, losers = chosen(one.claims, one.ground.state)
    questions = [asking(each, one.claims, one.ground) for name, each in winners.items() if name not in one.settled]
    found = decide_together(questions, one.claims, one.ground, shop, one.settled)
    outcomes = dict(found.outcomes)
    words: dict[str, Words] = {}
    # what a render has just read need not be read again to tell of it
    for question in questions:
        package = question.variant.place.package
        described = _described(question, outcomes[package], one.destination, shop)
        if isinstance(described, Blocked):
            outcomes[package] = described
        elif described:
            words[package] = described
    in_order = tuple(outcomes[name] for name in winners)
    decided = Decided(
        one.destination, one.claims, one.before, one.ground, shop, in_order, tuple(losers), words, settled=one.settled
    )
    return decided, found.rendered


def _described(
    question: Question, outcome: Outcome, destination: Destination, shop: Workshop
) -> Words | Blocked | None:
    """Return the texts of a package's draft, or the outcome that replaces a draft whose texts cannot be written."""
    if not isinstance(outcome, Draft):
        return None
    try:
        with boundary(f"package {outcome.variant.place}"):
            return shop.writer.words(outcome, destination)
    except ScopeFailedError as error:
        return failed_unexpectedly(question, error.failure)


def plan_destination(decided: Decided, reconciled: Collection[ObjectKey]) -> DestinationPlan:
    """Return everything that is to happen on one destination; touches nothing (design 4.4 to 4.9).

    `reconciled` are the owners, wherever their packages go, that have them without error: what they had elsewhere
    goes after that, and not before (porch 6.4).
    """
    destination, claims, words = decided.destination, decided.claims, decided.words
    departures = find_departures(decided.ground, claims, reconciled)
    ground = give_up(decided.ground, departures)
    layouts = _layouts(decided, ground, departures, words)
    after = without_recalled(_after(decided, ground, departures, layouts), ground, claims)
    return DestinationPlan(
        destination, ground.heads, decided.before, after, (*decided.outcomes, *decided.losers), departures.held,
        layouts, leaving=(*departures.leaving, *recalled(ground, claims)),
        kept=_kept_heads(decided, departures, layouts),
    )  # fmt: skip


def _kept_heads(decided: Decided, departures: Departures, layouts: Collection[Layout]) -> tuple[CommitId, ...]:
    gone = kept_heads(decided.ground, departures, layouts)
    return tuple(dict.fromkeys((*gone, *closed_heads(decided.before, decided.ground.heads))))


def _layouts(
    decided: Decided, ground: Ground, departures: Departures, words: Mapping[str, Words]
) -> tuple[Layout, ...]:
    shop = decided.shop
    drafted = departures.on_drafts(ground)
    messages = {
        one.package: shop.writer.removal(one, decided.destination, _read(one.before, shop.sources))
        for one in departures.leaving
        if one.before
    }
    return (
        *lay_out_all(ground, decided.outcomes, drafted, words, shop.config_seconds),
        *lay_out_removals(ground, decided.claims, departures, messages, shop.config_seconds),
    )


def _read(tree: TreeId, sources: Sources) -> FileTree | None:
    try:
        return sources.standing(tree)
    except TooLargeToReadError:
        return None


def _after(decided: Decided, ground: Ground, departures: Departures, layouts: Iterable[Layout]) -> DestinationState:
    records, words, settled = dict(ground.state.packages), decided.words, decided.settled
    for outcome in decided.outcomes:
        package = outcome.variant.place.package
        if outcome is settled.get(package):
            # its record is what it was left with
            continue
        if not _is_foreign(outcome) and not (isinstance(outcome, Blocked) and outcome.retry):
            record = _record(outcome, words.get(package), ground.branch_of(package))
            records[package] = replace(record, sources=_from_root(outcome.variant.sources, record.sources, decided))
    records |= {one.package: _held(one) for one in departures.held}
    for one in departures.leaving:
        records[one.package] = _kept(one.record, one.how, one.finding) if one.finding else one.record
    ended = {layout.branch for layout in layouts if isinstance(layout, End)}
    drafts = {name: draft for name, draft in ground.state.drafts.items() if name not in ended}
    # a branch that nothing was drafted for is not created, and must not count as seen
    stands = not ground.heads.absent or any(isinstance(layout, Grow) for layout in layouts)
    seen = ground.heads.branch if stands and ground.heads.branch else ground.state.seen
    root = decided.shop.origin.root or ground.state.config_root
    packages = dict(sorted(records.items()))
    # a destination without packages has no state
    definition = decided.destination.definition if records or drafts else {}
    definition = _from_root(definition, ground.state.definition, decided)
    return replace(
        ground.state, seen=seen, packages=packages, drafts=drafts, config_root=root, definition=definition
    )  # fmt: skip


def _from_root(sources: ConfigSources, recorded: ConfigSources, decided: Decided) -> ConfigSources:
    """Return config files as paths from the root of the config repository.

    While the config has doubts, files that are recorded stay so: the objects that they had may come back.
    """
    origin = decided.shop.origin
    # equal mappings of a pass stay one object
    found = {origin.path(path): ids for path, ids in sources.items()} if origin.directory else sources
    if decided.claims.complete or recorded.items() <= found.items():
        return found
    return {**recorded, **found}


def _held(one: Held) -> PackageRecord:
    record = _kept(one.record, "held", one.finding)
    counts = {"existing": one.existing, "onTarget": one.on_target}
    return replace(record, outcome={**record.outcome, **{name: count for name, count in counts.items() if count}})


def _kept(record: PackageRecord, kind: str, finding: Finding) -> PackageRecord:
    # should it be wanted again, what it came to is still to be known, and the upstream that it was made from
    before = record.outcome.get("before", record.outcome)
    upstream = {name: value for name, value in before.items() if name == "upstream"}
    outcome = {"kind": kind, "findings": [finding_data(finding)], "before": dict(before), **upstream}
    return replace(record, outcome=outcome)


def _is_foreign(outcome: Outcome) -> bool:
    # the record of a package that another owner holds is that owner's
    record = outcome.record if isinstance(outcome, Blocked) else None
    return record is not None and record.owner.key != outcome.variant.owner.key


def _record(outcome: Outcome, words: Words | None, branch: str) -> PackageRecord:
    record = _found_record(outcome, words, branch)
    return replace(record, deletion=outcome.variant.deletion)


def _found_record(outcome: Outcome, words: Words | None, branch: str) -> PackageRecord:
    match outcome:
        case Draft():
            assert words is not None
            return _drafted(outcome, _offer(outcome, words), branch)
        case Unchanged():
            record = replace(outcome.record, put=None) if outcome.withdraw else outcome.record
            return replace(record, outcome=_found(outcome.why, outcome.variant, outcome.findings))
        case Blocked():
            record = outcome.record or _first_record(outcome.variant)
            found = _found("blocked", outcome.variant, outcome.findings, outcome.conditions)
            # one that cannot be found now is still one that it had
            used = {**record.policies, **outcome.policies}
            # what was dropped is told by the trace of then
            return replace(record, trace=outcome.trace, seen=outcome.seen, outcome=found, dropped=None, policies=used)


def _first_record(variant: Variant) -> PackageRecord:
    return PackageRecord(variant.owner, labels=variant.labels, annotations=variant.annotations)


def _drafted(draft: Draft, offer: Offer, branch: str) -> PackageRecord:
    record = replace(draft.record, labels=draft.labels, annotations=draft.annotations).offered(offer, branch)
    seen = replace(draft.seen, drafted=None if offer.rendered == draft.seen.published else offer.rendered)
    found = _found("drafted", draft.variant, draft.rendered.findings)
    return replace(record, seen=seen, render=draft.rendered.render_status, outcome=found)


def _offer(draft: Draft, words: Words) -> Offer:
    return Offer(
        rendered=draft.rendered.files.id,
        status=blob_id(words.status),
        base=draft.base,
        merged=draft.merged,
        plain=draft.plain,
        review=draft.rendered.review,
        against=draft.seen.published,
        upstream=draft.variant.source.words,
        rules=draft.rendered.rules,
    )


def _found(
    kind: str, variant: Variant, findings: Iterable[Finding], conditions: tuple[Condition, ...] = (VALID, READY)
) -> dict[str, Any]:
    return {
        "kind": kind,
        "conditions": [condition.as_data() for condition in conditions],
        "findings": [finding_data(finding) for finding in findings],
        "upstream": {**variant.source.as_data(), "seconds": variant.source.committer_seconds},
    }


def new_state(destination: Destination) -> DestinationState:
    """Return the state of a destination that was never seen."""
    return DestinationState(destination.url_text, destination.branch, destination.directory)


def grows(plan: DestinationPlan) -> tuple[Grow, ...]:
    """Return the branches that get commits."""
    return tuple(layout for layout in plan.layouts if isinstance(layout, Grow))
