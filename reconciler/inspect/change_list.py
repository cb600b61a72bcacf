"""Groups the open drafts of a fleet into changes, for the command `drafts --by-change` and for the API."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from reconciler.inspect.report import read_fleet
from reconciler.krm.findings import Finding
from reconciler.output.envelope import create_cli_metadata
from reconciler.output.fleet.builder import build_fleet_index, index_target
from reconciler.output.fleet.model import FleetIndex
from reconciler.output.fleet.results import ChangeListResult, build_change_list
from reconciler.output.fleet.variants import VariantPool
from reconciler.reconcile.codes import PassCodes
from reconciler.reconcile.remotes.targets import DraftReader, OpenTarget


def read_change_list(
    reader: DraftReader,
    targets: Iterable[OpenTarget],
    config: str,
    report_progress: Callable[[str, int, int], None],
) -> ChangeListResult:
    """Return the changes of these targets.

    Args:
        reader: The reader that has opened the targets.
        config: The ID of the config.
        report_progress: Receives the name of the stage, and the numbers of completed targets and of all targets.
    """
    pool = VariantPool()
    entries = [index_target(cluster, pool) for cluster in read_fleet(reader, targets, report_progress)]
    index = build_fleet_index(1, 0, config, entries, ())
    result = build_change_list(index, index.changes, index.changes, findings=list_read_errors(index))
    return result.model_copy(update={"metadata": create_cli_metadata(config)})


def list_read_errors(index: FleetIndex) -> tuple[Finding, ...]:
    """Return one finding for each target whose changes are unknown, because the target cannot be read."""
    return tuple(
        PassCodes.TARGET_UNREADABLE.finding(target.read_error) for target in index.targets if target.read_error
    )
