"""The key of a change. Drafts with the same cause have the same key on all targets."""

from __future__ import annotations

from typing import Literal

from reconciler.controllers.results import PackageOwner
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.fleet.target_names import TargetNames
from reconciler.planning.model.state import PackageRecord

Operation = Literal["install", "update", "re-render", "delete", "edit"]
_ID_LENGTH = 7
ANY_TARGET = "*"
"""The text for the name of a target in keys and titles of changes. No name of a target contains this character."""


@dataclass(frozen=True)
class Change:
    """The change of a draft.

    Attributes:
        operation: "edit" means that the draft contains only local changes.
        owner: The object that requests the package, or the set that creates this object.
        before: The upstream before the change, as `repository/package revision commit`. "" if there is none.
        after: The upstream after the change. "" if there is none.
        owner_name: The name of the object that requests the package.
        is_generated: Whether a set or preset creates this object.
    """

    operation: Operation
    owner: str
    package: str
    before: str = ""
    after: str = ""
    owner_name: str = ""
    is_generated: bool = False

    def compute_key(self, target: str) -> str:
        """Return the key of the change. The name of the target is replaced by a placeholder."""
        names = TargetNames(target, self.owner_name)
        # A set or preset is the same object for all targets, so its name is not replaced.
        owner = self.owner if self.is_generated else names.replace_cluster(self.owner, ANY_TARGET)
        package = names.replace_cluster(self.package, ANY_TARGET)
        upstreams = (TargetNames(target).mask_names(text) for text in (self.before, self.after))
        return compute_digest([self.operation, owner, package, *upstreams])

    @property
    def versions(self) -> str:
        """The upstream revisions before and after the change, such as `v1 → v2`."""
        revisions = [_get_revision(summary) for summary in (self.before, self.after) if summary]
        if len(revisions) == 2 and revisions[0] == revisions[1]:
            commits = [summary.rpartition(" ")[2][:_ID_LENGTH] for summary in (self.before, self.after)]
            return revisions[0] if commits[0] == commits[1] else f"{revisions[0]} moved to {commits[1]}"
        return " → ".join(revisions)

    def __str__(self) -> str:
        return " ".join(filter(None, (self.operation, self.package, self.versions)))


def _get_revision(summary: str) -> str:
    """Return the revision of an upstream summary, without the name of the package in front of the revision."""
    return summary.split(" ")[-2].rpartition("/")[2] if summary.count(" ") > 1 else summary


def describe_change(record: PackageRecord, package: str) -> Change:
    """Return the change of the open draft of a package."""
    before = record.published_version.upstream if record.published_version else ""
    after = record.draft_version.upstream if record.draft_version else ""
    owner = record.owner
    change = Change(
        _get_operation(record, before, after), format_owner(owner), package, before, after, owner.key.name,
        owner.parent is not None,
    )  # fmt: skip
    return replace(change, before="", after="") if record.removal else change


def _get_operation(record: PackageRecord, before: str, after: str) -> Operation:
    if record.removal:
        return "delete"
    if record.draft_version is None:
        return "edit"
    if record.published_version is None:
        return "install"
    return "re-render" if before == after else "update"


def format_owner(owner: PackageOwner) -> str:
    """Return the name of the object that requests a package, or of the set that creates this object."""
    return str(owner.parent or owner.key)
