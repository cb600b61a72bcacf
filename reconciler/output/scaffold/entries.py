"""The content of a new config: catalogs, clusters and packages, with their notation on the command line.

This module does not access the repositories, and it does not write the files of the config.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Literal, get_args

from reconciler.krm import field_text
from reconciler.krm.json_text import DIGEST_PATTERN
from reconciler.krm.names import (
    validate_dns_label,
    validate_dns_subdomain,
    validate_label_key,
    validate_label_value,
    validate_package_path,
)
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.redaction import has_credentials, redact_url

RepositoryType = Literal["git", "helm", "oci"]
_CATALOG = re.compile(r"(?P<name>[^=:/]*)(?::(?P<type>[^=:/]*))?=(?P<url>.+)", re.DOTALL)
_REVISION = re.compile(r"v?[1-9][0-9]*")
_VERSION_OR_RANGE = re.compile(r"v?[0-9]+\.[0-9]+\.[0-9]+(?:[-+].*)?|[<>=^~*].*")


@dataclass(frozen=True)
class CatalogEntry:
    """A Repository with upstream packages. `type` is "" until the type is detected from the URL."""

    name: str
    url: str
    branch: str = ""
    type: RepositoryType | Literal[""] = ""


@dataclass(frozen=True)
class ClusterEntry:
    """A cluster with its labels. Its packages are on the branch `clusters/<name>` of the fleet repository."""

    name: str
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class PackageEntry:
    """A package or chart of a catalog. `version` is a revision, tag, version or digest, or "" for the newest."""

    catalog: str
    path: str
    version: str = ""

    @property
    def name(self) -> str:
        """The last segment of the path. The PackageVariantSet and its file have this name."""
        return self.path.rpartition("/")[2]


@dataclass(frozen=True)
class Scaffold:
    """The content of a new config.

    Attributes:
        selector: Labels of the clusters that receive the packages. The default is all clusters.
    """

    catalogs: tuple[CatalogEntry, ...]
    fleet_url: str
    clusters: tuple[ClusterEntry, ...]
    packages: tuple[PackageEntry, ...] = ()
    selector: Mapping[str, str] = field(default_factory=dict)

    @property
    def selected_clusters(self) -> tuple[ClusterEntry, ...]:
        """The clusters that receive the packages."""
        labels = self.selector.items()
        return tuple(cluster for cluster in self.clusters if labels <= cluster.labels.items())


def check_url(url: str) -> str:
    """Return the URL.

    Raises:
        ValueError: The URL is empty, or contains credentials.
    """
    if not url.strip():
        raise ValueError("the URL must not be empty")
    if has_credentials(url):
        raise ValueError(
            f"{redact_url(url)!r} must not contain a user name, password or token (CredentialInUrl): put credentials"
            " into a file that the setting `git.credentials` names"
        )
    return url


def parse_catalog(text: str) -> CatalogEntry:
    """Parse `NAME=URL[#BRANCH]` or `NAME:TYPE=URL[#BRANCH]`.

    Raises:
        ValueError: The text has a different form, or a part is invalid.
    """
    match = _CATALOG.fullmatch(text)
    if match is None:
        raise ValueError(f"{redact_url(text)!r} must have the form NAME=URL, NAME=URL#BRANCH or NAME:TYPE=URL")
    url, has_branch, branch = match["url"].partition("#")
    _require(validate_dns_subdomain(match["name"]), "the name of the catalog is invalid")
    check_url(url)
    stated_type = match["type"]
    if stated_type is not None and stated_type not in get_args(RepositoryType):
        raise ValueError(
            f'the type of a catalog must be "git", "helm" or "oci", but is {field_text.quote_value(stated_type)}'
        )
    kind: RepositoryType | Literal[""] = "oci" if url.startswith("oci://") else ""
    if stated_type:
        kind = next(name for name in get_args(RepositoryType) if name == stated_type)
    if has_branch and (kind in ("helm", "oci") or not branch):
        raise ValueError(f"{redact_url(text)!r}: #BRANCH requires a Git repository and the name of a branch")
    return CatalogEntry(match["name"], url, branch, kind)


def parse_cluster(text: str) -> ClusterEntry:
    """Parse `NAME[,KEY=VALUE…]`.

    Raises:
        ValueError: The name or a label is invalid.
    """
    name, *labels = (part.strip() for part in text.split(","))
    return create_cluster(name, dict(map(parse_label, labels)))


def parse_label(text: str) -> tuple[str, str]:
    """Parse `KEY=VALUE`.

    Raises:
        ValueError: The text has a different form, or the key or value is invalid.
    """
    key, separator, value = text.partition("=")
    if not separator:
        raise ValueError(f"{text!r} must have the form KEY=VALUE")
    _require(validate_label_key(key), "the label is invalid")
    _require(validate_label_value(value), f'the label "{key}" is invalid')
    return key, value


def create_cluster(name: str, labels: Mapping[str, str]) -> ClusterEntry:
    """Return a cluster with a checked name.

    Raises:
        ValueError: The name is invalid.
    """
    _require(validate_dns_label(name), "the name of the cluster is invalid")
    return ClusterEntry(name, labels)


def parse_clusters_file(text: str) -> tuple[ClusterEntry, ...]:
    """Parse a table in CSV with the column `name` and one column per label, or a list with one name per line.

    The list is the output of `kubectl config get-contexts -o name`. Empty values of a table add no label.

    Raises:
        ValueError: A line is invalid. The message contains the line number.
    """
    import csv

    lines = text.removeprefix("\ufeff").splitlines()
    rows = [(number, row) for number, row in enumerate(csv.reader(lines), 1) if any(cell.strip() for cell in row)]
    if not rows:
        raise ValueError("the file must contain at least one cluster")
    header = [cell.strip() for cell in rows[0][1]]
    if "name" in header:
        return tuple(_read_row(number, row, header) for number, row in rows[1:])
    return tuple(_read_row(number, row, ["name"]) for number, row in rows)


def _read_row(number: int, row: Sequence[str], header: Sequence[str]) -> ClusterEntry:
    if len(row) != len(header):
        raise ValueError(f"line {number}: must have {len(header)} columns ({', '.join(header)}), but has {len(row)}")
    values = {name: cell.strip() for name, cell in zip(header, row, strict=True)}
    try:
        labels = dict(parse_label(f"{key}={value}") for key, value in values.items() if key != "name" and value)
        return create_cluster(values["name"], labels)
    except ValueError as error:
        raise ValueError(f"line {number}: {error}") from None


def parse_package(text: str) -> PackageEntry:
    """Parse `CATALOG/PACKAGE[@REV]` or `CATALOG/CHART[@VERSION]`.

    Raises:
        ValueError: The text has a different form, or the path is invalid.
    """
    catalog_and_path, has_version, version = text.partition("@")
    catalog, _, path = catalog_and_path.partition("/")
    if not catalog or not path or (has_version and not version):
        raise ValueError(f"{text!r} must have the form CATALOG/PACKAGE, CATALOG/PACKAGE@REV or CATALOG/CHART@VERSION")
    _require(validate_package_path(path), "the path of the package is invalid")
    entry = PackageEntry(catalog, path, version)
    _require(validate_dns_subdomain(entry.name), "the name of the package is invalid")
    return entry


def _require(reason: str | None, start: str) -> None:
    if reason:
        raise ValueError(f"{start}: {reason}")


def check_scaffold(scaffold: Scaffold) -> None:
    """Check the references and names of a config.

    Raises:
        ValueError: A name occurs twice, or a package refers to an unknown catalog.
    """
    repositories = [*(catalog.name for catalog in scaffold.catalogs), *(cluster.name for cluster in scaffold.clusters)]
    _check_unique(repositories, "catalogs and clusters")
    files = ["repositories", "clusters", *(package.name for package in scaffold.packages)]
    _check_unique(files, "packages and of the files repositories.yaml and clusters.yaml")
    catalogs = {catalog.name for catalog in scaffold.catalogs}
    for package in scaffold.packages:
        if package.catalog not in catalogs:
            allowed = ", ".join(sorted(catalogs))
            raise ValueError(f"the catalog {package.catalog!r} of {package.path!r} is unknown; catalogs: {allowed}")
    if not scaffold.selected_clusters:
        labels = ",".join(f"{key}={value}" for key, value in scaffold.selector.items())
        raise ValueError(f"no cluster has the labels {labels!r} of the selector")


def _check_unique(names: Sequence[str], title: str) -> None:
    repeated = sorted({name for name in names if names.count(name) > 1})
    if repeated:
        raise ValueError(f"the names of {title} must be unique; repeated names: {', '.join(repeated)}")


def build_upstream(package: PackageEntry, catalog: CatalogEntry) -> dict[str, object]:
    """Return `spec.upstream` for a package. Without a version, the newest published version is used."""
    version = package.version
    if catalog.type == "helm":
        return {"repo": catalog.name, "chart": package.path, "version": version or "*"}
    reference: dict[str, object]
    if catalog.type == "oci" and DIGEST_PATTERN.fullmatch(version):
        reference = {"digest": version}
    elif catalog.type == "oci" and _VERSION_OR_RANGE.fullmatch(version):
        reference = {"version": version}
    elif catalog.type == "git" and _REVISION.fullmatch(version):
        reference = {"revision": version}
    elif catalog.type == "git" and version in ("-1", catalog.branch or "main"):
        reference = {"revision": -1}
    else:
        reference = {"tag": version or "latest"}
    return {"repo": catalog.name, "package": package.path, **reference}
