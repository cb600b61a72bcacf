"""Evaluation of the field `helm` in the template of a PackageVariantSet."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from reconciler.api.helm_options import HelmOptionsTemplate, ParameterExpression
from reconciler.api.porch.package_variant_template import TemplateExpression
from reconciler.krm.yaml import DataPath

if TYPE_CHECKING:
    from reconciler.controllers.package_variants.set_targets import ExpressionInputs

_EXPRESSION_FIELDS = ("namespaceExpr", "releaseNameExpr", "valuesFilesExprs", "parameterExprs")


def render_helm_options(template: HelmOptionsTemplate, inputs: ExpressionInputs) -> dict[str, Any]:
    """Return the field `helm` of a PackageVariant as data. The options are not validated yet.

    Raises:
        TemplateError: An expression fails.
    """
    evaluated: dict[str, Any] = {}
    for name, text in (("namespace", template.namespace_expr), ("releaseName", template.release_name_expr)):
        if text:
            evaluated[name] = _evaluate(text, (f"{name}Expr",), inputs)
    files = [
        _evaluate(text, ("valuesFilesExprs", index), inputs) for index, text in enumerate(template.values_files_exprs)
    ]
    references = [
        _render_reference(reference.as_data(), index, inputs) for index, reference in enumerate(template.values_from)
    ]
    parameters = [
        _render_parameter(parameter, index, inputs) for index, parameter in enumerate(template.parameter_exprs)
    ]
    lists = {
        "valuesFiles": [*template.values_files, *files],
        "valuesFrom": references,
        "parameters": [*(parameter.as_data() for parameter in template.parameters), *parameters],
    }
    literals = {name: value for name, value in template.as_data().items() if name not in _EXPRESSION_FIELDS}
    return {**literals, **evaluated, **{name: items for name, items in lists.items() if items}}


def _evaluate(text: str, path: DataPath, inputs: ExpressionInputs) -> str:
    return inputs.evaluate(TemplateExpression(("helm", *path), text))


def _render_reference(reference: Mapping[str, Any], index: int, inputs: ExpressionInputs) -> dict[str, Any]:
    fields = {name: value for name, value in reference.items() if name != "nameExpr"}
    if "nameExpr" not in reference:
        return fields
    return {**fields, "name": _evaluate(reference["nameExpr"], ("valuesFrom", index, "nameExpr"), inputs)}


def _render_parameter(parameter: ParameterExpression, index: int, inputs: ExpressionInputs) -> dict[str, Any]:
    path: DataPath = ("parameterExprs", index)
    name, value = parameter.name, parameter.value
    if parameter.name_expr:
        name = _evaluate(parameter.name_expr, (*path, "nameExpr"), inputs)
    if parameter.value_expr:
        value = inputs.evaluate_data(TemplateExpression(("helm", *path, "valueExpr"), parameter.value_expr))
    return {"name": name, "value": value}
