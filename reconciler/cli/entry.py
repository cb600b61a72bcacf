"""The entry: commands by name, imported when used, and what each way to end means as an exit status (design 10.25)."""

from __future__ import annotations

import io
import os
import signal
import sys
from collections.abc import Sequence

import click

from reconciler import __version__
from reconciler.cli.exits import CANNOT_RUN, OUR_BUG, CannotRunError
from reconciler.cli.lazy import LazyGroup, OutputClosedError
from reconciler.redaction import redact

COMMANDS = {
    "demo": "Build a small world, run the main job on it, show what came out.",
    "run": "Serve: reconcile again and again until told to stop.",
    "sync": "Reconcile once, and push.",
    "plan": "Show what a sync would do; nothing is pushed.",
    "impact": "Show what a change of the config would do to the whole fleet; nothing is pushed.",
    "explain": "Tell which rules set what in one package, step by step.",
    "why": "Tell which commit made a value what it is.",
    "verify": "Make what is published again, and compare.",
    "render": "Write what the draft branches would hold to a folder.",
    "validate": "List every finding in the config.",
    "status": "Show what stands: the status branch in a few lines.",
    "report": "Write the fleet as one HTML file.",
    "drafts": "List the open drafts.",
    "show": "Show the drafts of a cluster, or of one package.",
    "propose": "Propose drafts: they are ready to be approved.",
    "approve": "Publish what is proposed.",
    "reject": "Take a proposal back, or drop a draft.",
    "schema": "Print JSON Schemas of every kind, for editors and checks.",
    "pkg": "Get, update, render or compare one package by hand.",
}


@click.group(
    cls=LazyGroup,
    table=COMMANDS,
    prefix="reconciler.cli.",
    context_settings={"help_option_names": ["-h", "--help"]},
)
@click.version_option(__version__, prog_name="reconciler")
def commands() -> None:
    """Compute every cluster's package variants as drafts on its branch; Git is the only database."""


def run(arguments: Sequence[str]) -> int:
    """Run one command and return its exit status; only a bug of ours shows a stack trace."""
    try:
        return _run(arguments)
    except OutputClosedError:
        # whoever read our output has gone; nothing more can be said to anybody
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 128 + signal.SIGPIPE
    except (KeyboardInterrupt, click.Abort):
        return 128 + signal.SIGINT
    except Exception:  # noqa: BLE001 - the last stop: our own mistakes are told apart from the user's
        import traceback

        # the frames only: values of local variables may be secrets
        click.echo(redact(traceback.format_exc()), err=True, nl=False)
        click.echo("reconciler: this is a bug of ours; please report it with the lines above", err=True)
        return OUR_BUG


def _run(arguments: Sequence[str]) -> int:
    try:
        result = commands.main(list(arguments), prog_name="reconciler", standalone_mode=False)
    except click.ClickException as error:
        # click quotes arguments, and one of them may be a URL with a password
        shown = io.StringIO()
        error.show(shown)
        click.echo(redact(shown.getvalue()), err=True, nl=False)
        return CANNOT_RUN
    except CannotRunError as error:
        click.echo(redact(f"reconciler: {error}"), err=True)
        return CANNOT_RUN
    return result if isinstance(result, int) else 0
