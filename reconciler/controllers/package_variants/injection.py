"""Config injection: search for the injection points of a package, and copying of config objects to these points."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

from reconciler.api.porch.package_variant import Injector
from reconciler.catalog.catalog import ConfigObject
from reconciler.catalog.files import FileTree
from reconciler.catalog.trace import CatalogView
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.results import ConfigInjection, MutationResult, PreviousRender
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.objects import Condition, split_api_version
from reconciler.krm.yaml import Document, YamlFile
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import get_package, parse_documents
from reconciler.packages.parsing import ParseFailure, edit_document, format_json, parse_cached, parse_json_cached
from reconciler.packages.sops import SopsMacError, check_sops_edit, is_sops_document
from reconciler.packages.sops_files import create_mac_finding

INJECTION_ANNOTATION = "kpt.dev/config-injection"
# The renderer writes both annotations, but accepts a package with only one of them, because packages from Porch contain
# only the second annotation.
INJECTED_ANNOTATIONS = ("kpt.dev/injected-resource-name", "kpt.dev/injected-resource")
CONDITION_PREFIX = "config.injection."
_ANNOTATION_VALUES = ("required", "optional")
# Maximum number of files in the cache. This number is larger than the usual number of package files in one pass.
_CACHED_FILES = 4096
_Item = TypeVar("_Item", Condition, str)
_ANNOTATION_POINTER = format_pointer(("metadata", "annotations", INJECTION_ANNOTATION))
_NO_INJECTORS = "no injectors defined"
_NO_MATCH = "no resource matched any injection selector for this injection point"


@dataclass(frozen=True)
class InjectionPoint:
    """A resource of the package whose `data` or `spec` is replaced with the `data` or `spec` of a config object."""

    file: str
    index: int
    api_version: str
    kind: str
    name: str
    is_required: bool
    injected_name: str
    resource: Mapping[str, Any]

    @property
    def condition_type(self) -> str:
        """The type of this injection point's condition and readiness gate: `config.injection.<kind>.<name>`.

        As in Porch, the type does not contain the API group, the version and the namespace.
        """
        return f"{CONDITION_PREFIX}{self.kind}.{self.name}"

    @property
    def group_version(self) -> tuple[str, str]:
        """The API group and version of the resource."""
        return split_api_version(self.api_version)

    @property
    def field(self) -> str:
        """The field that is replaced: `data` of a ConfigMap of the core group, or `spec` of any other kind."""
        return "data" if (self.group_version[0], self.kind) == ("", "ConfigMap") else "spec"


@dataclass(frozen=True)
class InjectionPoints:
    """The injection points of a package, in the order of its files.

    If an injection point or a file is invalid, `error` contains the error, and nothing is injected into the package.
    """

    points: tuple[InjectionPoint, ...] = ()
    error: str = ""


def find_injection_points(files: FileTree) -> InjectionPoints:
    """Return the injection points in all directories of a package, or the error.

    Files that a .krmignore file excludes, such as chart templates, are not read.
    """
    points: list[InjectionPoint] = []
    invalid: list[str] = []
    for path in get_package(files).iterate_krm_paths():
        file_points = _find_points_in_file(path, files[path].data)
        if isinstance(file_points, ParseFailure):
            return InjectionPoints(error=f"{path}: {file_points.message}")
        points += (point for point in file_points if isinstance(point, InjectionPoint))
        invalid += (point for point in file_points if isinstance(point, str))
    invalid += _find_duplicates(points)
    return (
        InjectionPoints(error=f"errors in injection points: {', '.join(invalid)}")
        if invalid
        else InjectionPoints(tuple(points))
    )


@cached(_CACHED_FILES)
def _find_points_in_file(path: str, content: bytes) -> tuple[InjectionPoint | str, ...] | ParseFailure:
    """Return the injection points of one file, and an error text for each invalid injection point.

    Return the parse error if the file cannot be parsed.
    """
    documents = parse_documents(path, content)
    if isinstance(documents, ParseFailure):
        return documents
    points = (_read_point(path, index, document.data) for index, document in enumerate(documents))
    return tuple(point for point in points if point is not None)


def _read_point(file: str, index: int, data: object) -> InjectionPoint | str | None:
    if not isinstance(data, Mapping):
        return None
    api_version, kind, metadata = data.get("apiVersion"), data.get("kind"), data.get("metadata")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return None
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping) or INJECTION_ANNOTATION not in annotations:
        return None
    name, requirement = str(metadata.get("name", "")), annotations[INJECTION_ANNOTATION]
    if requirement not in _ANNOTATION_VALUES:
        return f'{file}: {kind}/{name} has invalid "{INJECTION_ANNOTATION}" annotation value of "{requirement}"'
    injected = next((str(annotations[key]) for key in INJECTED_ANNOTATIONS if annotations.get(key)), "")
    return InjectionPoint(file, index, api_version, kind, name, requirement == "required", injected, data)


def _find_duplicates(points: Sequence[InjectionPoint]) -> Iterator[str]:
    file_by_type: dict[str, str] = {}
    for point in points:
        if point.condition_type not in file_by_type:
            file_by_type[point.condition_type] = point.file
            continue
        files = f"{file_by_type[point.condition_type]} and {point.file}"
        # As Porch does, report each injection point together with the previous point of the same type. For three
        # points, report the pairs 1-2 and 2-3.
        file_by_type[point.condition_type] = point.file
        yield f'duplicate injection conditionType "{point.condition_type}" ({files})'


@dataclass(frozen=True)
class InjectionOutcome:
    """Result of one injection point: the injected object, or the reason why no object is injected.

    If this render finds no object, but an earlier render injected an object, `stale` is the injection point with the
    content from the earlier render. Otherwise, `stale` is None.
    """

    point: InjectionPoint
    source: ConfigObject | None = None
    reason: str = ""
    stale: InjectionPoint | None = None

    @property
    def condition(self) -> Condition:
        """The condition of this injection point for the Kptfile."""
        if self.source:
            message = f'injected resource "{self.source.key.name}" from cluster'
            return Condition(self.point.condition_type, "True", "ConfigInjected", message)
        if self.stale:
            message = f"{self.reason}; still carries {self.stale.injected_name}"
            return Condition(self.point.condition_type, "False", "StaleInjection", message)
        return Condition(self.point.condition_type, "False", "NoResourceSelected", self.reason)

    @property
    def edited(self) -> Mapping[str, Any]:
        """The resource with its new content. If nothing changes, the result is the object `point.resource`."""
        if self.source:
            name, content = self.source.key.name, self.source.data[self.point.field]
        elif self.stale and self.stale is not self.point:
            name, content = self.stale.injected_name, self.stale.resource[self.point.field]
        else:
            return self.point.resource
        return _fill_resource(self.point, name, content)


def inject_config(
    files: FileTree,
    injectors: Sequence[Injector],
    namespace: str,
    view: CatalogView,
    earlier: PreviousRender | None = None,
) -> MutationResult:
    """Fill the injection points of a package, and update the conditions and readiness gates in its Kptfile.

    If no object matches an injection point now, the content of the previous render stays. A readiness gate of the
    previous render also stays, because a reviewer may need the gate. The gate is removed if its injection point no
    longer exists, or if a contributor has deleted the gate on the branch.
    """
    injection_points = find_injection_points(files)
    if injection_points.error:
        return MutationResult(files, findings=(VariantCodes.INJECTION_POINT_INVALID.finding(injection_points.error),))
    filled_before = _index_filled_points(earlier.rendered if earlier else None)
    outcomes = [_fill_point(point, injectors, namespace, view, filled_before) for point in injection_points.points]
    new_files, mac_findings = _write_points(files, outcomes)
    kptfile = read_kptfile(new_files[KPTFILE].data) if KPTFILE in new_files else ()
    if not isinstance(kptfile, Kptfile):
        return MutationResult(new_files, findings=kptfile)
    earlier_gates = (
        _read_gates(earlier.rendered) & _read_gates(earlier.branch or earlier.rendered) if earlier else set()
    )
    new_kptfile = update_conditions_and_gates(kptfile, outcomes, earlier_gates)
    if new_kptfile is not kptfile:
        new_files = new_files.with_files({KPTFILE: new_kptfile.to_bytes()})
    findings = (
        *mac_findings,
        *_create_missing_findings(outcomes),
        *_create_gate_findings({*kptfile.readiness_gates, *earlier_gates}, outcomes),
    )
    return MutationResult(new_files, _build_injections(outcomes), findings)


def _index_filled_points(earlier: FileTree | None) -> dict[str, InjectionPoint]:
    points = find_injection_points(earlier).points if earlier else ()
    return {point.condition_type: point for point in points if point.injected_name and point.field in point.resource}


def _fill_point(
    point: InjectionPoint,
    injectors: Sequence[Injector],
    namespace: str,
    view: CatalogView,
    filled_before: Mapping[str, InjectionPoint],
) -> InjectionOutcome:
    source, reason = _find_source(point, injectors, namespace, view)
    stale = point if point.injected_name else filled_before.get(point.condition_type)
    return InjectionOutcome(point, source, reason, None if source else stale)


def _find_source(
    point: InjectionPoint, injectors: Sequence[Injector], namespace: str, view: CatalogView
) -> tuple[ConfigObject | None, str]:
    if not injectors:
        return None, _NO_INJECTORS
    if not view.has_type(point.api_version, point.kind, namespace):
        return None, f"no in-cluster resources of type {point.api_version}.{point.kind}"
    for injector in injectors:
        if not injector.admits(*point.group_version, point.kind):
            continue
        source = view.find_object(point.api_version, point.kind, namespace, injector.name)
        if source is None:
            continue
        if is_sops_document(source.data):
            return None, f'resource "{injector.name}" is encrypted with SOPS, and its values cannot be injected'
        if point.field in source.data:
            return source, ""
        return None, f'field "{point.field}" not found in resource "{injector.name}"'
    return None, _NO_MATCH


def _fill_resource(point: InjectionPoint, name: str, content: Any) -> dict[str, Any]:
    metadata = point.resource["metadata"]
    annotations = {**metadata["annotations"], **dict.fromkeys(INJECTED_ANNOTATIONS, name)}
    return {**point.resource, "metadata": {**metadata, "annotations": annotations}, point.field: content}


def _write_points(files: FileTree, outcomes: Iterable[InjectionOutcome]) -> tuple[FileTree, tuple[Finding, ...]]:
    """Write the new contents of injection points. Return the files and the errors.

    There is an error for each SOPS document whose change would break its message authentication code (MAC).
    """
    findings: list[Finding] = []
    for outcome in outcomes:
        point, edited = outcome.point, outcome.edited
        if edited != point.resource:
            try:
                content = _replace_document(files[point.file].data, point, edited)
            except SopsMacError as error:
                findings.append(create_mac_finding(error, SourceLocation(point.file), f"the injection of {point.name}"))
                continue
            files = files.with_files({point.file: content})
    return files, tuple(findings)


def _replace_document(content: bytes, point: InjectionPoint, edited: Mapping[str, Any]) -> bytes:
    if point.file.endswith(".json"):
        document = parse_json_cached(content)
        assert isinstance(document, Document), "the injection points of the file were readable"
        check_sops_edit(document, dict(edited))
        return format_json(edited, content)
    source = parse_cached(content)
    assert isinstance(source, YamlFile), "the injection points of the file were readable"
    return source.replace(point.index, edit_document(source.documents[point.index], dict(edited))).to_bytes()


def _read_gates(files: FileTree) -> set[str]:
    kptfile = read_kptfile(files[KPTFILE].data) if KPTFILE in files else ()
    return set(kptfile.readiness_gates) if isinstance(kptfile, Kptfile) else set()


def update_conditions_and_gates(
    kptfile: Kptfile, outcomes: Sequence[InjectionOutcome], earlier_gates: Iterable[str] = ()
) -> Kptfile:
    """Return the Kptfile with the conditions of all injection points and the readiness gates of all required points.

    An optional injection point keeps its readiness gate if the Kptfile or `earlier_gates` contains the gate. If an
    injection point no longer exists, its condition and its gate are removed, because the condition could never become
    true. Conditions and gates that do not belong to injection points are kept.
    """
    new_conditions = {outcome.point.condition_type: outcome.condition for outcome in outcomes}
    required = {outcome.point.condition_type for outcome in outcomes if outcome.point.is_required}
    kept_conditions = {
        condition.type: condition for condition in kptfile.conditions if not _is_stale(condition.type, new_conditions)
    }
    conditions = {**kept_conditions, **new_conditions}
    kept_gates = {gate for gate in earlier_gates if gate in new_conditions}
    gates = {gate for gate in kptfile.readiness_gates if not _is_stale(gate, new_conditions)} | required | kept_gates
    return kptfile.with_conditions_and_gates(
        _keep_order_if_equal(kptfile.conditions, conditions.values()),
        _keep_order_if_equal(kptfile.readiness_gates, gates),
    )


def _is_stale(condition_type: str, points: Iterable[str]) -> bool:
    return condition_type.startswith(CONDITION_PREFIX) and condition_type not in points


def _keep_order_if_equal(old: Sequence[_Item], new: Iterable[_Item]) -> Sequence[_Item]:
    sorted_items = sorted(new)
    return old if sorted(old) == sorted_items else sorted_items


def _build_injections(outcomes: Iterable[InjectionOutcome]) -> tuple[ConfigInjection, ...]:
    return tuple(
        ConfigInjection(
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


def _create_missing_findings(outcomes: Iterable[InjectionOutcome]) -> tuple[Finding, ...]:
    """Return a warning for each required injection point for which no object was found."""
    return tuple(
        VariantCodes.INJECTION_MISSING.finding(
            f"the required injection point {point.kind} {point.name} is not filled: {outcome.condition.message}. The "
            f'draft cannot be published until the readiness gate "{point.condition_type}" is met. Next step: add the '
            "missing object or field to the config, name another object in spec.injectors, or set the annotation "
            f'{INJECTION_ANNOTATION} to "optional"',
            SourceLocation(point.file, object=f"{point.kind}/{point.name}", pointer=_ANNOTATION_POINTER),
        )
        for outcome in outcomes
        if (point := outcome.point).is_required and outcome.source is None
    )


def _create_gate_findings(gates: set[str], outcomes: Iterable[InjectionOutcome]) -> tuple[Finding, ...]:
    return tuple(
        VariantCodes.INJECTION_GATE_KEPT.finding(
            f'the readiness gate "{point.condition_type}" is kept, although the injection point is optional; '
            "if no reviewer needs the gate, remove it from info.readinessGates of the published Kptfile",
            SourceLocation(point.file, object=f"{point.kind}/{point.name}"),
        )
        for point in (outcome.point for outcome in outcomes)
        if not point.is_required and point.condition_type in gates
    )
