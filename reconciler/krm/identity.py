"""Identity: what makes two objects the same object (design 10.2)."""

from __future__ import annotations

import uuid
from typing import NamedTuple


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return (group, version); the core group is ""."""
    group, slash, version = api_version.rpartition("/")
    return (group, version) if slash else ("", api_version)


class ObjectKey(NamedTuple):
    """(group, kind, namespace, name); the version is not part of it. No namespace is ""."""

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace or '_cluster'}/{self.name}"

    def as_data(self) -> dict[str, str]:
        """Return its parts by their names."""
        return {"group": self.group, "kind": self.kind, "namespace": self.namespace, "name": self.name}

    @property
    def uid(self) -> str:
        """The UUIDv5 that stands in for a Kubernetes uid (design 10.33)."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.group}/{self.kind}/{self.namespace}/{self.name}"))
