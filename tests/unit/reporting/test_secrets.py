from __future__ import annotations

from typing import Any

import pytest

from reconciler.reporting.secrets import holds_secret, is_secret, mask, mask_trace, writes_secret

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


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


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(secret(data={"a": "eA=="}), secret(data={"a": "*****"}), id="data"),
        pytest.param(
            secret(stringData={"a": "x", "b": 1}), secret(stringData={"a": "*****", "b": "*****"}), id="stringdata"
        ),
        pytest.param(secret(data="oops"), secret(data="*****"), id="data-of-a-wrong-type"),
        pytest.param(secret(type="Opaque"), secret(type="Opaque"), id="the-rest-stays"),
        pytest.param(
            secret(metadata={"name": "n", "annotations": {LAST_APPLIED: "{}", "a": "b"}}),
            secret(metadata={"name": "n", "annotations": {LAST_APPLIED: "*****", "a": "b"}}),
            id="kubectls-copy-of-them",
        ),
        pytest.param(
            {"items": [secret(data={"a": "x"})]}, {"items": [secret(data={"a": "*****"})]}, id="inside-a-list"
        ),
        pytest.param({"data": {"m": "kind: Secret"}}, {"data": {"m": "*****"}}, id="a-manifest-in-a-text"),
        pytest.param({"data": {"a": "x"}}, {"data": {"a": "x"}}, id="what-is-no-secret-stays"),
    ],
)
def test_values_are_masked(data: Any, expected: Any) -> None:
    assert mask(data) == expected


def test_a_value_that_changed_is_said_to_be_changed_without_showing_it() -> None:
    before, after = secret(data={"a": "x", "b": "y"}), secret(data={"a": "x", "b": "z", "c": "new"})

    assert mask(after, before, compared=True)["data"] == {"a": "*****", "b": "***** (changed)", "c": "*****"}


def test_no_hash_of_a_secret_is_shown() -> None:
    trace = {
        "object v1 Secret default login": "sha256:1",
        "object v1 Secret default gone": "absent",
        "variant": "sha256:2",
    }

    assert list(mask_trace(trace).values()) == ["*****", "absent", "sha256:2"]
