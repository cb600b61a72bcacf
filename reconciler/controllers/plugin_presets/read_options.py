"""Readers of option lists and of plugin definitions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import cast

from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.plugin_presets.codes import PluginCodes
from reconciler.controllers.plugin_presets.helm_values import check_option_name
from reconciler.controllers.plugin_presets.model import (
    OPTION_TYPES,
    LiteralValue,
    OptionDeclaration,
    OptionEntry,
    OptionExpression,
    OptionList,
    OptionType,
    PluginDefinition,
    SecretRef,
    ValueSource,
)
from reconciler.controllers.plugin_presets.option_types import check_default, check_pattern
from reconciler.controllers.validation import FieldFindings, FieldReader
from reconciler.krm.field_text import format_path, quote_value
from reconciler.krm.findings import Finding, FindingCode, downgrade_to_warning
from reconciler.krm.yaml import DataPath
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, field

_SOURCES = ("value", "valueFrom", "expression")
_ENTRY_FIELDS = ("name", "path", *_SOURCES)
_FROM_FIELDS = ("secret", "key", "ref")
# Report findings with these codes for the Plugins that use the list. Report all other findings for the object that
# contains the list.
_PLUGIN_CODES = {
    code.name
    for code in (
        PluginCodes.DUPLICATE_OPTION,
        PluginCodes.MULTIPLE_VALUE_SOURCES,
        PluginCodes.NO_VALUE_SOURCE,
        PluginCodes.OPTION_NAME_INVALID,
        PluginCodes.SECRET_REF_INCOMPLETE,
        PluginCodes.UNSUPPORTED_VALUE_SOURCE,
    )
}
_CHART_FIELDS = ("name", "repository", "version")
_INTERFACE_FIELDS = ("name", "version")


@dataclass
class OptionFindings:
    """Findings about single options of an object, which do not make the whole object invalid."""

    findings: list[Finding] = field(default_factory=list)


def read_entries(
    fields: FieldReader,
    name: str,
    option_findings: OptionFindings,
    *,
    strict: bool = True,
    duplicate_code: FindingCode = PluginCodes.DUPLICATE_OPTION,
) -> OptionList:
    """Return a list of options, with the errors that concern the Plugins that use the list.

    Errors that concern the object with the list are added to the findings of `fields`.

    Args:
        fields: The reader of the mapping that contains the list.
        name: The name of the field with the list.
        option_findings: The collection to which errors about Plugins and warnings are added.
        strict: Whether unknown fields are errors.
        duplicate_code: The finding code for an option that is in the list twice.
    """
    object_findings = fields.faults
    count_before = len(object_findings.findings)
    known = _ENTRY_FIELDS if strict else None
    readers = read_unquoted_mappings(fields, name, known)
    entries = [entry for reader in readers if (entry := _read_entry(reader, strict=strict))]
    entries = _remove_duplicates(entries, object_findings, option_findings, duplicate_code)
    list_findings = object_findings.findings[count_before:]
    plugin_errors = tuple(finding for finding in list_findings if finding.code in _PLUGIN_CODES)
    object_findings.findings[count_before:] = [
        finding for finding in list_findings if finding.code not in _PLUGIN_CODES
    ]
    option_findings.findings += plugin_errors
    return OptionList(tuple(entries), plugin_errors)


def read_unquoted_mappings(
    fields: FieldReader, name: str, known: Sequence[str] | None, *, quotes: bool = False
) -> Iterator[FieldReader]:
    """Yield a reader for each mapping in a list. A list item that is not a mapping is an error.

    Messages never quote such an item, because it may be a secret. The readers quote values only if `quotes` is True.
    """
    if fields.has_value(name) and not isinstance(fields.data[name], list):
        fields.add_finding(name, "must be a list of mappings")
        return
    for path, item in fields.iterate_items(name):
        if _is_mapping(item, path, fields.faults):
            yield FieldReader(item, path, fields.faults, known, quotes=quotes)


def _is_mapping(value: object, path: DataPath, field_findings: FieldFindings) -> bool:
    if isinstance(value, Mapping):
        return True
    # Do not quote the value in the message, because the value may be a secret.
    field_findings.add(path, "must be a mapping with a name")
    return False


def _read_entry(reader: FieldReader, *, strict: bool) -> OptionEntry | None:
    name, path = reader.read_text("name"), reader.read_text("path")
    if name and path and name != path:
        reader.add_finding(
            "path", f"must be omitted or equal to the name {quote_option_name(name)}", PluginCodes.ALIAS_CONFLICT
        )
    name = name or path
    if not name:
        reader.add_finding("name", "must be a string that is not empty", PluginCodes.OPTION_NAME_INVALID)
    elif error := check_option_name(name):
        reader.add_finding(
            "name" if reader.has_value("name") else "path",
            f"{error}: {quote_option_name(name)}",
            PluginCodes.OPTION_NAME_INVALID,
        )
    source = _read_source(reader, name, strict=strict)
    return OptionEntry(name, source, reader.path) if name and source else None


def quote_option_name(name: str) -> str:
    """Return an option name in quotes for a message, e.g. "a=b" -> "a=…".

    The text after "=" is hidden, because it is a value in Helm's notation `name=value` and may be a secret.
    """
    return quote_value(name if "=" not in name else f"{name.partition('=')[0]}=…")


def _read_source(reader: FieldReader, name: str, *, strict: bool) -> ValueSource | None:
    sources = [source for source in _SOURCES if reader.has_value(source)]
    if not sources:
        reader.faults.add(
            reader.path,
            f"must have one of {', '.join(_SOURCES)} for {quote_option_name(name)}; null is not a value",
            PluginCodes.NO_VALUE_SOURCE,
        )
        return None
    if len(sources) > 1:
        reader.faults.add(
            reader.path,
            f"must have only one of {', '.join(sources)} for {quote_option_name(name)}",
            PluginCodes.MULTIPLE_VALUE_SOURCES,
        )
        return None
    match sources[0]:
        case "value":
            return LiteralValue(reader.data["value"])
        case "expression":
            if isinstance(reader.data["expression"], str):
                return OptionExpression(reader.data["expression"])
            reader.add_finding("expression", "must be a string: put the value in quotes")
            return None
        case _:
            if not isinstance(reader.data["valueFrom"], Mapping):
                reader.add_finding("valueFrom", "must be a mapping that contains secret")
                return None
            return _read_value_from(reader.read_mapping("valueFrom", _FROM_FIELDS if strict else None))


def _read_value_from(reader: FieldReader) -> SecretRef | None:
    if reader.has_value("ref"):
        reader.add_finding(
            "ref", "must be omitted: only references to secrets are supported", PluginCodes.UNSUPPORTED_VALUE_SOURCE
        )
        return None
    secret = reader.data.get("secret")
    if isinstance(secret, str):
        return _create_secret_ref(reader, secret, reader.read_text("key"))
    if secret is not None and not isinstance(secret, Mapping):
        reader.add_finding("secret", "must be a mapping with a name and a key")
        return None
    secret_reader = reader.read_mapping("secret", ("name", "key"))
    name, key = secret_reader.read_text("name"), secret_reader.read_text("key")
    if reader.has_value("key") and reader.data["key"] != key:
        reader.add_finding("key", "must be omitted or equal to the key in secret", PluginCodes.ALIAS_CONFLICT)
    return _create_secret_ref(secret_reader if reader.has_value("secret") else reader, name, key)


def _create_secret_ref(reader: FieldReader, name: str, key: str) -> SecretRef | None:
    for field_name, value in (("name", name), ("key", key)):
        if not value:
            message = f"must have a {field_name} that is not empty"
            reader.faults.add(reader.path, message, PluginCodes.SECRET_REF_INCOMPLETE)
    return SecretRef(name, key) if name and key else None


def _remove_duplicates(
    entries: Sequence[OptionEntry],
    field_findings: FieldFindings,
    option_findings: OptionFindings,
    duplicate_code: FindingCode,
) -> list[OptionEntry]:
    """Return the first entry of each option. A repeated option is an error, or a warning if both values are equal."""
    entries_by_name: dict[str, OptionEntry] = {}
    for entry in entries:
        first_entry = entries_by_name.setdefault(entry.name, entry)
        if first_entry is entry:
            continue
        message = (
            f"{format_path(entry.path)} sets {quote_option_name(entry.name)} again;"
            " a list must contain each option only once"
        )
        finding = duplicate_code.finding(message, field_findings.where_at(entry.path))
        if is_same_value(first_entry.source, entry.source):
            option_findings.findings.append(downgrade_to_warning(finding))
        else:
            field_findings.findings.append(finding)
    return list(entries_by_name.values())


def is_same_value(first: ValueSource, second: ValueSource) -> bool:
    """Return whether two entries set the same value. Expressions are compared as text."""
    if isinstance(first, LiteralValue) and isinstance(second, LiteralValue):
        return is_equal_data(first.value, second.value)
    return first == second and not isinstance(first, LiteralValue)


def read_definition(manifest: ConfigObject) -> tuple[PluginDefinition | None, tuple[Finding, ...]]:
    """Return the plugin definition, or None and all errors if it is invalid. Unknown fields are ignored."""
    field_findings = FieldFindings(manifest.location_of, PluginCodes.DEFINITION_INVALID)
    reader = FieldReader(manifest.data, (), field_findings, None)
    spec = reader.read_mapping("spec", None, quotes=False)
    version = spec.read_text("version", required=True)
    if not spec.has_value("helmChart") and not spec.has_value("uiApplication"):
        spec.add_finding(
            "helmChart", "is required if uiApplication is missing, because a definition must have something to deploy"
        )
    chart = _read_texts(spec, "helmChart", _CHART_FIELDS)
    _read_texts(spec, "uiApplication", _INTERFACE_FIELDS)
    options = _read_options(spec)
    return (
        (None, tuple(field_findings.findings))
        if field_findings.findings
        else (PluginDefinition(manifest, version, chart, options), ())
    )


def _read_texts(spec: FieldReader, name: str, required: tuple[str, ...]) -> str:
    """Return the first required string of a mapping, and check all of them. Return "" if the mapping is missing."""
    if not spec.has_value(name):
        return ""
    fields = spec.read_mapping(name, None)
    texts = [fields.read_text(field_name, required=True) for field_name in required]
    return texts[0]


def _read_options(spec: FieldReader) -> Mapping[str, OptionDeclaration]:
    options: dict[str, OptionDeclaration] = {}
    for fields in read_unquoted_mappings(spec, "options", None, quotes=True):
        option = _read_option(fields)
        if option.name in options:
            fields.add_finding(
                "name",
                f"must not declare {quote_option_name(option.name)} again",
                PluginCodes.DUPLICATE_OPTION_DEFINITION,
            )
        options.setdefault(option.name, option)
    return options


def _read_option(fields: FieldReader) -> OptionDeclaration:
    name = fields.read_text("name", required=True)
    if name and (error := check_option_name(name)):
        fields.add_finding("name", f"{error}: {quote_option_name(name)}")
    option_type = cast("OptionType", fields.read_choice("type", OPTION_TYPES))
    required = fields.data.get("required")
    if required is not None and not isinstance(required, bool):
        fields.add_finding("required", f"must be true or false, not {quote_value(required)}")
    regex = fields.read_text("regex")
    if error := check_pattern(regex):
        fields.add_finding("regex", error)
    return OptionDeclaration(
        name, option_type, required is True, _read_default(fields, option_type), regex, fields.path
    )


def _read_default(fields: FieldReader, option_type: OptionType) -> LiteralValue | None:
    # Do not check the default if the type is invalid, because the option may be a secret.
    if not fields.has_value("default") or fields.data.get("type") not in OPTION_TYPES:
        return None
    value = fields.data["default"]
    if error := check_default(option_type, value):
        fields.add_finding("default", error)
    return LiteralValue(value)
