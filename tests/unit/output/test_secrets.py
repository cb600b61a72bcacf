from __future__ import annotations

from typing import Any

import pytest

from reconciler.output.json_data import mask_secrets, mask_trace

LAST_APPLIED = "kubectl.kubernetes.io/last-applied-configuration"


def build_secret(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Secret", **fields}


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


def test_hash_of_a_secret_is_masked() -> None:
    trace = {
        "object v1 Secret default login": "sha256:1",
        "object v1 Secret default gone": "absent",
        "variant": "sha256:2",
    }

    assert list(mask_trace(trace).values()) == ["*****", "absent", "sha256:2"]
