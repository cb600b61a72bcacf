"""`reconciler render`: offline, to a folder."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
    shard_option,
)
from reconciler.daemon.publishers import output_fault
from reconciler.daemon.reconcile import reconcile
from reconciler.reporting.findings import finding_lines
from reconciler.wiring import build_folder, build_parts


@click.command("render")
@config_argument
@click.option(
    "--output", "-O", "out", metavar="DIR", required=True, type=click.Path(path_type=Path), help="Absent or empty."
)
@click.option("--force", is_flag=True, help="Replace what is in the output folder.")
@settings_option
@cache_option
@shard_option
def command(
    config: str | None, out: Path, force: bool, settings_file: str | None, cache: str | None, shard: str | None
) -> int:
    """Write DIR/<repository>/… as each draft branch would hold it, and DIR/status/… as the status branch would."""
    with told_plainly(), progress() as show:
        settings = read_settings(settings_file, config=config, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        if why := output_fault(out, Path(config_of(settings)), force):
            raise CannotRunError(why)
        parts = build_parts(settings, config_of(settings), missing_is_empty=True, offline=True, progress=show)
        with parts.remotes as remotes:
            report = reconcile(parts.source, remotes, parts.tools, build_folder(settings, out))
    for line in finding_lines(report.plan.all_findings()):
        click.echo(line, err=True)
    return status_of(report.plan.all_findings())
