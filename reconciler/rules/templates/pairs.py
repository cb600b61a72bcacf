"""Pairs: which documents of all packages of a cluster are parent and child (strimzi 3, design 10.2)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.conflicts import ABSENT
from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.packages.package import Package, PackageResource
from reconciler.rules.edits import value_at
from reconciler.rules.fields import shown
from reconciler.rules.notes import Note
from reconciler.rules.templates.codes import ORPHAN_POOL, POOL_WITHOUT_CLUSTER
from reconciler.rules.templates.knowledge import knowledge_of
from reconciler.rules.templates.merge import Property, effective, merge_templates
from reconciler.rules.templates.model import Member, MergeRule, Side
from reconciler.rules.templates.read_rule import built_in_rule
from reconciler.snapshot.codes import DUPLICATE_OBJECT
from reconciler.snapshot.files import FileTree

Roles = tuple[tuple[MergeRule, Side], ...]
# few packages hold any parents or children, and clusters have most packages alike
_REMEMBERED_PACKAGES = 4096


@dataclass(frozen=True)
class Pairs:
    """The parents and children of one cluster by identity, without those that stand there twice.

    `troubles` are what is to be said of a parent or a child because of what else there is on the cluster.
    """

    rules: tuple[MergeRule, ...]
    parents: Mapping[ObjectKey, Member]
    children: Mapping[ObjectKey, Member]
    troubles: Mapping[ObjectKey, tuple[Note, ...]]

    def parent_of(self, child: Member) -> Member | None:
        """Return the parent that a child names, if it counts."""
        key = parent_key(child)
        return self.parents.get(key) if key else None

    def properties(self, child: ObjectKey) -> tuple[Property, ...]:
        """Return the shared properties of a child as they are in effect; () for one that does not count."""
        member = self.children.get(child)
        return merged(member, self.parent_of(member)) if member else ()

    def effective(self, child: ObjectKey) -> dict[str, Any]:
        """Return the effective template of a child."""
        return effective(self.properties(child))

    def digest_of(self, key: ObjectKey) -> str:
        """Return a digest of all that the packages of others may depend on in a parent or child.

        Equal digests of all that a package has asked for: it comes out the same. What concerns a parent alone, such as
        its own labels or properties that no child can have, is no part of it.
        """
        told = [[note.code.name, note.message] for note in self.troubles.get(key, ())]
        return digest([self._for_children(self.parents[key].resource) if key in self.parents else None, told])

    def _for_children(self, parent: PackageResource) -> list[Any]:
        return [_shared(rule, parent.data) for rule in self.rules if rule.parent.means(parent)]


def find_pairs(packages: Mapping[str, FileTree], rules: tuple[MergeRule, ...] | None = None) -> Pairs:
    """Return the pairs of all packages that end up on one cluster, by their names.

    Parent and child are of one namespace, as they state it: none is one, too (design 10.2). Local config counts for
    nothing.
    """
    rules = (built_in_rule(),) if rules is None else rules
    found: dict[ObjectKey, list[Member]] = {}
    for package in sorted(packages):
        for member in _members(package, packages[package], rules):
            found.setdefault(member.key, []).append(member)
    alone = {key: some[0] for key, some in sorted(found.items()) if len(some) == 1}
    parents = {key: one for key, one in alone.items() if one.rule.parent.means(one.resource)}
    children = {key: one for key, one in alone.items() if one.rule.child.means(one.resource)}
    troubles: dict[ObjectKey, list[Note]] = {}
    for key, note in (*_twice(found), *_unpaired(children, parents, found), *_judged(rules, parents, children)):
        troubles.setdefault(key, []).append(note)
    return Pairs(rules, parents, children, {key: tuple(notes) for key, notes in sorted(troubles.items())})


@cached(_REMEMBERED_PACKAGES)
def roles_in(files: FileTree, rules: tuple[MergeRule, ...]) -> tuple[tuple[PackageResource, Roles], ...]:
    """Return the documents of a package that are parents or children, each with the rules that say so, and as what.

    They are in the order of their files. Local config is neither. Several rules may have one kind as their parent.
    """
    found = ((one, _roles(one, rules)) for one in Package(files).resources if one.name and not one.is_local_config)
    return tuple((resource, roles) for resource, roles in found if roles)


def _roles(resource: PackageResource, rules: tuple[MergeRule, ...]) -> Roles:
    return tuple((rule, side) for rule in rules for side in (rule.parent, rule.child) if side.means(resource))


def _members(package: str, files: FileTree, rules: tuple[MergeRule, ...]) -> Iterator[Member]:
    for resource, roles in roles_in(files, rules):
        # a parent of several rules is the same document for each of them
        known = [rule for rule, side in roles if side.knows(resource)]
        if known:
            yield Member(known[0], package, resource)


def parent_key(child: Member) -> ObjectKey | None:
    """Return the identity of the parent that a child names, if it names one."""
    name = child.resource.labels.get(child.rule.parent_label)
    if not isinstance(name, str) or not name:
        return None
    return ObjectKey(child.rule.parent.group, child.rule.parent.kind, child.resource.namespace, name)


def merged(child: Member, parent: Member | None) -> tuple[Property, ...]:
    """Return the shared properties of a child; without a parent they are all its own."""
    rule = child.rule
    inherited = value_at(parent.resource.data, rule.parent.path) if parent else ABSENT
    return merge_templates(rule.properties, inherited, value_at(child.resource.data, rule.child.path))


def _families(
    parents: Mapping[ObjectKey, Member], children: Mapping[ObjectKey, Member]
) -> Mapping[ObjectKey, tuple[Member, ...]]:
    found: dict[ObjectKey, list[Member]] = {key: [] for key in parents}
    for child in children.values():
        key = parent_key(child)
        if key and key in found:
            found[key].append(child)
    return {key: tuple(some) for key, some in found.items()}


def _shared(rule: MergeRule, parent: Any) -> list[Any]:
    """Return what of a parent matters to its children by one rule."""
    template, knowledge = value_at(parent, rule.parent.path), knowledge_of(rule)
    if isinstance(template, dict):
        template = {name: template[name] for name in rule.properties if name in template}
    known = (value_at(parent, path) for path in (knowledge.parent_fields if knowledge else ()))
    return [None if value is ABSENT else value for value in (template, *known)]


def _twice(found: Mapping[ObjectKey, list[Member]]) -> Iterator[tuple[ObjectKey, Note]]:
    for key, some in found.items():
        if len(some) > 1:
            places = ", ".join(sorted(f"{one.package}/{one.resource.file}" for one in some))
            yield key, Note(DUPLICATE_OBJECT, f"{key} must stand on a cluster once; it is in {places}")


def _unpaired(
    children: Mapping[ObjectKey, Member], parents: Mapping[ObjectKey, Member], found: Mapping[ObjectKey, list[Member]]
) -> Iterator[tuple[ObjectKey, Note]]:
    for key, child in children.items():
        wanted, label = parent_key(child), child.rule.parent_label
        path = ("metadata", "labels", label)
        if wanted is None:
            said = child.resource.labels.get(label, ABSENT)
            why = "" if said is ABSENT else f", not {shown(said)}"
            yield key, Note(POOL_WITHOUT_CLUSTER, f"{label} must name a {child.rule.parent.kind}{why}", path)
        elif len(found.get(wanted, ())) > 1:
            yield key, Note(DUPLICATE_OBJECT, f"{label} names {wanted}, which stands on this cluster twice", path)
        elif wanted not in parents:
            message = f"{label} names {wanted}, which is not on this cluster{_elsewhere(wanted, parents)}"
            yield key, Note(ORPHAN_POOL, message, path)


def _elsewhere(wanted: ObjectKey, parents: Iterable[ObjectKey]) -> str:
    """Return where parents of that name are instead: labels do not lead to other namespaces."""
    same = (one for one in parents if (one.group, one.kind, one.name) == (wanted.group, wanted.kind, wanted.name))
    names = ", ".join(sorted(str(one) for one in same))
    return f"; {names} is in another namespace, and another {wanted.kind}" if names else ""


def _judged(
    rules: Iterable[MergeRule], parents: Mapping[ObjectKey, Member], children: Mapping[ObjectKey, Member]
) -> Iterator[tuple[ObjectKey, Note]]:
    families = _families(parents, children)
    for rule in rules:
        if knowledge := knowledge_of(rule):
            of_rule = [
                (parents[key], tuple(one for one in some if one.rule == rule))
                for key, some in families.items()
                if rule.parent.means(parents[key].resource)
            ]
            yield from knowledge.judge(of_rule)
