"""`reconciler plan`: show the changes that `reconciler sync` would push."""

from __future__ import annotations

import json
from dataclasses import replace

import click

from reconciler.bootstrap import Services, build_dry_run_publisher, build_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import DIFFERENCES, SUCCESS
from reconciler.cli.options import (
    cache_option,
    config_argument,
    diff_lines_option,
    fleet_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
    show_progress,
)
from reconciler.git.errors import GitError
from reconciler.output.plan.formats import build_plan_data, format_plan_markdown, format_plan_text
from reconciler.output.status.removals import list_removals
from reconciler.planning.model.outcomes import Draft
from reconciler.reconcile.pass_context import find_unread_targets
from reconciler.reconcile.reconcile_pass import PassReport, run_pass
from reconciler.service.loop import WakeupQueue, watch_folders
from reconciler.settings import Settings


@click.command("plan")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@click.option(
    "-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", help="The output format."
)
@diff_lines_option
@click.option("--watch", is_flag=True, help="Repeat the plan after each change of a local CONFIG.")
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
    """Show the changes of a `reconciler sync`: a summary, then each changed package. Nothing is pushed."""
    with report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        services = build_services(settings, require_config_url(settings), should_treat_missing_as_empty=True)
        if watch:
            return _watch(services, settings, output, diff_lines)
        report = _run_plan(settings)
    click.echo(_format_report(report, output, diff_lines))
    return _exit_status(report)


def _run_plan(settings: Settings) -> PassReport:
    with show_progress() as show:
        services = build_services(
            settings, require_config_url(settings), should_treat_missing_as_empty=True, report_progress=show
        )
        with services.remotes as remotes:
            report = run_pass(services.source, remotes, services.pass_services, build_dry_run_publisher())
            findings = (*report.plan.findings, *find_unread_targets(report.plan, remotes))
            return replace(report, plan=replace(report.plan, findings=findings))


def _watch(services: Services, settings: Settings, output: str, diff_lines: int) -> int:
    if not services.watched_folders:
        raise click.UsageError("--watch requires a CONFIG on this machine, not a URL")
    wakeups, last_text = WakeupQueue(), ""
    with watch_folders(services.watched_folders, wakeups):
        while True:
            text = _format_plan_or_error(settings, output, diff_lines)
            if text != last_text:
                click.echo(text + "\n")
            last_text = text
            # Repeat the plan after a time limit too, because an upstream can change while the config stays the same.
            wakeups.wait(settings.poll_seconds)


def _format_plan_or_error(settings: Settings, output: str, diff_lines: int) -> str:
    try:
        return _format_report(_run_plan(settings), output, diff_lines)
    except GitError as error:
        return f"reconciler: {error.full_message}"


def _format_report(report: PassReport, output: str, diff_lines: int) -> str:
    match output:
        case "json":
            return json.dumps(build_plan_data(report.plan, diff_lines), indent=2)
        case "markdown":
            return format_plan_markdown(report.plan, diff_lines)
        case _:
            return format_plan_text(report.plan, diff_lines)


def _exit_status(report: PassReport) -> int:
    has_drafts = any(isinstance(outcome, Draft) for _, outcome in report.plan.list_outcomes())
    has_removals = any(removal.has_action for removal in list_removals(report.plan))
    has_changes = has_drafts or has_removals or report.plan.proposal.action != "keep"
    return exit_status_of(report.plan.list_findings()) or (DIFFERENCES if has_changes else SUCCESS)
