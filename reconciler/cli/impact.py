"""`reconciler impact`: what a change of the config that is not merged yet would do to the whole fleet."""

from __future__ import annotations

import json

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import DIFFERENCES, ERROR_FINDING, FINE
from reconciler.cli.reviewing import Setup, setup_options
from reconciler.cli.shared import config_of, progress
from reconciler.daemon.impact import Configs, Range, impact
from reconciler.reporting.impact import ImpactReview, review_impact
from reconciler.reporting.impact_words import impact_json, impact_markdown, impact_text
from reconciler.wiring import build_parts


class RangeType(click.ParamType[Range]):
    """BASE..HEAD, or BASE...HEAD."""

    name = "range"

    def convert(self, value: str | Range, param: click.Parameter | None, ctx: click.Context | None) -> Range:
        """Return the two commits by name; a usage error says what is allowed."""
        if isinstance(value, Range):
            return value
        dots = "..." if "..." in value else ".."
        base, found, head = value.partition(dots)
        if not found or ".." in head or head.startswith("."):
            self.fail(f"must be BASE..HEAD or BASE...HEAD, where either may be empty, not {value!r}", param, ctx)
        return Range(base, head, dots == "...")


@click.command("impact")
@click.argument("asked", metavar="BASE..HEAD", type=RangeType())
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "markdown", "json"]), default="text", help="How to tell it.")
@click.option(
    "--diff-lines", metavar="N", type=click.IntRange(0), default=0, show_default=True,
    help="The most lines of one file's diff, shown once for equal changes; 0 leaves diffs out.",
)  # fmt: skip
def command(
    asked: Range,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
) -> int:
    """Show what the config of HEAD makes different for the fleet that the config of BASE does not. Nothing is pushed.

    BASE and HEAD are branches, tags, commit ids, or refs as refs/pull/7/head. With three dots the comparison begins
    where HEAD left BASE. Without BASE it is the branch that the settings name; without HEAD the config as it is now:
    of a folder, what is on disk.
    """
    seen = _look(asked, Setup(config, settings_file, fleet, cache))
    click.echo(_told(seen, output, diff_lines), nl=False)
    return _status(seen)


def _look(asked: Range, setup: Setup) -> ImpactReview:
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(settings, config_of(settings), missing_is_empty=True, progress=show)
        with parts.remotes as remotes:
            configs = Configs(parts.source, parts.history(), settings.config.branch)
            return review_impact(impact(asked, configs, remotes, parts.tools))


def _told(seen: ImpactReview, output: str, diff_lines: int) -> str:
    match output:
        case "json":
            return json.dumps(impact_json(seen, diff_lines), indent=2, default=str) + "\n"
        case "markdown":
            return impact_markdown(seen, diff_lines)
        case _:
            return impact_text(seen, diff_lines)


def _status(seen: ImpactReview) -> int:
    # an error that was there before is not caused by this change; an unknown impact is not a success
    if seen.errors or seen.unknown:
        return ERROR_FINDING
    return DIFFERENCES if seen.affected else FINE
