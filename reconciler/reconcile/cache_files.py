"""Data that a pass stores in the cache folder, for later passes in other processes.

If this data is deleted, packages are still rendered with the same content. The effects are:
- `FirstSeenTimes`: The delay of each approval by annotation starts again. The ages of published packages come from
  commit dates.
- `KnownHeads`: A pass cannot detect that an empty repository has replaced the repository of a target. The replaced
  repository also contained the state of the target, so that the state is not available.
- `CompletedPass`: The next pass is not skipped, although no ref has moved.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from reconciler.catalog.files import CommitId
from reconciler.git.errors import MirrorBusyError
from reconciler.git.filesystem import hold_lock, remove_folder, replace_file
from reconciler.krm.findings import Finding, parse_finding, serialize_finding
from reconciler.lazy_dataclasses import asdict, dataclass, field
from reconciler.planning.decide import deletion_safety
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.planning.decide.deletion_safety import KnownHead
    from reconciler.planning.model.targets import Target


class FirstSeenTimes:
    """Stores in a cache file when a pass first found the current content of each package on a branch."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._times: dict[str, dict[str, tuple[str, int]]] = _read_first_seen(file)
        self._has_changed = False

    def update(self, target: str, contents: Mapping[str, str], now: int, start: int | None = None) -> Mapping[str, int]:
        """Record the package contents of a target, and return when a pass first found each content.

        Args:
            target: An ID of the target.
            contents: An ID of the content of each package. Records of other packages of the target are deleted.
            now: The time of this pass, in seconds since 1970.
            start: The time to record if the target has no records yet. If None, `now` is recorded.

        Returns:
            The times by package, in seconds since 1970.
        """
        known = self._times.get(target, {})
        first_seen = now if start is None or target in self._times else start
        updated = {
            package: known[package] if package in known and known[package][0] == content else (content, first_seen)
            for package, content in contents.items()
        }
        if updated != known or (start is not None and target not in self._times):
            self._times[target] = updated
            self._has_changed = True
        return {package: seconds for package, (_, seconds) in updated.items()}

    def store(self) -> None:
        """Write changed times to the cache file. If the write fails, log the error and do not raise it."""
        if not self._has_changed:
            return
        try:
            replace_file(self._file, json.dumps(dict(sorted(self._times.items()))))
        except OSError as error:
            log.warning("first_seen_store_failed", file=str(self._file), message=error.strerror)
            return
        self._has_changed = False


def _read_first_seen(file: Path) -> dict[str, dict[str, tuple[str, int]]]:
    try:
        data: dict[str, dict[str, Any]] = json.loads(file.read_bytes())
        return {
            name: {package: (str(content), int(seconds)) for package, (content, seconds) in packages.items()}
            for name, packages in data.items()
        }
    except (OSError, ValueError, TypeError, AttributeError):
        return {}


_LOCK_SECONDS = 10.0
_Branches = dict[str, dict[str, str]]
_Targets = dict[str, dict[str, list[str]]]


class KnownHeads:
    """Stores in a cache file the last known head of each branch, and the last branch of each target.

    `config` identifies the config by its URL and directory. Processes with different configs can share the file,
    because `store` never deletes an entry.
    """

    def __init__(self, file: Path, config: str) -> None:
        self._file = file
        self._config = config
        self._new: dict[str, KnownHead] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the cache file does not exist, because the cache is new or an earlier version wrote it."""
        return not self._file.exists()

    @cached_property
    def _known(self) -> tuple[_Branches, _Targets]:
        return _read_known_heads(self._file)

    def find(self, target: Target) -> KnownHead | None:
        """Return the last known head of the branch of a target. Return None if no head is known.

        If the branch of the target is new, return the last known head of its previous branch.
        """
        branches, targets = self._known
        previous = targets.get(self._config, {}).get(target.key.reference, [])
        for repository, branch in ((target.repository_id, target.branch), *([tuple(previous)] if previous else [])):
            if head := branches.get(repository, {}).get(branch):
                return deletion_safety.KnownHead(repository, branch, CommitId(head))
        return None

    def record(self, target: Target, head: CommitId) -> None:
        """Record the head of a target branch in memory. `store` writes recorded heads to the file."""
        branches, targets = self._known
        known = deletion_safety.KnownHead(target.repository_id, target.branch, head)
        is_same = branches.get(known.repository, {}).get(known.branch) == head
        if not is_same or targets.get(self._config, {}).get(target.key.reference) != [known.repository, known.branch]:
            self._new[target.key.reference] = known

    def store(self) -> None:
        """Write recorded heads to the file. If the write fails, log the error and do not raise it."""
        if not self._new:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with hold_lock(self._file.with_suffix(".lock"), _LOCK_SECONDS):
                self._write()
        except (OSError, MirrorBusyError) as error:
            log.warning("known_heads_store_failed", file=str(self._file), message=str(error))
            return
        self._new = {}

    def _write(self) -> None:
        # Read the file again, because another process may have changed it in the meantime.
        branches, targets = _read_known_heads(self._file)
        for target, head in self._new.items():
            branches.setdefault(head.repository, {})[head.branch] = head.head
            targets.setdefault(self._config, {})[target] = [head.repository, head.branch]
        replace_file(self._file, json.dumps({"branches": branches, "targets": targets}, sort_keys=True))
        self.__dict__["_known"] = (branches, targets)


def _read_known_heads(file: Path) -> tuple[_Branches, _Targets]:
    try:
        data: Mapping[str, Any] = json.loads(file.read_bytes())
        branches = {
            name: {branch: str(head) for branch, head in heads.items()} for name, heads in data["branches"].items()
        }
        targets = {
            config: {name: [str(repository), str(branch)] for name, (repository, branch) in known.items()}
            for config, known in data["targets"].items()
        }
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("known_heads_read_failed", file=str(file), message=str(error))
        return {}, {}
    return branches, targets


@dataclass(frozen=True)
class CompletedPass:
    """The inputs and the result of a pass that left no work to do. The field names are keys of the cache file.

    Attributes:
        config: The ID of the config.
        heads: A digest of all other inputs, such as the refs of all remotes.
        upstreams: The URLs of the upstreams in the config.
        destinations: The URLs of all targets.
        due: The time of the next pass if no ref moves, in seconds since 1970. None if no pass is due.
        counts: The number of packages for each outcome.
        silent: Whether another pass with the same inputs would change nothing and return the same result.
        at: The time of the pass, in seconds since 1970.
        functions: The dependency names of all functions that packages use and that run outside of this process.
        artifacts: The requests for versions of charts and artifacts.
        plan_texts: The output of `plan` for the same inputs, by output format. Empty if the plan has changes, blocked
            packages, warnings or errors.
    """

    config: str
    heads: str
    upstreams: tuple[str, ...] = ()
    destinations: tuple[str, ...] = ()
    due: int | None = None
    counts: Mapping[str, int] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()
    silent: bool = False
    at: int = 0
    functions: tuple[str, ...] = ()
    plan_texts: Mapping[str, str] = field(default_factory=dict)
    artifacts: tuple[str, ...] = ()

    def is_current(self, now: int) -> bool:
        """Return whether no scheduled pass is due at `now`, so that this pass is still up to date.

        If a pass is scheduled and `now` is before this pass, the clock was set back. The result is then False.
        """
        return self.due is None or self.at <= now < self.due


class CompletedPassStore(Protocol):
    """Stores the last completed pass."""

    def load(self) -> CompletedPass | None:
        """Return the stored pass. Return None if no pass is stored."""
        ...

    def save(self, completed: CompletedPass | None) -> None:
        """Replace the stored pass with `completed`. If `completed` is None, delete the stored pass."""
        ...


class InMemoryPassStore:
    """Stores the last completed pass in memory."""

    def __init__(self) -> None:
        self._completed: CompletedPass | None = None

    def load(self) -> CompletedPass | None:
        """Return the stored pass. Return None if no pass is stored."""
        return self._completed

    def save(self, completed: CompletedPass | None) -> None:
        """Replace the stored pass with `completed`. If `completed` is None, delete the stored pass."""
        self._completed = completed


class FilePassStore:
    """Stores the last completed pass in a cache file, for later processes.

    A pass is stored only if `CompletedPass.silent` is True.
    """

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> CompletedPass | None:
        """Return the stored pass. Return None if the file is missing or not valid."""
        try:
            return _parse_completed_pass(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def save(self, completed: CompletedPass | None) -> None:
        """Store `completed` if its attribute `silent` is True. If not, delete the stored pass. Log disk errors."""
        try:
            self._write(completed)
        except OSError as error:
            log.warning("completed_pass_store_failed", file=str(self._file), message=error.strerror)

    def _write(self, completed: CompletedPass | None) -> None:
        if self._file.is_dir() and not self._file.is_symlink():
            remove_folder(self._file)
        if completed is None or not completed.silent:
            self._file.unlink(missing_ok=True)
            return
        findings = [serialize_finding(finding) for finding in completed.findings]
        replace_file(self._file, json.dumps({**asdict(completed), "findings": findings}))


def _parse_completed_pass(data: Mapping[str, Any]) -> CompletedPass:
    lists = {name: tuple(data[name]) for name in ("upstreams", "destinations", "functions", "artifacts")}
    return CompletedPass(**{**data, **lists, "findings": tuple(parse_finding(finding) for finding in data["findings"])})
