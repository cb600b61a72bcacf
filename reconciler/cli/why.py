"""`reconciler why`: show the commit that set a value of one package, and the person who published it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.exit_codes import SUCCESS
from reconciler.cli.explain import PackageType
from reconciler.cli.options import output_option
from reconciler.cli.review_options import CommandSetup, add_setup_options, offline_option, open_history
from reconciler.inspect import why
from reconciler.output.explain import value_query
from reconciler.output.explain import why as explain_why

if TYPE_CHECKING:
    from reconciler.reconcile.remotes.targets import TargetReference


@click.command("why")
@click.argument("target", metavar="REPOSITORY/PACKAGE", type=PackageType())
@click.argument("resource", metavar="[RESOURCE]", required=False, default="")
@click.argument("pointer", metavar="[POINTER]", required=False, default="")
@click.option("--draft", "drafts", is_flag=True, help="Explain the value on the draft instead of the published value.")
@offline_option
@add_setup_options
@output_option("text", "json")
def command(
    target: TargetReference,
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
    """Show the commit that set a value, and its cause: a commit of the config, a commit of an upstream, or a person.

    RESOURCE is Kind/name or Kind/namespace/name. POINTER is a JSON pointer in the resource, or the name of an option of
    a Plugin. You can omit RESOURCE if only one resource has a value at POINTER. Nothing is pushed.
    """
    if not resource:
        raise click.UsageError("RESOURCE and POINTER are missing: give one of them, or both")
    with open_history(CommandSetup(config, settings_file, fleet, cache, offline)) as past:
        result = why.explain_value(
            target, value_query.parse_value_query(resource, pointer), past, should_use_draft=drafts
        )
    if output == "json":
        click.echo(result.to_json())
    else:
        click.echo(explain_why.format_why_text(result), nl=False)
    return SUCCESS
