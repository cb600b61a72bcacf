"""Making one package anew, whether or not anything has moved: whoever wants it explained needs all of its render."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.planning.claims import ask
from reconciler.planning.decide import decide
from reconciler.planning.outcome import Outcome, Rendered
from reconciler.planning.source import Ingredients
from reconciler.planning.survey import Surveyed
from reconciler.rules.variant import Variant


@dataclass(frozen=True)
class MadeAnew:
    """What became of a package, and its render; None where it did not come to one."""

    outcome: Outcome
    rendered: Rendered | None


def make_anew(variant: Variant, surveyed: Surveyed) -> MadeAnew:
    """Return what one package of a destination comes to today; a render that was remembered is made again."""
    question, shop = ask(variant, surveyed.claims, surveyed.ground), surveyed.shop
    if question.record:
        question = replace(question, record=replace(question.record, trace={}))
    renders: list[Rendered] = []

    def render(wanted: Variant, made: Ingredients) -> Rendered:
        renders.append(shop.render(wanted, made))
        return renders[-1]

    outcome = decide(question, shop.answers, shop.sources, render)
    return MadeAnew(outcome, renders[-1] if renders else None)
