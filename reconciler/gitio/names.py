"""Which ref names, ids and paths may pass this door: our own check, so that no text from a file becomes an option."""

from __future__ import annotations

import re

from reconciler.krm.names import tree_path_fault

_ID = re.compile(r"[0-9a-f]{40}\Z")
_FORBIDDEN_IN_REFS = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_LONGEST_REF = 240  # finding 19: above about 245 bytes a segment's lock file has too long a name
_LONGEST_OPTION = 65_516  # one packet of the protocol is 65,520 bytes with its length


def is_ref(name: str) -> bool:
    """Tell whether `name` is a full ref name that git and file systems accept (git-check-ref-format, finding 19)."""
    segments = name.split("/")
    return (
        name.startswith("refs/")
        and len(segments) > 2
        and not _FORBIDDEN_IN_REFS.search(name)
        and all(map(_is_segment, segments))
    )


def _is_segment(segment: str) -> bool:
    return (
        0 < len(segment.encode(errors="surrogateescape")) <= _LONGEST_REF
        and not segment.startswith((".", "-"))
        and not segment.endswith((".", ".lock"))
    )


def check_ref(name: str) -> str:
    """Return `name`; ValueError when it is no usable ref name. Callers check names of people before they come here."""
    if not is_ref(name):
        raise ValueError(f"{name!r} is not a usable ref name")
    return name


def check_option(text: str) -> str:
    """Return `text`; ValueError when it cannot be a push option: git sends one line of at most 65,516 bytes."""
    if re.search(r"[\n\0]", text) or len(text.encode(errors="surrogateescape")) > _LONGEST_OPTION:
        raise ValueError(f"a push option must be one line of at most {_LONGEST_OPTION} bytes, not {text[:80]!r}")
    return text


def check_id(text: str) -> str:
    """Return `text`; ValueError when it is not a full object id."""
    if not _ID.match(text):
        raise ValueError(f"{text!r} is not a full object id")
    return text


def is_path(path: str) -> bool:
    """Tell whether `path` may stand in a tree that we write: relative, no dot segments, nothing that is `.git`."""
    return tree_path_fault(path) is None


def check_path(path: str) -> str:
    """Return `path`; ValueError when no tree of ours may hold it."""
    if not is_path(path):
        raise ValueError(f"{path!r} is not a path that a tree may hold")
    return path
