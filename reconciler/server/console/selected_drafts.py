"""The variant and the draft of a change that a request selects."""

from __future__ import annotations

from reconciler.output.fleet.model import ChangeVariant, DraftMember, ReviewChange


def select_variant(change: ReviewChange, key: str, target: str) -> ChangeVariant:
    """Return the variant with the key, or with a draft for the target.

    If there is no such variant, return the variant with the most targets.
    """
    for variant in change.variants:
        if variant.key == key or any(member.target == target for member in variant.members):
            return variant
    return change.variants[0]


def select_member(variant: ChangeVariant, target: str) -> DraftMember:
    """Return the draft for the target. If the variant has no such draft, return its first draft."""
    return next((member for member in variant.members if member.target == target), variant.members[0])
