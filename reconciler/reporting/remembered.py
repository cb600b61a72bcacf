"""What is told of one destination, from one pass to the next."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TypeVar

from reconciler.planning.fleet import DestinationPlan
from reconciler.rules.remembered import Unmoved

Told = TypeVar("Told")


def remembered(plan: DestinationPlan, known: Unmoved[Told], tell: Callable[[DestinationPlan], Told]) -> Told:
    """Return what is told of a plan; of the very same one as in the last pass, what was told then.

    A plan that drafts something comes once, and is not held on to.
    """
    return tell(plan) if plan.drafts_anything else known.of((plan,), partial(tell, plan))
