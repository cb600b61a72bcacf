"""`reconciler impact`: show the effect of an unmerged config change on the whole fleet."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import DIFFERENCES, ERROR_FINDING, SUCCESS
from reconciler.cli.options import color_option, output_option, require_config_url, should_color, show_progress
from reconciler.cli.review_options import CommandSetup, add_setup_options
from reconciler.inspect import impact
from reconciler.krm import field_text
from reconciler.output.impact import formats
from reconciler.output.impact import overview as impact_overview
from reconciler.output.impact import result as impact_result

if TYPE_CHECKING:
    from reconciler.inspect.impact import CommitRange
    from reconciler.output.impact.models import ImpactResult
    from reconciler.output.impact.overview import ImpactOverview


class RangeType(click.ParamType["CommitRange"]):
    """Type of command-line arguments of the form BASE..HEAD or BASE...HEAD."""

    name = "range"

    def convert(
        self, value: str | CommitRange, param: click.Parameter | None, ctx: click.Context | None
    ) -> CommitRange:
        """Parse BASE and HEAD. Fail with a usage error if the text has a different form."""
        if isinstance(value, impact.CommitRange):
            return value
        dots = "..." if "..." in value else ".."
        base, separator, head = value.partition(dots)
        if not separator or ".." in head or head.startswith("."):
            self.fail(
                "must be BASE..HEAD or BASE...HEAD, where BASE or HEAD may be empty, but is"
                f" {field_text.quote_value(value)}",
                param,
                ctx,
            )
        return impact.CommitRange(base, head, dots == "...")


@click.command("impact")
@click.argument("commit_range", metavar="BASE..HEAD", type=RangeType())
@add_setup_options
@output_option("text", "markdown", "json")
@click.option(
    "--diff-lines", metavar="N", type=click.IntRange(0), default=0, show_default=True,
    help="The maximum number of diff lines per file. Equal changes are shown once. 0 omits diffs.",
)  # fmt: skip
@color_option
def command(
    commit_range: CommitRange,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
    diff_lines: int,
    color: str,
) -> int:
    """Compare the packages of the whole fleet between the config commits BASE and HEAD. Nothing is pushed.

    BASE and HEAD are branches, tags, commit IDs, or refs such as refs/pull/7/head. With three dots, the comparison
    starts at the merge base of BASE and HEAD. The default of BASE is the config branch of the settings. The default of
    HEAD is the current config. If the config is a folder, HEAD means the files on disk by default.
    """
    overview = _compute_overview(commit_range, CommandSetup(config, settings_file, fleet, cache))
    result, has_color = impact_result.build_impact_result(overview, diff_lines), should_color(color)
    click.echo(_format_result(result, output, has_color=has_color), nl=False, color=has_color)
    # `has_failed` ignores errors that BASE has too, because the change does not cause these errors.
    if result.has_failed:
        return ERROR_FINDING
    return DIFFERENCES if result.changes else SUCCESS


def _compute_overview(commit_range: CommitRange, setup: CommandSetup) -> ImpactOverview:
    with report_errors(), show_progress() as show:
        settings = setup.read()
        services = bootstrap_services.build_services(
            settings, require_config_url(settings), should_treat_missing_as_empty=True, report_progress=show
        )
        with services.remotes as remotes:
            configs = impact.ConfigVersions(services.source, services.open_config_history(), settings.config.branch)
            return impact_overview.build_impact_overview(
                impact.compute_impact(commit_range, configs, remotes, services.pass_services)
            )


def _format_result(result: ImpactResult, output: str, *, has_color: bool) -> str:
    match output:
        case "json":
            return result.to_json() + "\n"
        case "markdown":
            return formats.format_impact_markdown(result)
        case _:
            return formats.format_impact_text(result, has_color=has_color)
