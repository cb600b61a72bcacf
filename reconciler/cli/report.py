"""`reconciler report`: write a report about the fleet as one HTML page or as JSON."""

from __future__ import annotations

import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.bootstrap import publishers
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import cache_option, config_argument, fleet_option, settings_option
from reconciler.cli.review_options import CommandSetup, open_review
from reconciler.git.errors import StatusBranchError
from reconciler.inspect import report as inspect_report
from reconciler.krm import numbers
from reconciler.output.report import builder, page, result
from reconciler.reconcile.remotes import targets
from reconciler.redaction import redact_url

if TYPE_CHECKING:
    from reconciler.output.report.model import FleetReport


@click.command("report")
@config_argument
@fleet_option
@settings_option
@cache_option
@click.option(
    "-O",
    "--output",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path),
    help="The file to write. Default: standard output.",
)
@click.option("-o", "form", type=click.Choice(["html", "json"]), default="html", help="The output format.")
def command(
    config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, file: Path | None, form: str
) -> int:
    """Write one HTML file about the fleet: published packages, open drafts and pending reviews.

    Changes that are equal on several clusters are shown once. The command renders and pushes nothing. It writes the
    same file again if no branch, tag or state has changed.
    """
    if file is None and form == "html" and sys.stdout.isatty():
        raise click.UsageError("the report is an HTML page: use --output FILE, or redirect standard output")
    report, status_errors = _read_report(CommandSetup(config, settings_file, fleet, cache), form)
    text = _format_report(report, form, _format_options(config, fleet, settings_file))
    if file is None:
        click.echo(text, nl=False)
    else:
        with report_errors():
            file.write_text(text, encoding="utf-8")
        packages = sum(report.counts.values())
        clusters = numbers.format_count(len(report.rows), "cluster")
        click.echo(f"{file}: {numbers.format_count(packages, 'package')} on {clusters}")
    errors = [*status_errors, *(row.read_error for row in report.unread_rows)]
    for error in errors:
        click.echo(f"error: {error}", err=True)
    return ERROR_FINDING if errors else SUCCESS


def _read_report(setup: CommandSetup, form: str) -> tuple[FleetReport, tuple[str, ...]]:
    """Return the report, and the error of the status branch if the status branch cannot be read.

    A report is also created without the status branch, because most data of the report comes from other refs.
    """
    summary: Mapping[str, Any] = {}
    status_errors: tuple[str, ...] = ()
    with report_errors():
        try:
            summary = publishers.read_summary(setup.read())
        except StatusBranchError as error:
            status_errors = (error.full_message,)
    with open_review(setup) as review:
        snapshots = review.open_targets(targets.ReviewSelection())
        clusters = inspect_report.read_fleet(review, snapshots, review.report_progress)
        report = builder.build_fleet_report(clusters, review.config_id, summary, should_diff_resources=form == "html")
        return report, status_errors


def _format_report(report: FleetReport, form: str, options: str) -> str:
    if form == "json":
        return result.build_report_result(report).to_json() + "\n"
    return page.format_report_page(report, options)


def _format_options(config: str | None, fleet: str | None, settings_file: str | None) -> str:
    """Return the command-line options that select the same fleet in other commands, with credentials removed."""
    options = {"--config": config, "--fleet": fleet, "--settings": settings_file}
    return "".join(f" {name} {shlex.quote(redact_url(value))}" for name, value in options.items() if value)
