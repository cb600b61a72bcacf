"""The deviations from kpt by their numbers, as settings name them (kpt.md 17)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from reconciler.packages.kptfile import Profile
from reconciler.packages.update.options import MergeOptions, compat_options

_OF_FIELDS = {
    "D1": "drops_emptied",
    "D3": "keeps_edited_elements",
    "D4": "keeps_removals",
    "D5": "keeps_local_elements",
    "D6": "strict_keys",
    "D7": "settles_clashes",
    "D8": "compares_types",
    "D9": "keeps_nulls",
    "D12": "reads_aliases",
    "D13": "merges_comments",
    "D14": "keeps_order",
    "D22": "infers_names",
}
_OF_FILES = {
    "D10": "follow_moves",
    "D11": "match_identifiers",
    "D15": "take_untouched",
    "D16": "remember_deletions",
    "D17": "isolate_broken",
    "D18": "keep_untouched",
    "D19": "crds_of_all_sides",
}
DEVIATIONS = (*_OF_FIELDS, *_OF_FILES)


def options_of(profile: Profile, deviations: Mapping[str, bool]) -> MergeOptions:
    """Return a profile's options with some deviations switched on or off, by number; others are not looked at."""
    options = MergeOptions() if profile == "safe" else compat_options()
    rules = replace(options.rules, **{name: deviations[d] for d, name in _OF_FIELDS.items() if d in deviations})  # type: ignore[arg-type]
    files = {name: deviations[number] for number, name in _OF_FILES.items() if number in deviations}
    return replace(options, rules=rules, **files)  # type: ignore[arg-type]  # names of switches, all of them bool
