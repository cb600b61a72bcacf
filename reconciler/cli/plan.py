"""`reconciler plan`: what a sync would do, against the real branches; nothing is pushed."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import DIFFERENCES
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    diff_lines_option,
    fleet_option,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
    shard_option,
)
from reconciler.daemon.desk import unread
from reconciler.daemon.reconcile import Report, reconcile
from reconciler.daemon.wakeups import Wakeups, watching
from reconciler.gitio.errors import GitError
from reconciler.planning.outcome import Draft
from reconciler.reporting.leaving import departures
from reconciler.reporting.plan import plan_json, plan_markdown, plan_text
from reconciler.settings import Settings
from reconciler.wiring import Parts, build_keep, build_parts


@click.command("plan")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@click.option("-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", help="How to tell it.")
@diff_lines_option
@click.option("--watch", is_flag=True, help="Plan again whenever a file of a local CONFIG changes.")
def command(
    config: str | None,
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    output: str,
    diff_lines: int,
    watch: bool,
) -> int:
    """Show what a sync would do: the summary, then what would change in each package. Nothing is pushed."""
    with told_plainly():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        parts = build_parts(settings, config_of(settings), missing_is_empty=True)
        if watch:
            return _watch(parts, settings, output, diff_lines)
        report = _plan(settings)
    click.echo(_told(report, output, diff_lines))
    return _status(report)


def _plan(settings: Settings) -> Report:
    with progress() as show:
        parts = build_parts(settings, config_of(settings), missing_is_empty=True, progress=show)
        with parts.remotes as remotes:
            report = reconcile(parts.source, remotes, parts.tools, build_keep())
            found = (*report.plan.findings, *unread(report.plan, remotes))
            return replace(report, plan=replace(report.plan, findings=found))


def _watch(parts: Parts, settings: Settings, output: str, diff_lines: int) -> int:
    if not parts.folders:
        raise click.UsageError("--watch needs a CONFIG on this machine; there is nothing to watch at a URL")
    wakeups, last = Wakeups(), ""
    with watching(parts.folders, wakeups):
        while True:
            told = _try(settings, output, diff_lines)
            if told != last:
                click.echo(told + "\n")
            last = told
            # when only time passed, an upstream may have moved: plan again, and speak only if it differs
            wakeups.wait(settings.poll_seconds)


def _try(settings: Settings, output: str, diff_lines: int) -> str:
    try:
        return _told(_plan(settings), output, diff_lines)
    except GitError as error:
        return f"reconciler: {error.told}"


def _told(report: Report, output: str, diff_lines: int) -> str:
    match output:
        case "json":
            return json.dumps(plan_json(report.plan, diff_lines), indent=2)
        case "markdown":
            return plan_markdown(report.plan, diff_lines)
        case _:
            return plan_text(report.plan, diff_lines)


def _status(report: Report) -> int:
    drafts = any(isinstance(outcome, Draft) for _, outcome in report.plan.outcomes())
    leaving = any(one.is_done_now for one in departures(report.plan))
    differs = drafts or leaving or report.plan.proposal.layout != "keep"
    return status_of(report.plan.all_findings()) or (DIFFERENCES if differs else 0)
