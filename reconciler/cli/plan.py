"""`reconciler plan`: show the changes that `reconciler sync` would push."""

from __future__ import annotations

import click

from reconciler.bootstrap import Services, build_dry_run_publisher, build_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import DIFFERENCES, SUCCESS
from reconciler.cli.options import (
    cache_option,
    color_option,
    config_argument,
    diff_lines_option,
    fleet_option,
    output_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
    should_color,
    show_progress,
)
from reconciler.git.errors import GitError
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.output.plan.formats import format_plan_markdown, format_plan_text
from reconciler.output.plan.models import PlanResult
from reconciler.output.plan.overview import build_plan_result
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
@output_option("text", "markdown", "json")
@diff_lines_option
@color_option
@click.option("--watch", is_flag=True, help="Repeat the plan after each change of a local CONFIG.")
def command(
    config: str | None,
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    output: str,
    diff_lines: int,
    color: str,
    watch: bool,
) -> int:
    """Show the changes of a `reconciler sync`: a summary, then each changed package. Nothing is pushed."""
    with report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        services = build_services(settings, require_config_url(settings), should_treat_missing_as_empty=True)
        form = _PlanFormat(output, diff_lines, should_color(color))
        if watch:
            return _watch(services, settings, form)
        report = _run_plan(settings)
    result = build_plan_result(report.plan, diff_lines)
    click.echo(form.format(result), color=form.has_color)
    return exit_status_of(report.plan.list_findings()) or (DIFFERENCES if result.has_changes else SUCCESS)


@dataclass(frozen=True)
class _PlanFormat:
    """The output format of the plan: `text`, `markdown` or `json`."""

    output: str
    diff_lines: int
    has_color: bool

    def format(self, result: PlanResult) -> str:
        match self.output:
            case "json":
                return result.to_json()
            case "markdown":
                return format_plan_markdown(result)
            case _:
                return format_plan_text(result, has_color=self.has_color)


def _run_plan(settings: Settings) -> PassReport:
    with show_progress() as show:
        services = build_services(
            settings, require_config_url(settings), should_treat_missing_as_empty=True, report_progress=show
        )
        with services.remotes as remotes:
            report = run_pass(services.source, remotes, services.pass_services, build_dry_run_publisher())
            findings = (*report.plan.findings, *find_unread_targets(report.plan, remotes))
            return replace(report, plan=replace(report.plan, findings=findings))


def _watch(services: Services, settings: Settings, form: _PlanFormat) -> int:
    if not services.watched_folders:
        raise click.UsageError("--watch requires a CONFIG on this machine, not a URL")
    wakeups, last_text = WakeupQueue(), ""
    with watch_folders(services.watched_folders, wakeups):
        while True:
            text = _format_plan_or_error(settings, form)
            if text != last_text:
                click.echo(text + "\n", color=form.has_color)
            last_text = text
            # Repeat the plan after a time limit too, because an upstream can change while the config stays the same.
            wakeups.wait(settings.poll_seconds)


def _format_plan_or_error(settings: Settings, form: _PlanFormat) -> str:
    try:
        return form.format(build_plan_result(_run_plan(settings).plan, form.diff_lines))
    except GitError as error:
        return f"reconciler: {error.full_message}"
