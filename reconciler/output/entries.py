"""Models that several results share: owners of packages, and conflicts of local changes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal

from pydantic import Field

from reconciler.controllers.results import PackageOwner
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.output.envelope import OutputModel
from reconciler.output.status.package_sections import format_recorded_conflicts
from reconciler.planning.model.sources import filter_recorded_conflicts

_OWNER_FIELDS = {"apiVersion": "api_version", "kind": "kind", "namespace": "namespace", "name": "name", "set": "set"}


class OwnerEntry(OutputModel):
    """The object that requests a package."""

    api_version: str = ""
    kind: str = ""
    namespace: str = ""
    name: str = ""
    set: str = Field(
        default="",
        description="The name of the object that created the owner, such as the name of a PackageVariantSet.",
    )

    @property
    def title(self) -> str:
        """The owner as `Kind namespace/name`. "" if the owner is unknown."""
        return " ".join(filter(None, (self.kind, "/".join(filter(None, (self.namespace, self.name))))))

    @property
    def reference(self) -> str:
        """The owner as `Kind/namespace/name`."""
        return ObjectKey("", self.kind, self.namespace, self.name).reference


def build_owner_entry(owner: PackageOwner) -> OwnerEntry:
    """Return the entry of an owner."""
    return read_owner_entry(owner.as_data())


def read_owner_entry(data: object) -> OwnerEntry:
    """Return the entry of the owner in a status file. Ignore invalid fields, because anyone can edit the file."""
    fields = data if isinstance(data, Mapping) else {}
    return OwnerEntry(**{
        name: fields[key] for key, name in _OWNER_FIELDS.items() if isinstance(fields.get(key), str)
    })  # fmt: skip


class ConflictEntry(OutputModel):
    """A conflict between a local change and a change of the upstream or of the config. Secrets are masked.

    If a side has no value, its field is absent.
    """

    kind: str = Field(
        description="The part that is in conflict: `field`, `element` (of a list), `resource`, `file` or `package`."
    )
    file: str = ""
    resource: str = Field(default="", description="The resource with the conflict, as `Kind/namespace/name`.")
    pointer: str = Field(default="", description="The JSON pointer of the field.")
    base: Any = ABSENT
    local: Any = ABSENT
    upstream: Any = ABSENT
    chosen: Literal["local", "upstream", "rule", "none"] = Field(
        description="The side that won. The package contains the value of this side."
    )
    rule: str = Field(description="The rule that determined the chosen side.")


def build_conflict_entries(recorded: object) -> tuple[ConflictEntry, ...]:
    """Return the conflicts in the field `conflicts` of a status file. Skip invalid entries."""
    return tuple(map(_build_conflict_entry, filter_recorded_conflicts(recorded)))


def _build_conflict_entry(data: Mapping[str, Any]) -> ConflictEntry:
    sides = {side: data[side] for side in ("base", "local", "upstream") if side in data}
    texts = {name: str(data[name]) for name in ("kind", "file", "resource", "pointer", "rule") if name in data}
    return ConflictEntry(**texts, **sides, chosen=data["chosen"])


def format_conflict_entries(conflicts: Iterable[ConflictEntry]) -> tuple[str, ...]:
    """Return one line per conflict."""
    return format_recorded_conflicts([conflict.to_data() for conflict in conflicts])
