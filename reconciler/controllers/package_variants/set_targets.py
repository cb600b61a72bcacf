"""Targets of a PackageVariantSet: the code that converts each target to specs of PackageVariants.

The module expands lists and selectors, evaluates CEL expressions, renders templates and names the PackageVariants.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple, Protocol

from reconciler.api.base import FieldMessage, omit_empty
from reconciler.api.kustomize_options import KustomizeOptionsTemplate
from reconciler.api.porch.package_variant import Injector, PackageContext, PipelineFunction, PipelineSpec
from reconciler.api.porch.package_variant_set import (
    ObjectSelection,
    PackageVariantSetSpec,
    RepositoryList,
    SetTarget,
    format_merged_template,
)
from reconciler.api.porch.package_variant_template import (
    KUSTOMIZE_PATH_EXPRESSION,
    FunctionTemplate,
    InjectorTemplate,
    MapExpr,
    PackageVariantTemplate,
    TemplateExpression,
)
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.cel import CelEnvironment, ExpressionError, ExpressionLimits, evaluate_string
from reconciler.cel.results import ResultConversionError, convert_to_data
from reconciler.controllers.package_variants.helm_templates import render_helm_options
from reconciler.krm.field_text import format_path
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import DataPath
from reconciler.lazy_dataclasses import dataclass
from reconciler.memory import cached

_VARIABLES_OF_REPOSITORY_EXPRESSION = frozenset({"repoDefault", "packageDefault", "upstream", "target"})
_MAX_NAME_LENGTH = 63
_PREFIX_LENGTH = 54
_Metadata = Mapping[str, Any]


class ObjectMetadata(Protocol):
    """The metadata of an object. Selectors and CEL expressions can use only metadata, and not the spec and status."""

    @property
    def key(self) -> ObjectKey:
        """The object's identity."""
        ...

    @property
    def labels(self) -> Mapping[str, str]:
        """The labels of the object. {} if the object has no labels."""
        ...

    @property
    def annotations(self) -> Mapping[str, str]:
        """The annotations of the object. {} if the object has no annotations."""
        ...


class TemplateError(ValueError):
    """A template cannot be rendered. The message contains the path of the template field and the reason."""


def describe_object(metadata: ObjectMetadata, namespace: str) -> dict[str, Any]:
    """Return the metadata that CEL expressions can use: name, namespace, labels and annotations of an object."""
    return {
        "name": metadata.key.name,
        "namespace": metadata.key.namespace or namespace,
        "labels": dict(metadata.labels),
        "annotations": dict(metadata.annotations),
    }


def check_expression(expression: TemplateExpression, limits: ExpressionLimits) -> str | None:
    """Return the error if an expression has invalid syntax, is too long or uses an unknown variable.

    Return None if the expression is valid.
    """
    try:
        _create_environment(limits, expression.can_use_repository).compile(expression.text)
    except ExpressionError as error:
        return str(error)
    return None


def list_cel_extensions(expression: TemplateExpression, limits: ExpressionLimits) -> tuple[str, ...]:
    """Return the nonstandard functions, macros and operators in a CEL expression, sorted by name."""
    return tuple(sorted(_create_environment(limits, expression.can_use_repository).compile(expression.text).extensions))


@dataclass(frozen=True)
class ExpressionInputs:
    """The values of the variables in the CEL expressions of one target, and the limits of each expression."""

    bindings: Mapping[str, Any]
    limits: ExpressionLimits

    def evaluate(self, expression: TemplateExpression) -> str:
        """Return the result of a CEL expression.

        Raises:
            TemplateError: The expression fails.
        """
        try:
            program = _create_environment(self.limits, expression.can_use_repository).compile(expression.text)
            return evaluate_string(program, self.bindings)
        except ExpressionError as error:
            raise TemplateError(f"template.{format_path(expression.path)} failed: {error}") from error

    def evaluate_data(self, expression: TemplateExpression) -> Any:
        """Return the result of a CEL expression as data for YAML, of any type.

        Raises:
            TemplateError: The expression fails, or YAML does not support the result.
        """
        try:
            program = _create_environment(self.limits, expression.can_use_repository).compile(expression.text)
            return convert_to_data(program.evaluate(self.bindings))
        except (ExpressionError, ResultConversionError) as error:
            raise TemplateError(f"template.{format_path(expression.path)}: {error}") from error

    def evaluate_map(self, entries: Sequence[MapExpr], path: DataPath) -> dict[str, str]:
        """Return the map that the entries of the list at `path` define. A later entry overrides an earlier entry with
        the same key.
        """
        return {
            self._evaluate_either(entry.key, entry.key_expr, (*path, index, "keyExpr")): self._evaluate_either(
                entry.value or "", entry.value_expr, (*path, index, "valueExpr")
            )
            for index, entry in enumerate(entries)
        }

    def _evaluate_either(self, literal: str, expression: str, path: DataPath) -> str:
        return self.evaluate(TemplateExpression(path, expression)) if expression else literal


@cached(2)
def _create_environment(limits: ExpressionLimits, can_use_repository: bool) -> CelEnvironment:
    # The expression `repoExpr` determines the repository. Therefore, this expression cannot use the variable
    # `repository`.
    repository_variable = {"repository"} if can_use_repository else set()
    return CelEnvironment(_VARIABLES_OF_REPOSITORY_EXPRESSION | repository_variable, limits=limits)


def find_nonstandard_expressions(spec: PackageVariantSetSpec, cel_limits: ExpressionLimits) -> Iterator[FieldMessage]:
    """Yield a message for each nonstandard CEL expression of a valid spec: the field, and the CEL extensions in use."""
    for target_index, target in enumerate(spec.targets):
        path = f"spec.targets[{target_index}].template"
        expressions = [(path, expression) for expression in target.template.iterate_expressions()]
        # Each merged template contains the expressions of the target's template. Report these expressions only once,
        # and not again for each merged template.
        known_texts = {expression.text for _, expression in expressions}
        for (merged_index, upstream_index), result in spec.merged_templates.items():
            if merged_index == target_index and result.model:
                both = format_merged_template(target_index, upstream_index)
                added = (entry for entry in result.model.iterate_expressions() if entry.text not in known_texts)
                expressions += [(both, expression) for expression in added]
        for text_path, expression in expressions:
            if extensions := list_cel_extensions(expression, cel_limits):
                field = f"{text_path}.{format_path(expression.path)}"
                reason = (
                    f"is not standard CEL, because the expression uses {', '.join(extensions)}; other engines may"
                    " reject the expression"
                )
                location = ("spec", "targets", target_index, "template", *expression.path)
                yield FieldMessage(location, f"{field} {reason}")


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
    """The objects that the targets of a PackageVariantSet can select. They are in the namespace of the set."""

    def has_kind(self, api_version: str, kind: str) -> bool:
        """Return whether the config contains an object or a CustomResourceDefinition of this kind."""
        ...

    def list_objects(self, api_version: str, kind: str) -> Sequence[ObjectMetadata]:
        """Return the objects with exactly this apiVersion and kind, in any order."""
        ...


@dataclass(frozen=True)
class TargetContext:
    """One PackageVariant that a target creates.

    The object contains the default Repository and package path, the value of the CEL variable `target`, and the
    template.
    """

    index: int
    repo_default: str
    package_default: str
    target: Mapping[str, Any]
    template: PackageVariantTemplate
    upstream_index: int = 0

    def __str__(self) -> str:
        return f"spec.targets[{self.index}] ({self.repo_default}/{self.package_default})"


@dataclass(frozen=True)
class UnknownTargetKind:
    """Failure of a set because a target selects objects of a kind that does not exist."""

    index: int
    api_version: str
    kind: str

    def __str__(self) -> str:
        return (
            f'spec.targets[{self.index}] selects the kind "{self.kind}" in "{self.api_version}", but the config'
            " contains no object and no definition of this kind"
        )


def expand_targets(
    spec: PackageVariantSetSpec, upstreams: Sequence[UpstreamSpec], objects: SelectableObjects, namespace: str
) -> tuple[TargetContext, ...] | UnknownTargetKind:
    """Return one context for each PackageVariant that the set requests.

    Each target requests one PackageVariant per selected object and upstream. The result has the order of the targets in
    the spec. Objects that a selector selects are sorted by name. If a target selects an unknown kind, return
    `UnknownTargetKind`.
    """
    contexts: list[TargetContext] = []
    for index, target in enumerate(spec.targets):
        unknown_kind = _find_unknown_kind(index, target, objects)
        if unknown_kind:
            return unknown_kind
        for upstream_index, upstream in enumerate(upstreams):
            template = spec.get_template(index, upstream_index)
            contexts += (
                TargetContext(index, repo, package, metadata, template, upstream_index)
                for repo, package, metadata in _expand_target(target, upstream.package_name, objects, namespace)
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
    """A target whose downstream Repository and package are known.

    `inputs` contains the variables for the expressions of the target that are evaluated later.
    """

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
        upstream_metadata: The value of the CEL variable `upstream`.
        find_repository: Function that returns the Repository with a name in the namespace of the set.

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
    downstream, repo_inputs = template.downstream, ExpressionInputs(bindings, cel_limits)
    repo = _evaluate_or_default(repo_inputs, downstream.repo, downstream.repo_expression, context.repo_default)
    inputs = ExpressionInputs(
        {**bindings, "repository": _load_repository(repo, find_repository, namespace)}, cel_limits
    )
    package = _evaluate_or_default(inputs, downstream.package, downstream.package_expression, context.package_default)
    return ResolvedTarget(context, upstream, DownstreamKey(repo, package), inputs)


def _evaluate_or_default(
    inputs: ExpressionInputs, literal: str, expression: TemplateExpression | None, default: str
) -> str:
    return inputs.evaluate(expression) if expression else literal or default


def render_spec(target: ResolvedTarget, spec: PackageVariantSetSpec) -> dict[str, Any]:
    """Return the spec of the PackageVariant as data. The spec is not validated yet.

    Raises:
        TemplateError: An expression fails.
    """
    downstream = {"repo": target.key.repo, "package": target.key.package}
    rest = _render_rest(target.context.template, target.inputs)
    return {**spec.describe_upstream(target.upstream), "downstream": downstream, **rest}


def _load_repository(name: str, find_repository: _FindRepository, namespace: str) -> dict[str, Any]:
    repository = find_repository(name)
    if repository is None:
        raise TemplateError(f'repository "{name}" could not be loaded')
    return describe_object(repository, namespace)


def _render_rest(template: PackageVariantTemplate, inputs: ExpressionInputs) -> dict[str, Any]:
    # Do not change the order of these evaluations. If several expressions are invalid, only the first error is
    # reported.
    labels = {**template.labels, **inputs.evaluate_map(template.label_exprs, ("labelExprs",))}
    annotations = {**template.annotations, **inputs.evaluate_map(template.annotation_exprs, ("annotationExprs",))}
    context = _render_context(template, inputs)
    injectors = [
        _render_injector(injector, index, inputs).as_data() for index, injector in enumerate(template.injectors)
    ]
    validators = _render_functions(template.pipeline.validators, "validators", inputs)
    pipeline = PipelineSpec(
        mutators=_render_functions(template.pipeline.mutators, "mutators", inputs), validators=validators
    )
    helm = render_helm_options(template.helm, inputs) if template.helm else None
    kustomize = _render_kustomize_options(template.kustomize, inputs) if template.kustomize else None
    return omit_empty(
        {
            "adoptionPolicy": template.adoption_policy,
            "deletionPolicy": template.deletion_policy,
            "labels": labels,
            "annotations": annotations,
            "packageContext": context.as_data(),
            "helm": helm,
            "kustomize": kustomize,
            "pipeline": pipeline.as_data(),
            "injectors": injectors,
            "updateStrategy": template.update_strategy,
            "conflictPolicy": template.conflict_policy,
        }
    )


def _render_kustomize_options(template: KustomizeOptionsTemplate, inputs: ExpressionInputs) -> dict[str, Any]:
    fields = {name: value for name, value in template.as_data().items() if name != "pathExpr"}
    if not template.path_expr:
        return fields
    return {**fields, "path": inputs.evaluate(TemplateExpression(KUSTOMIZE_PATH_EXPRESSION, template.path_expr))}


def _render_context(template: PackageVariantTemplate, inputs: ExpressionInputs) -> PackageContext:
    context = template.package_context
    data = {**context.data, **inputs.evaluate_map(context.data_exprs, ("packageContext", "dataExprs"))}
    remove_keys = {*context.remove_keys, *map(inputs.evaluate, context.remove_key_expressions)}
    return PackageContext(data=data, remove_keys=tuple(sorted(remove_keys)))


def _render_injector(template: InjectorTemplate, index: int, inputs: ExpressionInputs) -> Injector:
    expression = TemplateExpression(("injectors", index, "nameExpr"), template.name_expr)
    name = inputs.evaluate(expression) if template.name_expr else template.name
    return Injector(name=name, group=template.group, version=template.version, kind=template.kind)


def _render_functions(
    templates: Sequence[FunctionTemplate], stage: str, inputs: ExpressionInputs
) -> tuple[PipelineFunction, ...]:
    """Return the functions of a stage (`mutators` or `validators`)."""
    return tuple(
        PipelineFunction(
            **{
                **{name: getattr(template, name) for name in PipelineFunction.model_fields},
                "config_map": {
                    **template.config_map,
                    **inputs.evaluate_map(template.config_map_exprs, ("pipeline", stage, index, "configMapExprs")),
                },
            }
        )
        for index, template in enumerate(templates)
    )
