"""Protection against unintended deletions.

- Evidence: the state records the config files of each package. A missing object counts as deleted if its file was
  deleted, or is valid and does not contain the object. Otherwise there is an error, and nothing is removed anywhere
  (`Catalog.is_complete`).
- Acknowledged deletions: each shard deletes its own packages, without communication with other shards.
- Repository resets: a target whose branch and state are missing, although a head of its branch is known.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from reconciler.catalog.catalog import Catalog, is_config_path
from reconciler.catalog.deletion_evidence import InconclusiveFile, find_inconclusive_file
from reconciler.catalog.files import CommitId, FileTree
from reconciler.controllers.deletion_guards import contains_deletion_hash, is_mass_deletion
from reconciler.controllers.results import ConfigSources, DeletionGuard, PackageTarget, parse_object_id
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.planning.model.codes import CONFIG_DIRECTORY_HIDES, FILE_INCONCLUSIVE, REPOSITORY_RESET
from reconciler.planning.model.state import PackageRecord, TargetState
from reconciler.planning.model.targets import Target

REGULAR_FILE = "file"
_MAX_LISTED_NAMES = 5

EntryKindReader = Callable[[Collection[str]], Mapping[str, str]]
"""Return the kind of each path of the config repository: `file`, or a description of another kind.

The result does not contain paths that do not exist.
"""


@dataclass(frozen=True)
class ConfigFiles:
    """The files of a config.

    Attributes:
        files: Files in `directory`, by path in that folder.
        directory: Folder of the config in its repository.
        read_entry_kinds: Reads the kinds of any paths of the repository, also of symbolic links and submodules.
    """

    files: FileTree
    directory: str
    read_entry_kinds: EntryKindReader

    @cached_property
    def files_with_uppercase_extension(self) -> tuple[str, ...]:
        """The files that are not read only because their extension is not in lower case."""
        return tuple(path for path in self.files if is_config_path(path.lower()) and not is_config_path(path))

    def to_config_path(self, path: str) -> str | None:
        """Return a path of the repository as a path in `directory`; None for a path outside of it."""
        if not self.directory:
            return path
        start = f"{self.directory}/"
        return path.removeprefix(start) if path.startswith(start) else None


def find_unproven_deletions(
    states: Iterable[TargetState], config: ConfigFiles, catalog: Catalog, max_percent: int
) -> tuple[Finding, ...]:
    """Return an error for each recorded file that does not prove the deletion of its objects.

    Files outside of `config.directory` count as excluded by that setting. If it excludes more than `max_percent` of the
    recorded objects, there is one error for all of them.
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
    # Packages with the same config files share one mapping object. Each mapping is parsed once.
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
    message = (
        f"{config_path}:{problem.line}: {problem.reason}. The file defined {names} before, and does not prove that they"
        " were deleted: nothing is removed. Next step: restore the objects; or delete the file, to remove their"
        " packages"
    )
    return FILE_INCONCLUSIVE.finding(message, SourceLocation(config_path, problem.line))


def _find_inconclusive(
    path: str, missing: Collection[ObjectKey], kind: str, config: ConfigFiles, catalog: Catalog
) -> InconclusiveFile | None:
    if path in config.files:
        if (documents := catalog.documents(path)) is not None:
            return find_inconclusive_file(documents, missing)
        # A file that cannot be parsed has its own error.
        is_unreadable = any(file.file == path for file in catalog.unreadable)
        return None if is_unreadable else InconclusiveFile(1, "a .krmignore file excludes it")
    if kind not in ("", REGULAR_FILE):
        return InconclusiveFile(1, f"it is {kind}, and not a regular file")
    if other := _find_unread_extension(path, config):
        reason = f"it was renamed to {other}, which is not read: extensions must be in lower case"
        return InconclusiveFile(1, reason)
    return None


def _find_unread_extension(path: str, config: ConfigFiles) -> str | None:
    """Return a file with the name of a deleted one, but with an extension in another case, for example `.YAML`."""
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
        yield CONFIG_DIRECTORY_HIDES.finding(
            f'config.directory "{directory}" excludes {count} of {total} objects that packages were generated from'
            f" ({_format_names(sorted(excluded))}), more than guards.max_delete_percent ({max_percent} %): nothing is"
            " removed. Next step: correct config.directory; or delete the files, to remove their packages"
        )


def _format_names(names: Iterable[str]) -> str:
    ordered = sorted(names)
    return f"{', '.join(ordered[:_MAX_LISTED_NAMES])}{', …' if len(ordered) > _MAX_LISTED_NAMES else ''}"


StatesByTarget = Mapping[Target, TargetState]


def apply_acknowledged_deletions(
    guards: Mapping[ObjectKey, DeletionGuard], states: StatesByTarget
) -> dict[ObjectKey, DeletionGuard]:
    """Return the guards, with all deletions allowed that a person confirmed by an annotation.

    The annotation contains a hash of all packages of the deletion. After another shard has deleted some of them, the
    hash of the remaining packages is different. Therefore, the recorded findings are compared: a deletion is confirmed
    if the finding of each remaining package contains the hash in the annotation.
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
    """Return whether a package is held by a finding that requested a confirmation with this hash."""
    if record.outcome.get("kind") != "held":
        return False
    findings = record.outcome.get("findings", ())
    return any(contains_deletion_hash(str(finding["message"]), token) for finding in findings)


ACK_RESET_ANNOTATION = "reconciler.dev/ack-reset"
_TOKEN_LENGTH = 12
# YAML reads such a value as a number, but annotations must be strings.
_NUMBER = re.compile(r"[0-9]+(e[0-9]+)?")


@dataclass(frozen=True)
class KnownHead:
    """The last known head of a target branch. `repository` is the normal form of the repository's URL."""

    repository: str
    branch: str
    head: CommitId


def format_reset_token(commit: str) -> str:
    """Return the value of an annotation that acknowledges the loss of a commit."""
    return commit[:_TOKEN_LENGTH]


def parse_acknowledged_resets(annotations: Mapping[str, str]) -> frozenset[str]:
    """Return all acknowledged commits of an object. One object can acknowledge resets of targets and of the config."""
    parts = (part.strip() for part in annotations.get(ACK_RESET_ANNOTATION, "").split(","))
    return frozenset(part for part in parts if part)


def check_repository_reset(target: Target, known: KnownHead, annotations: Mapping[str, str]) -> Finding | None:
    """Return the error for a target without branch and state, None if its annotations acknowledge the reset."""
    token = format_reset_token(known.head)
    if token in parse_acknowledged_resets(annotations):
        return None
    current = annotations.get(ACK_RESET_ANNOTATION)
    message = (
        f"{target.title}: {_describe_reset(target, known)}; the last known head is {token}; nothing is pushed."
        f" Next step: restore the repository, or start again from nothing with this annotation of"
        f" {_format_full_name(target)}: {ACK_RESET_ANNOTATION}: {_format_yaml(token)}"
    )
    return REPOSITORY_RESET.finding(f"{message} (found: {current})" if current else message, target.location)


def report_emptied_repository(target: Target) -> Finding:
    """Return the error for a new target in a repository that was emptied without an acknowledgement."""
    message = (
        f"{target.title}: {target.display_url} is empty, although other clusters had branches there; nothing is pushed."
        " Next step: restore the repository, or acknowledge the reset of the other clusters with"
        f" {ACK_RESET_ANNOTATION}"
    )
    return REPOSITORY_RESET.finding(message, target.location)


def _describe_reset(target: Target, known: KnownHead) -> str:
    branch = f"branch {target.branch} of {target.display_url}"
    if (known.repository, known.branch) == (target.repository_id, target.branch):
        return f"{branch} and its state are gone"
    return f"{branch} does not exist and has no state; before, it was branch {known.branch} of {known.repository}"


def _format_full_name(target: Target) -> str:
    key = target.key
    return f"{key.kind} {key.namespace}/{key.name}" if key.namespace else f"{key.kind} {key.name}"


def _format_yaml(value: str) -> str:
    return f'"{value}"' if _NUMBER.fullmatch(value) else value
