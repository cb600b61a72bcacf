"""File names of resources in packages in which each resource has its own file."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Mapping

from reconciler.krm.objects import ObjectKey

MAX_FILE_NAME_LENGTH = 255
_INVALID_IN_NAME = re.compile(r"[^A-Za-z0-9._-]")
# Escape "-" and "." in a kind, because these characters separate the kind from the rest of the file name.
_INVALID_IN_KIND = re.compile(r"[^a-z0-9]")
_INVALID_IN_RENDERED_NAME = re.compile(r"[^a-z0-9.-]")
_CRD = ("apiextensions.k8s.io", "CustomResourceDefinition")


def assign_file_names(keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return a unique file name for each resource of a package.

    If several resources would have the same short file name, their file names include the API group.
    """
    keys = list(keys)
    name_counts = Counter(map(format_short_file_name, keys))
    return {
        key: format_short_file_name(key)
        if name_counts[format_short_file_name(key)] == 1
        else format_full_file_name(key)
        for key in keys
    }


def format_short_file_name(key: ObjectKey) -> str:
    """Return the file name with the kind and name of a resource, e.g. "configmap-web.yaml"."""
    return f"{_format_kind(key)}-{_escape(key.name)}.yaml"


def format_full_file_name(key: ObjectKey) -> str:
    """Return the file name with kind, API group and name, e.g. "deployment.apps-web.yaml".

    If the resource is in the core group, return the short file name.
    """
    return (
        f"{_format_kind(key)}.{_escape(key.group)}-{_escape(key.name)}.yaml"
        if key.group
        else format_short_file_name(key)
    )


def assign_rendered_file_names(keys: Iterable[ObjectKey]) -> Mapping[ObjectKey, str]:
    """Return a unique file path for each resource of a rendered chart. CustomResourceDefinitions are in `crds/`.

    If several resources would have the same short file name, their file names include the namespace. If this is not
    sufficient, the file names also include the API group. The file names do not depend on the order of `keys`.
    """
    names: dict[ObjectKey, str] = dict.fromkeys(keys, "")
    ambiguous: Iterable[ObjectKey] = names
    for format_name in (_format_kind_and_name, _format_with_namespace, _format_with_group, _format_unambiguous):
        names.update((key, format_name(key)) for key in ambiguous)
        name_counts = Counter(names.values())
        ambiguous = [key for key, name in names.items() if name_counts[name] > 1]
    return {key: f"{'crds/' if (key.group, key.kind) == _CRD else ''}{name}.yaml" for key, name in names.items()}


def format_unambiguous_file_name(key: ObjectKey) -> str:
    """Return a file name with all parts of the identity of a resource, so that no other resource has this name."""
    return f"{_format_unambiguous(key)}.yaml"


def _format_kind_and_name(key: ObjectKey) -> str:
    return f"{_format_kind(key)}-{_escape(key.name, _INVALID_IN_RENDERED_NAME)}"


def _format_with_namespace(key: ObjectKey) -> str:
    return f"{_format_kind(key)}-{_format_namespaced_name(key, '-')}"


def _format_with_group(key: ObjectKey) -> str:
    return f"{_format_kind_and_group(key)}-{_format_namespaced_name(key, '-')}"


def _format_unambiguous(key: ObjectKey) -> str:
    # Separate the names by the escape sequence of "/", because a namespace or a name can contain "-", but not this
    # sequence.
    return f"{_format_kind_and_group(key)}-{_format_namespaced_name(key, _escape('/'))}"


def _format_kind_and_group(key: ObjectKey) -> str:
    group = _escape(key.group, _INVALID_IN_RENDERED_NAME)
    return f"{_format_kind(key)}.{group}" if group else _format_kind(key)


def _format_namespaced_name(key: ObjectKey, separator: str) -> str:
    parts = (key.namespace, key.name) if key.namespace else (key.name,)
    return separator.join(_escape(part, _INVALID_IN_RENDERED_NAME) for part in parts)


def _format_kind(key: ObjectKey) -> str:
    return _escape(key.kind.lower(), _INVALID_IN_KIND)


def _escape(text: str, invalid: re.Pattern[str] = _INVALID_IN_NAME) -> str:
    return invalid.sub(lambda match: "".join(f"%{byte:02X}" for byte in match[0].encode()), text)
