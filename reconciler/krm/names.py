"""Names: what may be called what, in Kubernetes, in a package path and in a Git ref.

Each question answers with the reason why a text will not do, or None when it will. The reason completes
a sentence of the caller's ("<field> is not a valid package path: <why>"), so it names no field.
"""

from __future__ import annotations

import re

from reconciler.caching import cached

LABEL_LENGTH = 63
SUBDOMAIN_LENGTH = 253
# git.md 19: beyond this the name of Git's own lock file is too long for common file systems
REF_SEGMENT_BYTES = 245

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_QUALIFIED = 'letters, digits, "-", "_" and ".", and start and end with a letter or digit'
_IGNORED_ON_MACOS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_NOT_IN_A_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{")
# clusters have the same paths
_REMEMBERED_PATHS = 4096


def dns_label_fault(name: str) -> str | None:
    """Why `name` is not a DNS-1123 label (RFC 1123, as Kubernetes reads it), or None."""
    if len(name) > LABEL_LENGTH:
        return f'"{name}" must have at most {LABEL_LENGTH} characters'
    if not _DNS_LABEL.fullmatch(name):
        return f'"{name}" must be lower-case letters, digits and "-", and start and end with a letter or digit'
    return None


def dns_subdomain_fault(name: str) -> str | None:
    """Why `name` is not a DNS-1123 subdomain, the rule of most object names, or None."""
    if len(name) > SUBDOMAIN_LENGTH:
        return f'"{name}" must have at most {SUBDOMAIN_LENGTH} characters'
    if not _DNS_SUBDOMAIN.fullmatch(name):
        return f'"{name}" must be lower-case letters, digits and "-", in parts joined by single "."'
    return None


def label_key_fault(key: str) -> str | None:
    """Why `key` is not a label key ([DNS subdomain "/"] name of at most 63 characters), or None."""
    prefix, slash, name = key.rpartition("/")
    if slash and (fault := dns_subdomain_fault(prefix)):
        return f'the prefix of "{key}" is not a DNS subdomain: {fault}'
    if len(name) > LABEL_LENGTH:
        return f'the name part of "{key}" must have at most {LABEL_LENGTH} characters'
    if not _QUALIFIED_NAME.fullmatch(name):
        return f'the name part of "{key}" must be {_QUALIFIED}'
    return None


def label_value_fault(value: str) -> str | None:
    """Why `value` is not a label value (empty, or like the name part of a key), or None."""
    if len(value) > LABEL_LENGTH:
        return f'the value "{value}" must have at most {LABEL_LENGTH} characters'
    if value and not _QUALIFIED_NAME.fullmatch(value):
        return f'the value "{value}" must be {_QUALIFIED}'
    return None


def annotation_key_fault(key: str) -> str | None:
    """Why `key` is not an annotation key, or None: like a label key, in any case of its prefix."""
    return label_key_fault(key.lower())


def package_path_fault(path: str) -> str | None:
    """Why `path` is not the path of a package (DNS labels joined by single "/", porch 2), or None."""
    return next((fault for fault in map(dns_label_fault, path.split("/")) if fault), None)


def workspace_fault(name: str) -> str | None:
    """Why `name` cannot be a workspace name (porch 2: the suffix of a tag, so dots are fine), or None."""
    if not _WORKSPACE.fullmatch(name):
        return f'"{name}" must be letters, digits, ".", "_" and "-", and start with a letter or digit'
    return ref_name_fault(name)


def ref_name_fault(name: str) -> str | None:
    """Why `name` (or a part of one) is not usable as a Git ref on every host and file system, or None."""
    if name.startswith("-") or name == "@" or _NOT_IN_A_REF.search(name):
        return f'"{name}" holds a character or sequence that Git refuses in the name of a ref'
    return next((fault for fault in map(_ref_segment_fault, name.split("/")) if fault), None)


def segment_fault(name: str) -> str | None:
    """Why `name` cannot be a segment of a path and of a ref that we make of names (design 10.2), or None."""
    return dns_subdomain_fault(name) or _ref_segment_fault(name)


def _ref_segment_fault(segment: str) -> str | None:
    if not segment or segment.startswith(".") or segment.endswith("."):
        return f'"{segment}" must not be empty, nor start or end with "." in the name of a ref'
    if segment.lower().endswith(".lock"):
        return f'"{segment}" must not end in ".lock"'
    if len(segment.encode()) > REF_SEGMENT_BYTES:
        return f'"{segment}" must have at most {REF_SEGMENT_BYTES} bytes'
    return None


@cached(_REMEMBERED_PATHS)
def tree_path_fault(path: str) -> str | None:
    """Why `path` may not stand in a Git tree that we write, or None: it is relative, and leads nowhere else."""
    segments = path.split("/")
    if "\0" in path or any(segment in {"", ".", ".."} for segment in segments):
        return f'"{path}" must be relative, without empty and dot segments'
    if any(map(_is_dot_git, segments)):
        return f'"{path}" must not lead into a .git'
    return None


def _is_dot_git(segment: str) -> bool:
    # also what Windows and macOS file systems take for it; hosts with receive.fsckObjects refuse these
    seen = _IGNORED_ON_MACOS.sub("", segment).lower()
    parts = (part.partition(":")[0].rstrip(" .") for part in seen.split("\\"))
    return any(part in {".git", "git~1"} for part in parts)
