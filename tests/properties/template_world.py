"""A test fleet with a Kafka and its pools, placed and in packages, and changes by users in any order."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from tests.properties.edits import POLICY_EDITS, Edit, EditContext, insert_token
from tests.properties.policy_world import NAMESPACE, ROLES, SHOP, PolicyWorld
from tests.support.policies import policy
from tests.support.templates import MODE, bundle, kafka, pool
from tests.support.world import CLUSTERS

POOLS, MORE = "pools", "more"
TEMPLATES: Mapping[str, Mapping[str, Any] | None] = {
    "none": None,
    "pod": {"pod": {"priorityClassName": "high", "hostUsers": False}},
    "both": {"pod": {"priorityClassName": "low"}, "podSet": {"metadata": {"labels": {"tier": "bus"}}}},
    "empty": {"pod": {}, "podSet": {}},
    "null": {"pod": None},
    "own": {"kafkaContainer": {"env": []}},
    "of the wrong type": {"pod": []},
    "unfit": {"pod": {"tmpDirSizeLimit": "lots"}},
}
_NAMES = tuple(TEMPLATES)
_KAFKA = [{"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "name": "orders"}]
_PRIORITY = re.compile(r"(priorityClassName\"?): \"?\w+\"?")


def _rewrite_pod(context: EditContext, files: Mapping[str, str], name: str) -> dict[str, str]:
    """Return an edit of a property that belongs to the pool afterwards. Its upstream may still override it."""
    blob = files.get(f"{name}/pool.yaml")
    text = context.text(blob) if blob else ""
    changed = _PRIORITY.sub(r"\1: mine", text)
    return {f"{name}/pool.yaml": context.blob(changed)} if changed != text else {}


TEMPLATE_EDITS: Mapping[str, Edit] = {
    **POLICY_EDITS,
    "pool": insert_token("pool.yaml", "spec:\n", "spec:\n  note: {0}\n"),
    "pool again": insert_token("pool.yaml", "spec:\n", "spec:\n  note: {0}\n"),
    "pool's pod": _rewrite_pod,
    "kafka": insert_token("kafka-orders.yaml", "spec:\n", "spec:\n  note: {0}\n"),
}


class TemplateWorld(PolicyWorld):
    """The fleet with policies, a placed Kafka, and two packages of pools, one of which may contain the Kafka, too."""

    packages: ClassVar[Sequence[str]] = (*(POOLS, MORE), "metrics", ROLES, SHOP)
    edits: ClassVar[Mapping[str, Edit]] = TEMPLATE_EDITS

    def begin(self) -> None:
        """Request pools on every cluster with a Repository, and a Kafka for them on one cluster."""
        super().begin()
        for version in (1, 2, 3):
            self.release(POOLS, version, version - 1)
            self.release(MORE, version, version + 3)
        for item in CLUSTERS:
            self.request_package(item, POOLS)
            self.request_package(item, MORE)
        self.kafka("both", "*")

    def release(self, name: str, version: int, flavour: int) -> None:
        """Tag a package, possibly again. Pool packages have any template, and possibly another pool or the Kafka."""
        if name not in (POOLS, MORE):
            super().release(name, version, flavour)
            return
        own = TEMPLATES[_NAMES[flavour % len(_NAMES)]]
        marks = {MODE: "report"} if flavour % 5 == 4 else {}
        files = {"pool": pool(name, own, namespace=NAMESPACE, **marks)}
        if flavour % 7 == 6:
            files["twice"] = pool("twice", None, namespace=NAMESPACE)
        if flavour % 11 == 7:
            files["kafka"] = kafka(TEMPLATES["empty"], namespace=NAMESPACE)
        self._publish(name, version, bundle(name, **files))

    def kafka(self, template: str, clusters: str) -> None:
        """Place the Kafka with a template on clusters, or on none if the list is empty."""
        text = kafka(TEMPLATES[template], namespace=NAMESPACE, on=clusters) if clusters else None
        self.write("placed/orders.yaml", text)

    def urge(self, cluster: str) -> None:
        """Write a policy that gives the Kafka of one cluster another pod; "" deletes it."""
        path = "/spec/kafka/template/pod"
        patch = {"operator": "set", "path": path, "value": {"priorityClassName": "urgent"}}
        rule = {"targetClusters": {"clusters": [cluster]}, "overriders": {"jsonpatch": [patch]}}
        self.write("policies/urge.yaml", policy("urge", [rule], resourceSelectors=_KAFKA) if cluster else None)

    def rule(self, *, there: bool) -> None:
        """Write a rule for templates of other kinds, or delete it."""
        side = {"apiGroup": "ships.example", "kind": "Fleet", "path": "spec.common"}
        child = {**side, "kind": "Ship", "path": "spec.own", "parentLabel": "fleet"}
        spec = {"parent": side, "child": child, "properties": ["paint"]}
        head = "apiVersion: reconciler.dev/v1alpha1\nkind: TemplateMergeRule\nmetadata: {name: ships}\n"
        self.write("rules/ships.yaml", f"{head}spec: {json.dumps(spec)}\n" if there else None)

    def settle(self, names: Sequence[str] = ("first", "second")) -> None:
        """Run passes until one changes nothing, without duplicates, which would keep their earlier record."""
        self.single()
        super().settle(names)
