"""Tests of function configurations: a value of the wrong type is an error, as in the functions of kpt."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.function import FunctionContext
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from tests.unit.packages.builders import build_config, list_messages, parse_items

RESOURCE = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: a\n  namespace: n\ndata:\n  k: x # kpt-set: ${k}\n"
WRONG: dict[str, Any] = {"mapping": {"a": "b"}, "list": ["a"]}
KEYS = {
    "apply-setters": "k",
    "create-setters": "k",
    "search-replace": "by-value",
    "set-labels": "k",
    "set-annotations": "k",
    "set-image": "name",
    "set-namespace": "namespace",
    "set-name-prefix": "prefix",
    "set-project-id": "project-id",
    "set-enforcement-action": "enforcementAction",
    "delete-annotations": "annotationKeys",
    "ensure-name-substring": "append",
    "kubeconform": "skip_kinds",
    "kubeval": "strict",
}
STRICT = ("set-labels", "set-image", "set-namespace")
SPECS = [
    ("set-annotations", "SetAnnotations", {"annotations": {"a": "b"}}, "additionalAnnotationFields"),
    ("set-namespace", "SetNamespace", {"namespace": "b"}, "additionalNamespaceFields"),
    ("set-image", "SetImage", {"image": {"name": "a", "newTag": "b"}}, "additionalImageFields"),
    ("ensure-name-substring", "EnsureNameSubstring", {"substring": "b"}, "additionalNameFields"),
]


def find_config_error(name: str, configuration: dict[str, Any]) -> str:
    """Return the error of a function with this configuration, or "" if it has none."""
    function = BUILTIN_FUNCTIONS.releases[name][-1].function
    output = function(parse_items(RESOURCE), configuration, FunctionContext("safe", (9, 9, 9)))
    errors = [message for severity, message in list_messages(output) if severity == "error"]
    return errors[0] if errors and output.has_failed else ""


@pytest.mark.parametrize("value", [*WRONG.values(), 7, True])
@pytest.mark.parametrize(
    ("name", "kind", "field"),
    [
        ("set-namespace", "SetNamespace", "namespace"),
        ("ensure-name-substring", "EnsureNameSubstring", "substring"),
        ("ensure-name-substring", "EnsureNameSubstring", "editMode"),
    ],
)
def test_field_of_the_wrong_type_is_an_error(name: str, kind: str, field: str, value: object) -> None:
    configuration = {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": kind, "metadata": {"name": "x"}, field: value}

    assert f"the configuration's {field} must be a string, but is" in find_config_error(name, configuration)


@pytest.mark.parametrize("kind", WRONG)
@pytest.mark.parametrize("name", KEYS)
def test_value_that_is_no_scalar_is_an_error(name: str, kind: str) -> None:
    assert f"data.{KEYS[name]} must be a string, but is" in find_config_error(
        name, build_config("ConfigMap", {KEYS[name]: WRONG[kind]})
    )


@pytest.mark.parametrize("name", KEYS)
def test_data_that_is_no_mapping_is_an_error(name: str) -> None:
    assert "data must be a mapping of strings" in find_config_error(
        name, {**build_config("ConfigMap", {}), "data": ["a"]}
    )


@pytest.mark.parametrize("value", [1, True, 1.5, None])
@pytest.mark.parametrize("name", STRICT)
def test_functions_that_read_strings_refuse_other_scalars(name: str, value: Any) -> None:
    assert "must be a string" in find_config_error(name, build_config("ConfigMap", {KEYS[name]: value}))


@pytest.mark.parametrize("name", ["apply-setters", "set-annotations", "search-replace"])
def test_functions_that_read_the_text_of_scalars_accept_other_types(name: str) -> None:
    assert find_config_error(name, build_config("ConfigMap", {KEYS[name]: 3})) == ""


@pytest.mark.parametrize("value", [1, [1], {"a": {"b": "c"}}, {"a": 1}])
def test_labels_of_the_wrong_type_are_an_error(value: Any) -> None:
    assert "labels" in find_config_error("set-labels", build_config("SetLabels", {"labels": value}))


@pytest.mark.parametrize(
    ("specs", "message"),
    [
        pytest.param(
            {"path": "a"}, "the configuration's {field} must be a list of field specs, but is a mapping", id="no-list"
        ),
        pytest.param(["a"], 'the configuration\'s {field}[0] must be a mapping, but is "a"', id="text"),
        pytest.param([{"path": 1}], "the configuration's {field}[0].path must be a string, but is 1", id="path"),
        pytest.param(
            [{"path": "a", "kind": ["A"]}],
            "the configuration's {field}[0].kind must be a string, but is a list",
            id="kind",
        ),
        pytest.param(
            [{"path": "a", "create": "yes"}],
            'the configuration\'s {field}[0].create must be true or false, but is "yes"',
            id="create",
        ),
        pytest.param(
            [{"path": "a/" * 5_000 + "b", "create": True}],
            "the path of the configuration's field spec 0 must not have more than",
            id="too-many-parts",
        ),
    ],
)
@pytest.mark.parametrize(("name", "kind", "fields", "field"), SPECS, ids=[name for name, *_ in SPECS])
def test_field_specs_of_the_wrong_type_are_an_error(
    name: str, kind: str, fields: dict[str, Any], field: str, specs: Any, message: str
) -> None:
    assert find_config_error(name, build_config(kind, fields)) == ""
    assert find_config_error(name, build_config(kind, {**fields, field: specs})).startswith(message.format(field=field))
