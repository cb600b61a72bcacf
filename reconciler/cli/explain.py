"""`reconciler explain`: what led to each value of one package, first to last."""

from __future__ import annotations

import json
from functools import partial
from typing import Protocol

import click

from reconciler.cli.ends import status_of, told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE, CannotRunError
from reconciler.cli.looking_back import looking_back
from reconciler.cli.reviewing import PlaceType, Setup, offline_option, setup_options
from reconciler.cli.shared import config_of, progress
from reconciler.daemon.explain import explainer
from reconciler.daemon.explain_past import past_explainer
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.planning.without import Layer
from reconciler.reporting.explain import explain
from reconciler.reporting.explain_without import with_each_left_out
from reconciler.reporting.explain_words import explanation_data, explanation_text
from reconciler.reporting.explanation import Explained, Explanation, NothingToExplainError
from reconciler.wiring import build_parts


class _Explainer(Protocol):
    """Explains one package, as it is to be, or as it was."""

    def explained(self) -> Explained:
        """Return what is known of the package."""
        ...

    def without(self, layer: Layer) -> Explained:
        """Return what would be known of it without a layer."""
        ...


class PackageType(PlaceType):
    """REPOSITORY/PACKAGE."""

    allowed = "REPOSITORY/PACKAGE"

    def convert(self, value: str | Place, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return the place of a package; a usage error says what is allowed."""
        place = super().convert(value, param, ctx)
        if not place.package:
            self.fail(f"must be {self.allowed}, not {str(place)!r}", param, ctx)
        return place


@click.command("explain")
@click.argument("place", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE", required=False, default="")
@click.argument("pointer", metavar="[POINTER]]", required=False, default="")
@offline_option
@click.option("--at", metavar="COMMIT", default="", help="As it stands at a commit of its repository.")
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(
    place: Place,
    resource: str,
    pointer: str,
    at: str,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Tell which rules set what in a package: the layers of each value, the last of which won.

    RESOURCE is Kind/name or Kind/namespace/name; POINTER a JSON pointer in it, or the name of an option of a Plugin.
    With --at it is made again as it stands at a commit, by the config of then. Nothing is pushed.
    """
    try:
        explanation = _look(place, at, resource, pointer, Setup(config, settings_file, fleet, cache, offline))
    except (UnknownPlaceError, NothingToExplainError) as error:
        raise CannotRunError(str(error)) from error
    if output == "json":
        # whatever YAML could hold becomes what JSON can
        click.echo(json.dumps(explanation_data(explanation), indent=2, default=str))
    else:
        click.echo(explanation_text(explanation), nl=False)
    # what cannot be made again is no finding of today's config
    is_gone = bool(at) and explanation.explained.rendered is None
    return status_of(explanation.explained.findings) or (ERROR_FINDING if is_gone else FINE)


def _look(place: Place, at: str, resource: str, pointer: str, setup: Setup) -> Explanation:
    if at:
        with looking_back(setup) as (past, names):
            return _explained(past_explainer(place, at, past, names), resource, pointer)
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(
            settings, config_of(settings), missing_is_empty=True, fetches=not setup.offline, progress=show
        )
        with parts.remotes as remotes:
            return _explained(explainer(place, parts.source, remotes, parts.tools), resource, pointer)


def _explained(one: _Explainer, resource: str, pointer: str) -> Explanation:
    explanation = explain(one.explained(), resource, pointer)
    return with_each_left_out(explanation, partial(_try, one)) if pointer else explanation


def _try(one: _Explainer, layer: Layer) -> Explained | str:
    try:
        return one.without(layer)
    except UnknownPlaceError:
        return "nothing would want it"
