"""Tests of the models: any input gives a model or errors, and never an exception."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.manifest import read_manifest
from reconciler.api.porch.messages import format_compact_json
from reconciler.api.porch.package_variant import PackageVariant
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from tests.support.examples import examples

SCALARS = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-2, 3),
    st.floats(allow_nan=False),
    st.sampled_from(["", "a", "A b", "v1", "/", "é"]),
)
NAMES = st.sampled_from(
    ["upstream", "downstream", "repo", "package", "revision", "tag", "ref", "tagPolicy", "settle", "workspaceName",
     "adoptionPolicy", "labels", "packageContext", "data", "removeKeys", "pipeline", "mutators", "image", "configMap",
     "selectors", "injectors", "name", "targets", "upstreams", "upstreamSets", "repositories", "repositorySelector",
     "objectSelector", "matchLabels", "matchExpressions", "key", "operator", "values", "packageNames", "template",
     "labelExprs", "keyExpr", "valueExpr", "removeKeyExprs", "injectorExprs", "nameExpr", "errorPolicy", "x"]
)  # fmt: skip
WRITTEN = st.recursive(
    SCALARS,
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.one_of(NAMES, SCALARS), inner)),
    max_leaves=12,
)
SPECS = st.one_of(WRITTEN, st.dictionaries(NAMES, WRITTEN, max_size=8))


@settings(max_examples=examples(60), deadline=None)
@given(SPECS, WRITTEN)
@pytest.mark.parametrize(
    ("read", "version"),
    [
        pytest.param(partial(read_manifest, PackageVariant), "config.porch.kpt.dev/v1alpha1", id="variant"),
        pytest.param(
            partial(read_package_variant_set, cel_limits=ExpressionLimits()), "config.porch.kpt.dev/v1alpha2", id="set"
        ),
        pytest.param(partial(read_manifest, PackageRevisionSet), "reconciler.dev/v1alpha1", id="revision-set"),
    ],
)
def test_reading_returns_a_model_or_errors(read: Any, version: str, spec: Any, metadata: Any) -> None:
    result = read({"apiVersion": version, "kind": "K", "metadata": metadata, "spec": spec})

    assert (result.model is None) == bool(result.errors)
    assert all(error.text for error in result.errors)


@pytest.mark.parametrize(
    ("value", "text"),
    [
        pytest.param({"b": 1, "a": "x"}, '{"a":"x","b":1}', id="sorted-and-compact"),
        pytest.param({1: 2, "a": [{True: 0}]}, '{"1":2,"a":[{"True":0}]}', id="keys-of-any-type"),
        pytest.param("é", '"é"', id="letters-as-they-are"),
        pytest.param(None, "null", id="null"),
    ],
)
def test_json_value_is_formatted_compactly(value: Any, text: str) -> None:
    assert format_compact_json(value) == text
