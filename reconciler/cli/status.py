"""`reconciler status`: show the summary of the status branch."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import options, publishers
from reconciler.cli import service_client
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
from reconciler.krm import field_text, yaml
from reconciler.output.fleet import fleet_text
from reconciler.output.status import last_pass
from reconciler.output.status import result as status_result
from reconciler.output.status import summary as status_summary
from reconciler.server import health_client

if TYPE_CHECKING:
    from reconciler.output.status.last_pass import LastPass


@click.command("status")
@fleet_option
@settings_option
@cache_option
@click.option(
    "--server",
    metavar="URL",
    help="Read the last pass from the daemon with this URL, for example http://127.0.0.1:8080. Default: read it from"
    " the cache folder.",
)
@click.option(
    "--token-file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Read the state of the fleet from the API of the daemon, not from the status branch. The first line of the"
    " file is an access token. It requires --server.",
)
@click.option("--tenant", metavar="NAME", help="Show only the packages and findings of this tenant.")
@output_option("text", "json")
def command(
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    server: str | None,
    token_file: Path | None,
    tenant: str | None,
    output: str,
) -> int:
    """Show the last pass, the totals of the fleet, and the problems with their reasons."""
    if token_file:
        if not server or tenant:
            raise click.UsageError("--token-file requires --server, and cannot be used with --tenant")
        return _show_fleet(server, token_file, output)
    with report_errors():
        settings = read_settings(settings_file, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        pass_record = request_last_pass(server) if server else options.build_last_pass_file(settings).read()
        files = publishers.read_status(settings)
    file = status_summary.get_tenant_file(tenant) if tenant else status_summary.SUMMARY_FILE
    content = files.get(file)
    if content is None and tenant and status_summary.SUMMARY_FILE in files:
        raise CannotRunError(
            f'the branch "{settings.status.branch}" contains no status of the tenant "{tenant}"; existing tenants:'
            f" {field_text.quote_list(status_summary.list_tenants(files)) or 'none'}"
        )
    if content is None:
        raise CannotRunError(
            f'the branch "{settings.status.branch}" contains no status: run `reconciler sync` to write the status'
        )
    try:
        data = yaml.parse_yaml(content).documents[0].data
        result = status_result.read_status_result(data).with_last_pass(pass_record)
    except (yaml.YamlError, LookupError, TypeError, ValueError, AttributeError) as error:
        # Handle a malformed file, because everyone who may push to the status branch can change it.
        raise CannotRunError(
            f'{file} on the branch "{settings.status.branch}" does not have the expected format '
            f"({type(error).__name__}): run `reconciler sync` to write the file again"
        ) from error
    click.echo(result.to_json() if output == "json" else status_result.format_status_text(result, int(time.time())))
    return ERROR_FINDING if result.has_problems else SUCCESS


def _show_fleet(url: str, token_file: Path, output: str) -> int:
    """Show the state of the fleet from the API. Return 1 if there are errors or blocked packages, otherwise 0."""
    with service_client.open_client(url, token_file) as client:
        fleet, errors = client.read("/status"), client.read("/findings?severity=error&limit=100")
        text = json.dumps(fleet, indent=2) if output == "json" else fleet_text.format_fleet_text(fleet, errors)
        summary = fleet["summary"]
        has_problems = bool(summary["findings"]["error"] or summary["packages"].get("blocked"))
    click.echo(text)
    return ERROR_FINDING if has_problems else SUCCESS


def request_last_pass(url: str) -> LastPass | None:
    """Return the last pass of the service with this URL. Return None if the service has not completed a pass.

    Raises:
        CannotRunError: The URL is not valid, or the service does not report its last pass.
    """
    try:
        data = health_client.request_details(url).get("lastPass")
        return last_pass.parse_last_pass(data) if data else None
    except health_client.NoResponseError as error:
        raise CannotRunError(str(error)) from None
    except ValueError as error:
        raise CannotRunError(f"--server: {error}") from None
