"""The fields of a KafkaNodePool and its Kafka that determine which objects the operator creates from templates.

A value with a wrong type is treated as absent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.packages.package import PackageResource

BROKER, CONTROLLER = "broker", "controller"
ROLES = (BROKER, CONTROLLER)
NODE_ID_PLACEHOLDER = "{nodeId}"
# Types of listeners for which the operator creates a Service for each broker.
_EXTERNAL_TYPES = frozenset({"nodeport", "loadbalancer", "ingress", "route", "cluster-ip", "tlsroute"})
# A listener with this name and port is an exception: the names of the resources that Strimzi creates for the listener
# do not contain the listener name. Strimzi keeps this exception for compatibility with old versions.
_LEGACY_NAME, _LEGACY_PORT = "external", 9094


@dataclass(frozen=True)
class Listener:
    """An external listener. `brokers` maps a broker ID to the labels and the annotations for objects of this broker."""

    name: str
    port: int
    type: str
    brokers: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=dict)

    @property
    def has_legacy_name(self) -> bool:
        """Whether the listener's Kubernetes objects have legacy names, without the name of the listener."""
        return (self.name, self.port) == (_LEGACY_NAME, _LEGACY_PORT)


@dataclass(frozen=True)
class NodePool:
    """A KafkaNodePool as the operator interprets it.

    Attributes:
        topology_key: The node label that determines the rack of a broker. "" if the Kafka has no rack awareness.
        claim_names: Names of the volume claims of each pod, without the name of the pod.
        node_ids: IDs of the nodes from the status of the KafkaNodePool. Empty if they are unknown.
    """

    kafka: str
    name: str
    labels: Mapping[str, str]
    roles: tuple[str, ...]
    listeners: tuple[Listener, ...]
    topology_key: str
    claim_names: tuple[str, ...]
    data_volumes: tuple[str, ...]
    node_ids: tuple[str, ...]

    @property
    def component_name(self) -> str:
        """The prefix of the names of all objects that the operator creates for the pool."""
        return f"{self.kafka}-{self.name}"

    @property
    def is_broker(self) -> bool:
        """Whether the nodes of the pool are brokers."""
        return BROKER in self.roles

    @property
    def has_init_container(self) -> bool:
        """Whether the pods of the pool have an init container."""
        return self.is_broker and (
            bool(self.topology_key) or any(listener.type == "nodeport" for listener in self.listeners)
        )

    @property
    def pod_names(self) -> tuple[str, ...]:
        """The names of the pods. If the node IDs are unknown, there is one name with a placeholder."""
        return tuple(f"{self.component_name}-{node_id}" for node_id in self.node_ids or (NODE_ID_PLACEHOLDER,))


def read_pool(kafka: PackageResource, pool: PackageResource) -> NodePool:
    """Return a pool from a KafkaNodePool and the fields of its Kafka that affect the pool."""
    storage = as_mapping(get_value(pool.data, ("spec", "storage")))
    labels = {key: value for key, value in pool.labels.items() if isinstance(value, str)}
    return NodePool(
        kafka.name,
        pool.name,
        labels,
        read_roles(pool),
        tuple(
            _read_listener(listener)
            for listener in _list_mappings(kafka.data, ("spec", "kafka", "listeners"))
            if listener.get("type") in _EXTERNAL_TYPES
        ),
        _read_topology_key(as_mapping(get_value(kafka.data, ("spec", "kafka", "rack")))),
        tuple(name for name, is_claim in _list_data_volumes(storage) if is_claim),
        tuple(name for name, _ in _list_data_volumes(storage)),
        _read_node_ids(pool),
    )


def read_roles(pool: PackageResource) -> tuple[str, ...]:
    """Return the roles of a KafkaNodePool. Unknown roles are omitted."""
    roles = get_value(pool.data, ("spec", "roles"))
    return tuple(role for role in ROLES if role in roles) if isinstance(roles, list) else ()


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping. Otherwise, return an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def filter_strings(value: Any) -> Mapping[str, str]:
    """Return the entries of a mapping whose values are strings. Return {} if the value is not a mapping."""
    return {key: text for key, text in as_mapping(value).items() if isinstance(text, str)}


def _list_mappings(data: Any, path: DataPath) -> list[Mapping[str, Any]]:
    items = get_value(data, path)
    return [item for item in items if isinstance(item, Mapping)] if isinstance(items, list) else []


def _read_listener(data: Mapping[str, Any]) -> Listener:
    port = data.get("port")
    brokers = {
        str(broker["broker"]): (filter_strings(broker.get("labels")), filter_strings(broker.get("annotations")))
        for broker in _list_mappings(data, ("configuration", "brokers"))
        if "broker" in broker
    }
    return Listener(str(data.get("name", "")), port if isinstance(port, int) else 0, str(data["type"]), brokers)


def _read_topology_key(rack: Mapping[str, Any]) -> str:
    key = rack.get("topologyKey")
    return key if isinstance(key, str) and rack.get("type", "topology-label") == "topology-label" else ""


def _list_data_volumes(storage: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return the names of the data volumes, and for each volume whether it is a persistent volume claim."""
    if storage.get("type") != "jbod":
        return [("data", storage.get("type") == "persistent-claim")]
    return [
        (f"data-{volume.get('id', 0)}", volume.get("type") == "persistent-claim")
        for volume in _list_mappings(storage, ("volumes",))
    ]


def _read_node_ids(pool: PackageResource) -> tuple[str, ...]:
    ids = get_value(pool.data, ("status", "nodeIds"))
    if ids is ABSENT or not isinstance(ids, list):
        return ()
    return tuple(str(node_id) for node_id in sorted(node_id for node_id in ids if isinstance(node_id, int)))
