"""`reconciler explain`: what led to each value of one package, first to last."""

from __future__ import annotations

import json

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.reviewing import PlaceType, Setup, setup_options
from reconciler.cli.shared import config_of, progress
from reconciler.daemon.explain import explain as look_at
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.reporting.explain import Explained, NothingToExplainError, explain
from reconciler.reporting.explain_words import explanation_data, explanation_text
from reconciler.wiring import build_parts


class PackageType(PlaceType):
    """REPOSITORY/PACKAGE."""

    def convert(self, value: str | Place, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return the place of a package; a usage error says what is allowed."""
        place = super().convert(value, param, ctx)
        if not place.package:
            self.fail(f"must be REPOSITORY/PACKAGE, not {str(place)!r}", param, ctx)
        return place


@click.command("explain")
@click.argument("place", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE", required=False, default="")
@click.argument("pointer", metavar="[POINTER]]", required=False, default="")
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(
    place: Place,
    resource: str,
    pointer: str,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Tell which rules set what in a package: the layers of each value, the last of which won.

    RESOURCE is Kind/name or Kind/namespace/name; POINTER a JSON pointer in it, or the name of an option of a Plugin.
    Values that no rule set are told from where they come. Nothing is pushed.
    """
    try:
        explained = _look(place, Setup(config, settings_file, fleet, cache))
        explanation = explain(explained, resource, pointer)
    except (UnknownPlaceError, NothingToExplainError) as error:
        raise CannotRunError(str(error)) from error
    if output == "json":
        # whatever YAML could hold becomes what JSON can
        click.echo(json.dumps(explanation_data(explanation), indent=2, default=str))
    else:
        click.echo(explanation_text(explanation), nl=False)
    return status_of(explained.findings)


def _look(place: Place, setup: Setup) -> Explained:
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(settings, config_of(settings), missing_is_empty=True, progress=show)
        with parts.remotes as remotes:
            return look_at(place, parts.source, remotes, parts.tools)
