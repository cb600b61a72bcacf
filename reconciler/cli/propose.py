"""`reconciler propose`: say that drafts are ready to be approved; nothing is written to them from then on."""

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


@click.command("propose")
@bulk_options
@removals_option
@author_option
@accept_conflicts_option
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
    accept_conflicts: bool,
) -> int:
    """Propose drafts. A draft with conflicts, or with an unmet gate in a deployment repository, is refused."""
    bulk = Bulk(places, everything, selector, output, removals)
    setup = Setup(config, settings_file, fleet, cache, audits=True)
    person = person_at(setup, author)
    act = Act("propose", person.identity, accepts_conflicts=accept_conflicts, person_from=person.source)
    return run_act(setup, bulk, act)
