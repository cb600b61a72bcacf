"""`reconciler pkg`: the commands for one package in a local folder. These commands use no config."""

from __future__ import annotations

import click

from reconciler.cli.entry import LazyGroup

COMMANDS = {
    "get": "Get a package from a repository.",
    "update": "Merge upstream changes into a package.",
    "render": "Run the functions of a package and write the result.",
    "diff": "Compare a package with its upstream.",
}


@click.group("pkg", cls=LazyGroup, table=COMMANDS, prefix="reconciler.cli.pkg_")
def command() -> None:
    """Get, update, render or compare one kpt package in a local folder. These commands use no config."""
