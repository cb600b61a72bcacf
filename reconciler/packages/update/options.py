"""What may be chosen about an update: the profile, and a switch for every deviation that concerns files (kpt.md 17)."""

from __future__ import annotations

from dataclasses import dataclass, field

from reconciler.krm.merge3 import COMPAT, SAFE, MergeRules
from reconciler.krm.schema import Shapes, builtin_shapes
from reconciler.packages.kptfile import Profile


@dataclass(frozen=True)
class MergeOptions:
    """How packages are merged. The defaults are profile `safe`; `compat_options` turns every deviation off.

    `rules.winner` also decides files that are changed on both sides and can only be taken whole, except for opaque
    files: there the local side always wins (kpt.md D16).
    """

    profile: Profile = "safe"
    rules: MergeRules = SAFE
    shapes: Shapes = field(default_factory=builtin_shapes)
    follow_moves: bool = True
    """D10: a resource that moved to another file is still the same resource."""
    match_identifiers: bool = True
    """D11: a renamed resource is found through its upstream-identifier annotation."""
    take_untouched: bool = True
    """D15: a file that nobody changed locally is taken from upstream, byte for byte."""
    remember_deletions: bool = True
    """D16: an opaque file that was deleted locally stays deleted, and opaque files changed on both sides are told."""
    isolate_broken: bool = True
    """D17: a file that cannot be merged, by its syntax or by resources in it twice, spoils itself only."""
    keep_untouched: bool = True
    """D18: a file that upstream did not change is left as it is locally, and never read."""
    crds_of_all_sides: bool = True
    """D19: list keys come from the CRDs of the updated, the local and the old package, in this order."""
    vendored: bool = True
    """Remote subpackages that upstream distributes are updated with it; without this they stay as they are."""
    match_positions: bool = False
    """A resource that got another identity between old and updated is found at its position in its file.

    Only for old and updated sides that are the same package before and after its own functions.
    """


def compat_options(shapes: Shapes | None = None) -> MergeOptions:
    """Return the options that reproduce upstream's tool, warts included."""
    return MergeOptions(
        profile="compat",
        rules=COMPAT,
        shapes=shapes or builtin_shapes(),
        follow_moves=False,
        match_identifiers=False,
        take_untouched=False,
        remember_deletions=False,
        isolate_broken=False,
        keep_untouched=False,
        crds_of_all_sides=False,
        vendored=False,
    )
