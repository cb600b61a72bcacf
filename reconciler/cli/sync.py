"""`reconciler sync`: one pass, pushed."""

from __future__ import annotations

import json

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    fleet_option,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.daemon.reconcile import Report, reconcile, tally
from reconciler.reporting.findings import finding_lines, findings_data
from reconciler.wiring import build_parts, build_push


@click.command("sync")
@config_argument(required=False)
@fleet_option
@settings_option
@cache_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell the result.")
def command(config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, output: str) -> int:
    """Reconcile once: compute every cluster's drafts and push them, with status files and state."""
    with told_plainly(), progress() as show:
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        publisher = build_push(settings)
        parts = build_parts(settings, config_of(settings), progress=show)
        with parts.remotes as remotes:
            report = reconcile(parts.source, remotes, parts.tools, publisher)
    click.echo(json.dumps(_data(report), indent=2) if output == "json" else _text(report))
    return max(status_of(report.plan.all_findings()), FINE if report.clean and publisher.done else ERROR_FINDING)


def _data(report: Report) -> dict[str, object]:
    drafts = {name: dict(one.heads) for name, one in sorted(report.written.items()) if one.heads}
    return {
        "config": report.plan.config,
        "counts": tally(report),
        "drafts": drafts,
        "findings": findings_data(report.plan.all_findings()),
    }


def _text(report: Report) -> str:
    lines = finding_lines(report.plan.all_findings())
    lines += [
        f"draft    {branch} is at {head[:12]}" for one in report.written.values() for branch, head in one.heads.items()
    ]
    counts = ", ".join(f"{count} {what}" for what, count in tally(report).items())
    return "\n".join([*lines, counts])
