"""`reconciler reject`: take a proposal back, or drop what it offers."""

from __future__ import annotations

import click

from reconciler.cli.reviewing import Bulk, Setup, author_option, bulk_options, person_at, run_act
from reconciler.daemon.acts import Act
from reconciler.daemon.review import Place


@click.command("reject")
@bulk_options
@author_option
@click.option("--reason", default="", help="Why; it is told with the draft as long as that stands.")
@click.option("--drop", is_flag=True, help="Drop what is offered: it comes back only when it would be another.")
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
    reason: str,
    drop: bool,
) -> int:
    """Make proposed drafts drafts again, which the next pass may write to."""
    bulk = Bulk(places, everything, selector, output)
    setup = Setup(config, settings_file, fleet, cache, audits=True)
    person = person_at(setup, author)
    act = Act("drop" if drop else "reject", person.identity, reason, person_from=person.source)
    return run_act(setup, bulk, act)
