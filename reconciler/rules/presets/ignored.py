"""What Greenhouse has and presets here do not: Catalogs, whose overrides would be one more layer (greenhouse 2.7)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.rules.presets.codes import CATALOG_IGNORED
from reconciler.rules.presets.model import GROUP
from reconciler.snapshot.catalog import Catalog

_CATALOG = "Catalog"


def ignored_catalogs(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each source of a Catalog that overrides plugin definitions."""
    for one in catalog.of_kind(GROUP, _CATALOG):
        spec = one.data.get("spec")
        sources = spec.get("sources") if isinstance(spec, Mapping) else None
        for index, source in enumerate(sources if isinstance(sources, list) else ()):
            if _overrides(source):
                message = f"spec.sources[{index}].overrides has no effect here: a PluginOverride with mode Default has"
                yield CATALOG_IGNORED.finding(message, one.where_at(("spec", "sources", index, "overrides")))


def _overrides(source: Any) -> bool:
    return isinstance(source, Mapping) and bool(source.get("overrides"))
