"""Making packages anew, whether or not anything has moved: who explains or checks them needs all of their render."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from reconciler.planning.claims import Claims, ask, chosen
from reconciler.planning.decide import Question
from reconciler.planning.ground import Ground
from reconciler.planning.outcome import Outcome, Rendered
from reconciler.planning.plan import Decided, decide_wanted
from reconciler.planning.survey import Surveyed, Workshop
from reconciler.planning.together import decide_together
from reconciler.rules.variant import Variant


@dataclass(frozen=True)
class MadeAnew:
    """What became of a package, and its render; None where it did not come to one."""

    outcome: Outcome
    rendered: Rendered | None


def make_anew(variant: Variant, surveyed: Surveyed) -> MadeAnew:
    """Return what one package of a destination comes to today; a render that was remembered is made again."""
    shop, package = surveyed.shop, variant.place.package
    winners, _ = chosen(surveyed.claims, surveyed.ground.state)
    asked = {name: ask(one, surveyed.claims, surveyed.ground) for name, one in winners.items()}
    asked[package] = _ask_anew(variant, surveyed.claims, surveyed.ground)
    found = decide_together(asked.values(), surveyed.claims, surveyed.ground, shop, {})
    return MadeAnew(found.outcomes[package], found.rendered.get(package))


def decide_anew(one: Surveyed, shop: Workshop) -> tuple[Decided, Mapping[str, Rendered]]:
    """Return what becomes of the packages that are wanted on one destination, each with the render that it took."""
    return decide_wanted(one, shop, _ask_anew)


def _ask_anew(variant: Variant, claims: Claims, ground: Ground) -> Question:
    """Return a question whose answer nobody remembers."""
    question = ask(variant, claims, ground)
    record = question.record
    return replace(question, record=replace(record, trace={})) if record else question
