"""delete-annotations: annotations of these names taken away (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    config_strings,
    failure,
    reports_faults,
)
from reconciler.packages.kptfile import Profile


@reports_faults
def delete_annotations(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items without the annotations; a mapping that becomes empty goes as well."""
    text = config_strings((config or {}).get("data"), "data").get("annotationKeys", "")
    keys = _keys(text, context.profile)
    if not keys:
        return failure(items, "annotationKeys must name at least one annotation, separated by commas")
    context.budget.spend(len(items) * len(keys) // 16)
    found = {item: [key for key in keys if key in item.annotations] for item in items}
    said = [
        Result(f"Annonation: [{key}] removed from resource: [{item.name}]", file=item.file)
        for item, present in found.items()
        for key in present
    ]
    counted = f"The provided annotations were deleted from {sum(map(bool, found.values()))} resource(s)"
    total = Result(counted if said else "None of the resources had the provided annotations to delete")
    return Output(tuple(_without(item, found[item]) for item in items), (total, *said))


def _keys(text: str, profile: Profile) -> tuple[str, ...]:
    """Return the names in a list with commas; `compat` keeps the blanks around them, as upstream does."""
    names = [name.strip() if profile == "safe" else name for name in text.strip().split(",")]
    return tuple(dict.fromkeys(name for name in names if name))


def _without(item: Item, keys: Sequence[str]) -> Item:
    if not keys:
        return item
    kept = {key: value for key, value in item.annotations.items() if key not in keys}
    metadata = {key: value for key, value in item.metadata.items() if key != "annotations" or kept}
    return item.with_data({**item.data, "metadata": metadata | ({"annotations": kept} if kept else {})})
