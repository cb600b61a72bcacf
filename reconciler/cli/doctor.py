"""`reconciler doctor`: check the credentials of all remotes, the APIs of their forges, and the signing key."""

from __future__ import annotations

import click

from reconciler.bootstrap import doctor as bootstrap_doctor
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import (
    cache_option,
    config_argument,
    fleet_option,
    output_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
)
from reconciler.output import remote_checks


@click.command("doctor")
@config_argument
@fleet_option
@settings_option
@cache_option
@output_option("text", "json")
def command(config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, output: str) -> int:
    """Check each remote with its credentials, the API of its forge, and the signing key. Nothing is changed, and no
    secret is printed.

    For each remote, the command shows the entry of `git.credentials`, and whether the remote can be read and pushed to.
    The check of a push is a dry run. The signing key signs a commit in a temporary repository. The exit status is 1 if
    a check failed.
    """
    with report_errors():
        settings = read_settings(settings_file, config=config, fleet=fleet, cache=cache)
        set_up_logs(settings, service=False)
        result = bootstrap_doctor.run_checks(settings, require_config_url(settings))
    click.echo(result.to_json() if output == "json" else remote_checks.format_remote_checks(result))
    return ERROR_FINDING if result.has_failed else SUCCESS
