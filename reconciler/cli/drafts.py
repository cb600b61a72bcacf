"""`reconciler drafts`: list the open drafts, and whether each draft is proposed or gated."""

from __future__ import annotations

import json
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
from reconciler.inspect import change_list
from reconciler.output.fleet import fleet_text
from reconciler.output.review import formats, open_drafts
from reconciler.reconcile.remotes import targets as remotes_targets
from reconciler.review import drafts

if TYPE_CHECKING:
    from pathlib import Path


_PAGE_SIZE = "500"


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
@click.option(
    "--by-change",
    is_flag=True,
    help="Group the drafts of all clusters by change. A change contains the drafts with the same cause.",
)
@add_read_server_options
@output_option("text", "json")
def command(
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    clusters: tuple[str, ...],
    selector: str | None,
    by_change: bool,
    server: str | None,
    token_file: Path | None,
    output: str,
) -> int:
    """List the open drafts with their changes, whether they are proposed, and why they cannot be approved."""
    if clusters and selector:
        raise click.UsageError("use either --cluster or --selector, not both")
    setup, service = CommandSetup(config, settings_file, fleet, cache), ServerOptions(server, token_file)
    if by_change:
        if clusters or selector:
            raise click.UsageError("--by-change cannot be used with --cluster or --selector")
        return _print_changes(setup, service, output)
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


def _print_changes(setup: CommandSetup, service: ServerOptions, output: str) -> int:
    """Print the changes of the whole fleet, and return the exit status."""
    if service.check(setup):
        text = service_results.request_output(service, "/changes", {"limit": _PAGE_SIZE}, "json").text
    else:
        with open_review(setup) as review:
            targets = review.open_targets(remotes_targets.ReviewSelection())
            text = change_list.read_change_list(review, targets, review.config_id, review.report_progress).to_json()
    data = json.loads(text)
    click.echo(text if output == "json" else fleet_text.format_change_list_text(data))
    return ERROR_FINDING if data["findings"] else SUCCESS
