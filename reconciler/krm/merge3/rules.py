"""The switches of a field merge: one for each deviation from kpt that concerns it (kpt.md 17)."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Literal, TypeAlias

Winner: TypeAlias = Literal["upstream", "local"]


class MergeError(Exception):
    """A merge that kpt gives up as well: kinds of nodes clash, or merge keys do. SAFE never raises it."""


@dataclass(frozen=True)
class MergeRules:
    """What a field merge does where kpt loses or breaks something; each switch is True for the safe behaviour.

    `winner` decides what both sides changed differently (D2), clashes of kinds (D7) and lists whose keys do not tell
    their elements apart (D6). Elements are different: one that the local side edited stays (D3, D5), one that it
    removed stays removed (D4), whoever wins, because half an element is of use to nobody; the conflict tells.
    """

    drops_emptied: bool = True
    """D1: a mapping or list that one side removed does not stay behind, or come back, empty."""
    keeps_edited_elements: bool = True
    """D3: an element removed upstream and edited locally stays whole; kpt leaves a stub of the local additions."""
    keeps_removals: bool = True
    """D4: an element removed locally and changed upstream stays removed; kpt brings the changed fields back."""
    keeps_local_elements: bool = True
    """D5: when upstream removes a whole list, elements that only the local side has stay."""
    strict_keys: bool = True
    """D6: key fields have the API server's defaults, and lists with missing or duplicate keys are atomic."""
    settles_clashes: bool = True
    """D7: a mapping against a list or a scalar is a conflict of that field; kpt gives up the update (MergeError)."""
    compares_types: bool = True
    """D8: from 1 to "1" is a change."""
    keeps_nulls: bool = True
    """D9: an explicit null is a value like any other; kpt removes its key."""
    reads_aliases: bool = True
    """D12: an alias means what it stands for; kpt drops the field."""
    merges_comments: bool = True
    """D13: comments are merged three ways; kpt's travel with their value or not at all."""
    keeps_order: bool = True
    """D14: new keys stand where upstream has them; kpt appends them in the order of the alphabet."""
    infers_names: bool = True
    """D22: in objects of unknown shape, lists merge by `name` where every element on every side has one of its own."""
    demands_names: bool = False
    """No deviation, but what kpt does to Kptfiles: lists of unknown shape merge by `name`, or else MergeError."""
    weaves_items: bool = False
    """No deviation: of lists of scalars, what one side puts in and what the other takes out beside it both count. Where
    effects of ours are taken out (git.md 3), what people put beside them is not to bring them back."""
    keeps_lines: bool = False
    """No deviation: comments that belong to no value, blank lines and the order of keys are merged as lines of text.
    It is meant for two sides that both contain local changes; a new format by upstream need not be kept."""
    winner: Winner = "upstream"

    @cached_property
    def takes_sides(self) -> bool:
        """Tell whether what one side left alone is simply the other side's; kpt rebuilds it and may change it."""
        return all((self.drops_emptied, self.strict_keys, self.keeps_nulls, self.keeps_order, self.settles_clashes,
                    self.keeps_edited_elements, self.keeps_removals, self.keeps_local_elements,
                    self.compares_types, self.reads_aliases))  # fmt: skip


SAFE = MergeRules()
COMPAT = MergeRules(
    drops_emptied=False,
    keeps_edited_elements=False,
    keeps_removals=False,
    keeps_local_elements=False,
    strict_keys=False,
    settles_clashes=False,
    compares_types=False,
    keeps_nulls=False,
    reads_aliases=False,
    merges_comments=False,
    keeps_order=False,
    infers_names=False,
)
