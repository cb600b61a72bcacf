"""The options of an update: the profile, and one switch for each deviation from kpt.

A deviation fixes a defect or limitation of kpt. The profile `safe` contains all deviations. The number of a deviation,
e.g. `D1`, is a key of the setting `merge.deviations`.
"""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.profile import Profile
from reconciler.krm.merge3 import COMPAT, SAFE, MergeRules
from reconciler.krm.schema import MergeSchemas, load_builtin_merge_schemas
from reconciler.lazy_dataclasses import dataclass, field, replace


@dataclass(frozen=True)
class MergeOptions:
    """The options of a merge. The default values are those of the profile `safe`.

    `rules.winner` selects the side to use if both sides changed the same value. The same side is used for a resource
    file that cannot be merged, e.g. because of a syntax error. For files that are not read as resources, the local side
    always wins.
    """

    profile: Profile = "safe"
    rules: MergeRules = SAFE
    schemas: MergeSchemas = field(default_factory=load_builtin_merge_schemas)
    follow_moves: bool = True
    """D10: a resource that moved to another file is recognized as the same resource."""
    match_identifiers: bool = True
    """D11: a renamed resource is matched by its annotation `internal.kpt.dev/upstream-identifier`."""
    take_untouched: bool = True
    """D15: a file without local changes is replaced by the upstream file, without a merge."""
    remember_deletions: bool = True
    """D16: files without resources: a deleted local file stays deleted, and changes on both sides are conflicts."""
    isolate_broken: bool = True
    """D17: a file with syntax errors or duplicate resources does not stop the merge of other files."""
    keep_untouched: bool = True
    """D18: a file that upstream did not change keeps its local content and is not parsed."""
    crds_of_all_sides: bool = True
    """D19: list keys are read from the CRDs of the updated, local and origin package, in this order."""
    vendored: bool = True
    """Whether to update a subpackage with its own upstream from the copy in the upstream package of the parent."""
    match_positions: bool = False
    """Whether to match a resource by its position in the file if its name or kind differs in origin and updated.

    Use this switch only if `updated` is the output of the functions of the package `origin`.
    """
    merges_sops_documents: bool = False
    """Whether to merge the plaintext fields of SOPS documents instead of whole files.

    Use this switch only if a render created one of the sides from another side. A render changes no encrypted field.
    """


def create_compat_options(schemas: MergeSchemas | None = None) -> MergeOptions:
    """Return options without deviations, so that a merge gives the same result as kpt."""
    return MergeOptions(
        profile="compat",
        rules=COMPAT,
        schemas=schemas or load_builtin_merge_schemas(),
        follow_moves=False,
        match_identifiers=False,
        take_untouched=False,
        remember_deletions=False,
        isolate_broken=False,
        keep_untouched=False,
        crds_of_all_sides=False,
        vendored=False,
    )


_RULE_SWITCHES = {
    "D1": "removes_emptied_collections",
    "D3": "keeps_edited_elements",
    "D4": "keeps_removals",
    "D5": "keeps_local_elements",
    "D6": "strict_keys",
    "D7": "reports_type_conflicts",
    "D8": "compares_types",
    "D9": "keeps_nulls",
    "D12": "resolves_aliases",
    "D13": "merges_comments",
    "D14": "keeps_upstream_order",
    "D22": "infers_names",
}
_FILE_SWITCHES = {
    "D10": "follow_moves",
    "D11": "match_identifiers",
    "D15": "take_untouched",
    "D16": "remember_deletions",
    "D17": "isolate_broken",
    "D18": "keep_untouched",
    "D19": "crds_of_all_sides",
}
DEVIATIONS = (*_RULE_SWITCHES, *_FILE_SWITCHES)


def build_merge_options(profile: Profile, deviations: Mapping[str, bool]) -> MergeOptions:
    """Return the options of a profile, with the switches in `deviations` applied.

    Args:
        deviations: Whether each deviation is on, by its number, e.g. `{"D5": False}`. Unknown numbers are ignored.
    """
    options = MergeOptions() if profile == "safe" else create_compat_options()
    rule_switches = {name: deviations[number] for number, name in _RULE_SWITCHES.items() if number in deviations}
    file_switches = {name: deviations[number] for number, name in _FILE_SWITCHES.items() if number in deviations}
    # Ignore the types, because mypy cannot check the keys. Each key is the name of a field of type bool.
    rules = replace(options.rules, **rule_switches)  # type: ignore[arg-type]
    return replace(options, rules=rules, **file_switches)  # type: ignore[arg-type]
