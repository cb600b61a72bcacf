"""depends-on: the annotation that names what must be applied before a resource."""

from __future__ import annotations

from dataclasses import dataclass

import re2

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
