"""What is known of kinds beyond their rule: what their templates come to, and what must be true of a family of them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import Path
from reconciler.packages.package import PackageResource
from reconciler.rules.notes import Note
from reconciler.rules.templates.model import Member, MergeRule
from reconciler.rules.templates.report import Description
from reconciler.rules.templates.strimzi.describe import KAFKA_FIELDS, describe_pool
from reconciler.rules.templates.strimzi.family import judge_families
from reconciler.rules.templates.strimzi.operator import Operator

Families = Iterable[tuple[Member, tuple[Member, ...]]]


@dataclass(frozen=True)
class Knowledge:
    """What is known of one kind of children.

    `describe` says what an effective template comes to, of parent, child and template; `judge` what is wrong with
    parents or children as families. `parent_fields` are the fields of a parent that matter to its children, besides
    the template.
    """

    describe: Callable[[PackageResource, PackageResource, Mapping[str, Any], Operator], Description]
    judge: Callable[[Families], Iterable[tuple[ObjectKey, Note]]]
    parent_fields: tuple[Path, ...]


_KNOWN: Mapping[tuple[str, str, str, str], Knowledge] = {
    ("kafka.strimzi.io", "Kafka", "kafka.strimzi.io", "KafkaNodePool"): Knowledge(
        describe_pool, judge_families, KAFKA_FIELDS
    ),
}


def knowledge_of(rule: MergeRule) -> Knowledge | None:
    """Return what is known of the kinds of a rule, if anything is."""
    return _KNOWN.get((rule.parent.group, rule.parent.kind, rule.child.group, rule.child.kind))
