"""Tests of edge cases of the overriders: errors, results, warnings, and the text of findings."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.clusters.selection import Cluster
from reconciler.controllers.override_policies.containers import read_pod_spec_paths
from reconciler.controllers.override_policies.resource_overrides import OverrideOptions
from tests.unit.controllers.override_policies.override_world import (
    HERE,
    apply_overriders,
    attach_policy,
    build_policy,
    emit,
    get_at_pointer,
    list_error_codes,
    list_warning_codes,
    override_data,
    override_resource,
    parse_document,
    read_policies,
    read_resource,
)

POD = "/spec/template/spec"
SHA = "sha256:" + "5d" * 32


def build_workload(pod: str, *, kind: str = "Deployment", version: str = "apps/v1", more: str = "") -> Any:
    return parse_document(
        f"apiVersion: {version}\nkind: {kind}\nmetadata: {{name: one, namespace: shop{more}}}\n"
        f"spec:\n  template:\n    spec: {pod}\n"
    )


ONE = build_workload("{containers: [{name: a, image: team/a:1}]}")
TWINS = build_workload("{initContainers: [{name: a, image: i:1}], containers: [{name: a, image: c:1}]}")
TAG = {"operations": [{"imageComponent": "Tag", "value": "2"}]}
CUSTOM = {"apiVersion": "farm.example/v1", "kind": "Barn", "metadata": {"name": "one"}, "spec": {"image": "team/a:1"}}
CRON = parse_document("""\
apiVersion: batch/v1
kind: CronJob
metadata: {name: one}
spec: {jobTemplate: {spec: {template: {spec: {containers: [{name: a, image: team/a:1}]}}}}}
""")
POD_ALONE = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "one"},
    "spec": {"containers": [{"name": "a", "image": "a:1"}]},
}


def build_config_map(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "one", **fields}}


def build_args(operator: str, *value: str, container: str = "a") -> dict[str, Any]:
    return {"args": [{"containerName": container, "operator": operator, "value": [*value]}]}


def build_envs(operator: str, *value: dict[str, Any]) -> dict[str, Any]:
    return {"envs": [{"containerName": "a", "operator": operator, "value": [*value]}]}


def build_patches(*operations: str) -> dict[str, Any]:
    return {"jsonpatch": [parse_document(f"{{{operation}}}") for operation in operations]}


@pytest.mark.parametrize(
    ("data", "overriders", "code"),
    [
        pytest.param(ONE, [{"labels": [{"operator": "addIfAbsent", "value": {"a": "b"}}]}] * 2, "KeyExists", id="15"),
        pytest.param({**ONE, "kind": "ReplicaSet"}, [{"image": [TAG]}], "PodSpecUnknownKind", id="20"),
        pytest.param(
            {**ONE, "apiVersion": "extensions/v1beta1"}, [build_args("append", "b")], "PodSpecUnknownKind", id="old-group"
        ),
        pytest.param(CUSTOM, [build_envs("delete", {"name": "x"})], "PodSpecUnknownKind", id="custom-kind"),
        pytest.param(build_workload("{containers: [{name: a}]}"), [{"image": [TAG]}], "ImageUnparsable", id="22"),
        pytest.param(
            build_workload("{containers: [{name: a, image: a:1}, {name: b, image: 'B:'}, {name: c, image: c}]}"),
            [{"image": [TAG]}],
            "ImageUnparsable",
            id="23",
        ),
        pytest.param(
            ONE,
            [{"image": [{"operations": [{"imageComponent": c, "operator": "delete"} for c in ("Repository", "Tag")]}]}],
            "ImageResultInvalid",
            id="26",
        ),
        pytest.param(CUSTOM, [{"image": [{"imagePath": "/spec/image/", **TAG}]}], "ImagePathInvalid", id="28"),
        pytest.param(CUSTOM, [{"image": [{"imagePath": "/spec", **TAG}]}], "ImagePathInvalid", id="not-a-string"),
        pytest.param(
            ONE, [{"image": [{"imagePath": f"{POD}/containers/-1/image", **TAG}]}], "ImagePathInvalid", id="index--1"
        ),
        pytest.param(
            ONE, [{"image": [{"imagePath": f"{POD}/containers/01/image", **TAG}]}], "ImagePathInvalid", id="index-01"
        ),
        pytest.param(ONE, [build_envs("addIfAbsent", {"name": "x"}, {"name": "x"})], "KeyExists", id="32"),
        pytest.param(ONE, [build_patches("path: /status/x, value: 1")], "PatchParentMissing", id="38-absent-parent"),
        pytest.param(
            build_config_map(), [build_patches("operator: add, path: /metadata/labels/x, value: y")], "PatchParentMissing", id="39"
        ),
        pytest.param(ONE, [build_patches(f"path: {POD}/containers/-, value: {{}}")], "PatchIndexInvalid", id="42-replace"),
        pytest.param(ONE, [build_patches(f"operator: remove, path: {POD}/containers/-")], "PatchIndexInvalid", id="42"),
        pytest.param(ONE, [build_patches("path: /metadata, value: {namespace: shop}")], "IdentityChanged", id="45"),
        pytest.param(ONE, [build_patches("operator: remove, path: /metadata")], "IdentityChanged", id="45-removed"),
        pytest.param(
            {**CUSTOM, "metadata": {"name": "one", "generateName": {"a": 1}}},
            [build_patches("operator: remove, path: /metadata/generateName/a")],
            "IdentityChanged",
            id="inside-of-a-name",
        ),
        pytest.param(
            CUSTOM, [{"image": [{"imagePath": "/metadata/name", **TAG}]}], "IdentityChanged", id="image-in-the-name"
        ),
        pytest.param(ONE, [build_patches("path: /spec/template/spec/x/y, value: 1")], "PatchParentMissing", id="no-parent"),
        pytest.param(CUSTOM, [build_patches("path: /spec/image/y, value: 1")], "PatchParentMissing", id="scalar-parent"),
        pytest.param(
            {**ONE, "spec": {"template": {}}}, [build_args("append", "b")], "PodSpecMissing", id="template-without-spec"
        ),
        pytest.param(build_workload("[]"), [build_args("append", "b")], "PodSpecMalformed", id="spec-is-a-list"),
        pytest.param(build_workload("{containers: {}}"), [build_args("append", "b")], "PodSpecMalformed", id="containers-as-map"),
        pytest.param(
            build_workload("{containers: [{name: a, args: [80]}]}"), [build_args("append", "b")], "PodSpecMalformed", id="args"
        ),
        pytest.param(
            build_workload("{containers: [{name: a, env: [x]}]}"),
            [build_envs("addIfAbsent", {"name": "x"})],
            "PodSpecMalformed",
            id="env",
        ),
        pytest.param(
            build_config_map(annotations={"a": 5}), [{"annotations": [{"value": {"b": "c"}}]}], "MapMalformed", id="annotation-is-5"
        ),
        pytest.param(
            build_config_map(), [{"annotations": [{"operator": "addIfAbsent", "value": {"a": "x" * 262144}}]}],
            "AnnotationsTooLarge", id="annotations-of-256-KiB",
        ),
    ],
)  # fmt: skip
def test_error_blocks_the_resource(data: Any, overriders: list[Any], code: str) -> None:
    assert {*apply_overriders(data, *overriders)} == {code}


@pytest.mark.parametrize(
    ("data", "overriders", "pointer", "expected"),
    [
        pytest.param(
            ONE,
            [
                build_patches(f"operator: add, path: {POD}/containers/-, value: {{name: b, image: b:1}}")
                | {"image": [TAG]}
            ],
            f"{POD}/containers/1/image",
            "b:1",
            id="17",
        ),
        pytest.param(
            TWINS, [{"image": [{"containerNames": ["a"], **TAG}]}], f"{POD}/containers/0/image", "c:2", id="18"
        ),
        pytest.param(
            TWINS, [build_args("append", "x")], f"{POD}/initContainers/0/args", ["x"], id="18-args-of-the-init-container"
        ),
        pytest.param(
            TWINS, [build_args("append", "x")], f"{POD}/containers/0", {"name": "a", "image": "c:1"}, id="18-and-no-other"
        ),
        pytest.param(CUSTOM, [{"image": [{"imagePath": "/spec/image", **TAG}]}], "/spec/image", "team/a:2", id="21"),
        pytest.param(
            {**CUSTOM, "spec": {"a/b": {"m~n": "team/a:1"}}},
            [{"image": [{"imagePath": "/spec/a~1b/m~0n", **TAG}]}],
            "/spec/a~1b/m~0n",
            "team/a:2",
            id="27",
        ),
        pytest.param(
            ONE, [{"command": [{"containerName": "a", "value": ["x"]}]}], f"{POD}/containers/0/command", ["x"], id="29"
        ),
        pytest.param(
            build_workload("{containers: [{name: a, args: [x, x]}]}"),
            [build_args("delete", "x")],
            f"{POD}/containers/0",
            {"name": "a"},
            id="30",
        ),
        pytest.param(ONE, [build_args("delete", "x")], "", None, id="delete-from-nothing"),
        pytest.param(
            build_workload("{containers: [{name: a, env: [{name: x, value: '1'}, {name: y}, {name: x, value: '2'}]}]}"),
            [build_envs("overwrite", {"name": "x", "value": "3"})],
            f"{POD}/containers/0/env",
            [{"name": "x", "value": "3"}, {"name": "y"}, {"name": "x", "value": "3"}],
            id="33-overwrite",
        ),
        pytest.param(
            build_workload("{containers: [{name: a, env: [{name: x, value: '1'}, {name: x, value: '2'}]}]}"),
            [build_envs("delete", {"name": "x"})],
            f"{POD}/containers/0",
            {"name": "a"},
            id="33-delete",
        ),
        pytest.param(build_config_map(), [{"labels": [{"value": {"a": "b"}}]}], "", None, id="34"),
        pytest.param(build_config_map(), [{"annotations": [{"operator": "overwrite", "value": {"a": "b"}}]}], "", None, id="35"),
        pytest.param(
            {**build_config_map(), "data": {"a": "1"}}, [build_patches("path: /data/a, value: '2'")], "/data/a", "2", id="37"
        ),
        pytest.param(
            build_config_map(),
            [build_patches("operator: add, path: /metadata/finalizers/-, value: x.example/f")] * 2,
            "/metadata/finalizers",
            ["x.example/f"],
            id="40",
        ),
        pytest.param(build_config_map(), [build_patches("operator: remove, path: /metadata/finalizers")], "", None, id="no-finalizers"),
        pytest.param(
            build_config_map(finalizers=["a"]), [build_patches("operator: remove, path: /metadata/finalizers/0")], "/metadata",
            {"name": "one"}, id="last-finalizer",
        ),
        pytest.param(
            {**CUSTOM, "spec": {"l": [1, 2, 3]}},
            [build_patches(*["operator: remove, path: /spec/l/0"] * 2)],
            "/spec/l",
            [3],
            id="41",
        ),
        pytest.param(
            ONE,
            [build_patches("path: /apiVersion, value: apps/v2"), {"image": [TAG]}],
            f"{POD}/containers/0/image",
            "team/a:2",
            id="46",
        ),
        pytest.param(
            {**CUSTOM, "spec": {"l": [1]}},
            [build_patches("operator: add, path: /spec/l/1, value: null")],
            "/spec/l",
            [1, None],
            id="null-is-a-value",
        ),
        pytest.param(
            {**CUSTOM, "spec": {"": {"": 1}}},
            [build_patches("path: /spec//, value: 2")],
            "/spec",
            {"": {"": 2}},
            id="empty-keys",
        ),
        pytest.param(CRON, [{"image": [TAG]}], f"/spec/jobTemplate{POD}/containers/0/image", "team/a:2", id="cron"),
        pytest.param(POD_ALONE, [{"image": [TAG]}], "/spec/containers/0/image", "a:2", id="pod"),
        pytest.param(ONE, [{"image": [{"containerNames": [""], **TAG}]}], "", None, id="only-empty-names"),
        pytest.param(
            build_workload("{containers: []}"), [{"image": [TAG]}], f"{POD}", {"containers": []}, id="no-containers"
        ),
    ],
)  # fmt: skip
def test_what_becomes_of_the_resource(data: Any, overriders: list[Any], pointer: str, expected: Any) -> None:
    result = apply_overriders(data, *overriders)

    assert (get_at_pointer(result, pointer), result if expected is None else None) == (
        (expected, None) if expected is not None else (get_at_pointer(data, pointer), data)
    )


@pytest.mark.parametrize(
    ("data", "overriders", "expected"),
    [
        pytest.param(ONE, {"image": [{"containerNames": ["z"], **TAG}]}, ["ContainerNotFound"], id="19"),
        pytest.param(ONE, build_args("append", "x", container="z"), ["ContainerNotFound"], id="unknown-container"),
        pytest.param(ONE, build_envs("delete", {"name": "x"}) | {"labels": []}, [], id="nothing-to-delete"),
        pytest.param(
            build_workload(f"{{containers: [{{name: a, image: 'a:1@{SHA}'}}]}}"),
            {"image": [TAG]},
            ["DigestPinned"],
            id="24",
        ),
        pytest.param(ONE, build_patches("path: /spec/paused, value: true"), ["ReplaceCreatedMember"], id="38"),
        pytest.param(
            {**build_config_map(), "data": {}},
            build_patches("path: /data/anything, value: x"),
            ["ReplaceCreatedMember"],
            id="any-key-of-a-map",
        ),
        pytest.param(
            {**ONE, "apiVersion": "example.org/v1"},
            build_patches("path: /spec/replcias, value: 3"),
            ["ReplaceCreatedMember"],
            id="unknown-field-of-a-custom-kind",
        ),
        pytest.param(
            {**ONE, "apiVersion": "extensions/v1beta1"},
            build_patches("path: /spec/rollbackTo, value: {}"),
            ["ReplaceCreatedMember"],
            id="unknown-field-of-a-version-without-schema",
        ),
        pytest.param(
            {**ONE, "spec": {**ONE["spec"], "replcias": {"a": 1}}},
            build_patches("path: /spec/replcias/a, value: 3", "operator: add, path: /spec/replcias/b, value: 3"),
            [],
            id="inside-an-unknown-field-that-the-resource-has",
        ),
        pytest.param(
            build_config_map(labels={"a": "b", "c": "d"}),
            build_patches("operator: add, path: /metadata/labels, value: {a: x}"),
            ["PatchDroppedKeys"],
            id="a-mapping-replaced",
        ),
    ],
)
def test_warning_does_not_block(data: Any, overriders: dict[str, Any], expected: list[str]) -> None:
    final_resource = override_data(data, overriders)

    assert list_error_codes(final_resource) == []
    assert [code for code in list_warning_codes(final_resource) if code != "PolicyNoEffect"] == expected


def test_rule_without_effect_is_reported_only_on_its_clusters() -> None:
    rules = [{"targetClusters": {"clusters": ["edge-1"]}, "overriders": {"labels": [{"value": {"a": "b"}}]}}]
    subject, policies = read_resource(emit(attach_policy(ONE))), read_policies(build_policy(rules))

    here = override_resource(subject, policies, HERE)
    there = override_resource(subject, policies, Cluster("edge-2"))

    assert (list_warning_codes(here), list_warning_codes(there)) == (["PolicyNoEffect"], [])
    assert here.findings[0].message == (
        "the rules of ClusterOverridePolicy/tuning apply, but do not change the resource"
    )


def test_next_rule_sees_a_container_of_the_first_rule() -> None:
    sidecar = build_patches(f"operator: add, path: {POD}/containers/-, value: {{name: b, image: b:1}}")

    assert get_at_pointer(apply_overriders(ONE, sidecar, {"image": [TAG]}), f"{POD}/containers/1/image") == "b:2"


def test_error_names_policy_rule_item_and_path() -> None:
    final_resource = override_data(
        ONE, {"labels": []}, build_patches("path: /spec/replicas, value: 1", "operator: remove, path: /spec/x")
    )

    (finding,) = (item for item in final_resource.findings if item.severity == "error")
    assert finding.message == (
        "ClusterOverridePolicy/tuning spec.overrideRules[1].overriders.jsonpatch[1]: the operator remove requires an existing field, but /spec/x does not exist"
    )
    assert (finding.location.file, finding.location.object, finding.location.pointer) == (
        "stack.yaml",
        "Deployment/shop/one",
        "/spec/x",
    )
    assert final_resource.document is final_resource.resource.document


def test_more_kinds_with_pod_templates_can_be_configured() -> None:
    barn = {**ONE, "apiVersion": "farm.example/v1", "kind": "Barn"}
    options = OverrideOptions(pod_spec_paths=read_pod_spec_paths({"farm.example/Barn": POD}))

    final_resource = override_data(barn, {"image": [TAG]}, options=options)

    assert get_at_pointer(final_resource.document.data, f"{POD}/containers/0/image") == "team/a:2"
    assert list_error_codes(override_data(ONE, {"image": [TAG]}, options=options)) == []
    assert read_pod_spec_paths({"Pod": "/spec/inner"})[("", "Pod")] == ("spec", "inner")


def test_secret_value_is_not_quoted() -> None:
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "one"}, "stringData": {"a": "Pa55 word"}}

    final_resource = override_data(secret, {"image": [{"imagePath": "/stringData/a", **TAG}]})

    (finding,) = final_resource.findings
    assert finding.code == "ImageUnparsable"
    assert "Pa55" not in finding.message


def test_result_that_yaml_cannot_represent_is_an_error() -> None:
    deep: Any = {}
    for _ in range(60):
        deep = {"a": deep}
    rule = {"jsonpatch": [{"operator": "add", "path": "/spec" + "/a" * 61, "value": deep}]}

    final_resource = override_data({**CUSTOM, "spec": deep}, rule)

    assert list_error_codes(final_resource) == ["OverrideResultUnwritable"]
    assert any(
        finding.message.startswith("the changed resource cannot be written as YAML. ")
        for finding in final_resource.findings
    )
