"""Runs the command `reconciler show` to compute the effects of HelmReleases in drafts, and caches these effects."""

from __future__ import annotations

import json
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from threading import BoundedSemaphore, Lock
from typing import Any

from reconciler.inspect.command_process import ReconcilerCommand
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.fleet.model import DraftMember

_MAX_PROCESSES = 2
_SECONDS = 60.0
# Waiting requests occupy threads that other pages need.
_WAIT_SECONDS = 10.0
_MAX_KEPT = 256
_MAX_LINES = "0"


@dataclass(frozen=True)
class DraftReleaseEffects:
    """The effects of the HelmReleases in a draft, or the reason why they are unknown.

    Attributes:
        command: The command that prints the effects.
        effects: The effects, in the form of the JSON output.
        error: The reason why the command has no result. "" if it has a result.
    """

    command: str
    effects: tuple[Mapping[str, Any], ...] = ()
    error: str = ""


class ReleaseEffectsReader:
    """Runs `reconciler show --effects` for drafts, and caches the results. The object is thread-safe.

    At most two processes run at the same time. The cache key contains the draft and the config, because the effects
    depend on both. Errors are not cached.

    Args:
        options: The command-line options that locate the config, the settings and the repositories.
    """

    def __init__(self, options: Sequence[str]) -> None:
        self._command = ReconcilerCommand("show", ("--effects", "--diff-lines", _MAX_LINES, *options))
        self._line = ReconcilerCommand("show", ("--effects", *options))
        self._processes = BoundedSemaphore(_MAX_PROCESSES)
        self._lock = Lock()
        self._kept: OrderedDict[tuple[str, ...], DraftReleaseEffects] = OrderedDict()

    def read(self, member: DraftMember, config: str) -> DraftReleaseEffects:
        """Return the effects of a draft.

        Args:
            config: The ID of the current config.
        """
        key = (member.target, member.package, member.head, member.published_head, config)
        with self._lock:
            if known := self._kept.get(key):
                self._kept.move_to_end(key)
                return known
        line = self._line.format_line((f"{member.target}/{member.package}",))
        if not self._processes.acquire(timeout=_WAIT_SECONDS):
            return DraftReleaseEffects(line, error="too many effects are being computed; try again in a minute")
        try:
            effects = self._run(member, line)
        finally:
            self._processes.release()
        if not effects.error:
            with self._lock:
                self._kept[key] = effects
                if len(self._kept) > _MAX_KEPT:
                    self._kept.popitem(last=False)
        return effects

    def _run(self, member: DraftMember, line: str) -> DraftReleaseEffects:
        output = self._command.run((f"{member.target}/{member.package}",), _SECONDS)
        if output.error:
            return DraftReleaseEffects(line, error=output.error)
        data = json.loads(output.text)
        draft = next((item for item in data["items"] if item["branch"] == member.branch), None)
        if draft is None or draft["head"] != member.head:
            reason = next(
                (finding["message"] for finding in data["findings"]), "the draft has changed since the last pass"
            )
            return DraftReleaseEffects(line, error=reason)
        package = next(package for package in draft["packages"] if package["package"] == member.package)
        return DraftReleaseEffects(line, tuple(package["content"].get("releaseEffects", ())))
