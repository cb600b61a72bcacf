"""What a pass left when nothing was left to do: equal heads then end the next pass, in this process or another one.

It is kept in the cache, and is worth no more than that: without it, a pass reads every state and comes to the same.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Protocol

from reconciler.daemon.events import log
from reconciler.gitio.walk import remove_folder
from reconciler.krm.findings import Finding
from reconciler.planning.decide import finding_data, read_finding


@dataclass(frozen=True)
class Settled:
    """A pass, what it started from, and what it told.

    `config` is the config's id, `heads` the digest of everything else; `upstreams` and `destinations` are the URLs
    that the config names; `due` is when equal heads ask for another pass. `silent`: it moved nothing itself, or tells
    what the next one would, which moves nothing. `at` is when it ran. `functions` are those outside of us that packages
    depend on, by their fact names.
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

    def holds(self, now: int) -> bool:
        """Return whether nothing is due; of a clock that was set back since, nobody knows when that would be."""
        return self.due is None or self.at <= now < self.due


class Memory(Protocol):
    """Where the last settled pass is remembered."""

    def recall(self) -> Settled | None:
        """Return it, or None when there is none."""
        ...

    def keep(self, settled: Settled | None) -> None:
        """Remember it instead of the one before; None forgets."""
        ...


class InMind:
    """The memory of a service: it goes with the process."""

    def __init__(self) -> None:
        self._settled: Settled | None = None

    def recall(self) -> Settled | None:
        """Return what was kept last."""
        return self._settled

    def keep(self, settled: Settled | None) -> None:
        """Remember it."""
        self._settled = settled


class InCache:
    """The memory between processes: a file of the cache. Only a silent pass is one that the next may simply repeat."""

    def __init__(self, file: Path) -> None:
        self._file = file

    def recall(self) -> Settled | None:
        """Return what was kept last; a file that is gone, or that others wrote, is as good as none."""
        try:
            return _read(json.loads(self._file.read_bytes()))
        except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
            return None

    def keep(self, settled: Settled | None) -> None:
        """Store a silent pass; delete the record of an earlier one otherwise. An error of the disk is only logged."""
        try:
            self._store(settled)
        except OSError as error:
            log.warning("settled_not_kept", file=str(self._file), why=error.strerror)

    def _store(self, settled: Settled | None) -> None:
        if self._file.is_dir() and not self._file.is_symlink():
            remove_folder(self._file)
        if settled is None or not settled.silent:
            self._file.unlink(missing_ok=True)
            return
        self._file.parent.mkdir(parents=True, exist_ok=True)
        new = self._file.with_suffix(".new")
        new.write_text(json.dumps({**asdict(settled), "findings": [finding_data(one) for one in settled.findings]}))
        new.replace(self._file)


def _read(data: Mapping[str, Any]) -> Settled:
    lists = {name: tuple(data[name]) for name in ("upstreams", "destinations", "functions")}
    return Settled(**{**data, **lists, "findings": tuple(read_finding(one) for one in data["findings"])})
