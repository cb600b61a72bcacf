"""depends-on: the annotation that names what must be applied before a resource."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import re2

from reconciler.packages.functions.function import Item
from reconciler.packages.functions.limits import Budget, text_bytes
from reconciler.packages.resource import Described

DEPENDS_ON = "config.kubernetes.io/depends-on"
_NAMESPACED = re2.compile(r"([-.\w]*)/namespaces/([-.\w]*)/([-.\w]*)/([-.\w]*)")
_CLUSTER = re2.compile(r"([-.\w]*)/([-.\w]*)/([-.\w]*)")
_DEFAULT = "default"


@dataclass(frozen=True)
class Dependency:
    """One entry: `<group>/namespaces/<namespace>/<kind>/<name>`, without the namespace for kinds of the cluster."""

    group: str
    namespace: str
    kind: str
    name: str

    def __str__(self) -> str:
        """Return the entry as it is written."""
        place = f"namespaces/{self.namespace}/" if self.namespace else ""
        return f"{self.group}/{place}{self.kind}/{self.name}"

    def names(self, resource: Described) -> bool:
        """Tell whether this is the resource meant; one without a namespace lives in `default`."""
        same = (self.group, self.kind, self.name) == (resource.group, resource.kind, resource.name)
        return same and self.namespace in ("", resource.namespace or _DEFAULT)


def read_dependency(entry: str) -> Dependency | None:
    """Return an entry's parts, or None when it is none."""
    if match := _NAMESPACED.fullmatch(entry.strip()):
        group, namespace, kind, name = match.groups()
        return Dependency(group, namespace, kind, name)
    if match := _CLUSTER.fullmatch(entry.strip()):
        group, kind, name = match.groups()
        return Dependency(group, "", kind, name)
    return None


def followed_entries(annotation: str, renamed: Mapping[Item, str], budget: Budget) -> str:
    """Return the annotation's text, entries with commas between, with the new names of what is renamed.

    Raises LimitError.
    """
    entries = annotation.split(",")
    budget.spend(len(entries) * len(renamed))
    followed = []
    for entry in entries:
        followed.append(_followed(entry, renamed))
        budget.create(text_bytes(followed[-1]), f"the annotation {DEPENDS_ON}", annotation)
    return ",".join(followed)


def _followed(entry: str, renamed: Mapping[Item, str]) -> str:
    dependency = read_dependency(entry)
    name = next((name for item, name in renamed.items() if dependency and dependency.names(item)), None)
    return entry if dependency is None or name is None else str(replace(dependency, name=name))
