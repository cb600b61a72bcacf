"""Reading objects of composition: what all of their kinds have alike (openchoreo 1)."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.findings import Code, Finding, Severity
from reconciler.krm.names import dns_label_fault, dns_subdomain_fault
from reconciler.krm.yaml import Path
from reconciler.rules.composition.codes import FEATURE_NOT_SUPPORTED, UNKNOWN_FIELD
from reconciler.rules.composition.faults import MOST_TOLD, Fault
from reconciler.rules.composition.marks import OWN
from reconciler.rules.composition.model import DEFAULT_INSTANCE, Rule, Values
from reconciler.rules.fields import Faults, Fields, meant, shown
from reconciler.snapshot.catalog import ConfigObject

ID = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", re.ASCII)
ID_WORDS = 'lower-case letters, digits and "-", with a letter or digit at both ends'
_OBJECT_FIELDS = ("apiVersion", "kind", "metadata", "spec", "status")


@dataclass
class Told(Faults):
    """What is wrong with one object; `notes` are findings that withhold nothing."""

    notes: list[Finding] = field(default_factory=list)

    def take(self, faults: Iterable[Fault], one: ConfigObject) -> None:
        """Note what was found to be wrong with a part of the object, or odd about it; it names its own fields."""
        for fault in faults:
            withholds = fault.code.severity is Severity.ERROR
            told = self.findings if withholds else self.notes
            if len(told) < MOST_TOLD:
                told.append(fault.finding(one))

    def add(self, path: Path, message: str, code: Code | None = None) -> None:
        """Note a fault, as long as anybody may read it."""
        if len(self.findings) < MOST_TOLD:
            super().add(path, message, code)

    @property
    def all(self) -> tuple[Finding, ...]:
        """Everything that is to be told of it."""
        return (*self.findings, *self.notes)


class Spec(Fields):
    """A mapping of a spec: what begins with `x-` is people's own, anything else that is unknown is a fault."""

    def _refuse_unknown(self, known: Sequence[str]) -> None:
        for name in map(str, self.data):
            if name not in known and not name.startswith(OWN):
                self.fault(name, f"is unknown; allowed are {', '.join(known)}{meant(name, known)}", UNKNOWN_FIELD)

    def values(self, name: str) -> Values:
        """Return a mapping whose fields somebody else knows; {} when absent."""
        return self.mapping(name, None).data

    def identifier(self, name: str, default: str = "") -> str:
        """Return an id; the default when absent or not usable."""
        found = self.text(name)
        if self.data.get(name) == found and not ID.fullmatch(found):
            self.fault(name, f"must be {ID_WORDS}, not {shown(found)}")
            return default
        return found or default

    def unsupported(self, name: str) -> None:
        """Note a field that the specification only thinks of."""
        if self.has(name):
            self.fault(name, "is for something that is not supported: leave it out", FEATURE_NOT_SUPPORTED)


def opened(
    one: ConfigObject,
    code: Code,
    api_version: str,
    known: Sequence[str] | None,
    name_fault: Callable[[str], str | None] = dns_subdomain_fault,
) -> tuple[Spec, Told]:
    """Return the spec of an object, and the list for what is wrong with it; its identity is checked already."""
    told = Told(one.where_at, code)
    for name in one.data:
        if name not in _OBJECT_FIELDS:
            told.add((str(name),), f"is unknown; allowed are {', '.join(_OBJECT_FIELDS)}", UNKNOWN_FIELD)
    if one.api_version != api_version:
        told.add(("apiVersion",), f"must be {api_version}, not {shown(one.api_version)}")
    if fault := name_fault(one.key.name):
        told.add(("metadata", "name"), f"must be a name that objects can have: {fault}")
    if one.data.get("spec") is None:
        told.add(("spec",), "must be a mapping")
    return Spec(one.data.get("spec"), ("spec",), told, known), told


def read_rules(spec: Spec) -> tuple[Rule, ...]:
    """Return the rules of `validation.rules`, whose expressions are not compiled yet (openchoreo 4.4)."""
    listed = spec.mapping("validation", ("rules",)).mappings("rules", ("name", "expression", "message"))
    rules = [
        Rule(one.text("name"), one.text("expression", required=True), one.text("message"), one.path) for one in listed
    ]
    return tuple(one for one in rules if one.expression)


def instance_id(spec: Spec) -> tuple[str, bool]:
    """Return the id of an instance of an addon, and whether it is written."""
    return spec.identifier("instanceId", DEFAULT_INSTANCE), spec.has("instanceId")


def label(one: ConfigObject, name: str) -> str:
    """Return a label of an object as text: people write versions without quotes."""
    value = written_label(one, name)
    return "" if value is None or isinstance(value, Mapping | list) else str(value)


def written_label(one: ConfigObject, name: str) -> Any:
    """Return a label of an object as it is written, None where it is not."""
    labels: Any = one.data["metadata"].get("labels")
    return labels.get(name) if isinstance(labels, Mapping) else None


def check_namespace(one: ConfigObject, told: Told) -> None:
    """Report a namespace that is not a valid name."""
    if fault := dns_label_fault(one.key.namespace):
        told.add(("metadata", "namespace"), f"must be a name that namespaces can have: {fault}")
