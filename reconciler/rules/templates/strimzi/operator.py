"""The operator as a cluster runs it, as far as those who run the program tell us of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Operator:
    """Settings of a Strimzi operator that decide what templates come to (strimzi 6).

    `is_restricted`: its security provider is the restricted profile. `pod_labels` are those that it puts on all pods of
    Kafka (STRIMZI_CUSTOM_KAFKA_LABELS).
    """

    is_restricted: bool = False
    pod_labels: Mapping[str, str] = field(default_factory=dict)
