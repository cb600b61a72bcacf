"""Lint checks for PackageVariants and PackageVariantSets that are valid but probably wrong."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant import Injector, PackageVariant, PackageVariantSpec
from reconciler.api.porch.package_variant_set import ObjectSelection, PackageVariantSetSpec
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.known_kinds import PORCH_GROUP
from reconciler.catalog.manifests import DEFAULT_NAMESPACE
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.controllers.package_variants.inputs import PackageVariantInputs, UpstreamResolver
from reconciler.controllers.package_variants.package_variant_set import expand_valid_set
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.controllers.package_variants.set_expansion import SetExpansion
from reconciler.controllers.validation import explain_no_match, list_requirements
from reconciler.krm.field_text import format_list, format_path, suggest_name
from reconciler.krm.findings import Finding
from reconciler.krm.objects import split_api_version
from reconciler.lazy_dataclasses import dataclass

_MAX_LISTED = 3


def lint_variants(catalog: Catalog, inputs: PackageVariantInputs) -> Iterator[Finding]:
    """Yield findings about selectors that match nothing, repeated targets, and injectors that name no existing object.

    Call this function only if the catalog is complete, because an unreadable file may contain the missing object.
    """
    upstreams, injector_check = UpstreamResolver(inputs), _InjectorCheck(catalog)
    for manifest in catalog.objects_of_kind(PORCH_GROUP, "PackageVariant"):
        variant = read_manifest(PackageVariant, manifest.data).model
        if variant:
            injector_check.add_variant(manifest, variant.spec)
    for manifest in catalog.objects_of_kind(PORCH_GROUP, "PackageVariantSet"):
        variant_set = read_package_variant_set(manifest.data, inputs.cel_limits).model
        if variant_set:
            spec = variant_set.spec
            expansion = expand_valid_set(manifest, spec, catalog, inputs, upstreams)
            if isinstance(expansion, SetExpansion):
                yield from _find_repeated_targets(manifest, spec, expansion)
                injector_check.add_set(manifest, expansion)
            # Skip targets that select an unknown kind, because another finding already reports this kind.
            if isinstance(expansion, SetExpansion) or expansion.reason != VariantCodes.NO_MATCHING_TARGETS.name:
                yield from _find_idle_targets(manifest, spec, catalog)
    yield from injector_check.iterate_findings()


def _find_idle_targets(manifest: ConfigObject, spec: PackageVariantSetSpec, catalog: Catalog) -> Iterator[Finding]:
    for index, target in enumerate(spec.targets):
        selection = target.selection
        if not isinstance(selection, ObjectSelection):
            continue
        candidates = catalog.objects_of_type(selection.api_version, selection.kind, manifest.key.namespace)
        named_candidates = [candidate for candidate in candidates if selection.name in ("", candidate.key.name)]
        if not any(selection.selector.matches(candidate.labels) for candidate in named_candidates):
            field = _get_selector_field(manifest, index)
            reason = _explain_empty_selection(selection, candidates, named_candidates, manifest.key.namespace)
            message = f"spec.targets[{index}].{field} matches no object, because {reason}"
            yield ControllerCodes.SELECTOR_MATCHES_NOTHING.finding(
                message, manifest.location_of(("spec", "targets", index, field))
            )


def _get_selector_field(manifest: ConfigObject, index: int) -> str:
    target = manifest.data["spec"]["targets"][index]
    return "repositorySelector" if target.get("repositorySelector") is not None else "objectSelector"


def _explain_empty_selection(
    selection: ObjectSelection,
    candidates: Iterable[ConfigObject],
    named_candidates: Iterable[ConfigObject],
    namespace: str,
) -> str:
    names, noun = sorted(candidate.key.name for candidate in candidates), f'{selection.kind} in namespace "{namespace}"'
    if names and selection.name and selection.name not in names:
        return f'no {noun} has the name "{selection.name}"{suggest_name(selection.name, names)}'
    return explain_no_match(
        list_requirements(selection.selector), [candidate.labels for candidate in named_candidates], noun
    )


def _find_repeated_targets(
    manifest: ConfigObject, spec: PackageVariantSetSpec, expansion: SetExpansion
) -> Iterator[Finding]:
    """Yield a warning for each target whose packages are all already requested by earlier targets."""
    first_indexes: dict[int, set[int]] = {}
    unique_indexes: set[int] = {target.index for target in expansion.skipped}
    for generated in expansion.variants:
        first, *others = generated.target_indexes
        unique_indexes.add(first)
        for index in others:
            first_indexes.setdefault(index, set()).add(first)
    for index in (
        index for index in range(len(spec.targets)) if index in first_indexes and index not in unique_indexes
    ):
        earlier = format_list([f"spec.targets[{first}]" for first in sorted(first_indexes[index])], " and ")
        message = (
            f"all packages of spec.targets[{index}] are also requested by {earlier}, with the same spec;"
            " remove one of these targets"
        )
        yield VariantCodes.TARGET_REPEATED.finding(message, manifest.location_of(("spec", "targets", index)))


@dataclass(frozen=True)
class _InjectorUse:
    """An injector, and the location for a finding about the injector: an object, and a path in this object.

    Several PackageVariants can get an injector from the same target. These PackageVariants share one instance of this
    class, so that one finding lists all their packages.
    """

    manifest: ConfigObject
    injector: Injector
    path: tuple[str | int, ...]


class _InjectorCheck:
    """Collects the injectors that do not match any object in the config."""

    def __init__(self, catalog: Catalog) -> None:
        self._objects_by_name: dict[tuple[str, str], list[tuple[str, str, str]]] = {}
        for manifest in catalog.objects.values():
            object_name = (manifest.key.namespace or DEFAULT_NAMESPACE, manifest.key.name)
            self._objects_by_name.setdefault(object_name, []).append(
                (*split_api_version(manifest.api_version), manifest.key.kind)
            )
        self._unmatched: dict[_InjectorUse, list[str]] = {}

    def add_variant(self, manifest: ConfigObject, spec: PackageVariantSpec) -> None:
        """Check the injectors of a PackageVariant in the config."""
        for index, injector in enumerate(spec.injectors):
            self._check(_InjectorUse(manifest, injector, ("spec", "injectors", index)), "")

    def add_set(self, manifest: ConfigObject, expansion: SetExpansion) -> None:
        """Check the injectors of all PackageVariants that a set generates."""
        for generated in expansion.variants:
            path = ("spec", "targets", generated.target_indexes[0])
            for injector in generated.spec.injectors:
                self._check(_InjectorUse(manifest, injector, path), f"{generated.key.repo}/{generated.key.package}")

    def _check(self, use: _InjectorUse, package: str) -> None:
        types = self._objects_by_name.get((use.manifest.key.namespace, use.injector.name), ())
        if not any(use.injector.admits(*object_type) for object_type in types):
            self._unmatched.setdefault(use, []).append(package)

    def iterate_findings(self) -> Iterator[Finding]:
        """Yield one info finding for each injector that matches no object."""
        for use, packages in self._unmatched.items():
            verb = (
                f"generates an injector (for {_format_examples(packages)}) that refers" if any(packages) else "refers"
            )
            message = f'{format_path(use.path)} {verb} to "{use.injector.name}", but {self._explain(use)}'
            yield VariantCodes.INJECTOR_MATCHES_NOTHING.finding(message, use.manifest.location_of(use.path))

    def _explain(self, use: _InjectorUse) -> str:
        namespace, injector = use.manifest.key.namespace, use.injector
        if kinds := sorted(kind for _, _, kind in self._objects_by_name.get((namespace, injector.name), ())):
            objects = "the object" if len(kinds) == 1 else "the objects"
            reason = "the injector has a different group, version or kind"
            return f"{objects} with this name ({format_list(kinds)}) cannot be injected, because {reason}"
        admitted = sorted(
            name for (object_namespace, name), types in self._objects_by_name.items()
            if object_namespace == namespace and any(injector.admits(*object_type) for object_type in types)
        )  # fmt: skip
        noun = injector.kind or "object"
        return f'no {noun} in namespace "{namespace}" has this name{suggest_name(injector.name, admitted)}'


def _format_examples(names: list[str]) -> str:
    more = f" and {len(names) - _MAX_LISTED} more" if len(names) > _MAX_LISTED else ""
    return f"{', '.join(names[:_MAX_LISTED])}{more}"
