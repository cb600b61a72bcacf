"""The status branch: one file per config object, own files of some, and a summary (design 3, 10.27).

Times are the only thing here that a pass brings with it: they are kept from the previous files wherever
what they belong to is unchanged, so that nothing is written when nothing but time changed.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from itertools import chain

from reconciler.caching import cached
from reconciler.krm.codes import internal_error
from reconciler.krm.dates import rfc3339
from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import InternalFailure, ScopeFailedError, boundary
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.configs import Configs
from reconciler.reporting.destination_statuses import DestinationStatuses, ObjectStatus
from reconciler.reporting.object_file import ObjectFile, failed_object_file, object_file, read_document
from reconciler.reporting.owners import FleetStatuses, OwnerMemory, owner_statuses
from reconciler.reporting.paths import object_path
from reconciler.reporting.sections import items, section
from reconciler.reporting.summary import SUMMARY, summary_file
from reconciler.snapshot.objects import UNDATED_SECONDS

MAX_CHILDREN = 1000
# while a set fails, every pass asks who made what stands there
_REMEMBERED_FILES = 100_000


@dataclass(frozen=True, eq=False)
class _DestinationFiles:
    """The files of a destination and of its owners, told by the same statuses."""

    told: DestinationStatuses
    destination: ObjectFile
    owners: Mapping[ObjectKey, ObjectFile]

    @cached_property
    def unwell(self) -> tuple[ObjectFile, ...]:
        """Those that the summary may list."""
        return tuple(one for one in (self.destination, *self.owners.values()) if not one.is_well)


class StatusMemory:
    """What was told in the last pass, so that telling costs what has changed; an empty one comes to the same."""

    def __init__(self) -> None:
        self.owners = OwnerMemory()
        self._files: dict[ObjectKey, ObjectFile] = {}
        self._destinations: dict[ObjectKey, _DestinationFiles] = {}
        self.failures: dict[ObjectKey, InternalFailure] = {}
        self._told: tuple[Mapping[str, bytes], Collection[ObjectKey]] | None = None

    def stand(
        self, statuses: FleetStatuses, previous: Mapping[str, bytes], large: Collection[ObjectKey], now: str
    ) -> Files:
        """Return how the file of each object is to stand; `previous` are the files that stand there now.

        Files of objects in `large` are not written as long as all is well.
        """
        before, self.failures = self._files, {}
        as_told = self._told is not None and self._told[0] is previous and self._told[1] is large

        def file_of(status: ObjectStatus) -> ObjectFile:
            known = before.get(status.key)
            if known is None or (known.status is not status and known.status != status):
                return new_file(status)
            return known if as_told or known.stands(previous, large) else new_file(status)

        def new_file(status: ObjectStatus) -> ObjectFile:
            try:
                with boundary(f"the status of {status.key}"):
                    file = object_file(status, previous, now)
                    # the bytes are made here, so that an exception stays with this object
                    return file if file.key in large and file.is_well else file.with_bytes()
            except ScopeFailedError as error:
                self.failures[status.key] = error.failure
                return failed_object_file(status, previous, error.failure)

        def files_of(told: DestinationStatuses) -> _DestinationFiles:
            known = self._destinations.get(told.destination.key)
            if as_told and known and known.told is told:
                return known
            owners = {key: file_of(one) for key, one in told.owners.items()}
            return _DestinationFiles(told, file_of(told.destination), owners)

        files = Files([files_of(one) for one in statuses.destinations], [file_of(one) for one in statuses.others])
        self._destinations = {one.destination.key: one for one in files.destinations}
        self._files = files.by_key
        if self.failures:
            # the next pass tries these objects again
            self._files, self._destinations = {}, {}
        return files

    def keep(self, files: Mapping[str, bytes], large: Collection[ObjectKey], *, is_plain: bool) -> None:
        """Take note of the files that were told; `is_plain`: each is that of its object, as it was told."""
        self._told = (files, large) if is_plain else None


@dataclass(frozen=True, eq=False)
class Files:
    """The files of a fleet's objects; who stands in several places is told of by the last (see FleetStatuses)."""

    destinations: list[_DestinationFiles]
    others: list[ObjectFile]

    @cached_property
    def by_key(self) -> dict[ObjectKey, ObjectFile]:
        """Each by its object."""
        found = {one.destination.key: one.destination for one in self.destinations}
        found.update({one.key: one for one in self.others})
        for one in self.destinations:
            found.update(one.owners)
        return found

    @property
    def are_all_told(self) -> bool:
        """Whether nobody stands in two places."""
        return len(self.by_key) == sum(1 + len(one.owners) for one in self.destinations) + len(self.others)

    def unwell(self) -> Iterable[ObjectFile]:
        """Return those that the summary may list, each once."""
        of_destinations = chain.from_iterable(one.unwell for one in self.destinations)
        told = chain(of_destinations, (one for one in self.others if not one.is_well))
        return {one.key: one for one in told if self.by_key[one.key] is one}.values()


def status_files(
    plan: FleetPlan,
    previous: Mapping[str, bytes],
    max_children: int = MAX_CHILDREN,
    memory: StatusMemory | None = None,
    report: Callable[[Finding], None] = lambda finding: None,
) -> Mapping[str, bytes]:
    """Return all files of the status branch by path; `previous` are those that stand there now, returned if all stand.

    The healthy children of a set with more than `max_children` are counted in the set, not written. The
    variants of a set that failed stay as they are, and so does what an unreadable file may still hold. What is told
    of owners that another shard has yet to decide on, and of who made them, stays as it is as well, or is not told yet.
    `report` receives a finding for each object whose status cannot be written.
    """
    memory = memory or StatusMemory()
    statuses = owner_statuses(plan, memory.owners)
    large = memory.owners.configs.children_of_large(statuses.configs, max_children)
    now = "" if plan.as_of == UNDATED_SECONDS else rfc3339(plan.as_of)
    standing = memory.stand(statuses, previous, large, now)
    failures = memory.failures | {key: one for each in statuses.destinations for key, one in each.failures.items()}
    for key, failure in sorted(failures.items(), key=lambda item: str(item[0])):
        report(internal_error(failure, Where(object=str(key))))
    written = [one for key, one in standing.by_key.items() if key not in large or not one.is_well]
    files = {one.path: one.written for one in written}
    is_plain = len(files) == len(written) and standing.are_all_told and not plan.awaited and not failures
    files = _with_what_stays(plan, statuses.configs, {**files, **statuses.configs.files}, standing, previous)
    tallies = [one.tally for one in statuses.destinations]
    files[SUMMARY] = summary_file(plan, (one.entries for one in standing.unwell()), tallies)
    told = previous if files == previous else files
    memory.keep(told, large, is_plain=is_plain)
    return told


def _with_what_stays(
    plan: FleetPlan, configs: Configs, files: dict[str, bytes], standing: Files, previous: Mapping[str, bytes]
) -> dict[str, bytes]:
    """Return files with those that stand there and that this pass has nothing to say of."""
    if left := _left_alone(plan, configs, previous):
        left -= {SUMMARY, *files, *(one.path for one in standing.by_key.values())}
        files |= {path: previous[path] for path in left}
    if plan.awaited:
        awaited = set(map(object_path, {*plan.awaited, *configs.makers_of(plan.awaited)}))
        files = {path: content for path, content in files.items() if path not in awaited}
        files |= {path: previous[path] for path in awaited if path in previous}
    return files


def _left_alone(plan: FleetPlan, configs: Configs, previous: Mapping[str, bytes]) -> set[str]:
    """Return the files of variants whose set says nothing of them in this pass (RoomResult.kept), and the like.

    While a file of the config cannot be read, that is every object that the config does not show.
    """
    if not plan.complete:
        return set(previous)
    kept = {(key.kind, key.namespace, key.name) for key in plan.room.kept}
    if not (configs.folders_left or kept):
        return set()
    own = {path for path in previous if path.startswith(configs.folders_left)}
    variants = [path for path in previous if path.startswith("objects/") and "/PackageVariant/" in path]
    return own | {path for path in variants if kept and _makers(previous[path]) & kept}


@cached(_REMEMBERED_FILES)
def _makers(content: bytes) -> frozenset[tuple[str, str, str]]:
    metadata = section(read_document(content), "metadata")
    namespace = str(metadata.get("namespace"))
    found = items(metadata, "ownerReferences")
    return frozenset((str(one.get("kind")), namespace, str(one.get("name"))) for one in found)
