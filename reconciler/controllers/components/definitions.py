"""Component definitions and addons with compiled templates, and their lookup by name."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, Final, Generic, TypeVar

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.codes import CatalogCodes
from reconciler.controllers.components.addon_order import AddonOrderConstraints
from reconciler.controllers.components.field_findings import FieldFinding
from reconciler.controllers.components.model import ADDON, DEFINITION, GROUP, AddonRole
from reconciler.controllers.components.patching.operations import OperationTemplate
from reconciler.controllers.components.patching.targets import PatchTarget
from reconciler.controllers.components.schema import ComponentSchema
from reconciler.controllers.components.templates import CompiledRule, CompiledTemplate, TemplateCondition, TemplateLoop
from reconciler.krm.field_text import format_list
from reconciler.krm.findings import Finding
from reconciler.krm.json_text import compute_digest
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

ROLES_BY_LABEL: Final[Mapping[str, frozenset[AddonRole]]] = {
    "platform-engineer": frozenset({"platform"}),
    "developer": frozenset({"developer"}),
    "both": frozenset({"platform", "developer"}),
}
"""Roles that can use an addon, by the value of its label `allowedFor`. The first value is the default."""


@dataclass(frozen=True, eq=False)
class ObjectTemplate:
    """Compiled entry of `resources` in a component definition, or of `creates` in an addon.

    All resources that the entry renders get the id in `id`. `id` is "" if the entry sets no id.
    """

    id: str
    include_when: TemplateCondition
    loop: TemplateLoop
    template: CompiledTemplate
    data: Mapping[str, Any]
    path: DataPath

    @property
    def field_findings(self) -> Iterator[FieldFinding]:
        """Errors in the templates of the entry, found by the compilation."""
        yield from (*self.include_when.field_findings, *self.loop.field_findings, *self.template.field_findings)

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the entry use."""
        return self.include_when.variables | self.loop.variables | self.template.variables


@dataclass(frozen=True, eq=False)
class CompiledOperation:
    """Patch operation with compiled templates for its path and its value."""

    operation: OperationTemplate
    path: CompiledTemplate | None
    value: CompiledTemplate | None

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the path and the value of the operation use."""
        return frozenset().union(*(template.variables for template in (self.path, self.value) if template))


@dataclass(frozen=True, eq=False)
class AddonPatch:
    """Compiled entry of `patches` in an addon. `should_skip_missing` is true for `onMissing: skip`."""

    condition: TemplateCondition
    loop: TemplateLoop
    target: CompiledTemplate
    operations: tuple[CompiledOperation, ...]
    should_skip_missing: bool
    path: DataPath

    @property
    def field_findings(self) -> Iterator[FieldFinding]:
        """Errors in the templates of the patch, found by the compilation."""
        yield from (*self.condition.field_findings, *self.loop.field_findings, *self.target.field_findings)
        for operation in self.operations:
            for template in (operation.path, operation.value):
                yield from template.field_findings if template else ()

    @property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the patch use."""
        variables = (operation.variables for operation in self.operations)
        return frozenset().union(self.condition.variables, self.loop.variables, self.target.variables, *variables)


@dataclass(frozen=True)
class AddonReference:
    """Entry of an addon that names another addon, e.g. in `requires`. `reason` is the field `reason` of the entry."""

    addon: str
    path: DataPath
    reason: str = ""


@dataclass(frozen=True, eq=False)
class ComponentDefinition:
    """Component definition without errors, with compiled templates."""

    manifest: ConfigObject
    version: str
    schema: ComponentSchema
    resources: tuple[ObjectTemplate, ...]


@dataclass(frozen=True, eq=False)
class Addon:
    """Addon without errors, with compiled templates."""

    manifest: ConfigObject
    version: str
    description: str
    allowed_roles: frozenset[AddonRole]
    schema: ComponentSchema
    condition: TemplateCondition
    targets: tuple[PatchTarget, ...]
    creates: tuple[ObjectTemplate, ...]
    patches: tuple[AddonPatch, ...]
    requires: tuple[AddonReference, ...]
    conflicts: tuple[AddonReference, ...]
    after: tuple[AddonReference, ...]
    before: tuple[AddonReference, ...]
    rules: tuple[CompiledRule, ...]

    @property
    def name(self) -> str:
        """Name of the addon, which is unique across namespaces."""
        return self.manifest.key.name

    @cached_property
    def order_constraints(self) -> AddonOrderConstraints:
        """Names of the addons that must run before or after the addon."""
        relations = (self.requires, self.after, self.before)
        return AddonOrderConstraints(*(tuple(reference.addon for reference in references) for references in relations))

    @property
    def digest(self) -> str:
        """Digest of the spec and the version of the addon."""
        return compute_digest({"spec": self.manifest.data["spec"], "version": self.version})

    @cached_property
    def variables(self) -> frozenset[str]:
        """Names of the variables that the templates of the addon use."""
        parts: tuple[ObjectTemplate | AddonPatch | CompiledRule, ...] = (*self.creates, *self.patches, *self.rules)
        return self.condition.variables.union(*(part.variables for part in parts))


_Definition = TypeVar("_Definition")


@dataclass(frozen=True)
class NameIndex(Generic[_Definition]):
    """Usable objects of one kind, by name.

    `unusable_reasons` contains the names of objects that are invalid or declared more than once, each with the reason.
    """

    kind: str
    by_name: Mapping[str, _Definition]
    unusable_reasons: Mapping[str, str]

    def explain_absence(self, name: str) -> str:
        """Return the reason why `by_name` contains no object with this name."""
        if name in self.unusable_reasons:
            return f"{self.kind} {name} {self.unusable_reasons[name]}"
        names = format_list(sorted({*self.by_name, *self.unusable_reasons})) or "none"
        return f"no {self.kind} has the name {name}; existing: {names}"


@dataclass(frozen=True)
class DefinitionIndex:
    """All component definitions and addons of a config."""

    definitions: NameIndex[ComponentDefinition]
    addons: NameIndex[Addon]
    findings: tuple[Finding, ...] = ()


def build_definition_index(
    catalog: Catalog,
    read_definition: Callable[[ConfigObject], tuple[ComponentDefinition | None, tuple[Finding, ...]]],
    read_addon: Callable[[ConfigObject], tuple[Addon | None, tuple[Finding, ...]]],
) -> DefinitionIndex:
    """Read all component definitions with `read_definition`, and all addons with `read_addon`."""
    findings: list[Finding] = []
    return DefinitionIndex(
        _build_name_index(catalog, DEFINITION, read_definition, findings),
        _build_name_index(catalog, ADDON, read_addon, findings),
        tuple(findings),
    )


def _build_name_index(
    catalog: Catalog,
    kind: str,
    read_object: Callable[[ConfigObject], tuple[_Definition | None, tuple[Finding, ...]]],
    findings: list[Finding],
) -> NameIndex[_Definition]:
    unusable: dict[str, str] = {}
    by_name: dict[str, _Definition] = {}
    for name, objects in group_by_name(catalog, GROUP, kind).items():
        if len(objects) > 1:
            unusable[name] = "is declared more than once"
            findings += build_unreported_duplicate_findings(objects)
            continue
        definition, definition_findings = read_object(objects[0])
        findings += definition_findings
        if definition is None:
            unusable[name] = "is invalid"
        else:
            by_name[name] = definition
    return NameIndex(kind, by_name, unusable)


def group_by_name(catalog: Catalog, group: str, kind: str) -> Mapping[str, list[ConfigObject]]:
    """Return all objects of a kind by name. Objects in different namespaces can have the same name."""
    objects_by_name: dict[str, list[ConfigObject]] = {}
    for manifest in catalog.objects_of_kind(group, kind):
        objects_by_name.setdefault(manifest.key.name, []).append(manifest)
    for key, copies in catalog.copies.items():
        if (key.group, key.kind) == (group, kind):
            objects_by_name.setdefault(key.name, []).extend(copies)
    return {name: objects_by_name[name] for name in sorted(objects_by_name)}


def build_duplicate_findings(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return one error for each object in `objects`. All these objects must have the same name."""
    locations = format_list(
        [f"{manifest.key} at {manifest.file}:{manifest.document.line}" for manifest in objects], " and "
    )
    key = objects[0].key
    message = (
        f"{key.kind} {key.name} must be declared once across all namespaces, not {len(objects)} times: {locations}"
    )
    return [CatalogCodes.DUPLICATE_OBJECT.finding(message, manifest.location) for manifest in objects]


def build_unreported_duplicate_findings(objects: Sequence[ConfigObject]) -> list[Finding]:
    """Return one error for each of several objects that have the same name in different namespaces.

    Return no error for objects in one namespace, because the catalog reports them.
    """
    return build_duplicate_findings(objects) if len({manifest.key for manifest in objects}) > 1 else []
