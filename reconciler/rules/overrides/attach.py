"""Which policies a resource names, and the resource without the marks that steer us (kubeadmiral 2, design 10.16)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

from reconciler.krm.findings import Code
from reconciler.krm.identity import ObjectKey
from reconciler.krm.schema import scope
from reconciler.krm.yaml import Path
from reconciler.packages.resource import Described
from reconciler.rules.edits import value_at, without
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import (
    MAP_MALFORMED,
    POLICY_DUPLICATE,
    POLICY_INVALID,
    POLICY_LABEL_IGNORED,
    POLICY_NAME_EMPTY,
    POLICY_NOT_FOUND,
)
from reconciler.rules.overrides.model import CLUSTER_KIND, NAMESPACED_KIND, Policy
from reconciler.rules.overrides.read_policy import Policies, policy_key
from reconciler.rules.overrides.selection import rank

CLUSTER_LABEL = "kubeadmiral.io/cluster-override-policy-name"
NAMESPACED_LABEL = "kubeadmiral.io/override-policy-name"
CLUSTERS_ANNOTATION = "reconciler.dev/clusters"
_MARKS = (("labels", CLUSTER_LABEL), ("labels", NAMESPACED_LABEL), ("annotations", CLUSTERS_ANNOTATION))

OnMissing = Literal["fail", "ignore"]


@dataclass(frozen=True)
class Attached:
    """The policies of a resource in the order of their effect, all that it names or that choose it, and what is wrong.

    After an error none of them counts.
    """

    policies: tuple[Policy, ...] = ()
    asked: tuple[ObjectKey, ...] = ()
    notes: tuple[Note, ...] = ()

    @property
    def failed(self) -> bool:
        """Whether the resource must not be published."""
        return any(note.is_error for note in self.notes)


@dataclass(frozen=True)
class _Candidate:
    """A policy that may be attached: by a label, or because it chooses the resource, and how that is told."""

    key: ObjectKey
    how: str
    path: Path


def attach(resource: Described, policies: Policies, on_missing: OnMissing = "fail") -> Attached:
    """Return the policies of a resource: the cluster's before the namespace's, chosen ones before the named one.

    Among those that choose it, closer ones come later, and then those with later names. A policy that is not there is
    an error; with `ignore` it is as if it had no rules, if it is known to be gone.
    """
    named, notes = _named(resource)
    candidates = [*_candidates(resource, policies, CLUSTER_KIND, named)]
    candidates += _candidates(resource, policies, NAMESPACED_KIND, named)
    found: list[Policy] = []
    for candidate in candidates:
        one = _look_up(candidate, policies)
        if isinstance(one, Policy):
            found.append(one)
        elif not (one.code is POLICY_NOT_FOUND and on_missing == "ignore" and policies.is_whole):
            notes = (*notes, one)
    failed = any(note.is_error for note in notes)
    return Attached(() if failed else tuple(found), tuple(one.key for one in candidates), notes)


def _candidates(
    resource: Described, policies: Policies, kind: str, named: tuple[_Candidate, ...]
) -> Iterator[_Candidate]:
    labelled = [one for one in named if one.key.kind == kind]
    yield from _choosing(resource, policies, kind, {one.key for one in labelled})
    yield from labelled


def _choosing(resource: Described, policies: Policies, kind: str, others: set[ObjectKey]) -> Iterator[_Candidate]:
    namespace = namespace_of(resource)
    found = []
    for key, selectors in policies.selectors.items():
        if key.kind == kind and key not in others and (how := rank(selectors, resource, namespace)) is not None:
            found.append((how, key))
    for _, key in sorted(found):
        yield _Candidate(key, f"{key} chooses this {resource.kind}", ("kind",))


def is_marked(labels: Mapping[str, Any]) -> bool:
    """Tell whether labels name an override policy."""
    return CLUSTER_LABEL in labels or NAMESPACED_LABEL in labels


def stripped(data: Any) -> Any:
    """Return a resource without our marks, and without labels or annotations that this leaves empty."""
    for field, mark in _MARKS:
        path = ("metadata", field)
        marked = value_at(data, path)
        if isinstance(marked, dict) and mark in marked:
            data = without(data, (*path, mark)) if len(marked) > 1 else without(data, path)
    return data


def namespace_of(resource: Described) -> str:
    """Return the namespace that a resource states; "" for kinds that live in none."""
    return "" if scope(resource.group, resource.kind) == "cluster" else resource.namespace


def _named(resource: Described) -> tuple[tuple[_Candidate, ...], tuple[Note, ...]]:
    named: list[_Candidate] = []
    notes: list[Note] = []
    for label, kind in ((CLUSTER_LABEL, CLUSTER_KIND), (NAMESPACED_LABEL, NAMESPACED_KIND)):
        if label not in resource.labels:
            continue
        value, namespace = resource.labels[label], namespace_of(resource)
        if kind == NAMESPACED_KIND and not namespace:
            notes.append(
                _note(POLICY_LABEL_IGNORED, f"{label} needs a resource with a namespace, and is ignored", label)
            )
        elif not isinstance(value, str):
            notes.append(_note(MAP_MALFORMED, f"{label} must be a string", label))
        elif not value:
            notes.append(_note(POLICY_NAME_EMPTY, f"{label} must name a {kind}", label))
        else:
            key = policy_key(kind, namespace, value)
            named.append(_Candidate(key, f"{label} names {key}", ("metadata", "labels", label)))
    return tuple(named), tuple(notes)


def _look_up(one: _Candidate, policies: Policies) -> Policy | Note:
    key, how = one.key, one.how
    if key in policies.sound:
        return policies.sound[key]
    if key in policies.duplicates:
        return Note(POLICY_DUPLICATE, f"{how}, which stands twice in the config", one.path)
    if key in policies.invalid:
        return Note(POLICY_INVALID, f"{how}, which is invalid", one.path)
    unread = "" if policies.is_whole else ", unless it is in a file that cannot be read"
    return Note(POLICY_NOT_FOUND, f"{how}, which does not exist{unread}", one.path)


def _note(code: Code, message: str, label: str) -> Note:
    return Note(code, message, ("metadata", "labels", label))


def list_notes(data: Any) -> Iterator[Note]:
    """Yield a warning for every attach label on a List or on one of its items, where none is obeyed."""
    items = value_at(data, ("items",))
    places = [
        ((), data),
        *((("items", index), one) for index, one in enumerate(items if isinstance(items, list) else ())),
    ]
    for path, one in places:
        labels = value_at(one, ("metadata", "labels"))
        if isinstance(labels, dict) and is_marked(labels):
            message = "policies are not attached to a List or what is in one; its labels are left alone"
            yield Note(POLICY_LABEL_IGNORED, message, (*path, "metadata", "labels"))
