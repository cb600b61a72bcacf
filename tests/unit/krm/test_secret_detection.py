"""Tests of the detection of secrets in objects, lists and texts."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.redaction import (
    LAST_APPLIED_ANNOTATION,
    contains_secret,
    is_secret,
    is_secret_manifest_text,
    is_secret_value,
)


def build_secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", **fields}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(build_secret(), True, id="a-core-secret"),
        pytest.param({"kind": "Secret"}, True, id="one-without-apiversion-to-be-safe"),
        pytest.param({"apiVersion": "x.io/v1", "kind": "Secret"}, False, id="another-groups-kind"),
        pytest.param({"apiVersion": "v1", "kind": "ConfigMap"}, False, id="a-configmap"),
        pytest.param("Secret", False, id="a-text"),
    ],
)
def test_is_secret(data: object, expected: bool) -> None:
    assert is_secret(data) is expected


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param({"kind": "List", "items": [build_secret()]}, True, id="in-a-list"),
        pytest.param({"data": {"m.yaml": "kind: Secret\ndata: {}"}}, True, id="as-the-text-of-a-manifest"),
        pytest.param({"data": {"m.yaml": "kind: SecretStore"}}, False, id="another-kind-that-begins-so"),
        pytest.param([1, None, "x"], False, id="nothing-of-the-kind"),
    ],
)
def test_contains_secret(data: object, expected: bool) -> None:
    assert contains_secret(data) is expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: Secret", id="yaml"),
        pytest.param('{"kind": "Secret"}', id="json"),
        pytest.param("kind :  'Secret'", id="quoted-with-blanks"),
        pytest.param("# kind: Secret", id="commented-out"),
    ],
)
def test_text_can_be_a_secret(text: str) -> None:
    assert is_secret_manifest_text(text)


HELD = {
    "kind": "Kit",
    "spec": {"template": build_secret(data={"p": "x"})},
    "items": [build_secret(stringData={"p": "x"})],
}


@pytest.mark.parametrize(
    ("data", "path", "expected"),
    [
        pytest.param(build_secret(data={"p": "x"}), ["data", "p"], True, id="its-data"),
        pytest.param(build_secret(), ["stringData"], True, id="what-is-gone-from-it"),
        pytest.param(build_secret(), ["metadata", "annotations", LAST_APPLIED_ANNOTATION], True, id="kubectls-copy"),
        pytest.param(build_secret(), ["metadata", "name"], False, id="its-name"),
        pytest.param(HELD, ["items", 0, "stringData", "p"], True, id="of-an-item"),
        pytest.param(HELD, ["spec", "template", "data", "p"], True, id="of-one-inside"),
        pytest.param(HELD, ["spec", "data", "p"], False, id="beside-one"),
        pytest.param({"kind": "ConfigMap", "data": {"p": "x"}}, ["data", "p"], False, id="a-configmap"),
        pytest.param(HELD, ["items", 7, "data"], False, id="no-such-item"),
    ],
)
def test_is_secret_value(data: object, path: list[str | int], expected: bool) -> None:
    assert is_secret_value(data, path) is expected
