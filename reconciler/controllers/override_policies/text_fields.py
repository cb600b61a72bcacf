"""The overrider fields: edits of YAML, JSON, TOML or ini text inside a string, with minimal changes to the text."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Protocol

from reconciler.controllers.nested_values import copy_with_value, get_value
from reconciler.controllers.override_policies.codes import FIELD_PATH_INVALID, FIELD_UNPARSABLE
from reconciler.controllers.override_policies.json_patch import MissingPath, apply_patch_operation, resolve_path
from reconciler.controllers.override_policies.model import FieldItem, OverrideEffect, TextFormat
from reconciler.controllers.override_policies.text_formats import IniEditor, TextFormatError, TomlEditor
from reconciler.controllers.provenance import EmbeddedChange
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import DataPath, YamlError, YamlFile, parse_yaml
from reconciler.packages.parsing import edit_document, format_json
from reconciler.redaction import is_secret


class TextEditor(Protocol):
    """Reads and edits one format of text."""

    def read(self, text: str) -> Any:
        """Return the data of the text; raises TextFormatError or YamlError."""
        ...

    def edit(self, text: str, data: Any) -> str:
        """Return the text changed to contain `data`; raises TextFormatError or YamlError."""
        ...


class YamlEditor:
    """YAML; comments, quotes and order are kept."""

    def read(self, text: str) -> Any:
        """Return the data of the only document."""
        return _parse_document(text).documents[0].data

    def edit(self, text: str, data: Any) -> str:
        """Return the text with the smallest edit."""
        file = _parse_document(text)
        return file.replace(0, edit_document(file.documents[0], data)).to_bytes().decode()


class JsonEditor:
    """JSON; lines are kept if possible, otherwise the indentation is kept."""

    def read(self, text: str) -> Any:
        """Return the value."""
        try:
            return json.loads(text, object_pairs_hook=_reject_duplicate_keys)
        except (json.JSONDecodeError, RecursionError) as error:
            raise TextFormatError(str(error)) from error

    def edit(self, text: str, data: Any) -> str:
        """Return the text edited as YAML, which JSON also is, or written again."""
        try:
            edited = YamlEditor().edit(text, data)
            if json.loads(edited) == data:
                return edited
        except (YamlError, ValueError):
            return _format_json(text, data)
        return _format_json(text, data)


TEXT_EDITORS: Mapping[TextFormat, TextEditor] = {
    "yaml": YamlEditor(),
    "json": JsonEditor(),
    "toml": TomlEditor(),
    "ini": IniEditor(),
}


def _parse_document(text: str) -> YamlFile:
    file = parse_yaml(text)
    if len(file.documents) != 1:
        raise TextFormatError(f"it contains {len(file.documents)} documents")
    return file


def _format_json(text: str, data: Any) -> str:
    try:
        return format_json(data, text.encode()).decode()
    except UnicodeEncodeError as error:
        raise TextFormatError("it contains a lone surrogate, which UTF-8 cannot encode") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise TextFormatError("an object has a duplicate key")
    return data


def apply_field(data: Any, item: FieldItem) -> OverrideEffect:
    """Return the resource with the content of a string patched; the rest of the text is unchanged."""
    path = resolve_path(data, item.path)
    if isinstance(path, MissingPath):
        return OverrideEffect(
            data, (ResourceIssue(FIELD_PATH_INVALID, f"fieldPath must lead to a string: {path.reason}", path.path),)
        )
    text = get_value(data, path)
    if not isinstance(text, str):
        message = f"fieldPath must lead to a string, and {format_pointer(path)} is not a string"
        return OverrideEffect(data, (ResourceIssue(FIELD_PATH_INVALID, message, path),))
    is_encoded = is_secret(data) and path[0] == "data"
    try:
        return _edit_text(data, path, _decode_base64(text) if is_encoded else text, item, is_encoded=is_encoded)
    except (TextFormatError, YamlError) as error:
        # The message of a parser can quote the text, which must not happen for a Secret.
        reason = "" if is_secret(data) else f": {error}"
        return OverrideEffect(
            data, (ResourceIssue(FIELD_UNPARSABLE, f"the text must be one document of {item.format}{reason}", path),)
        )


def _edit_text(data: Any, path: DataPath, text: str, item: FieldItem, *, is_encoded: bool) -> OverrideEffect:
    editor = TEXT_EDITORS[item.format]
    before = editor.read(text)
    effect = OverrideEffect(before)
    for operation in item.operations:
        step_effect = apply_patch_operation(effect.data, operation)
        effect = OverrideEffect(step_effect.data, effect.issues + step_effect.issues)
        if effect.has_errors:
            break
    issues = tuple(_relocate_issue(issue, path) for issue in effect.issues)
    if effect.has_errors or effect.data is before:
        return OverrideEffect(data, issues)
    edited = editor.edit(text, effect.data)
    new_text = base64.b64encode(edited.encode()).decode() if is_encoded else edited
    return OverrideEffect(copy_with_value(data, path, new_text), issues, EmbeddedChange(path, before, effect.data))


def _relocate_issue(issue: ResourceIssue, path: DataPath) -> ResourceIssue:
    location = format_pointer(issue.path) or "its root"
    return ResourceIssue(issue.code, f"inside the text, at {location}: {issue.message}", path, issue.value)


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise TextFormatError("the data of a Secret must be base64 of UTF-8") from error
