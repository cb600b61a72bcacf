"""Groups of commands that are imported when they are called: `--help` stays fast."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

import click


class OutputClosedError(Exception):
    """Whoever read our output has gone. No OSError, which click would end with 1, as if there were an error finding."""


class LazyGroup(click.Group):
    """A group whose commands are the `command` of a module each, `prefix` and the command's name being the module's.

    `table` says in one sentence what each command does.
    """

    def __init__(self, *arguments: Any, table: Mapping[str, str], prefix: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._prefix = prefix

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command. Raises OutputClosedError when nobody reads any more what it says."""
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the names in the order of the table."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Return a command, imported now; None when there is none of this name."""
        if cmd_name not in self._table:
            return None
        command = importlib.import_module(f"{self._prefix}{cmd_name}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the table, for which no command needs to be imported."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._table.items()))
