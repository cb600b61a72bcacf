"""Surveys: a destination as a pass finds it, with what was published and dropped since, before anything is decided."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding
from reconciler.planning.claims import Claims
from reconciler.planning.codes import DESTINATION_MISSING
from reconciler.planning.decide import Render
from reconciler.planning.destination import Destination
from reconciler.planning.drafts import Writer
from reconciler.planning.fleet import DestinationPlan
from reconciler.planning.ground import Ground, Objects
from reconciler.planning.ingredients import Sources
from reconciler.planning.outcome import Outcome
from reconciler.planning.recovery import recover
from reconciler.planning.standing import Heads, recognise, settle_drafts
from reconciler.planning.state import DestinationState
from reconciler.planning.templates import Templating
from reconciler.snapshot.trace import Answers


@dataclass(frozen=True)
class Workshop:
    """What planning works with: the config's answers, contents by tree id, the renderer, the words, the merge rules."""

    answers: Answers
    sources: Sources
    render: Render
    writer: Writer
    draft_template: str
    config_seconds: int
    removal_template: str = "removals/{repository}"
    templating: Templating = field(default_factory=Templating)


@dataclass(frozen=True)
class Surveyed:
    """One destination with who wants what of it, and the ground: its state brought up to date with its branches.

    `settled` are outcomes that are known by package, as deciding on those would come to them again.
    """

    destination: Destination
    claims: Claims
    before: DestinationState
    ground: Ground
    shop: Workshop
    settled: Mapping[str, Outcome] = field(default_factory=dict, kw_only=True)


def survey(
    destination: Destination, claims: Claims, state: DestinationState, heads: Heads, objects: Objects, shop: Workshop
) -> Surveyed | DestinationPlan:
    """Return a destination as it is found, or the plan to leave it alone."""
    if finding := gone_from(destination, state, heads):
        return DestinationPlan(destination, heads, state, state, findings=(finding,))
    now = settle_drafts(recognise(state, destination, heads, objects), destination, heads, objects)
    ground = Ground(destination, now, heads, objects, shop.draft_template, shop.removal_template)
    return Surveyed(destination, claims, state, recover(ground, claims.variants, shop.sources), shop)


def gone_from(destination: Destination, state: DestinationState, heads: Heads) -> Finding | None:
    """Return why a destination is left alone: its branch, seen before, is gone or elsewhere (git.md finding 8)."""
    known = (state.url, state.branch, state.directory)
    wanted = (destination.url_text, destination.branch, destination.directory)
    if known != wanted:
        message = f"{destination.title} pointed to {_place(known)} before and to {_place(wanted)} now; left alone"
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
