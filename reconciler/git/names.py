"""Checks of ref names, object IDs, push options and tree paths, so that git does not treat user input as options."""

from __future__ import annotations

import re

from reconciler.krm.names import validate_tree_path

_ID = re.compile(r"[0-9a-f]{40}\Z")
_FORBIDDEN_IN_REFS = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")
# Allow fewer bytes than the 255 of a file name, because Git adds `.lock` to the name for a lock file.
_MAX_SEGMENT_BYTES = 240
# The maximum payload of one packet in the Git protocol: 65,520 bytes minus 4 bytes for the length.
_MAX_OPTION_BYTES = 65_516


def is_ref_name(name: str) -> bool:
    """Return whether `name` is a full ref name, starting with `refs/`, that both Git and file systems accept."""
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
    """Return `name` unchanged if it is a valid ref name. Use `is_ref_name` for names from users.

    Raises:
        ValueError: `name` is not a valid full ref name. This is an error in the code of the caller.
    """
    if not is_ref_name(name):
        raise ValueError(f"{name!r} is not a valid name of a Git ref")
    return name


def check_push_option(text: str) -> str:
    """Return `text` unchanged if it can be a push option.

    Raises:
        ValueError: `text` has more than one line or more than 65,516 bytes, which Git cannot send as a push option.
    """
    if re.search(r"[\n\0]", text) or len(text.encode(errors="surrogateescape")) > _MAX_OPTION_BYTES:
        raise ValueError(f"a push option must be one line of at most {_MAX_OPTION_BYTES} bytes, but is {text[:80]!r}")
    return text


def check_object_id(text: str) -> str:
    """Return `text` unchanged if it is a full object ID.

    Raises:
        ValueError: `text` is not a full object ID of 40 hexadecimal digits.
    """
    if not _ID.match(text):
        raise ValueError(f"{text!r} is not a full Git object ID")
    return text


def is_tree_path(path: str) -> bool:
    """Return whether `path` is allowed in a tree that this program writes.

    The path must be relative and have no segment `.`, `..` or `.git`.
    """
    return validate_tree_path(path) is None


def check_tree_path(path: str) -> str:
    """Return `path` unchanged if it is allowed in a tree that this program writes.

    Raises:
        ValueError: `path` is not allowed.
    """
    if not is_tree_path(path):
        raise ValueError(f"{path!r} is not allowed as a path in a Git tree")
    return path
