"""A target with its packages and drafts, as they were read from its branches."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.review.open_drafts import DraftDetails, DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import TargetPackage
from reconciler.planning.model.targets import Target


@dataclass(frozen=True)
class PackageData:
    """One package of one target, with the data that the report shows.

    Attributes:
        since: The date of the first commit with the current content, in seconds since 1970. None if it is unknown.
        details: The files and causes of the draft. None if there is no draft.
        status_file: The content of the status file on the target branch. b"" if there is no such file.
        publication: The publication of the current revision. None if there is no revision.
    """

    package_state: TargetPackage
    since: int | None
    details: DraftPackageDetails | None = None
    status_file: bytes = b""
    publication: Publication | None = None

    @property
    def draft_status(self) -> Mapping[str, Any]:
        """The content of the status file on the draft branch. {} if there is no draft, or if the file is invalid."""
        return self.package_state.drafted_package.status if self.package_state.drafted_package else {}


@dataclass(frozen=True)
class TargetData:
    """One target with its packages and drafts, or the reason why the target cannot be read.

    Attributes:
        drafts: The draft details by name of the draft branch.
        seconds: The date of the latest commit, in seconds since 1970. 0 if there is no commit.
        read_error: The error message if the target cannot be read. "" if the target was read.
        head: The head of the target branch. "" if there is no such branch.
    """

    target: Target
    labels: Mapping[str, str] = field(default_factory=dict)
    packages: tuple[PackageData, ...] = ()
    drafts: Mapping[str, DraftDetails] = field(default_factory=dict)
    seconds: int = 0
    read_error: str = ""
    head: str = ""

    def get_target_names(self, package: PackageData) -> TargetNames:
        """Return the names of this cluster and of the owner of the package."""
        return TargetNames(self.target.name, package.package_state.record.owner.key.name)
