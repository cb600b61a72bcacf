"""The fleet of the component benchmark: components of one type, bound to environments, with platform and own addons."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from reconciler.git.local_repository import create_repository

ENVIRONMENTS = ("dev", "staging", "production")
SHIPPING = 10
"""Every so manieth component has opted into the addon that ships logs."""


@dataclass(frozen=True)
class Sizes:
    """Size of the fleet: the number of components, and of clusters per environment."""

    components: int
    clusters: int

    @property
    def packages(self) -> int:
        """The number of packages: one of each component on each cluster of each environment."""
        return self.components * len(ENVIRONMENTS) * self.clusters


def build_world(folder: Path, sizes: Sizes) -> None:
    """Build the fleet in a new folder: `config/` and an empty `fleet.git`."""
    (folder / "config").mkdir(parents=True)
    create_repository(folder / "fleet.git")
    for name, text in files(sizes).items():
        (folder / "config" / name).write_text(text)


def files(sizes: Sizes) -> Mapping[str, str]:
    """Return the files of the config."""
    mapping = {
        "notes.yaml": NOTES,
        "new.yaml": "# nothing yet\n",
        "service.yaml": SERVICE,
        "type.yaml": TYPE,
        "guard.yaml": GUARD,
        "scratch.yaml": SCRATCH,
        "shipper.yaml": SHIPPER,
        "meter.yaml": METER,
    }
    for environment in ENVIRONMENTS:
        names = [f"{environment}-{index:02}" for index in range(sizes.clusters)]
        mapping |= {f"cluster-{name}.yaml": CLUSTER.replace("NAME", name) for name in names}
        mapping[f"environment-{environment}.yaml"] = ENVIRONMENT.replace("NAME", environment) + ", ".join(names) + "]\n"
    for index in range(sizes.components):
        name = f"service-{index:03}"
        mapping[f"{name}.yaml"] = component(name, ships=index % SHIPPING == 0)
        mapping |= {f"{name}-{environment}.yaml": binding(name, environment) for environment in ENVIRONMENTS}
    return mapping


def component(name: str, *, ships: bool) -> str:
    """Return a component with its Build. It has the metrics addon, and optionally the log shipper."""
    shipper = "  logShipper: {sink: logs}\n" if ships else ""
    return COMPONENT.replace("NAME", name) + shipper + BUILD.replace("NAME", name)


def binding(name: str, environment: str) -> str:
    """Return an EnvBinding. Production has more replicas."""
    more = PRODUCTION if environment == "production" else ""
    return BINDING.replace("NAME", name).replace("ENVIRONMENT", environment) + more


def _changes() -> Iterator[tuple[str, tuple[str, str, str]]]:
    yield "unrelated", ("notes.yaml", "value: 1", "value: 2")
    yield "no-op", ("guard.yaml", "spec:", "# what everybody has\nspec:")
    yield "override", ("service-003-production.yaml", "replicas: 6", "replicas: 7")
    yield "build", ("service-003.yaml", ":1.0", ":1.1")
    yield "developer", ("shipper.yaml", "shipper:2.0", "shipper:2.1")
    yield "platform", ("guard.yaml", "port: 443", "port: 8443")
    new = component("service-new", ships=True) + "".join(
        f"---\n{binding('service-new', environment)}" for environment in ENVIRONMENTS
    )
    yield "service", ("new.yaml", "# nothing yet\n", new)


NOTES = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: notes, namespace: shop}
data:
  value: 1
"""
CLUSTER = """\
apiVersion: greenhouse.sap/v1alpha1
kind: Cluster
metadata: {name: NAME, namespace: team}
spec: {accessMode: direct}
"""
ENVIRONMENT = """\
apiVersion: reconciler.dev/v1alpha1
kind: Environment
metadata: {name: NAME}
spec:
  context: {domain: NAME.example.test}
  clusters: ["""
SERVICE = """\
apiVersion: platform/v1alpha1
kind: ComponentDefinition
metadata: {name: service, labels: {version: "3.1"}}
spec:
  schema:
    types:
      Port:
        name: string | required=true
        number: integer | required=true minimum=1 maximum=65535
        exposed: boolean | default=false
    parameters:
      ports: "[]Port | required=true minItems=1"
      pull: string | default=IfNotPresent enum="Always,IfNotPresent,Never"
    envOverrides:
      replicas: integer | default=1 minimum=0 maximum=20
      resources:
        cpu: string | default=100m
        memory: string | default=128Mi
  resources:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata: {name: "${metadata.name}", namespace: "${metadata.namespace}"}
      spec:
        replicas: ${spec.replicas}
        selector: {matchLabels: {app: "${metadata.name}"}}
        template:
          metadata: {labels: {app: "${metadata.name}"}}
          spec:
            containers:
            - name: main
              image: ${build.image}
              imagePullPolicy: ${spec.pull}
              ports: '${spec.ports.map(p, {"name": p.name, "containerPort": p.number})}'
              resources: {requests: {cpu: "${spec.resources.cpu}", memory: "${spec.resources.memory}"}}
  - id: door
    template:
      apiVersion: v1
      kind: Service
      metadata: {name: "${metadata.name}", namespace: "${metadata.namespace}"}
      spec:
        selector: {app: "${metadata.name}"}
        ports: '${spec.ports.map(p, {"name": p.name, "port": p.number})}'
  - id: route
    forEach: ${spec.ports.filter(p, p.exposed)}
    var: port
    template:
      apiVersion: networking.k8s.io/v1
      kind: Ingress
      metadata: {name: "${metadata.name}-${port.name}", namespace: "${metadata.namespace}"}
      spec:
        rules:
        - host: ${metadata.name}.${env.domain}
          http:
            paths:
            - path: /
              pathType: Prefix
              backend: {service: {name: "${metadata.name}", port: {number: "${port.number}"}}}
"""
TYPE = """\
apiVersion: platform/v1alpha1
kind: ComponentType
metadata: {name: edge-service}
spec:
  componentDefinitionRef: {name: service, version: "3.1"}
  platformAddons:
  - {name: scratch-space, instanceId: buffer, config: {mountPath: /buffer, size: 2Gi}}
  - {name: net-guard, instanceId: main, config: {from: [ingress]}}
  developerAddons:
    allowed:
    - {name: log-shipper, defaults: {level: warn}}
    - {name: meter}
"""
GUARD = """\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: net-guard}
spec:
  schema:
    envOverrides: {from: '[]string | default=[]'}
  creates:
  - id: guard
    resource:
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      metadata: {name: "${metadata.name}-guard", namespace: "${metadata.namespace}"}
      spec:
        podSelector: {matchLabels: {app: "${metadata.name}"}}
        ingress:
        - from: '${spec.from.map(n, {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": n}}})}'
          ports:
          - port: 443
"""
SCRATCH = """\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: scratch-space}
spec:
  schema:
    parameters:
      mountPath: string | required=true pattern="^/.+"
      container: string | default=main
    envOverrides:
      size: string | default=1Gi pattern="^[0-9]+(Mi|Gi)$"
  targets:
  - {resourceType: [Deployment, StatefulSet], containerName: "${spec.container}"}
  creates:
  - id: claim
    resource:
      apiVersion: v1
      kind: PersistentVolumeClaim
      metadata: {name: "${metadata.name}-${instanceId}", namespace: "${metadata.namespace}"}
      spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: "${spec.size}"}}}
  patches:
  - target: {resourceType: Deployment, containerName: "${spec.container}"}
    operations:
    - op: add
      path: /spec/template/spec/volumes/-
      value: {name: "${instanceId}", persistentVolumeClaim: {claimName: "${metadata.name}-${instanceId}"}}
    - op: add
      path: /spec/template/spec/containers[?(@.name=='${spec.container}')]/volumeMounts/-
      value: {name: "${instanceId}", mountPath: "${spec.mountPath}"}
"""
SHIPPER = """\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: log-shipper, labels: {allowedFor: developer}}
spec:
  schema:
    parameters: {enabled: boolean | default=true}
    envOverrides:
      level: string | default=info enum="debug,info,warn,error"
      sink: string | required=true
  dependencies:
    requires: [{addon: scratch-space}]
  creates:
  - id: settings
    resource:
      apiVersion: v1
      kind: ConfigMap
      metadata: {name: "${metadata.name}-log-shipper", namespace: "${metadata.namespace}"}
      data: {sink: "${spec.sink}", level: "${spec.level}"}
  patches:
  - target: {resourceType: Deployment}
    operations:
    - op: add
      path: /spec/template/spec/containers/-
      value:
        name: log-shipper
        image: registry.example.test/shipper:2.0
        env: [{name: LEVEL, value: "${spec.level}"}]
    - {op: merge, path: /metadata/annotations, value: {example.test/sink: "${spec.sink}"}}
"""
METER = """\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {name: meter, labels: {allowedFor: both}}
spec:
  schema:
    envOverrides: {port: integer | default=9100}
  patches:
  - target: {resourceType: Service}
    patch: {op: add, path: /spec/ports/-, value: {name: meter, port: "${spec.port}"}}
  - target: {resourceType: Deployment}
    patch: {op: merge, path: /spec/template/metadata/annotations, value: {example.test/port: "${string(spec.port)}"}}
"""
COMPONENT = """\
apiVersion: platform/v1alpha1
kind: EdgeService
metadata: {name: NAME, namespace: shop}
spec:
  replicas: 2
  ports:
  - {name: http, number: 8080, exposed: true}
  - {name: admin, number: 9000}
  meter: {}
"""
BUILD = """\
---
apiVersion: reconciler.dev/v1alpha1
kind: Build
metadata: {name: NAME, namespace: shop}
spec: {image: "registry.example.test/NAME:1.0", tag: "1.0"}
"""
BINDING = """\
apiVersion: platform/v1alpha1
kind: EnvBinding
metadata: {name: NAME-ENVIRONMENT, namespace: shop}
spec:
  owner: {componentName: NAME}
  environment: ENVIRONMENT
"""
PRODUCTION = """\
  overrides:
    replicas: 6
    resources: {memory: 512Mi}
  platformAddonOverrides: {scratchSpace: {size: 50Gi}}
"""

CHANGES: Mapping[str, tuple[str, str, str]] = dict(_changes())
"""Edits of the config: a file, what stands there, and what is to stand there once."""
