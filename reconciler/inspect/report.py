"""Reading the fleet for a report: every destination as its refs tell of it; nothing is rendered or written."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping

from reconciler.catalog.files import BlobId, CommitId
from reconciler.git.errors import GitError
from reconciler.output.report.model import ReportCluster, ReportPackage
from reconciler.output.review.open_drafts import DraftPackageDetails
from reconciler.planning.lifecycle.open_drafts import OpenDraft, TargetPackage, list_target_packages
from reconciler.planning.observe.target_snapshot import TargetSnapshot
from reconciler.reconcile.failures import log_if_internal, repository_boundary
from reconciler.reconcile.remotes.repository import Remote
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


def read_fleet(
    reader: DraftReader, targets: Iterable[OpenTarget], report_progress: Callable[[str, int, int], None]
) -> Iterator[ReportCluster]:
    """Yield each destination that a review has opened, with the files of its drafts, in the same order.

    A repository that nobody deploys from counts if packages go there: most are what packages come from.
    """
    listed = tuple(one for one in targets if one.target.is_deployment or one.packages or one.error)
    for index, bench in enumerate(listed, 1):
        yield _look(reader, bench)
        report_progress("reading", index, len(listed))


def _look(reader: DraftReader, bench: OpenTarget) -> ReportCluster:
    try:
        with repository_boundary(bench.target.title):
            return _read(reader, bench)
    except GitError as error:
        log_if_internal(error)
        # one that is too large, or damaged, keeps nobody from hearing of the others
        return ReportCluster(bench.target, bench.labels, read_error=f"{bench.target.title}: {error.full_message}")


def _read(reader: DraftReader, bench: OpenTarget) -> ReportCluster:
    destination, ground = bench.target, bench.snapshot
    if bench.error or ground is None:
        return ReportCluster(destination, bench.labels, read_error=bench.error)
    remote = reader.get_remote(destination)
    sheets = {draft.branch: reader.read_draft_details(draft, whole=True) for draft in bench.drafts}
    sheet_of = {one.package.package: one for sheet in sheets.values() for one in sheet.packages}
    found = tuple(list_target_packages(ground, bench.drafts))
    files = remote.read_blobs(cell.status_blob for cell in found if cell.status_blob)
    packages = tuple(_package(cell, sheet_of.get(cell.package), remote, files) for cell in found)
    seconds = max((remote.read_commit(one).seconds for one in _heads(ground, bench.drafts)), default=0)
    return ReportCluster(destination, bench.labels, packages, sheets, seconds)


def _heads(ground: TargetSnapshot, drafts: Iterable[OpenDraft]) -> Iterator[CommitId]:
    if ground.heads.target_branch:
        yield ground.heads.target_branch
    yield from (draft.head for draft in drafts)


def _package(
    cell: TargetPackage, sheet: DraftPackageDetails | None, remote: Remote, files: Mapping[BlobId, bytes]
) -> ReportPackage:
    published = remote.read_commit(cell.revision.commit).seconds if cell.revision else None
    file = files[cell.status_blob] if cell.status_blob else b""
    return ReportPackage(cell, sheet.since if sheet else published, sheet, file)
