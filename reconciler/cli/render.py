"""`reconciler render`: write the drafts to a local folder instead of pushing them."""

from __future__ import annotations

from pathlib import Path

import click

from reconciler.bootstrap import publishers
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import exit_status_of, report_errors
from reconciler.cli.exit_codes import CannotRunError
from reconciler.cli.options import (
    cache_option,
    config_argument,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
    show_progress,
)
from reconciler.output.findings import formats
from reconciler.output.plan import pass_results
from reconciler.reconcile import publishers as reconcile_publishers
from reconciler.reconcile import reconcile_pass


@click.command("render")
@config_argument
@click.option(
    "--output",
    "-O",
    "out",
    metavar="DIR",
    required=True,
    type=click.Path(path_type=Path),
    help="The output folder. Without --force, this folder must not exist or must be empty.",
)
@click.option("--force", is_flag=True, help="Replace the content of the output folder.")
@settings_option
@cache_option
@shard_option
@click.option(
    "-o",
    "form",
    type=click.Choice(["text", "json"]),
    default="text",
    show_default=True,
    help="The format of the list of packages. `text` prints findings only.",
)
def command(
    config: str | None,
    out: Path,
    force: bool,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    form: str,
) -> int:
    """Write the content of each draft branch to DIR/<repository>, and the status files to DIR/status."""
    with report_errors(), show_progress() as show:
        settings = read_settings(settings_file, config=config, cache=cache, shard=shard)
        set_up_logs(settings, service=False)
        if problem := reconcile_publishers.check_output_folder(out, Path(require_config_url(settings)), force):
            raise CannotRunError(problem)
        services = bootstrap_services.build_services(
            settings,
            require_config_url(settings),
            should_treat_missing_as_empty=True,
            is_offline=True,
            report_progress=show,
        )
        with services.remotes as remotes:
            report = reconcile_pass.run_pass(
                services.source, remotes, services.pass_services, publishers.build_folder_publisher(settings, out)
            )
    if form == "json":
        click.echo(pass_results.build_render_result(report.plan, str(out)).to_json())
    else:
        for line in formats.format_findings(report.plan.list_findings()):
            click.echo(line, err=True)
    return exit_status_of(report.plan.list_findings())
