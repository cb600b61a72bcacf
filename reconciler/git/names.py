"""Checks of ref names, object ids, push options and tree paths, so that no text from a file becomes a Git option."""

from __future__ import annotations

import re

from reconciler.krm.names import validate_tree_path

_ID = re.compile(r"[0-9a-f]{40}\Z")
_FORBIDDEN_IN_REFS = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
_MAX_SEGMENT_BYTES = 240  # The lock file of a longer segment would exceed the 255 bytes of a file name.
_MAX_OPTION_BYTES = 65_516  # One packet of the protocol has 65,520 bytes including its length.


def is_ref_name(name: str) -> bool:
    """Return whether `name` is a full ref name that Git (git-check-ref-format) and file systems accept."""
    segments = name.split("/")
    return (
        name.startswith("refs/")
        and len(segments) > 2
        and not _FORBIDDEN_IN_REFS.search(name)
        and all(map(_is_segment, segments))
    )


def _is_segment(segment: str) -> bool:
    return (
        0 < len(segment.encode(errors="surrogateescape")) <= _MAX_SEGMENT_BYTES
        and not segment.startswith((".", "-"))
        and not segment.endswith((".", ".lock"))
    )


def check_ref(name: str) -> str:
    """Return `name`. Names from users must be checked before this call.

    Raises:
        ValueError: `name` is not a usable ref name.
    """
    if not is_ref_name(name):
        raise ValueError(f"{name!r} is not a usable ref name")
    return name


def check_push_option(text: str) -> str:
    """Return `text`.

    Raises:
        ValueError: `text` cannot be a push option, which Git sends as one line of at most 65,516 bytes.
    """
    if re.search(r"[\n\0]", text) or len(text.encode(errors="surrogateescape")) > _MAX_OPTION_BYTES:
        raise ValueError(f"a push option must be one line of at most {_MAX_OPTION_BYTES} bytes, not {text[:80]!r}")
    return text


def check_object_id(text: str) -> str:
    """Return `text`.

    Raises:
        ValueError: `text` is not a full object id.
    """
    if not _ID.match(text):
        raise ValueError(f"{text!r} is not a full object id")
    return text


def is_tree_path(path: str) -> bool:
    """Return whether a written tree may contain `path`: relative, without dot segments, without `.git`."""
    return validate_tree_path(path) is None


def check_tree_path(path: str) -> str:
    """Return `path`.

    Raises:
        ValueError: A written tree must not contain `path`.
    """
    if not is_tree_path(path):
        raise ValueError(f"{path!r} is not allowed as a path in a tree")
    return path
