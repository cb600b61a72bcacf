"""set-name-prefix: the placeholder in names gives way to the package's own, references included (kpt.md 16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from reconciler.krm.yaml import Path
from reconciler.packages.context import is_context
from reconciler.packages.functions.depends_on import DEPENDS_ON, followed_entries
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    charged,
    config_strings,
    reports_faults,
    string_map,
    value_at,
)
from reconciler.packages.functions.limits import Budget, text_bytes
from reconciler.packages.functions.name_references import followed_names

_PLACEHOLDER = "packagename"
_NAME = ("metadata", "name")
_ANNOTATION = ("metadata", "annotations", DEPENDS_ON)


@reports_faults
def set_name_prefix(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items with the prefix in place of the old one, where that is the name or all up to a dash.

    The prefix is the configured one, else the name in the package's context. Errors are error results (upstream
    exits 0).
    """
    prefixes = _read(items, config, context)
    if isinstance(prefixes, str):
        return Output(tuple(items), (Result(prefixes, "error"),))
    old, new = prefixes
    carrying = [item for item in items if _carries(item, old)]
    size = sum(text_bytes(new) + text_bytes(item.name) for item in carrying)
    context.budget.create(size, "the names with the prefix", new)
    renamed = {item: new + item.name.removeprefix(old) for item in carrying}
    references = followed_names(items, renamed, context.budget)
    return Output(
        tuple(
            item.with_values(charged((*_own(item, renamed, context.budget), *references[item]), item, context.budget))
            for item in items
        )
    )


def _read(items: Sequence[Item], config: Config | None, context: FunctionContext) -> tuple[str, str] | str:
    """Return the old and the new prefix, or what is wrong with the configuration."""
    config = config or {}
    if config and (config.get("apiVersion"), config.get("kind")) != ("v1", "ConfigMap"):
        return f'the configuration must be a ConfigMap, not "{config.get("kind")}"'
    known = next((item for item in items if item.package == context.package and is_context(item.data)), None)
    named = string_map(value_at(known.data, ("data",))).get("name", "") if known else ""
    data = config_strings(config.get("data"), "data")
    new = data.get("prefix", named)
    return (data.get("oldPrefix", _PLACEHOLDER), new) if new else "`data.prefix` should not be empty"


def _carries(item: Item, old: str) -> bool:
    is_kept = item.is_local_config or item.kind == "ResourceGroup"
    return not is_kept and bool(old) and (item.name == old or item.name.startswith(f"{old}-"))


def _own(item: Item, renamed: Mapping[Item, str], budget: Budget) -> Iterator[tuple[Path, str]]:
    if item in renamed:
        yield _NAME, renamed[item]
    depending = item.annotations.get(DEPENDS_ON)
    if isinstance(depending, str):
        yield _ANNOTATION, followed_entries(depending, renamed, budget)
