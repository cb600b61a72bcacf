"""`reconciler why`: which commit made a value of one package what it is, and who published it."""

from __future__ import annotations

import json

import click

from reconciler.cli.exits import FINE
from reconciler.cli.explain import PackageType
from reconciler.cli.looking_back import looking_back
from reconciler.cli.reviewing import Setup, offline_option, setup_options
from reconciler.daemon.review import Place
from reconciler.daemon.why import why
from reconciler.reporting.why import asked_for, why_data, why_text


@click.command("why")
@click.argument("place", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE]", required=False, default="")
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
    if not resource:
        raise click.UsageError("RESOURCE and POINTER are missing: give one of them, or both")
    with looking_back(Setup(config, settings_file, fleet, cache, offline)) as (past, _):
        found = why(place, asked_for(resource, pointer), past, drafts=drafts)
    if output == "json":
        # whatever YAML could hold becomes what JSON can
        click.echo(json.dumps(why_data(found), indent=2, default=str))
    else:
        click.echo(why_text(found), nl=False)
    return FINE
