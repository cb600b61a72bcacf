"""Identity and conditions of Kubernetes objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Literal, NamedTuple


def split_api_version(api_version: str) -> tuple[str, str]:
    """Return (group, version). The core group is ""."""
    group, slash, version = api_version.rpartition("/")
    return (group, version) if slash else ("", api_version)


class ObjectKey(NamedTuple):
    """The identity of an object: group, kind, namespace and name. The version is not part of it.

    The namespace of a cluster-scoped object is "".
    """

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.kind}/{self.namespace or '_cluster'}/{self.name}"

    def as_data(self) -> dict[str, str]:
        """Return the parts by name."""
        return {"group": self.group, "kind": self.kind, "namespace": self.namespace, "name": self.name}

    @property
    def uid(self) -> str:
        """A UUIDv5 derived from the identity. It replaces the Kubernetes UID, because there is no API server."""
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.group}/{self.kind}/{self.namespace}/{self.name}"))


ConditionStatus = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, order=True)
class Condition:
    """A Kubernetes condition without its times. Only the status branch contains times."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""

    def as_data(self) -> dict[str, str]:
        """Return the condition as a mapping for YAML."""
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}


def upsert_conditions(conditions: Iterable[Condition], *changes: Condition) -> tuple[Condition, ...]:
    """Return the conditions, with `changes` replacing those of the same type, sorted by type."""
    by_type = {condition.type: condition for condition in (*conditions, *changes)}
    return tuple(by_type[name] for name in sorted(by_type))
