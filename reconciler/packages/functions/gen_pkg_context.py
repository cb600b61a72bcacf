"""gen-pkg-context: the package context as a resource of the package (kpt.md 1.1)."""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.packages.context import CONTEXT_FILE, context_data, is_context
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    failure,
    reports_faults,
)
from reconciler.packages.kptfile import KPTFILE


@reports_faults
def gen_pkg_context(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with a package context that names the package.

    `compat` drops every context first, those of subpackages and all other keys included; `safe` sets the name in the
    package's own context and leaves everything else alone (D20).
    """
    kptfile = next((item for item in items if item.package == context.package and item.path == KPTFILE), None)
    if kptfile is None:
        return failure(items, "the package must have a Kptfile")
    old = None
    if context.profile == "safe":
        old = next((item for item in items if item.package == context.package and is_context(item.data)), None)
    new = _context(old, kptfile, context)
    kept = [item for item in items if item is not old and (context.profile == "safe" or not is_context(item.data))]
    return Output((*kept, new), (Result("generated package context"),))


def _context(old: Item | None, kptfile: Item, context: FunctionContext) -> Item:
    if old is not None:
        return old.with_values([(("data", "name"), kptfile.name)])
    return Item(context.package, CONTEXT_FILE, 0, context_data({"name": kptfile.name}))
