"""A KafkaNodePool and its Kafka, as far as they affect the result of templates; malformed values count as absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.controllers.nested_values import get_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.packages.package import PackageResource

BROKER, CONTROLLER = "broker", "controller"
ROLES = (BROKER, CONTROLLER)
NODE_ID_PLACEHOLDER = "{nodeId}"
# Listener types for which every broker has its own Service.
_EXTERNAL_TYPES = frozenset({"nodeport", "loadbalancer", "ingress", "route", "cluster-ip", "tlsroute"})
# Objects of this listener do not contain its name, because it is older than multiple listeners.
_LEGACY_NAME, _LEGACY_PORT = "external", 9094


@dataclass(frozen=True)
class Listener:
    """An external listener; `brokers` are labels and annotations for the objects of single brokers, by id."""

    name: str
    port: int
    type: str
    brokers: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=dict)

    @property
    def has_legacy_name(self) -> bool:
        """Whether the names of its objects do not contain the listener's name."""
        return (self.name, self.port) == (_LEGACY_NAME, _LEGACY_PORT)


@dataclass(frozen=True)
class NodePool:
    """A pool as the operator interprets it.

    Attributes:
        topology_key: The node label that gives brokers their rack; "" for none.
        claim_names: Names of the volume claims of every pod, without the pod's name.
        node_ids: Ids of the nodes, as far as they are known.
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
        """The prefix of the names of all its objects."""
        return f"{self.kafka}-{self.name}"

    @property
    def is_broker(self) -> bool:
        """Whether its nodes are brokers."""
        return BROKER in self.roles

    @property
    def has_init_container(self) -> bool:
        """Whether its pods have the init container."""
        return self.is_broker and (
            bool(self.topology_key) or any(listener.type == "nodeport" for listener in self.listeners)
        )

    @property
    def pod_names(self) -> tuple[str, ...]:
        """The names of its pods."""
        return tuple(f"{self.component_name}-{node_id}" for node_id in self.node_ids or (NODE_ID_PLACEHOLDER,))


def read_pool(kafka: PackageResource, pool: PackageResource) -> NodePool:
    """Return a pool with the relevant fields of its Kafka."""
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
    """Return the valid roles of a pool."""
    roles = get_value(pool.data, ("spec", "roles"))
    return tuple(role for role in ROLES if role in roles) if isinstance(roles, list) else ()


def as_mapping(value: Any) -> Mapping[str, Any]:
    """Return the value if it is a mapping, otherwise an empty mapping."""
    return value if isinstance(value, Mapping) else {}


def filter_strings(value: Any) -> Mapping[str, str]:
    """Return the entries of a mapping whose values are strings."""
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
    """Return the names of data volumes, and whether each is a claim."""
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
