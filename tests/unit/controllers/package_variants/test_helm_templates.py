"""Tests of the evaluation of the field `helm` in the template of a PackageVariantSet."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.base import read_model
from reconciler.api.helm_options import HelmOptionsTemplate
from reconciler.api.porch.messages import SET_TEMPLATES
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.helm_templates import render_helm_options
from reconciler.controllers.package_variants.set_targets import ExpressionInputs, TemplateError

REPOSITORY = {"name": "berlin", "labels": {"region": "eu", "tier": "edge"}, "annotations": {}, "namespace": "default"}
BINDINGS = {"repository": REPOSITORY, "upstream": {}, "target": {}, "repoDefault": "berlin", "packageDefault": "ksm"}


def render(**fields: Any) -> dict[str, Any]:
    read = read_model(HelmOptionsTemplate, fields, SET_TEMPLATES)
    assert read.model is not None, read.error_texts
    return render_helm_options(read.model, ExpressionInputs(BINDINGS, ExpressionLimits()))


def test_literals_are_kept() -> None:
    """A template without expressions is the field `helm` of each PackageVariant."""
    fields: dict[str, Any] = {
        "namespace": "monitoring",
        "valuesFiles": ["a.yaml"],
        "valuesFrom": [{"kind": "ConfigMap", "name": "a", "optional": True}],
        "values": {"a": None, "text": "${x} {{ y }}"},
        "parameters": [{"name": "b", "value": None}],
        "includeCRDs": False,
        "hooks": "drop",
    }
    assert render(**fields) == fields


def test_expressions() -> None:
    """Results of expressions are appended to the literal lists, and values can have any type of JSON."""
    assert render(
        namespaceExpr="'mon-' + repository.labels['region']",
        releaseNameExpr="packageDefault",
        valuesFiles=["a.yaml"],
        valuesFilesExprs=["'$config/values/' + repository.name + '.yaml'"],
        valuesFrom=[{"kind": "ConfigMap", "nameExpr": "'ksm-' + repository.labels['region']", "optional": True}],
        parameters=[{"name": "first", "value": 0}],
        parameterExprs=[
            {"name": "replicas", "valueExpr": "repository.labels['tier'] == 'edge' ? 1 : 3"},
            {"nameExpr": "'hosts[0].' + repository.name", "value": []},
            {"name": "map", "valueExpr": "{'a': [1.5, null, true]}"},
        ],
    ) == {
        "namespace": "mon-eu",
        "releaseName": "ksm",
        "valuesFiles": ["a.yaml", "$config/values/berlin.yaml"],
        "valuesFrom": [{"kind": "ConfigMap", "name": "ksm-eu", "optional": True}],
        "parameters": [
            {"name": "first", "value": 0},
            {"name": "replicas", "value": 1},
            {"name": "hosts[0].berlin", "value": []},
            {"name": "map", "value": {"a": [1.5, None, True]}},
        ],
    }


@pytest.mark.parametrize(
    ("fields", "message"),
    [
        (
            {"namespaceExpr": "1"},
            "template.helm.namespaceExpr failed: expression returned non-string value of type int",
        ),
        (
            {"valuesFilesExprs": ["'a'", "1"]},
            "template.helm.valuesFilesExprs[1] failed: expression returned non-string",
        ),
        (
            {"valuesFrom": [{"kind": "ConfigMap", "nameExpr": "repository.labels['zone']"}]},
            "template.helm.valuesFrom[0].nameExpr failed: ",
        ),
        (
            {"parameterExprs": [{"name": "a", "valueExpr": "timestamp('2026-01-01T00:00:00Z')"}]},
            "template.helm.parameterExprs[0].valueExpr: the result must be a YAML value, not bytes, a timestamp",
        ),
        (
            {"parameterExprs": [{"name": "a", "valueExpr": "{1: 2}"}]},
            "template.helm.parameterExprs[0].valueExpr: the keys of a map must be strings, but one key is 1",
        ),
    ],
)
def test_failed_expression(fields: dict[str, Any], message: str) -> None:
    """An error names the expression and the reason."""
    with pytest.raises(TemplateError) as error:
        render(**fields)
    assert str(error.value).startswith(message)
