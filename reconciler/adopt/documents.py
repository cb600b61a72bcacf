"""The YAML documents in the imported files, with their paths and lines."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from reconciler.adopt.resources import YAML_SUFFIXES, get_list_items
from reconciler.adopt.units import NotImported
from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import DataPath, Document
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.text import format_path_text
from reconciler.packages.parsing import ParseFailure, parse_cached


@dataclass(frozen=True)
class SourceDocument:
    """One object in the imported files.

    Attributes:
        path: The path of the object in its document. The document can be a list of objects.
    """

    file: str
    document: Document
    path: DataPath = ()

    @property
    def data(self) -> Mapping[str, Any]:
        """The content of the object."""
        content: Any = self.document.data
        for step in self.path:
            content = content[step]
        return cast("Mapping[str, Any]", content)

    @property
    def name(self) -> str:
        """The name of the object."""
        return str(get_mapping(self.data, "metadata").get("name", ""))

    @property
    def spec(self) -> Mapping[str, Any]:
        """The field `spec`, or an empty mapping."""
        return get_mapping(self.data, "spec")

    def report(self, path: DataPath, reason: str, suggestion: str) -> NotImported:
        """Return the `NotImported` entry for a field that has no equivalent."""
        full_path = (*self.path, *path)
        field = format_path_text(full_path) if full_path else ""
        return NotImported(self.file, reason, suggestion, self.document.find_line(full_path), field)


def read_documents(files: FileTree, group: str) -> tuple[list[SourceDocument], list[NotImported]]:
    """Return the objects in all files whose text contains the API group `group`.

    Also return the files that cannot be parsed. Ignore the templates of charts.
    """
    paths = (path for path, file in files.items() if path.endswith(YAML_SUFFIXES) and group.encode() in file.data)
    return parse_objects(files, (path for path in paths if not _is_chart_template(files, path)))


def _is_chart_template(files: FileTree, path: str) -> bool:
    chart, has_templates, _ = path.rpartition("templates/")
    return bool(has_templates) and f"{chart}Chart.yaml" in files


def parse_objects(files: FileTree, paths: Iterable[str]) -> tuple[list[SourceDocument], list[NotImported]]:
    """Return the objects in files, and the files that cannot be parsed. Documents without a kind are ignored.

    For a list of objects, its items are returned instead of the list.
    """
    documents: list[SourceDocument] = []
    unreadable: list[NotImported] = []
    for path in paths:
        parsed = parse_cached(files[path].data)
        if isinstance(parsed, ParseFailure):
            reason = f"the file cannot be parsed: {parsed.message}"
            unreadable.append(NotImported(path, reason, "Correct the file.", parsed.line))
            continue
        for document in parsed.documents:
            items = get_list_items(document.data)
            listed = [("items", index) for index in range(len(items))] if items is not None else [()]
            found = (SourceDocument(path, document, item_path) for item_path in listed)
            documents += (entry for entry in found if isinstance(get_mapping(entry.data).get("kind"), str))
    return documents, unreadable


def has_kind(document: SourceDocument, group: str, kinds: Iterable[str]) -> bool:
    """Return whether the object has one of the kinds of an API group."""
    api_version = document.data.get("apiVersion")
    return isinstance(api_version, str) and api_version.startswith(f"{group}/") and document.data["kind"] in kinds


def get_mapping(data: Any, *path: str) -> Mapping[str, Any]:
    """Return the mapping at `path`. Return an empty mapping if a step of `path` does not exist or is not a mapping."""
    for step in path:
        data = data.get(step) if isinstance(data, Mapping) else None
    return data if isinstance(data, Mapping) else {}


def get_list(data: Any, name: str) -> list[Any]:
    """Return the list in the field `name`. Return an empty list if the field does not exist or is not a list."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return value if isinstance(value, list) else []


def get_text(data: Any, name: str) -> str:
    """Return the text in the field `name`. Numbers are converted to text. Return "" if there is no text or number."""
    value = data.get(name) if isinstance(data, Mapping) else None
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else ""


def find_wrong_type(data: Mapping[str, Any], types: Mapping[str, type]) -> tuple[str, str] | None:
    """Return the name of the first field with a value of a wrong type, and the reason. Empty values are ignored."""
    for name, expected in types.items():
        value = data.get(name)
        if value and not isinstance(value, expected):
            return (
                name,
                f"{name} must be {_TYPE_NAMES[expected]}, but is {_TYPE_NAMES.get(type(value), 'another type')}",
            )
    return None


_TYPE_NAMES: Mapping[type, str] = {
    list: "a list",
    dict: "a mapping",
    str: "a string",
    bool: "a boolean",
    int: "a number",
    float: "a number",
}
