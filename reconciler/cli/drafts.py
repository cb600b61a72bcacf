"""`reconciler drafts`: list the open drafts, and whether each draft is proposed or gated."""

from __future__ import annotations

import json

import click

from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import cache_option, config_argument, fleet_option, settings_option
from reconciler.cli.review_options import CommandSetup, open_review, selector_option
from reconciler.output.review.open_drafts import build_drafts_data, format_drafts_text
from reconciler.reconcile.remotes.targets import ReviewSelection, TargetReference


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
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="The output format.")
def command(
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    clusters: tuple[str, ...],
    selector: str | None,
    output: str,
) -> int:
    """List the open drafts with their changes, whether they are proposed, and why they cannot be approved."""
    if clusters and selector:
        raise click.UsageError("use either --cluster or --selector, not both")
    selection = ReviewSelection(tuple(TargetReference(cluster) for cluster in clusters), selector or "")
    with open_review(CommandSetup(config, settings_file, fleet, cache)) as review:
        snapshots = review.open_targets(selection)
        details = [review.read_draft_details(draft) for snapshot in snapshots for draft in snapshot.drafts]
        now = review.now()
    errors = [snapshot.error for snapshot in snapshots if snapshot.error]
    if output == "json":
        click.echo(json.dumps({"drafts": build_drafts_data(details), "troubles": errors}, indent=2))
    else:
        click.echo("\n".join([*(f"error: {error}" for error in errors), format_drafts_text(details, now, len(errors))]))
    return ERROR_FINDING if errors else SUCCESS
