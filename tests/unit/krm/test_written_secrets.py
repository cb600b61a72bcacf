"""Secrets: what counts as one, wherever it stands."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.krm.secrets import holds_secret, is_secret, writes_secret


def secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", **fields}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(secret(), True, id="a-core-secret"),
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
        pytest.param({"kind": "List", "items": [secret()]}, True, id="in-a-list"),
        pytest.param({"data": {"m.yaml": "kind: Secret\ndata: {}"}}, True, id="as-the-text-of-a-manifest"),
        pytest.param({"data": {"m.yaml": "kind: SecretStore"}}, False, id="another-kind-that-begins-so"),
        pytest.param([1, None, "x"], False, id="nothing-of-the-kind"),
    ],
)
def test_holds_secret(data: object, expected: bool) -> None:
    assert holds_secret(data) is expected


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: Secret", id="yaml"),
        pytest.param('{"kind": "Secret"}', id="json"),
        pytest.param("kind :  'Secret'", id="quoted-with-blanks"),
        pytest.param("# kind: Secret", id="commented-out"),
    ],
)
def test_a_text_may_be_a_secret(text: str) -> None:
    assert writes_secret(text)
