"""The groups of commands, and the exit status for each kind of failure.

The module of a command is imported only when the command runs, so that `--help` is fast.
"""

from __future__ import annotations

import importlib
import io
import os
import signal
import sys
from collections.abc import Mapping, Sequence
from typing import Any

import click

from reconciler import __version__
from reconciler.cli.exit_codes import CANNOT_RUN, INTERNAL_BUG, CannotRunError
from reconciler.redaction import redact


class OutputClosedError(Exception):
    """The program that reads the standard output has closed the pipe.

    This class is not an OSError, because click converts an OSError to exit status 1, which means an error finding.
    """


class LazyGroup(click.Group):
    """A group of commands whose modules are imported when the commands are used.

    Each module has the name `<prefix><command name>` and contains the object `command`. `table` maps the name of
    each command to its description.
    """

    def __init__(self, *arguments: Any, table: Mapping[str, str], prefix: str, **options: Any) -> None:
        super().__init__(*arguments, **options)
        self._table = table
        self._prefix = prefix

    def invoke(self, ctx: click.Context) -> Any:
        """Run the command.

        Raises:
            OutputClosedError: The program that reads the standard output has closed the pipe.
        """
        try:
            return super().invoke(ctx)
        except BrokenPipeError as error:
            raise OutputClosedError from error

    def list_commands(self, ctx: click.Context) -> list[str]:
        """Return the command names in the order of `table`."""
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        """Import and return a command. Return None if `table` does not contain the name."""
        if cmd_name not in self._table:
            return None
        command = importlib.import_module(f"{self._prefix}{cmd_name.replace('-', '_')}").command
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        """Write the list of commands for `--help`. This does not import the commands."""
        with formatter.section("Commands"):
            formatter.write_dl(list(self._table.items()))


COMMANDS = {
    "demo": "Create example repositories, run one pass, and show the drafts.",
    "init": "Create a new config from options or questions.",
    "adopt": "Import an existing fleet as a config.",
    "run": "Run as a service that reconciles until it receives a signal.",
    "health": "Check the health of a running service.",
    "sync": "Run one pass and push the drafts.",
    "plan": "Show the changes of a sync without pushing.",
    "impact": "Show the effect of a config change on the whole fleet without pushing.",
    "explain": "Show the provenance of the values in one package.",
    "why": "Show the commit that set a value.",
    "verify": "Re-render the published packages and compare.",
    "render": "Write the content of the draft branches to a folder.",
    "validate": "List all findings in the config.",
    "doctor": "Check the credentials of all remotes, and the signing key.",
    "status": "Show a summary of the status branch.",
    "report": "Write a report about the fleet as one HTML file.",
    "drafts": "List the open drafts.",
    "show": "Show the drafts of a cluster or of one package.",
    "propose": "Propose drafts for approval.",
    "approve": "Publish proposed drafts.",
    "reject": "Reject proposed drafts, or delete drafts.",
    "ssh-keyscan": "Print the SSH keys of hosts for review.",
    "notify": "Send a sample message to a notification channel.",
    "token": "Create access tokens of the console.",
    "schema": "Print the JSON Schemas of all kinds.",
    "pkg": "Get, update, render or compare one package.",
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    prefix="reconciler.cli.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="reconciler")
def commands() -> None:
    """Render the package variants of every cluster as drafts in Git. Git is the only database."""


def run(arguments: Sequence[str]) -> int:
    """Run one command, and return its exit status. Print a traceback only for a bug in the reconciler."""
    try:
        return _run(arguments)
    except OutputClosedError:
        # Redirect stdout to the null device, because the interpreter flushes stdout at exit. A flush to a closed pipe
        # fails.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except Exception:  # noqa: BLE001 - all other exceptions are bugs and need their own exit status
        import traceback

        # Use `format_exc`, because its traceback contains no local variables. Their values may be secrets.
        click.echo(redact(traceback.format_exc()), err=True, nl=False)
        click.echo("reconciler: this is a bug in reconciler; please report it with the lines above", err=True)
        return INTERNAL_BUG


def _run(arguments: Sequence[str]) -> int:
    try:
        result = commands.main(list(arguments), prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        # Redact the message, because click quotes arguments in it, and an argument may be a URL with a password.
        message = io.StringIO()
        error.show(message)
        click.echo(redact(message.getvalue()), err=True, nl=False)
        return CANNOT_RUN
    except CannotRunError as error:
        click.echo(redact(f"reconciler: {error}"), err=True)
        return CANNOT_RUN
    return result if isinstance(result, int) else 0
