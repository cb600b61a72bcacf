"""Tests of the registry, which maps images to functions."""

from __future__ import annotations

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.functions.set_namespace import set_namespace

NEWEST = 1_000_000


@pytest.mark.parametrize(
    ("image", "version", "warns"),
    [
        pytest.param("set-namespace:v0.4.1", (0, 4, 1), False, id="exact"),
        pytest.param("ghcr.io/kptdev/krm-functions-catalog/set-namespace:v0.4.1", (0, 4, 1), False, id="registry"),
        pytest.param("localhost:5000/set-namespace:v0.1", (0, 1, NEWEST), False, id="port-and-minor"),
        pytest.param("set-namespace", (0, 5, NEWEST), False, id="no-tag"),
        pytest.param("set-namespace:latest", (0, 5, NEWEST), False, id="latest"),
        pytest.param("set-namespace:unstable", (0, 5, NEWEST), False, id="unstable"),
        pytest.param("set-namespace:v9.9.9", (0, 5, NEWEST), True, id="unknown-version"),
        pytest.param("set-namespace:mine", (0, 5, NEWEST), True, id="unknown-tag"),
        pytest.param("set-namespace@sha256:" + "a" * 64, (0, 5, NEWEST), True, id="digest"),
        pytest.param("set-namespace:v0.3.4@sha256:" + "a" * 64, (0, 3, 4), False, id="tag-and-digest"),
    ],
)
def test_find(image: str, version: tuple[int, int, int], warns: bool) -> None:
    function_match = BUILTIN_FUNCTIONS.find(FunctionSpec(image=image))

    assert function_match is not None
    assert (function_match.function, function_match.version, bool(function_match.warning)) == (
        set_namespace,
        version,
        warns,
    )


@pytest.mark.parametrize(
    ("tag", "version"),
    [
        pytest.param("v0.2.0", (0, 2, 0), id="exact"),
        pytest.param("~0.3", (0, 3, NEWEST), id="tilde"),
        pytest.param("0.4.x", (0, 4, NEWEST), id="wildcard"),
        pytest.param(">=0.1 <0.3", (0, 5, NEWEST), id="ranges-are-not-read"),
    ],
)
def test_tag_has_priority_over_the_image(tag: str, version: tuple[int, int, int]) -> None:
    function_match = BUILTIN_FUNCTIONS.find(FunctionSpec(image="set-namespace:v0.4.1", tag=tag))

    assert function_match is not None
    assert function_match.version == version


@pytest.mark.parametrize(
    ("image", "name", "warns"),
    [
        pytest.param("gcr.io/kpt-fn/set-image:v0.1.2", "set_image", False, id="set-image"),
        pytest.param("gcr.io/kpt-fn/create-setters:v0.1.0", "create_setters", False, id="create-setters"),
        pytest.param("gcr.io/kpt-fn/list-setters:v0.1", "list_setters", False, id="list-setters"),
        pytest.param("gcr.io/kpt-fn/upsert-resource:v0.2.1", "upsert_resource", False, id="upsert-resource"),
        pytest.param("gcr.io/kpt-fn/upsert-resource:v0.1.0", "upsert_resource", True, id="upsert-without-lists"),
        pytest.param(
            "gcr.io/kpt-fn/ensure-name-substring:v0.1.1", "ensure_name_substring", False, id="ensure-name-substring"
        ),
        pytest.param("gcr.io/kpt-fn-contrib/delete-annotations:v0.1", "delete_annotations", False, id="contrib"),
        pytest.param("gcr.io/kpt-fn/set-project-id:v0.2.1", "set_project_id", False, id="set-project-id"),
        pytest.param("gcr.io/kpt-fn/set-image:v0.3.0", "set_image", True, id="a-release-to-come"),
    ],
)
def test_function_by_image(image: str, name: str, warns: bool) -> None:
    function_match = BUILTIN_FUNCTIONS.find(FunctionSpec(image=image))

    assert function_match is not None
    assert (getattr(function_match.function, "__name__", ""), bool(function_match.warning)) == (name, warns)


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(FunctionSpec(image="docker.io/nephio/nad-fn:v1"), id="unknown-image"),
        pytest.param(FunctionSpec(exec="sed -e s/a/b/"), id="exec"),
    ],
)
def test_unknown_functions_are_not_found(spec: FunctionSpec) -> None:
    assert BUILTIN_FUNCTIONS.find(spec) is None
