"""Lint: what is odd about PackageVariants and their sets though every pass would do what they say."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from reconciler.krm.findings import Finding
from reconciler.krm.identity import split_api_version
from reconciler.rules.codes import SELECTOR_MATCHES_NOTHING
from reconciler.rules.fields import dotted, listed, meant
from reconciler.rules.near import requirements_of, why_none
from reconciler.rules.variants.codes import INJECTOR_MATCHES_NOTHING, NO_MATCHING_TARGETS, TARGET_REPEATED
from reconciler.rules.variants.model import Injector, PackageVariantSpec
from reconciler.rules.variants.read_set import read_package_variant_set
from reconciler.rules.variants.read_variant import read_package_variant
from reconciler.rules.variants.set_model import ObjectSelection, PackageVariantSetSpec
from reconciler.rules.variants.set_results import expansion_of
from reconciler.rules.variants.sets import Expansion
from reconciler.rules.variants.surroundings import Surroundings, Upstreams
from reconciler.snapshot.catalog import DEFAULT_NAMESPACE, PORCH_GROUP, Catalog, ConfigObject

_NAMED = 3


def lint_variants(catalog: Catalog, around: Surroundings) -> Iterator[Finding]:
    """Yield what is odd: selectors that match nothing, targets that repeat others, injectors that name nothing.

    To be asked of a catalog that is whole only: what cannot be read may be what is looked for.
    """
    upstreams, injectors = Upstreams(around), _Injectors(catalog)
    for one in catalog.of_kind(PORCH_GROUP, "PackageVariant"):
        written = read_package_variant(one.data).spec
        if written:
            injectors.of_variant(one, written)
    for one in catalog.of_kind(PORCH_GROUP, "PackageVariantSet"):
        spec = read_package_variant_set(one.data, around.cel).spec
        if spec:
            expansion = expansion_of(one, spec, catalog, around, upstreams)
            if isinstance(expansion, Expansion):
                yield from _repeated(one, spec, expansion)
                injectors.of_set(one, expansion)
            # that nobody knows a kind is told already
            if isinstance(expansion, Expansion) or expansion.reason != NO_MATCHING_TARGETS.name:
                yield from _idle_targets(one, spec, catalog)
    yield from injectors.findings()


def _idle_targets(one: ConfigObject, spec: PackageVariantSetSpec, catalog: Catalog) -> Iterator[Finding]:
    for index, target in enumerate(spec.targets):
        selection = target.selection
        if not isinstance(selection, ObjectSelection):
            continue
        candidates = catalog.of_type(selection.api_version, selection.kind, one.key.namespace)
        named = [each for each in candidates if selection.name in ("", each.key.name)]
        if not any(selection.selector.matches(each.labels) for each in named):
            field = _written_selector(one, index)
            why = _why_nothing(selection, candidates, named, one.key.namespace)
            message = f"spec.targets[{index}].{field} matches nothing: {why}"
            yield SELECTOR_MATCHES_NOTHING.finding(message, one.where_at(("spec", "targets", index, field)))


def _written_selector(one: ConfigObject, index: int) -> str:
    target = one.data["spec"]["targets"][index]
    return "repositorySelector" if target.get("repositorySelector") is not None else "objectSelector"


def _why_nothing(
    selection: ObjectSelection, candidates: Iterable[ConfigObject], named: Iterable[ConfigObject], namespace: str
) -> str:
    names, thing = sorted(one.key.name for one in candidates), f"{selection.kind} of namespace {namespace}"
    if names and selection.name and selection.name not in names:
        return f"no {thing} is called {selection.name}{meant(selection.name, names)}"
    return why_none(requirements_of(selection.selector), [one.labels for one in named], thing)


def _repeated(one: ConfigObject, spec: PackageVariantSetSpec, expansion: Expansion) -> Iterator[Finding]:
    """Yield a warning for each target all of whose packages earlier targets ask for as well."""
    firsts: dict[int, set[int]] = {}
    alone: set[int] = {target.index for target in expansion.skipped}
    for made in expansion.variants:
        first, *others = made.target_indexes
        alone.add(first)
        for index in others:
            firsts.setdefault(index, set()).add(first)
    for index in (index for index in range(len(spec.targets)) if index in firsts and index not in alone):
        earlier = listed([f"spec.targets[{first}]" for first in sorted(firsts[index])], " and ")
        message = f"spec.targets[{index}] asks for nothing that {earlier} does not ask for alike; leave one of them out"
        yield TARGET_REPEATED.finding(message, one.where_at(("spec", "targets", index)))


@dataclass(frozen=True)
class _Asked:
    """An injector, by the object that has it and the place there; of a set it is told once however many have it."""

    one: ConfigObject
    injector: Injector
    path: tuple[str | int, ...]


class _Injectors:
    """Injectors by whether there is anything that they name."""

    def __init__(self, catalog: Catalog) -> None:
        self._named: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for one in catalog.objects.values():
            here = (one.key.namespace or DEFAULT_NAMESPACE, one.key.name)
            self._named.setdefault(here, []).append((*split_api_version(one.api_version), one.key.kind))
        self._lost: dict[_Asked, list[str]] = {}

    def of_variant(self, one: ConfigObject, spec: PackageVariantSpec) -> None:
        """Note the injectors of a PackageVariant that was written by hand."""
        for index, injector in enumerate(spec.injectors):
            self._note(_Asked(one, injector, ("spec", "injectors", index)), "")

    def of_set(self, one: ConfigObject, expansion: Expansion) -> None:
        """Note the injectors of all that a set makes."""
        for made in expansion.variants:
            path = ("spec", "targets", made.target_indexes[0])
            for injector in made.spec.injectors:
                self._note(_Asked(one, injector, path), f"{made.key.repo}/{made.key.package}")

    def _note(self, asked: _Asked, of: str) -> None:
        there = self._named.get((asked.one.key.namespace, asked.injector.name), ())
        if not any(asked.injector.admits(*one) for one in there):
            self._lost.setdefault(asked, []).append(of)

    def findings(self) -> Iterator[Finding]:
        """Yield an info for each injector that names nothing."""
        for asked, made in self._lost.items():
            who = f" makes an injector, of {_some(made)}, that" if any(made) else ""
            message = f'{dotted(asked.path)}{who} names "{asked.injector.name}", and {self._why(asked)}'
            yield INJECTOR_MATCHES_NOTHING.finding(message, asked.one.where_at(asked.path))

    def _why(self, asked: _Asked) -> str:
        namespace, injector = asked.one.key.namespace, asked.injector
        if there := sorted(kind for _, _, kind in self._named.get((namespace, injector.name), ())):
            return f"what is called so is {listed(there, ' and ')}, which it does not admit"
        admitted = sorted(
            name for (where, name), kinds in self._named.items()
            if where == namespace and any(injector.admits(*one) for one in kinds)
        )  # fmt: skip
        thing = injector.kind or "object"
        return f"no {thing} of namespace {namespace} is called so{meant(injector.name, admitted)}"


def _some(names: list[str]) -> str:
    more = f" and {len(names) - _NAMED} more" if len(names) > _NAMED else ""
    return f"{', '.join(names[:_NAMED])}{more}"
