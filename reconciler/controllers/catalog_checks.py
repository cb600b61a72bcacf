"""Checks of the whole config for conflicting objects and unused objects.

An object is used if it is placed on clusters, if a package variant may inject it, or if a PackageVariantSet selects it.
Objects in a folder with a Kptfile are not checked, because they belong to a package. Planning checks conflicts of
branches, directories and packages.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from posixpath import dirname
from typing import Any, TypeVar

from reconciler.api.kubeadmiral import KUBEADMIRAL_GROUP
from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.codes import CatalogCodes
from reconciler.catalog.definition_conflicts import DefinitionConflict, get_claimed_git_location, group_duplicate_names
from reconciler.catalog.known_kinds import KNOWN_KINDS, PORCH_GROUP, find_known_group, suggest_kind
from reconciler.controllers.clusters.inventory import CLUSTER_KINDS
from reconciler.controllers.codes import ControllerCodes
from reconciler.controllers.components.model import read_binding
from reconciler.controllers.components.names import BINDING
from reconciler.controllers.components.names import GROUP as COMPONENTS
from reconciler.controllers.override_policies.model import CLUSTER_OVERRIDE_POLICY_KIND
from reconciler.controllers.placement.model import CLUSTER_PROPAGATION_POLICY_KIND
from reconciler.controllers.placement.resources import (
    CLUSTERS_ANNOTATION,
    get_package_namespace,
    has_placement,
    is_controller_input,
)
from reconciler.krm.findings import Finding
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.packages.file_names import format_full_file_name

_ComponentBinding = tuple[str, str, str]
_Key = TypeVar("_Key")

# Names of these kinds must be unique, because other objects refer to them by name without a namespace. Repositories are
# not included, because planning reports Repositories with equal names.
_KINDS_WITH_UNIQUE_NAMES = (
    *(kind for kind in CLUSTER_KINDS if kind != (PORCH_GROUP, "Repository")),
    *((COMPONENTS, kind) for kind in ("Addon", "ComponentDefinition", "ComponentType")),
    ("reconciler.dev", "Environment"),
    (KUBEADMIRAL_GROUP, CLUSTER_OVERRIDE_POLICY_KIND),
    (KUBEADMIRAL_GROUP, CLUSTER_PROPAGATION_POLICY_KIND),
)
_KAFKA_GROUP = "kafka.strimzi.io"
_COMPONENTS_GROUP = "platform"
_MAX_EXAMPLES = 5
_IsUsed = Callable[[ConfigObject], bool]


def find_conflicting_objects(catalog: Catalog) -> Iterator[DefinitionConflict]:
    """Yield a conflict for each group of objects that must not exist together.

    - Objects of some kinds must have a unique name.
    - At most one EnvBinding may bind a component to an environment.
    - At most one placed resource may be written to a file of a package.
    """
    for kind in _KINDS_WITH_UNIQUE_NAMES:
        for name, manifests in group_duplicate_names(catalog.objects_of_kind(*kind)).items():
            yield DefinitionConflict(
                manifests,
                f'has the name "{name}", which must be unique in the whole config',
                claimed_location=get_claimed_git_location,
            )
    yield from _find_binding_conflicts(catalog)
    yield from _find_file_conflicts(catalog)


def _find_binding_conflicts(catalog: Catalog) -> Iterator[DefinitionConflict]:
    """Yield a conflict for each component that several EnvBindings bind to one environment."""
    bindings = catalog.objects_of_kind(COMPONENTS, BINDING)
    if len(bindings) < 2:
        return
    names = {
        (manifest.key.namespace, manifest.key.name)
        for manifest in catalog.objects.values()
        if manifest.key.kind != BINDING
    }
    get_claim = partial(_get_bound_component, names=names)
    bindings_by_component: dict[_ComponentBinding, list[ConfigObject]] = {}
    for binding in bindings:
        if bound_component := get_claim(binding):
            bindings_by_component.setdefault(bound_component, []).append(binding)
    for (namespace, component, environment), conflicting_bindings in _select_conflicts(bindings_by_component):
        reason = f'already binds the component "{component}" to the environment "{environment}"'
        package = f"components/{environment}/{namespace}/{component}"
        yield DefinitionConflict(conflicting_bindings, reason, package=package, claimed_location=get_claim)


def _get_bound_component(manifest: ConfigObject, names: Collection[tuple[str, str]]) -> _ComponentBinding | None:
    """Return the namespace, component and environment of an EnvBinding. Return None if the component is unknown.

    If `spec.component` is not set, the component name is the start of the EnvBinding's name. `names` contains the
    namespace and name of each object that may be the component. The component is unknown if no name or several names
    match.
    """
    binding, _ = read_binding(manifest)
    if binding is None:
        return None
    if binding.component:
        return binding.namespace, binding.component, binding.environment
    parts = binding.key.name.split("-")
    prefixes = ("-".join(parts[:end]) for end in range(1, len(parts)))
    component_names = [name for name in prefixes if (binding.namespace, name) in names]
    return (binding.namespace, component_names[0], binding.environment) if len(component_names) == 1 else None


def _find_file_conflicts(catalog: Catalog) -> Iterator[DefinitionConflict]:
    """Yield a conflict for placed resources that would be written to the same file of a package."""
    manifests_by_file: dict[tuple[str, str], list[ConfigObject]] = {}
    # Skip the kinds that controllers read. Objects of these kinds are never placed, and they are most of the objects in
    # a large config.
    kinds = (
        catalog.objects_of_kind(*kind) for kind in catalog.kinds if not is_controller_input(ObjectKey(*kind, "", ""))
    )
    for manifest in filter(has_placement, chain.from_iterable(kinds)):
        manifests_by_file.setdefault(
            (get_package_namespace(manifest.key), format_full_file_name(manifest.key)), []
        ).append(manifest)
    for (namespace, name), manifests in _select_conflicts(manifests_by_file):
        yield DefinitionConflict(
            manifests,
            f'would be written to the same file "{name}" of package "{namespace}"',
            claimed_location=get_claimed_git_location,
        )


def _select_conflicts(
    manifests_by_key: Mapping[_Key, list[ConfigObject]],
) -> Iterator[tuple[_Key, tuple[ConfigObject, ...]]]:
    return ((key, tuple(manifests)) for key, manifests in manifests_by_key.items() if len(manifests) > 1)


def find_unused_objects(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each unknown kind with unused objects, and for each unused Kafka and KafkaNodePool.

    Yield nothing if a config file is unreadable, because an object in this file may use the objects that appear to be
    unused.
    """
    if not catalog.is_complete:
        return
    is_used = _create_usage_test(catalog)
    for group, kind in catalog.kinds:
        objects = catalog.objects_of_kind(group, kind)
        if group == _KAFKA_GROUP and kind in KNOWN_KINDS[_KAFKA_GROUP]:
            yield from (_create_placement_finding(manifest) for manifest in objects if not is_used(manifest))
        elif _is_unknown(group, kind) and (unused := [manifest for manifest in objects if not is_used(manifest)]):
            yield _create_unknown_kind_finding(group, kind, unused)


def _is_unknown(group: str, kind: str) -> bool:
    if group == _COMPONENTS_GROUP or not (known_group := find_known_group(group)):
        return False
    return known_group != group or kind not in KNOWN_KINDS[group]


def _create_unknown_kind_finding(group: str, kind: str, objects: Sequence[ConfigObject]) -> Finding:
    known_group = find_known_group(group)
    suggestion = suggest_kind(kind, known_group)
    hint = f"; did you mean {suggestion}?" if suggestion else "."
    first, *others = objects
    examples = [f"{manifest.file}:{manifest.document.line}" for manifest in others[: _MAX_EXAMPLES - 1]]
    more = f" and {len(others) - len(examples)} more" if len(others) > len(examples) else ""
    other_locations = f'. Other objects of kind "{kind}" are at {", ".join(examples)}{more}' if others else ""
    message = (
        f'kind "{kind}" of {group} is unknown{hint} {first.key} has no effect, because no object places or injects it. '
        f"Known kinds of {known_group} are {', '.join(KNOWN_KINDS[known_group])}{other_locations}"
    )
    return CatalogCodes.UNKNOWN_KIND.finding(message, first.location_of(("kind",)))


def _create_placement_finding(manifest: ConfigObject) -> Finding:
    message = (
        f"{manifest.key} is not placed on any cluster; write the names of clusters in"
        f" metadata.annotations.{CLUSTERS_ANNOTATION}, or add the label of a propagation policy"
    )
    return ControllerCodes.KAFKA_NOT_PLACED.finding(message, manifest.location)


def _create_usage_test(catalog: Catalog) -> _IsUsed:
    """Return a function that checks whether a config object is used.

    An object is used if it has a placement, is in a package, can be injected into a package, or if a PackageVariantSet
    selects objects of its kind.
    """
    specs = [spec for kind in ("PackageVariant", "PackageVariantSet") for spec in _iterate_specs(catalog, kind)]
    injectors = [injector for spec in specs for injector in _iterate_injectors(spec)]
    selected = {selected_kind for spec in specs for selected_kind in _iterate_selected_kinds(spec)}

    def is_used(manifest: ConfigObject) -> bool:
        return (
            has_placement(manifest)
            or (manifest.key.group, manifest.key.kind) in selected
            or any(_admits(injector, manifest) for injector in injectors)
            or _is_in_package(manifest.file, catalog.package_folders)
        )

    return is_used


def _is_in_package(file: str, folders: frozenset[str]) -> bool:
    folder = dirname(file)
    while folder:
        if folder in folders:
            return True
        folder = dirname(folder)
    return "" in folders


def _iterate_specs(catalog: Catalog, kind: str) -> Iterator[Mapping[str, Any]]:
    copies = [duplicates for key, duplicates in catalog.copies.items() if (key.group, key.kind) == (PORCH_GROUP, kind)]
    for manifest in (*catalog.objects_of_kind(PORCH_GROUP, kind), *chain.from_iterable(copies)):
        yield _get_mapping(manifest.data.get("spec"))


def _iterate_injectors(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the injectors in a PackageVariant or in the templates of a PackageVariantSet. The spec may be invalid."""
    templates = (_get_mapping(target.get("template")) for target in _get_mappings(spec.get("targets")))
    for owner in (spec, *templates):
        yield from _get_mappings(owner.get("injectors"))


def _iterate_selected_kinds(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for target in _get_mappings(spec.get("targets")):
        selector = _get_mapping(target.get("objectSelector"))
        yield split_api_version(str(selector.get("apiVersion", "")))[0], str(selector.get("kind", ""))


def _admits(injector: Mapping[str, Any], manifest: ConfigObject) -> bool:
    """Return whether an injector may select an object. An injector with `nameExpr` may select any name."""
    conditions = ((injector.get("group"), manifest.key.group), (injector.get("kind"), manifest.key.kind))
    is_named = "nameExpr" in injector or injector.get("name") == manifest.key.name
    return is_named and all(required in (None, "", actual) for required, actual in conditions)


def _get_mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _get_mappings(value: object) -> list[Mapping[str, Any]]:
    return [item for item in value if isinstance(item, Mapping)] if isinstance(value, list) else []
