"""Test environment of the plugin preset controller: an organization, presets and overrides as YAML, and branches in
memory.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.clusters.inventory import read_inventory
from reconciler.controllers.deletion_guards import PackageLocation
from reconciler.controllers.plugin_presets.controller import PluginPresetInputs, generate_plugins
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ConfigStatus, ControllerResult, GeneratedSource, PackageOwner, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit, parse_yaml
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.model.sources import BranchPackage, RenderInputs, merge_source

API = "greenhouse.sap/v1alpha1"
UNREADABLE = "a: ]\n"
Data = Mapping[str, Any]


def build_object(
    kind: str,
    name: str,
    spec: Any = None,
    *,
    namespace: str = "acme",
    labels: Data | None = None,
    annotations: Data | None = None,
    **more: Any,
) -> str:
    """Return an object as YAML; `more` contains fields of its metadata."""
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations, **more}
    known = {field: dict(value) if isinstance(value, Mapping) else value for field, value in metadata.items() if value}
    return emit({"apiVersion": API, "kind": kind, "metadata": known, "spec": spec if spec is not None else {}})


def build_cluster(name: str, labels: Data | None = None, overrides: Iterable[Data] = (), **more: Any) -> str:
    spec = {"accessMode": "direct", **({"pluginOverrides": list(overrides)} if overrides else {})}
    return build_object("Cluster", name, spec, labels=labels or {"tier": "edge"}, **more)


def build_organization(overrides: Iterable[Data] = (), name: str = "acme") -> str:
    return build_object("Organization", name, {"pluginOverrides": list(overrides)}, namespace="")


def build_option(name: str, kind: str = "string", default: Any = None, *, required: bool = False, **more: Any) -> Data:
    entry = {"name": name, "type": kind, "required": required, **more}
    return entry if default is None else {**entry, "default": default}


def build_definition(
    options: Iterable[Data] = (), name: str = "shipper", *, cluster_scoped: bool = False, **more: Any
) -> str:
    chart = {"name": f"{name}-chart", "repository": "oci://charts.example.test/obs", "version": "1.0.0"}
    spec = {"version": "2.0.0", "helmChart": chart, "options": list(options), **more}
    kind, namespace = ("ClusterPluginDefinition", "") if cluster_scoped else ("PluginDefinition", "acme")
    return build_object(
        kind, name, {key: value for key, value in spec.items() if value is not None}, namespace=namespace
    )


def build_value(name: str, value: Any) -> Data:
    return {"name": name, "value": value}


def build_secret_value(name: str, secret_name: str = "keys", key: str = "k") -> Data:
    return {"name": name, "valueFrom": {"secret": {"name": secret_name, "key": key}}}


def build_expression_value(name: str, text: str) -> Data:
    return {"name": name, "expression": text}


def build_preset(
    options: Iterable[Data] = (),
    name: str = "logs",
    *,
    definition: str = "shipper",
    kind: str = "PluginDefinition",
    selector: Any = None,
    on: Mapping[str, Iterable[Data]] | None = None,
    plugin: Data | None = None,
    spec: Data | None = None,
    labels: Data | None = None,
    annotations: Data | None = None,
    namespace: str = "acme",
) -> str:
    """Return a preset; `on` contains its clusterOptionOverrides, `plugin` and `spec` contain more fields."""
    overrides = [{"clusterName": item, "overrides": list(entries)} for item, entries in (on or {}).items()]
    whole = {
        "clusterSelector": {"matchLabels": {"tier": "edge"}} if selector is None else selector,
        "plugin": {
            "pluginDefinitionRef": {"kind": kind, "name": definition},
            "optionValues": list(options),
            **(plugin or {}),
        },
        "clusterOptionOverrides": overrides,
        **(spec or {}),
    }
    return build_object("PluginPreset", name, whole, labels=labels, annotations=annotations, namespace=namespace)


def build_override(
    options: Iterable[Data],
    name: str = "ov",
    *,
    clusters: Any = None,
    definitions: Iterable[str] = (),
    namespace: str = "acme",
    created: str = "",
    **more: Any,
) -> str:
    """Return a PluginOverride; `more` contains fields of its spec."""
    spec = {"clusterSelector": clusters, "pluginDefinitionNames": list(definitions), "overrides": list(options), **more}
    known = {key: value for key, value in spec.items() if value or key == "overrides"}
    times: dict[str, Any] = {"creationTimestamp": created} if created else {}
    return build_object("PluginOverride", name, known, namespace=namespace, **times)


def build_plugin(options: Iterable[Data] = (), name: str = "boards", *, cluster: str = "east", **more: Any) -> str:
    labels, annotations = more.pop("labels", None), more.pop("annotations", None)
    spec = {
        "pluginDefinitionRef": {"kind": "PluginDefinition", "name": "shipper"},
        "clusterName": cluster,
        "optionValues": list(options),
        **more,
    }
    known = {key: value for key, value in spec.items() if value != ""}
    return build_object("Plugin", name, known, labels=labels, annotations=annotations)


EAST, WEST, CORE = build_cluster("east"), build_cluster("west"), build_cluster("core", {"tier": "core"})


@dataclass
class FakeBranches:
    """Owners and published Plugins of all clusters, by cluster and package."""

    owners: dict[PackageLocation, PackageOwner] = field(default_factory=dict)
    plugins: dict[PackageLocation, Data] = field(default_factory=dict)
    input_keys: dict[PackageLocation, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: ControllerResult) -> FakeBranches:
        """Return branches on which all packages of a result are published."""
        units = {(variant.target.repository, variant.target.package): variant for variant in result.variants}
        return cls(
            {unit: variant.owner for unit, variant in units.items()},
            {unit: read_plugin(variant) for unit, variant in units.items()},
            {unit: variant.dependencies.keys() for unit, variant in units.items()},
        )

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        return self.owners

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return self.input_keys

    def read_published(self, cluster: str) -> Mapping[str, Data]:
        return {package: data for (name, package), data in self.plugins.items() if name == cluster}

    def with_plugin(self, unit: PackageLocation, data: Data) -> FakeBranches:
        return FakeBranches(self.owners, {**self.plugins, unit: data}, self.input_keys)


def build_catalog(files: Mapping[str, str]) -> Catalog:
    return read_catalog(FileTree({path: File(text.encode()) for path, text in files.items()}))


def build_files(*texts: str) -> dict[str, str]:
    return {f"{number:02}.yaml": text for number, text in enumerate(texts)}


def run_controller(
    files: Mapping[str, str] | Iterable[str], branches: FakeBranches | None = None, **more: Any
) -> ControllerResult:
    """Run the controller on files or texts; `more` contains other inputs."""
    catalog = build_catalog(files if isinstance(files, Mapping) else build_files(*files))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return generate_plugins(catalog, inventory, PluginPresetInputs(branches or FakeBranches(), **more))


def read_plugin(variant: Variant, published: Data | None = None) -> dict[str, Any]:
    """Return the written Plugin. `standing` is the Plugin that a person wrote at the same path."""
    assert isinstance(variant.source, GeneratedSource)
    files = variant.source.files
    if published is not None:
        branch_files = FileTree({"plugin.yaml": File(emit(published).encode())})
        nothing = FileTree()
        branch_package = BranchPackage(branch_files, branch_files, branch_files, nothing, nothing)
        files = merge_source(RenderInputs(files, branch_package, is_generated=True), None, MergeOptions()).files
    mutated = variant.mutation(files, CatalogView(DependencyReader(build_catalog({}))))
    data: dict[str, Any] = parse_yaml(mutated.files["plugin.yaml"].data).documents[0].data
    return data


def list_plugins(result: ControllerResult) -> dict[str, dict[str, Any]]:
    """Return all written Plugins by `cluster/name`."""
    return {
        f"{variant.target.repository}/{variant.owner.key.name}": read_plugin(variant) for variant in result.variants
    }


def list_values(result: ControllerResult, name: str) -> dict[str, Any]:
    """Return the options of a Plugin by name, without the injected options."""
    entries = list_plugins(result)[name]["spec"]["optionValues"]
    shown = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}
    return {key: value for key, value in shown.items() if not key.startswith("global.greenhouse.")}


def find_variant(result: ControllerResult, name: str) -> Variant:
    (variant,) = (item for item in result.variants if f"{item.target.repository}/{item.owner.key.name}" == name)
    return variant


def list_findings(result: ControllerResult) -> list[Finding]:
    """Return all findings: of the config, of written Plugins, and of stalled Plugins."""
    of_made = [finding for variant in result.variants for finding in variant.findings]
    return [
        *result.findings,
        *of_made,
        *(finding for stalled_variant in result.stalled for finding in stalled_variant.findings),
    ]


def list_codes(result: ControllerResult) -> list[str]:
    """Return the codes of all findings, without duplicates."""
    return sorted({item.code for item in list_findings(result)})


def find_finding(result: ControllerResult, code: str) -> Finding:
    return next(item for item in list_findings(result) if item.code == code)


def find_status(result: ControllerResult, kind: str = "PluginPreset", name: str = "logs") -> ConfigStatus:
    (config_status,) = (item for item in result.statuses if (item.key.kind, item.key.name) == (kind, name))
    return config_status


def list_conditions(result: ControllerResult, name: str = "logs") -> dict[str, tuple[str, str]]:
    """Return the status and reason of the conditions of a preset."""
    return {
        condition.type: (condition.status, condition.reason) for condition in find_status(result, name=name).conditions
    }


def build_preset_key(name: str = "logs") -> ObjectKey:
    return ObjectKey("greenhouse.sap", "PluginPreset", "acme", name)


def list_steps(result: ControllerResult, name: str, option_name: str) -> list[Data]:
    """Return the provenance steps of an option of a Plugin."""
    provenance = find_variant(result, name).provenance
    assert provenance is not None
    (item,) = (layer for layer in provenance.list_layers() if layer["option"] == option_name)
    listed: list[Data] = item["steps"]
    return listed
