"""A KafkaNodePool and its Kafka, as far as they decide where templates land; what is malformed reads as absent."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource
from reconciler.rules.edits import value_at

BROKER, CONTROLLER = "broker", "controller"
ROLES = (BROKER, CONTROLLER)
NODE_ID = "{nodeId}"
# listeners for which every broker has a Service of its own
_EXTERNAL = frozenset({"nodeport", "loadbalancer", "ingress", "route", "cluster-ip", "tlsroute"})
# one listener has names without it, from before there was more than one
_OLD_NAME, _OLD_PORT = "external", 9094


@dataclass(frozen=True)
class Listener:
    """An external listener; `brokers` are labels and annotations for the objects of single brokers, by id."""

    name: str
    port: int
    type: str
    brokers: Mapping[str, tuple[Mapping[str, str], Mapping[str, str]]] = field(default_factory=dict)

    @property
    def has_old_name(self) -> bool:
        """Whether the names of its objects leave its own out."""
        return (self.name, self.port) == (_OLD_NAME, _OLD_PORT)


@dataclass(frozen=True)
class Pool:
    """A pool as its operator sees it.

    `topology_key` is the label by which brokers learn their rack, "" for none; `claims` are the names, before the
    pod's, of the claims of every pod; `ids` those of its nodes, as far as they are known.
    """

    kafka: str
    name: str
    labels: Mapping[str, str]
    roles: tuple[str, ...]
    listeners: tuple[Listener, ...]
    topology_key: str
    claims: tuple[str, ...]
    data_volumes: tuple[str, ...]
    ids: tuple[str, ...]

    @property
    def component(self) -> str:
        """What the names of all its objects begin with (strimzi 3.6)."""
        return f"{self.kafka}-{self.name}"

    @property
    def is_broker(self) -> bool:
        """Whether its nodes are brokers."""
        return BROKER in self.roles

    @property
    def has_init_container(self) -> bool:
        """Whether its pods have the init container (strimzi 6.3)."""
        return self.is_broker and (bool(self.topology_key) or any(one.type == "nodeport" for one in self.listeners))

    @property
    def pods(self) -> tuple[str, ...]:
        """The names of its pods."""
        return tuple(f"{self.component}-{one}" for one in self.ids or (NODE_ID,))


def read_pool(kafka: PackageResource, pool: PackageResource) -> Pool:
    """Return what is known of a pool and its Kafka."""
    storage = mapping(value_at(pool.data, ("spec", "storage")))
    labels = {key: value for key, value in pool.labels.items() if isinstance(value, str)}
    return Pool(
        kafka.name,
        pool.name,
        labels,
        roles_of(pool),
        tuple(
            _listener(one) for one in _maps(kafka.data, ("spec", "kafka", "listeners")) if one.get("type") in _EXTERNAL
        ),
        _topology_key(mapping(value_at(kafka.data, ("spec", "kafka", "rack")))),
        tuple(name for name, is_claim in _volumes(storage) if is_claim),
        tuple(name for name, _ in _volumes(storage)),
        _ids(pool),
    )


def roles_of(pool: PackageResource) -> tuple[str, ...]:
    """Return the roles that a pool has, of those that there are."""
    roles = value_at(pool.data, ("spec", "roles"))
    return tuple(role for role in ROLES if role in roles) if isinstance(roles, list) else ()


def mapping(value: Any) -> Mapping[str, Any]:
    """Return a value that is a mapping, else an empty one."""
    return value if isinstance(value, Mapping) else {}


def texts(value: Any) -> Mapping[str, str]:
    """Return the entries of a mapping that are texts."""
    return {key: text for key, text in mapping(value).items() if isinstance(text, str)}


def _maps(data: Any, path: Path) -> list[Mapping[str, Any]]:
    items = value_at(data, path)
    return [one for one in items if isinstance(one, Mapping)] if isinstance(items, list) else []


def _listener(data: Mapping[str, Any]) -> Listener:
    port = data.get("port")
    brokers = {
        str(one["broker"]): (texts(one.get("labels")), texts(one.get("annotations")))
        for one in _maps(data, ("configuration", "brokers"))
        if "broker" in one
    }
    return Listener(str(data.get("name", "")), port if isinstance(port, int) else 0, str(data["type"]), brokers)


def _topology_key(rack: Mapping[str, Any]) -> str:
    key = rack.get("topologyKey")
    return key if isinstance(key, str) and rack.get("type", "topology-label") == "topology-label" else ""


def _volumes(storage: Mapping[str, Any]) -> list[tuple[str, bool]]:
    """Return the names of data volumes, and whether each is a claim."""
    if storage.get("type") != "jbod":
        return [("data", storage.get("type") == "persistent-claim")]
    return [(f"data-{one.get('id', 0)}", one.get("type") == "persistent-claim") for one in _maps(storage, ("volumes",))]


def _ids(pool: PackageResource) -> tuple[str, ...]:
    ids = value_at(pool.data, ("status", "nodeIds"))
    if ids is ABSENT or not isinstance(ids, list):
        return ()
    return tuple(str(one) for one in sorted(one for one in ids if isinstance(one, int)))
