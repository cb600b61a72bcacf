"""Reading plugin definitions; unknown fields are kept (greenhouse 2.4, design 10.4)."""

from __future__ import annotations

from collections.abc import Mapping
from typing import cast

from reconciler.krm.findings import Finding
from reconciler.rules.fields import Faults, Fields, shown
from reconciler.rules.presets.codes import DEFINITION_INVALID, DUPLICATE_OPTION_DEFINITION
from reconciler.rules.presets.helm_values import name_fault
from reconciler.rules.presets.model import OPTION_TYPES, Definition, Given, Option, OptionType
from reconciler.rules.presets.read_entries import shown_name, unquoted_mappings
from reconciler.rules.presets.types import default_fault, pattern_fault
from reconciler.snapshot.catalog import ConfigObject

_CHART = ("name", "repository", "version")
_INTERFACE = ("name", "version")


def read_definition(one: ConfigObject) -> tuple[Definition | None, tuple[Finding, ...]]:
    """Return the definition and no findings, or None and an error for every fault."""
    faults = Faults(one.where_at, DEFINITION_INVALID)
    whole = Fields(one.data, (), faults, None)
    spec = whole.mapping("spec", None, quotes=False)
    version = spec.text("version", required=True)
    if not spec.has("helmChart") and not spec.has("uiApplication"):
        spec.fault("helmChart", "must be written, or uiApplication: there is nothing to deploy")
    chart = _read_texts(spec, "helmChart", _CHART)
    _read_texts(spec, "uiApplication", _INTERFACE)
    options = _read_options(spec)
    return (None, tuple(faults.findings)) if faults.findings else (Definition(one, version, chart, options), ())


def _read_texts(spec: Fields, name: str, required: tuple[str, ...]) -> str:
    """Return the name in a mapping whose fields must be written where it is; "" where it is not."""
    if not spec.has(name):
        return ""
    fields = spec.mapping(name, None)
    texts = [fields.text(each, required=True) for each in required]
    return texts[0]


def _read_options(spec: Fields) -> Mapping[str, Option]:
    found: dict[str, Option] = {}
    for fields in unquoted_mappings(spec, "options", None, quotes=True):
        option = _read_option(fields)
        if option.name in found:
            fields.fault("name", f"must not declare {shown_name(option.name)} again", DUPLICATE_OPTION_DEFINITION)
        found.setdefault(option.name, option)
    return found


def _read_option(fields: Fields) -> Option:
    name = fields.text("name", required=True)
    if name and (fault := name_fault(name)):
        fields.fault("name", f"{fault}: {shown_name(name)}")
    kind = cast("OptionType", fields.choice("type", OPTION_TYPES))
    required = fields.data.get("required")
    if required is not None and not isinstance(required, bool):
        fields.fault("required", f"must be true or false, not {shown(required)}")
    regex = fields.text("regex")
    if fault := pattern_fault(regex):
        fields.fault("regex", fault)
    return Option(name, kind, required is True, _read_default(fields, kind), regex, fields.path)


def _read_default(fields: Fields, kind: OptionType) -> Given | None:
    # of what type it was to be nobody knows, or that it is no secret
    if not fields.has("default") or fields.data.get("type") not in OPTION_TYPES:
        return None
    value = fields.data["default"]
    if fault := default_fault(kind, value):
        fields.fault("default", fault)
    return Given(value)
