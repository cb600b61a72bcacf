"""`reconciler token`: the commands for access tokens of the console and its API."""

from __future__ import annotations

import click

from reconciler.cli.entry import LazyGroup

COMMANDS = {"create": "Create an access token."}


@click.group("token", cls=LazyGroup, table=COMMANDS, prefix="reconciler.cli.token_")
def command() -> None:
    """Create access tokens, with which programs use the console and its API."""
