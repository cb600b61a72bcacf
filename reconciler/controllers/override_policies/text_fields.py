"""The overrider `fields`, which edits YAML, JSON, TOML or ini text in a string of a resource.

The editors keep as much of the original text as possible.
"""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Mapping
from typing import Any, Protocol

from reconciler.controllers.nested_values import copy_with_value, get_value
from reconciler.controllers.override_policies.codes import PolicyCodes
from reconciler.controllers.override_policies.json_patch import MissingPath, apply_patch_operation, resolve_path
from reconciler.controllers.override_policies.model import FieldItem, OverrideEffect, TextFormat
from reconciler.controllers.override_policies.text_formats import IniEditor, TextFormatError, TomlEditor
from reconciler.controllers.provenance import EmbeddedChange
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.yaml import DataPath, YamlError, YamlFile, parse_yaml
from reconciler.packages.parsing import edit_document, format_json
from reconciler.packages.sops import SopsMacError
from reconciler.packages.source_codes import SourceCodes
from reconciler.redaction import is_secret


class TextEditor(Protocol):
    """Interface of an editor for one text format, e.g. YAML."""

    def read(self, text: str) -> Any:
        """Return the data that a text contains.

        Raises:
            TextFormatError: The text is invalid.
            YamlError: The text is invalid YAML.
        """
        ...

    def edit(self, text: str, data: Any) -> str:
        """Return the text after it is changed to contain `data`.

        Raises:
            TextFormatError: The text cannot be changed.
            YamlError: The data cannot be written as YAML.
        """
        ...


class YamlEditor:
    """Editor of YAML text. It keeps comments, quotes and the order of keys."""

    def read(self, text: str) -> Any:
        """Return the data of the text, which must contain exactly one YAML document."""
        return _parse_document(text).documents[0].data

    def edit(self, text: str, data: Any) -> str:
        """Change the text as little as possible so that it contains `data`. Return the new text."""
        file = _parse_document(text)
        return file.replace(0, edit_document(file.documents[0], data)).to_bytes().decode()


class JsonEditor:
    """Editor of JSON text. It keeps unchanged lines if possible. Otherwise, it keeps only the indentation."""

    def read(self, text: str) -> Any:
        """Return the data of the text. Duplicate keys are an error."""
        try:
            return json.loads(text, object_pairs_hook=_reject_duplicate_keys)
        except (json.JSONDecodeError, RecursionError) as error:
            raise TextFormatError(str(error)) from error

    def edit(self, text: str, data: Any) -> str:
        """Return the text after it is changed to contain `data`.

        The text is edited as YAML, because JSON is also YAML. If the result is not JSON, a new text is written.
        """
        try:
            edited = YamlEditor().edit(text, data)
            if json.loads(edited) == data:
                return edited
        except SopsMacError:
            raise
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
        raise TextFormatError(f"the text contains {len(file.documents)} documents")
    return file


def _format_json(text: str, data: Any) -> str:
    try:
        return format_json(data, text.encode()).decode()
    except UnicodeEncodeError as error:
        raise TextFormatError("the text contains a lone surrogate, which UTF-8 cannot encode") from error


def _reject_duplicate_keys(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    data = dict(pairs)
    if len(data) < len(pairs):
        raise TextFormatError("an object has a duplicate key")
    return data


def apply_field(data: Any, item: FieldItem) -> OverrideEffect:
    """Return the resource after a change of the YAML, JSON, TOML or ini text in one of its strings."""
    path = resolve_path(data, item.path)
    if isinstance(path, MissingPath):
        return OverrideEffect(
            data,
            (
                ResourceIssue(
                    PolicyCodes.FIELD_PATH_INVALID, f"fieldPath must point to a string, but {path.reason}", path.path
                ),
            ),
        )
    text = get_value(data, path)
    if not isinstance(text, str):
        message = f"fieldPath must point to a string, but {format_pointer(path)} is not a string"
        return OverrideEffect(data, (ResourceIssue(PolicyCodes.FIELD_PATH_INVALID, message, path),))
    is_encoded = is_secret(data) and path[0] == "data"
    try:
        return _edit_text(data, path, _decode_base64(text) if is_encoded else text, item, is_encoded=is_encoded)
    except SopsMacError as error:
        message = (
            "the text of the field contains a SOPS document, which must not change at"
            f" {format_pointer(error.path)}, because {error.message}"
        )
        return OverrideEffect(data, (ResourceIssue(SourceCodes.SOPS_MAC_BROKEN, message, path),))
    except (TextFormatError, YamlError) as error:
        message = f"the text at {format_pointer(path)} must be one valid {item.format.upper()} document"
        return OverrideEffect(data, (_create_text_issue(data, path, message, error),))


def _create_text_issue(data: Any, path: DataPath, message: str, error: Exception) -> ResourceIssue:
    # Hide the message of the parser for a Secret, because the message can quote the text.
    reason = "" if is_secret(data) else f", but cannot be parsed: {error}"
    return ResourceIssue(PolicyCodes.FIELD_UNPARSABLE, f"{message}{reason}", path)


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
    try:
        edited = editor.edit(text, effect.data)
    except SopsMacError:
        raise
    except (TextFormatError, YamlError) as error:
        message = f"the {item.format.upper()} text at {format_pointer(path)} cannot be changed"
        return OverrideEffect(data, (_create_text_issue(data, path, message, error),))
    new_text = base64.b64encode(edited.encode()).decode() if is_encoded else edited
    return OverrideEffect(copy_with_value(data, path, new_text), issues, EmbeddedChange(path, before, effect.data))


def _relocate_issue(issue: ResourceIssue, path: DataPath) -> ResourceIssue:
    return ResourceIssue(issue.code, f"in the text at {format_pointer(path)}, {issue.message}", path, issue.value)


def _decode_base64(text: str) -> str:
    try:
        return base64.b64decode("".join(text.split()), validate=True).decode()
    except (binascii.Error, UnicodeDecodeError) as error:
        raise TextFormatError("the data of a Secret must be UTF-8 text in base64") from error
