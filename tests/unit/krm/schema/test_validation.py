"""Tests of the validation of objects with the schemas of their kind."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import metadata
from typing import Any

import pytest

from reconciler.krm.schema.validation import KubernetesSchemas, Violation, find_schemas_version, load_kubernetes_schemas

pytestmark = pytest.mark.skipif(not find_schemas_version(), reason="the schemas are an extra: k8s-schemas")


def load_schemas(*, strict: bool = True) -> KubernetesSchemas:
    kubernetes_schemas = load_kubernetes_schemas(strict=strict)
    assert kubernetes_schemas is not None
    return kubernetes_schemas


def build_config_map(**fields: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, **fields}


def build_service(**port: Any) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "a"}, "spec": {"ports": [port]}}


PORT = ("spec", "ports", 0)


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        pytest.param(build_config_map(data={"a": "b"}), [], id="valid"),
        pytest.param(
            build_config_map(data={"a": 1}), [Violation(("data", "a"), "type", ("null", "string"), 1)], id="wrong-type"
        ),
        pytest.param(
            build_config_map(spec={}, more=1), [Violation((), "unknown", ("spec", "more"))], id="unknown-fields"
        ),
        pytest.param(
            {"apiVersion": "apps/v1", "kind": "Deployment", "spec": {}},
            [Violation(("spec",), "required", ("selector", "template"))],
            id="missing-fields",
        ),
        pytest.param(
            build_config_map(metadata={"name": "a", "creationTimestamp": "now"}),
            [Violation(("metadata", "creationTimestamp"), "format", ("date-time",), "now")],
            id="format",
        ),
        pytest.param(
            build_service(port=80, targetPort=[]),
            [
                Violation(
                    (*PORT, "targetPort"),
                    "one-of",
                    value=[],
                    alternative=(Violation((*PORT, "targetPort"), "type", ("null", "string"), []),),
                )
            ],
            id="none-of-the-alternatives",
        ),
        pytest.param(build_service(port=80, targetPort=None), [], id="null-is-allowed-by-two-alternatives"),
        pytest.param(
            build_config_map(data={"a": float("inf")}),
            [Violation(("data", "a"), "type", ("null", "string"), 0.0)],
            id="a-number-that-json-lacks-is-no-null",
        ),
        pytest.param(
            build_config_map(zzz=1, data={"z": 1, "a": 2}, metadata={"name": 3}),
            [
                Violation((), "unknown", ("zzz",)),
                Violation(("metadata", "name"), "type", ("null", "string"), 3),
                Violation(("data", "z"), "type", ("null", "string"), 1),
                Violation(("data", "a"), "type", ("null", "string"), 2),
            ],
            id="in-the-order-of-the-text",
        ),
    ],
)
def test_violations(data: dict[str, Any], expected: list[Violation]) -> None:
    violations = load_schemas().find_violations(data)

    assert violations is not None
    assert list(violations) == expected


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("example.org/v1", "Deployment", id="another-group"),
        pytest.param("apps.example.org/v1", "Deployment", id="a-group-that-begins-alike"),
        pytest.param("apps/v1beta1", "Deployment", id="a-version-that-is-gone"),
        pytest.param("../apps/v1", "Deployment", id="a-path"),
        pytest.param("", "", id="nothing"),
    ],
)
def test_kinds_without_a_schema(api_version: str, kind: str) -> None:
    assert load_schemas().find_violations({"apiVersion": api_version, "kind": kind}) is None


def test_only_strict_schemas_reject_unknown_fields() -> None:
    assert load_schemas(strict=False).find_violations(build_config_map(spec={})) == ()


def test_value_of_the_wrong_type_has_one_violation() -> None:
    violations = load_schemas().find_violations({**build_config_map(), "immutable": "yes", "data": []})

    assert violations is not None
    assert [violation.rule for violation in violations] == ["type", "type"]


def test_deep_objects_are_validated() -> None:
    data: Any = "x"
    for _ in range(90):
        data = [data]

    assert load_schemas().find_violations(build_config_map(data={"a": data})) is not None


@pytest.fixture
def without_schemas(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    def version(name: str) -> str:
        raise metadata.PackageNotFoundError(name)

    monkeypatch.setattr(metadata, "version", version)
    find_schemas_version.cache_clear()
    load_kubernetes_schemas.cache_clear()
    yield
    find_schemas_version.cache_clear()
    load_kubernetes_schemas.cache_clear()


@pytest.mark.usefixtures("without_schemas")
def test_no_schemas_without_the_extra() -> None:
    assert find_schemas_version() == ""
    assert load_kubernetes_schemas(strict=True) is None
