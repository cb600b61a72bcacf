"""One destination's plan: from its variants, its state and its branches to outcomes, draft layouts and a new state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, Where, softened
from reconciler.planning.branches import End, Grow, Layout
from reconciler.planning.claims import Claims, ask, chosen
from reconciler.planning.codes import DESTINATION_MISSING
from reconciler.planning.decide import READY, VALID, Render, decide, finding_data
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Words, Writer, lay_out_all
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.ground import Ground, Objects
from reconciler.planning.ingredients import Sources
from reconciler.planning.outcome import Blocked, Draft, Held, Outcome, Unchanged
from reconciler.planning.recovery import recover
from reconciler.planning.standing import Heads, recognise, settle_drafts
from reconciler.planning.state import DestinationState, Offer, PackageRecord
from reconciler.rules.codes import DELETION_HELD
from reconciler.rules.variant import Variant
from reconciler.snapshot.catalog import Catalog
from reconciler.snapshot.objects import blob_id


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
    if finding := gone_from(destination, state, heads):
        return DestinationPlan(destination, heads, state, state, findings=(finding,))
    now = settle_drafts(recognise(state, destination, heads, objects), destination, heads, objects)
    ground = recover(Ground(destination, now, heads, objects, shop.draft_template), claims.variants, shop.sources)
    winners, losers = chosen(claims, ground.state)
    outcomes = [decide(ask(one, claims, ground), shop.catalog, shop.sources, shop.render) for one in winners.values()]
    words = {
        one.variant.place.package: shop.writer.words(one, destination) for one in outcomes if isinstance(one, Draft)
    }
    layouts = lay_out_all(ground, outcomes, words, shop.config_seconds)
    held = _held(claims, ground.state)
    after = _after(ground, outcomes, held, words, layouts)
    return DestinationPlan(destination, heads, state, after, (*outcomes, *losers), held, layouts)


def gone_from(destination: Destination, state: DestinationState, heads: Heads) -> Finding | None:
    """Return why a destination is left alone: its branch, seen before, is gone or elsewhere (git.md finding 8)."""
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
    return DESTINATION_MISSING.finding(message, destination.where)


def _place(place: tuple[str, str, str]) -> str:
    url, branch, directory = place
    return f"{url} branch {branch} directory /{directory}"


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
        return softened(DELETION_HELD.finding(message, where))
    why = "wants another package now" if record.owner.key in claims.alive else "is gone"
    return DELETION_HELD.finding(f"package {package} is kept though {record.owner.key} {why}: removals are held", where)


def _after(
    ground: Ground, outcomes: Iterable[Outcome], held: Iterable[Held], words: Mapping[str, Words],
    layouts: Iterable[Layout],
) -> DestinationState:  # fmt: skip
    records = dict(ground.state.packages)
    for outcome in outcomes:
        package = outcome.variant.place.package
        if not _is_foreign(outcome) and not (isinstance(outcome, Blocked) and outcome.retry):
            records[package] = _record(outcome, words.get(package), ground.branch_of(package))
    for one in held:
        records[one.package] = replace(one.record, outcome={"kind": "held", "findings": [finding_data(one.finding)]})
    ended = {layout.branch for layout in layouts if isinstance(layout, End)}
    drafts = {name: draft for name, draft in ground.state.drafts.items() if name not in ended}
    # a branch that nothing was drafted for is not created, and must not count as seen
    stands = not ground.heads.absent or any(isinstance(layout, Grow) for layout in layouts)
    seen = ground.heads.branch if stands and ground.heads.branch else ground.state.seen
    return replace(ground.state, seen=seen, packages=dict(sorted(records.items())), drafts=drafts)


def _is_foreign(outcome: Outcome) -> bool:
    # the record of a package that another owner holds is that owner's
    record = outcome.record if isinstance(outcome, Blocked) else None
    return record is not None and record.owner.key != outcome.variant.owner.key


def _record(outcome: Outcome, words: Words | None, branch: str) -> PackageRecord:
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
            return replace(record, trace=outcome.trace, seen=outcome.seen, outcome=found)


def _first_record(variant: Variant) -> PackageRecord:
    return PackageRecord(variant.owner, labels=variant.labels, annotations=variant.annotations)


def _drafted(draft: Draft, offer: Offer, branch: str) -> PackageRecord:
    record = draft.record.offered(offer, branch)
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
        upstream=draft.variant.upstream.words,
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


def grows(plan: DestinationPlan) -> tuple[Grow, ...]:
    """Return the branches that get commits."""
    return tuple(layout for layout in plan.layouts if isinstance(layout, Grow))
