"""`reconciler drafts`: list the open drafts, and whether each draft is proposed or gated."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli import service_results
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import cache_option, config_argument, fleet_option, output_option, settings_option
from reconciler.cli.review_options import (
    CommandSetup,
    ServerOptions,
    add_read_server_options,
    open_review,
    selector_option,
)
from reconciler.output.review import formats, open_drafts
from reconciler.reconcile.remotes import targets as remotes_targets
from reconciler.review import drafts

if TYPE_CHECKING:
    from pathlib import Path


@click.command("drafts")
@config_argument
@settings_option
@fleet_option
@cache_option
@click.option(
    "--cluster",
    "clusters",
    metavar="NAME",
    multiple=True,
    help="List only the drafts of this cluster. You can repeat the option.",
)
@selector_option
@add_read_server_options
@output_option("text", "json")
def command(
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    clusters: tuple[str, ...],
    selector: str | None,
    server: str | None,
    token_file: Path | None,
    output: str,
) -> int:
    """List the open drafts with their changes, whether they are proposed, and why they cannot be approved."""
    if clusters and selector:
        raise click.UsageError("use either --cluster or --selector, not both")
    setup, service = CommandSetup(config, settings_file, fleet, cache), ServerOptions(server, token_file)
    if service.check(setup):
        query = {"target": clusters, "labels": selector or ""}
        found = service_results.request_output(service, "/drafts", query, output)
        click.echo(found.text)
        return found.exit_status
    selection = remotes_targets.ReviewSelection(
        tuple(remotes_targets.TargetReference(cluster) for cluster in clusters), selector or ""
    )
    with open_review(setup) as review:
        targets = review.open_targets(selection)
        details = [review.read_draft_details(draft) for target in targets for draft in target.drafts]
        result = open_drafts.build_draft_list_result(details, review.config_id, drafts.list_target_errors(targets))
        now = review.now()
    click.echo(result.to_json() if output == "json" else formats.format_draft_list_text(result, now))
    return ERROR_FINDING if result.findings else SUCCESS
