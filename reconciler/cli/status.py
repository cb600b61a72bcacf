"""`reconciler status`: show the summary of the status branch."""

from __future__ import annotations

import click

from reconciler.bootstrap import publishers
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.cli.options import (
    cache_option,
    fleet_option,
    output_option,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.krm import yaml
from reconciler.output.status import result as status_result


@click.command("status")
@fleet_option
@settings_option
@cache_option
@output_option("text", "json")
def command(fleet: str | None, settings_file: str | None, cache: str | None, output: str) -> int:
    """Show the status of the fleet after the last pass: the totals, and the problems with their reasons."""
    with report_errors():
        settings = read_settings(settings_file, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        summary = publishers.read_status(settings).get("summary.yaml")
    if summary is None:
        raise CannotRunError(
            f"the branch {settings.status.branch} contains no status: run `reconciler sync`, which writes it"
        )
    try:
        data = yaml.parse_yaml(summary).documents[0].data
        result = status_result.read_status_result(data)
    except (yaml.YamlError, LookupError, TypeError, ValueError, AttributeError) as error:
        # Handle a malformed file, because everyone who may push to the status branch can change it.
        raise CannotRunError(
            f"summary.yaml on the branch {settings.status.branch} does not have the expected format "
            f"({type(error).__name__}): run `reconciler sync`, which writes the file again"
        ) from error
    click.echo(result.to_json() if output == "json" else status_result.format_status_text(result))
    return ERROR_FINDING if result.has_problems else SUCCESS
