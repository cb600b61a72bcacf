"""Validation of names: Kubernetes names, label keys and values, package paths, and Git ref names.

Each function returns the reason why the name is invalid, or None if it is valid. The reason does not contain the name
of the field. The caller writes the field before the reason, e.g. "metadata.name: <reason>".
"""

from __future__ import annotations

import re

from reconciler.memory import cached

MAX_LABEL_CHARACTERS = 63
MAX_SUBDOMAIN_CHARACTERS = 253
# Limit a segment to 245 bytes. Common file systems allow file names of 255 bytes, and Git appends ".lock" to ref files.
MAX_REF_SEGMENT_BYTES = 245
TENANT_PLACEHOLDER = "{tenant}"
"""The text that stands for the name of each tenant in a rule that applies once for each tenant."""

_DNS_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_DNS_SUBDOMAIN = re.compile(rf"{_DNS_LABEL.pattern}(\.{_DNS_LABEL.pattern})*")
_QUALIFIED_NAME = re.compile(r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?")
_WORKSPACE = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")
_QUALIFIED_NAME_RULE = (
    'must contain only letters, digits, "-", "_" and ".", and must start and end with a letter or digit'
)
IMAGE_TAG_PATTERN = r"[a-zA-Z0-9_][a-zA-Z0-9_.-]{0,127}"
_IMAGE_TAG = re.compile(IMAGE_TAG_PATTERN, re.ASCII)
_IMAGE_DIGEST = re.compile(r"(?P<algorithm>[a-z0-9]+):(?P<hex>[a-f0-9]+)", re.ASCII)
HEX_LENGTHS = {"sha256": 64, "sha384": 96, "sha512": 128}
_IGNORED_ON_MACOS = re.compile("[\u200c-\u200f\u202a-\u202e\u206a-\u206f\ufeff]")
_INVALID_IN_REF = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{")
# Cache the validation of paths, because the Git trees of most clusters contain the same paths.
_MAX_CACHED_PATHS = 4096


def validate_dns_label(name: str) -> str | None:
    """Return the reason why `name` is not a DNS-1123 label. Return None if `name` is valid."""
    if len(name) > MAX_LABEL_CHARACTERS:
        return f'"{name}" must have at most {MAX_LABEL_CHARACTERS} characters'
    if not _DNS_LABEL.fullmatch(name):
        return (
            f'"{name}" must contain only lower-case letters, digits and "-", and must start and end with a letter or'
            " digit"
        )
    return None


def validate_dns_subdomain(name: str) -> str | None:
    """Return the reason why `name` is not a DNS-1123 subdomain. Return None if `name` is valid.

    Kubernetes requires a DNS-1123 subdomain as the name of most kinds of objects.
    """
    if len(name) > MAX_SUBDOMAIN_CHARACTERS:
        return f'"{name}" must have at most {MAX_SUBDOMAIN_CHARACTERS} characters'
    if not _DNS_SUBDOMAIN.fullmatch(name):
        return (
            f'"{name}" must contain only lower-case letters, digits, "-" and ".", and each part between dots must start'
            " and end with a letter or digit"
        )
    return None


def validate_label_key(key: str) -> str | None:
    """Return the reason why `key` is not a label key. Return None if `key` is valid.

    A label key has an optional prefix and a name of at most 63 characters, e.g. `example.org/team`. The prefix is a DNS
    subdomain.
    """
    prefix, slash, name = key.rpartition("/")
    if slash and (error := validate_dns_subdomain(prefix)):
        return f'the prefix of "{key}" is not a DNS subdomain: {error}'
    if len(name) > MAX_LABEL_CHARACTERS:
        return f'the name part of "{key}" must have at most {MAX_LABEL_CHARACTERS} characters'
    if not _QUALIFIED_NAME.fullmatch(name):
        return f'the name part of "{key}" {_QUALIFIED_NAME_RULE}'
    return None


def validate_label_value(value: str) -> str | None:
    """Return the reason why `value` is not a label value. Return None if `value` is valid.

    A label value is empty, or it has the same syntax as the name in a label key.
    """
    if len(value) > MAX_LABEL_CHARACTERS:
        return f'the value "{value}" must have at most {MAX_LABEL_CHARACTERS} characters'
    if value and not _QUALIFIED_NAME.fullmatch(value):
        return f'the value "{value}" {_QUALIFIED_NAME_RULE}'
    return None


def validate_annotation_key(key: str) -> str | None:
    """Return the reason why `key` is not an annotation key. Return None if `key` is valid.

    Annotation keys have the same syntax as label keys, but their prefix can contain upper-case letters.
    """
    return validate_label_key(key.lower())


def validate_package_path(path: str) -> str | None:
    """Return the reason why `path` is not a package path. Return None if `path` is valid.

    A package path consists of DNS labels with "/" between them.
    """
    return next(filter(None, map(validate_dns_label, path.split("/"))), None)


def validate_workspace_name(name: str) -> str | None:
    """Return the reason why `name` is not a workspace name. Return None if `name` is valid.

    A workspace name becomes the last segment of a Git tag. Dots are therefore valid.
    """
    if not _WORKSPACE.fullmatch(name):
        return f'"{name}" must contain only letters, digits, ".", "_" and "-", and must start with a letter or digit'
    return validate_ref_name(name)


def validate_ref_name(name: str) -> str | None:
    """Return the reason why `name` cannot be a Git ref name or a part of a Git ref name.

    Return None if `name` is valid.

    A valid name can be used on every Git host and file system.
    """
    if name.startswith("-") or name == "@" or _INVALID_IN_REF.search(name):
        return f'"{name}" contains a character or sequence that Git does not allow in a ref name'
    return next(filter(None, map(_validate_ref_segment, name.split("/"))), None)


def validate_name_segment(name: str) -> str | None:
    """Return the reason why `name` is invalid as a segment of paths or Git refs. Return None if `name` is valid."""
    return validate_dns_subdomain(name) or _validate_ref_segment(name)


def _validate_ref_segment(segment: str) -> str | None:
    if not segment:
        return 'a ref name must not start or end with "/", and must not contain "//"'
    if segment.startswith(".") or segment.endswith("."):
        return f'"{segment}" must not start or end with ".", because it is a part of a ref name'
    if segment.lower().endswith(".lock"):
        return f'"{segment}" must not end in ".lock"'
    if len(segment.encode()) > MAX_REF_SEGMENT_BYTES:
        return f'"{segment}" must have at most {MAX_REF_SEGMENT_BYTES} bytes'
    return None


@cached(_MAX_CACHED_PATHS)
def validate_tree_path(path: str) -> str | None:
    """Return the reason why `path` is not valid in a Git tree. Return None if `path` is valid.

    A valid path is relative, and contains no segment "..", "." or ".git".
    """
    segments = path.split("/")
    if "\0" in path or any(segment in {"", ".", ".."} for segment in segments):
        return f'"{path}" must be relative, without empty segments, "." and ".."'
    if any(map(_is_dot_git, segments)):
        return f'"{path}" must not contain a segment ".git"'
    return None


def _is_dot_git(segment: str) -> bool:
    # Reject names such as "git~1" too, because file systems of Windows and macOS treat them as ".git". Git hosts with
    # the setting receive.fsckObjects reject these names.
    normalized = _IGNORED_ON_MACOS.sub("", segment).lower()
    parts = (part.partition(":")[0].rstrip(" .") for part in normalized.split("\\"))
    return any(part in {".git", "git~1"} for part in parts)


def validate_image_tag(text: str) -> str | None:
    """Return the reason why a text is not a valid image tag. Return None if the text is valid."""
    if _IMAGE_TAG.fullmatch(text):
        return None
    return 'must contain only letters, digits, "_", "." and "-", at most 128, and must not start with "." or "-"'


def validate_image_digest(text: str) -> str | None:
    """Return the reason why a text is not a valid image digest. Return None if the text is valid."""
    match = _IMAGE_DIGEST.fullmatch(text)
    if match and len(match["hex"]) == HEX_LENGTHS.get(match["algorithm"]):
        return None
    allowed = ", ".join(f"{name}:<{length} lower-case hex digits>" for name, length in HEX_LENGTHS.items())
    return f"must have one of these forms: {allowed}"
