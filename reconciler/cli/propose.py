"""`reconciler propose`: say that drafts are ready to be approved; nothing is written to them from then on."""

from __future__ import annotations

import click

from reconciler.cli.reviewing import Bulk, Setup, bulk_options, removals_option, run_act
from reconciler.daemon.acts import Act
from reconciler.daemon.review import Place


@click.command("propose")
@bulk_options
@removals_option
def command(
    places: tuple[Place, ...],
    everything: bool,
    selector: str | None,
    output: str,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    removals: bool,
) -> int:
    """Propose drafts as they stand. Refused while a gate of a deployment repository is unmet."""
    bulk = Bulk(places, everything, selector, output, removals)
    return run_act(Setup(config, settings_file, fleet, cache), bulk, Act("propose"))
