"""Tests of the numbered edge cases of components, from config objects to rendered objects or finding codes.

Edge cases of one part also have rows in the tests of that part.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest

from tests.unit.controllers.components.component_builders import (
    PublishedPackages,
    addon,
    annotate,
    annotator,
    bytes_of,
    component,
    component_type,
    create,
    definition,
    find_finding,
    find_status,
    full_config,
    list_codes,
    list_findings,
    manifest,
    patch,
    platform,
    pod_manifest,
    read_objects,
    read_values,
    reconcile,
    resource,
    schema,
)

Fields = Mapping[str, Any]
ITEMS = {"Item": {"name": "string | required=true", "level": "integer | default=5"}}


@pytest.mark.parametrize(
    ("fields", "types", "of", "expected"),
    [
        pytest.param({"a": 'string | default=""'}, {}, {}, {"a": ""}, id="row-1-quoted"),
        pytest.param({"a": "string | default="}, {}, {}, {"a": ""}, id="row-1-bare"),
        pytest.param({"a": 'integer | default="3"'}, {}, {}, {"a": 3}, id="row-2"),
        pytest.param({"a": "boolean | default=yes"}, {}, {}, "ShorthandValue", id="row-3"),
        pytest.param({"a": 'string | enum="a,,b"'}, {}, {}, "ShorthandValue", id="row-4"),
        pytest.param({"a": 'string | enum="a,b" default=c'}, {}, {}, "ShorthandDefaultInvalid", id="row-5"),
        pytest.param({"a": 'string | pattern="^(a|b)$"'}, {}, {"a": "b"}, {"a": "b"}, id="row-6-matches"),
        pytest.param({"a": 'string | pattern="^(a|b)$"'}, {}, {"a": "c"}, "SchemaValidation", id="row-6-does-not"),
        pytest.param(
            {"a": '[]Item | default=[{"name":"x"}]'}, ITEMS, {}, {"a": [{"name": "x", "level": 5}]}, id="row-7"
        ),
        pytest.param({"a": "[]Item"}, ITEMS, {}, {}, id="row-8-absent"),
        pytest.param({"a": "A"}, {"A": "B", "B": "A"}, {}, "ShorthandTypeCycle", id="row-9"),
        pytest.param({"a": "string | default=x"}, {}, {"a": None}, {"a": "x"}, id="row-11"),
        pytest.param({"a": "string"}, {}, {"a": "${evil}"}, {"a": "${evil}"}, id="row-54"),
    ],
)
def test_schemas_and_values(fields: Fields, types: Fields, of: Fields, expected: Any) -> None:
    result = reconcile(full_config(definition(values=schema(fields, types=types)), component_type(), of=component(of)))

    if isinstance(expected, str):
        assert expected in list_codes(result)
        assert result.variants == ()
    else:
        assert list_codes(result) == []
        assert read_values(result) == expected


@pytest.mark.parametrize(
    ("environment", "code"),
    [
        pytest.param({"a": "string"}, ["SchemaFieldCollision"], id="row-10-same-leaf"),
        pytest.param({"b": {"y": "string"}}, [], id="row-10-one-object-other-leaves"),
    ],
)
def test_fields_of_both_sections(environment: Fields, code: list[str]) -> None:
    stall = definition(values=schema({"a": "string", "b": {"x": "string"}}, environment))

    assert [item.code for item in reconcile([stall]).findings] == code


SHOWN = schema(
    {"a": "integer", "n": "integer | default=2", "items": "[]Item", "port": "integer | default=7"}, types=ITEMS
)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param("${spec.items}", "CelNoSuchKey", id="row-8-a-list-that-is-not-there"),
        pytest.param({"x": "${has(spec.items) ? spec.items : []}"}, {"x": []}, id="row-8-checked-with-has"),
        pytest.param({"x": "${spec.n}\n"}, {"x": 2}, id="row-12"),
        pytest.param({"x": "${spec.n}${spec.port}"}, {"x": "27"}, id="row-13"),
        pytest.param({"x": '${"{"}${"}"}'}, {"x": "{}"}, id="row-14"),
        pytest.param({"${spec.port}": 1}, "TemplateKeyType", id="row-15"),
        pytest.param({"x": "${has(spec.a) ? spec.a : omit()}", "y": 1}, {"y": 1}, id="row-16"),
        pytest.param({"x": "prefix-${omit()}"}, "TemplateOmitInText", id="row-17"),
        pytest.param({"x": "at ${1000000}"}, {"x": "at 1000000"}, id="row-18"),
        pytest.param({"x": "${spec.n + 1.5}"}, "CelNoOverload", id="row-19"),
    ],
)
def test_templates(data: Any, expected: Any) -> None:
    result = reconcile(full_config(definition(resource(manifest(data=data)), values=SHOWN), component_type()))

    if isinstance(expected, str):
        assert list_codes(result) == [expected]
        assert "MarketStall square/bread in fair: spec.resources[0].template.data" in list_findings(result)[0].message
    else:
        assert read_values(result) == expected


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param({"forEach": "${ {'b': 1, 'a': 2} }"}, ["configmap-n-a.yaml", "configmap-n-b.yaml"], id="row-20"),
        pytest.param({"forEach": "${metadata.name}"}, "ForEachType", id="row-21"),
        pytest.param(
            {"forEach": "${[{'key': 'a'}]}", "includeWhen": "${item.key == 'a'}"}, "CelUndeclared", id="row-22"
        ),
    ],
)
def test_loops(more: Fields, expected: Any) -> None:
    result = reconcile(full_config(definition(resource(manifest(name="n-${item.key}"), **more)), component_type()))

    if isinstance(expected, str):
        assert expected in list_codes(result)
    else:
        assert list(read_objects(result)) == expected


POD = "/spec/template/spec"
CONTAINERS = [{"name": "main"}, {"name": "side"}, {"name": "main"}]


def patch_pod(place: str, op: str, path: str, value: Any, start: Any) -> Any:
    """Return a workload with `start` at a path of its pod after an operation."""
    pod = {"containers": [{"name": "main"}], **start}
    base = manifest("Deployment", spec={"template": {"spec": pod}}, data={"a": {"x": 1}, "l": [1], "t": "text"})
    fix = addon("fix", {"patches": [patch(op, path, value)]})
    result = reconcile(full_config(definition(resource(base)), fix, component_type(platform("fix", "i"))))
    codes = [item for item in list_codes(result) if item != "PatchTargetNotFound"]
    if codes:
        assert list_findings(result)[0].location.object in ("Addon/_cluster/fix", "ComponentType/_cluster/market-stall")
        return codes[0]
    entry = read_objects(result)["deployment-bread.yaml"]
    for step in place.split("/")[1:]:
        entry = entry[step]
    return entry


@pytest.mark.parametrize(
    ("place", "op", "path", "value", "start", "expected"),
    [
        pytest.param(
            f"{POD}/volumes", "add", f"{POD}/volumes/-", {"name": "v"}, {}, [{"name": "v"}], id="row-23-missing"
        ),
        pytest.param(f"{POD}/volumes", "add", f"{POD}/volumes/-", 1, {"volumes": None}, [1], id="row-23-null"),
        pytest.param(POD, "add", f"{POD}/volumes/-", 1, {"volumes": {}}, "PathNotArray", id="row-24"),
        pytest.param(
            f"{POD}/containers",
            "add",
            f"{POD}/containers/[?(@.name=='main')]/volumeMounts/-",
            {"name": "v"},
            {},
            [{"name": "main", "volumeMounts": [{"name": "v"}]}],
            id="row-25",
        ),
        pytest.param(POD, "add", f"{POD}/others/[?(@.name=='main')]/x", 1, {}, "PathNotArray", id="row-26"),
        pytest.param(POD, "add", f"{POD}/containers/[?(@.name=='z')]/x", 1, {}, "PatchPathNotFound", id="row-27"),
        pytest.param(
            f"{POD}/containers",
            "remove",
            f"{POD}/containers/[?(@.name=='main')]",
            None,
            {"containers": CONTAINERS},
            [{"name": "side"}],
            id="row-28",
        ),
        pytest.param(f"{POD}/containers", "remove", f"{POD}/containers/[*]", None, {}, [], id="row-29"),
        pytest.param("/data/a", "add", "/data/a/8080", "x", {}, {"x": 1, "8080": "x"}, id="row-30"),
        pytest.param("/data", "add", "/data/none/8080", "x", {}, "PathAmbiguousContainer", id="row-31"),
        pytest.param("/data/l", "add", "/data/l/1", 2, {}, [1, 2], id="row-32-at-the-end"),
        pytest.param("/data/l", "add", "/data/l/2", 2, {}, "PathIndexOutOfRange", id="row-32-behind-it"),
        pytest.param("/data", "replace", "/data/none", 2, {}, "PatchPathNotFound", id="row-33"),
        pytest.param("/data/a", "remove", "/data/a/none", None, {}, {"x": 1}, id="row-34-missing"),
        pytest.param("/data/a", "remove", "/data/none/below", None, {}, {"x": 1}, id="row-34-below"),
        pytest.param("/data/a", "add", "/data/a/b.io~1c", 1, {}, {"x": 1, "b.io/c": 1}, id="row-35-escaped"),
        pytest.param("/data/a", "add", "/data/a/['b.io/c']", 1, {}, {"x": 1, "b.io/c": 1}, id="row-35-quoted"),
        pytest.param(
            f"{POD}/hooks",
            "add",
            f"{POD}/hooks/[?(@.url=='http://x/y')]/k",
            1,
            {"hooks": [{"url": "http://x/y"}]},
            [{"url": "http://x/y", "k": 1}],
            id="row-36-in-quotes",
        ),
        pytest.param(
            f"{POD}/hooks",
            "add",
            f"{POD}/hooks/[?(@.url=='http:~1~1x~1y')]/k",
            1,
            {"hooks": [{"url": "http://x/y"}]},
            [{"url": "http://x/y", "k": 1}],
            id="row-36-escaped",
        ),
        pytest.param(
            "/data",
            "merge",
            "/data",
            {"a": {"y": 2}, "l": [2]},
            {},
            {"a": {"x": 1, "y": 2}, "l": [1, 2], "t": "text"},
            id="row-37",
        ),
        pytest.param("/data", "merge", "/data/t", {"y": 2}, {}, "MergeTypeMismatch", id="row-38"),
    ],
)
def test_operations(place: str, op: str, path: str, value: Any, start: Any, expected: Any) -> None:
    assert patch_pod(place, op, path, value, start) == expected


def test_row_27_missing_location_is_skipped() -> None:
    """Row 27: an addon can skip missing locations."""
    fix = addon("fix", {"patches": [patch("add", f"{POD}/containers/[?(@.name=='z')]/x", 1, onMissing="skip")]})
    result = reconcile(
        full_config(definition(resource(pod_manifest("main"))), fix, component_type(platform("fix", "i")))
    )

    assert list_codes(result) == []
    assert read_objects(result)["deployment-bread.yaml"]["spec"]["template"]["spec"] == {
        "containers": [{"name": "main"}]
    }


def patch_twice(first: Any, second: Any, **order: Any) -> Any:
    """Return the value at /data/k after two addons. The second addon can declare its order."""
    depends = {"dependencies": {"loadOrder": order}} if order else {}
    addons = [addon("a", {"patches": [patch("add", "/data/k", first)]}),
              addon("b", {"patches": [patch("add", "/data/k", second)], **depends})]  # fmt: skip
    result = reconcile(
        full_config(definition(resource(manifest())), *addons, component_type(platform("a", "i"), platform("b", "i")))
    )
    return read_values(result)["k"], list_codes(result)


@pytest.mark.parametrize(
    ("first", "second", "order", "expected"),
    [
        pytest.param(
            {"x": {"a": 1}}, {"x": {"b": 2}}, {}, ({"x": {"a": 1, "b": 2}}, ["MergedWrite"]), id="row-39-maps"
        ),
        pytest.param([1], [2], {}, ([1, 2], ["MergedWrite"]), id="row-39-lists"),
        pytest.param(True, False, {}, (False, ["LastWriterWins"]), id="row-40"),
        pytest.param(True, True, {}, (True, []), id="row-40-the-same"),
        pytest.param(True, False, {"after": ["a"]}, (False, []), id="row-40-a-declared-order"),
        pytest.param(True, False, {"before": ["a"]}, (True, []), id="row-40-the-other-order"),
    ],
)
def test_two_addons_write_one_location(first: Any, second: Any, order: Any, expected: Any) -> None:
    assert patch_twice(first, second, **order) == expected


CREATES: dict[str, Any] = {"creates": [create(manifest(name="new"), id="new")]}
PATCHES: dict[str, Any] = {"patches": [{"target": {"resourceId": "new"}, "patch": annotate("seen")["patch"]}]}


@pytest.mark.parametrize(
    ("addons", "is_seen"),
    [
        pytest.param({"a": PATCHES, "z": CREATES}, False, id="row-42-a-later-one-creates-it"),
        pytest.param(
            {"a": {**PATCHES, "dependencies": {"loadOrder": {"after": ["z"]}}}, "z": CREATES}, True, id="row-42-ordered"
        ),
        pytest.param({"a": {**CREATES, **PATCHES}}, True, id="row-43-its-own"),
        pytest.param({"a": CREATES, "z": PATCHES}, True, id="an-earlier-one-creates-it"),
    ],
)
def test_patches_of_created_objects(addons: Mapping[str, Any], is_seen: bool) -> None:
    kinds = component_type(*(platform(name, "i") for name in addons))
    result = reconcile(full_config(definition(), *(addon(name, item) for name, item in addons.items()), kinds))

    assert list_codes(result) == ([] if is_seen else ["PatchTargetNotFound"])
    metadata = read_objects(result)["configmap-new.yaml"]["metadata"]
    assert metadata.get("annotations") == ({"seen": "yes"} if is_seen else None)


def test_row_44_patch_of_another_kind_has_no_effect() -> None:
    """Row 44: the patch has no effect and is reported. Targets with both kinds are valid."""
    kinds = {"targets": [{"resourceType": ["Deployment", "StatefulSet"]}]}
    only = addon("only", {"patches": [patch("add", "/spec/x", 1, {"resourceType": "StatefulSet"})], **kinds})
    result = reconcile(
        full_config(definition(resource(pod_manifest("main"))), only, component_type(platform("only", "i")))
    )

    assert list_codes(result) == ["PatchTargetNotFound"]
    output = find_finding(result, "PatchTargetNotFound")
    assert (output.severity, output.location.object) == ("warning", "Addon/_cluster/only")
    assert 'the patch of the addon "only/i" has no effect' in output.message
    assert "x" not in read_objects(result)["deployment-bread.yaml"]["spec"]


def test_row_56_objects_of_a_removed_addon_are_removed() -> None:
    """Row 56: the package does not contain them any more."""
    maker = addon("maker", CREATES)
    before = reconcile(full_config(definition(), maker, annotator("stays"), component_type(platform("maker", "i"))))
    after = reconcile(
        full_config(definition(), maker, annotator("stays"), component_type()), PublishedPackages.from_result(before)
    )

    assert {name.rpartition("/")[2] for name in bytes_of(before)} == {"configmap-bread.yaml", "configmap-new.yaml"}
    assert {name.rpartition("/")[2] for name in bytes_of(after)} == {"configmap-bread.yaml"}
    assert find_status(after, "ComponentType", "market-stall").fields["appliedPlatformAddons"] == []
