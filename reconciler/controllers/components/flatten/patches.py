"""Checks whether flattening can apply a patch to a template before the expressions of the template are evaluated.

The checks reject a patch if the value of an expression can change the result of the patch.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Any

from reconciler.api.openchoreo import EXPRESSION_START, is_template_text
from reconciler.cel.inspection import list_called_functions
from reconciler.controllers.components.codes import ComponentCodes
from reconciler.controllers.components.field_findings import FieldFindingError, build_field_finding
from reconciler.controllers.components.model import AddonInstance
from reconciler.controllers.components.patching.budget import PatchBudget
from reconciler.controllers.components.patching.locations import Location, find_locations
from reconciler.controllers.components.patching.operations import PatchOperation
from reconciler.controllers.components.patching.paths import (
    FilterStep,
    IndexStep,
    KeyStep,
    NumericStep,
    PatchPath,
    PathStep,
    WildcardStep,
)
from reconciler.controllers.components.patching.pod_templates import CONTAINER_LISTS, get_pod_spec_path
from reconciler.controllers.components.patching.targets import PatchTarget, can_match_target, is_target_match
from reconciler.controllers.components.patching.writers import WriteTracker
from reconciler.controllers.components.templates.expressions import EmbeddedExpression, split_expressions
from reconciler.controllers.nested_values import get_value
from reconciler.krm.field_text import quote_value
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath

IsScalar = Callable[[str], bool]
_VALUE: DataPath = ("value",)
_LABELS: DataPath = ("metadata", "labels")
_OMIT_FUNCTIONS = frozenset({"omit", "oc_omit"})


def is_patch_target(target: PatchTarget, template: Any, name: str, field_path: DataPath) -> bool:
    """Return whether each resource that is rendered from `template` matches the patch target.

    Raises:
        FieldFindingError: An expression determines whether the resource matches.
    """
    if not can_match_target(replace(target, labels=(), containers=None), template, name):
        return False
    if not can_match_target(target, template, name) and not _find_templated_keys(target, template):
        return False
    for text in (*_find_templated_keys(target, template), *_find_templated_values(target, template)):
        raise _build_dependency_error(field_path, text)
    return is_target_match(target, template, name)


def require_static_result(
    template: Any,
    operation: PatchOperation,
    tracker: WriteTracker,
    instance: AddonInstance,
    budget: PatchBudget,
    is_scalar: IsScalar,
    *,
    skip_missing: bool,
) -> None:
    """Raise an error if an expression of the template or of the value influences the result of a patch operation.

    `is_scalar` returns whether the result of an expression is always a string, number or boolean.

    Raises:
        FieldFindingError: The result of the patch operation depends on an expression.
    """
    field_path, steps = (*operation.field_path, "path"), operation.path.steps
    for number, step in enumerate(steps):
        prefix = PatchPath(operation.path.text, steps[:number])
        for location in find_locations(template, prefix, "remove", budget, field_path, skip_missing=skip_missing):
            for text in _find_deciding_texts(get_value(template, location), step):
                raise _build_dependency_error(field_path, text)
    for location in find_locations(
        template, operation.path, operation.op, budget, field_path, skip_missing=skip_missing
    ):
        for value_path, text in _find_deciding_texts_at(template, location, operation, tracker, instance, is_scalar):
            raise _build_dependency_error((*operation.field_path, *value_path), text)


def _find_deciding_texts(container: Any, step: PathStep) -> Iterator[str]:
    """Yield the expressions in a map or list that determine which of its keys or items a path step selects."""
    match container, step:
        case str(), _ if EXPRESSION_START in container:
            yield container
        case dict(), KeyStep() | NumericStep():
            yield from (key for key in container if EXPRESSION_START in key)
        case list(), IndexStep() | NumericStep() | WildcardStep():
            yield from filter(_can_omit, container)
        case list(), FilterStep(fields):
            for item in container:
                yield from _find_deciding_field_texts(item, fields)


def _find_deciding_field_texts(item: Any, fields: tuple[str, ...]) -> Iterator[str]:
    """Yield the expressions that influence whether a filter of a path matches a list item."""
    for field in (*fields, None):
        if isinstance(item, str) and EXPRESSION_START in item:
            yield item
        if not isinstance(item, dict) or field is None:
            return
        yield from (key for key in item if EXPRESSION_START in key)
        item = item.get(field)


def _find_deciding_texts_at(
    template: Any,
    location: Location,
    operation: PatchOperation,
    tracker: WriteTracker,
    instance: AddonInstance,
    is_scalar: IsScalar,
) -> Iterator[tuple[DataPath, str]]:
    """Yield the expressions that influence the result of a patch operation at one location.

    Each expression comes with the path that the error message must name: a field of the operation, e.g. `value`.
    """
    container, old, value = get_value(template, location[:-1]), get_value(template, location), operation.value
    if container is ABSENT or container is None or not isinstance(container, dict | list):
        yield from [(_VALUE, value)] if _can_omit(value) else []
    if operation.op == "remove":
        return
    is_new = old is ABSENT or (operation.op == "add" and isinstance(container, list))
    yield from ((("path",), str(step)) for step in location if isinstance(step, str) and EXPRESSION_START in step)
    yield from ((_VALUE, value) for value in (old, value) if not is_new and _can_omit(value))
    if operation.op == "merge":
        yield from _find_deciding_merge_texts(old, value, _VALUE, is_scalar)
        return
    # `add` merges its value into an existing map or list. If another addon has written it, check the merge.
    is_foreign = operation.op == "add" and not is_new and tracker.get_writer(location) not in (None, instance)
    if is_foreign and all(_can_merge(value, is_scalar) for value in (old, value)):
        yield from _find_deciding_merge_texts(old, value, _VALUE, is_scalar)


def _can_merge(value: Any, is_scalar: IsScalar) -> bool:
    return isinstance(value, dict | list) or (find_single_expression(value) is not None and not is_scalar(value))


def _find_deciding_merge_texts(
    old: Any, value: Any, field_path: DataPath, is_scalar: IsScalar
) -> Iterator[tuple[DataPath, str]]:
    """Yield the expressions that influence how `value` is merged into `old`."""
    if old is ABSENT:
        return
    if isinstance(old, dict) and isinstance(value, dict):
        yield from ((field_path, key) for item in (old, value) for key in item if EXPRESSION_START in key)
        for key, child in value.items():
            yield from _find_deciding_merge_texts(old.get(key, ABSENT), child, (*field_path, key), is_scalar)
    elif old is None:
        yield from [(field_path, value)] if _can_omit(value) else []
    else:
        texts = (
            item
            for item in (old, value)
            if _can_omit(item) or (find_single_expression(item) is not None and not is_scalar(item))
        )
        yield from ((field_path, item) for item in texts)


def _find_templated_keys(target: PatchTarget, template: Any) -> list[str]:
    """Return the templated map keys that can affect whether the patch target matches.

    A templated key contains an expression. Only keys of these maps can affect the match: the labels, the pod spec, and
    their parents, e.g. `metadata`.
    """
    paths: list[DataPath] = []
    if target.labels and not is_target_match(PatchTarget(labels=target.labels), template, ""):
        paths += (_LABELS[:depth] for depth in range(len(_LABELS) + 1))
    if target.containers is not None:
        paths += (get_pod_spec_path(template)[:depth] for depth in range(len(get_pod_spec_path(template)) + 1))
    containers = (get_value(template, path) for path in paths)
    return [
        key for container in containers if isinstance(container, dict) for key in container if EXPRESSION_START in key
    ]


def _find_templated_values(target: PatchTarget, template: Any) -> Iterator[str]:
    """Yield the template values whose expressions influence whether the template matches the patch target."""
    if target.group is not None or target.version is not None:
        yield from _find_texts_at(template, ("apiVersion",))
    for key, _ in target.labels:
        yield from _find_texts_at(template, (*_LABELS, key))
    if target.containers is not None and not is_target_match(PatchTarget(containers=target.containers), template, ""):
        for name in CONTAINER_LISTS:
            yield from _find_texts_at(template, (*get_pod_spec_path(template), name))
            items = get_value(template, (*get_pod_spec_path(template), name))
            for item in items if isinstance(items, list) else ():
                yield from _find_texts_at(item, ("name",))


def _find_texts_at(data: Any, path: DataPath) -> Iterator[str]:
    """Yield each string that contains an expression and is the value at `path` or at a parent of `path`."""
    for depth in range(len(path) + 1):
        value = get_value(data, path[:depth])
        if isinstance(value, str) and EXPRESSION_START in value:
            yield value


def _can_omit(value: Any) -> bool:
    """Return whether a value can render to `omit()`, because one of its expressions calls this function."""
    expressions = (piece for piece in _split(value) if isinstance(piece, EmbeddedExpression))
    return any(list_called_functions(expression.text) & _OMIT_FUNCTIONS for expression in expressions)


def find_single_expression(value: Any) -> str | None:
    """Return the text of the expression if a value consists of exactly one expression. Otherwise, return None.

    Such a value can render to any type. A text with additional parts always renders to a string.
    """
    pieces = [piece for piece in _split(value) if not isinstance(piece, str) or not piece.isspace()]
    return pieces[0].text if len(pieces) == 1 and isinstance(pieces[0], EmbeddedExpression) else None


def _split(value: Any) -> tuple[str | EmbeddedExpression, ...]:
    return split_expressions(value, ()) if is_template_text(value) else ()


def _build_dependency_error(field_path: DataPath, text: str) -> FieldFindingError:
    message = f"must have a result that is known before a render, but depends on {quote_value(text)}"
    return FieldFindingError(build_field_finding(ComponentCodes.NOT_BAKEABLE, field_path, message))
