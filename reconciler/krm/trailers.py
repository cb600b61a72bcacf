"""Trailers: the lines `Name: value` that end a message of Git's, for tools to read."""

from __future__ import annotations

import re

_LINE = re.compile(r"([A-Za-z][A-Za-z0-9-]*): (.*)")
# a signature follows the message of a tag without a line between
_SIGNATURE = re.compile(r"^-----BEGIN ", re.MULTILINE)


def read_trailers(message: str) -> dict[str, str]:
    """Return the trailers of a message, those of its last paragraph; of a name that is there twice, the last."""
    text = _SIGNATURE.split(message, maxsplit=1)[0].rstrip()
    # a paragraph that is also the subject says something to people
    _, _, last = text.rpartition("\n\n")
    found = (_LINE.fullmatch(line) for line in last.splitlines() if last != text)
    return {line[1]: line[2] for line in found if line}
