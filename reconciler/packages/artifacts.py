"""Artifacts: charts and packages that a chart repository or an OCI registry serves.

The package `sources` downloads artifacts. This module contains only the data that controllers and renders use.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal

from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field

UPSTREAM_NOT_FOUND = "UpstreamNotFound"
"""The finding code for a chart, package, version or tag that does not exist.

The controller for PackageVariants defines this code.
"""
CHART_LAYER = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
"""The media type of the layer with the archive of a chart."""


@dataclass(frozen=True)
class SignerIdentity:
    """The identity of a signer in a keyless signature. Both fields are regular expressions."""

    issuer: str
    subject: str


@dataclass(frozen=True)
class VerifySpec:
    """The required signatures of a Repository.

    Attributes:
        provider: `cosign` for signatures in a registry, `provenance` for `.prov` files of a chart repository.
        secret_name: The name of the folder with the keys: `*.pub` for cosign, `*.gpg` or `*.asc` for provenance files.
        identities: The signers whose keyless signatures are accepted.
    """

    provider: Literal["cosign", "provenance"]
    secret_name: str = ""
    identities: tuple[SignerIdentity, ...] = ()


@dataclass(frozen=True)
class ArtifactRepository:
    """A Repository object of type `helm` or `oci`.

    Attributes:
        namespace: The namespace of the object.
        name: The name of the object.
        type: With `helm`, the artifacts are charts. With `oci`, they are packages or charts.
        url: An `https://` or `http://` URL of a chart repository, or `oci://host[:port]/path`.
        insecure: Whether the registry at an `oci://` URL uses plain HTTP.
        pass_credentials: Whether the credentials are also sent to other hosts that an index refers to.
        secret_name: The name of the folder with the credentials. "" if there is none.
        cert_secret_name: The name of the folder with certificates. "" if there is none.
        layer_media_type: The media type of the layer to read. "" for the first archive.
        ignore: Patterns of files to leave out, with the syntax of `.gitignore`.
        verify: The required signatures. None if no signature is required.
    """

    namespace: str
    name: str
    type: Literal["helm", "oci"]
    url: str
    insecure: bool = False
    pass_credentials: bool = False
    secret_name: str = ""
    cert_secret_name: str = ""
    layer_media_type: str = ""
    ignore: str = ""
    verify: VerifySpec | None = None

    @property
    def is_registry(self) -> bool:
        """Whether the artifacts are in an OCI registry, and not in a chart repository with an index file."""
        return self.url.startswith("oci://")


@dataclass(frozen=True)
class ArtifactVersion:
    """One version of a chart, or one tag of an OCI artifact.

    Attributes:
        version: The version in the index of the chart repository, or the tag. If the tag is a version, "_" is replaced
            with "+".
        digest: The digest of the archive for a chart repository, and of the manifest for an OCI registry. "" if it is
            unknown: for a chart in an index without digests, and for a tag in a list of tags.
        url: The URL of the archive. "" for an OCI registry.
        created_seconds: The date of the version in seconds since 1970. 0 if the date is unknown.
        app_version: The field `appVersion` of a chart.
        first_seen_seconds: The time when the cache first contained the version, in seconds since 1970.
    """

    version: str
    digest: str = ""
    url: str = ""
    created_seconds: int = 0
    app_version: str = ""
    first_seen_seconds: int = 0


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
        notes: Further information, such as entries of the index that are ignored.
    """

    versions: Sequence[ArtifactVersion]
    problem: SourceProblem | None = None
    notes: tuple[SourceProblem, ...] = ()


@dataclass(frozen=True)
class ResolvedTag:
    """The version to which a tag points.

    Attributes:
        problem: The reason why the tag could not be read in this pass. The version is then the last known version.
    """

    version: ArtifactVersion
    problem: SourceProblem | None = None


@dataclass(frozen=True)
class Artifact:
    """The unpacked files of an artifact. The paths are relative to the folder of the chart or package.

    Attributes:
        digest: The digest that identifies the version, as in `ArtifactVersion`.
        skipped: The paths of symbolic and hard links in the archive, which are left out.
    """

    files: FileTree
    digest: str
    created_seconds: int = 0
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class ChartDependencySource:
    """A chart that a source requires and does not contain.

    Attributes:
        folder: The folder of the source that receives the files of the chart.
        other_digest: The digest that the repository now has for the same version. "" if it equals `version.digest`.
    """

    name: str
    version: ArtifactVersion
    repository: ArtifactRepository
    folder: str
    other_digest: str = field(default="", compare=False)

    def as_data(self) -> dict[str, str]:
        """Return the dependency in the format of status files."""
        return {"name": self.name, "version": self.version.version, "digest": self.version.digest}
