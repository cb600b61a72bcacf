"""Tests with example overriders on a Deployment. The letter in each id names the overrider."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    NAMESPACED_LABEL,
    add_labels,
    apply_overriders,
    emit,
    get_at_pointer,
    override_resource,
    parse_document,
    read_policies,
    read_resource,
)

ABSENT = object()
ORDERS = parse_document("""\
apiVersion: apps/v1
kind: Deployment
metadata:
  name: orders
  namespace: market
  labels: {app: orders, part: back}
  annotations: {owner: tills}
spec:
  replicas: 4
  template:
    spec:
      initContainers:
      - {name: migrate, image: tools/migrate:3}
      containers:
      - name: web
        image: hub.example:7000/market/orders:2.1
        command: [/bin/orders]
        args: [--verbose, --listen=:80]
        env:
        - {name: ZONE, value: none}
        - {name: RETRIES, value: "3"}
      - {name: mesh, image: mesh-proxy:1.1}
""")
POD = "/spec/template/spec"
WEB, MESH, MIGRATE = f"{POD}/containers/0", f"{POD}/containers/1", f"{POD}/initContainers/0"
SHA_A, SHA_B = "sha256:" + "ab" * 32, "sha256:" + "0c" * 32
LABELS, ANNOTATIONS = "/metadata/labels", "/metadata/annotations"


def build_image_overrider(names: str, *operations: str) -> str:
    chosen = f"containerNames: [{names}], " if names else ""
    return f"image: [{{{chosen}operations: [{', '.join(f'{{{operation}}}' for operation in operations)}]}}]"


def find_value(data: Any, pointer: str) -> Any:
    parent, _, last = pointer.rpartition("/")
    above = get_at_pointer(data, parent)
    return ABSENT if isinstance(above, dict) and last.replace("~1", "/") not in above else get_at_pointer(data, pointer)


EXAMPLES = {
    "I-01": (
        build_image_overrider("mesh", "imageComponent: Registry, operator: addIfAbsent, value: near.example"),
        {f"{MESH}/image": "near.example/mesh-proxy:1.1"},
    ),
    "I-02": (
        build_image_overrider("web", "imageComponent: Registry, operator: addIfAbsent, value: near.example"),
        "ComponentPresent",
    ),
    "I-03": (
        build_image_overrider("web", 'imageComponent: Registry, value: "near.example:443"'),
        {f"{WEB}/image": "near.example:443/market/orders:2.1"},
    ),
    "I-04": (
        build_image_overrider("mesh", "imageComponent: Registry, operator: overwrite, value: near.example"),
        {f"{MESH}/image": "near.example/mesh-proxy:1.1"},
    ),
    "I-05": (
        build_image_overrider("web", "imageComponent: Registry, operator: delete"),
        {f"{WEB}/image": "market/orders:2.1"},
    ),
    "I-06": (
        build_image_overrider("web", "imageComponent: Repository, operator: addIfAbsent, value: market/other"),
        "ComponentPresent",
    ),
    "I-07": (
        build_image_overrider("web", "imageComponent: Repository, operator: overwrite, value: edge/orders"),
        {f"{WEB}/image": "hub.example:7000/edge/orders:2.1"},
    ),
    "I-08": (
        build_image_overrider(
            "web",
            "imageComponent: Repository, operator: delete",
            "imageComponent: Repository, operator: addIfAbsent, value: edge/orders",
        ),
        {f"{WEB}/image": "hub.example:7000/edge/orders:2.1"},
    ),
    "I-09": (
        build_image_overrider("mesh", 'imageComponent: Tag, operator: addIfAbsent, value: "9"'),
        "ComponentPresent",
    ),
    "I-10": (
        build_image_overrider("", "imageComponent: Tag, operator: overwrite, value: canary"),
        {
            f"{MIGRATE}/image": "tools/migrate:canary",
            f"{WEB}/image": "hub.example:7000/market/orders:canary",
            f"{MESH}/image": "mesh-proxy:canary",
        },
    ),
    "I-11": (build_image_overrider("mesh", "imageComponent: Tag, operator: delete"), {f"{MESH}/image": "mesh-proxy"}),
    "I-12": (
        build_image_overrider("mesh", f'imageComponent: Digest, operator: addIfAbsent, value: "{SHA_A}"'),
        {f"{MESH}/image": f"mesh-proxy:1.1@{SHA_A}"},
    ),
    "I-13": (
        build_image_overrider("web", f'imageComponent: Digest, operator: overwrite, value: "{SHA_B}"'),
        {f"{WEB}/image": f"hub.example:7000/market/orders:2.1@{SHA_B}"},
    ),
    "I-14": (
        build_image_overrider("web", "imageComponent: Digest, operator: delete"),
        {f"{WEB}/image": "hub.example:7000/market/orders:2.1"},
    ),
    "I-15": (
        f"""\
        image:
        - imagePath: {MESH}/image
          containerNames: [web]
          operations: [{{imageComponent: Tag, value: "7"}}]
        """,
        {f"{WEB}/image": "hub.example:7000/market/orders:2.1", f"{MESH}/image": "mesh-proxy:7"},
    ),
    "I-16": (
        """\
        image:
        - containerNames: [mesh]
          operations: [{imageComponent: Registry, operator: addIfAbsent, value: near.example}]
        - containerNames: [mesh]
          operations:
          - {imageComponent: Registry, operator: overwrite, value: far.example}
          - {imageComponent: Tag, operator: delete}
        """,
        {f"{MESH}/image": "far.example/mesh-proxy"},
    ),
    "C-01": (
        "command: [{containerName: web, operator: append, value: [--dry]}]",
        {f"{WEB}/command": ["/bin/orders", "--dry"]},
    ),
    "C-02": (
        "command: [{containerName: mesh, operator: append, value: [/bin/mesh]}]",
        {f"{MESH}/command": ["/bin/mesh"]},
    ),
    "C-03": (
        "command: [{containerName: web, operator: overwrite, value: [sh, -c, exec orders]}]",
        {f"{WEB}/command": ["sh", "-c", "exec orders"]},
    ),
    "C-04": (
        "command: [{containerName: web, operator: delete, value: [/bin/orders, unheard-of]}]",
        {f"{WEB}/command": ABSENT},
    ),
    "R-01": (
        "args: [{containerName: web, operator: append, value: [--verbose, --zone=c]}]",
        {f"{WEB}/args": ["--verbose", "--listen=:80", "--verbose", "--zone=c"]},
    ),
    "R-02": (
        "args: [{containerName: migrate, operator: overwrite, value: [--once]}]",
        {f"{MIGRATE}/args": ["--once"]},
    ),
    "R-03": (
        "args: [{containerName: web, operator: delete, value: [--verbose]}]",
        {f"{WEB}/args": ["--listen=:80"]},
    ),
    "R-04": (
        """\
        args:
        - {containerName: web, operator: delete, value: [--verbose]}
        - {containerName: web, operator: append, value: [--quiet]}
        """,
        {f"{WEB}/args": ["--listen=:80", "--quiet"]},
    ),
    "R-05": (
        "args: [{containerName: nobody, operator: append, value: [--x]}]",
        {f"{WEB}/args": ["--verbose", "--listen=:80"]},
    ),
    "E-01": (
        "envs: [{containerName: web, operator: addIfAbsent, value: [{name: SITE, value: c}]}]",
        {
            f"{WEB}/env": [
                {"name": "ZONE", "value": "none"},
                {"name": "RETRIES", "value": "3"},
                {"name": "SITE", "value": "c"},
            ]
        },
    ),
    "E-02": ("envs: [{containerName: web, operator: addIfAbsent, value: [{name: ZONE, value: c}]}]", "KeyExists"),
    "E-03": (
        """\
        envs:
        - containerName: web
          value:
          - {name: ZONE, valueFrom: {fieldRef: {fieldPath: metadata.namespace}}}
          - {name: ELSEWHERE, value: x}
        """,
        {
            f"{WEB}/env": [
                {"name": "ZONE", "valueFrom": {"fieldRef": {"fieldPath": "metadata.namespace"}}},
                {"name": "RETRIES", "value": "3"},
            ]
        },
    ),
    "E-04": (
        "envs: [{containerName: web, operator: delete, value: [{name: RETRIES, value: whatever}]}]",
        {f"{WEB}/env": [{"name": "ZONE", "value": "none"}]},
    ),
    "A-01": (
        "annotations: [{operator: addIfAbsent, value: {lb.example/kind: inner}}]",
        {ANNOTATIONS: {"owner": "tills", "lb.example/kind": "inner"}},
    ),
    "A-02": (
        "annotations: [{operator: overwrite, value: {owner: kitchen, lb.example/kind: inner}}]",
        {ANNOTATIONS: {"owner": "kitchen"}},
    ),
    "A-03": ('annotations: [{operator: delete, value: {owner: ""}}]', {ANNOTATIONS: ABSENT}),
    "L-01": (
        "labels: [{operator: addIfAbsent, value: {wave.example/ring: one}}]",
        {LABELS: {"app": "orders", "part": "back", "wave.example/ring": "one"}},
    ),
    "L-02": ("labels: [{operator: addIfAbsent, value: {part: back}}]", "KeyExists"),
    "L-03": ("labels: [{value: {part: edge, unheard-of: x}}]", {LABELS: {"app": "orders", "part": "edge"}}),
    "L-04": ("labels: [{operator: delete, value: {part: whatever}}]", {LABELS: {"app": "orders"}}),
    "L-05": (
        """\
        labels:
        - {operator: delete, value: {part: ""}}
        - {operator: addIfAbsent, value: {part: edge}}
        """,
        {LABELS: {"app": "orders", "part": "edge"}},
    ),
    "J-01": (
        "jsonpatch: [{operator: add, path: /metadata/annotations/lb.example~1kind, value: inner}]",
        {ANNOTATIONS: {"owner": "tills", "lb.example/kind": "inner"}},
    ),
    "J-02": ("jsonpatch: [{operator: add, path: /spec/replicas, value: 9}]", {"/spec/replicas": 9}),
    "J-03": (
        f"jsonpatch: [{{operator: add, path: {WEB}/args/0, value: --early}}]",
        {f"{WEB}/args": ["--early", "--verbose", "--listen=:80"]},
    ),
    "J-04": (
        f"jsonpatch: [{{operator: add, path: {POD}/containers/-, value: {{name: tail, image: tools/tail}}}}]",
        {f"{POD}/containers/2": {"name": "tail", "image": "tools/tail"}},
    ),
    "J-05": (
        "jsonpatch: [{operator: add, path: /spec/template/metadata/labels/x, value: y}]",
        "PatchParentMissing",
    ),
    "J-06": ("jsonpatch: [{path: /spec/replicas, value: 6}]", {"/spec/replicas": 6}),
    "J-07": ("jsonpatch: [{operator: replace, path: /spec/paused, value: true}]", {"/spec/paused": True}),
    "J-08": (f"jsonpatch: [{{path: {POD}/containers/7/image, value: x}}]", "PatchParentMissing"),
    "J-09": ("jsonpatch: [{operator: remove, path: /metadata/labels/part}]", {LABELS: {"app": "orders"}}),
    "J-10": (f"jsonpatch: [{{operator: remove, path: {WEB}/args/1}}]", {f"{WEB}/args": ["--verbose"]}),
    "J-11": ("jsonpatch: [{operator: remove, path: /metadata/labels/unheard-of}]", "PatchTargetMissing"),
    "J-12": (
        f"""\
        jsonpatch:
        - {{operator: add, path: {POD}/nodeSelector, value: {{}}}}
        - {{operator: add, path: {POD}/nodeSelector/pool, value: cheap}}
        """,
        {f"{POD}/nodeSelector": {"pool": "cheap"}},
    ),
    "O-01": (
        f"""\
        image: [{{containerNames: [mesh], operations: [{{imageComponent: Tag, value: "8"}}]}}]
        jsonpatch: [{{path: {MESH}/image, value: "fixed.example/mesh:5"}}]
        """,
        {f"{MESH}/image": "fixed.example/mesh:5"},
    ),
    "O-02": (
        """\
        jsonpatch: [{operator: remove, path: /metadata/labels/ring}]
        labels: [{operator: addIfAbsent, value: {ring: b}}]
        """,
        {LABELS: {"app": "orders", "part": "back"}},
    ),
}


@pytest.mark.parametrize(("overriders", "expected"), EXAMPLES.values(), ids=EXAMPLES)
def test_example_overrider(overriders: str, expected: str | dict[str, Any]) -> None:
    result = apply_overriders(ORDERS, parse_document(overriders))

    if isinstance(expected, str):
        assert result == [expected]
    else:
        assert {pointer: find_value(result, pointer) for pointer in expected} == expected


BOTH = (
    """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: ClusterOverridePolicy
metadata: {name: everywhere}
spec:
  overrideRules:
  - overriders:
      labels: [{operator: addIfAbsent, value: {wave.example/fleet: first}}]
  - targetClusters:
      clusterSelector: {tier: edge}
      clusterAffinity:
      - matchExpressions:
        - {key: region, operator: In, values: [north, south]}
        - {key: gpu, operator: DoesNotExist, values: []}
      - matchFields: [{key: metadata.name, operator: In, values: [lab-1]}]
    overriders:
      image: [{operations: [{imageComponent: Registry, value: near.example}]}]
""",
    """\
apiVersion: core.kubeadmiral.io/v1alpha1
kind: OverridePolicy
metadata: {name: orders, namespace: market}
spec:
  overrideRules:
  - targetClusters: {clusters: [edge-n1]}
    overriders:
      labels: [{value: {wave.example/fleet: second}}]
      jsonpatch: [{path: /spec/replicas, value: 1}]
""",
)


@pytest.mark.parametrize(
    ("cluster", "labels", "fleet", "image_of_mesh", "replicas"),
    [
        ("edge-n1", {"tier": "edge", "region": "north"}, "second", "near.example/mesh-proxy:1.1", 1),
        ("edge-w1", {"tier": "edge", "region": "west"}, "first", "mesh-proxy:1.1", 4),
        ("core-1", {"tier": "core", "region": "north"}, "first", "mesh-proxy:1.1", 4),
        ("lab-1", {"tier": "edge", "gpu": "a"}, "first", "near.example/mesh-proxy:1.1", 4),
        ("edge-g1", {"tier": "edge", "region": "north", "gpu": "b"}, "first", "mesh-proxy:1.1", 4),
    ],
)
def test_two_policies_on_several_clusters(
    cluster: str, labels: dict[str, str], fleet: str, image_of_mesh: str, replicas: int
) -> None:
    document = add_labels(ORDERS, **{CLUSTER_LABEL: "everywhere", NAMESPACED_LABEL: "orders"})

    final_resource = override_resource(read_resource(emit(document)), read_policies(*BOTH), Cluster(cluster, labels))

    data = final_resource.document.data
    assert final_resource.findings == ()
    assert data["metadata"]["labels"] == {"app": "orders", "part": "back", "wave.example/fleet": fleet}
    assert (get_at_pointer(data, f"{MESH}/image"), get_at_pointer(data, "/spec/replicas")) == (image_of_mesh, replicas)
