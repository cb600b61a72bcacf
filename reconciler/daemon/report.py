"""Reading the fleet for a report: every destination as its refs tell of it; nothing is rendered or written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping

from reconciler.daemon.isolation import log_if_internal, repository_boundary
from reconciler.daemon.open_drafts import Bench
from reconciler.daemon.remotes import Remote
from reconciler.daemon.review import Review
from reconciler.gitio.errors import GitError
from reconciler.planning.cells import Cell, cells
from reconciler.planning.ground import Ground
from reconciler.planning.open_drafts import OpenDraft
from reconciler.reporting.open_drafts import PackageSheet
from reconciler.reporting.report.fleet import ReadCluster, ReadPackage
from reconciler.snapshot.objects import BlobId, CommitId


def read_fleet(review: Review, benches: Iterable[Bench]) -> Iterator[ReadCluster]:
    """Yield each destination that a review has opened, with the files of its drafts, in the same order.

    A repository that nobody deploys from counts if packages go there: most are what packages come from.
    """
    listed = tuple(one for one in benches if one.destination.deployment or one.packages or one.trouble)
    for index, bench in enumerate(listed, 1):
        yield _look(review, bench)
        review.progress("reading", index, len(listed))


def _look(review: Review, bench: Bench) -> ReadCluster:
    try:
        with repository_boundary(bench.destination.title):
            return _read(review, bench)
    except GitError as error:
        log_if_internal(error)
        # one that is too large, or damaged, keeps nobody from hearing of the others
        return ReadCluster(bench.destination, bench.labels, trouble=f"{bench.destination.title}: {error.told}")


def _read(review: Review, bench: Bench) -> ReadCluster:
    destination, ground = bench.destination, bench.ground
    if bench.trouble or ground is None:
        return ReadCluster(destination, bench.labels, trouble=bench.trouble)
    remote = review.remote(destination)
    sheets = {draft.branch: review.sheet(draft, whole=True) for draft in bench.drafts}
    sheet_of = {one.package.package: one for sheet in sheets.values() for one in sheet.contents}
    found = tuple(cells(ground, bench.drafts))
    files = remote.blobs(cell.status for cell in found if cell.status)
    packages = tuple(_package(cell, sheet_of.get(cell.package), remote, files) for cell in found)
    seconds = max((remote.commit(one).seconds for one in _heads(ground, bench.drafts)), default=0)
    return ReadCluster(destination, bench.labels, packages, sheets, seconds)


def _heads(ground: Ground, drafts: Iterable[OpenDraft]) -> Iterator[CommitId]:
    if ground.heads.branch:
        yield ground.heads.branch
    yield from (draft.head for draft in drafts)


def _package(cell: Cell, sheet: PackageSheet | None, remote: Remote, files: Mapping[BlobId, bytes]) -> ReadPackage:
    published = remote.commit(cell.revision.commit).seconds if cell.revision else None
    file = files[cell.status] if cell.status else b""
    return ReadPackage(cell, sheet.since if sheet else published, sheet, file)
