"""`reconciler show`: one cluster's drafts, or one package of them, whole."""

from __future__ import annotations

import json

import click

from reconciler.cli.exits import ERROR_FINDING, FINE
from reconciler.cli.reviewing import PlaceType, Setup, reviewing, setup_options
from reconciler.cli.shared import diff_lines_option
from reconciler.daemon.review import Asked, Place, Review, check_packages
from reconciler.reporting.open_drafts import Sheet, sheet_data, sheet_markdown, sheet_text


@click.command("show")
@click.argument("place", metavar="CLUSTER[/PACKAGE]", type=PlaceType())
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", help="How to tell it.")
@diff_lines_option
def command(
    place: Place,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
) -> int:
    """Show what is open on a cluster: conflicts, gates, what changes and why, and the diff."""
    with reviewing(Setup(config, settings_file, fleet, cache)) as review:
        benches = review.open(Asked((place,)))
        check_packages(Asked((place,)), benches)
        packages = frozenset(filter(None, (place.package,)))
        drafts = [draft for bench in benches for draft in bench.drafts if not packages or draft.chosen(packages)]
        sheets = [review.sheet(draft, packages, whole=True) for draft in drafts]
        troubles = [bench.trouble for bench in benches if bench.trouble]
        told = _format_drafts(sheets, review, output, diff_lines, place, troubles)
    if troubles:
        click.echo("\n".join(f"error: {trouble}" for trouble in troubles), err=True)
    click.echo(told, nl=not told.endswith("\n"))
    return ERROR_FINDING if troubles else FINE


def _format_drafts(
    sheets: list[Sheet], review: Review, output: str, diff_lines: int, place: Place, errors: list[str]
) -> str:
    match output:
        case "json":
            drafts = [sheet_data(one, diff_lines) for one in sheets]
            return json.dumps({"drafts": drafts, "troubles": errors}, indent=2, default=str)
        case "markdown":
            parts = [sheet_markdown(one, review.now(), diff_lines) for one in sheets]
        case _:
            parts = [sheet_text(one, review.now(), diff_lines) for one in sheets]
    return "\n".join(parts) or (f"the drafts of {place} are unknown" if errors else f"no draft of {place} is open")
