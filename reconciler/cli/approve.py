"""`reconciler approve`: publish what is proposed, whole drafts or single packages of them."""

from __future__ import annotations

import click

from reconciler.cli.reviewing import (
    Bulk,
    Setup,
    accept_conflicts_option,
    author_option,
    bulk_options,
    person_at,
    removals_option,
    run_act,
)
from reconciler.daemon.acts import Act
from reconciler.daemon.review import Place


@click.command("approve")
@bulk_options
@removals_option
@author_option
@click.option("--propose", "at_once", is_flag=True, help="Approve what is not proposed, too, as it stands now.")
@accept_conflicts_option
@click.option("-m", "--message", default="", help="What you have to say; it stands in the commit.")
def command(
    places: tuple[Place, ...],
    everything: bool,
    selector: str | None,
    author: tuple[str, str] | None,
    output: str,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    removals: bool,
    at_once: bool,
    accept_conflicts: bool,
    message: str,
) -> int:
    """Publish drafts on their cluster branches: a merge of all of a draft, or a commit with the named packages."""
    bulk = Bulk(places, everything, selector, output, removals)
    setup = Setup(config, settings_file, fleet, cache, audits=True)
    person = person_at(setup, author)
    act = Act("approve", person.identity, message, at_once, accept_conflicts, person_from=person.source)
    return run_act(setup, bulk, act)
