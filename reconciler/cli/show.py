"""`reconciler show`: show the open drafts of one cluster, or of one package, with all details."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import color_option, diff_lines_option, output_option, should_color
from reconciler.cli.review_options import CommandSetup, TargetType, add_setup_options, open_review
from reconciler.output.review import formats, open_drafts
from reconciler.reconcile.remotes import targets
from reconciler.review import drafts as review_drafts

if TYPE_CHECKING:
    from reconciler.reconcile.remotes.targets import TargetReference


@click.command("show")
@click.argument("target", metavar="CLUSTER[/PACKAGE]", type=TargetType())
@add_setup_options
@output_option("text", "markdown", "json")
@diff_lines_option
@color_option
def command(
    target: TargetReference,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
    color: str,
) -> int:
    """Show the open drafts of a cluster: conflicts, readiness gates, changes with their reasons, and the diff."""
    with open_review(CommandSetup(config, settings_file, fleet, cache)) as review:
        snapshots = review.open_targets(targets.ReviewSelection((target,)))
        review_drafts.check_packages_exist(targets.ReviewSelection((target,)), snapshots)
        packages = frozenset(filter(None, (target.package,)))
        drafts = [
            draft
            for snapshot in snapshots
            for draft in snapshot.drafts
            if not packages or draft.select_packages(packages)
        ]
        details = [review.read_draft_details(draft, packages, should_read_files=True) for draft in drafts]
        result = open_drafts.build_draft_list_result(
            details, review.config_id, review_drafts.list_target_errors(snapshots), diff_lines
        )
        now = review.now()
    if output == "json":
        click.echo(result.to_json())
        return ERROR_FINDING if result.findings else SUCCESS
    if result.findings:
        click.echo("\n".join(f"error: {finding.message}" for finding in result.findings), err=True)
    has_color = should_color(color)
    text = (
        "\n".join(formats.format_draft_markdown(draft, now) for draft in result.items)
        if output == "markdown"
        else "\n".join(formats.format_draft_text(draft, now, has_color=has_color) for draft in result.items)
    )
    text = text or (f"the drafts of {target} are unknown" if result.findings else f"{target} has no open draft")
    click.echo(text, nl=not text.endswith("\n"), color=has_color)
    return ERROR_FINDING if result.findings else SUCCESS
