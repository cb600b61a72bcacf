"""Tests of upsert-resource: which resource is replaced, and where a new one is added."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.functions.function import FunctionContext
from reconciler.packages.functions.resources import upsert_resource
from tests.unit.packages.builders import format_items, list_messages, parse_items, run_function

HEAD = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n"


def build_resource(name: str = "a", **annotations: str) -> dict[str, Any]:
    """Return a resource with the value 2."""
    noted = {"annotations": {f"config.kubernetes.io/{key.replace('_', '-')}": v for key, v in annotations.items()}}
    return {"apiVersion": "v1", "kind": "A", "metadata": {"name": name, **(noted if annotations else {})}, "v": 2}


def build_list(*entries: dict[str, Any]) -> dict[str, Any]:
    """Return a List with these resources."""
    return {"apiVersion": "v1", "kind": "List", "items": list(entries)}


@pytest.mark.parametrize(
    ("configuration", "before", "after"),
    [
        pytest.param(build_resource(), f"{HEAD}v: 1 # why\n", f"{HEAD}v: 2 # why\n", id="replaced"),
        pytest.param(build_resource(), f"{HEAD}v: 1\nm: 1\n", f"{HEAD}v: 2\n", id="replaced-as-a-whole"),
        pytest.param(
            build_resource(), f"{HEAD}v: 1\n---\n{HEAD}v: 3\n", f"{HEAD}v: 2\n---\n{HEAD}v: 2\n", id="every-match"
        ),
        pytest.param(
            build_resource(),
            f"{HEAD.replace('v1', 'v2')}v: 1\n",
            f"{HEAD}v: 2\n",
            id="the-version-does-not-count",
        ),
        pytest.param(build_resource(target_path="r.yaml"), f"{HEAD}v: 1\n", f"{HEAD}v: 2\n", id="at-this-path"),
        pytest.param(build_list(), f"{HEAD}v: 1\n", f"{HEAD}v: 1\n", id="empty-list"),
        pytest.param(build_list(build_resource()), f"{HEAD}v: 1\n", f"{HEAD}v: 2\n", id="list"),
        pytest.param(
            build_resource(),
            f"{HEAD}  annotations:\n    config.kubernetes.io/function: x\n",
            f"{HEAD}  annotations:\n    config.kubernetes.io/function: x\n---\n{HEAD}v: 2\n",
            id="never-a-function",
        ),
        pytest.param(
            {**build_resource(local_config="true")},
            f"{HEAD}v: 1\n",
            f'{HEAD}  annotations:\n    config.kubernetes.io/local-config: "true"\nv: 2\n',
            id="annotations-come-along",
        ),
    ],
)
def test_upsert_resource(configuration: dict[str, Any], before: str, after: str) -> None:
    output = run_function(upsert_resource, before, configuration)

    assert format_items(output.items) == after
    assert list_messages(output) == []


@pytest.mark.parametrize(
    ("configuration", "path"),
    [
        pytest.param(build_resource("b"), "", id="a-new-file"),
        pytest.param(build_resource("b", target_path="sub/b.yaml"), "sub/b.yaml", id="target-path"),
        pytest.param(build_resource("a", target_path="sub/b.yaml"), "sub/b.yaml", id="the-same-object-elsewhere"),
    ],
)
def test_added_resource_has_a_path(configuration: dict[str, Any], path: str) -> None:
    output = upsert_resource(parse_items(f"{HEAD}v: 1\n"), configuration, FunctionContext())
    added = output.items[-1]

    assert (len(output.items), added.id, added.path) == (2, None, path)
    assert "annotations" not in added.data["metadata"]


@pytest.mark.parametrize(
    ("configuration", "reason"),
    [
        pytest.param(None, "must have `apiVersion`", id="none"),
        pytest.param({"apiVersion": "v1", "kind": "A"}, "must have `metadata.name`", id="no-name"),
        pytest.param({"kind": "List", "items": [1]}, "items must be a list of resources", id="no-resource"),
    ],
)
def test_configuration_errors(configuration: dict[str, Any] | None, reason: str) -> None:
    output = run_function(upsert_resource, f"{HEAD}v: 1\n", configuration)

    assert output.has_failed
    assert reason in output.results[0].message
