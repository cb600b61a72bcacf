"""The names of revisions: what tags of a package start with, which of them are numbered, which are older."""

from __future__ import annotations

import re

_NUMBERED = re.compile(r"v([1-9][0-9]*)")
# "stable" and "beta" move; what counts is immutable, and says so by a number: v3, v2.0.0, 1.4, 2024-05
_LIKE_A_REVISION = re.compile(r"v?[0-9]")
_VERSION = re.compile(r"v?([0-9]{1,9}(?:\.[0-9]{1,9})*)")


def tag_starts(prefix: str, directory: str, package: str) -> tuple[str, ...]:
    """Return what the tags of a package may start with, the most exact first (design 10.11)."""
    return tuple(dict.fromkeys((prefix + below(directory, package), prefix + package)))


def below(directory: str, path: str) -> str:
    """Return a path below a directory, "" being the root."""
    return f"{directory}/{path}" if directory else path


def number_of(suffix: str) -> int:
    """Return N of `vN`, else -1 (porch 1.1)."""
    numbered = _NUMBERED.fullmatch(suffix)
    return int(numbered[1]) if numbered else -1


def looks_immutable(suffix: str) -> bool:
    """Whether a tag's last part is called like a revision, and not like a channel."""
    return _LIKE_A_REVISION.match(suffix) is not None


def in_order(suffix: str) -> tuple[list[int], str]:
    """Return what sorts revisions: v2 before v10."""
    return [int(number) for number in re.findall("[0-9]{1,9}", suffix)], suffix


def is_older(suffix: str, than: str) -> bool:
    """Whether a revision is older than another by their version numbers; names without any are never told apart."""
    one, other = (_VERSION.match(name) for name in (suffix, than))
    return bool(one and other and _numbers(one[1]) < _numbers(other[1]))


def _numbers(version: str) -> list[int]:
    return [int(number) for number in version.split(".")]
