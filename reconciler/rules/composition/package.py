"""The package of a component in an environment: its files, and what they are made of (design 3, 10.28)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from reconciler.krm.digest import digest
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import WIDE_STYLE, emit
from reconciler.rules.composition.bindings import Bound
from reconciler.rules.composition.model import Build
from reconciler.rules.composition.plan import Plan
from reconciler.rules.composition.render import Composed
from reconciler.rules.composition.rendered import Rendered
from reconciler.rules.file_names import file_names
from reconciler.rules.variant import Earlier, Mutated
from reconciler.snapshot.catalog import ConfigObject
from reconciler.snapshot.files import File, FileTree
from reconciler.snapshot.trace import View


@dataclass(frozen=True)
class AsComposed:
    """The one step of a component's package: nothing is left to do, for the room has done it."""

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the files as they are."""
        return Mutated(files)


def files_of(objects: Sequence[Rendered]) -> Mapping[str, Rendered]:
    """Return the objects of a component by the name of the file of each (design 3)."""
    keys = {ObjectKey(one.key.group, one.key.kind, "", one.key.name): one for one in objects}
    names = file_names(keys)
    return {names[key]: one for key, one in keys.items()}


def tree_of(files: Mapping[str, Rendered]) -> FileTree:
    """Return the package: one object to a file, keys in the order of their template (openchoreo 14.5)."""
    return FileTree({name: File(emit(one.data, WIDE_STYLE).encode()) for name, one in files.items()})


def sources(bound: Bound, plan: Plan, build: Build | None, composed: Composed) -> Iterator[ConfigObject]:
    """Yield the objects that a component was rendered of; of addons those that had any say."""
    yield from (bound.binding.one, bound.component.one, bound.environment.one, plan.definition.one)
    if plan.one is not bound.component.one:
        yield plan.one
    if build:
        yield build.one
    asked = {use.instance: use.addon.one for use in plan.uses if use.instance in composed.values}
    yield from dict.fromkeys(asked.values())


def facts_of(made_of: Sequence[ConfigObject], said: Callable[[ConfigObject], str], engine: str) -> dict[str, str]:
    """Return what the package depends on, by the object that says it: what it says, and not where it stands."""
    return {**{str(one.key): said(one) for one in made_of}, "engine": engine}


def what_is_said(one: ConfigObject) -> str:
    """Return the digest of what an object says to components."""
    metadata = one.data["metadata"]
    said = {name: metadata.get(name) for name in ("labels", "annotations")}
    return digest({"spec": one.data.get("spec"), "metadata": said})
