from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.json_data import mask_secrets, mask_trace
from tests.support.sops import ciphertext

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def build_secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", **fields}


def build_sealed_secret(**spec: Any) -> dict[str, Any]:
    return {"apiVersion": "bitnami.com/v1alpha1", "kind": "SealedSecret", "spec": spec}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(build_secret(data={"a": "eA=="}), build_secret(data={"a": "*****"}), id="data"),
        pytest.param(
            build_secret(stringData={"a": "x", "b": 1}),
            build_secret(stringData={"a": "*****", "b": "*****"}),
            id="stringdata",
        ),
        pytest.param(build_secret(data="oops"), build_secret(data="*****"), id="data-of-a-wrong-type"),
        pytest.param(build_secret(type="Opaque"), build_secret(type="Opaque"), id="the-rest-stays"),
        pytest.param(
            build_secret(metadata={"name": "n", "annotations": {LAST_APPLIED: "{}", "a": "b"}}),
            build_secret(metadata={"name": "n", "annotations": {LAST_APPLIED: "*****", "a": "b"}}),
            id="kubectls-copy-of-them",
        ),
        pytest.param(
            {"items": [build_secret(data={"a": "x"})]},
            {"items": [build_secret(data={"a": "*****"})]},
            id="inside-a-list",
        ),
        pytest.param({"data": {"m": "kind: Secret"}}, {"data": {"m": "*****"}}, id="a-manifest-in-a-text"),
        pytest.param({"data": {"a": "x"}}, {"data": {"a": "x"}}, id="what-is-no-secret-stays"),
        pytest.param(
            build_secret(data={"a": ciphertext("a"), "b": "eA=="}, sops={"mac": ciphertext("mac"), "version": "3"}),
            build_secret(data={"a": "ENC[…]", "b": "*****"}, sops={"mac": "ENC[…]", "version": "3"}),
            id="sops-document",
        ),
        pytest.param(
            {"data": {"f": f"key={ciphertext('a')}"}}, {"data": {"f": "key=ENC[…]"}}, id="ciphertext-in-a-text"
        ),
        pytest.param(
            build_sealed_secret(encryptedData={"a": "AgA"}, template={"type": "Opaque"}),
            build_sealed_secret(encryptedData={"a": "*****"}, template={"type": "Opaque"}),
            id="sealed-secret",
        ),
        pytest.param(
            {"kind": "SealedSecret", "apiVersion": "example.com/v1", "spec": {"encryptedData": {"a": "AgA"}}},
            {"kind": "SealedSecret", "apiVersion": "example.com/v1", "spec": {"encryptedData": {"a": "AgA"}}},
            id="other-group",
        ),
    ],
)
def test_values_are_masked(data: Any, expected: Any) -> None:
    assert mask_secrets(data) == expected


def test_changed_value_is_marked_without_the_value() -> None:
    before, after = build_secret(data={"a": "x", "b": "y"}), build_secret(data={"a": "x", "b": "z", "c": "new"})

    assert mask_secrets(after, before, should_mark_changes=True)["data"] == {
        "a": "*****",
        "b": "***** (changed)",
        "c": "*****",
    }


def test_changed_ciphertext_is_marked() -> None:
    before, after = build_secret(data={"a": ciphertext("a")}), build_secret(data={"a": ciphertext("b")})
    assert mask_secrets(after, before, should_mark_changes=True)["data"] == {"a": "ENC[…] (changed)"}
    before, after = build_sealed_secret(encryptedData={"a": "x"}), build_sealed_secret(encryptedData={"a": "y"})
    assert mask_secrets(after, before, should_mark_changes=True)["spec"] == {"encryptedData": {"a": "***** (changed)"}}


def test_hash_of_a_secret_is_masked() -> None:
    trace = {
        "object v1 Secret default login": "sha256:1",
        "object v1 Secret default gone": "absent",
        "variant": "sha256:2",
    }

    assert list(mask_trace(trace).values()) == ["*****", "absent", "sha256:2"]
