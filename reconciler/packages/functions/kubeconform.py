"""kubeconform and kubeval: resources against the schemas of their kinds (kpt.md 16).

Schemas are not fetched: what is read is what is installed along with us, of Kubernetes' own kinds. Upstream's images
carry those, too, and those of some clouds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass

from reconciler.krm.schema.validation import EXTRA, KubernetesSchemas, Violation, kubernetes_schemas, schemas_version
from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    Result,
    ResultSeverity,
    config_strings,
    failure,
    reports_faults,
    string_map,
)
from reconciler.packages.functions.kubeconform_words import Said, kubeconform_words, kubeval_words
from reconciler.packages.kptfile import Profile

# where upstream's images keep the schemas they bring along
_CARRIED = ("default", "/jsonschema", "file:///jsonschema")
# kinds whose schemas upstream's kubeval brings along, and we do not
_CLOUDS = (".cloud.google.com", ".gke.io")
_TRUE, _FALSE = ("true", "1"), ("", "false", "0")

Words = Callable[[Sequence[Violation], Profile], Iterator[Said]]


@dataclass(frozen=True)
class _Wish:
    locations: tuple[str, ...]
    skipped: tuple[str, ...]
    ignores_missing: bool
    strict: bool

    @property
    def elsewhere(self) -> list[str]:
        return [location for location in self.locations if location.rstrip("/") not in _CARRIED]


@reports_faults
def kubeconform(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items and an error for every violation, as kubeconform words them.

    A kind without a schema gets a warning; upstream loses that error on its way to the results (`compat`: silence).
    """
    return _validated(items, config, context, kubeconform_words, "warning" if context.profile == "safe" else None)


@reports_faults
def kubeval(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items and an error for every violation and every kind without a schema, as kubeval words them."""
    return _validated(items, config, context, kubeval_words, "error")


def installed() -> str:
    """Return what these functions validate with, which changes without us."""
    return schemas_version() or "no schemas"


def _validated(
    items: Sequence[Item],
    config: Config | None,
    context: FunctionContext,
    words: Words,
    missing: ResultSeverity | None,
) -> Output:
    wish = _wish(config)
    if isinstance(wish, str):
        return failure(items, wish)
    schemas = kubernetes_schemas(strict=wish.strict)
    if schemas is None:
        return failure(items, f'no schemas are installed: the extra "{EXTRA}" brings them, `reconciler[{EXTRA}]`')
    if wish.elsewhere and len(wish.elsewhere) == len(wish.locations):
        return failure(items, f"{_unreadable(wish.elsewhere)}; leave it out to use the schemas that are installed")
    checked = (item for item in items if not _is_skipped(item, wish))
    found = tuple(result for item in checked for result in _of_item(item, schemas, wish, context, words, missing))
    told = (Result(_unreadable(wish.elsewhere), "warning"), *found) if wish.elsewhere else found
    return Output(tuple(items), told, failed=any(result.severity == "error" for result in told))


def _wish(config: Config | None) -> _Wish | str:
    """Return what the configuration asks for, or what is wrong with it."""
    # kpt.md 16: a ConfigMap; upstream's kubeconform takes the fields beside `kind`, too
    values = config_strings((config or {}).get("data"), "data") | string_map(config)
    flags = {name: values.get(name, "").lower() for name in ("ignore_missing_schemas", "strict")}
    for name, value in flags.items():
        if value not in (*_TRUE, *_FALSE):
            return f'`{name}` must be "true" or "false", not "{values[name]}"'
    named = [values.get("schema_location", ""), *values.get("additional_schema_locations", "").split(",")]
    return _Wish(
        locations=_stripped(named),
        skipped=_stripped(values.get("skip_kinds", "").split(",")),
        ignores_missing=flags["ignore_missing_schemas"] in _TRUE,
        strict=flags["strict"] in _TRUE,
    )


def _stripped(names: Iterable[str]) -> tuple[str, ...]:
    return tuple(name.strip() for name in names if name.strip())


def _unreadable(locations: Sequence[str]) -> str:
    shown = ", ".join(f'"{location}"' for location in locations)
    return f"schema_location: {shown} cannot be read, since functions have neither a network nor files"


def _is_skipped(item: Item, wish: _Wish) -> bool:
    # a Kptfile is checked whenever it is read
    return item.kind == "Kptfile" or item.kind in wish.skipped or f"{item.api_version}/{item.kind}" in wish.skipped


def _of_item(
    item: Item,
    schemas: KubernetesSchemas,
    wish: _Wish,
    context: FunctionContext,
    words: Words,
    missing: ResultSeverity | None,
) -> Iterator[Result]:
    resource = (item.api_version, item.kind, item.namespace, item.name)
    violations = schemas.violations(item.data)
    if violations is not None:
        for path, message in words(violations, context.profile):
            yield item.result(message, "error", path, resource=resource)
    elif missing and not wish.ignores_missing and not (item.is_local_config and context.profile == "safe"):
        severity = "warning" if item.group.endswith(_CLOUDS) else missing
        yield item.result(_no_schema(item), severity, resource=resource)


def _no_schema(item: Item) -> str:
    return (
        f"no schema is installed for {item.api_version} {item.kind}; "
        "`ignore_missing_schemas` or `skip_kinds` in the function's configuration leave it out"
    )
