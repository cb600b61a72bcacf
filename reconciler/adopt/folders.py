"""Import of folders: a package gets the most frequent text of each file. Override policies contain the differences."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.adopt.differences import ABSENT, LeafPath, find_differences
from reconciler.adopt.generated import (
    CATALOG,
    REVISION,
    GeneratedConfig,
    GeneratedPackage,
    build_package_set,
    build_targets,
    build_variant,
)
from reconciler.adopt.resources import Resource, ResourceId, UnitContent, find_marker, read_content, remove_secrets
from reconciler.adopt.rules import ValueRule, choose_rules
from reconciler.adopt.units import MAX_DIFFERENT_LEAVES, Choice, Cluster, Fleet, NotImported, Unit
from reconciler.api.kubeadmiral import ClusterOverridePolicy
from reconciler.catalog.files import File, FileTree
from reconciler.krm.json_pointer import format_pointer
from reconciler.krm.json_text import encode_canonical_json
from reconciler.lazy_dataclasses import dataclass, replace

_ABSENT_TEXT = ""
# Override policies replace the variables `${cluster…}`. Escape such texts in the imported values, so that they do not
# change.
_VARIABLE, _ESCAPED_VARIABLE = "${cluster", "$${cluster"


@dataclass(frozen=True)
class _Member:
    """A unit (one package on one cluster) with its resources."""

    unit: Unit
    content: UnitContent

    @property
    def shape(self) -> tuple[Any, ...]:
        """A grouping key. Override policies can express all differences between units with equal keys."""
        resources = sorted((*resource.id, resource.path) for resource in self.content.resources.values())
        others = sorted((path, encode_canonical_json(data)) for path, data in self.content.others)
        return (tuple(resources), tuple(others))


@dataclass(frozen=True)
class _Group:
    """Units (packages on clusters) that share one package of the catalog.

    Attributes:
        files: The files of the package in the catalog.
        resources: The resources in these files.
    """

    members: tuple[_Member, ...]
    files: FileTree
    resources: Mapping[ResourceId, Resource]

    @property
    def clusters(self) -> tuple[str, ...]:
        return tuple(member.unit.cluster for member in self.members)


@dataclass(frozen=True)
class ReadUnits:
    """The units (packages on clusters) to import, and the parts of the input that cannot be imported.

    The units contain no plaintext Secrets.
    """

    units: tuple[Unit, ...]
    not_imported: tuple[NotImported, ...]


def select_units(fleet: Fleet) -> ReadUnits:
    """Return the units that contain plain manifests, and the parts that cannot be imported, with the reasons.

    A unit is one package on one cluster. Plaintext Secrets are removed from the units.
    """
    units: list[Unit] = []
    not_imported: list[NotImported] = []
    for unit in fleet.units:
        problem = find_marker(unit)
        content = problem or read_content(unit.files)
        if isinstance(content, NotImported):
            prefix = "" if problem else f"{unit.folder}/"
            not_imported.append(replace(content, file=f"{prefix}{content.file}"))
            continue
        without_secrets, secrets = remove_secrets(unit)
        not_imported += secrets
        if secrets:
            content = read_content(without_secrets.files)
            assert isinstance(content, UnitContent)
        if content.resources:
            units.append(without_secrets)
        else:
            reason = "the folder contains no Kubernetes resource that can be imported"
            not_imported.append(NotImported(unit.folder, reason, "Add resources, or delete the folder."))
    return ReadUnits(tuple(units), tuple(not_imported))


def generate_from_folders(units: Iterable[Unit], clusters: Sequence[Cluster]) -> GeneratedConfig:
    """Return the config objects for units (packages on clusters) that contain plain manifests."""
    by_package: dict[str, list[_Member]] = {}
    for unit in sorted(units, key=lambda unit: unit.cluster):
        content = read_content(unit.files)
        assert isinstance(content, UnitContent)
        by_package.setdefault(unit.package, []).append(_Member(unit, content))
    packages: list[GeneratedPackage] = []
    choices: list[Choice] = []
    for package, members in sorted(by_package.items()):
        groups = _divide(members)
        names = _choose_names(package, groups, by_package.keys())
        for group, name in zip(groups, names, strict=True):
            generated, reasons = _generate_package(name, package, group, groups, clusters)
            packages.append(generated)
            choices += reasons
    return GeneratedConfig(tuple(packages), choices=tuple(choices))


def _divide(members: Sequence[_Member]) -> tuple[_Group, ...]:
    """Divide the clusters of a package into groups that can share its files. The largest group is first.

    The clusters of a group have the same resources, and few fields of these resources differ.
    """
    shapes: dict[tuple[Any, ...], list[_Member]] = {}
    for member in members:
        shapes.setdefault(member.shape, []).append(member)
    groups: list[_Group] = []
    for remaining in shapes.values():
        while remaining:
            group = _create_group(remaining)
            if not group.members:
                # A group shares the most frequent text of each file. No cluster is similar enough to these texts.
                # Therefore, create a group with only the first cluster.
                group = _create_group(remaining[:1])
            groups.append(group)
            remaining = [member for member in remaining if member not in group.members]
    return tuple(sorted(groups, key=lambda group: (-len(group.members), group.clusters)))


def _create_group(members: Sequence[_Member]) -> _Group:
    """Choose the files of a shared package, and return the group of members that can use this package.

    For each file, the shared package contains the most frequent text of all members. A member is in the group if its
    resources differ from the shared package in at most `MAX_DIFFERENT_LEAVES` values.
    """
    files = FileTree({path: _choose_text(path, members) for path in sorted({*members[0].unit.files})})
    content = read_content(files)
    assert isinstance(content, UnitContent)
    near = tuple(
        member
        for member in members
        if sum(len(_compare(content.resources[name], member)) for name in content.resources) <= MAX_DIFFERENT_LEAVES
    )
    return _Group(near, files, content.resources)


def _choose_text(path: str, members: Sequence[_Member]) -> File:
    """Return the text of a file for the shared package.

    First find the most frequent parsed content of the file, and then the most frequent text with this content.
    """
    files = [member.unit.files.get(path) for member in members]
    present = [file for file in files if file is not None]
    by_content: dict[bytes, list[File]] = {}
    for member, file in zip(members, files, strict=True):
        if file is not None:
            by_content.setdefault(_normalize(path, member, file), []).append(file)
    majority = max(by_content.values(), key=lambda group: (len(group), -present.index(group[0])))
    counts = Counter(majority)
    return min(counts, key=lambda file: (-counts[file], file.data))


def _normalize(path: str, member: _Member, file: File) -> bytes:
    resources = [resource.data for resource in member.content.resources.values() if resource.path == path]
    return encode_canonical_json(resources) if resources else file.data


def _compare(resource: Resource, member: _Member) -> Mapping[LeafPath, tuple[Any, Any]]:
    return find_differences(resource.data, member.content.resources[resource.id].data)


def _choose_names(package: str, groups: Sequence[_Group], packages: Iterable[str]) -> Iterator[str]:
    used = {*packages}
    yield package
    for group in groups[1:]:
        suffix = group.clusters[0] if len(group.clusters) == 1 else "variant"
        name, number = f"{package}-{suffix}", 2
        while name in used:
            name, number = f"{package}-{suffix}-{number}", number + 1
        used.add(name)
        yield name


def _generate_package(
    name: str, package: str, group: _Group, groups: Sequence[_Group], clusters: Sequence[Cluster]
) -> tuple[GeneratedPackage, Sequence[Choice]]:
    upstream = {"repo": CATALOG, "package": name, "revision": REVISION}
    choices: list[Choice] = []
    if len(group.members) == 1 and group is not groups[0]:
        cluster = group.clusters[0]
        owner = build_variant(name, {"upstream": upstream}, cluster, package)
        reason = (
            f"{cluster} does not have the same resources as most clusters, or more than {MAX_DIFFERENT_LEAVES} values"
            " are different"
        )
        choices.append(Choice(name, f"PackageVariant {name}", reason))
    else:
        template: dict[str, Any] = {"adoptionPolicy": "adoptExisting"}
        if name != package:
            template["downstream"] = {"package": package}
        targets, reason = build_targets(group.clusters, clusters, template)
        owner = build_package_set(name, {"upstream": upstream}, targets)
        choices.append(Choice(name, f"PackageVariantSet {name}", reason))
    policies: list[Mapping[str, Any]] = []
    for resource in group.resources.values():
        leaves = list(_list_leaf_rules(resource, group, clusters))
        choices += [
            Choice(name, f"{resource.id} {format_pointer(path)}", _describe_rule(rule))
            for path, rules in leaves
            for rule in rules
        ]
        if leaves:
            excluded = _find_other_clusters(resource.id, group, groups)
            policies.append(_build_policy(f"{name}-{resource.id.kind}-{resource.id.name}", resource, leaves, excluded))
    documents = (owner, *policies)
    return GeneratedPackage(name, (package,), group.clusters, documents, group.files), choices


def _list_leaf_rules(
    resource: Resource, group: _Group, clusters: Sequence[Cluster]
) -> Iterator[tuple[LeafPath, tuple[ValueRule, ...]]]:
    """Yield the path of each field that differs between clusters, with the rules for its values."""
    differences = {member.unit.cluster: _compare(resource, member) for member in group.members}
    labels = {cluster.name: cluster.labels for cluster in clusters}
    defaults = {path: pair[0] for found in differences.values() for path, pair in found.items()}
    for path in sorted(_remove_nested(defaults), key=lambda path: [str(step) for step in path]):
        default = _encode(defaults[path])
        values = {
            member.unit.cluster: _encode(_resolve(member.content.resources[resource.id].data, path))
            for member in group.members
        }
        yield path, choose_rules(values, labels, default)


def _remove_nested(paths: Iterable[LeafPath]) -> Iterator[LeafPath]:
    """Yield the paths that are not below another path in `paths`.

    For example, `paths` contains the path of a list that one cluster replaces, and the path of an item that another
    cluster replaces in this list. Then yield only the path of the list.
    """
    known = set(paths)
    return (path for path in known if not any(path[:length] in known for length in range(len(path))))


def _resolve(data: Any, path: LeafPath) -> Any:
    for step in path:
        is_index = isinstance(data, list) and isinstance(step, int) and step < len(data)
        if not is_index and not (isinstance(data, Mapping) and step in data):
            return ABSENT
        data = data[step]
    return data


def _encode(value: Any) -> str:
    return _ABSENT_TEXT if value is ABSENT else encode_canonical_json(value).decode()


def _describe_rule(rule: ValueRule) -> str:
    if rule.label:
        return f"the clusters with the label {rule.label[0]}={rule.label[1]} have the same value"
    return f"only these clusters have this value: {', '.join(rule.clusters)}"


def _find_other_clusters(resource: ResourceId, group: _Group, groups: Sequence[_Group]) -> tuple[str, ...]:
    """Return the clusters that already get the same resource from the package of another group.

    The override rules of `group` that select clusters by label must exclude these clusters.
    """
    return tuple(
        sorted(
            name for other in groups if other is not group and resource in other.resources for name in other.clusters
        )
    )


def _build_policy(
    name: str,
    resource: Resource,
    leaves: Sequence[tuple[LeafPath, tuple[ValueRule, ...]]],
    excluded: Sequence[str],
) -> dict[str, Any]:
    kind = ClusterOverridePolicy
    selector = {"apiVersion": resource.data["apiVersion"], "kind": resource.id.kind, "name": resource.id.name}
    if resource.id.namespace:
        selector["namespace"] = resource.id.namespace
    rules: dict[tuple[bool, Any], list[dict[str, Any]]] = {}
    for path, value_rules in leaves:
        for rule in value_rules:
            # Sort rules with labels before rules with cluster names. A later rule overrides an earlier rule, and the
            # rules with cluster names are the exceptions.
            key = (rule.label is None, rule.label or rule.clusters)
            rules.setdefault(key, []).append(_build_patch(path, rule))
    override_rules = []
    for (has_names, key), patches in sorted(rules.items()):
        target: dict[str, Any] = {"clusters": [*key]} if has_names else {"clusterSelector": {key[0]: key[1]}}
        if excluded and not has_names:
            target["excludeClusters"] = [*excluded]
        override_rules.append({"targetClusters": target, "overriders": {"jsonpatch": patches}})
    return {
        "apiVersion": kind.api_versions[0],
        "kind": kind.__name__,
        "metadata": {"name": _to_object_name(name)},
        "spec": {"resourceSelectors": [selector], "overrideRules": override_rules},
    }


def _to_object_name(text: str) -> str:
    """Convert a text to a valid object name. Names of ClusterRoles, for example, can contain other characters."""
    return "".join(char if char.isalnum() or char in "-." else "-" for char in text.lower()).strip("-.")


def _build_patch(path: LeafPath, rule: ValueRule) -> dict[str, Any]:
    if rule.value == _ABSENT_TEXT:
        return {"operator": "remove", "path": format_pointer(path)}
    operator = "replace" if isinstance(path[-1], int) else "set"
    return {"operator": operator, "path": format_pointer(path), "value": _escape_variables(json.loads(rule.value))}


def _escape_variables(value: Any) -> Any:
    match value:
        case str():
            return value.replace(_VARIABLE, _ESCAPED_VARIABLE)
        case dict():
            return {key: _escape_variables(item) for key, item in value.items()}
        case list():
            return [_escape_variables(item) for item in value]
        case _:
            return value
