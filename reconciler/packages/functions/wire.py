"""The wire format: items as a ResourceList shows them, and what a function gave back (kpt.md 3.1, 11.3, 12)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any

import re2

from reconciler.packages.functions.function import Config, Item, Result, ResultSeverity, scalar_text
from reconciler.packages.functions.wire_faults import items_fault
from reconciler.packages.resource import INDEX_ANNOTATIONS, PATH_ANNOTATIONS

ID_ANNOTATIONS = (
    "internal.config.kubernetes.io/kpt-resource-id",
    "internal.config.kubernetes.io/id",
    "config.k8s.io/id",
)
_PACKAGE_PATH = "internal.config.kubernetes.io/package-path"
_SEQUENCE_INDENT = "internal.config.kubernetes.io/seqindent"
_OURS = frozenset((*PATH_ANNOTATIONS, *INDEX_ANNOTATIONS, *ID_ANNOTATIONS, _PACKAGE_PATH, _SEQUENCE_INDENT))
# more digits than any file has documents are no number worth reading
_INDEX = re2.compile(r"[0-9]{1,9}")
_SEVERITIES: Mapping[object, ResultSeverity] = {"error": "error", "warning": "warning"}


def resource_list(items: Sequence[Item], config: Config | None) -> dict[str, Any]:
    """Return the document that a function reads; every item carries its path, index and id as annotations.

    It shares its values with the items, and is read-only: interpreters and processes get a copy by their nature.
    """
    return {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [_annotated(item, number) for number, item in enumerate(items)],
        "functionConfig": dict(config or {}),
    }


def returned_items(items: Sequence[Item], returned: Any, *, sorts: bool = True) -> tuple[Item, ...] | str:
    """Return the items of the document that a function wrote, or what is wrong with it.

    Items are paired by id; those without one, or with one that came twice, are new. New keys come sorted or, without
    `sorts`, in the order of the document.
    """
    if fault := items_fault(returned):
        return fault
    entries = returned["items"]
    given = {str(number): item for number, item in enumerate(items)}
    return tuple(_item(given, entry, sorts=sorts) for entry in entries)


def returned_results(returned: Any) -> tuple[Result, ...]:
    """Return the results of the document that a function wrote: a list, or a mapping with `items`; legacy forms too."""
    results = returned.get("results") if isinstance(returned, Mapping) else None
    entries = results.get("items") if isinstance(results, Mapping) else results
    return tuple(_result(entry) for entry in entries if isinstance(entry, Mapping)) if isinstance(entries, list) else ()


def _annotated(item: Item, number: int) -> Any:
    data = item.data
    if not isinstance(data, dict):
        return data
    metadata = {} if data.get("metadata") is None else data["metadata"]
    if not isinstance(metadata, dict):
        return data
    places = dict.fromkeys(PATH_ANNOTATIONS, item.path) | dict.fromkeys(INDEX_ANNOTATIONS, str(item.index))
    annotations = metadata.get("annotations")
    own = annotations if isinstance(annotations, dict) else {}
    marked = {**own, **places, **dict.fromkeys(ID_ANNOTATIONS, str(number))}
    return {**data, "metadata": {**metadata, "annotations": marked}}


def _item(given: dict[str, Item], entry: dict[str, Any], *, sorts: bool) -> Item:
    annotations = _annotations(entry)
    item = given.pop(next((str(annotations[name]) for name in ID_ANNOTATIONS if name in annotations), ""), None)
    path, index = _place(annotations, item)
    data = _stripped(entry, item)
    if item is None:
        return Item("", path, index, in_order(data, None, sorts=sorts))
    return (item if data == item.data else item.with_shared_data(in_order(data, item.data, sorts=sorts))).moved(
        path, index
    )


def _annotations(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = entry.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _place(annotations: Mapping[str, Any], item: Item | None) -> tuple[str, int]:
    """Return the path and index an item asks for; of the two spellings the one that was changed counts."""
    path = _changed(annotations, PATH_ANNOTATIONS, item.path if item else "")
    index = _changed(annotations, INDEX_ANNOTATIONS, str(item.index) if item else "")
    cleaned = normpath(path).lstrip("/") if path else ""
    # what leads out of the package is refused, and told as it was written
    return path if cleaned.startswith("../") else cleaned, int(index) if _INDEX.fullmatch(index) else -1


def _changed(annotations: Mapping[str, Any], names: Sequence[str], old: str) -> str:
    texts = [scalar_text(annotations[name]) or "" for name in names if name in annotations]
    return next((text for text in texts if text != old), old)


def _stripped(entry: dict[str, Any], item: Item | None) -> dict[str, Any]:
    metadata = entry.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return entry
    own = item.annotations if item else {}
    # what its author wrote stays, even under our names
    kept = {key: own.get(key) if key in _OURS else value for key, value in annotations.items()}
    kept = {key: value for key, value in kept.items() if key not in _OURS or key in own}
    # a mapping that only we filled goes, one that was there and empty stays
    if kept or (item and item.metadata.get("annotations") == {}):
        return {**entry, "metadata": {**metadata, "annotations": kept}}
    rest = {key: value for key, value in metadata.items() if key != "annotations"}
    if rest or item is None or isinstance(item.data.get("metadata"), Mapping):
        return {**entry, "metadata": rest}
    # what has no metadata of its own, such as a kustomization, got it from us
    own_part = {key: value for key, value in entry.items() if key != "metadata"}
    return own_part | ({"metadata": None} if "metadata" in item.data else {})


def in_order(new: Any, old: Any, *, sorts: bool = True) -> Any:
    """Return data whose new keys come after the old ones: sorted, as upstream's functions return them, or as given."""
    if isinstance(new, dict):
        before = old if isinstance(old, dict) else {}
        added = [key for key in new if key not in before]
        keys = [*(key for key in before if key in new), *(sorted(added, key=str) if sorts else added)]
        return {key: in_order(new[key], before.get(key), sorts=sorts) for key in keys}
    if isinstance(new, list):
        elements = old if isinstance(old, list) else []
        return [
            in_order(value, elements[at] if at < len(elements) else None, sorts=sorts) for at, value in enumerate(new)
        ]
    return new


def _result(entry: Mapping[str, Any]) -> Result:
    field, file, reference = (_mapping(entry.get(name)) for name in ("field", "file", "resourceRef"))
    index = file.get("index")
    names = {**_mapping(reference.get("metadata")), **reference}
    resource = tuple(str(names.get(name) or "") for name in ("apiVersion", "kind", "namespace", "name"))
    return Result(
        message=str(entry.get("message") or ""),
        severity=_SEVERITIES.get(entry.get("severity"), "info"),
        resource=(resource[0], resource[1], resource[2], resource[3]) if any(resource) else None,
        field=str(field.get("path") or ""),
        current=field.get("currentValue"),
        proposed=field.get("proposedValue", field.get("suggestedValue")),
        file=str(file.get("path") or ""),
        index=index if isinstance(index, int) else 0,
        tags=tuple(sorted(_tags(entry.get("tags")))),
    )


def _tags(tags: Any) -> Iterator[tuple[str, str]]:
    return ((str(key), str(value)) for key, value in _mapping(tags).items())


def _mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}
