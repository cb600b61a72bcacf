"""`reconciler status`: what stands, read from the status branch."""

from __future__ import annotations

import json

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE, CannotRunError
from reconciler.cli.shared import cache_option, fleet_option, read_settings, set_up_logs, settings_option
from reconciler.krm.yaml import YamlError, parse
from reconciler.reporting.standing import not_well, status_text
from reconciler.wiring import read_status


@click.command("status")
@fleet_option
@settings_option
@cache_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(fleet: str | None, settings_file: str | None, cache: str | None, output: str) -> int:
    """Tell how the fleet stands: totals, what is not well and why, as the last pass wrote it."""
    with told_plainly():
        settings = read_settings(settings_file, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        summary = read_status(settings).get("summary.yaml")
    if summary is None:
        raise CannotRunError(f"no pass has written a status to the branch {settings.status.branch} yet")
    try:
        data = parse(summary).documents[0].data
        text = json.dumps(data, indent=2) if output == "json" else status_text(data)
        status = ERROR_FINDING if not_well(data) else FINE
    except (YamlError, LookupError, TypeError, ValueError, AttributeError) as error:
        # anybody who may push to the branch can write anything there
        raise CannotRunError(
            f"summary.yaml on the branch {settings.status.branch} is not one that a pass wrote"
            f" ({type(error).__name__}): run a pass, which writes it again"
        ) from error
    click.echo(text)
    return status
