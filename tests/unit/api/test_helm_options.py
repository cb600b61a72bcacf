"""Tests of the options for the render of a Helm chart."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.base import ReadResult, read_model
from reconciler.api.helm_options import HelmOptions, HelmOptionsTemplate, split_values_file
from reconciler.api.porch.messages import PORCH_TEMPLATES, SET_TEMPLATES

UNSUPPORTED = "FeatureNotSupported"
AGENT = "remove the field, because the agent of the cluster installs and upgrades releases"


def read_options(**fields: Any) -> ReadResult[HelmOptions]:
    return read_model(HelmOptions, {"namespace": "shop", **fields}, PORCH_TEMPLATES, ("spec", "helm"))


def read_template(**fields: Any) -> ReadResult[HelmOptionsTemplate]:
    return read_model(HelmOptionsTemplate, fields, SET_TEMPLATES, ("template", "helm"))


def get_model(result: ReadResult[Any]) -> Any:
    assert result.model is not None, result.error_texts
    return result.model


def test_defaults() -> None:
    """Only the namespace is required."""
    options = get_model(read_options())
    assert options.as_data() == {"namespace": "shop"}
    assert (options.set_namespace, options.include_crds, options.skip_tests) == ("missing", True, True)
    assert (options.hooks, options.on_nondeterminism, options.output) == (None, "refuse", "manifests")
    assert read_model(HelmOptions, {}, PORCH_TEMPLATES, ("spec", "helm")).error_texts == (
        "missing required field spec.helm.namespace",
    )


FULL: dict[str, Any] = {
    "releaseName": "web.shop",
    "namespace": "shop",
    "setNamespace": "none",
    "createNamespace": True,
    "valuesFiles": ["values-prod.yaml", "$config/values/berlin.yaml", "$values/ksm.yaml"],
    "ignoreMissingValuesFiles": True,
    "valuesFrom": [
        {"kind": "ConfigMap", "name": "a"},
        {"kind": "ConfigMap", "name": "b", "valuesKey": "replicas", "targetPath": "replicas", "optional": True},
        {"apiVersion": "example.com/v1", "kind": "Region", "name": "eu", "fieldPath": "spec.helm"},
    ],
    "values": {"a": None, "b": {"c": [], "d": ""}, "text": "${x} {{ y }}"},
    "parameters": [
        {"name": "hosts[0].host", "value": "x"},
        {"name": "gone", "value": None},
        {"name": "e", "value": {}},
    ],
    "kubeVersion": "v1.34",
    "apiVersions": ["monitoring.coreos.com/v1"],
    "includeCRDs": False,
    "skipTests": False,
    "hooks": "argocd",
    "skipSchemaValidation": True,
    "onNondeterminism": "fixed",
    "output": "helmRelease",
}


def test_all_fields_are_kept() -> None:
    """The data of a model is equal to the manifest, also for null and empty values of the chart."""
    result = read_options(**FULL)
    assert get_model(result).as_data() == FULL
    assert result.warnings == ()


@pytest.mark.parametrize(
    ("fields", "expected", "warning"),
    [
        (
            {"valueFiles": ["a.yaml"]},
            {"valuesFiles": ["a.yaml"]},
            "spec.helm.valueFiles is read as spec.helm.valuesFiles",
        ),
        ({"valuesObject": {"a": 1}}, {"values": {"a": 1}}, "spec.helm.valuesObject is read as spec.helm.values"),
        ({"valuesInline": {"a": 1}}, {"values": {"a": 1}}, "spec.helm.valuesInline is read as spec.helm.values"),
        (
            {"ignoreMissingValueFiles": True},
            {"ignoreMissingValuesFiles": True},
            "spec.helm.ignoreMissingValueFiles is read as spec.helm.ignoreMissingValuesFiles",
        ),
        (
            {"disableSchemaValidation": True},
            {"skipSchemaValidation": True},
            "spec.helm.disableSchemaValidation is read as spec.helm.skipSchemaValidation",
        ),
        (
            {"skipCrds": True},
            {"includeCRDs": False},
            "spec.helm.skipCrds is read as spec.helm.includeCRDs, with the opposite value",
        ),
        ({"skipCRDs": False}, {}, "spec.helm.skipCRDs is read as spec.helm.includeCRDs, with the opposite value"),
        ({"version": "v3"}, {}, 'spec.helm.version "v3" has no effect; remove the field'),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else None,
)
def test_deprecated_names(fields: dict[str, Any], expected: dict[str, Any], warning: str) -> None:
    """The field names of Flux and Argo CD are accepted with a notice."""
    result = read_options(**fields)
    assert get_model(result).as_data() == {"namespace": "shop", **expected}
    assert result.warning_texts == (warning,)


@pytest.mark.parametrize("name", ["targetNamespace", "releaseNamespace"])
def test_deprecated_names_of_the_namespace(name: str) -> None:
    """The namespace can have the field name of Flux or Kustomize."""
    result = read_model(HelmOptions, {name: "shop"}, PORCH_TEMPLATES, ("spec", "helm"))
    assert get_model(result).namespace == "shop"


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"releaseName": "Web"},
            'spec.helm.releaseName is invalid: "Web" must contain only lower-case letters, digits, "-" and "."',
        ),
        ({"releaseName": "a" * 54}, f'spec.helm.releaseName is invalid: "{"a" * 54}" must have at most 53 characters'),
        (
            {"namespace": "a.b"},
            'spec.helm.namespace is invalid: "a.b" must contain only lower-case letters, digits and "-", and',
        ),
        ({"namespace": ""}, "missing required field spec.helm.namespace"),
        ({"hooks": "all"}, 'spec.helm.hooks must be one of "keep", "drop", "argocd", but is '),
        ({"kubeVersion": 1.34}, "spec.helm.kubeVersion must be a string, but is 1.34; put the value in quotes"),
        ({"kubeVersion": "new"}, 'spec.helm.kubeVersion is invalid: "new" is not a version such as "1.34.0"'),
        ({"includeCRDs": "yes"}, 'spec.helm.includeCRDs must be true or false, but is "yes"'),
        ({"skipCrds": "yes"}, 'spec.helm.skipCrds must be true or false, but is "yes"'),
        ({"skipCrds": True, "includeCRDs": True}, "spec.helm may specify only one of includeCRDs and skipCrds"),
        ({"valueFiles": [], "valuesFiles": []}, "spec.helm may specify only one of `valuesFiles` and `valueFi"),
        ({"values": "a: 1"}, 'spec.helm.values must be a mapping, but is "a: 1"'),
        ({"values": {"a": [float("inf")]}}, "spec.helm.values must contain only numbers that JSON can represent"),
        ({"parameters": [{"name": "a"}]}, "missing required field spec.helm.parameters[0].value"),
        ({"parameters": [{"name": "a..b", "value": 1}]}, "spec.helm.parameters[0].name must have a key between dots"),
        ({"parameters": [{"name": "a", "value": float("nan")}]}, "spec.helm.parameters[0].value must contain only"),
        ({"valuesFrom": [{"kind": "ConfigMap"}]}, "spec.helm.valuesFrom[0].name must not be empty"),
        ({"valuesFrom": [{"name": "x"}]}, "missing required field spec.helm.valuesFrom[0].kind"),
        (
            {"valuesFrom": [{"kind": "ConfigMap", "name": "x", "fieldPath": "data.a"}]},
            "spec.helm.valuesFrom[0].fieldPath cannot be used for the kind ConfigMap; use spec.helm.valuesFrom[0].va",
        ),
        (
            {"valuesFrom": [{"kind": "Region", "name": "x"}]},
            "spec.helm.valuesFrom[0].fieldPath must be set for an object of the kind Region",
        ),
        (
            {"valuesFrom": [{"kind": "Region", "name": "x", "fieldPath": "spec", "valuesKey": "a"}]},
            "spec.helm.valuesFrom[0].valuesKey can only be used for the kinds ConfigMap and Secret, but the kind is Re",
        ),
        (
            {"valuesFrom": [{"apiVersion": "v2", "kind": "ConfigMap", "name": "x"}]},
            "spec.helm.valuesFrom[0].fieldPath must be set for an object of the kind ConfigMap",
        ),
        ({"valuesfiles": []}, 'unknown field "spec.helm.valuesfiles" (allowed: '),
    ],
)
def test_errors(fields: dict[str, Any], error: str) -> None:
    """An error contains the field, the value and the allowed values."""
    texts = read_options(**fields).error_texts
    assert [text[: len(error)] for text in texts] == [error]


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        ({"fileParameters": []}, "fileParameters is not supported; use valuesFiles"),
        ({"postRenderers": []}, "postRenderers is not supported; use pipeline.mutators"),
        (
            {"passCredentials": True},
            "passCredentials is not supported; set spec.helm.passCredentials of the Repository",
        ),
        ({"nameTemplate": "x"}, "nameTemplate is not supported; use releaseName"),
        ({"version": "v2"}, "version is not supported; remove the field, because only Helm 3 and newer are supported"),
        *(({name: {}}, f"{name} is not supported; {AGENT}") for name in ("install", "upgrade", "rollback", "test")),
        ({"driftDetection": {}}, f"driftDetection is not supported; {AGENT}"),
        (
            {"valuesFiles": ["https://example.com/values.yaml"]},
            (
                'valuesFiles[0] "https://example.com/values.yaml" is not supported: values files cannot be URLs; copy the file'
                " into the config repository and use $config/path"
            ),
        ),
        (
            {"valuesFiles": ["secrets://values.yaml"]},
            (
                'valuesFiles[0] "secrets://values.yaml" is not supported: values files cannot be URLs; copy the file into the'
                " config repository and use $config/path"
            ),
        ),
    ],
    ids=lambda value: next(iter(value), "") if isinstance(value, dict) else None,
)
def test_unsupported_features(fields: dict[str, Any], error: str) -> None:
    """A field of another tool that has no equivalent is an error with the alternative."""
    result = read_options(**fields)
    assert result.error_texts == (f"spec.helm.{error}",)
    assert [message.code for message in result.errors] == [UNSUPPORTED]


@pytest.mark.parametrize(
    "path", ["/etc/passwd", "../x.yaml", "$config/../x", "$config/", "$config//etc", "$/x", "a/../b"]
)
def test_invalid_path_of_a_values_file(path: str) -> None:
    """The path of a values file stays inside its source."""
    result = read_options(valuesFiles=[path])
    assert result.error_texts == (
        (
            "spec.helm.valuesFiles[0] must be a relative path in the chart, $config/path or $<source>/path, without "
            f'"..", but is "{path}"'
        ),
    )
    assert [message.code for message in result.errors] == ["PathInvalid"]


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("values/a.yaml", ("", "values/a.yaml")),
        ("$config/a/b.yaml", ("config", "a/b.yaml")),
        ("$values/b.yaml", ("values", "b.yaml")),
    ],
)
def test_split_values_file(path: str, expected: tuple[str, str]) -> None:
    """The source of a values file is the name after "$"."""
    assert split_values_file(path) == expected


def test_template_with_expressions() -> None:
    """The expressions of a template have their paths, and the data of the template is equal to the manifest."""
    fields: dict[str, Any] = {
        "namespaceExpr": "'ns'",
        "releaseNameExpr": "'r'",
        "valuesFiles": ["a.yaml"],
        "valuesFilesExprs": ["'$config/' + repository.name"],
        "valuesFrom": [{"kind": "ConfigMap", "name": "a"}, {"kind": "ConfigMap", "nameExpr": "'b'", "optional": True}],
        "values": {"a": {"b": None}},
        "parameters": [{"name": "c", "value": False}],
        "parameterExprs": [
            {"name": "d", "valueExpr": "1"},
            {"nameExpr": "'e'", "value": None},
            {"nameExpr": "'f'", "valueExpr": "[1]"},
        ],
    }
    template = get_model(read_template(**fields))
    assert template.as_data() == fields
    assert dict(template.iterate_expressions()) == {
        ("namespaceExpr",): "'ns'",
        ("releaseNameExpr",): "'r'",
        ("valuesFilesExprs", 0): "'$config/' + repository.name",
        ("valuesFrom", 1, "nameExpr"): "'b'",
        ("parameterExprs", 0, "valueExpr"): "1",
        ("parameterExprs", 1, "nameExpr"): "'e'",
        ("parameterExprs", 2, "nameExpr"): "'f'",
        ("parameterExprs", 2, "valueExpr"): "[1]",
    }


@pytest.mark.parametrize(
    ("fields", "error"),
    [
        (
            {"namespace": "a", "namespaceExpr": "b"},
            "template.helm may specify only one of `namespace` and `namespaceExpr`",
        ),
        (
            {"releaseName": "a", "releaseNameExpr": "b"},
            "template.helm may specify only one of `releaseName` and `releaseNameExpr`",
        ),
        (
            {"valuesFrom": [{"kind": "ConfigMap", "name": "a", "nameExpr": "b"}]},
            "template.helm.valuesFrom[0] may specify only one of `name` and `nameExpr`",
        ),
        ({"valuesFrom": [{"kind": "ConfigMap"}]}, "template.helm.valuesFrom[0] must specify `name` or `nameExpr`"),
        ({"parameterExprs": [{"value": 1}]}, "template.helm.parameterExprs[0] must specify `name` or `nameExpr`"),
        ({"parameterExprs": [{"name": "a"}]}, "template.helm.parameterExprs[0] must specify `value` or `valueExpr`"),
        (
            {"parameterExprs": [{"name": "a", "value": None, "valueExpr": "1"}]},
            "template.helm.parameterExprs[0] may specify only one of `value` and `valueExpr`",
        ),
    ],
)
def test_template_errors(fields: dict[str, Any], error: str) -> None:
    """A field of a template is a literal or an expression."""
    assert read_template(**fields).error_texts == (error,)
