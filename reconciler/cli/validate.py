"""`reconciler validate`: every finding in the config repository."""

from __future__ import annotations

import json

import click

from reconciler import __version__
from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    fleet_option,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.daemon.codes import ALL_CODES
from reconciler.daemon.reconcile import validate
from reconciler.reporting.findings import finding_lines, findings_data, sarif
from reconciler.wiring import build_parts


@click.command("validate")
@config_argument
@settings_option
@fleet_option
@cache_option
@click.option("-o", "--output", type=click.Choice(["text", "json", "sarif"]), default="text", help="How to tell them.")
def command(config: str | None, settings_file: str | None, fleet: str | None, cache: str | None, output: str) -> int:
    """List what is wrong, or worth knowing, in CONFIG: with file, line, field, value and what is allowed."""
    with told_plainly():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        parts = build_parts(settings, config_of(settings))
        with parts.remotes as remotes:
            findings = validate(parts.source, remotes, parts.tools)
    if output == "sarif":
        click.echo(json.dumps(sarif(findings, __version__, ALL_CODES), indent=2))
    elif output == "json":
        click.echo(json.dumps(findings_data(findings), indent=2))
    else:
        click.echo("\n".join(finding_lines(findings)) or "no findings")
    return status_of(findings)
