"""Protection against unintended deletions. `removal_decision.py` decides whether a package is deleted.

- Evidence: the state records the config files of each package. A missing object is deleted only if its file was
  deleted, or if the file is valid and does not contain the object. In all other cases there is an error, and no package
  is removed (`Catalog.is_complete`).
- Acknowledged deletions: a person confirms a deletion with an annotation. Several shards can then execute the deletion
  without communication between them.
- Repository resets: a target has an error if its branch and its state are missing, although the cache contains the last
  head of the branch.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from functools import cached_property

from reconciler.catalog.catalog import Catalog, is_config_path
from reconciler.catalog.deletion_evidence import InconclusiveFile, find_inconclusive_file
from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.deletion_guards import contains_deletion_hash, is_mass_deletion
from reconciler.controllers.results import ConfigSources, DeletionGuard, PackageTarget, parse_object_id
from reconciler.krm.field_text import split_list
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.planning.model.codes import PlanningCodes
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import Target

REGULAR_FILE = "file"
_MAX_LISTED_NAMES = 5

EntryKindReader = Callable[[Collection[str]], Mapping[str, str]]
"""Function that returns the kind of each path in the config repository, e.g. `file` or `a symbolic link`.

Paths that do not exist are omitted.
"""


@dataclass(frozen=True)
class ConfigFiles:
    """The files of a config.

    Attributes:
        files: The files in `directory`. The keys are paths relative to `directory`.
        read_entry_kinds: Returns the kinds of paths in the repository, e.g. file, symbolic link or submodule.
    """

    files: FileTree
    directory: str
    read_entry_kinds: EntryKindReader

    @cached_property
    def files_with_uppercase_extension(self) -> tuple[str, ...]:
        """The files that would be config files if their extension were in lower case."""
        return tuple(path for path in self.files if is_config_path(path.lower()) and not is_config_path(path))

    def to_config_path(self, path: str) -> str | None:
        """Convert a path in the repository to a path relative to `directory`.

        Return None for a path outside of `directory`.
        """
        if not self.directory:
            return path
        start = f"{self.directory}/"
        return path.removeprefix(start) if path.startswith(start) else None


def find_unproven_deletions(
    states: Iterable[TargetState], config: ConfigFiles, catalog: Catalog, max_percent: int
) -> tuple[Finding, ...]:
    """Return an error for each recorded config file whose objects are missing without evidence of their deletion.

    For files outside of `config.directory`, return at most one error: if the number of their missing objects exceeds
    the deletion limit of `max_percent` percent of all recorded objects.
    """
    recorded = _collect_recorded_objects(states)
    missing = {
        path: absent
        for path, keys in recorded.items()
        if (absent := {key for key in keys if not catalog.contains(key)})
    }
    if not missing:
        return ()
    kinds = config.read_entry_kinds(sorted(missing))
    excluded = {path: keys for path, keys in missing.items() if config.to_config_path(path) is None and path in kinds}
    findings = [_check_file(path, keys, kinds.get(path, ""), config, catalog) for path, keys in sorted(missing.items())]
    total = len({key for keys in recorded.values() for key in keys})
    return (
        *(finding for finding in findings if finding),
        *_check_excluded_files(excluded, total, config.directory, max_percent),
    )


def _collect_recorded_objects(states: Iterable[TargetState]) -> dict[str, set[ObjectKey]]:
    # Parse each mapping object once, because packages with the same config files share one mapping object.
    distinct: dict[int, ConfigSources] = {id(sources): sources for state in states for sources in state.config_sources}
    objects: dict[str, set[ObjectKey]] = {}
    for sources in distinct.values():
        for path, ids in sources.items():
            objects.setdefault(path, set()).update(map(parse_object_id, ids))
    return objects


def _check_file(
    path: str, missing: Collection[ObjectKey], kind: str, config: ConfigFiles, catalog: Catalog
) -> Finding | None:
    config_path = config.to_config_path(path)
    if config_path is None:
        return None
    if (problem := _find_inconclusive(config_path, missing, kind, config, catalog)) is None:
        return None
    names = _format_names(map(str, missing))
    reason = problem.reason if problem.reason.endswith("?") else f"{problem.reason}."
    is_single = len(missing) == 1
    message = (
        f"{config_path}:{problem.line}: {reason} The file defined {names} before, and it is unknown whether a person"
        f" deleted {'this object' if is_single else 'these objects'}. No package is removed. Next step: restore"
        f" {'the object' if is_single else 'the objects'}, or delete the file to remove"
        f" {'its packages' if is_single else 'their packages'}"
    )
    return PlanningCodes.FILE_INCONCLUSIVE.finding(message, SourceLocation(config_path, problem.line))


def _find_inconclusive(
    path: str, missing: Collection[ObjectKey], kind: str, config: ConfigFiles, catalog: Catalog
) -> InconclusiveFile | None:
    if path in config.files:
        if (documents := catalog.documents(path)) is not None:
            return find_inconclusive_file(documents, missing)
        # Return None for a file that cannot be parsed, because another finding already reports this file.
        is_unreadable = any(file.file == path for file in catalog.unreadable)
        return None if is_unreadable else InconclusiveFile(1, "a .krmignore file excludes this file")
    if kind not in ("", REGULAR_FILE):
        return InconclusiveFile(1, f"the path is a {kind}, and not a regular file")
    if other := _find_unread_extension(path, config):
        reason = f'the file was renamed to "{other}", but only files with an extension in lower case are read'
        return InconclusiveFile(1, reason)
    return None


def _find_unread_extension(path: str, config: ConfigFiles) -> str | None:
    """Return a file that has the name of a deleted file but an extension in upper case, e.g. `.YAML`.

    Return None if there is no such file.
    """
    return next(
        (
            candidate
            for candidate in config.files_with_uppercase_extension
            if _remove_extension(candidate) == _remove_extension(path)
        ),
        None,
    )


def _remove_extension(path: str) -> str:
    return posixpath.splitext(path.lower())[0]


def _check_excluded_files(
    excluded: Mapping[str, Collection[ObjectKey]], total: int, directory: str, max_percent: int
) -> Iterator[Finding]:
    count = len({key for keys in excluded.values() for key in keys})
    if count and is_mass_deletion(count, total, max_percent):
        reason = (
            "all objects are excluded"
            if count >= total
            else f"more than {max_percent} % of the objects are excluded (setting `guards.max_delete_percent`)"
        )
        yield PlanningCodes.CONFIG_DIRECTORY_HIDES.finding(
            f'`config.directory` is "{directory}", and excludes {count} of the {total} objects from which packages were'
            f" generated. The files of the excluded objects are {_format_names(sorted(excluded))}."
            f" The packages of these objects are kept, because {reason}."
            " Next step: correct `config.directory`. To remove the packages, delete the files"
        )


def _format_names(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return f"{', '.join(ordered[:_MAX_LISTED_NAMES])}{', …' if len(ordered) > _MAX_LISTED_NAMES else ''}"


StatesByTarget = Mapping[Target, TargetState]


def apply_acknowledged_deletions(
    guards: Mapping[ObjectKey, DeletionGuard], states: StatesByTarget
) -> dict[ObjectKey, DeletionGuard]:
    """Return copies of the deletion guards that allow each deletion that a person confirmed with an annotation.

    The annotation contains a hash of all packages to delete. After another shard has deleted some of these packages,
    a hash of the remaining packages would differ. Therefore, this function computes no hash. It compares the hash in
    the annotation with the hash in the recorded finding of each remaining package. All findings must contain this hash.
    """
    by_name = {(target.key.namespace, target.name): state for target, state in states.items()}

    def is_confirmed(guard: DeletionGuard) -> bool:
        records = [_find_record(target, by_name) for target in guard.unconfirmed]
        return bool(records) and all(
            record and _has_confirmed_hash(record, guard.acknowledged_hashes) for record in records
        )

    return {
        key: _allow_unconfirmed(guard) if guard.acknowledged_hashes and is_confirmed(guard) else guard
        for key, guard in guards.items()
    }


def _allow_unconfirmed(guard: DeletionGuard) -> DeletionGuard:
    return replace(guard, targets=guard.targets | guard.unconfirmed, confirmed=guard.confirmed | guard.unconfirmed)


def _find_record(target: PackageTarget, states: Mapping[tuple[str, str], TargetState]) -> PackageRecord | None:
    state = states.get((target.namespace, target.repository))
    return state.packages.get(target.package) if state else None


def _has_confirmed_hash(record: PackageRecord, acknowledged: frozenset[str]) -> bool:
    return any(is_named_in_finding(record, token) for token in acknowledged)


def is_named_in_finding(record: PackageRecord, token: str) -> bool:
    """Return whether a package is held, and one of its findings contains the confirmation hash `token`."""
    if record.outcome.get("kind") != "held":
        return False
    findings = record.outcome.get("findings", ())
    return any(contains_deletion_hash(str(finding["message"]), token) for finding in findings)


ACK_RESET_ANNOTATION = "reconciler.dev/ack-reset"
_TOKEN_LENGTH = 12
# A confirmation hash of this form must be quoted in an annotation, because YAML would read it as a number.
_NUMBER = re.compile(r"[0-9]+(e[0-9]+)?")


@dataclass(frozen=True)
class KnownHead:
    """The last known head of a target branch. `repository` is the normal form of the repository's URL."""

    repository: str
    branch: str
    head: CommitId


def format_reset_token(commit: str) -> str:
    """Return the value of the annotation that acknowledges that a commit does not exist any more."""
    return commit[:_TOKEN_LENGTH]


def parse_acknowledged_resets(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return the abbreviated commit IDs that the annotation `reconciler.dev/ack-reset` lists."""
    return frozenset(split_list(annotations.get(ACK_RESET_ANNOTATION, "")))


def check_repository_reset(target: Target, known: KnownHead, annotations: Mapping[str, str]) -> Finding | None:
    """Return the error for a target whose branch and state are missing.

    Return None if the annotations acknowledge the reset of the repository.
    """
    token = format_reset_token(known.head)
    if token in parse_acknowledged_resets(annotations):
        return None
    current = annotations.get(ACK_RESET_ANNOTATION)
    message = (
        f"{target.title}: {_describe_reset(target, known)}. The last known head is {token}. Nothing is pushed."
        " Next step: restore the repository. To start with an empty state instead, annotate"
        f" {_format_full_name(target)}"
        f" with {ACK_RESET_ANNOTATION}: {_format_yaml(token)}"
    )
    return PlanningCodes.REPOSITORY_RESET.finding(
        f'{message}. The current value of the annotation is "{current}"' if current else message, target.location
    )


def report_emptied_repository(target: Target) -> Finding:
    """Return the error for a new target in an empty repository that earlier contained branches of other clusters."""
    message = (
        f"{target.title}: {target.display_url} is empty, although other clusters had branches in this repository."
        " Nothing is pushed. Next step: restore the repository. To start with an empty repository instead, add"
        f" the annotation {ACK_RESET_ANNOTATION} to the other clusters. Their findings contain its value"
    )
    return PlanningCodes.REPOSITORY_RESET.finding(message, target.location)


def _describe_reset(target: Target, known: KnownHead) -> str:
    branch = f'branch "{target.branch}" of {target.display_url}'
    if (known.repository, known.branch) == (target.repository_id, target.branch):
        return f"{branch} and its recorded state do not exist any more"
    return (
        f'{branch} does not exist and has no recorded state. Before, the target used branch "{known.branch}" of'
        f" {known.repository}"
    )


def _format_full_name(target: Target) -> str:
    key = target.key
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def _format_yaml(value: str) -> str:
    return f'"{value}"' if _NUMBER.fullmatch(value) else value
