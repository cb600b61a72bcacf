"""`reconciler sync`: run one pass, and push the drafts, the state and the status."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence

import click

from reconciler.bootstrap import build_pass_cache, build_push_publisher, build_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import (
    cache_option,
    config_argument,
    fleet_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
    show_progress,
)
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.reconcile.pass_runner import PassRunner, PassSummary, UnpushedDraft


@click.command("sync")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
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
        publisher = build_push_publisher(settings)
        services = build_services(settings, require_config_url(settings), report_progress=show)
        passes = PassRunner(
            services.source,
            services.remotes,
            services.pass_services,
            publisher,
            build_pass_cache(settings, require_config_url(settings)),
        )
        passes.run()
    summary = passes.summary
    click.echo(json.dumps(_build_data(summary), indent=2) if output == "json" else _format_text(summary))
    return max(exit_status_of(summary.findings), SUCCESS if summary.is_clean else ERROR_FINDING)


def _build_data(summary: PassSummary) -> dict[str, object]:
    return {
        "config": summary.config,
        "counts": summary.counts,
        "drafts": summary.drafts,
        **({"unpushed": _build_unpushed_data(summary.unpushed_drafts)} if summary.unpushed_drafts else {}),
        "findings": build_findings_data(summary.findings),
        **({"statusNotWritten": summary.status_error} if summary.status_error else {}),
    }


def _format_text(summary: PassSummary) -> str:
    lines = format_findings(summary.findings)
    lines += [f"the status was not written: {summary.status_error}"] if summary.status_error else []
    lines += [
        f"draft    {branch} is at {head[:12]}" for heads in summary.drafts.values() for branch, head in heads.items()
    ]
    lines += [_format_unpushed(draft) for drafts in summary.unpushed_drafts.values() for draft in drafts]
    counts = ", ".join(f"{count} {name}" for name, count in summary.counts.items())
    return "\n".join([*lines, counts])


def _format_unpushed(draft: UnpushedDraft) -> str:
    if not draft.has_remote_answered:
        remote_state = "the state of the remote is unknown"
    elif draft.remote_head is None:
        remote_state = "the remote has no such branch"
    else:
        remote_state = f"on the remote, it is at {draft.remote_head[:12]}"
    return f"draft    {draft.branch} was not pushed ({draft.reason}): {remote_state}"


def _build_unpushed_data(unpushed: Mapping[str, Sequence[UnpushedDraft]]) -> dict[str, dict[str, dict[str, object]]]:
    return {
        name: {
            draft.branch: {
                "reason": draft.reason,
                **({"remoteHead": draft.remote_head} if draft.has_remote_answered else {}),
            }
            for draft in drafts
        }
        for name, drafts in unpushed.items()
    }
