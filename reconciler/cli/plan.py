"""`reconciler plan`: show the changes that `reconciler sync` would push."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import publishers, services
from reconciler.cli import errors
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
from reconciler.output.plan import formats, overview
from reconciler.reconcile import cache_files, pass_context, pass_inputs, reconcile_pass, release_effects, snapshot
from reconciler.service import loop

if TYPE_CHECKING:
    from collections.abc import Mapping

    from reconciler.bootstrap.services import Services
    from reconciler.controllers.results import PackageTarget
    from reconciler.output.release_effects import ReleaseEffect
    from reconciler.planning.decide.fleet_plan import FleetPlan
    from reconciler.reconcile.cache_files import CompletedPass
    from reconciler.reconcile.pass_inputs import PassInputs
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
    with errors.report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        form = _PlanFormat(output, diff_lines, should_color(color))
        if watch:
            return _watch(settings, form)
        plan = _run_plan(settings)
    text, exit_status = form.format(plan)
    click.echo(text, color=form.has_color)
    return exit_status


@dataclass(frozen=True)
class PlanWithEffects:
    """A plan. `effects` maps the location of each package to the effects of its changed HelmReleases."""

    plan: FleetPlan
    effects: Mapping[PackageTarget, tuple[ReleaseEffect, ...]]


@dataclass(frozen=True)
class _PlanFormat:
    """The output format of the plan: `text`, `markdown` or `json`."""

    output: str
    diff_lines: int
    has_color: bool

    def format(self, planned: PlanWithEffects | CompletedPass) -> tuple[str, int]:
        """Return the text of a plan, and the exit status of the command."""
        if isinstance(planned, cache_files.CompletedPass):
            return planned.plan_texts[self.output], SUCCESS
        plan = planned.plan
        result = overview.build_plan_result(plan, self.diff_lines, planned.effects)
        exit_status = errors.exit_status_of(plan.list_findings()) or (DIFFERENCES if result.has_changes else SUCCESS)
        match self.output:
            case "json":
                return result.to_json(), exit_status
            case "markdown":
                return formats.format_plan_markdown(result), exit_status
            case _:
                return formats.format_plan_text(result, has_color=self.has_color), exit_status


def _run_plan(settings: Settings) -> PlanWithEffects | CompletedPass:
    """Plan without pushing.

    If the last pass changed nothing and no input has changed since, do not plan, and return the stored last pass.
    """
    last = services.build_pass_cache(settings, require_config_url(settings)).load()
    return _plan_unless_unchanged(settings, last if last and last.plan_texts else None)


def run_new_plan(settings: Settings) -> FleetPlan:
    """Plan without pushing, also if no input has changed since the last pass."""
    planned = _plan_unless_unchanged(settings, None)
    assert not isinstance(planned, cache_files.CompletedPass)
    return planned.plan


def _plan_unless_unchanged(settings: Settings, last: CompletedPass | None) -> PlanWithEffects | CompletedPass:
    with show_progress() as show:
        config = require_config_url(settings)
        context = services.build_services(settings, config, should_treat_missing_as_empty=True, report_progress=show)
        with context.remotes as remotes:
            inputs = pass_inputs.read_inputs_if_changed(context.source, remotes, context.inputs, last)
            return inputs if isinstance(inputs, cache_files.CompletedPass) else _plan(inputs, context)


def _plan(inputs: PassInputs, context: Services) -> PlanWithEffects:
    remotes, pass_services = context.remotes, context.pass_services
    taken = snapshot.complete_snapshot(inputs, remotes, pass_services)
    report = reconcile_pass.decide_and_publish(taken, remotes, pass_services, publishers.build_dry_run_publisher())
    findings = (*report.plan.findings, *pass_context.find_unread_targets(report.plan, remotes))
    effects = release_effects.find_release_effects(report.plan, pass_services.sources)
    return PlanWithEffects(replace(report.plan, findings=findings), effects)


def _watch(settings: Settings, form: _PlanFormat) -> int:
    folders = services.build_services(settings, require_config_url(settings)).watched_folders
    if not folders:
        raise click.UsageError("--watch requires a CONFIG on this machine, not a URL")
    wakeups, last_text = loop.WakeupQueue(), ""
    with loop.watch_folders(folders, wakeups):
        while True:
            text = _format_plan_or_error(settings, form)
            if text != last_text:
                click.echo(text + "\n", color=form.has_color)
            last_text = text
            # Repeat the plan after a time limit too, because an upstream can change while the config stays the same.
            wakeups.wait(settings.poll_seconds)


def _format_plan_or_error(settings: Settings, form: _PlanFormat) -> str:
    try:
        return form.format(_run_plan(settings))[0]
    except GitError as error:
        return f"reconciler: {error.full_message}"
