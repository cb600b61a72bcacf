"""Config injection: filling the injection points of a package from context objects (porch 8.3, steps 4 to 7)."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Finding, Where
from reconciler.krm.pointer import format_pointer
from reconciler.krm.yaml import YamlFile
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.parsing import edited_document, json_text, parse_cached
from reconciler.rules.variant import Earlier, Injected, Mutated
from reconciler.rules.variants.codes import INJECTION_GATE_KEPT, INJECTION_MISSING, INJECTION_POINT_INVALID
from reconciler.rules.variants.model import Injector
from reconciler.rules.variants.points import CONDITION_PREFIX, INJECTED, INJECTION, InjectionPoint, find_points
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

T = TypeVar("T", Condition, str)

_ANNOTATION_POINTER = format_pointer(("metadata", "annotations", INJECTION))
_NO_INJECTORS = "no injectors defined"
_NO_MATCH = "no resource matched any injection selector for this injection point"


@dataclass(frozen=True)
class Outcome:
    """What became of one point: the object whose content it takes, or why it takes none.

    `stale` is the last output's resource for a point that was injected before and is not now.
    """

    point: InjectionPoint
    source: ConfigObject | None = None
    why: str = ""
    stale: InjectionPoint | None = None

    @property
    def condition(self) -> Condition:
        """The condition of the point, as the Kptfile shows it."""
        if self.source:
            message = f'injected resource "{self.source.key.name}" from cluster'
            return Condition(self.point.condition_type, "True", "ConfigInjected", message)
        if self.stale:
            message = f"{self.why}; still carries {self.stale.injected}"
            return Condition(self.point.condition_type, "False", "StaleInjection", message)
        return Condition(self.point.condition_type, "False", "NoResourceSelected", self.why)

    @property
    def edited(self) -> Mapping[str, Any]:
        """The point's resource with its new content; the very same mapping when nothing is to be done."""
        if self.source:
            name, content = self.source.key.name, self.source.data[self.point.field]
        elif self.stale and self.stale is not self.point:
            name, content = self.stale.injected, self.stale.resource[self.point.field]
        else:
            return self.point.resource
        return _filled(self.point, name, content)


def inject(
    files: FileTree, injectors: Sequence[Injector], namespace: str, view: View, earlier: Earlier | None = None
) -> Mutated:
    """Return the package with its points filled, its conditions and gates in the Kptfile, and what was injected.

    A point that was injected into the last output and is not now keeps that content. A gate of the last output stays
    while its point exists and the branch has it: it cannot be distinguished from a gate of a reviewer.
    """
    found = find_points(files)
    if found.error:
        return Mutated(files, findings=(INJECTION_POINT_INVALID.finding(found.error),))
    before = _points_by_type(earlier.rendered if earlier else None)
    outcomes = [_choose(point, injectors, namespace, view, before) for point in found.points]
    filled = _write_points(files, outcomes)
    kptfile = read_kptfile(filled[KPTFILE].data) if KPTFILE in filled else ()
    if not isinstance(kptfile, Kptfile):
        return Mutated(filled, findings=kptfile)
    earlier_gates = _gates_of(earlier.rendered) & _gates_of(earlier.branch or earlier.rendered) if earlier else set()
    gated = with_outcomes(kptfile, outcomes, earlier_gates)
    if gated is not kptfile:
        filled = filled.with_files({KPTFILE: gated.to_bytes()})
    warnings = (*_missing_warnings(outcomes), *_gate_warnings({*kptfile.readiness_gates, *earlier_gates}, outcomes))
    return Mutated(filled, _injected(outcomes), warnings)


def _points_by_type(earlier: FileTree | None) -> dict[str, InjectionPoint]:
    points = find_points(earlier).points if earlier else ()
    return {point.condition_type: point for point in points if point.injected and point.field in point.resource}


def _choose(
    point: InjectionPoint,
    injectors: Sequence[Injector],
    namespace: str,
    view: View,
    before: Mapping[str, InjectionPoint],
) -> Outcome:
    source, why = _look_up(point, injectors, namespace, view)
    stale = point if point.injected else before.get(point.condition_type)
    return Outcome(point, source, why, None if source else stale)


def _look_up(
    point: InjectionPoint, injectors: Sequence[Injector], namespace: str, view: View
) -> tuple[ConfigObject | None, str]:
    if not injectors:
        return None, _NO_INJECTORS
    if not view.type_exists(point.api_version, point.kind, namespace):
        return None, f"no in-cluster resources of type {point.api_version}.{point.kind}"
    for injector in injectors:
        if not injector.admits(*point.group_version, point.kind):
            continue
        found = view.named(point.api_version, point.kind, namespace, injector.name)
        if found is None:
            continue
        if point.field in found.data:
            return found, ""
        return None, f'field "{point.field}" not found in resource "{injector.name}"'
    return None, _NO_MATCH


def _filled(point: InjectionPoint, name: str, content: Any) -> dict[str, Any]:
    metadata = point.resource["metadata"]
    annotations = {**metadata["annotations"], **dict.fromkeys(INJECTED, name)}
    return {**point.resource, "metadata": {**metadata, "annotations": annotations}, point.field: content}


def _write_points(files: FileTree, outcomes: Iterable[Outcome]) -> FileTree:
    for outcome in outcomes:
        point, edited = outcome.point, outcome.edited
        if edited != point.resource:
            content = _with_document(files[point.file].data, point, edited)
            files = files.with_files({point.file: content})
    return files


def _with_document(content: bytes, point: InjectionPoint, edited: Mapping[str, Any]) -> bytes:
    if point.file.endswith(".json"):
        return json_text(edited, content)
    source = parse_cached(content)
    assert isinstance(source, YamlFile)  # its points could be read
    return source.replace(point.index, edited_document(source.documents[point.index], dict(edited))).to_bytes()


def _gates_of(files: FileTree) -> set[str]:
    kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
    return set(kptfile.readiness_gates) if isinstance(kptfile, Kptfile) else set()


def with_outcomes(kptfile: Kptfile, outcomes: Sequence[Outcome], earlier_gates: Iterable[str] = ()) -> Kptfile:
    """Return the Kptfile with the conditions of all points and the gates of the required ones.

    A point that was required keeps its gate, which is among `earlier_gates`.

    Foreign conditions and gates stay. Ours go once their point is gone: a gate that nothing can ever meet would
    block the package for good.
    """
    fresh = {outcome.point.condition_type: outcome.condition for outcome in outcomes}
    required = {outcome.point.condition_type for outcome in outcomes if outcome.point.required}
    kept = {condition.type: condition for condition in kptfile.conditions if not _is_stale(condition.type, fresh)}
    conditions = {**kept, **fresh}
    kept_gates = {gate for gate in earlier_gates if gate in fresh}
    gates = {gate for gate in kptfile.readiness_gates if not _is_stale(gate, fresh)} | required | kept_gates
    return kptfile.with_conditions_and_gates(
        _sorted_if_changed(kptfile.conditions, conditions.values()), _sorted_if_changed(kptfile.readiness_gates, gates)
    )


def _is_stale(condition_type: str, points: Iterable[str]) -> bool:
    return condition_type.startswith(CONDITION_PREFIX) and condition_type not in points


def _sorted_if_changed(old: Sequence[T], new: Iterable[T]) -> Sequence[T]:
    wanted = sorted(new)
    return old if sorted(old) == wanted else wanted


def _injected(outcomes: Iterable[Outcome]) -> tuple[Injected, ...]:
    return tuple(
        Injected(
            outcome.point.condition_type,
            outcome.point.file,
            outcome.source.key.kind,
            outcome.source.key.namespace,
            outcome.source.key.name,
            outcome.source.digest,
            outcome.source.file,
        )
        for outcome in outcomes
        if outcome.source
    )


def _missing_warnings(outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    """Return a warning for each required injection point that no object filled."""
    return tuple(
        INJECTION_MISSING.finding(
            f"required injection point {point.kind}/{point.name}: {outcome.condition.message};"
            f' the gate "{point.condition_type}" keeps the draft from being published.'
            " Add the object to the config, name it in spec.injectors,"
            f' or set the annotation {INJECTION} to "optional"',
            Where(point.file, object=f"{point.kind}/{point.name}", pointer=_ANNOTATION_POINTER),
        )
        for outcome in outcomes
        if (point := outcome.point).required and outcome.source is None
    )


def _gate_warnings(gates: set[str], outcomes: Iterable[Outcome]) -> tuple[Finding, ...]:
    return tuple(
        INJECTION_GATE_KEPT.finding(
            f'the gate "{point.condition_type}" stays although the injection point is optional;'
            " remove it from info.readinessGates of the published Kptfile if no reviewer needs it",
            Where(point.file, object=f"{point.kind}/{point.name}"),
        )
        for point in (outcome.point for outcome in outcomes)
        if not point.required and point.condition_type in gates
    )
