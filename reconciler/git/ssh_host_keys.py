"""The SSH keys that a host presents, read with the program ssh-keyscan. They are only printed, and never trusted."""

from __future__ import annotations

import base64
import binascii
import hashlib
import os
import re
import subprocess

from reconciler.git.errors import GitProgramMissingError, UnreachableError, UrlRefusedError
from reconciler.lazy_dataclasses import dataclass

_ADDRESS = re.compile(r"(?P<host>[A-Za-z0-9][A-Za-z0-9.-]*|\[[0-9A-Fa-f:.]+\])(:(?P<port>[0-9]{1,5}))?\Z")
_KEY_LINE = re.compile(r"(?P<host>\S+) (?P<kind>[a-z0-9@.-]+) (?P<key>[A-Za-z0-9+/=]+)\Z")


@dataclass(frozen=True)
class HostKey:
    """A line for a known_hosts file, with the type and the fingerprint of its key."""

    line: str
    kind: str
    fingerprint: str


def scan_host_keys(address: str, timeout_seconds: int = 10) -> list[HostKey]:
    """Return the keys that the host presents at `address`, which is `HOST` or `HOST:PORT`.

    Raises:
        UrlRefusedError: The address is malformed.
        GitProgramMissingError: The program ssh-keyscan is not installed.
        UnreachableError: The host presents no key.
    """
    match = _ADDRESS.match(address)
    if match is None:
        raise UrlRefusedError(f"HOST must be a host name or HOST:PORT, for example github.com, but is {address!r}")
    command = ["ssh-keyscan", "-T", str(timeout_seconds), "-p", match["port"] or "22", match["host"].strip("[]")]
    try:
        process = subprocess.run(
            command, capture_output=True, text=True, check=False, timeout=2 * timeout_seconds,
            env={"PATH": os.environ.get("PATH", ""), "LC_ALL": "C"},
        )  # fmt: skip
    except FileNotFoundError as error:
        raise GitProgramMissingError("the program ssh-keyscan must be installed and on the PATH") from error
    except subprocess.TimeoutExpired as error:
        raise UnreachableError(f"ssh-keyscan of {address} took longer than {2 * timeout_seconds} seconds") from error
    keys = sorted(
        (key for line in process.stdout.splitlines() if (key := parse_host_key(line))), key=lambda key: key.kind
    )
    if not keys:
        reason = "; ".join(line for line in process.stderr.splitlines() if not line.startswith("#"))
        raise UnreachableError(f"{address} presents no SSH key: {reason or 'no answer'}")
    return keys


def parse_host_key(line: str) -> HostKey | None:
    """Parse a line of ssh-keyscan. Return None for a line of any other form, such as a comment."""
    match = _KEY_LINE.match(line.strip())
    if match is None:
        return None
    try:
        digest = hashlib.sha256(base64.b64decode(match["key"], validate=True)).digest()
    except binascii.Error:
        return None
    return HostKey(match[0], match["kind"], f"SHA256:{base64.b64encode(digest).decode().rstrip('=')}")
