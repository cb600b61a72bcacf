"""Models of component types, components, EnvBindings, Environments and Builds, and the functions that read them.

Component definitions and addons contain templates. The module `definitions` reads them.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any, Literal, TypeVar

from reconciler.api import openchoreo
from reconciler.api import reconciler as reconciler_api
from reconciler.api.manifest import CheckedManifest, read_manifest
from reconciler.api.openchoreo import DEFAULT_INSTANCE
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import MAX_FINDINGS_PER_OBJECT
from reconciler.controllers.components.names import COMPONENT
from reconciler.controllers.validation import create_field_findings
from reconciler.krm.findings import CommonCodes, Finding, FindingCode
from reconciler.krm.objects import ObjectKey
from reconciler.krm.selectors import LabelSelector
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass

AddonRole = Literal["platform", "developer"]
Values = Mapping[str, Any]
CODES_BY_NAME = {**CommonCodes.by_name, **ControllerCodes.by_name, **ComponentCodes.by_name}
"""Finding codes that validation errors of component objects can have, by name."""

_Manifest = TypeVar("_Manifest", bound=CheckedManifest)


def read_object(
    model: type[_Manifest], manifest: ConfigObject, code: FindingCode
) -> tuple[_Manifest | None, tuple[Finding, ...]]:
    """Return a valid object. Return None and all errors if the object is invalid."""
    result = read_manifest(model, manifest.data)
    errors = result.errors[:MAX_FINDINGS_PER_OBJECT]
    return result.model, create_field_findings(manifest, errors, code, CODES_BY_NAME) if errors else ()


@dataclass(frozen=True, order=True)
class AddonInstance:
    """Identity of one use of an addon, as shown in provenance and messages.

    The role is part of the identity. Therefore, a component type can list an addon as a platform addon and also allow
    it for developers, both with the same id.
    """

    addon: str
    id: str = DEFAULT_INSTANCE
    role: AddonRole = "platform"

    def __str__(self) -> str:
        return f"{self.addon}/{self.id}"


@dataclass(frozen=True, eq=False)
class AddonDeclaration:
    """Addon that a component type adds to its components, or that a component without a type lists."""

    instance: AddonInstance
    config: Values
    path: DataPath
    has_instance_id: bool
    condition: Any = None


def _declare_addon(
    use: openchoreo.AddonUse, path: DataPath, role: AddonRole, condition: Any = None
) -> AddonDeclaration:
    instance = AddonInstance(use.name, use.instance_id or DEFAULT_INSTANCE, role)
    return AddonDeclaration(instance, use.config, path, use.instance_id is not None, condition)


PLATFORM_ADDONS: DataPath = ("spec", "platformAddons")
ALLOWED_ADDONS: DataPath = ("spec", "developerAddons", "allowed")
LISTED_ADDONS: DataPath = ("spec", "addons")


@dataclass(frozen=True, eq=False)
class ComponentType:
    """Component type before its compilation."""

    manifest: ConfigObject
    spec: openchoreo.ComponentTypeSpec

    @property
    def definition(self) -> str:
        """Name of the component definition."""
        return self.spec.component_definition_ref.name

    @cached_property
    def platform_addons(self) -> tuple[AddonDeclaration, ...]:
        """Addons that the component type adds to all its components."""
        return tuple(
            _declare_addon(use, (*PLATFORM_ADDONS, index), "platform", use.condition)
            for index, use in enumerate(self.spec.platform_addons)
        )

    @property
    def allowed_addons(self) -> tuple[tuple[DataPath, openchoreo.AllowedAddon], ...]:
        """Developer addons that the components of the type can use, with their paths."""
        return tuple(
            ((*ALLOWED_ADDONS, index), addon) for index, addon in enumerate(self.spec.developer_addons.allowed)
        )

    @property
    def addon_names(self) -> tuple[str, ...]:
        """Names of all addons that the component type refers to."""
        platform = (addon.instance.addon for addon in self.platform_addons)
        return (*platform, *(addon.name for _, addon in self.allowed_addons))

    @property
    def flattened_name(self) -> str:
        """Name of the flattened definition to generate. "" if no such definition is requested."""
        return self.manifest.annotations.get(openchoreo.FLATTEN_ANNOTATION, "")


def read_component_type(manifest: ConfigObject) -> tuple[ComponentType | None, tuple[Finding, ...]]:
    """Read a component type. Return None and the findings if the component type has errors."""
    model, findings = read_object(openchoreo.ComponentType, manifest, ComponentCodes.COMPONENT_TYPE_INVALID)
    return ComponentType(manifest, model.spec) if model else None, findings


@dataclass(frozen=True, eq=False)
class Component:
    """Component with the values that a developer sets.

    The kind of a component is generated by a component type, or is `Component`. An object of the kind `Component` has
    no type, and its spec names the component definition. `values` also contains the values of developer addons, below
    the key of each addon.
    """

    manifest: ConfigObject
    values: Values
    definition: str = ""
    addons: tuple[AddonDeclaration, ...] | None = None

    @property
    def key(self) -> ObjectKey:
        """Group, kind, namespace and name of the component."""
        return self.manifest.key

    @property
    def has_type(self) -> bool:
        """Whether a component type generates the kind of the component."""
        return self.addons is None

    @property
    def addon_names(self) -> tuple[str, ...]:
        """Names of the addons that a component without a type lists."""
        return tuple(addon.instance.addon for addon in self.addons or ())


def read_component(manifest: ConfigObject) -> tuple[Component | None, tuple[Finding, ...]]:
    """Read a component. Return None and the findings if the component has errors.

    For a generated kind, the fields of the spec are not checked here, because the allowed fields depend on the
    component type.
    """
    if manifest.key.kind != COMPONENT:
        typed, findings = read_object(openchoreo.TypedComponent, manifest, ComponentCodes.COMPONENT_INVALID)
        return Component(manifest, typed.spec) if typed else None, findings
    model, findings = read_object(openchoreo.Component, manifest, ComponentCodes.COMPONENT_INVALID)
    if model is None:
        return None, findings
    uses = enumerate(model.spec.addons)
    addons = tuple(_declare_addon(use, (*LISTED_ADDONS, index), "developer") for index, use in uses)
    return Component(manifest, model.spec.parameters, model.spec.component_definition, addons), findings


@dataclass(frozen=True, eq=False)
class EnvBinding:
    """Binding of a component to an environment."""

    manifest: ConfigObject
    spec: openchoreo.EnvBindingSpec

    @property
    def key(self) -> ObjectKey:
        """Group, kind, namespace and name of the EnvBinding."""
        return self.manifest.key

    @property
    def component(self) -> str:
        """Name of the component. "" if the EnvBinding does not name a component."""
        return self.spec.owner.component_name

    @property
    def namespace(self) -> str:
        """Namespace of the component."""
        return self.spec.owner.namespace or self.manifest.key.namespace

    @property
    def environment(self) -> str:
        """Name of the environment."""
        return self.spec.environment


def read_binding(manifest: ConfigObject) -> tuple[EnvBinding | None, tuple[Finding, ...]]:
    """Read an EnvBinding. Return None and the findings if the EnvBinding has errors."""
    model, findings = read_object(openchoreo.EnvBinding, manifest, ComponentCodes.ENV_BINDING_INVALID)
    return EnvBinding(manifest, model.spec) if model else None, findings


@dataclass(frozen=True, eq=False)
class Environment:
    """Environment for components. `spec.context` is the template variable `env`."""

    manifest: ConfigObject
    spec: reconciler_api.EnvironmentSpec

    @property
    def selector(self) -> LabelSelector | None:
        """Selector for more clusters, in addition to the clusters of the environment. None if it is not set."""
        selector = self.spec.cluster_selector
        return selector.selector if selector else None


def read_environment(manifest: ConfigObject) -> tuple[Environment | None, tuple[Finding, ...]]:
    """Read an Environment. Return None and the findings if the Environment has errors."""
    model, findings = read_object(reconciler_api.Environment, manifest, ComponentCodes.ENVIRONMENT_INVALID)
    return Environment(manifest, model.spec) if model else None, findings


@dataclass(frozen=True, eq=False)
class Build:
    """A Build object, which describes the result of a software build, e.g. an image.

    `workload` is the value of the template variable `workload`.
    """

    manifest: ConfigObject
    workload: Values

    @property
    def context(self) -> Values:
        """Spec of the Build, which templates can read as the variable `build`."""
        spec: Values = self.manifest.data["spec"]
        return spec


def read_build(manifest: ConfigObject) -> tuple[Build | None, tuple[Finding, ...]]:
    """Read a Build, whose spec can contain any fields. Return None and the findings if the Build has errors."""
    model, findings = read_object(reconciler_api.Build, manifest, ComponentCodes.BUILD_INVALID)
    return Build(manifest, model.spec.workload) if model else None, findings
