"""`reconciler show`: show the open drafts of one cluster, or of one package, with all details."""

from __future__ import annotations

import json

import click

from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import diff_lines_option
from reconciler.cli.review_options import CommandSetup, TargetType, add_setup_options, open_review
from reconciler.output.review.open_drafts import (
    DraftDetails,
    build_draft_data,
    format_draft_markdown,
    format_draft_text,
)
from reconciler.reconcile.remotes.targets import ReviewSelection, TargetReference
from reconciler.review.drafts import DraftReview, check_packages_exist


@click.command("show")
@click.argument("target", metavar="CLUSTER[/PACKAGE]", type=TargetType())
@add_setup_options
@click.option(
    "-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", help="The output format."
)
@diff_lines_option
def command(
    target: TargetReference,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
) -> int:
    """Show the open drafts of a cluster: conflicts, readiness gates, changes with their reasons, and the diff."""
    with open_review(CommandSetup(config, settings_file, fleet, cache)) as review:
        snapshots = review.open_targets(ReviewSelection((target,)))
        check_packages_exist(ReviewSelection((target,)), snapshots)
        packages = frozenset(filter(None, (target.package,)))
        drafts = [
            draft
            for snapshot in snapshots
            for draft in snapshot.drafts
            if not packages or draft.select_packages(packages)
        ]
        details = [review.read_draft_details(draft, packages, should_read_files=True) for draft in drafts]
        errors = [snapshot.error for snapshot in snapshots if snapshot.error]
        text = _format_drafts(details, review, output, diff_lines, target, errors)
    if errors:
        click.echo("\n".join(f"error: {error}" for error in errors), err=True)
    click.echo(text, nl=not text.endswith("\n"))
    return ERROR_FINDING if errors else SUCCESS


def _format_drafts(
    details: list[DraftDetails],
    review: DraftReview,
    output: str,
    diff_lines: int,
    target: TargetReference,
    errors: list[str],
) -> str:
    match output:
        case "json":
            drafts = [build_draft_data(draft, diff_lines) for draft in details]
            return json.dumps({"drafts": drafts, "troubles": errors}, indent=2, default=str)
        case "markdown":
            parts = [format_draft_markdown(draft, review.now(), diff_lines) for draft in details]
        case _:
            parts = [format_draft_text(draft, review.now(), diff_lines) for draft in details]
    return "\n".join(parts) or (f"the drafts of {target} are unknown" if errors else f"{target} has no open draft")
