"""Known heads: the last known head of every target branch, kept in the cache.

The state of a target is in the same repository as its branch. When an empty repository replaces it,
both are gone, and this file is the evidence that there was a branch. A process with another cache has no such evidence.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Any

from reconciler.daemon.events import log
from reconciler.gitio.errors import MirrorBusyError
from reconciler.gitio.lock import locked
from reconciler.planning.destination import Destination
from reconciler.planning.resets import KnownHead
from reconciler.snapshot.objects import CommitId

_LOCK_SECONDS = 10.0
_Branches = dict[str, dict[str, str]]
_Targets = dict[str, dict[str, list[str]]]


class KnownHeads:
    """The last known heads by repository and branch, and the branch that each target of one config had.

    `config` identifies the config. Several processes and configs may share the file: `keep` adds only its own changes.
    """

    def __init__(self, file: Path, config: str) -> None:
        self._file = file
        self._config = config
        self._new: dict[str, KnownHead] = {}

    @property
    def is_empty(self) -> bool:
        """Whether nothing was kept yet, as in a new cache or in one of an earlier version."""
        return not self._file.exists()

    @cached_property
    def _known(self) -> tuple[_Branches, _Targets]:
        return _read(self._file)

    def find(self, target: Destination) -> KnownHead | None:
        """Return the last known head of a target; of one that is new at its place, the head at the place before."""
        branches, targets = self._known
        before = targets.get(self._config, {}).get(str(target.key), [])
        for repository, branch in ((target.repository_id, target.branch), *([tuple(before)] if before else [])):
            if head := branches.get(repository, {}).get(branch):
                return KnownHead(repository, branch, CommitId(head))
        return None

    def note(self, target: Destination, head: CommitId) -> None:
        """Remember the head of a target's branch until `keep`."""
        branches, targets = self._known
        known = KnownHead(target.repository_id, target.branch, head)
        is_same = branches.get(known.repository, {}).get(known.branch) == head
        if not is_same or targets.get(self._config, {}).get(str(target.key)) != [known.repository, known.branch]:
            self._new[str(target.key)] = known

    def keep(self) -> None:
        """Write what was noted. An error of the disk is logged and stops nothing."""
        if not self._new:
            return
        try:
            self._file.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            with locked(self._file.with_suffix(".lock"), _LOCK_SECONDS):
                self._write()
        except (OSError, MirrorBusyError) as error:
            log.warning("known_heads_not_kept", file=str(self._file), why=str(error))
            return
        self._new = {}

    def _write(self) -> None:
        # another process may have written since this one has read
        branches, targets = _read(self._file)
        for target, one in self._new.items():
            branches.setdefault(one.repository, {})[one.branch] = one.head
            targets.setdefault(self._config, {})[target] = [one.repository, one.branch]
        fresh = self._file.with_suffix(".new")
        fresh.write_text(json.dumps({"branches": branches, "targets": targets}, sort_keys=True))
        fresh.replace(self._file)
        self.__dict__["_known"] = (branches, targets)


def _read(file: Path) -> tuple[_Branches, _Targets]:
    try:
        data: Mapping[str, Any] = json.loads(file.read_bytes())
        branches = {name: {one: str(head) for one, head in found.items()} for name, found in data["branches"].items()}
        targets = {
            config: {name: [str(repository), str(branch)] for name, (repository, branch) in found.items()}
            for config, found in data["targets"].items()
        }
    except FileNotFoundError:
        return {}, {}
    except (OSError, ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        log.warning("known_heads_unreadable", file=str(file), why=str(error))
        return {}, {}
    return branches, targets
