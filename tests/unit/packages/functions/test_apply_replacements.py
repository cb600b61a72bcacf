"""Tests of apply-replacements: sources, targets, and differences between releases."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.apply_replacements import apply_replacements
from reconciler.packages.functions.function import FunctionVersion, get_value_at
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

RESOURCES = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: source
  labels: {app: web}
data:
  name: site-a
  port: "8080"
  empty: ""
  a.b/c: dotted
spec:
  ports: [80, 443]
  nothing: {}
---
apiVersion: apps/v1
kind: Deployment
metadata:
  name: target
  labels: {app: web}
spec:
  replicas: 3 # how many
  image: web:v1
  text: "quoted"
  containers:
  - name: app
    image: a
  - name: app-2
    image: b
"""
V1, V2, V3 = (0, 1, 1), (0, 1, 2), (0, 1, 5)


def build_replacement(source: dict[str, Any], target: dict[str, Any]) -> dict[str, Any]:
    targets = [{"select": {"kind": "Deployment"}, **target}]
    return build_config(
        "ApplyReplacements", {"replacements": [{"source": {"kind": "ConfigMap", **source}, "targets": targets}]}
    )


@pytest.mark.parametrize(
    ("source", "target", "path", "expected"),
    [
        pytest.param({}, {"fieldPaths": ["spec.text"]}, "spec.text", "source", id="name-is-the-default-source"),
        pytest.param({"fieldPath": "data.name"}, {}, "metadata.name", "site-a", id="name-is-the-default-target"),
        pytest.param(
            {"fieldPath": "data.port"}, {"fieldPaths": ["spec.replicas"]}, "spec.replicas", 8080, id="target-type"
        ),
        pytest.param(
            {"fieldPath": "data.port"}, {"fieldPaths": ["spec.text"]}, "spec.text", "8080", id="text-stays-text"
        ),
        pytest.param(
            {"fieldPath": "data.[a.b/c]"}, {"fieldPaths": ["spec.text"]}, "spec.text", "dotted", id="dotted-key"
        ),
        pytest.param(
            {"fieldPath": r"data.a\.b/c"}, {"fieldPaths": ["spec.text"]}, "spec.text", "dotted", id="escaped-dot"
        ),
        pytest.param({"fieldPath": "spec.ports.0"}, {"fieldPaths": ["spec.replicas"]}, "spec.replicas", 80, id="index"),
        pytest.param({"fieldPath": "spec.ports.-"}, {"fieldPaths": ["spec.replicas"]}, "spec.replicas", 443, id="last"),
        pytest.param(
            {"fieldPath": "spec.ports"}, {"fieldPaths": ["spec.containers"]}, "spec.containers", [80, 443], id="a-list"
        ),
        pytest.param(
            {"fieldPath": "data.name", "options": {"delimiter": "-", "index": 1}},
            {"fieldPaths": ["spec.text"]},
            "spec.text",
            "a",
            id="part-of-the-source",
        ),
        pytest.param(
            {"fieldPath": "data.name"},
            {"fieldPaths": ["spec.image"], "options": {"delimiter": ":", "index": 1}},
            "spec.image",
            "web:site-a",
            id="part-of-the-target",
        ),
        pytest.param(
            {"fieldPath": "data.name"},
            {"fieldPaths": ["spec.image"], "options": {"delimiter": ":", "index": -1}},
            "spec.image",
            "site-a:web:v1",
            id="in-front",
        ),
        pytest.param(
            {"fieldPath": "data.name"},
            {"fieldPaths": ["spec.image"], "options": {"delimiter": ":", "index": 9}},
            "spec.image",
            "web:v1:site-a",
            id="behind",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.a.b"], "options": {"create": True}},
            "spec.a",
            {"b": "source"},
            id="mappings-are-made",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.env.[name=X].value"], "options": {"create": True}},
            "spec.env",
            [{"name": "X", "value": "source"}],
            id="elements-are-made",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.containers.[name=app].image"]},
            "spec.containers",
            [{"name": "app", "image": "source"}, {"name": "app-2", "image": "b"}],
            id="exact-element",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.containers.*.image"]},
            "spec.containers",
            [{"name": "app", "image": "source"}, {"name": "app-2", "image": "source"}],
            id="every-element",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.text"], "reject": [{"name": "target"}]},
            "spec.text",
            "quoted",
            id="rejected-by-id",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.text"], "reject": [{"labelSelector": "app=web"}]},
            "spec.text",
            "quoted",
            id="rejected-by-label",
        ),
        pytest.param(
            {},
            {"fieldPaths": ["spec.text"], "select": {"labelSelector": "app in (web),!x"}},
            "metadata.name",
            "target",
            id="selected-by-label",
        ),
    ],
)
def test_replacement(source: dict[str, Any], target: dict[str, Any], path: str, expected: Any) -> None:
    selected = target if "select" not in target else {**target, "options": {"create": True}}

    output = run_function(apply_replacements, RESOURCES, build_replacement(source, selected), version=V2)

    assert list_messages(output) == []
    assert get_value_at(output.items[1].data, tuple(path.split("."))) == expected


def test_later_replacements_read_the_output_of_earlier_ones() -> None:
    entries = [
        {"source": {"kind": "ConfigMap", "fieldPath": "data.name"}, "targets": [{"select": {"kind": "Deployment"}}]},
        {
            "source": {"kind": "Deployment", "name": "site-a"},
            "targets": [{"select": {"kind": "ConfigMap"}, "fieldPaths": ["data.port"]}],
        },
    ]

    output = run_function(apply_replacements, RESOURCES, build_config("ApplyReplacements", {"replacements": entries}))

    assert output.items[0].data["data"]["port"] == "site-a"


def test_comments_stay() -> None:
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({"fieldPath": "data.port"}, {"fieldPaths": ["spec.replicas"]})
    )

    assert "  replicas: 8080 # how many\n" in format_items(output.items)


@pytest.mark.parametrize(
    ("profile", "version", "expected"),
    [
        pytest.param("safe", V1, [("warning", "the target field spec.no does not exist")], id="safe-old-warns"),
        pytest.param("safe", V2, [("error", "the target field spec.no does not exist")], id="safe-new-fails"),
        pytest.param("compat", V1, [], id="compat-old-is-silent"),
        pytest.param("compat", V2, [("error", "the target field spec.no does not exist")], id="compat-new-fails"),
    ],
)
def test_missing_target_field(profile: Profile, version: FunctionVersion, expected: list[tuple[str, str]]) -> None:
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({}, {"fieldPaths": ["spec.no"]}), profile, version
    )

    assert [
        (severity, message[: len("the target field spec.no does not exist")])
        for severity, message in list_messages(output)
    ] == expected


@pytest.mark.parametrize(
    ("profile", "expected"),
    [
        pytest.param("compat", ["source", "source"], id="compat-regex"),
        pytest.param("safe", ["source", "b"], id="safe-exact"),
    ],
)
def test_matching_of_list_elements(profile: Profile, expected: list[str]) -> None:
    target = {"fieldPaths": ["spec.containers.[name=app].image"]}

    output = run_function(apply_replacements, RESOURCES, build_replacement({}, target), profile, V2)

    assert [container["image"] for container in output.items[1].data["spec"]["containers"]] == expected


@pytest.mark.parametrize(
    ("version", "path", "expected"),
    [
        pytest.param(V1, "spec.containers.[name=app].image", ["source", "b"], id="old-exact"),
        pytest.param(V1, "spec.containers.*.image", ["a", "b"], id="old-has-no-wildcard"),
        pytest.param(V1, "spec.containers.0.image", ["source", "b"], id="old-index"),
        pytest.param(V2, "spec.containers.[name=app].image", ["source", "source"], id="pattern"),
        pytest.param(V2, "spec.containers.*.image", ["source", "source"], id="wildcard"),
    ],
)
def test_list_elements_in_compat(version: FunctionVersion, path: str, expected: list[str]) -> None:
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({}, {"fieldPaths": [path]}), "compat", version
    )

    assert [container["image"] for container in output.items[1].data["spec"]["containers"]] == expected


def test_old_releases_copy_the_type_of_the_source() -> None:
    target = {"fieldPaths": ["spec.replicas"]}
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({"fieldPath": "data.port"}, target), "compat", V1
    )

    assert output.items[1].data["spec"]["replicas"] == "8080"


@pytest.mark.parametrize(
    ("version", "select", "expected"),
    [
        pytest.param(V2, {"name": "targ.*"}, "quoted", id="exact-ids"),
        pytest.param(V3, {"name": "targ.*"}, "source", id="patterns"),
        pytest.param(V3, {"name": "arg.*"}, "quoted", id="anchored"),
        pytest.param(V3, {"kind": "Deploy.*", "name": "target"}, "source", id="kinds-too"),
    ],
)
def test_selection_by_id(version: FunctionVersion, select: dict[str, str], expected: str) -> None:
    target = {"select": select, "fieldPaths": ["spec.text"]}
    output = run_function(apply_replacements, RESOURCES, build_replacement({}, target), version=version)

    assert output.items[1].data["spec"]["text"] == expected


def test_rejection_by_pattern() -> None:
    target = {"fieldPaths": ["spec.text"], "reject": [{"name": "t.*"}]}

    assert (
        run_function(apply_replacements, RESOURCES, build_replacement({}, target), version=V3)
        .items[1]
        .data["spec"]["text"]
        == "quoted"
    )


@pytest.mark.parametrize(
    ("version", "entry", "expected"),
    [
        pytest.param(V3, {"sourceValue": "new"}, "new", id="a-value-of-its-own"),
        pytest.param(V2, {"sourceValue": "new"}, "must have a source", id="older-releases"),
        pytest.param(V3, {"sourceValue": "new", "source": {"kind": "ConfigMap"}}, "not both", id="both"),
    ],
)
def test_source_value(version: FunctionVersion, entry: dict[str, Any], expected: str) -> None:
    targets = [{"select": {"kind": "Deployment"}, "fieldPaths": ["spec.text"]}]
    wish = build_config("ApplyReplacements", {"replacements": [{**entry, "targets": targets}]})
    output = run_function(apply_replacements, RESOURCES, wish, version=version)

    assert expected in (list_messages(output)[0][1] if list_messages(output) else output.items[1].data["spec"]["text"])


@pytest.mark.parametrize(
    ("profile", "before", "after"),
    [
        pytest.param("safe", '{"b": {"c": 1}, "a": 2}', '{"b":{"c":"source"},"a":2}', id="json"),
        pytest.param("compat", '{"b": {"c": "1"}, "a": 2}', '{"a":2,"b":{"c":"source"}}', id="json-upstream"),
        pytest.param(
            "safe", '{\n  "b": {"c": "1"}\n}', '{\n  "b": {\n    "c": "source"\n  }\n}', id="json-on-several-lines"
        ),
        pytest.param("safe", "b:\n  c: x # why\n", "b:\n  c: source # why\n", id="yaml"),
        pytest.param("compat", "b:\n  c: x # why\n", "b:\n  c: source # why", id="yaml-upstream"),
    ],
)
def test_replacement_in_structured_text(profile: Profile, before: str, after: str) -> None:
    text = f"{RESOURCES}---\napiVersion: v1\nkind: Holder\nmetadata:\n  name: h\ndata:\n  a.txt: {json.dumps(before)}\n"
    target = {"select": {"kind": "Holder"}, "fieldPaths": [r"data.a\.txt.b.c"]}
    output = run_function(apply_replacements, text, build_replacement({}, target), profile, V3)

    assert list_messages(output) == []
    assert output.items[2].data["data"]["a.txt"] == after


def test_replacement_in_several_structured_texts() -> None:
    texts = ['{"b": 1}', '{"d": 1}', '{"b": 2}']
    text = f"{RESOURCES}---\napiVersion: v1\nkind: Holder\nmetadata:\n  name: h\ntexts: {json.dumps(texts)}\n"
    target = {"select": {"kind": "Holder"}, "fieldPaths": ["texts.*.b"]}

    output = run_function(apply_replacements, text, build_replacement({}, target), "safe", V3)

    assert list_messages(output) == []
    assert output.items[2].data["texts"] == ['{"b":"source"}', '{"d": 1}', '{"b":"source"}']


def test_replacement_in_unstructured_text_is_an_error() -> None:
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({}, {"fieldPaths": ["spec.text.b"]}), version=V3
    )

    assert [severity for severity, _ in list_messages(output)] == ["error"]


def test_old_releases_have_no_default_target() -> None:
    assert run_function(apply_replacements, RESOURCES, build_replacement({}, {}), version=V1).items[1].name == "target"


@pytest.mark.parametrize(
    ("configuration", "message"),
    [
        pytest.param(None, "must be an ApplyReplacements", id="none"),
        pytest.param(build_config("ConfigMap", {}), ' is "ConfigMap"', id="kind"),
        pytest.param(build_config("ApplyReplacements", {"replacements": "x"}), "must be a list", id="no-list"),
        pytest.param(
            build_config("ApplyReplacements", {"replacements": [{"source": {}}]}), "at least one target", id="no-target"
        ),
        pytest.param(build_replacement({"name": "absent"}, {}), "exactly one resource", id="no-source"),
        pytest.param(build_replacement({"fieldPath": "data.no"}, {}), "must have a value", id="source-field-missing"),
        pytest.param(
            build_replacement({"fieldPath": "spec.nothing"}, {}), "must have a value", id="source-field-empty"
        ),
        pytest.param(
            build_replacement({"fieldPath": "data.name", "options": {"delimiter": "-", "index": 5}}, {}),
            "2 parts",
            id="no-such-part",
        ),
        pytest.param(
            build_replacement({}, {"fieldPaths": ["spec.containers"], "options": {"delimiter": ":"}}),
            "scalars",
            id="split-a-list",
        ),
        pytest.param(
            build_replacement({}, {"select": {"labelSelector": "a b c"}}), "label requirement", id="bad-label-selector"
        ),
    ],
)
def test_error_leaves_the_resources_unchanged(configuration: dict[str, Any] | None, message: str) -> None:
    output = run_function(apply_replacements, RESOURCES, configuration)

    assert [severity for severity, _ in list_messages(output)] == ["error"]
    assert message in list_messages(output)[0][1]
    assert format_items(output.items) == RESOURCES


def test_default_namespace_matches_an_absent_namespace() -> None:
    output = run_function(
        apply_replacements, RESOURCES, build_replacement({"namespace": "default"}, {"fieldPaths": ["spec.text"]})
    )

    assert output.items[1].data["spec"]["text"] == "source"
