"""Reading lists of options, as presets, Plugins, overrides, organizations and clusters have them (greenhouse 2.1)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Code, Finding, softened
from reconciler.krm.yaml import Path
from reconciler.krm.yaml.same import same
from reconciler.rules.fields import Faults, Fields, dotted, shown
from reconciler.rules.presets.codes import (
    ALIAS_CONFLICT,
    DUPLICATE_OPTION,
    MULTIPLE_VALUE_SOURCES,
    NO_VALUE_SOURCE,
    OPTION_NAME_INVALID,
    SECRET_REF_INCOMPLETE,
    UNSUPPORTED_VALUE_SOURCE,
)
from reconciler.rules.presets.helm_values import name_fault
from reconciler.rules.presets.model import Entries, Entry, Expression, Given, SecretRef, Source

_SOURCES = ("value", "valueFrom", "expression")
_ENTRY_FIELDS = ("name", "path", *_SOURCES)
_FROM_FIELDS = ("secret", "key", "ref")
# what these say is of the Plugins that the list is for; all else is of the object that has the list
_OF_PLUGINS = {
    one.name
    for one in (
        DUPLICATE_OPTION,
        MULTIPLE_VALUE_SOURCES,
        NO_VALUE_SOURCE,
        OPTION_NAME_INVALID,
        SECRET_REF_INCOMPLETE,
        UNSUPPORTED_VALUE_SOURCE,
    )
}


@dataclass
class Told:
    """What reading an object comes across that is no fault of the object as a whole."""

    findings: list[Finding] = field(default_factory=list)


def read_entries(
    fields: Fields, name: str, told: Told, *, strict: bool = True, twice: Code = DUPLICATE_OPTION
) -> Entries:
    """Return a list of options; `strict` refuses unknown fields, `twice` is the code of an option that stands twice.

    What is wrong with the object goes to its faults, what is wrong with the Plugins of the list to those of the list.
    """
    faults = fields.faults
    before = len(faults.findings)
    known = _ENTRY_FIELDS if strict else None
    entries = [entry for one in unquoted_mappings(fields, name, known) if (entry := _read_entry(one, strict=strict))]
    entries = _unique(entries, faults, told, twice)
    found = faults.findings[before:]
    of_plugins = tuple(one for one in found if one.code in _OF_PLUGINS)
    faults.findings[before:] = [one for one in found if one.code not in _OF_PLUGINS]
    told.findings += of_plugins
    return Entries(tuple(entries), of_plugins)


def unquoted_mappings(
    fields: Fields, name: str, known: Sequence[str] | None, *, quotes: bool = False
) -> Iterator[Fields]:
    """Yield each mapping of a list; of what is none nothing is quoted, for what stands there may be a secret.

    In the mappings themselves nothing is quoted either, unless `quotes` says so.
    """
    if fields.has(name) and not isinstance(fields.data[name], list):
        fields.fault(name, "must be a list of mappings")
        return
    for path, item in fields.items(name):
        if _is_mapping(item, path, fields.faults):
            yield Fields(item, path, fields.faults, known, quotes=quotes)


def _is_mapping(value: object, path: Path, faults: Faults) -> bool:
    if isinstance(value, Mapping):
        return True
    # not quoted: what stands where an option should may be a secret
    faults.add(path, "must be a mapping with a name")
    return False


def _read_entry(one: Fields, *, strict: bool) -> Entry | None:
    name, path = one.text("name"), one.text("path")
    if name and path and name != path:
        one.fault("path", f"must be {shown_name(name)}, as the name is, or left out", ALIAS_CONFLICT)
    name = name or path
    if not name:
        one.fault("name", "must be a string that is not empty", OPTION_NAME_INVALID)
    elif fault := name_fault(name):
        one.fault("name" if one.has("name") else "path", f"{fault}: {shown_name(name)}", OPTION_NAME_INVALID)
    source = _read_source(one, name, strict=strict)
    return Entry(name, source, one.path) if name and source else None


def shown_name(name: str) -> str:
    """Return a name that is none as messages quote it, without what Helm's own `name=value` would have for a value."""
    return shown(name if "=" not in name else f"{name.partition('=')[0]}=…")


def _read_source(one: Fields, name: str, *, strict: bool) -> Source | None:
    written = [source for source in _SOURCES if one.has(source)]
    if not written:
        one.faults.add(
            one.path, f"must have one of {', '.join(_SOURCES)} for {shown_name(name)}; null is none", NO_VALUE_SOURCE
        )
        return None
    if len(written) > 1:
        one.faults.add(
            one.path, f"must have only one of {', '.join(written)} for {shown_name(name)}", MULTIPLE_VALUE_SOURCES
        )
        return None
    match written[0]:
        case "value":
            return Given(one.data["value"])
        case "expression":
            if isinstance(one.data["expression"], str):
                return Expression(one.data["expression"])
            one.fault("expression", "must be a string: quote it")
            return None
        case _:
            if not isinstance(one.data["valueFrom"], Mapping):
                one.fault("valueFrom", "must be a mapping with a secret")
                return None
            return _read_value_from(one.mapping("valueFrom", _FROM_FIELDS if strict else None))


def _read_value_from(one: Fields) -> SecretRef | None:
    if one.has("ref"):
        one.fault("ref", "must be left out: only secrets can be referred to", UNSUPPORTED_VALUE_SOURCE)
        return None
    secret = one.data.get("secret")
    if isinstance(secret, str):
        return _complete(one, secret, one.text("key"))
    if secret is not None and not isinstance(secret, Mapping):
        one.fault("secret", "must be a mapping with a name and a key")
        return None
    nested = one.mapping("secret", ("name", "key"))
    name, key = nested.text("name"), nested.text("key")
    if one.has("key") and one.data["key"] != key:
        one.fault("key", "must be left out beside a secret with a name and a key, or be that key", ALIAS_CONFLICT)
    return _complete(nested if one.has("secret") else one, name, key)


def _complete(one: Fields, name: str, key: str) -> SecretRef | None:
    for field_name, value in (("name", name), ("key", key)):
        if not value:
            message = f"must have a {field_name} that is not empty"
            one.faults.add(one.path, message, SECRET_REF_INCOMPLETE)
    return SecretRef(name, key) if name and key else None


def _unique(entries: Sequence[Entry], faults: Faults, told: Told, twice: Code) -> list[Entry]:
    """Return the entries, each name once; that one says the same twice is only odd (greenhouse 10)."""
    found: dict[str, Entry] = {}
    for entry in entries:
        first = found.setdefault(entry.name, entry)
        if first is entry:
            continue
        message = f"{dotted(entry.path)} gives {shown_name(entry.name)} again, which must stand in one list only once"
        finding = twice.finding(message, faults.where_at(entry.path))
        if says_the_same(first.source, entry.source):
            told.findings.append(softened(finding))
        else:
            faults.findings.append(finding)
    return list(found.values())


def says_the_same(left: Source, right: Source) -> bool:
    """Tell whether two entries give the same value; what an expression comes to is not looked at."""
    if isinstance(left, Given) and isinstance(right, Given):
        return same(left.value, right.value)
    return left == right and not isinstance(left, Given)
