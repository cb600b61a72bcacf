"""`reconciler why`: which commit made a value of one package what it is, and who published it."""

from __future__ import annotations

import json

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import FINE, CannotRunError
from reconciler.cli.explain import PackageType
from reconciler.cli.reviewing import Setup, offline_option, setup_options
from reconciler.cli.shared import config_of, progress
from reconciler.daemon.past import Past
from reconciler.daemon.review import Place, UnknownPlaceError
from reconciler.daemon.why import why
from reconciler.reporting.explanation import NothingToExplainError
from reconciler.reporting.why import Why, asked_for, why_data, why_text
from reconciler.wiring import build_parts


@click.command("why")
@click.argument("place", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE]")
@click.argument("pointer", metavar="[POINTER]", required=False, default="")
@click.option("--draft", "drafts", is_flag=True, help="The value on the draft, in place of what is published.")
@offline_option
@setup_options
@click.option("-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it.")
def command(
    place: Place,
    resource: str,
    pointer: str,
    drafts: bool,
    offline: bool,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    output: str,
) -> int:
    """Tell since which commit a value is what it is, and which commit of the config, an upstream or a person led to it.

    RESOURCE is Kind/name or Kind/namespace/name; POINTER a JSON pointer in it, or the name of an option of a Plugin.
    RESOURCE may be left out where one resource alone has something at POINTER. Nothing is pushed.
    """
    setup = Setup(config, settings_file, fleet, cache, offline)
    try:
        found = _look(place, resource, pointer, setup, drafts=drafts)
    except (UnknownPlaceError, NothingToExplainError) as error:
        raise CannotRunError(str(error)) from error
    if output == "json":
        # whatever YAML could hold becomes what JSON can
        click.echo(json.dumps(why_data(found), indent=2, default=str))
    else:
        click.echo(why_text(found), nl=False)
    return FINE


def _look(place: Place, resource: str, pointer: str, setup: Setup, *, drafts: bool) -> Why:
    asked = asked_for(resource, pointer)
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(settings, config_of(settings), fetches=not setup.offline, progress=show)
        with parts.remotes as remotes:
            return why(place, asked, Past(parts.source, parts.history, remotes, parts.tools), drafts=drafts)
