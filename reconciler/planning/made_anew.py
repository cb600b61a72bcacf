"""Making one package anew, whether or not anything has moved: whoever wants it explained needs all of its render."""

from __future__ import annotations

from dataclasses import dataclass, replace

from reconciler.planning.claims import ask, chosen
from reconciler.planning.outcome import Outcome, Rendered
from reconciler.planning.survey import Surveyed
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
    asked = {name: ask(one, surveyed.claims, surveyed.ground) for name, one in {**winners, package: variant}.items()}
    if record := asked[package].record:
        asked[package] = replace(asked[package], record=replace(record, trace={}))
    found = decide_together(asked.values(), surveyed.claims, surveyed.ground, shop)
    return MadeAnew(found.outcomes[package], found.rendered.get(package))
