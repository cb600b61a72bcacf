"""Old spellings of Strimzi: versions and fields that its present release does not have any more (strimzi 2.1, 2.2)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from reconciler.krm.conflicts import ABSENT
from reconciler.packages.package import PackageResource
from reconciler.rules.codes import DEPRECATED
from reconciler.rules.edits import value_at
from reconciler.rules.notes import Note

_GROUP: Final = "kafka.strimzi.io"
_VERSION: Final = "v1"
_KINDS: Final = ("Kafka", "KafkaNodePool")
# what one Kafka said of all its nodes before there were pools
_OF_POOLS: Final = ("replicas", "storage", "resources")


def old_spellings(resource: PackageResource) -> Iterator[Note]:
    """Yield a warning for what a Kafka or a KafkaNodePool spells in an old way, with the present spelling."""
    if resource.group != _GROUP or resource.kind not in _KINDS:
        return
    if resource.version != _VERSION:
        message = f"{resource.api_version} is deprecated, and gone in Strimzi 1.0; write {_GROUP}/{_VERSION}"
        yield Note(DEPRECATED, message, ("apiVersion",))
    for field in _OF_POOLS if resource.kind == "Kafka" else ():
        path = ("spec", "kafka", field)
        if value_at(resource.data, path) not in (None, ABSENT):
            message = (
                f"spec.kafka.{field} is deprecated, and gone in Strimzi 1.0; write spec.{field} of a KafkaNodePool"
            )
            yield Note(DEPRECATED, message, path)
