"""`reconciler show`: show the open drafts of one cluster, or of one package, with all details."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

import click

from reconciler.cli import service_results
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS
from reconciler.cli.options import color_option, diff_lines_option, output_option, should_color
from reconciler.cli.review_options import (
    CommandSetup,
    ServerOptions,
    TargetType,
    add_read_server_options,
    add_setup_options,
    offline_option,
    open_review,
)
from reconciler.output.review import formats, open_drafts
from reconciler.reconcile.remotes import targets
from reconciler.review import drafts as review_drafts

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path

    from reconciler.output.review.models import DraftListResult
    from reconciler.reconcile.remotes.targets import TargetReference


# Request few drafts per page, because the text of one draft can have megabytes.
_PAGE_SIZE = "20"


@click.command("show")
@click.argument("target", metavar="CLUSTER[/PACKAGE]", type=TargetType())
@click.option(
    "--effects",
    is_flag=True,
    help="Render the charts of changed HelmReleases, and show the effects on the resources that Flux creates.",
)
@offline_option
@add_setup_options
@add_read_server_options
@output_option("text", "markdown", "json")
@diff_lines_option
@color_option
def command(
    target: TargetReference,
    effects: bool,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    server: str | None,
    token_file: Path | None,
    output: str,
    diff_lines: int,
    color: str,
) -> int:
    """Show the open drafts of a cluster: conflicts, readiness gates, changes with their reasons, and the diff."""
    setup, service = CommandSetup(config, settings_file, fleet, cache, offline), ServerOptions(server, token_file)
    has_color = should_color(color)
    if service.check(setup, effects=effects):
        query = {
            "target": target.cluster, "package": target.package, "content": "true", "diffLines": str(diff_lines),
            "color": str(has_color).lower(), "limit": _PAGE_SIZE,
        }  # fmt: skip
        found = service_results.request_output(service, "/drafts", query, output)
        if output == "json":
            click.echo(found.text)
        else:
            _print(target, found.text, found.errors, has_color=has_color)
        return found.exit_status
    result, now = _read(target, setup, diff_lines, has_effects=effects)
    if output == "json":
        click.echo(result.to_json())
    else:
        format_draft = formats.format_draft_markdown
        if output == "text":
            format_draft = partial(formats.format_draft_text, has_color=has_color)
        text = "\n".join(format_draft(draft, now) for draft in result.items)
        _print(target, text, [finding.message for finding in result.findings], has_color=has_color)
    return ERROR_FINDING if result.findings else SUCCESS


def _read(
    target: TargetReference, setup: CommandSetup, diff_lines: int, *, has_effects: bool
) -> tuple[DraftListResult, int]:
    """Return the drafts, and the current time in seconds since 1970."""
    with open_review(setup) as review:
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
        if has_effects and details:
            effects = review.open_effects()
            details = [effects.add_to(draft) for draft in details]
        result = open_drafts.build_draft_list_result(
            details, review.config_id, review_drafts.list_target_errors(snapshots), diff_lines
        )
        return result, review.now()


def _print(target: TargetReference, text: str, errors: Sequence[str], *, has_color: bool) -> None:
    """Print the text of drafts, or the reason why there is none."""
    if errors:
        click.echo("\n".join(f"error: {message}" for message in errors), err=True)
    text = text or (f"the drafts of {target} are unknown" if errors else f"{target} has no open draft")
    click.echo(text, nl=not text.endswith("\n"), color=has_color)
