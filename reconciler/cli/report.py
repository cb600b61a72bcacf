"""`reconciler report`: the fleet as one page."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE
from reconciler.cli.reviewing import Setup, reviewing
from reconciler.cli.shared import cache_option, config_argument, fleet_option, settings_option
from reconciler.daemon.report import read_fleet
from reconciler.daemon.review import Asked
from reconciler.gitio.errors import StatusBranchError
from reconciler.redaction import redact_url
from reconciler.reporting.report.build import build_report
from reconciler.reporting.report.data import report_data
from reconciler.reporting.report.fleet import FleetReport
from reconciler.reporting.report.page import report_page
from reconciler.reporting.values import count
from reconciler.wiring import read_summary


@click.command("report")
@config_argument
@fleet_option
@settings_option
@cache_option
@click.option("-O", "--output", "file", metavar="FILE", type=click.Path(path_type=Path), help="Where to write it.")
@click.option("-o", "form", type=click.Choice(["html", "json"]), default="html", help="How to tell it.")
def command(
    config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, file: Path | None, form: str
) -> int:
    """Write the fleet as one HTML file: what stands where, what waits for whom, equal changes told once.

    It is read from refs alone; nothing is rendered or pushed. Equal refs give equal bytes.
    """
    if file is None and form == "html" and sys.stdout.isatty():
        raise click.UsageError("a page is for a browser: give --output FILE, or send it somewhere")
    report, trouble = _read(Setup(config, settings_file, fleet, cache))
    told = _told(report, form, _options(config, fleet, settings_file))
    if file is None:
        click.echo(told, nl=False)
    else:
        with told_plainly():
            file.write_text(told, encoding="utf-8")
        packages = sum(report.counts.values())
        click.echo(f"{file}: {count(packages, 'package')} on {count(len(report.rows), 'cluster')}")
    errors = [*trouble, *(row.trouble for row in report.troubles)]
    for error in errors:
        click.echo(f"error: {error}", err=True)
    return ERROR_FINDING if errors else FINE


def _read(setup: Setup) -> tuple[FleetReport, tuple[str, ...]]:
    """Return the fleet, and why its status branch cannot be read: everything else is read from other refs."""
    summary: Mapping[str, Any] = {}
    trouble: tuple[str, ...] = ()
    with told_plainly():
        try:
            summary = read_summary(setup.read())
        except StatusBranchError as error:
            trouble = (error.told,)
    with reviewing(setup) as review:
        benches = review.open(Asked())
        return build_report(read_fleet(review, benches), review.config, summary), trouble


def _told(report: FleetReport, form: str, options: str) -> str:
    if form == "json":
        return json.dumps(report_data(report), indent=2, default=str) + "\n"
    return report_page(report, options)


def _options(config: str | None, fleet: str | None, settings_file: str | None) -> str:
    """Return the options with which other commands read the same fleet, without credentials."""
    given = {"--config": config, "--fleet": fleet, "--settings": settings_file}
    return "".join(f" {name} {shlex.quote(redact_url(value))}" for name, value in given.items() if value)
