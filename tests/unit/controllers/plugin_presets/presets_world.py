"""A small organization, presets and overrides in it, and what its branches have: written as YAML."""

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
from reconciler.packages.update import MergeOptions
from reconciler.planning.model.sources import BranchPackage, RenderInputs, merge_source

API = "greenhouse.sap/v1alpha1"
UNREADABLE = "a: ]\n"
Data = Mapping[str, Any]


def written(
    kind: str,
    name: str,
    spec: Any = None,
    *,
    namespace: str = "acme",
    labels: Data | None = None,
    annotations: Data | None = None,
    **more: Any,
) -> str:
    """Return an object; `more` are fields of its metadata."""
    metadata = {"name": name, "namespace": namespace, "labels": labels, "annotations": annotations, **more}
    known = {field: dict(value) if isinstance(value, Mapping) else value for field, value in metadata.items() if value}
    return emit({"apiVersion": API, "kind": kind, "metadata": known, "spec": spec if spec is not None else {}})


def cluster(name: str, labels: Data | None = None, overrides: Iterable[Data] = (), **more: Any) -> str:
    spec = {"accessMode": "direct", **({"pluginOverrides": list(overrides)} if overrides else {})}
    return written("Cluster", name, spec, labels=labels or {"tier": "edge"}, **more)


def organization(overrides: Iterable[Data] = (), name: str = "acme") -> str:
    return written("Organization", name, {"pluginOverrides": list(overrides)}, namespace="")


def option(name: str, kind: str = "string", default: Any = None, *, required: bool = False, **more: Any) -> Data:
    entry = {"name": name, "type": kind, "required": required, **more}
    return entry if default is None else {**entry, "default": default}


def definition(
    options: Iterable[Data] = (), name: str = "shipper", *, cluster_scoped: bool = False, **more: Any
) -> str:
    chart = {"name": f"{name}-chart", "repository": "oci://charts.example.test/obs", "version": "1.0.0"}
    spec = {"version": "2.0.0", "helmChart": chart, "options": list(options), **more}
    kind, namespace = ("ClusterPluginDefinition", "") if cluster_scoped else ("PluginDefinition", "acme")
    return written(kind, name, {key: value for key, value in spec.items() if value is not None}, namespace=namespace)


def given(name: str, value: Any) -> Data:
    return {"name": name, "value": value}


def secret(name: str, secret_name: str = "keys", key: str = "k") -> Data:
    return {"name": name, "valueFrom": {"secret": {"name": secret_name, "key": key}}}


def by_expression(name: str, text: str) -> Data:
    return {"name": name, "expression": text}


def preset(
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
    """Return a preset; `on` are its clusterOptionOverrides, `plugin` and `spec` further fields."""
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
    return written("PluginPreset", name, whole, labels=labels, annotations=annotations, namespace=namespace)


def override(
    options: Iterable[Data],
    name: str = "ov",
    *,
    clusters: Any = None,
    definitions: Iterable[str] = (),
    namespace: str = "acme",
    created: str = "",
    **more: Any,
) -> str:
    """Return a PluginOverride; `more` are fields of its spec."""
    spec = {"clusterSelector": clusters, "pluginDefinitionNames": list(definitions), "overrides": list(options), **more}
    known = {key: value for key, value in spec.items() if value or key == "overrides"}
    times: dict[str, Any] = {"creationTimestamp": created} if created else {}
    return written("PluginOverride", name, known, namespace=namespace, **times)


def plugin(options: Iterable[Data] = (), name: str = "boards", *, cluster: str = "east", **more: Any) -> str:
    labels, annotations = more.pop("labels", None), more.pop("annotations", None)
    spec = {
        "pluginDefinitionRef": {"kind": "PluginDefinition", "name": "shipper"},
        "clusterName": cluster,
        "optionValues": list(options),
        **more,
    }
    known = {key: value for key, value in spec.items() if value != ""}
    return written("Plugin", name, known, labels=labels, annotations=annotations)


EAST, WEST, CORE = cluster("east"), cluster("west"), cluster("core", {"tier": "core"})


@dataclass
class Branches:
    """What clusters have: the owners that state knows, and the Plugins that are published, by cluster and package."""

    owners: dict[PackageLocation, PackageOwner] = field(default_factory=dict)
    plugins: dict[PackageLocation, Data] = field(default_factory=dict)
    made_of: dict[PackageLocation, Collection[str]] = field(default_factory=dict)

    @classmethod
    def of(cls, result: ControllerResult) -> Branches:
        """Return the branches on which all of a result was published."""
        units = {(variant.target.repository, variant.target.package): variant for variant in result.variants}
        return cls(
            {unit: variant.owner for unit, variant in units.items()},
            {unit: data_of(variant) for unit, variant in units.items()},
            {unit: variant.dependencies.keys() for unit, variant in units.items()},
        )

    def get_owned_packages(self) -> Mapping[PackageLocation, PackageOwner]:
        return self.owners

    def get_recorded_inputs(self) -> Mapping[PackageLocation, Collection[str]]:
        return self.made_of

    def read_published(self, cluster: str) -> Mapping[str, Data]:
        return {package: data for (name, package), data in self.plugins.items() if name == cluster}

    def with_plugin(self, unit: PackageLocation, data: Data) -> Branches:
        return Branches(self.owners, {**self.plugins, unit: data}, self.made_of)


def catalog_of(files: Mapping[str, str]) -> Catalog:
    return read_catalog(FileTree({path: File(text.encode()) for path, text in files.items()}))


def config(*texts: str) -> dict[str, str]:
    return {f"{number:02}.yaml": text for number, text in enumerate(texts)}


def room(files: Mapping[str, str] | Iterable[str], branches: Branches | None = None, **more: Any) -> ControllerResult:
    """Return what the room makes of files, or of texts; `more` are surroundings."""
    catalog = catalog_of(files if isinstance(files, Mapping) else config(*files))
    inventory = read_inventory(catalog, read_repositories(catalog)[0])
    return generate_plugins(catalog, inventory, PluginPresetInputs(branches or Branches(), **more))


def data_of(variant: Variant, standing: Data | None = None) -> dict[str, Any]:
    """Return the Plugin that is written, where `standing` is one that people have in its place."""
    assert isinstance(variant.source, GeneratedSource)
    files = variant.source.files
    if standing is not None:
        theirs = FileTree({"plugin.yaml": File(emit(standing).encode())})
        nothing = FileTree()
        ours = BranchPackage(theirs, theirs, theirs, nothing, nothing)
        files = merge_source(RenderInputs(files, ours, is_generated=True), None, MergeOptions()).files
    mutated = variant.mutation(files, CatalogView(DependencyReader(catalog_of({}))))
    data: dict[str, Any] = parse_yaml(mutated.files["plugin.yaml"].data).documents[0].data
    return data


def plugins(result: ControllerResult) -> dict[str, dict[str, Any]]:
    """Return the Plugins that are made, by `cluster/name`."""
    return {f"{variant.target.repository}/{variant.owner.key.name}": data_of(variant) for variant in result.variants}


def values(result: ControllerResult, name: str) -> dict[str, Any]:
    """Return the options of a Plugin by name; what is injected is left out."""
    entries = plugins(result)[name]["spec"]["optionValues"]
    shown = {entry["name"]: entry.get("value", entry.get("valueFrom")) for entry in entries}
    return {key: value for key, value in shown.items() if not key.startswith("global.greenhouse.")}


def variant_of(result: ControllerResult, name: str) -> Variant:
    (variant,) = (item for item in result.variants if f"{item.target.repository}/{item.owner.key.name}" == name)
    return variant


def findings(result: ControllerResult) -> list[Finding]:
    """Return everything that is told: of the config, of Plugins that are made, and of those that are not."""
    of_made = [finding for variant in result.variants for finding in variant.findings]
    return [
        *result.findings,
        *of_made,
        *(finding for stalled_variant in result.stalled for finding in stalled_variant.findings),
    ]


def told(result: ControllerResult) -> list[str]:
    """Return the codes of all that is told, each once."""
    return sorted({item.code for item in findings(result)})


def finding(result: ControllerResult, code: str) -> Finding:
    return next(item for item in findings(result) if item.code == code)


def status(result: ControllerResult, kind: str = "PluginPreset", name: str = "logs") -> ConfigStatus:
    (config_status,) = (item for item in result.statuses if (item.key.kind, item.key.name) == (kind, name))
    return config_status


def conditions(result: ControllerResult, name: str = "logs") -> dict[str, tuple[str, str]]:
    """Return status and reason of a preset's conditions."""
    return {condition.type: (condition.status, condition.reason) for condition in status(result, name=name).conditions}


def preset_key(name: str = "logs") -> ObjectKey:
    return ObjectKey("greenhouse.sap", "PluginPreset", "acme", name)


def steps(result: ControllerResult, name: str, option_name: str) -> list[Data]:
    """Return the steps of an option of a Plugin."""
    provenance = variant_of(result, name).provenance
    assert provenance is not None
    (item,) = (layer for layer in provenance.list_layers() if layer["option"] == option_name)
    listed: list[Data] = item["steps"]
    return listed
