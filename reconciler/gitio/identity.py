"""Who sits at this machine, as their own Git knows them; the one question that their configuration is asked."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

_SECONDS = 10
_PERSON = re.compile(r"(?P<name>[^<>\n]*[^<>\s]) <(?P<mail>[^<>\s]+)>")


def read_person(folder: Path) -> tuple[str, str] | None:
    """Return name and mail address of whoever calls git in `folder`; None when nobody has told it."""
    # git would make up a name from the machine's otherwise, and an approval must not be signed by a guess
    command = ["git", "-c", "user.useConfigOnly=true", "var", "GIT_AUTHOR_IDENT"]
    try:
        done = subprocess.run(
            command, cwd=folder, stdin=subprocess.DEVNULL, capture_output=True, timeout=_SECONDS, check=False
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    return parse_person(done.stdout.decode(errors="replace").strip()) if done.returncode == 0 else None


def parse_person(text: str) -> tuple[str, str] | None:
    """Return the name and mail address of `Name <mail>`, whatever comes after it; None when it is not of that form."""
    found = _PERSON.match(text)
    return (found["name"], found["mail"]) if found else None
