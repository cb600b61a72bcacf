"""The ResourceList format: the input and output of scripts, and of functions that run outside of this process.

The code that starts these functions is in `reconciler.runners`.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from posixpath import normpath
from typing import Any

import re2

from reconciler.krm.json_text import parse_strict_json
from reconciler.krm.yaml import DataPath, YamlError, YamlLimits, emit, parse_yaml
from reconciler.lazy_dataclasses import dataclass
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
# Timestamps at the beginning of a line, in the formats of the Go package log, klog and other loggers.
_TIMESTAMP = re2.compile(
    r"(?m)^(?:\d{4}[/-]\d\d[/-]\d\d[T ]\d\d:\d\d:\d\d(?:[.,]\d+)?(?:Z|[+-]\d\d:?\d\d)?"
    r"|[IWEF]\d{4} \d\d:\d\d:\d\d\.\d+ +\d+)[ \t]*"
)


def clean_log(text: str, folder: str = "") -> str:
    """Remove control characters, timestamps at the start of lines, and the path of the temporary folder from a log.

    Status files contain the log. Equal input must give an equal status file, and therefore an equal log.
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
# An index has at most nine digits, because no file has more than a billion documents.
_INDEX = re2.compile(r"[0-9]{1,9}")
_SEVERITIES: Mapping[object, ResultSeverity] = {"error": "error", "warning": "warning"}


def build_resource_list(items: Sequence[Item], config: FunctionConfig | None) -> dict[str, Any]:
    """Return the ResourceList that a function receives. Annotations of each item contain its path, index and id.

    Do not change the result, because it contains values of the items. Functions receive a serialized copy.
    """
    return {
        "apiVersion": "config.kubernetes.io/v1",
        "kind": "ResourceList",
        "items": [_add_internal_annotations(item, number) for number, item in enumerate(items)],
        "functionConfig": dict(config or {}),
    }


def read_returned_items(items: Sequence[Item], returned: Any, *, sort_new_keys: bool = True) -> tuple[Item, ...] | str:
    """Read the items of the ResourceList that a function returned. Return an error message if the list is invalid.

    A returned item replaces the input item with the same id. Items without an id, or with a repeated id, are new.

    Args:
        items: The input items. The id of an item is its position in this sequence.
        sort_new_keys: Whether to sort the keys that the function added to a mapping. If false, they keep the returned
            order.
    """
    if error := find_items_error(returned):
        return error
    entries = returned["items"]
    given_items = {str(number): item for number, item in enumerate(items)}
    return tuple(_read_item(given_items, entry, sort_new_keys=sort_new_keys) for entry in entries)


def read_returned_results(returned: Any) -> tuple[FunctionResult, ...]:
    """Read the results of the ResourceList that a function returned: a list, or a mapping with the list in `items`."""
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
    """Return the file path and the document index from the annotations of an item that a function returned.

    kpt has two annotations for the path and two for the index. If the function changed one of the two, the changed
    value is used. `item` contains the values before the change.
    """
    path = _find_changed_text(annotations, PATH_ANNOTATIONS, item.path if item else "")
    index = _find_changed_text(annotations, INDEX_ANNOTATIONS, str(item.index) if item else "")
    normalized_path = normpath(path).lstrip("/") if path else ""
    # Keep a path outside of the package unchanged, because a later check rejects it with the original path in the
    # message.
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
    # Restore the original values of internal annotations that the package itself contained. Remove all other internal
    # annotations.
    remaining = {
        key: original_annotations.get(key) if key in _INTERNAL_ANNOTATIONS else value
        for key, value in annotations.items()
    }
    remaining = {
        key: value
        for key, value in remaining.items()
        if key not in _INTERNAL_ANNOTATIONS or key in original_annotations
    }
    # Remove `annotations` if it contained only internal annotations. However, if the input item had an empty field
    # `annotations`, keep this field.
    if remaining or (item and item.metadata.get("annotations") == {}):
        return {**entry, "metadata": {**metadata, "annotations": remaining}}
    other_metadata = {key: value for key, value in metadata.items() if key != "annotations"}
    if other_metadata or item is None or isinstance(item.data.get("metadata"), Mapping):
        return {**entry, "metadata": other_metadata}
    # Remove `metadata` if the input item, e.g. a Kustomization, had no metadata: it was added for internal annotations.
    other_fields = {key: value for key, value in entry.items() if key != "metadata"}
    return other_fields | ({"metadata": None} if "metadata" in item.data else {})


def order_keys_like(new: Any, old: Any, *, sort_new_keys: bool = True) -> Any:
    """Return `new` with its keys in the order of `old`. New keys follow the keys of `old`.

    If `sort_new_keys` is true, new keys are sorted as in kpt. If `sort_new_keys` is false, new keys have the order of
    `new`.
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
_INVALID_OUTPUT = "the output of the function must be a ResourceList of config.kubernetes.io/v1"
# Allow two more levels, because a resource is nested two levels deeper in a ResourceList than in its file.
_MAX_DEPTH = YamlLimits().depth + 2
_MAX_ERROR_LENGTH = 500


@dataclass(frozen=True)
class ProcessResponse:
    """The exit code, the standard output and the cleaned error output of an external function."""

    exit_code: int
    stdout: bytes
    log: str = ""


@dataclass(frozen=True)
class _ParsedOutput:
    """The ResourceList that a function returned. `comments` maps paths of fields to the line comments of the fields."""

    data: Mapping[str, Any]
    comments: Mapping[DataPath, str]


def format_request(items: Sequence[Item], config: FunctionConfig | None) -> str:
    """Return the ResourceList that an external function receives as YAML text. Line comments of the items are kept."""
    resource_list = build_resource_list(items, config)
    entries = [_format_entry(item, data) for item, data in zip(items, resource_list["items"], strict=True)]
    header = emit({"apiVersion": resource_list["apiVersion"], "kind": resource_list["kind"]})
    body = "".join(["items:\n", *entries]) if entries else "items: []\n"
    return header + body + emit({"functionConfig": resource_list["functionConfig"]})


def read_response(items: Sequence[Item], response: ProcessResponse, max_bytes: int) -> FunctionOutput:
    """Convert the response of an external function into a function output.

    An exit code other than 0 is a failure. The results of the function are kept in this case. Output that is not a
    ResourceList, or that cannot be written to files, is a failure too.
    """
    parsed = _parse_output(response.stdout, max_bytes)
    results = read_returned_results(parsed.data) if isinstance(parsed, _ParsedOutput) else ()
    if response.exit_code:
        # If the error output is empty, read the message from standard output, because some functions write it there.
        log = response.log or (clean_log(response.stdout.decode(errors="replace")) if isinstance(parsed, str) else "")
        return _create_failed_output(items, response, results, _describe_exit(response.exit_code, log))
    if isinstance(parsed, str):
        return _create_failed_output(items, response, (), parsed)
    returned_list = read_returned_items(items, parsed.data, sort_new_keys=False)
    if isinstance(returned_list, str):
        return _create_failed_output(items, response, results, returned_list)
    return FunctionOutput(tuple(_apply_comments(returned_list, parsed.comments)), results, log=response.log)


def reject_response(items: Sequence[Item], log: str, reason: str) -> FunctionOutput:
    """Return a failed output for a function whose response is rejected without being parsed."""
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
    return f"the function ended with exit code {code}" + (f": {shortened}" if shortened else "")


def _format_entry(item: Item, data: Any) -> str:
    """Return the YAML text of one item of the ResourceList: the indented text of its document.

    If the indentation changes the data, the data is formatted again.
    """
    text = _indent_as_entry(item.document.with_data(data).text)
    try:
        documents = parse_yaml(text).documents
    except YamlError:
        documents = ()
    # Format the data again if YAML directives, or line breaks other than "\n", made the indented text invalid or
    # changed its data.
    return text if [document.data for document in documents] == [[data]] else _indent_as_entry(emit(data))


def _indent_as_entry(text: str) -> str:
    lines = text.removesuffix("\n").split("\n")
    return "\n".join(["-", *(f"  {line}" if line.strip() else line for line in lines)]) + "\n"


def _parse_output(text: bytes, max_bytes: int) -> _ParsedOutput | str:
    """Return the ResourceList in the output of a function, or an error message."""
    parsed = _parse_json(text) or _parse_yaml(text, max_bytes)
    if isinstance(parsed, str):
        return f"{_INVALID_OUTPUT}: {parsed}"
    kind, version = parsed.data.get("kind"), str(parsed.data.get("apiVersion"))
    if kind != "ResourceList" or not version.startswith(_GROUP):
        return f'{_INVALID_OUTPUT}, but is "{version} {kind}"'
    return parsed


def _parse_json(text: bytes) -> _ParsedOutput | str | None:
    """Parse the text as JSON. Return an error message if the text is invalid, or None if the text can be YAML."""
    if not text.lstrip().startswith(b"{"):
        return None
    try:
        data = parse_strict_json(text)
        # Reject half of a surrogate pair, because a file cannot contain it.
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
        return f"it must contain one document, but contains {len(documents)}"
    data = documents[0].data
    if not isinstance(data, dict):
        return f"it must be a mapping, but is {type(data).__name__}"
    return _ParsedOutput(data, documents[0].comments())


def _apply_comments(items: Iterable[Item], comments: Mapping[DataPath, str]) -> Iterator[Item]:
    """Set the line comments that a function returned. A comment is kept even if the function did not return it.

    Each comment is set in the document of its own item, so that it never moves to another resource (kpt issue 4211).
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
        # Skip the comment if its field is an internal annotation, or if the value allows no line comment.
        return item
