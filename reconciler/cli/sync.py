"""`reconciler sync`: run one pass, and push the drafts, the state and the status."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import options as bootstrap_options
from reconciler.bootstrap import publishers
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import (
    cache_option,
    config_argument,
    fleet_option,
    output_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
    show_progress,
)
from reconciler.output import envelope
from reconciler.output.findings import entries
from reconciler.output.plan import pass_results
from reconciler.reconcile import last_pass_file, pass_runner

if TYPE_CHECKING:
    from reconciler.output.plan.pass_results import SyncResult
    from reconciler.reconcile.pass_runner import PassSummary


@click.command("sync")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@output_option("text", "json")
def command(
    config: str | None,
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    output: str,
) -> int:
    """Run one pass: render the drafts of all targets, and push the drafts, the state and the status."""
    with report_errors(), show_progress() as show:
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        publisher = publishers.build_push_publisher(settings)
        services = bootstrap_services.build_services(
            settings, require_config_url(settings), report_progress=show, should_sign=True
        )
        passes = pass_runner.PassRunner(
            services.source,
            services.remotes,
            services.pass_services,
            publisher,
            bootstrap_services.build_pass_cache(settings, require_config_url(settings)),
        )
        times = last_pass_file.measure_pass(passes.run)
        bootstrap_options.build_last_pass_file(settings).write(times, passes.summary)
    summary = passes.summary
    result = _build_result(summary)
    click.echo(result.to_json() if output == "json" else pass_results.format_sync_text(result))
    return max(exit_status_of(summary.findings), SUCCESS if summary.is_clean else ERROR_FINDING)


def _build_result(summary: PassSummary) -> SyncResult:
    pushed = [
        pass_results.SyncedDraft(target=target, branch=branch, head=head)
        for target, heads in summary.drafts.items()
        for branch, head in heads.items()
    ]
    unpushed = [
        pass_results.SyncedDraft(
            target=target,
            branch=draft.branch,
            reason=draft.reason,
            remote_head=draft.remote_head,
            has_remote_answered=draft.has_remote_answered,
        )
        for target, drafts in summary.unpushed_drafts.items()
        for draft in drafts
    ]
    counts = summary.counts
    return pass_results.SyncResult(
        metadata=envelope.create_cli_metadata(summary.config),
        items=(*pushed, *unpushed),
        findings=entries.build_finding_entries(summary.findings),
        summary=pass_results.SyncSummary(
            **vars(summary.changes),
            pending_removals=counts.get("leaving", 0),
            renders=counts.get("renders", 0),
            approved=counts.get("approved", 0),
            pull_requests=counts.get("requests", 0),
            is_skipped=summary.is_skipped,
            status_error=summary.status_error,
        ),
    )
