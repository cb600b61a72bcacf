"""Portability: which expressions of a set another engine of CEL may not know (design 10.20)."""

from __future__ import annotations

from collections.abc import Iterator

from reconciler.expressions import Limits
from reconciler.rules.variants.inputs import extensions_of
from reconciler.rules.variants.set_model import PackageVariantSetSpec, Target, Text


def portability_notes(spec: PackageVariantSetSpec, cel: Limits) -> tuple[str, ...]:
    """Return a text for each expression of a valid spec that is more than standard CEL: its field, and what it uses."""
    texts = (text for target in spec.targets for text in _texts(target))
    return tuple(
        f"{text.path} uses {', '.join(found)}: not standard CEL, and other engines may not know it"
        for text in texts
        if (found := extensions_of(text, cel))
    )


def _texts(target: Target) -> Iterator[Text]:
    own = tuple(target.template.texts())
    yield from own
    # what the template has is in its changed forms, too, and is told once
    known = {one.text for one in own}
    for template in target.overlaid.values():
        yield from (one for one in template.texts() if one.text not in known)
