"""`reconciler drafts`: every open draft, and where it stands."""

from __future__ import annotations

import json

import click

from reconciler.cli.exits import ERROR_FINDING, FINE
from reconciler.cli.reviewing import Setup, reviewing, selector_option
from reconciler.cli.shared import cache_option, config_argument, fleet_option, settings_option
from reconciler.daemon.review import Asked, Place
from reconciler.reporting.open_drafts import drafts_data, drafts_text


@click.command("drafts")
@config_argument
@settings_option
@fleet_option
@cache_option
@click.option(
    "--cluster", "clusters", metavar="NAME", multiple=True, help="Only this cluster; more than once for more."
)
@selector_option
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    clusters: tuple[str, ...],
    selector: str | None,
    output: str,
) -> int:
    """List the open drafts: what each brings, whether it is proposed, and what is in its way."""
    if clusters and selector:
        raise click.UsageError("name the clusters in one way: --cluster or --selector")
    asked = Asked(tuple(Place(cluster) for cluster in clusters), selector or "")
    with reviewing(Setup(config, settings_file, fleet, cache)) as review:
        benches = review.open(asked)
        sheets = [review.sheet(draft) for bench in benches for draft in bench.drafts]
        now = review.now()
    troubles = [bench.trouble for bench in benches if bench.trouble]
    if output == "json":
        click.echo(json.dumps({"drafts": drafts_data(sheets), "troubles": troubles}, indent=2))
    else:
        click.echo("\n".join([*(f"error: {trouble}" for trouble in troubles), drafts_text(sheets, now, len(troubles))]))
    return ERROR_FINDING if troubles else FINE
