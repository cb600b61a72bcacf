"""The fleet of the preset benchmark: clusters of one organization, presets on all of them, overrides on every layer."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.git.local_repository import create_repository

DEFINITIONS = 5
_API = "apiVersion: greenhouse.sap/v1alpha1\n"


@dataclass(frozen=True)
class Sizes:
    """Size of the fleet. The first `edge` clusters have their own tier."""

    clusters: int
    presets: int
    edge: int

    @property
    def plugins(self) -> int:
        """The number of Plugins: one of each preset on each cluster."""
        return self.clusters * self.presets


def build_world(folder: Path, sizes: Sizes) -> None:
    """Build the fleet in a new folder: `config/` and an empty `fleet.git`."""
    (folder / "config").mkdir(parents=True)
    create_repository(folder / "fleet.git")
    for name, text in files(sizes).items():
        (folder / "config" / name).write_text(text)


def files(sizes: Sizes) -> Mapping[str, str]:
    """Return the files of the config."""
    mapping = {
        "acme.yaml": ORGANIZATION,
        "notes.yaml": NOTES,
        "edge.yaml": EDGE,
        "everywhere.yaml": EVERYWHERE,
        "shipping.yaml": SHIPPING,
    }
    mapping |= {f"cluster-{index:04}.yaml": cluster(sizes, index) for index in range(sizes.clusters)}
    mapping |= {f"definition-{index}.yaml": definition(index) for index in range(DEFINITIONS)}
    return mapping | {f"preset-{index:02}.yaml": preset(sizes, index) for index in range(sizes.presets)}


def cluster(sizes: Sizes, index: int) -> str:
    """Return one cluster. Every tenth cluster has overrides for its Plugins."""
    tier = "edge" if index < sizes.edge else "core"
    own = "  pluginOverrides:\n  - {name: ingress.class, value: public}\n" if index % 10 == 0 else ""
    return (
        f"{_API}kind: Cluster\nmetadata:\n  name: cluster-{index:04}\n  namespace: acme\n"
        f"  labels: {{tier: {tier}, metadata.greenhouse.sap/region: region-{index % 20:02}}}\n"
        f"spec:\n  accessMode: direct\n{own}"
    )


def definition(index: int) -> str:
    """Return a plugin definition with ten options."""
    return DEFINITION.replace("INDEX", str(index))


def preset(sizes: Sizes, index: int) -> str:
    """Return a preset for all clusters, with an override for every fiftieth cluster."""
    numbers = range(index % 50, sizes.clusters, 50)
    overrides = "".join(OF_CLUSTER.replace("INDEX", f"{number:04}") for number in numbers)
    return (
        PRESET.replace("INDEX", f"{index:02}").replace("DEFINITION", str(index % DEFINITIONS))
        + f"  clusterOptionOverrides:\n{overrides}"
    )


def _changes() -> Iterator[tuple[str, tuple[str, str, str]]]:
    yield "unrelated", ("notes.yaml", "value: 1", "value: 2")
    yield "cluster", ("preset-03.yaml", "value: 32}", "value: 48}")
    yield "tier", ("edge.yaml", "value: zfs", "value: btrfs")
    yield "default", ("definition-3.yaml", "default: none", "default: some")
    yield "no-op", ("everywhere.yaml", "spec:", "# what all clusters have\nspec:")


CHANGES: Mapping[str, tuple[str, str, str]] = dict(_changes())
"""Edits of the config: a file, what stands there, and what is to stand there once."""

NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: notes
  namespace: acme
data:
  value: 1
"""
ORGANIZATION = f"""\
{_API}kind: Organization
metadata:
  name: acme
spec:
  pluginOverrides:
  - {{name: global.imageRegistry, value: registry.acme.example}}
"""
EDGE = f"""\
{_API}kind: PluginOverride
metadata:
  name: edge
  namespace: acme
spec:
  clusterSelector:
    labelSelector: {{matchLabels: {{tier: edge}}}}
  overrides:
  - {{name: persistence.storageClass, value: zfs}}
  - {{name: resources.memory, value: 64Mi}}
"""
EVERYWHERE = f"""\
{_API}kind: PluginOverride
metadata:
  name: everywhere
  namespace: acme
spec:
  mode: Default
  overrides:
  - {{name: logLevel, value: info}}
"""
SHIPPING = f"""\
{_API}kind: PluginOverride
metadata:
  name: shipping
  namespace: acme
spec:
  pluginDefinitionNames: [shipper-0, shipper-1]
  overrides:
  - {{name: replicas, value: 3}}
"""
DEFINITION = f"""\
{_API}kind: ClusterPluginDefinition
metadata:
  name: shipper-INDEX
spec:
  version: 2.4.0
  helmChart: {{name: shipper-INDEX, repository: "oci://charts.example.test/obs", version: 1.9.3}}
  options:
  - {{name: buffer.size, type: int, required: false, default: 64}}
  - {{name: persistence.storageClass, type: string, required: false, default: standard}}
  - {{name: persistence.enabled, type: bool, required: false, default: true}}
  - {{name: resources.memory, type: string, required: false, default: 128Mi}}
  - {{name: ingress.class, type: string, required: false, default: private}}
  - {{name: logLevel, type: string, required: false, default: warn}}
  - {{name: proxy, type: string, required: false, default: none}}
  - {{name: replicas, type: int, required: false, default: 1}}
  - {{name: token, type: secret, required: true}}
  - {{name: endpoint, type: string, required: true}}
"""
PRESET = f"""\
{_API}kind: PluginPreset
metadata:
  name: logs-INDEX
  namespace: acme
spec:
  clusterSelector:
    matchExpressions:
    - {{key: tier, operator: In, values: [edge, core]}}
  plugin:
    pluginDefinitionRef: {{kind: ClusterPluginDefinition, name: shipper-DEFINITION}}
    releaseName: logs-INDEX
    releaseNamespace: observability
    optionValues:
    - name: endpoint
      expression: "https://in.${{global.greenhouse.metadata.region}}.example.test/${{global.greenhouse.clusterName}}"
    - {{name: buffer.size, value: 128}}
    - {{name: token, valueFrom: {{secret: {{name: shipper, key: token}}}}}}
"""
OF_CLUSTER = """\
  - clusterName: cluster-INDEX
    overrides:
    - {name: buffer.size, value: 32}
"""
