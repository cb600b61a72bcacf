"""Records which targets an update of the fleet index reads, for tests of the incremental index and of its cache."""

from __future__ import annotations

import pytest

from reconciler.inspect import fleet_index
from reconciler.inspect.report import read_cluster
from reconciler.output.fleet.target_data import TargetData
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


def record_read_targets(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return a list to which each read of the drafts of a target adds the name of the target."""
    names: list[str] = []

    def record_read(reader: DraftReader, open_target: OpenTarget) -> TargetData:
        names.append(open_target.target.name)
        return read_cluster(reader, open_target)

    monkeypatch.setattr(fleet_index, "read_cluster", record_read)
    return names
