"""The loader of the settings: the file, environment variables, and messages about invalid settings.

Only this module reads environment variables as settings.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from types import UnionType
from typing import TYPE_CHECKING, Any, get_args, get_origin

from pydantic import BaseModel, ValidationError
from pydantic_core import ErrorDetails

from reconciler.krm import field_text, yaml
from reconciler.krm.internal_errors import ExpectedError
from reconciler.redaction import MASK, redact_url, redact_urls
from reconciler.settings.all_settings import Settings
from reconciler.settings.declaration import SettingOrigins, SettingPath

if TYPE_CHECKING:
    from reconciler.krm.yaml import Document

ENVIRONMENT_PREFIX = "RECONCILER_"
DEFAULT_FILE = "reconciler.yaml"
# Read these variables, because users of kpt already set them.
_KPT_VARIABLES = {"KRM_FN_RUNTIME": ("functions", "engine"), "KPT_IMAGE_PREFIX": ("functions", "image_prefix")}
# Remove credentials from the values of these fields in messages, because the values are URLs.
_URL_FIELDS = frozenset({"url", "allowed_urls", "api", "dask", "listen"})
_SECRET_NAME = re.compile(r"token|secret|passw|credential|key\Z", re.IGNORECASE)
# Use the type names of YAML in messages instead of the type names of Python.
_TYPE_MESSAGES = {
    "tuple_type": "must be a list",
    "list_type": "must be a list",
    "dict_type": "must be a mapping",
    "string_type": "must be a text",
    "bool_type": "must be true or false",
    "bool_parsing": "must be true or false",
    "int_type": "must be a whole number",
    "int_parsing": "must be a whole number",
    "int_from_float": "must be a whole number",
    "float_type": "must be a number",
    "float_parsing": "must be a number",
}


class SettingsError(ExpectedError):
    """The settings are invalid. The message contains the file, line, setting, value and allowed values."""


def load_settings(file: str | None, environment: Mapping[str, str], folder: Path) -> Settings:
    """Read the settings from a file and from environment variables.

    The file is `file`. If `file` is None, it is `reconciler.yaml` in `folder`, which may be absent. An environment
    variable `RECONCILER_<GROUP>__<KEY>` overrides a setting. KRM_FN_RUNTIME and KPT_IMAGE_PREFIX, which kpt also uses,
    apply only if the file does not set the value. A setting without a value has its default.

    Raises:
        SettingsError: The file cannot be read, or a setting is invalid.
    """
    path = Path(file) if file else folder / DEFAULT_FILE
    if file and not path.is_file():
        raise SettingsError(f"{path}: the settings file must exist and be a regular file")
    document = _read_document(path) if path.is_file() else None
    data = document.data if document else {}
    if not isinstance(data, dict):
        raise SettingsError(
            f"{path}:1: the settings must be a mapping of groups, but they are {field_text.describe_value(data)}"
        )
    merged, variables = _apply_environment(_remove_empty_values(data), environment)
    origins = SettingOrigins(path, document, variables)
    try:
        settings = Settings.model_validate(merged)
    except ValidationError as error:
        raise SettingsError("\n".join(_format_error(detail, origins) for detail in error.errors())) from None
    if errors := list(_check_forge_credentials(settings, origins)):
        raise SettingsError("\n".join(errors))
    return settings.with_origins(origins)


def _check_forge_credentials(settings: Settings, origins: SettingOrigins) -> Iterator[str]:
    """Yield an error for each forge with an API if no setting contains credentials for the API."""
    if any(entry.api for entry in settings.git.credentials):
        return
    for index, host in enumerate(settings.forge.hosts):
        if host.requires_credentials:
            _, source = origins.find(("forge", "hosts", index))
            yield (
                f"{source}: forge.hosts.{index}: must have credentials; add an entry"
                f" to `git.credentials` that matches {field_text.quote_value(host.url)}. Its field `api` must have"
                " `token_file`, or on GitHub"
                " `github_app`"
            )


def build_schema_text() -> str:
    """Return the JSON Schema of the settings file. The file `config/schema.json` contains this text."""
    schema = {"$schema": "https://json-schema.org/draft/2020-12/schema", **Settings.model_json_schema()}
    return json.dumps(schema, indent=2) + "\n"


def _read_document(path: Path) -> Document | None:
    try:
        documents = yaml.parse_yaml(path.read_bytes()).documents
    except yaml.YamlError as error:
        raise SettingsError(f"{path}:{error.line}: {error.message}") from None
    except OSError as error:
        raise SettingsError(f"{path}: the settings file must be readable: {error.strerror}") from None
    if len(documents) > 1:
        raise SettingsError(f"{path}:{documents[1].line}: the settings file must contain one YAML document")
    return documents[0] if documents else None


def _remove_empty_values(data: Mapping[Any, Any]) -> dict[Any, Any]:
    """Remove keys with a null value, such as a group in which all settings are commented out."""
    cleaned = {key: _remove_empty_values(value) if isinstance(value, dict) else value for key, value in data.items()}
    return {key: value for key, value in cleaned.items() if value is not None}


def _apply_environment(
    data: dict[Any, Any], environment: Mapping[str, str]
) -> tuple[dict[Any, Any], dict[SettingPath, str]]:
    """Return the settings with the values of environment variables, and the name of the variable per setting."""
    variables: dict[SettingPath, str] = {}
    for name, (group, key) in _KPT_VARIABLES.items():
        group_data = data.get(group)
        if environment.get(name) and not (isinstance(group_data, dict) and key in group_data):
            data = _set_value(data, (group, key), environment[name])
            variables[group, key] = name
    for name, text in sorted(environment.items()):
        path = tuple(name.removeprefix(ENVIRONMENT_PREFIX).lower().split("__"))
        # Ignore other variables with this prefix, because Kubernetes adds variables such as RECONCILER_PORT to pods if
        # a Service has the name "reconciler".
        if name.startswith(ENVIRONMENT_PREFIX) and path[0] in Settings.model_fields:
            data = _set_value(data, path, _parse_variable(path, text))
            variables[path] = name
    return data, variables


def _set_value(data: object, path: tuple[str, ...], value: object) -> dict[Any, Any]:
    inner = dict(data) if isinstance(data, dict) else {}
    name, *remaining_path = path
    return {**inner, name: _set_value(inner.get(name), tuple(remaining_path), value) if remaining_path else value}


def _parse_variable(path: tuple[str, ...], text: str) -> object:
    """Return the value of an environment variable. For a text setting, return the text. Otherwise, parse it as YAML."""
    group = _find_group(path[:-1])
    field = group.model_fields.get(path[-1]) if group else None
    if field is None or not (field.annotation in (bool, int, float) or get_origin(field.annotation) in (tuple, dict)):
        return text
    try:
        documents = yaml.parse_yaml(text).documents
    except yaml.YamlError:
        return text
    return documents[0].data if documents else text


def _find_group(path: Iterable[Any]) -> type[BaseModel] | None:
    model: type[BaseModel] = Settings
    for name in path:
        if isinstance(name, int):
            # Skip the index of a list, because `model` already is the model of the list elements.
            continue
        field = model.model_fields.get(name)
        annotation = field.annotation if field else None
        # For a list, continue with the model of its elements. For an optional group, continue with its own model.
        annotation = get_args(annotation)[0] if get_origin(annotation) in (tuple, UnionType) else annotation
        if not (isinstance(annotation, type) and issubclass(annotation, BaseModel)):
            return None
        model = annotation
    return model


def _format_error(detail: ErrorDetails, origins: SettingOrigins) -> str:
    location = detail["loc"]
    start = f"{origins.find(location)[1]}: {'.'.join(map(str, location))}"
    value = _redact_value(location, detail["input"])
    match detail["type"]:
        case "extra_forbidden":
            return f"{start}: unknown setting; allowed settings: {_list_settings(location[:-1])}"
        case "model_type":
            return (
                f"{start}: must be a mapping of settings ({_list_settings(location)}), but is"
                f" {field_text.quote_value(value)}"
            )
        case "missing":
            return f"{start}: the setting is required, but it is missing"
        case "value_error":
            message = detail["msg"].removeprefix("Value error, ")
            # Do not add the value if the message already contains it, e.g. the invalid item of a list.
            return (
                f"{start}: {message}"
                if ", but " in message
                else f"{start}: {message}; the value is {field_text.quote_value(value)}"
            )
        case _:
            message = detail["msg"].replace("Input should", "must")
            return f"{start}: {_TYPE_MESSAGES.get(detail['type'], message)}, but is {field_text.quote_value(value)}"


def _redact_value(location: tuple[str | int, ...], value: object) -> object:
    """Return a value for a message. Credentials in URLs and values that may be secrets are removed or masked.

    These values may be secrets:

    - The value of a key for which `_can_show` returns False.
    - Each item of a list, if the setting requires the name of a file.
    """
    if isinstance(value, str):
        is_url = any(name in _URL_FIELDS for name in location)
        return redact_url(value) if is_url else redact_urls(value)
    if isinstance(value, dict):
        return {
            key: _redact_value((*location, key), inner) if _can_show(location, key) else MASK
            for key, inner in value.items()
        }
    if isinstance(value, list):
        is_file = any(str(name).endswith("_file") for name in location)
        return [MASK if is_file else _redact_value(location, element) for element in value]
    return value


def _can_show(location: tuple[str | int, ...], key: object) -> bool:
    """Return whether a message may show the value of a key.

    The rule depends on the mapping that contains the key:

    - A group of settings: only the values of known settings may be shown.
    - A mapping in a setting that requires the name of a file: no value may be shown.
    - Any other mapping: all values may be shown, except the values of keys such as `token` that are typical for
      secrets.
    """
    group = _find_group(location)
    if group:
        return key in group.model_fields
    is_file = any(str(name).endswith("_file") for name in location)
    return not (is_file or _SECRET_NAME.search(str(key)))


def _list_settings(path: Iterable[str | int]) -> str:
    group = _find_group(path)
    return ", ".join(sorted(group.model_fields)) if group else ""
