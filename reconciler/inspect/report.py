"""Reads the targets of a fleet for a report. This module renders no packages and writes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.catalog.files import BlobId, CommitId
from reconciler.git.errors import GitError
from reconciler.inspect.publications import read_publication
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.review.open_drafts import DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import OpenDraft, TargetPackage, list_target_packages
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


def read_fleet(
    reader: DraftReader, targets: Iterable[OpenTarget], report_progress: Callable[[str, int, int], None]
) -> Iterator[TargetData]:
    """Yield the report data of each target, in the order of `targets`.

    A repository with `deployment: false` is included only if it cannot be read or contains managed packages. Most
    repositories with `deployment: false` only provide upstream packages.
    """
    reported = tuple(
        open_target
        for open_target in targets
        if open_target.target.is_deployment or open_target.packages or open_target.error
    )
    for number, open_target in enumerate(reported, 1):
        yield read_cluster(reader, open_target)
        report_progress("reading", number, len(reported))


def read_cluster(reader: DraftReader, open_target: OpenTarget) -> TargetData:
    """Return the report data of a target. If the target cannot be read, the data contains the error."""
    target = open_target.target
    try:
        with repository_boundary(target.title):
            return _read_packages(reader, open_target)
    except GitError as error:
        log_if_internal(error)
        return TargetData(target, open_target.labels, read_error=f"{target.title}: {error.full_message}")


def _read_packages(reader: DraftReader, open_target: OpenTarget) -> TargetData:
    target, snapshot = open_target.target, open_target.snapshot
    if open_target.error or snapshot is None:
        return TargetData(target, open_target.labels, read_error=open_target.error)
    remote = reader.get_remote(target)
    drafts = {draft.branch: reader.read_draft_details(draft, should_read_files=True) for draft in open_target.drafts}
    drafted = {details.package.package: details for draft in drafts.values() for details in draft.packages}
    packages = tuple(list_target_packages(snapshot, open_target.drafts))
    status_files = remote.read_blobs(package.status_blob for package in packages if package.status_blob)
    report_packages = tuple(
        _build_report_package(package, drafted.get(package.package), remote, status_files) for package in packages
    )
    heads = _list_heads(snapshot, open_target.drafts)
    last_change_seconds = max((remote.read_commit(head).seconds for head in heads), default=0)
    return TargetData(
        target, open_target.labels, report_packages, drafts, last_change_seconds,
        head=snapshot.heads.target_branch or "",
    )  # fmt: skip


def _list_heads(snapshot: TargetSnapshot, drafts: Iterable[OpenDraft]) -> Iterator[CommitId]:
    if snapshot.heads.target_branch:
        yield snapshot.heads.target_branch
    yield from (draft.head for draft in drafts)


def _build_report_package(
    package: TargetPackage,
    draft: DraftPackageDetails | None,
    remote: Remote,
    status_files: Mapping[BlobId, bytes],
) -> PackageData:
    publication = read_publication(package.revision, remote) if package.revision else None
    published_seconds = publication.seconds if publication else None
    status_file = status_files[package.status_blob] if package.status_blob else b""
    return PackageData(package, draft.since if draft else published_seconds, draft, status_file, publication)
