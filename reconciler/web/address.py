"""Addresses to listen on, as people write them. Read by every command: nothing heavy may be imported here."""

from __future__ import annotations

import re


class ListenError(Exception):
    """The server cannot listen; the text names the setting, its value and what is allowed."""


def split_address(address: str) -> tuple[str, int]:
    """Return host and port of `host:port` or `[address]:port`. Raises ValueError with what is allowed."""
    found = re.fullmatch(r"(?:\[([0-9A-Fa-f:.]+)\]|([A-Za-z0-9.-]+)):([0-9]{1,5})", address)
    if not found or int(found[3]) > 65_535:
        raise ValueError('must be host:port, for example "127.0.0.1:8080" or "[::]:8080"; port 0 takes any free one')
    return found[1] or found[2], int(found[3])
