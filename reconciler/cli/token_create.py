"""`reconciler token create`: create an access token, and the line of the token file that describes it."""

from __future__ import annotations

import os
import re
import time
from pathlib import Path

import click

from reconciler import credential_files
from reconciler.cli.exit_codes import SUCCESS, CannotRunError
from reconciler.krm import field_text
from reconciler.review import permissions
from reconciler.server.authentication import access_tokens

_DURATION = re.compile(r"([1-9][0-9]{0,4})([hd])")
_UNIT_SECONDS = {"h": 3_600, "d": 86_400}
_PRIVATE = 0o600


@click.command("create")
@click.argument("name", metavar="NAME")
@click.option(
    "--role",
    type=click.Choice(permissions.ROLES),
    default="viewer",
    show_default=True,
    help="The role of the program. The role admin includes removals of packages.",
)
@click.option("--targets", "selector", metavar="QUERY", default="", help="Limit the role to targets with these labels.")
@click.option(
    "--expires",
    metavar="TIME",
    default="90d",
    show_default=True,
    help="A number of days (90d) or hours (8h), or `never`.",
)
@click.option(
    "--add-to",
    "file",
    metavar="FILE",
    type=click.Path(path_type=Path, dir_okay=False),
    help="Add the line to this file. A new file is only readable for its owner.",
)
def command(name: str, role: str, selector: str, expires: str, file: Path | None) -> int:
    """Create an access token for the program NAME, and print it. No command can show the token again.

    The command also prints a line for the token file (setting console.token_file) to the standard error. With
    --add-to, it adds the line to this file instead. The line contains only a digest of the token. A running service
    uses a changed file at once.
    """
    token, expires_at = access_tokens.create_token(), _parse_expiry(expires)
    try:
        line = access_tokens.format_line(name, role, selector, token, expires_at)
    except ValueError as error:
        raise click.UsageError(str(error)) from None
    if file:
        _add_line(file, name, line)
    click.echo(token)
    message = (
        f"added the token {name} to {file}" if file else f"add this line to the file of console.token_file:\n{line}"
    )
    click.echo(message, err=True)
    return SUCCESS


def _parse_expiry(text: str) -> int | None:
    if text == access_tokens.NEVER:
        return None
    match = _DURATION.fullmatch(text)
    if not match:
        raise click.UsageError(
            '--expires: must be a number of days such as "90d", a number of hours such as "8h", or'
            f' "never", but is {field_text.quote_value(text)}'
        )
    return int(time.time()) + int(match[1]) * _UNIT_SECONDS[match[2]]


def _add_line(file: Path, name: str, line: str) -> None:
    """Add the line of a new token to a token file."""
    try:
        tokens = access_tokens.read_token_file(file) if file.exists() else {}
        if any(token.name == name for token in tokens.values()):
            raise CannotRunError(
                f'--add-to {file}: the file already contains a token with the name "{name}"; use another'
                " name, or delete"
                " its line"
            )
        text = file.read_text("utf-8") if file.exists() else ""
        separator = "" if not text or text.endswith("\n") else "\n"
        # Append in one write, so that the service never reads a part of the line.
        descriptor = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, _PRIVATE)
        with os.fdopen(descriptor, "ab", buffering=0) as opened:
            opened.write(f"{separator}{line}\n".encode())
    except credential_files.SecretFileError as error:
        raise CannotRunError(f"--add-to {error}") from None
    except OSError as error:
        raise CannotRunError(f"--add-to {file}: the file must be writable: {error.strerror}") from None
