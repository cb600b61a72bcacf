"""Targets of a set: from lists, selectors and templates to the specs of PackageVariants.

The module contains the variables and the evaluation of expressions, the variants' names, the expansion of targets and
the rendering of templates. The order of rendering decides which of several expression errors is reported.
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
    """The metadata of an object that expressions and selectors can use. Spec and status are not available."""

    @property
    def key(self) -> ObjectKey:
        """The object's identity."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels; {} if there are none."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations; {} if there are none."""
        ...


class TemplateError(ValueError):
    """A template cannot be rendered for a target. The text has the path and the reason."""


def describe_object(metadata: ObjectMetadata, namespace: str) -> dict[str, Any]:
    """Return the four metadata fields of an object that expressions can use."""
    return {
        "name": metadata.key.name,
        "namespace": metadata.key.namespace or namespace,
        "labels": dict(metadata.labels),
        "annotations": dict(metadata.annotations),
    }


def check_expression(text: TemplateText, limits: ExpressionLimits) -> str | None:
    """Return why an expression does not parse, is too long or uses an undeclared variable, or None."""
    if not text.is_expression:
        return None
    try:
        _create_environment(limits, text.can_use_repository).compile(text.text)
    except ExpressionError as error:
        return str(error)
    return None


def list_cel_extensions(text: TemplateText, limits: ExpressionLimits) -> tuple[str, ...]:
    """Return the functions, macros and operators of a valid expression that are not standard CEL, sorted."""
    if not text.is_expression:
        return ()
    return tuple(sorted(_create_environment(limits, text.can_use_repository).compile(text.text).extensions))


@dataclass(frozen=True)
class ExpressionInputs:
    """The variables for the expressions of one target, and the limits of each expression."""

    bindings: Mapping[str, Any]
    limits: ExpressionLimits

    def evaluate(self, text: TemplateText) -> str:
        """Return the value of a template text. Raises TemplateError."""
        if not text.is_expression:
            return text.text
        try:
            program = _create_environment(self.limits, text.can_use_repository).compile(text.text)
            return evaluate_string(program, self.bindings)
        except ExpressionError as error:
            raise TemplateError(f"{text.path_in_template}: {error}") from error


@cached(2)
def _create_environment(limits: ExpressionLimits, can_use_repository: bool) -> CelEnvironment:
    # `repoExpr` determines the repository and therefore cannot use it.
    repository_variable = {"repository"} if can_use_repository else set()
    return CelEnvironment(_VARIABLES_OF_REPOSITORY_EXPRESSION | repository_variable, limits=limits)


def find_nonstandard_expressions(spec: PackageVariantSetSpec, cel_limits: ExpressionLimits) -> tuple[str, ...]:
    """Return a message for each expression of a valid spec that is not standard CEL: its field, and the extensions."""
    texts = (text for target in spec.targets for text in _iterate_target_texts(target))
    return tuple(
        f"{text.path} uses {', '.join(extensions)}, which is not standard CEL; other engines may reject it"
        for text in texts
        if (extensions := list_cel_extensions(text, cel_limits))
    )


def _iterate_target_texts(target: SetTarget) -> Iterator[TemplateText]:
    template_texts = tuple(target.template.iterate_texts())
    yield from template_texts
    # The merged templates contain the texts of the template, which must be reported only once.
    known_texts = {text.text for text in template_texts}
    for template in target.upstream_templates.values():
        yield from (text for text in template.iterate_texts() if text.text not in known_texts)


class DownstreamKey(NamedTuple):
    """Identity of a variant in its set: the downstream Repository and package, independent of its name."""

    repo: str
    package: str

    def __str__(self) -> str:
        return f"{self.repo}/{self.package}"


def name_variants(set_name: str, keys: Iterable[DownstreamKey]) -> dict[DownstreamKey, str]:
    """Return a unique name for each key. The names do not depend on the order of the keys."""
    names: dict[DownstreamKey, str] = {}
    taken_names: set[str] = set()
    for key in sorted(set(keys)):
        name = format_variant_name(set_name, key)
        # `a-b` + `c` and `a` + `b-c` have the same id. Porch silently creates one variant for both.
        names[key] = name if name not in taken_names else _format_unambiguous_name(set_name, key)
        taken_names.add(names[key])
    return names


def format_variant_name(set_name: str, key: DownstreamKey) -> str:
    """Return the name of a variant whose id is unambiguous."""
    display_id = _format_display_id(set_name, key)
    return display_id if len(display_id) <= _MAX_NAME_LENGTH else f"{display_id[:_PREFIX_LENGTH]}-{_hash(display_id)}"


def _format_display_id(set_name: str, key: DownstreamKey) -> str:
    return f"{set_name}-{key.repo}-{key.package.replace('/', '.')}"


def _format_unambiguous_name(set_name: str, key: DownstreamKey) -> str:
    unambiguous_id = f"{key.repo}\0{key.package}"
    return f"{_format_display_id(set_name, key)[:_PREFIX_LENGTH]}-{_hash(unambiguous_id)}"


def _hash(text: str) -> str:
    # Porch uses SHA-1 for names. The names have no security purpose.
    return hashlib.sha1(text.encode(), usedforsecurity=False).hexdigest()[:8]


class SelectableObjects(Protocol):
    """The context objects of the set's namespace."""

    def has_kind(self, api_version: str, kind: str) -> bool:
        """Return whether the kind exists: the config has an object of it, or a CRD."""
        ...

    def list_objects(self, api_version: str, kind: str) -> Sequence[ObjectMetadata]:
        """Return the objects of exactly this apiVersion and kind, in any order."""
        ...


@dataclass(frozen=True)
class TargetContext:
    """One variant to render: its defaults, the variable `target` of its expressions, and its template."""

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
    """A target selects objects of a kind that does not exist."""

    index: int
    api_version: str
    kind: str

    def __str__(self) -> str:
        return f'spec.targets[{self.index}]: no object or definition of kind "{self.kind}" in "{self.api_version}"'


def expand_targets(
    targets: Sequence[SetTarget], upstreams: Sequence[UpstreamSpec], objects: SelectableObjects, namespace: str
) -> tuple[TargetContext, ...] | UnknownTargetKind:
    """Return a context for each target and upstream, in the order of the spec; selected objects are sorted by name."""
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
    """A target with a known downstream, and the variables for the rest of its template."""

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
    """Return the downstream of one target's variant.

    Args:
        context: The target and its defaults.
        upstream: The upstream of the variant.
        upstream_metadata: The variable `upstream` of expressions.
        find_repository: Returns a Repository of the set's namespace by name.
        namespace: The set's namespace.
        cel_limits: The limits of each expression.

    Raises:
        TemplateError: An expression fails. The text starts with the expression's path.
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
    """Return the spec of the PackageVariant as data, before its validation. Raises TemplateError."""
    downstream = {"repo": target.key.repo, "package": target.key.package}
    rest = _render_rest(target.context.template, target.inputs)
    return {"upstream": target.upstream.as_data(), "downstream": downstream, **rest}


def _load_repository(name: str, find_repository: _FindRepository, namespace: str) -> dict[str, Any]:
    repository = find_repository(name)
    if repository is None:
        raise TemplateError(f'repository "{name}" could not be loaded')
    return describe_object(repository, namespace)


def _render_rest(template: VariantTemplate, inputs: ExpressionInputs) -> dict[str, Any]:
    # The order decides which of several invalid expressions is reported.
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
    """Return the static map, overwritten by each entry in order."""
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
