"""Tests of edits inside a string value: comments, order and quotes of the text stay."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    HERE,
    build_policy,
    build_rules,
    emit,
    list_codes,
    list_error_codes,
    override_resource,
    parse_document,
    read_policies,
    read_resource,
)

APP = """\
# read at start
cache:
  ttl: 60   # seconds
  'size': "10"
hosts:
- a.example
- b.example  # the old one
"""
FLAGS = '{\n   "beta": true,\n   "limits": {"cpu": 2,  "memory": [1, 2]}\n}\n'


def build_config_map(**data: str) -> str:
    entries = "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines()) for name, text in data.items()
    )
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  labels: {{app: one, {CLUSTER_LABEL}: tuning}}\n"
        f"data:\n  first: stays # here\n{entries}"
    )


def apply_edits(text: str, *items: str) -> OverriddenResource:
    policies = read_policies(build_policy(build_rules({"fields": [parse_document(item) for item in items]})))
    assert policies.findings == ()
    return override_resource(read_resource(text), policies, HERE)


@pytest.mark.parametrize(
    ("operations", "old", "new"),
    [
        pytest.param("{subPath: /cache/ttl, value: 30}", "ttl: 60 ", "ttl: 30 ", id="scalar"),
        pytest.param('{subPath: /cache/size, value: "20"}', '"10"', '"20"', id="quotes"),
        pytest.param(
            "{subPath: /hosts/-, operator: add, value: c.example}",
            "- b.example  # the old one\n",
            "- b.example  # the old one\n- c.example\n",
            id="new-item",
        ),
        pytest.param(
            "{subPath: /hosts/1, operator: remove}",
            "- b.example  # the old one\n",
            "",
            id="item-is-removed-with-its-comment",
        ),
        pytest.param("{subPath: /cache/ttl, operator: set, value: 60}", "", "", id="equal-value"),
        pytest.param(
            "{subPath: /log/level, operator: set, value: debug}",
            "- b.example  # the old one\n",
            "- b.example  # the old one\nlog:\n  level: debug\n",
            id="set-with-parent",
        ),
    ],
)
def test_yaml_in_a_block_scalar_is_edited(operations: str, old: str, new: str) -> None:
    final_resource = apply_edits(build_config_map(app=APP), f"{{fieldPath: /data/app, yaml: [{operations}]}}")

    marked = build_config_map(app=APP.replace(old, new, 1) if old else APP)
    assert final_resource.document.text == marked.replace(f", {CLUSTER_LABEL}: tuning", "")
    assert list_error_codes(final_resource) == []


@pytest.mark.parametrize(
    ("operations", "old", "new"),
    [
        pytest.param("{subPath: /limits/cpu, value: 4}", '"cpu": 2, ', '"cpu": 4, ', id="scalar"),
        pytest.param("{subPath: /beta, operator: remove}", '"beta": true,\n   ', "", id="first-key"),
        pytest.param(
            "{subPath: /limits/memory/-, operator: add, value: null}", "[1, 2]", "[1, 2, null]", id="item-of-null"
        ),
        pytest.param(
            "{subPath: /name, operator: set, value: it's}", "[1, 2]}\n", '[1, 2]},\n   "name": "it\'s"\n', id="new-key"
        ),
    ],
)
def test_json_text_keeps_its_format(operations: str, old: str, new: str) -> None:
    final_resource = apply_edits(build_config_map(flags=FLAGS), f"{{fieldPath: /data/flags, json: [{operations}]}}")

    assert list_error_codes(final_resource) == []
    assert final_resource.document.data["data"]["flags"] == FLAGS.replace(old, new, 1)


def test_json_text_that_becomes_empty_is_rewritten() -> None:
    final_resource = apply_edits(
        build_config_map(flags='{"a": 1}'), "{fieldPath: /data/flags, json: [{subPath: /a, operator: remove}]}"
    )

    assert final_resource.document.data["data"]["flags"] == "{}\n"


def test_json_text_with_a_surrogate_is_written_without_it_or_refused() -> None:
    text = build_config_map(flags='{"a": "\\ud800", "b": 1}')

    without = apply_edits(text, "{fieldPath: /data/flags, json: [{subPath: /a, operator: remove}]}")
    beside = apply_edits(text, "{fieldPath: /data/flags, json: [{subPath: /b, value: 2}]}")

    assert without.document.data["data"]["flags"] == '{"b": 1}\n'
    assert list_error_codes(beside) == ["FieldUnparsable"]


def test_text_edits_run_after_labels_and_before_patches() -> None:
    rule = {
        "jsonpatch": [{"path": "/data/app", "value": "replaced"}],
        "fields": [{"fieldPath": "/data/app", "yaml": [{"subPath": "/cache/ttl", "value": 1}]}],
    }

    final_resource = override_resource(
        read_resource(build_config_map(app=APP)), read_policies(build_policy(build_rules(rule))), HERE
    )

    assert [step.pointer for step in final_resource.steps] == ["/data/app!/cache/ttl", "/data/app"]
    assert final_resource.document.data["data"]["app"] == "replaced"


def test_steps_name_the_path_inside_the_text() -> None:
    final_resource = apply_edits(
        build_config_map(app=APP), "{fieldPath: /data/app, yaml: [{subPath: /cache/ttl, value: 30}]}"
    )

    (entry,) = final_resource.as_data()
    assert entry["pointer"] == "/data/app!/cache/ttl"
    assert [(step["op"], step["before"], step["after"]) for step in entry["steps"]] == [("replaced", 60, 30)]


def test_manifest_of_a_secret_in_the_text_is_masked() -> None:
    manifest = "kind: Secret\nstringData: {p: old}\n"
    final_resource = apply_edits(
        build_config_map(app=manifest), "{fieldPath: /data/app, yaml: [{subPath: /stringData/p, value: new}]}"
    )

    assert [(step.before, step.after) for step in final_resource.steps] == [("*****", "*****")]


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "one", "labels": {CLUSTER_LABEL: "tuning"}},
    "data": {"app": base64.b64encode(APP.encode()).decode(), "raw": base64.b64encode(b"\xff\xfe").decode(), "no": "%"},
}


def edit_secret(item: str) -> OverriddenResource:
    return apply_edits(emit(SECRET), item)


def test_data_of_a_secret_is_decoded_and_masked() -> None:
    final_resource = edit_secret("{fieldPath: /data/app, yaml: [{subPath: /cache/ttl, value: 30}]}")

    assert base64.b64decode(final_resource.document.data["data"]["app"]).decode() == APP.replace("60", "30")
    assert [(step.before, step.after) for step in final_resource.steps] == [("*****", "*****")]


A_1 = "{subPath: /a, value: 1}"


@pytest.mark.parametrize(
    ("inside", "field", "operation", "code"),
    [
        pytest.param("a: [", "/data/app, yaml", A_1, "FieldUnparsable", id="broken"),
        pytest.param("a: 1\n---\nb: 1", "/data/app, yaml", A_1, "FieldUnparsable", id="two-documents"),
        pytest.param("# none", "/data/app, yaml", A_1, "FieldUnparsable", id="no-document"),
        pytest.param(APP, "/data/app, json", A_1, "FieldUnparsable", id="no-json"),
        pytest.param('{"a": 1, "a": 2}', "/data/app, json", A_1, "FieldUnparsable", id="a-key-twice"),
        pytest.param(APP, "/data/none, yaml", A_1, "FieldPathInvalid", id="no-field"),
        pytest.param(APP, "/data, yaml", A_1, "FieldPathInvalid", id="no-string"),
        pytest.param(APP, "/data/app, yaml", "{subPath: /x/y, value: 1}", "PatchParentMissing", id="no-parent-inside"),
        pytest.param(APP, "/data/app, yaml", "{subPath: /x, operator: remove}", "PatchTargetMissing", id="nothing"),
        pytest.param("text", "/data/app, yaml", A_1, "PatchParentMissing", id="a-scalar"),
        pytest.param(APP, "/metadata/name, yaml", A_1, "PatchParentMissing", id="a-name"),
    ],
)
def test_invalid_text_is_an_error(inside: str, field: str, operation: str, code: str) -> None:
    text = build_config_map(app=inside)

    final_resource = apply_edits(text, f"{{fieldPath: {field}: [{operation}]}}")

    assert list_error_codes(final_resource) == [code]
    assert final_resource.document.text == text


@pytest.mark.parametrize("field", ["raw", "no"])
def test_binary_data_of_a_secret_is_an_error(field: str) -> None:
    final_resource = edit_secret(f"{{fieldPath: /data/{field}, yaml: [{{subPath: /a, value: 1}}]}}")

    (finding,) = final_resource.findings
    assert finding.code == "FieldUnparsable"
    assert finding.message.endswith(" must be one valid YAML document")


WRITTEN = [{"subPath": "/a", "value": 1}]


@pytest.mark.parametrize(
    ("item", "code"),
    [
        pytest.param({"fieldPath": "/data/a"}, "PolicyInvalid", id="no-format"),
        pytest.param({"fieldPath": "/data/a", "yaml": []}, "PolicyInvalid", id="no-operations"),
        pytest.param({"fieldPath": "/data/a", "yaml": WRITTEN, "json": WRITTEN}, "PolicyInvalid", id="two-formats"),
        pytest.param({"fieldPath": "/data/a", "xml": WRITTEN, "json": WRITTEN}, "PolicyInvalid", id="unknown-format"),
        pytest.param({"yaml": WRITTEN}, "FieldPathInvalid", id="no-path"),
        pytest.param({"fieldPath": "data", "yaml": WRITTEN}, "FieldPathInvalid", id="no-pointer"),
        pytest.param(
            {"fieldPath": "/data/a", "yaml": [{"subPath": "a", "value": 1}]}, "PatchPathInvalid", id="sub-path"
        ),
        pytest.param({"fieldPath": "/data/a", "yaml": [{"subPath": "/a"}]}, "PatchValueMissing", id="no-value"),
        pytest.param({"fieldPath": "/data/a", "yaml": [{**WRITTEN[0], "path": "/a"}]}, "PolicyInvalid", id="path"),
        pytest.param(
            {"fieldPath": "/data/a", "yaml": [{**WRITTEN[0], "operator": "test"}]}, "OperatorUnsupported", id="test"
        ),
    ],
)
def test_invalid_item_of_the_policy_is_reported(item: dict[str, Any], code: str) -> None:
    assert list_codes(read_policies(build_policy(build_rules({"fields": [item]}))).findings) == [code]
