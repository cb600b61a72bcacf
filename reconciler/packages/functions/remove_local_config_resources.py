"""remove-local-config-resources: what is only for tools does not get out (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.packages.functions.function import Config, FunctionContext, Item, Output, Result, scalar_text
from reconciler.packages.kptfile import KPTFILE
from reconciler.packages.resource import LOCAL_CONFIG


def remove_local_config_resources(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items but those whose local-config annotation is `true`, in any case of letters.

    `safe` keeps Kptfiles: without one a package is none, and nothing could be updated or rendered again.
    """
    gone = {
        item: None for item in items if _is_local(item) and not (context.profile == "safe" and item.path == KPTFILE)
    }
    if not gone:
        nothing = Result("Found no resources to prune with the local config annotation", "warning")
        return Output(tuple(items), (nothing,))
    said = [Result(f"Resource name: [{item.name}]", file=item.file) for item in gone]
    kept = tuple(item for item in items if item not in gone)
    return Output(kept, (Result(f"Number of resources pruned: {len(gone)}"), *said))


def _is_local(item: Item) -> bool:
    return (scalar_text(item.annotations.get(LOCAL_CONFIG)) or "").lower() == "true"
