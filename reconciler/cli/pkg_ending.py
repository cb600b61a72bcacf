"""How the commands of one package end: how it is told, and what that is worth as an exit status."""

from __future__ import annotations

import sys

import click

from reconciler.gitio.packages import UpstreamPackages
from reconciler.krm.findings import Finding, Where
from reconciler.reporting.package_report import PackageReport, report_json, report_text
from reconciler.rules.variants.codes import LINK_SKIPPED

output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it."
)
strategy_option = click.option(
    "--strategy",
    type=click.Choice(["resource-merge", "fast-forward", "force-delete-replace", "copy-merge"]),
    help="How the package takes updates; it is written to the Kptfile.",
)


def tell(report: PackageReport, output: str, diff_lines: int = 0) -> None:
    """Print a report to standard output."""
    as_text = report_json if output == "json" else report_text
    click.echo(as_text(report, diff_lines), nl=False)


def tell_fetching(url: str) -> None:
    """Say on a terminal what is waited for."""
    if sys.stderr.isatty():
        click.echo(f"fetching {url} …", err=True)


def left_out(upstreams: UpstreamPackages) -> tuple[Finding, ...]:
    """Return a finding for each link and submodule that did not come along."""
    text = "links and submodules are not copied: the package is without it"
    return tuple(LINK_SKIPPED.finding(text, Where(path)) for path in upstreams.skipped)
