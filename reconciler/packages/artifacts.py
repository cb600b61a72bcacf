"""Artifacts: charts and packages that a chart repository or an OCI registry serves.

The package `sources` downloads artifacts. This module contains only the data that controllers and renders use.
"""

from __future__ import annotations

from collections.abc import Sequence

from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass


@dataclass(frozen=True)
class ArtifactVersion:
    """One version of a chart, or one tag of an OCI artifact.

    Attributes:
        version: The version in the index of the chart repository, or the tag. In a version, "_" of a tag is "+" again.
        digest: The digest of the archive for a chart repository, and of the manifest for an OCI registry. "" if the
            index contains no digest.
        url: The URL of the archive. "" for an OCI registry.
        created_seconds: The date of the version in seconds since 1970. 0 if the date is unknown.
        app_version: The field `appVersion` of a chart.
    """

    version: str
    digest: str = ""
    url: str = ""
    created_seconds: int = 0
    app_version: str = ""


@dataclass(frozen=True)
class SourceProblem:
    """The reason why an artifact cannot be used now.

    Attributes:
        code: The name of a finding code, such as `SourceUnreachable`.
        should_retry: Whether a later pass can succeed although the config does not change.
    """

    code: str
    message: str
    should_retry: bool = False


@dataclass(frozen=True)
class VersionList:
    """The versions of one chart or artifact, in any order.

    Attributes:
        problem: The reason why the list could not be read in this pass. The list is then the last known list.
    """

    versions: Sequence[ArtifactVersion]
    problem: SourceProblem | None = None


@dataclass(frozen=True)
class Artifact:
    """The unpacked files of an artifact. The paths are relative to the folder of the chart or package.

    Attributes:
        digest: The digest that identifies the version, as in `ArtifactVersion`.
        skipped: The paths of symbolic links in the archive, which are left out.
    """

    files: FileTree
    digest: str
    created_seconds: int = 0
    skipped: tuple[str, ...] = ()
