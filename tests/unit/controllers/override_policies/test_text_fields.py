"""Text inside of a string is edited where it stands: comments, order and quotes stay (kubeadmiral 12.1)."""

from __future__ import annotations

import base64
from typing import Any

import pytest

from reconciler.controllers.override_policies.resource_overrides import OverriddenResource
from tests.unit.controllers.override_policies.override_world import (
    CLUSTER_LABEL,
    HERE,
    codes,
    emit,
    error_codes,
    override_resource,
    policy,
    read,
    resource,
    rules_of,
    yaml,
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


def config_map(**data: str) -> str:
    entries = "".join(
        f"  {name}: |\n" + "".join(f"    {line}\n" for line in text.splitlines()) for name, text in data.items()
    )
    return (
        f"apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: one\n  labels: {{app: one, {CLUSTER_LABEL}: tuning}}\n"
        f"data:\n  first: stays # here\n{entries}"
    )


def apply(text: str, *items: str) -> OverriddenResource:
    policies = read(policy(rules_of({"fields": [yaml(item) for item in items]})))
    assert policies.findings == ()
    return override_resource(resource(text), policies, HERE)


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
            "{subPath: /hosts/1, operator: remove}", "- b.example  # the old one\n", "", id="item-goes-with-its-comment"
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
def test_yaml_in_a_block_scalar(operations: str, old: str, new: str) -> None:
    final_resource = apply(config_map(app=APP), f"{{fieldPath: /data/app, yaml: [{operations}]}}")

    marked = config_map(app=APP.replace(old, new, 1) if old else APP)
    assert final_resource.document.text == marked.replace(f", {CLUSTER_LABEL}: tuning", "")
    assert error_codes(final_resource) == []


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
def test_json_stays_json(operations: str, old: str, new: str) -> None:
    final_resource = apply(config_map(flags=FLAGS), f"{{fieldPath: /data/flags, json: [{operations}]}}")

    assert error_codes(final_resource) == []
    assert final_resource.document.data["data"]["flags"] == FLAGS.replace(old, new, 1)


def test_json_that_loses_everything_is_written_anew() -> None:
    final_resource = apply(
        config_map(flags='{"a": 1}'), "{fieldPath: /data/flags, json: [{subPath: /a, operator: remove}]}"
    )

    assert final_resource.document.data["data"]["flags"] == "{}\n"


def test_json_with_half_a_character_is_written_without_it_or_not_at_all() -> None:
    text = config_map(flags='{"a": "\\ud800", "b": 1}')

    without = apply(text, "{fieldPath: /data/flags, json: [{subPath: /a, operator: remove}]}")
    beside = apply(text, "{fieldPath: /data/flags, json: [{subPath: /b, value: 2}]}")

    assert without.document.data["data"]["flags"] == '{"b": 1}\n'
    assert error_codes(beside) == ["FieldUnparsable"]


def test_it_runs_before_patches_and_after_labels() -> None:
    rule = {
        "jsonpatch": [{"path": "/data/app", "value": "replaced"}],
        "fields": [{"fieldPath": "/data/app", "yaml": [{"subPath": "/cache/ttl", "value": 1}]}],
    }

    final_resource = override_resource(resource(config_map(app=APP)), read(policy(rules_of(rule))), HERE)

    assert [step.pointer for step in final_resource.steps] == ["/data/app!/cache/ttl", "/data/app"]
    assert final_resource.document.data["data"]["app"] == "replaced"


def test_steps_are_told_by_what_changed_inside() -> None:
    final_resource = apply(config_map(app=APP), "{fieldPath: /data/app, yaml: [{subPath: /cache/ttl, value: 30}]}")

    (entry,) = final_resource.as_data()
    assert entry["pointer"] == "/data/app!/cache/ttl"
    assert [(step["op"], step["before"], step["after"]) for step in entry["steps"]] == [("replaced", 60, 30)]


def test_what_the_manifest_of_a_secret_holds_is_masked() -> None:
    manifest = "kind: Secret\nstringData: {p: old}\n"
    final_resource = apply(
        config_map(app=manifest), "{fieldPath: /data/app, yaml: [{subPath: /stringData/p, value: new}]}"
    )

    assert [(step.before, step.after) for step in final_resource.steps] == [("*****", "*****")]


SECRET = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "one", "labels": {CLUSTER_LABEL: "tuning"}},
    "data": {"app": base64.b64encode(APP.encode()).decode(), "raw": base64.b64encode(b"\xff\xfe").decode(), "no": "%"},
}


def secret(item: str) -> OverriddenResource:
    return apply(emit(SECRET), item)


def test_the_data_of_a_secret_is_decoded_and_masked() -> None:
    final_resource = secret("{fieldPath: /data/app, yaml: [{subPath: /cache/ttl, value: 30}]}")

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
def test_what_cannot_be_edited_is_an_error(inside: str, field: str, operation: str, code: str) -> None:
    text = config_map(app=inside)

    final_resource = apply(text, f"{{fieldPath: {field}: [{operation}]}}")

    assert error_codes(final_resource) == [code]
    assert final_resource.document.text == text


@pytest.mark.parametrize("field", ["raw", "no"])
def test_data_of_a_secret_that_is_no_text(field: str) -> None:
    final_resource = secret(f"{{fieldPath: /data/{field}, yaml: [{{subPath: /a, value: 1}}]}}")

    (finding,) = final_resource.findings
    assert finding.code == "FieldUnparsable"
    assert finding.message.endswith(": the text must be one document of yaml")


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
def test_a_fault_of_the_policy(item: dict[str, Any], code: str) -> None:
    assert codes(read(policy(rules_of({"fields": [item]}))).findings) == [code]
