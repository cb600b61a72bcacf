"""Builds all files of the status branch: a file per config object, additional files of some objects, and the summary.

The transition time of an unchanged condition comes from the previous file. Therefore a pass without changes writes
nothing.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping
from functools import cached_property
from itertools import chain
from typing import Any

from reconciler.catalog.files import FALLBACK_COMMIT_SECONDS
from reconciler.krm.findings import CommonCodes, Finding, SourceLocation, create_internal_error_finding
from reconciler.krm.internal_errors import InternalFailure, ScopeFailedError, isolation_boundary
from reconciler.krm.objects import Condition, ObjectKey, upsert_conditions
from reconciler.krm.times import format_rfc3339
from reconciler.krm.yaml import YamlError, emit, parse_yaml
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.output.json_data import read_mapping, read_mappings
from reconciler.output.status.config_statuses import ConfigStatuses, get_object_path
from reconciler.output.status.owner_statuses import FleetStatuses, OwnerStatusCache, build_owner_statuses
from reconciler.output.status.summary import (
    SUMMARY_FILE,
    TENANTS_FOLDER,
    SummaryEntries,
    build_summary_entries,
    build_summary_file,
    build_tenant_summaries,
)
from reconciler.output.status.target_statuses import ObjectStatus, TargetStatuses
from reconciler.planning.decide.fleet_plan import FleetPlan

MAX_CHILDREN = 1000
# Maximum number of status files whose parsed fields are cached. If a set fails, each pass reads the owners of all its
# PackageVariants from their status files.
_CACHED_FILES = 100_000
# Matches the first line of a condition, or the line with its time. A condition has no time if the dates of all commits
# were unknown.
_CONDITION_OR_TIME = re.compile(rb'^(?:  - type: |    lastTransitionTime: "([^"\n]*)"$)', re.MULTILINE)
# Earlier versions of the reconciler wrote this time if the real time was unknown. Do not copy it to new files.
_UNKNOWN_TIME = format_rfc3339(FALLBACK_COMMIT_SECONDS)


@dataclass(frozen=True, eq=False)
class ObjectStatusFile:
    """The status file of one object, for the next commit of the status branch.

    Attributes:
        previous_content: The current content of the file. The content is b"" if the file does not exist.
        document: The new content as data. None if the content does not change.
    """

    status: ObjectStatus
    path: str
    summary_entries: SummaryEntries
    previous_content: bytes
    document: dict[str, Any] | None = None

    @cached_property
    def content(self) -> bytes:
        """The new content of the file."""
        return self.previous_content if self.document is None else emit(self.document).encode()

    def compute_content(self) -> ObjectStatusFile:
        """Compute and cache the content, and return this file."""
        _ = self.content
        return self

    @property
    def key(self) -> ObjectKey:
        """The key of the object."""
        return self.status.key

    @property
    def is_healthy(self) -> bool:
        """Whether the object is ready, and no draft of it has a failed render or an unmet readiness gate."""
        return self.summary_entries.is_healthy

    def is_current(self, previous: Mapping[str, bytes], large: Collection[ObjectKey]) -> bool:
        """Return whether the status branch already contains the current status of the object.

        For a healthy object in `large`, a missing file is also current.

        Args:
            previous: The files on the status branch.
            large: The children of objects with many children, e.g. the PackageVariants of a large PackageVariantSet.
        """
        content = previous.get(self.path)
        return content == self.content if content is not None else self.key in large and self.is_healthy


def build_object_file(status: ObjectStatus, previous: Mapping[str, bytes], update_time: str) -> ObjectStatusFile:
    """Return the status file of an object. Unchanged conditions keep their time from the file in `previous`.

    Args:
        previous: The files on the status branch.
        update_time: The time of changed conditions. If the time is "", changed conditions have no time.
    """
    path = get_object_path(status.key)
    content = previous.get(path, b"")
    if unchanged := _build_if_unchanged(status, content):
        return ObjectStatusFile(status, path, build_summary_entries(unchanged), content)
    previous_document = read_document(content)
    document = _build_document(status, previous_document, update_time)
    return ObjectStatusFile(
        status, path, build_summary_entries(document), content, None if document == previous_document else document
    )


def build_failed_object_file(
    status: ObjectStatus, previous: Mapping[str, bytes], failure: InternalFailure
) -> ObjectStatusFile:
    """Return a status file with the failure as a condition, for an object whose status could not be built."""
    path, condition = (
        get_object_path(status.key),
        Condition("Ready", "False", CommonCodes.INTERNAL_ERROR.name, failure.message),
    )
    plain = ObjectStatus(status.key, status.api_version, (condition,))
    document = _join_document(plain, [condition.as_data()], {})
    return ObjectStatusFile(plain, path, build_summary_entries(document), previous.get(path, b""), document)


def read_document(content: bytes) -> Mapping[str, Any]:
    """Return the data of a status file. Return {} if the file cannot be parsed, because anyone can edit the file."""
    try:
        documents = parse_yaml(content).documents
    except YamlError:
        return {}
    return documents[0].data if documents and isinstance(documents[0].data, dict) else {}


def read_recorded_file(content: bytes) -> str:
    """Return the config file that a status file records as the source of its object. Return "" if there is none."""
    return _read_source(content)[1]


def _build_if_unchanged(status: ObjectStatus, content: bytes) -> dict[str, Any] | None:
    """Return the document of a status file if the file already contains the status. Return None if this is not certain.

    The function compares the written YAML with the file. This is several times faster than parsing the file.
    """
    times = _read_times(content)
    conditions = upsert_conditions(status.conditions)
    if len(times) != len(conditions) or _UNKNOWN_TIME in times:
        return None
    entries = [_add_time(condition, time) for condition, time in zip(conditions, times, strict=True)]
    document = _join_document(status, entries, status.fields)
    return document if emit(document).encode() == content else None


def _read_times(content: bytes) -> list[str]:
    """Return the time of each condition in a status file. The time is "" if the condition has no time."""
    times: list[str] = []
    for match in _CONDITION_OR_TIME.finditer(content):
        if match[1] is None:
            times.append("")
        elif times:
            times[-1] = match[1].decode(errors="replace")
    return times


def _add_time(condition: Condition, time: str) -> dict[str, str]:
    return {**condition.as_data(), **({"lastTransitionTime": time} if time else {})}


def _build_document(status: ObjectStatus, previous: Mapping[str, Any], update_time: str) -> dict[str, Any]:
    previous_status = read_mapping(previous, "status")
    conditions = _build_conditions(status.conditions, previous_status, update_time)
    return _join_document(status, conditions, _build_fields(status.fields, previous_status))


def _join_document(status: ObjectStatus, conditions: list[dict[str, str]], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": status.api_version,
        "kind": status.key.kind,
        "metadata": _build_metadata(status),
        **({"spec": status.spec} if status.spec is not None else {}),
        "status": {"conditions": conditions, **fields},
    }


def _build_metadata(status: ObjectStatus) -> dict[str, Any]:
    identity = {"name": status.key.name, **({"namespace": status.key.namespace} if status.key.namespace else {})}
    return {**identity, **status.metadata}


def _build_conditions(
    conditions: Iterable[Condition], previous: Mapping[str, Any], update_time: str
) -> list[dict[str, str]]:
    recorded = {
        (_get_condition_type(entry), str(entry.get("status"))): str(entry.get("lastTransitionTime") or "")
        for entry in read_mappings(previous, "conditions")
    }
    times = {name: "" if time == _UNKNOWN_TIME else time for name, time in recorded.items()}
    return [
        _add_time(condition, times.get((condition.type, condition.status), update_time))
        for condition in upsert_conditions(conditions)
    ]


def _get_condition_type(entry: Mapping[str, Any]) -> str:
    """Return the current name of a recorded condition. Earlier versions wrote `Baked` instead of `Flattened`."""
    return "Flattened" if entry.get("type") == "Baked" else str(entry.get("type"))


def _build_fields(fields: Mapping[str, Any], previous: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields of the new status, without conditions.

    Downstream targets without a new render keep the `renderStatus` of the previous status.
    """
    render_statuses = {
        str(target.get("name")): target.get("renderStatus") for target in read_mappings(previous, "downstreamTargets")
    }
    return {
        name: [_add_render_status(target, render_statuses) for target in value]
        if name == "downstreamTargets"
        else value
        for name, value in fields.items()
    }


def _add_render_status(target: Mapping[str, Any], render_statuses: Mapping[str, Any]) -> dict[str, Any]:
    previous = render_statuses.get(target["name"])
    return {"name": target["name"], **({"renderStatus": previous} if previous else {}), **target}


@dataclass(frozen=True, eq=False)
class _TargetFiles:
    """The files of a target and of its owners, and the statuses that the files were built from."""

    statuses: TargetStatuses
    target_file: ObjectStatusFile
    owners: Mapping[ObjectKey, ObjectStatusFile]

    @cached_property
    def unhealthy(self) -> tuple[ObjectStatusFile, ...]:
        """The files of objects that are not healthy. The summary can list these objects."""
        return tuple(file for file in (self.target_file, *self.owners.values()) if not file.is_healthy)


class StatusCache:
    """Caches the status files of objects, so that a pass builds only changed files. It does not change results."""

    def __init__(self) -> None:
        self.owners = OwnerStatusCache()
        self._files: dict[ObjectKey, ObjectStatusFile] = {}
        self._targets: dict[ObjectKey, _TargetFiles] = {}
        self.failures: dict[ObjectKey, InternalFailure] = {}
        self._stored: tuple[Mapping[str, bytes], Collection[ObjectKey]] | None = None

    def build_files(
        self, statuses: FleetStatuses, previous: Mapping[str, bytes], large: Collection[ObjectKey], update_time: str
    ) -> StatusFiles:
        """Return the new status file of each object.

        Args:
            previous: The files on the status branch.
            large: The children of large sets. The status branch has no files of healthy children of large sets.
            update_time: The time of changed conditions, or "" if the time is unknown.
        """
        cached_files, self.failures = self._files, {}
        is_same_branch = self._stored is not None and self._stored[0] is previous and self._stored[1] is large

        def get_file(status: ObjectStatus) -> ObjectStatusFile:
            file = cached_files.get(status.key)
            if file is None or (file.status is not status and file.status != status):
                return build_file(status)
            return file if is_same_branch or file.is_current(previous, large) else build_file(status)

        def build_file(status: ObjectStatus) -> ObjectStatusFile:
            try:
                with isolation_boundary(f"the status of {status.key}"):
                    file = build_object_file(status, previous, update_time)
                    # Compute the content inside the isolation boundary, so that an exception affects only this object.
                    return file if file.key in large and file.is_healthy else file.compute_content()
            except ScopeFailedError as error:
                self.failures[status.key] = error.failure
                return build_failed_object_file(status, previous, error.failure)

        def get_target_files(target: TargetStatuses) -> _TargetFiles:
            files = self._targets.get(target.target_status.key)
            if is_same_branch and files and files.statuses is target:
                return files
            owners = {key: get_file(status) for key, status in target.owners.items()}
            return _TargetFiles(target, get_file(target.target_status), owners)

        files = StatusFiles(
            [get_target_files(target) for target in statuses.targets],
            [get_file(status) for status in statuses.other_statuses],
        )
        self._targets = {entry.target_file.key: entry for entry in files.targets}
        self._files = files.by_key
        if self.failures:
            # Cache nothing after a failure, so that the next pass builds the failed files again.
            self._files, self._targets = {}, {}
        return files

    def store(self, files: Mapping[str, bytes], large: Collection[ObjectKey], *, is_plain: bool) -> None:
        """Store the files of the status branch for the next pass.

        Args:
            large: The children of large sets.
            is_plain: Whether every object has one file and every file has one object. If True, the next pass skips the
                comparison of files.
        """
        self._stored = (files, large) if is_plain else None


@dataclass(frozen=True, eq=False)
class StatusFiles:
    """The status files of all objects. If an object has several files, the last one is used, as in `FleetStatuses`."""

    targets: list[_TargetFiles]
    other_files: list[ObjectStatusFile]

    @cached_property
    def by_key(self) -> dict[ObjectKey, ObjectStatusFile]:
        """The status file of each object."""
        files = {entry.target_file.key: entry.target_file for entry in self.targets}
        files.update({file.key: file for file in self.other_files})
        for entry in self.targets:
            files.update(entry.owners)
        return files

    @property
    def has_unique_objects(self) -> bool:
        """Whether no object has more than one file."""
        return len(self.by_key) == sum(1 + len(entry.owners) for entry in self.targets) + len(self.other_files)

    def list_unhealthy_files(self) -> Iterable[ObjectStatusFile]:
        """Return the files of objects that are not healthy, without duplicates. The summary can list these objects."""
        of_targets = chain.from_iterable(entry.unhealthy for entry in self.targets)
        files = chain(of_targets, (file for file in self.other_files if not file.is_healthy))
        return {file.key: file for file in files if self.by_key[file.key] is file}.values()


def build_status_files(
    plan: FleetPlan,
    previous: Mapping[str, bytes],
    max_children: int = MAX_CHILDREN,
    cache: StatusCache | None = None,
    report: Callable[[Finding], None] = lambda finding: None,
) -> Mapping[str, bytes]:
    """Return all files of the status branch by path.

    Files of these objects are kept unchanged: variants of a failed set, objects that an unreadable config file can
    contain, owners that another shard processes, and the parents of these owners.

    Args:
        previous: The current files of the branch. The result is this mapping if nothing changes.
        max_children: The size limit of a set. Every child of a set up to this size has a file. In a larger set, healthy
            children have no file, and the status of the set contains their number.
        cache: The cache of the previous pass. None disables the cache.
        report: Receives a finding for each object whose status cannot be built.
    """
    cache = cache or StatusCache()
    statuses = build_owner_statuses(plan, cache.owners)
    large = cache.owners.configs.get_children_of_large_sets(statuses.configs, max_children)
    update_time = (
        "" if plan.latest_commit_seconds == FALLBACK_COMMIT_SECONDS else format_rfc3339(plan.latest_commit_seconds)
    )
    object_files = cache.build_files(statuses, previous, large, update_time)
    failures = dict(cache.failures)
    for target in statuses.targets:
        failures |= target.failures
    for key, failure in sorted(failures.items(), key=lambda item: str(item[0])):
        report(create_internal_error_finding(failure, SourceLocation(object=key.reference)))
    written = [file for key, file in object_files.by_key.items() if key not in large or not file.is_healthy]
    files = {file.path: file.content for file in written}
    is_plain = (
        len(files) == len(written) and object_files.has_unique_objects and not plan.awaited_owners and not failures
    )
    files = _add_kept_files(plan, statuses.configs, {**files, **statuses.configs.own_files}, object_files, previous)
    entries = [file.summary_entries for file in object_files.list_unhealthy_files()]
    counts = [target.package_counts for target in statuses.targets]
    files[SUMMARY_FILE] = build_summary_file(plan, entries, counts, plan.list_findings())
    files |= build_tenant_summaries(plan, entries)
    result = previous if files == previous else files
    cache.store(result, large, is_plain=is_plain)
    return result


def _add_kept_files(
    plan: FleetPlan,
    configs: ConfigStatuses,
    files: dict[str, bytes],
    object_files: StatusFiles,
    previous: Mapping[str, bytes],
) -> dict[str, bytes]:
    """Add the previous files of objects that have no status in this pass."""
    if kept_paths := _find_kept_paths(plan, configs, previous):
        kept_paths = {path for path in kept_paths if not path.startswith(TENANTS_FOLDER)}
        kept_paths -= {SUMMARY_FILE, *files, *(file.path for file in object_files.by_key.values())}
        files |= {path: previous[path] for path in kept_paths}
    if plan.awaited_owners:
        awaited = set(map(get_object_path, {*plan.awaited_owners, *configs.find_parents(plan.awaited_owners)}))
        files = {path: content for path, content in files.items() if path not in awaited}
        files |= {path: previous[path] for path in awaited if path in previous}
    return files


def _find_kept_paths(plan: FleetPlan, configs: ConfigStatuses, previous: Mapping[str, bytes]) -> set[str]:
    """Return the paths of the files in `previous` that must be kept.

    The result contains these files:

    - The status files of the PackageVariants of failed sets.
    - Additional files of objects, if these files do not change in this pass.
    - If a config file cannot be read: the status files of all objects that this config file may contain.
    """
    if plan.can_contain_unreadable(""):
        return set(previous)
    hidden = {path for path in previous if not plan.is_complete and _can_be_hidden(plan, previous[path])}
    kept_owners = {(key.kind, key.namespace, key.name) for key in plan.controller_result.kept_owners}
    if not (configs.unchanged_folders or kept_owners):
        return hidden
    own_files = {path for path in previous if path.startswith(configs.unchanged_folders)}
    variants = [path for path in previous if path.startswith("objects/") and "/PackageVariant/" in path]
    kept = {path for path in variants if kept_owners and _read_owners(previous[path]) & kept_owners}
    return hidden | own_files | kept


def _can_be_hidden(plan: FleetPlan, content: bytes) -> bool:
    """Return whether a config file that cannot be read may contain the object of a status file."""
    tenant, file = _read_source(content)
    return plan.can_contain_unreadable(tenant or (plan.tenants.find_owner(file) if file else None))


@cached(_CACHED_FILES)
def _read_source(content: bytes) -> tuple[str, str]:
    """Return the recorded tenant and the recorded config file of an object. Each of them can be ""."""
    status = read_mapping(read_document(content), "status")
    return str(status.get("tenant") or ""), str(read_mapping(status, "source").get("file") or "")


@cached(_CACHED_FILES)
def _read_owners(content: bytes) -> frozenset[tuple[str, str, str]]:
    metadata = read_mapping(read_document(content), "metadata")
    namespace = str(metadata.get("namespace"))
    references = read_mappings(metadata, "ownerReferences")
    return frozenset((str(owner.get("kind")), namespace, str(owner.get("name"))) for owner in references)
