"""Tests of patch targets: which objects match, and which templates can match before they are rendered."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.api.base import read_model
from reconciler.api.openchoreo import COMPONENT_TEMPLATES, PatchTargetFields
from reconciler.controllers.components.patching.targets import (
    PatchTarget,
    build_target_template,
    can_match_target,
    is_target_match,
    read_patch_target,
)

AT = ("spec", "patches", 0, "target")
PODS = {"containers": [{"name": "web"}, {"name": 7}], "initContainers": [{"name": "setup"}, "odd"]}
DEPLOYMENT = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "metadata": {"name": "shop", "labels": {"role": "front", "tier": "1"}},
    "spec": {"template": {"spec": PODS}},
}
CRON = {"apiVersion": "batch/v1", "kind": "CronJob", "spec": {"jobTemplate": {"spec": {"template": {"spec": PODS}}}}}
POD = {"apiVersion": "v1", "kind": "Pod", "spec": PODS}
SERVICE = {"apiVersion": "v1", "kind": "Service", "metadata": {"labels": None}, "spec": {"template": "x"}}


def target(written: Any) -> PatchTarget:
    patch_target = read_patch_target(written, AT)
    assert isinstance(patch_target, PatchTarget), patch_target
    return patch_target


def read_target_template(written: Any) -> PatchTarget:
    fields = read_model(PatchTargetFields, written, COMPONENT_TEMPLATES, AT).model
    assert fields is not None
    return build_target_template(fields)


def labels(**pairs: Any) -> dict[str, Any]:
    return {"selector": {"matchLabels": pairs}}


@pytest.mark.parametrize(
    ("written", "value", "expected"),
    [
        pytest.param({"resourceType": "Deployment"}, DEPLOYMENT, True, id="kind"),
        pytest.param({"resourceType": "deployment"}, DEPLOYMENT, False, id="kind-by-case"),
        pytest.param({"resourceType": ["StatefulSet", "Deployment"]}, DEPLOYMENT, True, id="one-of-kinds"),
        pytest.param({"resourceType": "StatefulSet"}, DEPLOYMENT, False, id="row-44-another-kind"),
        pytest.param({"resourceType": "*"}, SERVICE, True, id="every-kind"),
        pytest.param({"resourceType": []}, DEPLOYMENT, False, id="none-of-no-kinds"),
        pytest.param({"resourceId": "main"}, DEPLOYMENT, True, id="id"),
        pytest.param({"resourceId": ["other", "main"]}, DEPLOYMENT, True, id="one-of-ids"),
        pytest.param({"resourceId": "other"}, DEPLOYMENT, False, id="another-id"),
        pytest.param(labels(role="front"), DEPLOYMENT, True, id="label"),
        pytest.param(labels(role="front", tier="2"), DEPLOYMENT, False, id="one-label-differs"),
        pytest.param(labels(tier=1), DEPLOYMENT, True, id="labels-compare-as-text"),
        pytest.param(labels(role="front"), SERVICE, False, id="no-labels"),
        pytest.param(labels(role="front"), POD, False, id="no-metadata"),
        pytest.param({"containerName": "web"}, DEPLOYMENT, True, id="container"),
        pytest.param({"containerName": "setup"}, DEPLOYMENT, True, id="init-container"),
        pytest.param({"containerName": "7"}, DEPLOYMENT, True, id="container-named-by-a-number"),
        pytest.param({"containerName": "nobody"}, DEPLOYMENT, False, id="another-container"),
        pytest.param({"containers": ["nobody", "web"]}, DEPLOYMENT, True, id="one-of-containers"),
        pytest.param({"containerName": "web"}, CRON, True, id="container-of-a-cron-job"),
        pytest.param({"containerName": "web"}, POD, True, id="container-of-a-pod"),
        pytest.param({"containerName": "web"}, SERVICE, False, id="no-pod-template"),
        pytest.param({"group": "apps"}, DEPLOYMENT, True, id="group"),
        pytest.param({"group": ""}, SERVICE, True, id="core-group"),
        pytest.param({"group": ""}, DEPLOYMENT, False, id="another-group"),
        pytest.param({"group": "apps", "version": "v1"}, DEPLOYMENT, True, id="group-and-version"),
        pytest.param({"version": "v2"}, DEPLOYMENT, False, id="another-version"),
        pytest.param({"resourceType": "Deployment", "resourceId": "x"}, DEPLOYMENT, False, id="all-fields-must-match"),
        pytest.param({"resourceType": "Deployment", "resourceId": None}, DEPLOYMENT, True, id="null-is-no-condition"),
        pytest.param({"containerName": "${evil}"}, DEPLOYMENT, False, id="row-54-rendered-text-is-no-template"),
    ],
)
def test_matches(written: dict[str, Any], value: Any, expected: bool) -> None:
    assert is_target_match(target(written), value, "main") == expected


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({}, ["TargetEmpty: must have at least one of resourceType, resourceId, selector"], id="nothing"),
        pytest.param({"selector": {"matchLabels": {}}}, ["TargetEmpty:"], id="no-labels"),
        pytest.param({"resourceType": None, "x-note": "all"}, ["TargetEmpty:"], id="nothing-that-counts"),
        pytest.param("Deployment", ["TargetInvalid: must be a mapping"], id="text"),
        pytest.param(
            {"kind": "A"},
            ["UnknownField.kind: is an unknown field; allowed fields: resourceType, resourceId"],
            id="unknown",
        ),
        pytest.param(
            {"where": "${true}"},
            ["UnknownField.where: is an unknown field; allowed fields:"],
            id="where-is-not-offered",
        ),
        pytest.param({"resourceType": 5}, ["TargetInvalid.resourceType: must be a string, but is 5"], id="number"),
        pytest.param({"resourceId": ["a", {}]}, ["TargetInvalid.resourceId.1: must be a string"], id="map-in-a-list"),
        pytest.param({"selector": "a=b"}, ["TargetInvalid.selector: must be a mapping"], id="selector-as-text"),
        pytest.param(
            {"selector": {"matchExpressions": []}, "group": 1},
            [
                "TargetInvalid.group:",
                "UnknownField.selector.matchExpressions: is an unknown field; allowed fields: matchLabels",
            ],
            id="all-at-once",
        ),
        pytest.param(labels(a=[1]), ["TargetInvalid.selector.matchLabels.a: must be a string"], id="list-as-label"),
        pytest.param({"selector": {"matchLabels": []}}, ["TargetInvalid.selector.matchLabels:"], id="labels-as-list"),
        pytest.param(
            {"containerName": "a", "containers": ["b"]}, ["TargetInvalid.containers: must not be set"], id="twice"
        ),
    ],
)
def test_invalid_target_is_reported(written: Any, expected: list[str]) -> None:
    patch_target = read_patch_target(written, AT)

    assert isinstance(patch_target, tuple)
    values = [
        f"{field_finding.code.name}{'.'.join(['', *map(str, field_finding.path[len(AT) :])])}: {field_finding.message.partition(' ')[2]}"
        for field_finding in patch_target
    ]
    assert all(item.startswith(start) for item, start in zip(values, expected, strict=True))


TEMPLATE = {
    "apiVersion": "${spec.api}",
    "kind": "Deployment",
    "metadata": {"labels": {"app": "${metadata.name}", "role": "front"}},
    "spec": {"template": {"spec": {"containers": [{"name": "${spec.name}"}], "initContainers": "${spec.init}"}}},
}


@pytest.mark.parametrize(
    ("written", "template", "expected"),
    [
        pytest.param({"resourceType": "Deployment"}, TEMPLATE, True, id="kind"),
        pytest.param({"resourceType": "Service"}, TEMPLATE, False, id="another-kind"),
        pytest.param({"resourceType": "${spec.kind}"}, TEMPLATE, True, id="templated-kind"),
        pytest.param({"resourceType": ["Service", "${spec.kind}"]}, TEMPLATE, True, id="one-of-kinds-is-templated"),
        pytest.param({"resourceId": "${spec.id}", "resourceType": "Service"}, TEMPLATE, False, id="all-must-match"),
        pytest.param(labels(app="shop"), TEMPLATE, True, id="label-of-the-object-is-templated"),
        pytest.param(labels(role="back"), TEMPLATE, False, id="another-label"),
        pytest.param(labels(role="${spec.role}"), TEMPLATE, True, id="templated-label"),
        pytest.param({"selector": "${spec.selector}"}, TEMPLATE, True, id="templated-selector"),
        pytest.param({"selector": {"matchLabels": "${spec.l}"}}, TEMPLATE, True, id="templated-labels"),
        pytest.param(labels(a="b"), {"metadata": {"labels": "${l}"}}, True, id="labels-of-the-object-are-templated"),
        pytest.param(labels(a="b"), {"metadata": "${m}"}, True, id="metadata-of-the-object-is-templated"),
        pytest.param(labels(a="b"), {"metadata": {"labels": {"${k}": "b"}}}, True, id="keys-of-labels-are-templated"),
        pytest.param({"containerName": "web"}, TEMPLATE, True, id="container-of-the-object-is-templated"),
        pytest.param({"containerName": "${spec.c}"}, POD, True, id="templated-container"),
        pytest.param({"containerName": "nobody"}, POD, False, id="another-container"),
        pytest.param({"containerName": "a"}, {"kind": "Pod", "spec": {"containers": ["${c}"]}}, True, id="item"),
        pytest.param({"containerName": "a"}, {"kind": "Pod", "spec": "${s}"}, True, id="above-the-containers"),
        pytest.param({"containerName": "a"}, {"kind": "Pod", "spec": []}, False, id="no-containers"),
        pytest.param({"group": "apps"}, TEMPLATE, True, id="api-version-of-the-object-is-templated"),
        pytest.param({"group": "${spec.g}", "version": "v2"}, DEPLOYMENT, False, id="version-beside-a-templated-group"),
    ],
)
def test_template_can_match(written: dict[str, Any], template: Any, expected: bool) -> None:
    patch_target_template = read_target_template(written)

    assert can_match_target(patch_target_template, template, "main") == expected


def test_templated_target_is_validated() -> None:
    result = read_model(PatchTargetFields, {"resourceType": "${spec.kind}", "where": "${true}"}, COMPONENT_TEMPLATES)

    assert [error.code for error in result.errors] == ["UnknownField"]


words = st.sampled_from(["Deployment", "Pod", "a", "b", ""])
lists = st.one_of(words, st.lists(words, max_size=2))
any_target = st.fixed_dictionaries(
    {},
    optional={
        "resourceType": lists,
        "resourceId": lists,
        "containerName": words,
        "selector": st.fixed_dictionaries({"matchLabels": st.dictionaries(words, words, max_size=2)}),
        "group": words,
    },
)
junk = st.recursive(
    st.none() | st.booleans() | words,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(["name", "labels", "spec"]), inner),
)
objects = st.fixed_dictionaries(
    {"kind": words, "apiVersion": words},
    optional={
        "metadata": junk | st.fixed_dictionaries({"labels": junk | st.dictionaries(words, words)}),
        "spec": junk | st.fixed_dictionaries({"containers": junk | st.lists(st.fixed_dictionaries({"name": words}))}),
    },
)


@given(any_target, objects, words)
def test_rendered_object_matches_as_a_template_too(written: Any, one: Any, name: str) -> None:
    patch_target = read_patch_target(written, AT)

    if isinstance(patch_target, PatchTarget):
        assert read_target_template(written) == patch_target
        assert can_match_target(patch_target, one, name) == is_target_match(patch_target, one, name)
