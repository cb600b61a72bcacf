"""What is wrong with rendered resources as findings: at the line of the config that set the value, where one did."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.krm.findings import Finding, Where
from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource
from reconciler.planning.codes import KUBERNETES_VERSION_UNKNOWN, NOT_VALIDATED, SCHEMA_MISSING
from reconciler.planning.conformance import Checked, Fault, Unjudged
from reconciler.planning.without import ConfigField
from reconciler.reporting.explain import explain
from reconciler.reporting.explanation import SOURCES, Explained, NothingToExplainError, Step
from reconciler.reporting.values import count
from reconciler.snapshot.catalog import ConfigObject

_NAMED = 3
Objects = Mapping[ObjectKey, ConfigObject]
_Alike = tuple[str, str, str, str, str]


@dataclass(frozen=True)
class Unsaid:
    """Clusters that do not say which release of Kubernetes they run, and by which they were judged instead."""

    clusters: Sequence[str]
    judged_by: str
    places: Mapping[str, Where] = field(default_factory=dict)


def rendered_findings(checked: Iterable[Checked], objects: Objects) -> Iterator[Finding]:
    """Yield what is wrong with packages; what many of them have alike is told once, with the first of them."""
    alike: dict[_Alike, list[tuple[Checked, Fault]]] = {}
    kinds: dict[tuple[str, str], list[tuple[Checked, Unjudged]]] = {}
    for one in checked:
        for fault in one.faults:
            key = (
                fault.code.name,
                fault.resource.file,
                str(fault.resource.key),
                format_pointer(fault.path),
                fault.message,
            )
            alike.setdefault(key, []).append((one, fault))
        for unknown in one.unknown:
            kinds.setdefault((unknown.what, unknown.builtin_reason), []).append((one, unknown))
    for same in alike.values():
        yield _finding(*same[0], [str(one.variant.place) for one, _ in same[1:]], objects)
    for _, found in sorted(kinds.items(), key=lambda each: each[0]):
        yield _unknown(found, objects)


def unsaid_findings(unsaid: Unsaid) -> Iterator[Finding]:
    """Yield an info when clusters do not say which release they run."""
    if unsaid.clusters:
        first = unsaid.clusters[0]
        message = (
            f"{_some(unsaid.clusters)} {'does' if len(unsaid.clusters) == 1 else 'do'} not say which version of"
            " Kubernetes runs there, by the annotation reconciler.dev/kubernetes-version; what goes there is held"
            f" against {unsaid.judged_by}"
        )
        yield KUBERNETES_VERSION_UNKNOWN.finding(message, unsaid.places.get(first, Where()))


def _finding(one: Checked, fault: Fault, others: Sequence[str], objects: Objects) -> Finding:
    more = f"; the same in {_some(others)}" if others else ""
    step = _step_that_set(one, fault, objects)
    told = f"{' '.join(filter(None, (str(fault.resource.key), format_pointer(fault.path))))} {fault.message}"
    if step is None or not step.line:
        return fault.code.finding(f"{told}{more}", _where(one, fault.resource, fault.path, objects))
    saying = (str(key) for key, each in objects.items() if each.file == step.file and _is_called(key, step.by))
    by = next(saying, step.by)
    where = Where(step.file, step.line, by, "", str(one.variant.place), str(one.variant.owner.key))
    return fault.code.finding(f"{told}; {fault.resource.file} has it by {step.by} {step.field}{more}", where)


def _is_called(key: ObjectKey, name: str) -> bool:
    return name in (str(key), "/".join(part for part in (key.kind, key.namespace, key.name) if part))


def _where(one: Checked, resource: PackageResource, path: Path, objects: Objects) -> Where:
    """Return the place in the config, for a resource that stands there as it goes to the cluster, or in the package."""
    package, owner, pointer = str(one.variant.place), str(one.variant.owner.key), format_pointer(path)
    written = objects.get(resource.key)
    if written is not None and one.variant.upstream is None:
        return Where(written.file, written.where_at(path).line, str(written.key), pointer, package, owner)
    # JSON is read as data alone, without its lines
    line = 0 if resource.file.endswith(".json") else resource.document.line_of(path)
    return Where(resource.file, line, str(resource.key), pointer, package, owner)


def _step_that_set(one: Checked, fault: Fault, objects: Objects) -> Step | None:
    """Return the last step that set the value, or something around it, where it is one of the config."""
    variant = one.variant
    known = Explained(str(variant.place), "", objects, variant.owner, variant, one.rendered)
    try:
        found = explain(known, str(fault.resource.key), format_pointer(fault.path))
    except NothingToExplainError:
        return None
    pointer = format_pointer(fault.path)
    around = [one for one in found.values if one.file == fault.resource.file and _is_at_or_in(pointer, one.pointer)]
    closest = max(around, key=lambda value: len(value.pointer), default=None)
    last = closest.steps[-1] if closest else None
    is_of_a_rule = last is not None and last.layer not in SOURCES and isinstance(last.removable, ConfigField)
    return last if is_of_a_rule else None


def _is_at_or_in(pointer: str, other: str) -> bool:
    return pointer == other or pointer.startswith(f"{other}/")


def _unknown(found: Sequence[tuple[Checked, Unjudged]], objects: Objects) -> Finding:
    first, unknown = found[0]
    places = [str(one.variant.place) for one, _ in found]
    what = f"{count(sum(each.count for _, each in found), 'resource')} of {unknown.what} in {_some(places)}"
    where = _where(first, unknown.first, (), objects)
    if unknown.builtin_reason:
        return NOT_VALIDATED.finding(f"not validated: {what}; {unknown.builtin_reason}", where)
    message = f"not held against a schema, for no definition and no schema of the kind are known here: {what}"
    return SCHEMA_MISSING.finding(message, where)


def _some(names: Sequence[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
