"""Builders of config objects for components as YAML, and functions that reconcile them and read the result."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.catalog import Catalog, ConfigObject, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.components.controller import reconcile_components
from reconciler.controllers.components.inputs import ComponentCache, ComponentControllerInputs
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import (
    ConfigStatus,
    ControllerResult,
    GeneratedSource,
    PackageOwner,
    StalledVariant,
    Variant,
)
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import emit, parse_yaml

API = "platform/v1alpha1"
GLUE = "reconciler.dev/v1alpha1"
UNREADABLE = "a: ]\n"
TRUE, FALSE = "${true}", "${false}"
Data = Mapping[str, Any]


def write_object(
    kind: str,
    name: str,
    spec: Any = None,
    *,
    namespace: str = "",
    labels: Data | None = None,
    annotations: Data | None = None,
    api: str = API,
    **more: Any,
) -> str:
    """Return a config object as YAML. `more` are fields beside its spec."""
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations}
    known = {field: value for field, value in metadata.items() if value}
    return emit({"apiVersion": api, "kind": kind, "metadata": known, "spec": {} if spec is None else spec, **more})


def manifest(kind: str = "ConfigMap", name: str = "${metadata.name}", **fields: Any) -> dict[str, Any]:
    """Return the template of an object in the namespace of its component."""
    api = {"Deployment": "apps/v1", "StatefulSet": "apps/v1", "CronJob": "batch/v1"}.get(kind, "v1")
    return {
        "apiVersion": api,
        "kind": kind,
        "metadata": {"name": name, "namespace": "${metadata.namespace}"},
        **fields,
    }


def pod_manifest(*containers: str, kind: str = "Deployment", name: str = "${metadata.name}") -> dict[str, Any]:
    """Return the template of a workload with these containers."""
    return manifest(
        kind, name, spec={"template": {"spec": {"containers": [{"name": container} for container in containers]}}}
    )


VALUES_TEMPLATE = manifest(data="${spec}")
"""A template of an object that shows the effective values."""


def schema(parameters: Data | None = None, environment: Data | None = None, types: Data | None = None) -> Data:
    sections = {"types": types, "parameters": parameters, "envOverrides": environment}
    return {key: value for key, value in sections.items() if value}


def resource(template: Data, name: str = "main", **more: Any) -> Data:
    return {"id": name, **more, "template": template}


def definition(*resources: Data, name: str = "stall", values: Data | None = None, **more: Any) -> str:
    """Return a component definition. The default resource shows the effective values."""
    spec = {"schema": dict(values or {}), "resources": list(resources) or [resource(VALUES_TEMPLATE)]}
    return write_object("ComponentDefinition", name, spec, **more)


def addon(name: str = "lamp", spec: Data | None = None, *, side: str = "", **more: Any) -> str:
    """Return an addon with this spec."""
    labels = {**({"allowedFor": side} if side else {}), **(more.pop("labels", None) or {})}
    return write_object("Addon", name, dict(spec or {}), labels=labels, **more)


def create(template: Data, **more: Any) -> Data:
    return {**more, "resource": template}


def patch(op: str, path: str, value: Any = None, target: Any = None, **more: Any) -> Data:
    """Return a patch. The default target is Deployments and ConfigMaps."""
    operation = {"op": op, "path": path, **({} if op == "remove" else {"value": value})}
    return {**more, "target": target or {"resourceType": ["Deployment", "ConfigMap"]}, "patch": operation}


def annotate(name: str, value: Any = "yes") -> Data:
    """Return a patch that adds an annotation."""
    return patch("merge", "/metadata/annotations", {name: value})


def annotator(name: str = "lamp", side: str = "", requires: Iterable[str] = (), **fields: Any) -> str:
    """Return an addon that adds an annotation with its own name. `fields` are more fields of its spec."""
    depends = {"requires": [{"addon": require} for require in requires]} if requires else {}
    spec = {"patches": [annotate(name)], **({"dependencies": depends} if depends else {}), **fields}
    return addon(name, spec, side=side)


def platform(name: str = "lamp", instance: str = "", config: Data | None = None, **more: Any) -> Data:
    return {
        "name": name,
        **({"instanceId": instance} if instance else {}),
        **({"config": config} if config else {}),
        **more,
    }


def allowed(name: str = "lamp", defaults: Data | None = None, **more: Any) -> Data:
    return {"name": name, **({"defaults": defaults} if defaults else {}), **more}


def component_type(
    *platform: Data, name: str = "market-stall", definition: str = "stall", allow: Iterable[Data] = (), **more: Any
) -> str:
    """Return a component type with these platform addons. `allow` are the developer addons."""
    spec = {
        "componentDefinitionRef": {"name": definition},
        **({"platformAddons": list(platform)} if platform else {}),
        **({"developerAddons": {"allowed": list(allow)}} if allow else {}),
    }
    outside = {key: more.pop(key) for key in ("namespace", "labels", "annotations") if key in more}
    return write_object("ComponentType", name, {**spec, **more}, **outside)


def component(spec: Data | None = None, name: str = "bread", kind: str = "MarketStall", **more: Any) -> str:
    return write_object(kind, name, dict(spec or {}), **{"namespace": "square", **more})


def untyped_component(*addons: Data, name: str = "bread", definition: str = "stall", **more: Any) -> str:
    """Return a component without a component type, which lists its own addons."""
    spec = {"componentDefinition": definition, **({"addons": list(addons)} if addons else {}), **more}
    return component(spec, name, "Component")


def binding(
    environment: str = "fair", component: str = "bread", name: str = "", namespace: str = "square", **more: Any
) -> str:
    """Return an EnvBinding. `more` are other fields of its spec."""
    annotations = more.pop("annotations", None)
    spec = {"owner": {"componentName": component} if component else None, "environment": environment, **more}
    known = {key: value for key, value in spec.items() if value is not None}
    return write_object(
        "EnvBinding", name or f"{component}-{environment}", known, namespace=namespace, annotations=annotations
    )


def cluster(name: str = "east", labels: Data | None = None) -> str:
    return write_object("Cluster", name, namespace="fleet", labels=labels, api="greenhouse.sap/v1alpha1")


def environment(name: str = "fair", clusters: Iterable[str] = ("east",), **more: Any) -> str:
    namespace = more.pop("namespace", "")
    return write_object("Environment", name, {"clusters": list(clusters), **more}, namespace=namespace, api=GLUE)


def build(name: str = "bread", spec: Data | None = None, namespace: str = "square") -> str:
    return write_object(
        "Build", name, dict(spec or {"image": f"registry.example.org/{name}:1"}), namespace=namespace, api=GLUE
    )


SIZED = definition(values=schema({"size": "integer | default=1"}, {"most": "integer | default=9"}))


ONE_ENVIRONMENT = (cluster(), environment())
"""One cluster and an environment with this cluster."""


def config_of_templates(*templates: Data, addons: Iterable[str] = ()) -> list[str]:
    """Return a config that renders these templates and applies these addons to them."""
    listed = list(addons)
    names = [f"a{number}" for number in range(len(listed))]
    resources = [resource(template, f"r{number}") for number, template in enumerate(templates)]
    return full_config(definition(*resources), *listed, component_type(*(platform(name, "i") for name in names)))


@dataclass
class PublishedPackages:
    """Published packages with their owners and the inputs of their last render."""

    owners: dict[PackageLocation, PackageOwner] = field(default_factory=dict)
    recorded_inputs: dict[PackageLocation, Collection[str]] = field(default_factory=dict)

    @classmethod
    def from_result(cls, result: ControllerResult) -> PublishedPackages:
        """Return the state after the whole result was published."""
        units = {(variant.target.repository, variant.target.package): variant for variant in result.variants}
        return cls(
            {unit: variant.owner for unit, variant in units.items()},
            {unit: variant.dependencies.keys() for unit, variant in units.items()},
        )

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        return self.owners

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return self.recorded_inputs


def catalog_of(files: Mapping[str, str], before: Catalog | None = None) -> Catalog:
    return read_catalog(FileTree({path: File(text.encode()) for path, text in files.items()}), previous=before)


def name_files(texts: Iterable[str]) -> dict[str, str]:
    return {f"{number:02}.yaml": text for number, text in enumerate(texts)}


def read_object(text: str) -> ConfigObject:
    """Return a config object as the component controller reads it."""
    (config_object,) = catalog_of({"one.yaml": text}).objects.values()
    return config_object


def reconcile_catalog(
    catalog: Catalog, branches: PublishedPackages | None = None, memory: ComponentCache | None = None, **more: Any
) -> ControllerResult:
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return reconcile_components(
        catalog, inventory, ComponentControllerInputs(branches or PublishedPackages(), **more), memory
    )


def reconcile(
    files: Mapping[str, str] | Iterable[str], branches: PublishedPackages | None = None, **more: Any
) -> ControllerResult:
    """Reconcile components from files or from texts. `more` are other inputs of the controller."""
    return reconcile_catalog(catalog_of(files if isinstance(files, Mapping) else name_files(files)), branches, **more)


def full_config(*texts: str, on: str = "", of: str = "") -> list[str]:
    """Return a config in which one component runs in one environment. `on` replaces its binding, `of` the component."""
    return [*ONE_ENVIRONMENT, *texts, of or component(), on or binding()]


def objects_of(variant: Variant) -> dict[str, Any]:
    """Return the objects of a package by file name."""
    assert isinstance(variant.source, GeneratedSource)
    return {name: parse_yaml(file.data).documents[0].data for name, file in variant.source.files.items()}


def variant_of(result: ControllerResult, place: str = "east/components/fair/square/bread") -> Variant:
    (variant,) = (item for item in result.variants if f"{item.target.repository}/{item.target.package}" == place)
    return variant


def read_objects(result: ControllerResult, place: str = "east/components/fair/square/bread") -> dict[str, Any]:
    return objects_of(variant_of(result, place))


def bytes_of(result: ControllerResult) -> dict[str, bytes]:
    """Return the content of all written files, by cluster, package and file."""
    return {
        f"{variant.target.repository}/{variant.target.package}/{name}": file.data
        for variant in result.variants
        if isinstance(variant.source, GeneratedSource)
        for name, file in variant.source.files.items()
    }


def list_findings(result: ControllerResult) -> list[Finding]:
    """Return all findings: of the config, of rendered packages and of stalled packages."""
    of_made = [finding for variant in result.variants for finding in variant.findings]
    return [
        *result.findings,
        *of_made,
        *(finding for stalled_variant in result.stalled for finding in stalled_variant.findings),
    ]


def list_codes(result: ControllerResult, *, without: Collection[str] = ("InstanceIdImplicit",)) -> list[str]:
    """Return the codes of all findings without duplicates."""
    return sorted({item.code for item in list_findings(result)} - set(without))


def find_finding(result: ControllerResult, code: str) -> Finding:
    return next(item for item in list_findings(result) if item.code == code)


def find_status(result: ControllerResult, kind: str, name: str) -> ConfigStatus:
    (config_status,) = (item for item in result.statuses if (item.key.kind, item.key.name) == (kind, name))
    return config_status


def read_ready(result: ControllerResult, kind: str, name: str) -> tuple[str, str]:
    """Return status and reason of the condition Ready of an object."""
    (condition,) = (item for item in find_status(result, kind, name).conditions if item.type == "Ready")
    return condition.status, condition.reason


def find_stalled(result: ControllerResult, name: str = "bread-fair") -> StalledVariant:
    (stalled_variant,) = (variant for variant in result.stalled if variant.owner.key.name == name)
    return stalled_variant


def read_values(result: ControllerResult, file: str = "configmap-bread.yaml") -> Any:
    """Return the effective values that the template `VALUES_TEMPLATE` shows."""
    return read_objects(result)[file]["data"]
