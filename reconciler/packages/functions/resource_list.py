"""The ResourceList format: the input and output of functions that run outside of this process or in a script.

Starting such functions is in `reconciler.runners`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from posixpath import normpath
from typing import Any

import re2

from reconciler.krm.json_text import parse_strict_json
from reconciler.krm.yaml import DataPath, YamlError, YamlLimits, emit, parse_yaml
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionOutput,
    FunctionResult,
    Item,
    ResultSeverity,
    format_scalar,
)
from reconciler.packages.functions.limits import find_items_error
from reconciler.packages.resource import INDEX_ANNOTATIONS, PATH_ANNOTATIONS

_MAX_LOG_LENGTH = 4_000
_COLORS = re2.compile(r"\x1b\[[0-9;?]*[A-Za-z]")
_CONTROL = re2.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
# The timestamps of Go's log, klog and most other loggers at the beginning of a line.
_TIMESTAMP = re2.compile(
    r"(?m)^(?:\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+)[ \t]*"
)


def clean_log(text: str, folder: str = "") -> str:
    """Return log text without control characters, timestamps at line starts, and the temporary folder of the call.

    The text is written to status files, and equal inputs must produce equal bytes.
    """
    text = _CONTROL.sub("", _COLORS.sub("", text.replace("\r\n", "\n")))
    text = _TIMESTAMP.sub("", text.replace(folder, ".") if folder else text).strip()
    return text if len(text) <= _MAX_LOG_LENGTH else f"{text[:_MAX_LOG_LENGTH]}…"


ID_ANNOTATIONS = (
    "internal.config.kubernetes.io/kpt-resource-id",
    "internal.config.kubernetes.io/id",
    "config.k8s.io/id",
)
_PACKAGE_PATH = "internal.config.kubernetes.io/package-path"
_SEQUENCE_INDENT = "internal.config.kubernetes.io/seqindent"
_INTERNAL_ANNOTATIONS = frozenset(
    (*PATH_ANNOTATIONS, *INDEX_ANNOTATIONS, *ID_ANNOTATIONS, _PACKAGE_PATH, _SEQUENCE_INDENT)
)
# No file has more than nine digits of documents.
_INDEX = re2.compile(r"[0-9]{1,9}")
_SEVERITIES: Mapping[object, ResultSeverity] = {"error": "error", "warning": "warning"}


def build_resource_list(items: Sequence[Item], config: FunctionConfig | None) -> dict[str, Any]:
    """Return the ResourceList that a function reads. Every item has its path, index and id as annotations.

    The result shares its values with the items and is read-only. Interpreters and processes get a copy of it.
    """
    return {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [_add_internal_annotations(item, number) for number, item in enumerate(items)],
        "functionConfig": dict(config or {}),
    }


def read_returned_items(items: Sequence[Item], returned: Any, *, sort_new_keys: bool = True) -> tuple[Item, ...] | str:
    """Return the items of the document that a function wrote, or an error message.

    Items are matched by id. Items without an id or with a repeated id are new. New keys are sorted, or keep the order
    of the document without `sort_new_keys`.
    """
    if error := find_items_error(returned):
        return error
    entries = returned["items"]
    given_items = {str(number): item for number, item in enumerate(items)}
    return tuple(_read_item(given_items, entry, sort_new_keys=sort_new_keys) for entry in entries)


def read_returned_results(returned: Any) -> tuple[FunctionResult, ...]:
    """Return the results of the document that a function wrote: a list, or a mapping with `items`, or legacy forms."""
    results = returned.get("results") if isinstance(returned, Mapping) else None
    entries = results.get("items") if isinstance(results, Mapping) else results
    return (
        tuple(_read_result(entry) for entry in entries if isinstance(entry, Mapping))
        if isinstance(entries, list)
        else ()
    )


def _add_internal_annotations(item: Item, number: int) -> Any:
    data = item.data
    if not isinstance(data, dict):
        return data
    metadata = {} if data.get("metadata") is None else data["metadata"]
    if not isinstance(metadata, dict):
        return data
    location = dict.fromkeys(PATH_ANNOTATIONS, item.path) | dict.fromkeys(INDEX_ANNOTATIONS, str(item.index))
    annotations = metadata.get("annotations")
    annotations_of_item = annotations if isinstance(annotations, dict) else {}
    all_annotations = {**annotations_of_item, **location, **dict.fromkeys(ID_ANNOTATIONS, str(number))}
    return {**data, "metadata": {**metadata, "annotations": all_annotations}}


def _read_item(given_items: dict[str, Item], entry: dict[str, Any], *, sort_new_keys: bool) -> Item:
    annotations = _get_annotations(entry)
    item = given_items.pop(next((str(annotations[name]) for name in ID_ANNOTATIONS if name in annotations), ""), None)
    path, index = _read_location(annotations, item)
    data = _remove_internal_annotations(entry, item)
    if item is None:
        return Item("", path, index, order_keys_like(data, None, sort_new_keys=sort_new_keys))
    return (
        item
        if data == item.data
        else item.with_shared_data(order_keys_like(data, item.data, sort_new_keys=sort_new_keys))
    ).with_location(path, index)


def _get_annotations(entry: Mapping[str, Any]) -> Mapping[str, Any]:
    metadata = entry.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    return annotations if isinstance(annotations, Mapping) else {}


def _read_location(annotations: Mapping[str, Any], item: Item | None) -> tuple[str, int]:
    """Return the path and index that an item requests.

    Of the two annotation names, the one with a changed value counts.
    """
    path = _find_changed_text(annotations, PATH_ANNOTATIONS, item.path if item else "")
    index = _find_changed_text(annotations, INDEX_ANNOTATIONS, str(item.index) if item else "")
    normalized_path = normpath(path).lstrip("/") if path else ""
    # A path out of the package is rejected later, with its original text.
    return path if normalized_path.startswith("../") else normalized_path, int(index) if _INDEX.fullmatch(index) else -1


def _find_changed_text(annotations: Mapping[str, Any], names: Sequence[str], old: str) -> str:
    texts = [format_scalar(annotations[name]) or "" for name in names if name in annotations]
    return next((text for text in texts if text != old), old)


def _remove_internal_annotations(entry: dict[str, Any], item: Item | None) -> dict[str, Any]:
    metadata = entry.get("metadata")
    annotations = metadata.get("annotations") if isinstance(metadata, Mapping) else None
    if not isinstance(metadata, Mapping) or not isinstance(annotations, Mapping):
        return entry
    original_annotations = item.annotations if item else {}
    # Annotations that were in the package stay, even if they have the internal names.
    remaining = {
        key: original_annotations.get(key) if key in _INTERNAL_ANNOTATIONS else value
        for key, value in annotations.items()
    }
    remaining = {
        key: value
        for key, value in remaining.items()
        if key not in _INTERNAL_ANNOTATIONS or key in original_annotations
    }
    # A mapping that only contained internal annotations is removed. A mapping that was empty before stays.
    if remaining or (item and item.metadata.get("annotations") == {}):
        return {**entry, "metadata": {**metadata, "annotations": remaining}}
    other_metadata = {key: value for key, value in metadata.items() if key != "annotations"}
    if other_metadata or item is None or isinstance(item.data.get("metadata"), Mapping):
        return {**entry, "metadata": other_metadata}
    # A resource without metadata, such as a Kustomization, got its metadata from `_add_internal_annotations`.
    other_fields = {key: value for key, value in entry.items() if key != "metadata"}
    return other_fields | ({"metadata": None} if "metadata" in item.data else {})


def order_keys_like(new: Any, old: Any, *, sort_new_keys: bool = True) -> Any:
    """Return data with the key order of `old`.

    New keys follow, sorted as by kpt's functions or in the order of `new`.
    """
    if isinstance(new, dict):
        old_mapping = old if isinstance(old, dict) else {}
        added_keys = [key for key in new if key not in old_mapping]
        keys = [
            *(key for key in old_mapping if key in new),
            *(sorted(added_keys, key=str) if sort_new_keys else added_keys),
        ]
        return {key: order_keys_like(new[key], old_mapping.get(key), sort_new_keys=sort_new_keys) for key in keys}
    if isinstance(new, list):
        elements = old if isinstance(old, list) else []
        return [
            order_keys_like(value, elements[index] if index < len(elements) else None, sort_new_keys=sort_new_keys)
            for index, value in enumerate(new)
        ]
    return new


def _read_result(entry: Mapping[str, Any]) -> FunctionResult:
    field, file, reference = (_get_mapping(entry.get(name)) for name in ("field", "file", "resourceRef"))
    index = file.get("index")
    names = {**_get_mapping(reference.get("metadata")), **reference}
    resource = tuple(str(names.get(name) or "") for name in ("apiVersion", "kind", "namespace", "name"))
    return FunctionResult(
        message=str(entry.get("message") or ""),
        severity=_SEVERITIES.get(entry.get("severity"), "info"),
        resource=(resource[0], resource[1], resource[2], resource[3]) if any(resource) else None,
        field=str(field.get("path") or ""),
        current=field.get("currentValue"),
        proposed=field.get("proposedValue", field.get("suggestedValue")),
        file=str(file.get("path") or ""),
        index=index if isinstance(index, int) else 0,
        tags=tuple(sorted(_read_tags(entry.get("tags")))),
    )


def _read_tags(tags: Any) -> Iterator[tuple[str, str]]:
    return ((str(key), str(value)) for key, value in _get_mapping(tags).items())


def _get_mapping(value: Any) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


_GROUP = "config.kubernetes.io/"
_INVALID_OUTPUT = "its output must be a ResourceList of config.kubernetes.io/v1"
# An item of a ResourceList is two levels deeper than in its file.
_MAX_DEPTH = YamlLimits().depth + 2
_MAX_ERROR_LENGTH = 500


@dataclass(frozen=True)
class ProcessResponse:
    """Exit code, standard output and cleaned error output of a function call."""

    exit_code: int
    stdout: bytes
    log: str = ""


@dataclass(frozen=True)
class _ParsedOutput:
    """The document that a function wrote, and its line comments by path."""

    data: Mapping[str, Any]
    comments: Mapping[DataPath, str]


def format_request(items: Sequence[Item], config: FunctionConfig | None) -> str:
    """Return the ResourceList that a function reads as YAML. Line comments are kept."""
    resource_list = build_resource_list(items, config)
    entries = [_format_entry(item, data) for item, data in zip(items, resource_list["items"], strict=True)]
    header = emit({"apiVersion": resource_list["apiVersion"], "kind": resource_list["kind"]})
    body = "".join(["items:\n", *entries]) if entries else "items: []\n"
    return header + body + emit({"functionConfig": resource_list["functionConfig"]})


def read_response(items: Sequence[Item], response: ProcessResponse, max_bytes: int) -> FunctionOutput:
    """Return the output of a function from its response.

    An exit code other than 0 is a failure; the results are kept. Output that is not a ResourceList, or cannot be
    written to files, is rejected.
    """
    parsed = _parse_output(response.stdout, max_bytes)
    results = read_returned_results(parsed.data) if isinstance(parsed, _ParsedOutput) else ()
    if response.exit_code:
        # Some functions write their error message to standard output.
        log = response.log or (clean_log(response.stdout.decode(errors="replace")) if isinstance(parsed, str) else "")
        return _create_failed_output(items, response, results, _describe_exit(response.exit_code, log))
    if isinstance(parsed, str):
        return _create_failed_output(items, response, (), parsed)
    returned_list = read_returned_items(items, parsed.data, sort_new_keys=False)
    if isinstance(returned_list, str):
        return _create_failed_output(items, response, results, returned_list)
    return FunctionOutput(tuple(_apply_comments(returned_list, parsed.comments)), results, log=response.log)


def reject_response(items: Sequence[Item], log: str, reason: str) -> FunctionOutput:
    """Return the failed output of a function whose response was rejected before it was read."""
    return FunctionOutput(tuple(items), has_failed=True, log=log, exit_code=1, error=reason)


def _create_failed_output(
    items: Sequence[Item], response: ProcessResponse, results: tuple[FunctionResult, ...], error: str
) -> FunctionOutput:
    return FunctionOutput(
        tuple(items), results, has_failed=True, log=response.log, exit_code=response.exit_code or 1, error=error
    )


def _describe_exit(code: int, log: str) -> str:
    message = "; ".join(message.strip() for message in log.splitlines() if message.strip())
    shortened = message if len(message) <= _MAX_ERROR_LENGTH else f"{message[:_MAX_ERROR_LENGTH]}…"
    return f"it ended with exit code {code}" + (f": {shortened}" if shortened else "")


def _format_entry(item: Item, data: Any) -> str:
    """Return one entry of the list: the text of its document, indented.

    If that changes its meaning, format the data again.
    """
    text = _indent_as_entry(item.document.with_data(data).text)
    try:
        documents = parse_yaml(text).documents
    except YamlError:
        documents = ()
    # YAML directives, and line breaks that only YAML defines, cannot be indented.
    return text if [document.data for document in documents] == [[data]] else _indent_as_entry(emit(data))


def _indent_as_entry(text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(["-", *(f"  {line}" if line.strip() else line for line in lines)]) + "\n"


def _parse_output(text: bytes, max_bytes: int) -> _ParsedOutput | str:
    """Return the document that a function wrote, or an error message."""
    parsed = _parse_json(text) or _parse_yaml(text, max_bytes)
    if isinstance(parsed, str):
        return f"{_INVALID_OUTPUT}: {parsed}"
    kind, version = parsed.data.get("kind"), str(parsed.data.get("apiVersion"))
    if kind != "ResourceList" or not version.startswith(_GROUP):
        return f'{_INVALID_OUTPUT}, not "{version} {kind}"'
    return parsed


def _parse_json(text: bytes) -> _ParsedOutput | str | None:
    """Return a JSON document, or an error message; None if the text may be YAML."""
    if not text.lstrip().startswith(b"{"):
        return None
    try:
        data = parse_strict_json(text)
        # A file cannot contain half of a surrogate pair.
        json.dumps(data, ensure_ascii=False).encode()
    except json.JSONDecodeError:
        return None
    except ValueError as error:
        return str(error)
    except RecursionError:
        return "it is nested too deeply"
    return _ParsedOutput(data, {})


def _parse_yaml(text: bytes, max_bytes: int) -> _ParsedOutput | str:
    try:
        documents = parse_yaml(text, YamlLimits(file_bytes=max_bytes, depth=_MAX_DEPTH)).documents
    except YamlError as error:
        return f"line {error.line}: {error.message}"
    if len(documents) != 1:
        return f"it must be one document, not {len(documents)}"
    data = documents[0].data
    if not isinstance(data, dict):
        return f"it must be a mapping, not {type(data).__name__}"
    return _ParsedOutput(data, documents[0].comments())


def _apply_comments(items: Iterable[Item], comments: Mapping[DataPath, str]) -> Iterator[Item]:
    """Yield the items with the comments that the function wrote. Comments that it dropped are still in their documents.

    An item keeps its own text except for the changed values, so that a comment never moves to another resource (kpt
    issue 4211).
    """
    by_item: dict[Any, list[tuple[DataPath, str]]] = {}
    for path, comment in comments.items():
        if len(path) > 2 and path[0] == "items":
            by_item.setdefault(path[1], []).append((path[2:], comment))
    for number, item in enumerate(items):
        for path, comment in by_item.get(number, ()):
            item = _set_comment(item, path, comment)
        yield item


def _set_comment(item: Item, path: DataPath, comment: str) -> Item:
    if item.document.comment(path) == comment:
        return item
    try:
        return item.with_comment(path, comment)
    except YamlError:
        # The comment belongs to an internal annotation, or its value is in flow style and has no place for a comment.
        return item
