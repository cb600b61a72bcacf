"""Reader of PackageVariantSets, which also checks the expressions."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Any

from reconciler.api.base import FieldMessage, ReadResult
from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant_set import PackageVariantSet, PackageVariantSetSpec, format_merged_template
from reconciler.api.porch.package_variant_template import PackageVariantTemplate
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.set_targets import check_expression
from reconciler.krm.field_text import format_path


def read_package_variant_set(data: Mapping[str, Any], cel_limits: ExpressionLimits) -> ReadResult[PackageVariantSet]:
    """Read a PackageVariantSet. Expressions are checked before the targets are expanded."""
    result = read_manifest(PackageVariantSet, data)
    if result.model is None:
        return result
    errors = (*_list_merge_errors(result.model.spec), *_check_expressions(result.model.spec, cel_limits))
    return replace(result, model=None, errors=errors) if errors else result


def _list_merge_errors(spec: PackageVariantSetSpec) -> Iterator[FieldMessage]:
    for merged in spec.merged_templates.values():
        yield from merged.errors


def _check_expressions(spec: PackageVariantSetSpec, cel_limits: ExpressionLimits) -> Iterator[FieldMessage]:
    for target_index, target in enumerate(spec.targets):
        path = f"spec.targets[{target_index}].template"
        messages = tuple(_check_template(target.template, target_index, path, cel_limits))
        yield from messages
        if messages:
            # Skip the merged templates, because they contain the same errors again.
            continue
        for (merged_index, upstream_index), result in spec.merged_templates.items():
            if merged_index == target_index and result.model:
                both = format_merged_template(target_index, upstream_index)
                yield from _check_template(result.model, target_index, both, cel_limits)


def _check_template(
    template: PackageVariantTemplate, target_index: int, text_path: str, cel_limits: ExpressionLimits
) -> Iterator[FieldMessage]:
    for expression in template.iterate_expressions():
        if error := check_expression(expression, cel_limits):
            path = ("spec", "targets", target_index, "template", *expression.path)
            yield FieldMessage(path, f"{text_path}.{format_path(expression.path)} is not a valid expression: {error}")
