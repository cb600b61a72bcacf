"""The variant and the draft of a change that a request selects."""

from __future__ import annotations

from itertools import chain

from reconciler.output.fleet.model import ChangeVariant, DraftMember, ReviewChange


def select_variant(change: ReviewChange, key: str, target: str) -> ChangeVariant:
    """Return the variant with this key. If there is none, return the first variant with a draft for this target.

    If there is no such variant either, return the first variant of the change, which has the most targets.
    """
    with_key = (variant for variant in change.variants if variant.key == key)
    of_target = (variant for variant in change.variants if any(member.target == target for member in variant.members))
    return next(chain(with_key, of_target), change.variants[0])


def select_member(variant: ChangeVariant, target: str) -> DraftMember:
    """Return the draft for the target. If the variant has no such draft, return its first draft."""
    return next((member for member in variant.members if member.target == target), variant.members[0])
