"""Unrolling the targets of a set: from lists and selectors to one context per variant (porch 11.2, 14.3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from reconciler.rules.variants.inputs import Described, describe
from reconciler.rules.variants.model import Upstream
from reconciler.rules.variants.set_model import ObjectSelection, RepositoryList, Target, Template


class Targets(Protocol):
    """The context objects of the set's namespace."""

    def knows_kind(self, api_version: str, kind: str) -> bool:
        """Tell whether the kind exists at all: an object of it, a CRD for it, or a setting that names it."""
        ...

    def select(self, api_version: str, kind: str) -> Sequence[Described]:
        """Return the objects of exactly this apiVersion and kind, in any order."""
        ...


@dataclass(frozen=True)
class TargetContext:
    """One variant to be rendered: its defaults, what its expressions may see, and its template."""

    index: int
    repo_default: str
    package_default: str
    target: Mapping[str, Any]
    template: Template
    upstream_index: int = 0

    def __str__(self) -> str:
        return f"spec.targets[{self.index}] ({self.repo_default}/{self.package_default})"


@dataclass(frozen=True)
class UnknownKind:
    """A target that selects among objects of a kind that nobody knows."""

    index: int
    api_version: str
    kind: str

    def __str__(self) -> str:
        return f'spec.targets[{self.index}]: no object or definition of kind "{self.kind}" in "{self.api_version}"'


def unroll(
    targets: Sequence[Target], upstreams: Sequence[Upstream], found: Targets, namespace: str
) -> tuple[TargetContext, ...] | UnknownKind:
    """Return a context for each target and upstream, in the order of the spec, selected objects by name."""
    contexts: list[TargetContext] = []
    for index, target in enumerate(targets):
        unknown = _unknown_kind(index, target, found)
        if unknown:
            return unknown
        for number, upstream in enumerate(upstreams):
            template = target.overlaid.get(number, target.template)
            contexts += (
                TargetContext(index, repo, package, seen, template, number)
                for repo, package, seen in _unroll_one(target, upstream.package, found, namespace)
            )
    return tuple(contexts)


def _unknown_kind(index: int, target: Target, found: Targets) -> UnknownKind | None:
    selection = target.selection
    if isinstance(selection, RepositoryList) or found.knows_kind(selection.api_version, selection.kind):
        return None
    return UnknownKind(index, selection.api_version, selection.kind)


def _unroll_one(
    target: Target, upstream_package: str, found: Targets, namespace: str
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    match target.selection:
        case RepositoryList(entries):
            for entry in entries:
                for package in entry.package_names or (upstream_package,):
                    yield entry.name, package, {"repo": entry.name, "package": package}
        case ObjectSelection() as selection:
            for selected in sorted(_selected(selection, found), key=lambda one: one.key):
                for package in selection.package_names or (upstream_package,):
                    yield selected.key.name, package, describe(selected, namespace)


def _selected(selection: ObjectSelection, found: Targets) -> Iterator[Described]:
    for one in found.select(selection.api_version, selection.kind):
        if selection.selector.matches(one.labels) and selection.name in ("", one.key.name):
            yield one
