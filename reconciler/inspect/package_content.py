"""Reads one published package for a page of the console: its resources, its status file and its revisions."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from reconciler.catalog.files import FileTree
from reconciler.inspect.fleet_index import FleetIndexer
from reconciler.inspect.publications import read_publication
from reconciler.krm.internal_errors import ExpectedError
from reconciler.lazy_dataclasses import dataclass, field, replace
from reconciler.output.changes.diffs import mask_file_documents
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.fleet.field_rows import FieldRow, list_field_rows
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.resource_diffs import ResourceDiff, build_resource_diffs, format_reference
from reconciler.output.fleet.target_names import TargetNames
from reconciler.output.json_data import mask_secrets
from reconciler.output.status.package_sections import read_inputs, read_text
from reconciler.planning.lifecycle.open_drafts import TargetPackage, list_target_packages, parse_package_status
from reconciler.reconcile.remotes.repository import Remote
from reconciler.redaction import MASK


@dataclass(frozen=True)
class ResourceName:
    """The name of a resource in a package.

    Attributes:
        title: The resource as `Kind namespace/name`.
        reference: The resource as `Kind/namespace/name`, or as `Kind/name` if it has no namespace.
    """

    title: str
    reference: str
    file: str


@dataclass(frozen=True)
class PublishedResource(ResourceName):
    """A resource of a package. Secrets in the text and in the fields are masked."""

    text: str
    fields: tuple[FieldRow, ...] = ()

    @property
    def hidden_count(self) -> int:
        """The number of values that are masked."""
        return sum(field.value == MASK for field in self.fields)


@dataclass(frozen=True)
class PublishedPackage:
    """The content of a package on the target branch.

    Attributes:
        files: The paths of all files in the package.
        status: The field `status` of the status file. {} if the file is missing or invalid.
        publications: The recorded revisions, the newest first.
    """

    resources: tuple[PublishedResource, ...] = ()
    files: tuple[str, ...] = ()
    status: Mapping[str, Any] = field(default_factory=dict)
    publications: tuple[Publication, ...] = ()

    @property
    def hidden_count(self) -> int:
        """The number of masked values in all resources."""
        return sum(resource.hidden_count for resource in self.resources)


class PackageMissingError(ExpectedError):
    """The target or the package does not exist any more."""


class PackageContentReader:
    """Reads published packages.

    Args:
        indexer: Opens the target of the package.
    """

    def __init__(self, indexer: FleetIndexer) -> None:
        self._indexer = indexer

    def read(self, target_name: str, package: str, *, should_read_configs: bool = False) -> PublishedPackage:
        """Return a package.

        Args:
            should_read_configs: Whether to read the ID of the config that was rendered for each publication.

        Raises:
            PackageMissingError: The target or the package does not exist any more.
            GitError: The repository cannot be read.
        """
        with self._open(target_name, package) as (target_package, remote):
            content = _read_package(target_package, remote)
            return _add_configs(content, target_package, remote) if should_read_configs else content

    def list_resources(self, target_name: str, packages: Collection[str]) -> Mapping[str, tuple[ResourceName, ...]]:
        """Return a mapping from packages of a target to their published resources. Omit packages that do not exist.
        Raises:
            PackageMissingError: The target does not exist any more.
            GitError: The repository cannot be read.
        """
        with self._open_target(target_name) as (found, _, remote):
            return {
                package.package: tuple(_list_names(_read_files(package, remote)))
                for package in found
                if package.package in packages
            }

    def read_publications(self, target_name: str, package: str) -> tuple[Publication, ...]:
        """Return the recorded revisions of a package, the newest first.

        Raises:
            PackageMissingError: The target or the package does not exist any more.
            GitError: The repository cannot be read.
        """
        with self._open(target_name, package) as (target_package, remote):
            return _read_publications(target_package, remote)

    def compare(self, left: tuple[str, str], right: tuple[str, str]) -> tuple[ResourceDiff, ...]:
        """Return the differences between two packages, each given by its target and its path.

        In the right package, the name of the right target is replaced by the name of the left target, so that the names
        of the targets are not reported as differences. Secrets are masked.

        Raises:
            PackageMissingError: A target or a package does not exist any more.
            GitError: A repository cannot be read.
        """
        with self._open(*left) as opened:
            before = _read_files(*opened)
        with self._open(*right) as opened:
            after = TargetNames(right[0]).rename_cluster(_read_files(*opened), left[0])
        return build_resource_diffs(before, after, compare_packages(before, after))

    @contextmanager
    def _open(self, target_name: str, package: str) -> Iterator[tuple[TargetPackage, Remote]]:
        with self._open_target(target_name) as (packages, error, remote):
            target_package = next((candidate for candidate in packages if candidate.package == package), None)
            if target_package is None:
                raise PackageMissingError(error or f'{target_name} has no package "{package}"')
            yield target_package, remote

    @contextmanager
    def _open_target(self, target_name: str) -> Iterator[tuple[Sequence[TargetPackage], str, Remote]]:
        """Open a target, and yield its packages, the reason why it cannot be read, and its remote."""
        with self._indexer.open_target(target_name) as found:
            if found is None:
                raise PackageMissingError(f'there is no target "{target_name}"')
            reader, target = found
            packages = tuple(list_target_packages(target.snapshot, target.drafts)) if target.snapshot else ()
            yield packages, target.error, reader.get_remote(target.target)


def _read_files(package: TargetPackage, remote: Remote) -> FileTree:
    return remote.read_files(package.published_tree) if package.published_tree else FileTree()


def _add_configs(content: PublishedPackage, package: TargetPackage, remote: Remote) -> PublishedPackage:
    """Add the ID of the config commit to each publication of a package. Status files contain these IDs."""
    versions = {revision.number: revision.version.status for revision in package.record.revisions}
    blobs = remote.read_blobs([blob for blob in versions.values() if blob])
    configs = {number: _read_config(blobs[blob]) for number, blob in versions.items() if blob}
    publications = (
        replace(publication, config=configs.get(publication.number, "")) for publication in content.publications
    )
    return replace(content, publications=tuple(publications))


def _read_config(status_file: bytes) -> str:
    return read_text(read_inputs(parse_package_status(status_file) or {}), "config")


def _read_package(package: TargetPackage, remote: Remote) -> PublishedPackage:
    files = _read_files(package, remote)
    status = remote.read_blobs([package.status_blob])[package.status_blob] if package.status_blob else b""
    return PublishedPackage(
        resources=tuple(_list_resources(files)),
        files=tuple(files),
        status=(parse_package_status(status) if status else None) or {},
        publications=_read_publications(package, remote),
    )


def _read_publications(package: TargetPackage, remote: Remote) -> tuple[Publication, ...]:
    return tuple(read_publication(revision, remote) for revision in reversed(package.record.revisions))


def _list_resources(files: FileTree) -> Iterator[PublishedResource]:
    for path, file in files.items():
        for document in mask_file_documents(path, file.data):
            key = document.object_key
            fields = list_field_rows(mask_secrets(document.data))
            yield PublishedResource(str(key), format_reference(key), path, document.text, fields)


def _list_names(files: FileTree) -> Iterator[ResourceName]:
    for path, file in files.items():
        for document in mask_file_documents(path, file.data):
            yield ResourceName(str(document.object_key), format_reference(document.object_key), path)
