"""`reconciler verify`: whether what is published comes out again of what it says that it was made of."""

from __future__ import annotations

import json

import click

from reconciler.cli.exits import DIFFERENCES, ERROR_FINDING, FINE
from reconciler.cli.looking_back import looking_back
from reconciler.cli.reviewing import PlaceType, Setup, offline_option, setup_options
from reconciler.daemon.review import Place
from reconciler.daemon.verify import Outcome, Wanted, verify
from reconciler.reporting.verify import verified_data, verified_text

_LINES = 40
# by whether drafts were asked for
_NONE = {False: "nothing of ours is published; --draft looks at what is drafted", True: "nothing of ours is drafted"}


class RepositoryOrPackageType(PlaceType):
    """REPOSITORY, or REPOSITORY/PACKAGE."""

    allowed = "REPOSITORY or REPOSITORY/PACKAGE"


@click.command("verify")
@click.argument("places", metavar="[REPOSITORY[/PACKAGE]]...", nargs=-1, type=RepositoryOrPackageType())
@click.option("--at", metavar="COMMIT", default="", help="A commit of the repository; HEAD: the work tree's here.")
@click.option("--draft", "drafts", is_flag=True, help="What is drafted, in place of what is published.")
@click.option("--diff-lines", metavar="N", type=click.IntRange(0), default=_LINES, show_default=True,
              help="The most lines of a diff; 0 leaves diffs out.")  # fmt: skip
@offline_option
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(
    places: tuple[Place, ...],
    at: str,
    drafts: bool,
    diff_lines: int,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Make packages again from what their status files record, and compare: all that is published, or these.

    Nothing is pushed. Ends with 0 if everything comes out again, with 2 if something is edited or differs, and with 1
    if that cannot be known of something.
    """
    if at and (drafts or len({one.cluster for one in places}) != 1):
        raise click.UsageError("--at needs one REPOSITORY, and no --draft: a commit is one repository's")
    wanted = Wanted(places, at, drafts, diff_lines)
    with looking_back(Setup(config, settings_file, fleet, cache, offline)) as (past, names):
        found = verify(wanted, past, names)
    if output == "json":
        click.echo(json.dumps(verified_data(found.packages, found.troubles), indent=2))
    else:
        click.echo(verified_text(found.packages, found.troubles, _NONE[drafts]), nl=False)
    return _status(found)


def _status(found: Outcome) -> int:
    made = {one.again.verdict for one in found.packages}
    if found.troubles or "unknowable" in made:
        return ERROR_FINDING
    is_other = "differs" in made or any(one.is_edited for one in found.packages)
    return DIFFERENCES if is_other else FINE
