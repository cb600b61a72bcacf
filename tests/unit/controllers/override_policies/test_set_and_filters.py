"""Tests of extensions of KubeAdmiral: `set` creates missing parents, and filters select list items by their content."""

from __future__ import annotations

from typing import Any

import pytest

from tests.unit.controllers.override_policies.override_world import apply_overriders, get_at_pointer, parse_document

POD = "/spec/template/spec"
SHOP = parse_document("""\
apiVersion: apps/v1
kind: Deployment
metadata: {name: shop, namespace: shop, labels: {app: shop}}
spec:
  ports: [{port: 80, proto: tcp}, {port: 80, proto: udp}, {port: 81, proto: tcp, main: true}]
  empty: []
  nothing: null
  "[a=b]": {c: 1}
  template:
    spec:
      containers:
      - {name: api, image: team/api:1, env: [{name: ZONE, value: a, extra: kept}]}
      - {name: log, image: team/log:1}
""")


def build_patch(operator: str, path: str, *value: Any) -> dict[str, Any]:
    return {"jsonpatch": [{"operator": operator, "path": path, **({"value": value[0]} if value else {})}]}


@pytest.mark.parametrize(
    ("overriders", "pointer", "expected"),
    [
        pytest.param(
            {"labels": [{"operator": "set", "value": {"app": "x", "new": "y"}}]},
            "/metadata/labels",
            {"app": "x", "new": "y"},
            id="labels",
        ),
        pytest.param(
            {"annotations": [{"operator": "set", "value": {"a": "b"}}]},
            "/metadata/annotations/a",
            "b",
            id="annotations",
        ),
        pytest.param(
            parse_document("envs: [{containerName: api, operator: set, value: [{name: ZONE, value: b}, {name: NEW}]}]"),
            f"{POD}/containers/0/env",
            [{"name": "ZONE", "value": "b"}, {"name": "NEW"}],
            id="envs",
        ),
        pytest.param(
            parse_document("envs: [{containerName: log, operator: set, value: [{name: NEW}]}]"),
            f"{POD}/containers/1/env",
            [{"name": "NEW"}],
            id="envs-where-there-are-none",
        ),
        pytest.param(
            build_patch("set", "/spec/strategy/rollingUpdate/maxSurge", 1),
            "/spec/strategy",
            {"rollingUpdate": {"maxSurge": 1}},
            id="missing-parents",
        ),
        pytest.param(build_patch("set", "/spec/nothing/b", 1), "/spec/nothing", {"b": 1}, id="null-as-parent"),
        pytest.param(build_patch("set", "/metadata/labels/app", "x"), "/metadata/labels/app", "x", id="member"),
        pytest.param(build_patch("set", f"{POD}/tolerations/-", {}), f"{POD}/tolerations", [{}], id="missing-list"),
        pytest.param(build_patch("set", "/spec/empty/0", 1), "/spec/empty", [1], id="behind-the-last"),
        pytest.param(build_patch("set", "/spec/ports/2", 1), "/spec/ports/2", 1, id="an-item-is-replaced"),
        pytest.param(
            build_patch("set", f"{POD}/containers/[name=log]", {"name": "log"}),
            f"{POD}/containers/1",
            {"name": "log"},
            id="by-name",
        ),
        pytest.param(
            build_patch("set", f"{POD}/containers/[name=new]", {"name": "new"}),
            f"{POD}/containers/2",
            {"name": "new"},
            id="added-where-none-is-so",
        ),
        pytest.param(
            build_patch("replace", f"{POD}/containers/[name=log]/image", "x"),
            f"{POD}/containers/1/image",
            "x",
            id="step",
        ),
        pytest.param(build_patch("remove", "/spec/ports/[port=81]"), "/spec/ports/1/proto", "udp", id="a-number"),
        pytest.param(build_patch("set", "/spec/ports/[main=true]/port", 5), "/spec/ports/2/port", 5, id="a-boolean"),
        pytest.param(
            build_patch("set", "/spec/ports/[port=80][proto=udp]/x", 5), "/spec/ports/1/x", 5, id="two-conditions"
        ),
        pytest.param(build_patch("set", "/spec/[a=b]/c", 5), "/spec/[a=b]/c", 5, id="below-a-mapping-it-is-a-key"),
        pytest.param(
            {
                "image": [
                    {
                        "imagePath": f"{POD}/containers/[name=log]/image",
                        "operations": [{"imageComponent": "Tag", "value": "2"}],
                    }
                ]
            },
            f"{POD}/containers/1/image",
            "team/log:2",
            id="imagePath",
        ),
    ],
)
def test_value_is_set(overriders: dict[str, Any], pointer: str, expected: Any) -> None:
    assert get_at_pointer(apply_overriders(SHOP, overriders), pointer) == expected


@pytest.mark.parametrize(
    ("overriders", "code"),
    [
        pytest.param(build_patch("set", "/metadata/name", "x"), "ForbiddenPath", id="forbidden"),
        pytest.param(build_patch("set", "/spec/a"), "PatchValueMissing", id="no-value"),
        pytest.param(build_patch("set", "/kind/a/b", 1), "PatchParentMissing", id="below-a-scalar"),
        pytest.param(build_patch("set", "/spec/ports/9/x/y", 1), "PatchParentMissing", id="no-such-item"),
        pytest.param(build_patch("set", "/spec/ports/9", 1), "PatchIndexInvalid", id="far-behind-the-last"),
        pytest.param(build_patch("replace", "/spec/ports/[port=80]/x", 1), "PatchParentMissing", id="two-on-the-way"),
        pytest.param(build_patch("remove", "/spec/ports/[port=80]"), "PatchIndexInvalid", id="two-at-the-end"),
        pytest.param(build_patch("set", "/spec/ports/[port=80]", 1), "PatchIndexInvalid", id="two-to-set"),
        pytest.param(build_patch("remove", "/spec/ports/[port=9]"), "PatchTargetMissing", id="none"),
        pytest.param(build_patch("replace", "/spec/ports/[port=9]", 1), "PatchTargetMissing", id="none-to-replace"),
        pytest.param(build_patch("add", "/spec/ports/[port=81]", 1), "PatchIndexInvalid", id="no-place-to-add-at"),
        pytest.param(build_patch("remove", "/spec/ports/[port]"), "PatchIndexInvalid", id="no-filter"),
        pytest.param(
            {"image": [{"operations": [{"imageComponent": "Tag", "operator": "set", "value": "2"}]}]},
            "OperatorUnsupported",
            id="images-have-overwrite",
        ),
    ],
)
def test_invalid_set_is_an_error(overriders: dict[str, Any], code: str) -> None:
    assert apply_overriders(SHOP, overriders) == [code]
