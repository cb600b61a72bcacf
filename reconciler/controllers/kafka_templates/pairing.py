"""Pairs of parents and children (e.g. Kafka and KafkaNodePool) in all packages of a cluster.

The module also contains the table of checks and descriptions for each pair of kinds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates.codes import TemplateCodes
from reconciler.controllers.kafka_templates.merge import TemplateProperty, build_effective_template, merge_templates
from reconciler.controllers.kafka_templates.model import (
    RuleSide,
    StrimziOperator,
    TemplateDescription,
    TemplateMergeRule,
    TemplateResource,
)
from reconciler.controllers.kafka_templates.read_merge_rules import load_built_in_rule
from reconciler.controllers.kafka_templates.strimzi.description import KAFKA_FIELD_PATHS, describe_pool
from reconciler.controllers.kafka_templates.strimzi.kafka_checks import check_pool_families
from reconciler.controllers.nested_values import get_value
from reconciler.controllers.resource_findings import ResourceIssue
from reconciler.krm.field_text import quote_value
from reconciler.krm.json_text import compute_digest
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached
from reconciler.packages.package import PackageResource, get_package

PoolFamilies = Iterable[tuple[TemplateResource, tuple[TemplateResource, ...]]]
Roles = tuple[tuple[TemplateMergeRule, RuleSide], ...]
# Maximum number of packages in the cache. This number is sufficient, because few packages contain template parents or
# children, and most clusters have the same packages.
_MAX_CACHED_PACKAGES = 4096


@dataclass(frozen=True)
class KindSupport:
    """Functions for one pair of kinds, such as Kafka and KafkaNodePool.

    Attributes:
        describe_template: Returns a description of an effective template.
        check_families: Checks each parent together with all its children, and yields the issues.
        parent_field_paths: Fields of a parent that are outside of its template and affect its children.
    """

    describe_template: Callable[
        [PackageResource, PackageResource, Mapping[str, Any], StrimziOperator], TemplateDescription
    ]
    check_families: Callable[[PoolFamilies], Iterable[tuple[ObjectKey, ResourceIssue]]]
    parent_field_paths: tuple[DataPath, ...]


_KIND_SUPPORT: Mapping[tuple[str, str, str, str], KindSupport] = {
    ("kafka.strimzi.io", "Kafka", "kafka.strimzi.io", "KafkaNodePool"): KindSupport(
        describe_pool, check_pool_families, KAFKA_FIELD_PATHS
    ),
}


def find_kind_support(rule: TemplateMergeRule) -> KindSupport | None:
    """Return the functions for the kinds of a rule. Return None if there are no functions for these kinds."""
    return _KIND_SUPPORT.get((rule.parent.group, rule.parent.kind, rule.child.group, rule.child.kind))


@dataclass(frozen=True)
class TemplatePairs:
    """The parents and children on one cluster. A resource that is defined twice is not included.

    `parents` and `children` map object keys to resources. `issues` maps object keys to issues that result from other
    resources, e.g. a missing parent.
    """

    rules: tuple[TemplateMergeRule, ...]
    parents: Mapping[ObjectKey, TemplateResource]
    children: Mapping[ObjectKey, TemplateResource]
    issues: Mapping[ObjectKey, tuple[ResourceIssue, ...]]

    def find_parent(self, child: TemplateResource) -> TemplateResource | None:
        """Return the parent that a child refers to. Return None if the parent does not exist or exists twice."""
        key = build_parent_key(child)
        return self.parents.get(key) if key else None

    def merge_properties(self, child: ObjectKey) -> tuple[TemplateProperty, ...]:
        """Return the properties of a child's effective template. Return () if the child is unknown."""
        child_resource = self.children.get(child)
        return merge_child_template(child_resource, self.find_parent(child_resource)) if child_resource else ()

    def build_template(self, child: ObjectKey) -> dict[str, Any]:
        """Return the effective template of a child."""
        return build_effective_template(self.merge_properties(child))

    def compute_digest(self, key: ObjectKey) -> str:
        """Return a digest of the data of a parent or child on which other packages depend.

        If the digests of all dependencies of a package are unchanged, the package stays unchanged. The digest of a
        parent does not cover fields without an effect on the children, such as labels.
        """
        issues = [[issue.code.name, issue.message] for issue in self.issues.get(key, ())]
        return compute_digest(
            [self._get_values_for_children(self.parents[key].resource) if key in self.parents else None, issues]
        )

    def _get_values_for_children(self, parent: PackageResource) -> list[Any]:
        return [_get_shared_values(rule, parent.data) for rule in self.rules if rule.parent.is_kind_of(parent)]


def find_pairs(packages: Mapping[str, FileTree], rules: tuple[TemplateMergeRule, ...] | None = None) -> TemplatePairs:
    """Return the parents and children in all packages of one cluster. `packages` contains the files by package name.

    A parent and its children have the same namespace, or all of them have no namespace. Local config is ignored.
    """
    rules = (load_built_in_rule(),) if rules is None else rules
    members_by_key: dict[ObjectKey, list[TemplateResource]] = {}
    for package in sorted(packages):
        for member in _find_members(package, packages[package], rules):
            members_by_key.setdefault(member.key, []).append(member)
    unique = {key: members[0] for key, members in sorted(members_by_key.items()) if len(members) == 1}
    parents = {key: member for key, member in unique.items() if member.rule.parent.is_kind_of(member.resource)}
    children = {key: member for key, member in unique.items() if member.rule.child.is_kind_of(member.resource)}
    issues: dict[ObjectKey, list[ResourceIssue]] = {}
    for key, issue in (
        *_check_duplicates(members_by_key),
        *_check_unpaired(children, parents, members_by_key),
        *_check_families(rules, parents, children),
    ):
        issues.setdefault(key, []).append(issue)
    return TemplatePairs(rules, parents, children, {key: tuple(issues[key]) for key in sorted(issues)})


@cached(_MAX_CACHED_PACKAGES)
def find_roles(files: FileTree, rules: tuple[TemplateMergeRule, ...]) -> tuple[tuple[PackageResource, Roles], ...]:
    """Return each parent and each child in a package, together with its roles in the order of the rules.

    A role is a pair of a rule and its side: parent or child. A resource can be the parent in several rules. The
    resources are in the order of their files. Local config is ignored.
    """
    candidates = (
        (resource_candidate, _list_roles(resource_candidate, rules))
        for resource_candidate in get_package(files).resources
        if resource_candidate.name and not resource_candidate.is_local_config
    )
    return tuple((resource, roles) for resource, roles in candidates if roles)


def _list_roles(resource: PackageResource, rules: tuple[TemplateMergeRule, ...]) -> Roles:
    return tuple((rule, side) for rule in rules for side in (rule.parent, rule.child) if side.is_kind_of(resource))


def _find_members(package: str, files: FileTree, rules: tuple[TemplateMergeRule, ...]) -> Iterator[TemplateResource]:
    for resource, roles in find_roles(files, rules):
        # If a resource is the parent in several rules, yield it only once, with the first rule.
        known = [rule for rule, side in roles if side.can_merge_version_of(resource)]
        if known:
            yield TemplateResource(known[0], package, resource)


def build_parent_key(child: TemplateResource) -> ObjectKey | None:
    """Return the object key of the parent in the label of a child. Return None if the child has no such label."""
    name = child.resource.labels.get(child.rule.parent_label)
    if not isinstance(name, str) or not name:
        return None
    return ObjectKey(child.rule.parent.group, child.rule.parent.kind, child.resource.namespace, name)


def merge_child_template(child: TemplateResource, parent: TemplateResource | None) -> tuple[TemplateProperty, ...]:
    """Return the merged properties of a child. If the child has no parent, all properties are from the child."""
    rule = child.rule
    inherited = get_value(parent.resource.data, rule.parent.path) if parent else ABSENT
    return merge_templates(rule.properties, inherited, get_value(child.resource.data, rule.child.path))


def _group_families(
    parents: Mapping[ObjectKey, TemplateResource], children: Mapping[ObjectKey, TemplateResource]
) -> Mapping[ObjectKey, tuple[TemplateResource, ...]]:
    children_by_parent: dict[ObjectKey, list[TemplateResource]] = {key: [] for key in parents}
    for child in children.values():
        key = build_parent_key(child)
        if key and key in children_by_parent:
            children_by_parent[key].append(child)
    return {key: tuple(children_of_parent) for key, children_of_parent in children_by_parent.items()}


def _get_shared_values(rule: TemplateMergeRule, parent: Any) -> list[Any]:
    """Return the values of a parent that affect its children when `rule` merges their templates."""
    template, support = get_value(parent, rule.parent.path), find_kind_support(rule)
    if isinstance(template, dict):
        template = {name: template[name] for name in rule.properties if name in template}
    extra_values = (get_value(parent, path) for path in (support.parent_field_paths if support else ()))
    return [None if value is ABSENT else value for value in (template, *extra_values)]


def _check_duplicates(
    members_by_key: Mapping[ObjectKey, list[TemplateResource]],
) -> Iterator[tuple[ObjectKey, ResourceIssue]]:
    for key, members in members_by_key.items():
        if len(members) > 1:
            files = ", ".join(sorted(f"{member.package}/{member.resource.file}" for member in members))
            yield (
                key,
                ResourceIssue(
                    CatalogCodes.DUPLICATE_OBJECT, f"{key} must be unique on a cluster, but is in the files {files}"
                ),
            )


def _check_unpaired(
    children: Mapping[ObjectKey, TemplateResource],
    parents: Mapping[ObjectKey, TemplateResource],
    members_by_key: Mapping[ObjectKey, list[TemplateResource]],
) -> Iterator[tuple[ObjectKey, ResourceIssue]]:
    for key, child in children.items():
        wanted_key, label = build_parent_key(child), child.rule.parent_label
        path = ("metadata", "labels", label)
        if wanted_key is None:
            value, kind = child.resource.labels.get(label, ABSENT), child.rule.parent.kind
            message = (
                f"the label {label} is missing; set it to the name of a {kind}"
                if value is ABSENT
                else f"the label {label} must be the name of a {kind}, but is {quote_value(value)}"
            )
            yield key, ResourceIssue(TemplateCodes.POOL_WITHOUT_CLUSTER, message, path)
        elif len(members_by_key.get(wanted_key, ())) > 1:
            yield (
                key,
                ResourceIssue(
                    CatalogCodes.DUPLICATE_OBJECT,
                    f"the label {label} refers to {wanted_key}, which exists twice on this cluster",
                    path,
                ),
            )
        elif wanted_key not in parents:
            hint = _describe_other_parents(wanted_key, parents)
            message = f"the label {label} refers to {wanted_key}, which does not exist on this cluster{hint}"
            yield key, ResourceIssue(TemplateCodes.ORPHAN_POOL, message, path)


def _describe_other_parents(wanted_key: ObjectKey, parents: Iterable[ObjectKey]) -> str:
    """Return a hint about parents with the same name in other namespaces. A label cannot refer to another namespace."""
    keys = (
        key
        for key in parents
        if (key.group, key.kind, key.name) == (wanted_key.group, wanted_key.kind, wanted_key.name)
    )
    names = ", ".join(sorted(str(key) for key in keys))
    return f"; this label can only refer to a {wanted_key.kind} in the same namespace, not to {names}" if names else ""


def _check_families(
    rules: Iterable[TemplateMergeRule],
    parents: Mapping[ObjectKey, TemplateResource],
    children: Mapping[ObjectKey, TemplateResource],
) -> Iterator[tuple[ObjectKey, ResourceIssue]]:
    families = _group_families(parents, children)
    for rule in rules:
        if support := find_kind_support(rule):
            of_rule = [
                (parents[key], tuple(member for member in members if member.rule == rule))
                for key, members in families.items()
                if rule.parent.is_kind_of(parents[key].resource)
            ]
            yield from support.check_families(of_rule)
