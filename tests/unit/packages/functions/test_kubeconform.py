"""Tests of kubeconform and kubeval: messages, omitted violations, and configurations that are refused."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.api.profile import Profile
from reconciler.krm.schema.validation import find_schemas_version
from reconciler.packages.functions import kubeconform as kubeconform_module
from reconciler.packages.functions.function import FunctionOutput, KrmFunction
from reconciler.packages.functions.kubeconform import describe_installed_schemas, kubeconform, kubeval
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from tests.unit.packages.builders import build_config, list_messages, parse_items, run_function

pytestmark = pytest.mark.skipif(not find_schemas_version(), reason="the schemas are an extra: k8s-schemas")

CUSTOM = "apiVersion: example.com/v1\nkind: Custom\nmetadata: {name: a}\nspec: {}\n"
NO_SCHEMA = (
    "no schema is installed for example.com/v1 Custom; "
    "to skip it, set `ignore_missing_schemas` or `skip_kinds` in the function's configuration"
)
UNREADABLE = "cannot be read, because functions have no network or file access"
ADVICE = "remove this field to use the installed schemas"
VALID = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: b}\n"
WRONG = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: 1}\n"
UNKNOWN_FIELD = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\nspec: {}\n"
CONTROLLER = """
apiVersion: v1
kind: ReplicationController
metadata: {name: bob}
spec:
  replicas: asdf
  templates: {metadata: {name: nginx}}
  template: {spec: {}}
"""


def list_field_messages(output: FunctionOutput) -> list[tuple[str, str]]:
    return [(result.field, result.message) for result in output.results]


@pytest.mark.parametrize(
    ("text", "conform", "eval_"),
    [
        pytest.param(
            WRONG,
            [("data.a", "got number, want null or string")],
            [("data.a", "Invalid type. Expected: [string,null], given: integer")],
            id="type",
        ),
        pytest.param(
            WRONG.replace("a: 1", "a: 1.5"),
            [("data.a", "got number, want null or string")],
            [("data.a", "Invalid type. Expected: [string,null], given: number")],
            id="number",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{targetPort: 80}]}\n",
            [("spec.ports.0", "missing property 'port'")],
            [("spec.ports.0.port", "port is required")],
            id="one-field-is-missing",
        ),
        pytest.param(
            "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: a}\nspec: {}\n",
            [("spec", "missing properties 'selector', 'template'")],
            [("spec.selector", "selector is required"), ("spec.template", "template is required")],
            id="two-fields-are-missing",
        ),
        pytest.param(
            UNKNOWN_FIELD,
            [("", "additional properties 'spec' not allowed")],
            [("spec", "Additional property spec is not allowed")],
            id="unknown-field",
        ),
        pytest.param(
            "apiVersion: v1\nkind: Service\nmetadata: {name: a}\nspec: {ports: [{port: 80, targetPort: {}}]}\n",
            [("spec.ports.0.targetPort", "'oneOf' failed, none matched")],
            [
                ("spec.ports.0.targetPort", "Must validate one and only one schema (oneOf)"),
                ("spec.ports.0.targetPort", "Invalid type. Expected: [string,null], given: object"),
            ],
            id="alternatives",
        ),
        pytest.param(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a, creationTimestamp: it's now}\n",
            [("metadata.creationTimestamp", "'it\\'s now' is not valid date-time")],
            [("metadata.creationTimestamp", "Does not match format 'date-time'")],
            id="format",
        ),
        pytest.param(VALID, [], [], id="nothing"),
    ],
)
def test_messages_of_both_functions(text: str, conform: list[tuple[str, str]], eval_: list[tuple[str, str]]) -> None:
    strict = build_config("ConfigMap", {"strict": "true"})

    assert list_field_messages(run_function(kubeconform, text, strict)) == conform
    assert list_field_messages(run_function(kubeval, text, strict)) == eval_


@pytest.mark.parametrize(
    ("function", "profile", "expected"),
    [
        pytest.param(
            kubeconform,
            "safe",
            [
                ("spec.replicas", "got string, want null or integer"),
                ("spec.template.spec", "missing property 'containers'"),
                ("spec", "additional properties 'templates' not allowed"),
            ],
            id="kubeconform",
        ),
        pytest.param(
            kubeconform,
            "compat",
            [
                ("spec.replicas", "got string, want null or integer"),
                ("spec.template.spec", "missing property 'containers'"),
                ("spec", "additional properties 'templates' not allowed"),
            ],
            id="kubeconform-opens-the-outermost-group",
        ),
        pytest.param(
            kubeval,
            "safe",
            [
                ("spec.templates", "Additional property templates is not allowed"),
                ("spec.replicas", "Invalid type. Expected: [integer,null], given: string"),
                ("spec.template.spec.containers", "containers is required"),
            ],
            id="kubeval",
        ),
        pytest.param(
            kubeval,
            "compat",
            [
                ("templates", "Additional property templates is not allowed"),
                ("spec.replicas", "Invalid type. Expected: [integer,null], given: string"),
                ("containers", "containers is required"),
            ],
            id="kubeval-reports-only-the-name",
        ),
    ],
)
def test_several_violations(function: KrmFunction, profile: Profile, expected: list[tuple[str, str]]) -> None:
    output = run_function(function, CONTROLLER, build_config("ConfigMap", {"strict": "true"}), profile)

    assert list_field_messages(output) == expected
    assert output.has_failed


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param(
            "safe",
            [
                ("data.a", "got number, want null or string"),
                ("data.b", "got number, want null or string"),
                ("immutable", "got string, want null or boolean"),
            ],
            id="safe-reports-all",
        ),
        pytest.param(
            "compat",
            [("data", "validation failed"), ("immutable", "got string, want null or boolean")],
            id="compat-hides-what-is-in-a-group",
        ),
    ],
)
def test_groups_of_violations(profile: Profile, expected: list[tuple[str, str]]) -> None:
    text = VALID.replace("{a: b}", "{a: 1, b: 2}") + "immutable: x\n"

    assert list_field_messages(run_function(kubeconform, text, None, profile)) == expected


@pytest.mark.parametrize(
    ("text", "values", "failed"),
    [
        pytest.param(UNKNOWN_FIELD, {}, False, id="not-strict"),
        pytest.param(UNKNOWN_FIELD, {"strict": "true"}, True, id="strict"),
        pytest.param(UNKNOWN_FIELD, {"strict": "True"}, True, id="strict-however-it-is-written"),
        pytest.param(UNKNOWN_FIELD, {"strict": "1"}, True, id="strict-as-one"),
        pytest.param(UNKNOWN_FIELD, {"strict": "false"}, False, id="strict-is-false"),
        pytest.param(WRONG, {"skip_kinds": "Secret, ConfigMap"}, False, id="skipped-kind"),
        pytest.param(WRONG, {"skip_kinds": "v1/ConfigMap"}, False, id="skipped-version-and-kind"),
        pytest.param(WRONG, {"skip_kinds": "configmap"}, True, id="kinds-are-case-sensitive"),
        pytest.param(WRONG, {"schema_location": "file:///jsonschema"}, True, id="the-schemas-of-the-image"),
        pytest.param(WRONG, {"schema_location": "/jsonschema/"}, True, id="their-folder"),
    ],
)
@pytest.mark.parametrize("function", [pytest.param(kubeconform, id="kubeconform"), pytest.param(kubeval, id="kubeval")])
def test_configuration(text: str, values: dict[str, Any], *, failed: bool, function: KrmFunction) -> None:
    output = run_function(function, text, build_config("ConfigMap", values))

    assert output.has_failed == failed
    assert bool(output.results) == failed


def test_configuration_fields_outside_of_data_are_read() -> None:
    assert run_function(kubeconform, UNKNOWN_FIELD, build_config("Check", {"strict": True})).has_failed


@pytest.mark.parametrize(
    ("function", "profile", "values", "expected"),
    [
        pytest.param(kubeconform, "safe", {}, [("warning", NO_SCHEMA)], id="kubeconform-warns"),
        pytest.param(kubeconform, "compat", {}, [], id="upstreams-kubeconform-is-silent"),
        pytest.param(kubeval, "safe", {}, [("error", NO_SCHEMA)], id="kubeval-refuses"),
        pytest.param(kubeval, "compat", {}, [("error", NO_SCHEMA)], id="upstreams-kubeval-refuses"),
        pytest.param(kubeval, "safe", {"ignore_missing_schemas": "true"}, [], id="ignored"),
        pytest.param(kubeconform, "safe", {"ignore_missing_schemas": "true"}, [], id="ignored-by-kubeconform"),
        pytest.param(kubeval, "safe", {"skip_kinds": "Custom"}, [], id="skipped"),
    ],
)
def test_kind_without_schema(
    function: KrmFunction, profile: Profile, values: dict[str, Any], expected: list[tuple[str, str]]
) -> None:
    output = run_function(function, CUSTOM, build_config("ConfigMap", values), profile)

    assert list_messages(output) == expected
    assert output.has_failed == any(severity == "error" for severity, _ in expected)


@pytest.mark.parametrize(
    ("text", "severities"),
    [
        pytest.param(
            "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata: {name: a}\n", [], id="a-kptfile-has-its-own-check"
        ),
        pytest.param(
            CUSTOM.replace("{name: a}", '{name: a, annotations: {config.kubernetes.io/local-config: "true"}}'),
            [],
            id="local-configuration-is-never-applied",
        ),
        pytest.param(
            CUSTOM.replace("example.com", "storage.cnrm.cloud.google.com"), ["warning"], id="upstream-carries-a-schema"
        ),
    ],
)
def test_kinds_that_kubeval_ignores(text: str, severities: list[str]) -> None:
    assert [severity for severity, _ in list_messages(run_function(kubeval, text, None))] == severities


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param(
            {"strict": "yes"}, ("error", '`strict` must be "true" or "false", but is "yes"'), id="not-a-truth-value"
        ),
        pytest.param(
            {"schema_location": "https://example.com/schemas"},
            ("error", f'schema_location: "https://example.com/schemas" {UNREADABLE}; {ADVICE}'),
            id="remote-schemas",
        ),
        pytest.param(
            {"additional_schema_locations": "file:///a,https://b"},
            ("error", f'schema_location: "file:///a", "https://b" {UNREADABLE}; {ADVICE}'),
            id="only-remote-additional-schemas",
        ),
        pytest.param(
            {"schema_location": "default", "additional_schema_locations": "https://b"},
            (
                "warning",
                'schema_location: "https://b" cannot be read, because functions have no network or file access',
            ),
            id="remote-schemas-beside-those-installed",
        ),
    ],
)
def test_unsupported_configuration(values: dict[str, Any], expected: tuple[str, str]) -> None:
    output = run_function(kubeconform, VALID, build_config("ConfigMap", values))

    assert list_messages(output) == [expected]
    assert output.has_failed == (expected[0] == "error")


def test_result_contains_message_resource_and_file() -> None:
    result = run_function(kubeval, f"{VALID}---\n{WRONG.replace('name: a', 'name: b, namespace: n')}", None).results[0]

    assert result.as_data() == {
        "message": "Invalid type. Expected: [string,null], given: integer",
        "severity": "error",
        "resourceRef": {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "n", "name": "b"},
        "field": {"path": "data.a"},
        "file": {"path": "r.yaml", "index": 1},
    }


@pytest.mark.parametrize("function", [pytest.param(kubeconform, id="kubeconform"), pytest.param(kubeval, id="kubeval")])
def test_resources_are_unchanged(function: KrmFunction) -> None:
    input_items = parse_items(WRONG)

    assert [item.document.text for item in run_function(function, WRONG, None).items] == [
        item.document.text for item in input_items
    ]


def test_missing_extra_is_an_error_that_names_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kubeconform_module, "load_kubernetes_schemas", lambda *, strict: None)
    monkeypatch.setattr(kubeconform_module, "find_schemas_version", lambda: "")

    output = run_function(kubeconform, VALID, None)

    assert list_messages(output) == [
        ("error", 'no schemas are installed: install the extra "k8s-schemas" (`reconciler[k8s-schemas]`)')
    ]
    assert output.has_failed
    assert describe_installed_schemas() == "no schemas"


@pytest.mark.parametrize("name", ["kubeconform:v0.1.1", "kubeval:v0.3", "kubeval:unstable", "kubeconform@sha256:1"])
def test_installed_schemas_are_part_of_the_function_identity(name: str) -> None:
    function_match = BUILTIN_FUNCTIONS.find(FunctionSpec(image=f"ghcr.io/kptdev/krm-functions-catalog/{name}"))

    assert function_match is not None
    assert function_match.identity == describe_installed_schemas() == find_schemas_version()
