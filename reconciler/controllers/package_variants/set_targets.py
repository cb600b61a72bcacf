"""Targets of a PackageVariantSet: the code that converts each target to specs of PackageVariants.

The module expands lists and selectors, evaluates CEL expressions, renders templates and names the PackageVariants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple, Protocol

from reconciler.cel import CelEnvironment, ExpressionError, ExpressionLimits, evaluate_string
from reconciler.controllers.package_variants.model import (
    FunctionTemplate,
    Injector,
    InjectorTemplate,
    MapTemplate,
    MapTemplateEntry,
    ObjectSelection,
    PackageContext,
    PackageVariantSetSpec,
    PipelineFunction,
    PipelineSpec,
    RepositoryList,
    SetTarget,
    TemplateText,
    UpstreamSpec,
    VariantTemplate,
    omit_empty,
)
from reconciler.krm.objects import ObjectKey
from reconciler.memory import cached

_VARIABLES_OF_REPOSITORY_EXPRESSION = frozenset({"repoDefault", "packageDefault", "upstream", "target"})
_MAX_NAME_LENGTH = 63
_PREFIX_LENGTH = 54
_Metadata = Mapping[str, Any]


class ObjectMetadata(Protocol):
    """The metadata that selectors and CEL expressions can use. They cannot use the spec and status of an object."""

    @property
    def key(self) -> ObjectKey:
        """The object's identity."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the object. {} if it has none."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the object. {} if it has none."""
        ...


class TemplateError(ValueError):
    """A template cannot be rendered. The message contains the path of the template field and the reason."""


def describe_object(metadata: ObjectMetadata, namespace: str) -> dict[str, Any]:
    """Return the metadata of an object that CEL expressions can use: name, namespace, labels and annotations."""
    return {
        "name": metadata.key.name,
        "namespace": metadata.key.namespace or namespace,
        "labels": dict(metadata.labels),
        "annotations": dict(metadata.annotations),
    }


def check_expression(text: TemplateText, limits: ExpressionLimits) -> str | None:
    """Return the error if an expression has invalid syntax, is too long or uses an unknown variable.

    Return None if the expression is valid or if the text is a literal.
    """
    if not text.is_expression:
        return None
    try:
        _create_environment(limits, text.can_use_repository).compile(text.text)
    except ExpressionError as error:
        return str(error)
    return None


def list_cel_extensions(text: TemplateText, limits: ExpressionLimits) -> tuple[str, ...]:
    """Return the functions, macros and operators of an expression that are not part of standard CEL, sorted by name."""
    if not text.is_expression:
        return ()
    return tuple(sorted(_create_environment(limits, text.can_use_repository).compile(text.text).extensions))


@dataclass(frozen=True)
class ExpressionInputs:
    """The values of the variables in the CEL expressions of one target, and the limits of each expression."""

    bindings: Mapping[str, Any]
    limits: ExpressionLimits

    def evaluate(self, text: TemplateText) -> str:
        """Return a literal unchanged, or the result of a CEL expression.

        Raises:
            TemplateError: The expression fails.
        """
        if not text.is_expression:
            return text.text
        try:
            program = _create_environment(self.limits, text.can_use_repository).compile(text.text)
            return evaluate_string(program, self.bindings)
        except ExpressionError as error:
            raise TemplateError(f"{text.path_in_template}: {error}") from error


@cached(2)
def _create_environment(limits: ExpressionLimits, can_use_repository: bool) -> CelEnvironment:
    # Omit the variable `repository` for `repoExpr`, because the result of `repoExpr` determines the repository.
    repository_variable = {"repository"} if can_use_repository else set()
    return CelEnvironment(_VARIABLES_OF_REPOSITORY_EXPRESSION | repository_variable, limits=limits)


def find_nonstandard_expressions(spec: PackageVariantSetSpec, cel_limits: ExpressionLimits) -> tuple[str, ...]:
    """Return a message for each expression that is not standard CEL, with its field and the extensions."""
    texts = (text for target in spec.targets for text in _iterate_target_texts(target))
    return tuple(
        f"{text.path} uses {', '.join(extensions)}, which is not standard CEL; other engines may reject it"
        for text in texts
        if (extensions := list_cel_extensions(text, cel_limits))
    )


def _iterate_target_texts(target: SetTarget) -> Iterator[TemplateText]:
    template_texts = tuple(target.template.iterate_texts())
    yield from template_texts
    # Skip texts of merged templates that the target's own template contains, so that each text is reported once.
    known_texts = {text.text for text in template_texts}
    for template in target.upstream_templates.values():
        yield from (text for text in template.iterate_texts() if text.text not in known_texts)


class DownstreamKey(NamedTuple):
    """Identity of a PackageVariant within its set: the name of the downstream Repository, and the package path."""

    repo: str
    package: str

    def __str__(self) -> str:
        return f"{self.repo}/{self.package}"


def name_variants(set_name: str, keys: Iterable[DownstreamKey]) -> dict[DownstreamKey, str]:
    """Return a unique PackageVariant name for each key. The names do not depend on the order of the keys."""
    names: dict[DownstreamKey, str] = {}
    taken_names: set[str] = set()
    for key in sorted(set(keys)):
        name = format_variant_name(set_name, key)
        # Give the second of two equal names a hash. For example, the keys `a-b/c` and `a/b-c` have equal names. In this
        # case, Porch creates only one PackageVariant for both keys.
        names[key] = name if name not in taken_names else _format_unambiguous_name(set_name, key)
        taken_names.add(names[key])
    return names


def format_variant_name(set_name: str, key: DownstreamKey) -> str:
    """Return the usual name of a PackageVariant: `<set>-<repository>-<package>`, with dots instead of slashes.

    If the name is longer than 63 characters, its end is replaced with a hash.
    """
    display_id = _format_display_id(set_name, key)
    return display_id if len(display_id) <= _MAX_NAME_LENGTH else f"{display_id[:_PREFIX_LENGTH]}-{_hash(display_id)}"


def _format_display_id(set_name: str, key: DownstreamKey) -> str:
    return f"{set_name}-{key.repo}-{key.package.replace('/', '.')}"


def _format_unambiguous_name(set_name: str, key: DownstreamKey) -> str:
    unambiguous_id = f"{key.repo}\0{key.package}"
    return f"{_format_display_id(set_name, key)[:_PREFIX_LENGTH]}-{_hash(unambiguous_id)}"


def _hash(text: str) -> str:
    # Use SHA-1, because Porch uses it for names. The hash has no security purpose.
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]


class SelectableObjects(Protocol):
    """The objects in the namespace of a PackageVariantSet that its targets can select."""

    def has_kind(self, api_version: str, kind: str) -> bool:
        """Return whether the config contains an object or a CustomResourceDefinition of this kind."""
        ...

    def list_objects(self, api_version: str, kind: str) -> Sequence[ObjectMetadata]:
        """Return the objects with exactly this apiVersion and kind, in any order."""
        ...


@dataclass(frozen=True)
class TargetContext:
    """One PackageVariant to create for a target.

    It contains the default Repository and package, the value of the CEL variable `target`, and the template.
    """

    index: int
    repo_default: str
    package_default: str
    target: Mapping[str, Any]
    template: VariantTemplate
    upstream_index: int = 0

    def __str__(self) -> str:
        return f"spec.targets[{self.index}] ({self.repo_default}/{self.package_default})"


@dataclass(frozen=True)
class UnknownTargetKind:
    """The failure if a target selects objects of a kind that does not exist."""

    index: int
    api_version: str
    kind: str

    def __str__(self) -> str:
        kind = f'kind "{self.kind}" in "{self.api_version}"'
        return f"spec.targets[{self.index}]: the config contains no object and no definition of {kind}"


def expand_targets(
    targets: Sequence[SetTarget], upstreams: Sequence[UpstreamSpec], objects: SelectableObjects, namespace: str
) -> tuple[TargetContext, ...] | UnknownTargetKind:
    """Return the contexts of all PackageVariants that targets and upstreams request, in the order of the spec.

    Objects that a selector selects are sorted by name. Return the failure if a target selects an unknown kind.
    """
    contexts: list[TargetContext] = []
    for index, target in enumerate(targets):
        unknown_kind = _find_unknown_kind(index, target, objects)
        if unknown_kind:
            return unknown_kind
        for upstream_index, upstream in enumerate(upstreams):
            template = target.upstream_templates.get(upstream_index, target.template)
            contexts += (
                TargetContext(index, repo, package, metadata, template, upstream_index)
                for repo, package, metadata in _expand_target(target, upstream.package, objects, namespace)
            )
    return tuple(contexts)


def _find_unknown_kind(index: int, target: SetTarget, objects: SelectableObjects) -> UnknownTargetKind | None:
    selection = target.selection
    if isinstance(selection, RepositoryList) or objects.has_kind(selection.api_version, selection.kind):
        return None
    return UnknownTargetKind(index, selection.api_version, selection.kind)


def _expand_target(
    target: SetTarget, upstream_package: str, objects: SelectableObjects, namespace: str
) -> Iterator[tuple[str, str, Mapping[str, Any]]]:
    match target.selection:
        case RepositoryList(entries):
            for entry in entries:
                for package in entry.package_names or (upstream_package,):
                    yield entry.name, package, {"repo": entry.name, "package": package}
        case ObjectSelection() as selection:
            for selected in sorted(_select_objects(selection, objects), key=lambda metadata: metadata.key):
                for package in selection.package_names or (upstream_package,):
                    yield selected.key.name, package, describe_object(selected, namespace)


def _select_objects(selection: ObjectSelection, objects: SelectableObjects) -> Iterator[ObjectMetadata]:
    for metadata in objects.list_objects(selection.api_version, selection.kind):
        if selection.selector.matches(metadata.labels) and selection.name in ("", metadata.key.name):
            yield metadata


_FindRepository = Callable[[str], ObjectMetadata | None]


@dataclass(frozen=True)
class ResolvedTarget:
    """A target whose downstream is known, and the variables for the other expressions of its template."""

    context: TargetContext
    upstream: UpstreamSpec
    key: DownstreamKey
    inputs: ExpressionInputs


def resolve_target(
    context: TargetContext,
    upstream: UpstreamSpec,
    upstream_metadata: _Metadata,
    find_repository: _FindRepository,
    namespace: str,
    cel_limits: ExpressionLimits,
) -> ResolvedTarget:
    """Evaluate the downstream Repository and package of one PackageVariant.

    Args:
        context: The target and its defaults.
        upstream: The upstream of the PackageVariant.
        upstream_metadata: The value of the CEL variable `upstream`.
        find_repository: Function that returns the Repository with a name in the namespace of the set.
        namespace: The namespace of the set.
        cel_limits: The limits of each CEL expression.

    Raises:
        TemplateError: An expression fails or the Repository does not exist.
    """
    template = context.template
    bindings: dict[str, Any] = {
        "repoDefault": context.repo_default,
        "packageDefault": context.package_default,
        "upstream": upstream_metadata,
        "target": context.target,
    }
    repo = ExpressionInputs(bindings, cel_limits).evaluate(template.repo) if template.repo else context.repo_default
    inputs = ExpressionInputs(
        {**bindings, "repository": _load_repository(repo, find_repository, namespace)}, cel_limits
    )
    package = inputs.evaluate(template.package) if template.package else context.package_default
    return ResolvedTarget(context, upstream, DownstreamKey(repo, package), inputs)


def render_spec(target: ResolvedTarget) -> dict[str, Any]:
    """Return the spec of the PackageVariant as data. The spec is not validated yet.

    Raises:
        TemplateError: An expression fails.
    """
    downstream = {"repo": target.key.repo, "package": target.key.package}
    rest = _render_rest(target.context.template, target.inputs)
    return {"upstream": target.upstream.as_data(), "downstream": downstream, **rest}


def _load_repository(name: str, find_repository: _FindRepository, namespace: str) -> dict[str, Any]:
    repository = find_repository(name)
    if repository is None:
        raise TemplateError(f'repository "{name}" could not be loaded')
    return describe_object(repository, namespace)


def _render_rest(template: VariantTemplate, inputs: ExpressionInputs) -> dict[str, Any]:
    # Keep this order of evaluation, because it determines which of several invalid expressions is reported.
    labels, annotations = render_map(template.labels, inputs), render_map(template.annotations, inputs)
    context = PackageContext(render_map(template.context, inputs), _render_remove_keys(template, inputs))
    injectors = [_render_injector(injector, inputs).as_data() for injector in template.injectors]
    validators = _render_functions(template.validators, inputs)
    pipeline = PipelineSpec(_render_functions(template.mutators, inputs), validators)
    return omit_empty(
        {
            "adoptionPolicy": template.adoption_policy,
            "deletionPolicy": template.deletion_policy,
            "labels": labels,
            "annotations": annotations,
            "packageContext": context.as_data(),
            "pipeline": pipeline.as_data(),
            "injectors": injectors,
            "updateStrategy": template.update_strategy,
            "conflictPolicy": template.conflict_policy,
        }
    )


def render_map(template: MapTemplate, inputs: ExpressionInputs) -> dict[str, str]:
    """Return the static map with the evaluated entries. An entry replaces an earlier value of the same key."""
    return {**template.static, **_render_entries(template.entries, inputs)}


def _render_entries(entries: Sequence[MapTemplateEntry], inputs: ExpressionInputs) -> dict[str, str]:
    return {inputs.evaluate(entry.key): inputs.evaluate(entry.value) for entry in entries}


def _render_remove_keys(template: VariantTemplate, inputs: ExpressionInputs) -> tuple[str, ...]:
    return tuple(sorted({inputs.evaluate(key) for key in template.remove_keys}))


def _render_injector(template: InjectorTemplate, inputs: ExpressionInputs) -> Injector:
    return Injector(inputs.evaluate(template.name), template.group, template.version, template.kind)


def _render_functions(templates: Sequence[FunctionTemplate], inputs: ExpressionInputs) -> tuple[PipelineFunction, ...]:
    return tuple(
        replace(
            template.function, config_map={**template.function.config_map, **_render_entries(template.config, inputs)}
        )
        for template in templates
    )
