"""The key of a change. Drafts with the same cause have the same key on all targets."""

from __future__ import annotations

from typing import Literal

from reconciler.controllers.results import PackageOwner
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.report.model import TargetNames
from reconciler.output.text import format_object
from reconciler.planning.model.state import PackageRecord

Operation = Literal["install", "update", "re-render", "delete"]
_ID_LENGTH = 7


@dataclass(frozen=True)
class Change:
    """The change of a draft.

    Attributes:
        owner: The object that requests the package, or the set that creates this object.
        before: The upstream before the change, as `repository/package revision commit`. "" if there is none.
        after: The upstream after the change. "" if there is none.
    """

    operation: Operation
    owner: str
    package: str
    before: str = ""
    after: str = ""

    def compute_key(self, target: str) -> str:
        """Return the key of the change. The name of the target is replaced by a placeholder."""
        names = TargetNames(target)
        texts = (self.operation, self.owner, self.package, self.before, self.after)
        return compute_digest([names.mask_names(text) for text in texts])

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
    owner = format_owner(record.owner)
    if record.removal:
        return Change("delete", owner, package)
    before = record.published_version.upstream if record.published_version else ""
    after = record.draft_version.upstream if record.draft_version else ""
    if record.published_version is None:
        return Change("install", owner, package, after=after)
    return Change("re-render" if before == after else "update", owner, package, before, after)


def format_owner(owner: PackageOwner) -> str:
    """Return the name of the object that requests a package, or of the set that creates this object."""
    return format_object(owner.parent or owner.key)
