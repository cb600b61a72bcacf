"""Keys and conditions of Kubernetes objects."""

from __future__ import annotations

import uuid
from collections.abc import Iterable
from typing import Literal, NamedTuple

from reconciler.lazy_dataclasses import dataclass


def split_api_version(api_version: str) -> tuple[str, str]:
    """Split an apiVersion into group and version, e.g. "apps/v1" -> ("apps", "v1"). The core group is ""."""
    group, slash, version = api_version.rpartition("/")
    return (group, version) if slash else ("", api_version)


class ObjectKey(NamedTuple):
    """The group, kind, namespace and name that identify an object. The API version is not included.

    The namespace of a cluster-scoped object is "".
    """

    group: str
    kind: str
    namespace: str
    name: str

    def __str__(self) -> str:
        """The object as `Kind namespace/name`, or as `Kind name` if it is cluster-scoped, for messages."""
        return f"{self.kind} {self.namespace}/{self.name}" if self.namespace else f"{self.kind} {self.name}"

    @property
    def reference(self) -> str:
        """The object as `Kind/namespace/name`, for data. The namespace of a cluster-scoped object is `_cluster`."""
        return f"{self.kind}/{self.namespace or '_cluster'}/{self.name}"

    def as_data(self) -> dict[str, str]:
        """Return a mapping with the keys `group`, `kind`, `namespace` and `name`."""
        return {"group": self.group, "kind": self.kind, "namespace": self.namespace, "name": self.name}

    @property
    def uid(self) -> str:
        """A UUIDv5 computed from group, kind, namespace and name.

        This value replaces the Kubernetes UID, because no API server assigns UIDs to config objects.
        """
        return str(uuid.uuid5(uuid.NAMESPACE_URL, f"{self.group}/{self.kind}/{self.namespace}/{self.name}"))


ConditionStatus = Literal["True", "False", "Unknown"]


@dataclass(frozen=True, order=True)
class Condition:
    """A Kubernetes condition without `lastTransitionTime`. Only the status branch contains the times of conditions."""

    type: str
    status: ConditionStatus
    reason: str
    message: str = ""

    def as_data(self) -> dict[str, str]:
        """Return the condition as a mapping for YAML."""
        return {"type": self.type, "status": self.status, "reason": self.reason, "message": self.message}


def upsert_conditions(conditions: Iterable[Condition], *changes: Condition) -> tuple[Condition, ...]:
    """Add conditions, or replace the existing conditions of the same type. Return all conditions, sorted by type."""
    by_type = {condition.type: condition for condition in (*conditions, *changes)}
    return tuple(by_type[name] for name in sorted(by_type))
