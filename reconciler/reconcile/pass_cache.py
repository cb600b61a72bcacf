"""Data that a pass keeps for later passes, in the cache folder or in the memory of the service.

Losing this data never changes a result of planning, but it can cost time:
- `FirstSeenTimes`: without it, the delay of each approval by annotation starts again, and the ages of published
  packages come from commit dates.
- `KnownHeads`: the evidence that a target branch existed. The state of a target is in the same repository as its
  branch. If an empty repository replaces it, this file is the only evidence. A process with another cache has none.
- `CompletedPass`: with equal refs, the next pass ends at once, in this process or in another one.
- `PassCache`: a pass of the service only plans targets that have changed.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

from reconciler.catalog.files import CommitId
from reconciler.catalog.trace import DependencyReader, Trace
from reconciler.controllers.results import ControllerResult
from reconciler.git.errors import MirrorBusyError
from reconciler.git.filesystem import hold_lock, remove_folder
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.packages.functions.registry import is_function_trace_key
from reconciler.planning.carry_over.checkpoint import TargetCheckpoint
from reconciler.planning.decide.deletion_safety import KnownHead
from reconciler.planning.decide.fleet_plan import FleetPlan, TargetPlan
from reconciler.planning.decide.package_decision import parse_finding, serialize_finding
from reconciler.planning.decide.target_inputs import DesiredPackages, TargetClaims
from reconciler.planning.model.outcomes import PackageOutcome
from reconciler.planning.model.state import TargetState
from reconciler.planning.model.targets import Target
from reconciler.reconcile.event_log import log
from reconciler.reconcile.pull_requests.open_requests import TargetRequests


class FirstSeenTimes:
    """The times when passes first saw the content of packages on branches, by target and package, in a cache file."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._times: dict[str, dict[str, tuple[str, int]]] = _read_first_seen(file)
        self._has_changed = False

    def update(self, target: str, contents: Mapping[str, str], now: int, start: int | None = None) -> Mapping[str, int]:
        """Record the current contents of a target, and return the time when each was first seen.

        Args:
            target: An id of the target.
            contents: An id of the content of each package. Other packages of the target are deleted.
            now: The time of this pass, in seconds since 1970.
            start: The time for the contents of a target without records; `now` if None.

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
        """Write changed times to the file for later processes. An error of the disk is only logged."""
        if not self._has_changed:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._file.with_suffix(".new")
            temporary.write_text(json.dumps(dict(sorted(self._times.items()))))
            temporary.replace(self._file)
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
    """The last known heads by repository and branch, and the last branch of each target of a config, in a cache file.

    `config` is the id of the config. Processes with different configs can share the file: `store` only adds changes.
    """

    def __init__(self, file: Path, config: str) -> None:
        self._file = file
        self._config = config
        self._new: dict[str, KnownHead] = {}

    @property
    def is_empty(self) -> bool:
        """Whether the file does not exist, as in a new cache or in the cache of an earlier version."""
        return not self._file.exists()

    @cached_property
    def _known(self) -> tuple[_Branches, _Targets]:
        return _read_known_heads(self._file)

    def find(self, target: Target) -> KnownHead | None:
        """Return the last known head of a target; if its branch is new, the head of its previous branch."""
        branches, targets = self._known
        previous = targets.get(self._config, {}).get(str(target.key), [])
        for repository, branch in ((target.repository_id, target.branch), *([tuple(previous)] if previous else [])):
            if head := branches.get(repository, {}).get(branch):
                return KnownHead(repository, branch, CommitId(head))
        return None

    def record(self, target: Target, head: CommitId) -> None:
        """Record the head of a target branch until `store`."""
        branches, targets = self._known
        known = KnownHead(target.repository_id, target.branch, head)
        is_same = branches.get(known.repository, {}).get(known.branch) == head
        if not is_same or targets.get(self._config, {}).get(str(target.key)) != [known.repository, known.branch]:
            self._new[str(target.key)] = known

    def store(self) -> None:
        """Write recorded heads to the file. An error of the disk is only logged."""
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
        # Another process may have written the file after this process has read it.
        branches, targets = _read_known_heads(self._file)
        for target, head in self._new.items():
            branches.setdefault(head.repository, {})[head.branch] = head.head
            targets.setdefault(self._config, {})[target] = [head.repository, head.branch]
        temporary = self._file.with_suffix(".new")
        temporary.write_text(json.dumps({"branches": branches, "targets": targets}, sort_keys=True))
        temporary.replace(self._file)
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
    """A pass without remaining work, with its inputs and its result. Field names are keys of the cache file.

    Attributes:
        config: The id of the config.
        heads: A digest of all other inputs.
        upstreams: The upstream URLs that the config names.
        destinations: The URLs of all targets.
        due: The time of the next pass if no ref moves, in seconds since 1970.
        counts: The numbers of packages by outcome.
        findings: All findings of the pass.
        silent: Whether an equal pass would change nothing and return this result.
        at: The time of the pass, in seconds since 1970.
        functions: The dependency names of all functions that packages use and that run outside of this process.
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

    def is_current(self, now: int) -> bool:
        """Return whether nothing is due at `now`. If the clock was set back since, the pass is not current."""
        return self.due is None or self.at <= now < self.due


class CompletedPassStore(Protocol):
    """Stores the last completed pass."""

    def load(self) -> CompletedPass | None:
        """Return the stored pass; None if there is none."""
        ...

    def save(self, completed: CompletedPass | None) -> None:
        """Replace the stored pass; None deletes it."""
        ...


class InMemoryPassStore:
    """Stores the last completed pass in the memory of the service."""

    def __init__(self) -> None:
        self._completed: CompletedPass | None = None

    def load(self) -> CompletedPass | None:
        """Return the stored pass."""
        return self._completed

    def save(self, completed: CompletedPass | None) -> None:
        """Replace the stored pass."""
        self._completed = completed


class FilePassStore:
    """Stores the last completed pass in a cache file, for later processes. Only a silent pass is stored."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def load(self) -> CompletedPass | None:
        """Return the stored pass; None if the file is missing or not valid."""
        try:
            return _parse_completed_pass(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def save(self, completed: CompletedPass | None) -> None:
        """Store a silent pass; otherwise delete the stored pass. An error of the disk is only logged."""
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
        self._file.parent.mkdir(parents=True, exist_ok=True)
        temporary = self._file.with_suffix(".new")
        findings = [serialize_finding(finding) for finding in completed.findings]
        temporary.write_text(json.dumps({**asdict(completed), "findings": findings}))
        temporary.replace(self._file)


def _parse_completed_pass(data: Mapping[str, Any]) -> CompletedPass:
    lists = {name: tuple(data[name]) for name in ("upstreams", "destinations", "functions")}
    return CompletedPass(**{**data, **lists, "findings": tuple(parse_finding(finding) for finding in data["findings"])})


PlanRefs = Mapping[str, CommitId | None]
"""The refs that a plan depends on, by name; None for a ref that does not exist."""


@dataclass(frozen=True)
class CachedTarget:
    """A target after a pass: its checkpoint, and the refs and pull requests that its plan depends on."""

    target: Target
    checkpoint: TargetCheckpoint
    refs: PlanRefs
    pull_requests: TargetRequests
    state_commit: CommitId | None


class PassCache:
    """Targets without remaining work after the last passes of a service.

    The plan of such a target is reused if its refs, its pull requests, the requested packages and the fingerprints of
    all dependencies are unchanged. All other targets are planned. The result is the same without this cache.
    """

    def __init__(self) -> None:
        self._targets: dict[ObjectKey, CachedTarget] = {}
        self._fingerprints: dict[str, str] = {}
        self._traces: dict[frozenset[tuple[str, str]], Trace] = {}
        self._changed: frozenset[str] = frozenset()
        self._desired: DesiredPackages | None = None

    def __len__(self) -> int:
        return len(self._targets)

    def find_desired_state(self, result: ControllerResult) -> DesiredPackages:
        """Return the desired packages of a controller result. The last one is cached."""
        if self._desired is None or not self._desired.is_same_result(result):
            self._desired = DesiredPackages(result)
        return self._desired

    def find_state(self, target: Target, commit: CommitId) -> TargetState | None:
        """Return the state of a target if it is still at this state commit; None otherwise."""
        cached = self._targets.get(target.key)
        return cached.checkpoint.plan.next_state if cached and cached.state_commit == commit else None

    def refresh_dependencies(self, reader: DependencyReader, identify_function: Callable[[str], str]) -> None:
        """Read the fingerprints of all dependencies again, each once for all packages.

        `identify_function` returns the current identity of a function, "" if it is unknown.
        """
        self._changed = frozenset(
            name
            for name, previous in self._fingerprints.items()
            if ((identify_function(name) or previous) if is_function_trace_key(name) else reader.read_fingerprint(name))
            != previous
        )

    def find_plan(
        self,
        target: Target,
        refs: Mapping[str, CommitId],
        claims: TargetClaims,
        read_requests: Callable[[CachedTarget], TargetRequests],
    ) -> TargetPlan | None:
        """Return the last plan of a target if it is still valid."""
        cached = self._targets.get(target.key)
        if cached is None or not _has_same_refs(cached, target, refs):
            return None
        is_valid = (
            cached.checkpoint.has_same_claims(claims)
            and cached.checkpoint.dependencies.keys().isdisjoint(self._changed)
            and read_requests(cached) == cached.pull_requests
        )
        return cached.checkpoint.plan if is_valid else None

    def find_known_outcomes(
        self,
        target: Target,
        refs: Mapping[str, CommitId],
        claims: TargetClaims,
        read_requests: Callable[[CachedTarget], TargetRequests],
    ) -> Mapping[str, PackageOutcome]:
        """Return the outcomes of single packages that are still valid, of a target that must be planned again."""
        cached = self._targets.get(target.key)
        if cached is None or not _has_same_refs(cached, target, refs) or read_requests(cached) != cached.pull_requests:
            return {}
        return cached.checkpoint.find_known_outcomes(claims, self._changed)

    def find_fleet_plan(self, plan: FleetPlan) -> FleetPlan | None:
        """Return the plan of an equal next pass; None if that pass must plan one of the targets."""
        cached = [self._targets.get(target_plan.target.key) for target_plan in plan.targets]
        plans = tuple(target.checkpoint.plan for target in cached if target)
        return replace(plan, targets=plans) if len(plans) == len(cached) else None

    def record(self, target: Target, cached: CachedTarget | None) -> None:
        """Store a target after a pass; None if the next pass must plan it again."""
        if cached is None:
            self._targets.pop(target.key, None)
            return
        # Targets with equal packages share one trace.
        trace = self._traces.setdefault(
            frozenset(cached.checkpoint.dependencies.items()), cached.checkpoint.dependencies
        )
        self._targets[target.key] = replace(cached, checkpoint=replace(cached.checkpoint, dependencies=trace))
        self._fingerprints |= trace

    def finish_pass(self, targets: Iterable[ObjectKey]) -> None:
        """Delete all other targets, and delete dependencies without a target from time to time."""
        for removed in self._targets.keys() - set(targets):
            del self._targets[removed]
        if len(self._traces) > 2 * len(self._targets) + 1:
            traces = (cached.checkpoint.dependencies for cached in self._targets.values())
            self._traces = {frozenset(trace.items()): trace for trace in traces}
            self._fingerprints = {
                name: fingerprint for trace in self._traces.values() for name, fingerprint in trace.items()
            }


def _has_same_refs(cached: CachedTarget, target: Target, refs: Mapping[str, CommitId]) -> bool:
    """Return whether the definition and all refs of a target are the same as in the cache."""
    is_same = cached.target is target or cached.target == target
    return is_same and all(refs.get(name) == commit for name, commit in cached.refs.items())
