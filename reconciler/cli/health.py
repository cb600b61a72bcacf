"""`reconciler health`: check the health of a running service, for example in a container."""

from __future__ import annotations

import click

from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.cli.options import read_settings, settings_option
from reconciler.server import health_client


@click.command("health")
@click.option(
    "--url",
    metavar="URL",
    help="The URL of the service, for example http://reconciler:8080. Default: the address in `server.listen`.",
)
@settings_option
def command(url: str | None, settings_file: str | None) -> int:
    """Print whether a running service is ready, degraded or not ready, with the codes of its failed health checks.

    The exit status is 0 if the service is ready, 1 if it is degraded or not ready, and 3 if it does not respond.
    """
    try:
        own_url = "" if url else _find_own_url(settings_file)
        health = health_client.request_health(url or own_url, should_verify=not own_url)
    except health_client.NoResponseError as error:
        raise CannotRunError(str(error)) from None
    except ValueError as error:
        raise CannotRunError(f"--url: {error}" if url else str(error)) from None
    click.echo(f"{health.status}: {', '.join(health.codes)}" if health.codes else health.status)
    return SUCCESS if health.status == "ready" else ERROR_FINDING


def _find_own_url(settings_file: str | None) -> str:
    with report_errors():
        settings = read_settings(settings_file)
    return health_client.build_own_url(settings.listen_address, has_tls=bool(settings.server.tls.cert_file))
