"""The input of an import: units (packages on clusters), clusters, and the parts that cannot be imported."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field

MAX_CLUSTERS = 2_000
MAX_UNITS = 50_000
MAX_DIFFERENT_LEAVES = 20
"""The maximum number of different fields or chart values with which clusters share a package or a PackageVariantSet."""
AGENT_SUGGESTION = "Configure this in the tool that applies the target branches, such as Argo CD or Flux."
MOVE_CREDENTIALS = "Delete them from the URL, and put them into a file that the settings name."
"""The suggestion for a URL with credentials."""
CLUSTER_IN_SECRET = (
    "the import cannot detect the cluster, because a Secret contains its address",
    "Move the object to the folder of its cluster, and delete the field kubeConfig.",
)
"""The reason and the suggestion for an object of Flux that names its cluster in a Secret."""


class AdoptionError(Exception):
    """The input cannot be imported as a whole. The message contains the reason and the next step."""


@dataclass(frozen=True)
class Cluster:
    """A cluster with the labels that the import found.

    Attributes:
        directory: The folder in the imported repository that contains the packages of the cluster. "" if the packages
            are not in one folder.
    """

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)
    directory: str = ""


@dataclass(frozen=True)
class Unit:
    """One package on one cluster, with the files that the cluster has now.

    Attributes:
        folder: The folder of the package in the imported repository or folder.
        unverified_reason: The reason why the content cannot be compared completely, or "".
        namespace: The namespace of resources without a namespace, or "" if it is unknown.
    """

    cluster: str
    package: str
    folder: str
    files: FileTree
    unverified_reason: str = ""
    namespace: str = ""


@dataclass(frozen=True)
class NotImported:
    """A part of the input that has no equivalent in the new config, with the reason and a suggestion."""

    file: str
    reason: str
    suggestion: str
    line: int = 0
    field: str = ""


@dataclass(frozen=True)
class Choice:
    """A choice of the import with its reason, for the option --explain."""

    package: str
    subject: str
    reason: str


@dataclass(frozen=True)
class Fleet:
    """The clusters and the packages that an import found, and the parts of the input that cannot be imported."""

    clusters: tuple[Cluster, ...]
    units: tuple[Unit, ...]
    not_imported: tuple[NotImported, ...] = ()

    def check_limits(self) -> None:
        """Check the number of clusters and units.

        Raises:
            AdoptionError: A limit is exceeded.
        """
        for count, limit, noun in (
            (len(self.clusters), MAX_CLUSTERS, "clusters"),
            (len(self.units), MAX_UNITS, "packages of clusters"),
        ):
            if count > limit:
                raise AdoptionError(
                    f"the source contains {count:,} {noun}, but one import can have at most {limit:,}: use --path to"
                    " import a part of it"
                )
