"""Tests of the pipeline functions of a variant: they run first, and their names contain the name of the variant."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.porch.package_variant import PipelineFunction
from reconciler.controllers.package_variants.mutation import is_variant_function, prepend_functions


@pytest.mark.parametrize(
    ("name", "variant", "owned"),
    [
        pytest.param("PackageVariant.my-pv.fn.0", "my-pv", True, id="named-function"),
        pytest.param("PackageVariant.my-pv..12", "my-pv", True, id="unnamed-function"),
        pytest.param("PackageVariant.my.pv.fn.0", "my.pv", True, id="variant-with-a-dot"),
        pytest.param("PackageVariant.my.pv.fn.0", "my", False, id="another-variant-with-a-dot"),
        pytest.param("PackageVariant.other.fn.0", "my-pv", False, id="another-variant"),
        pytest.param("PackageVariant.a.b.c", "a", False, id="last-segment-is-not-a-number"),
        pytest.param("PackageVariant.my-pv.fn.-1", "my-pv", False, id="negative-number"),
        pytest.param("PackageVariant.my-pv.fn.²", "my-pv", False, id="a-digit-that-is-no-number"),
        pytest.param("PackageVariant.my-pv.0", "my-pv", False, id="too-few-segments"),
        pytest.param("packagevariant.my-pv.fn.0", "my-pv", False, id="another-prefix"),
        pytest.param("fn", "my-pv", False, id="plain-name"),
        pytest.param("", "my-pv", False, id="empty-name"),
        pytest.param(None, "my-pv", False, id="no-name"),
    ],
)
def test_function_name_identifies_its_variant(name: object, variant: str, owned: bool) -> None:
    assert is_variant_function(name, variant) is owned


FOREIGN = {"image": "set-labels:v0.1", "configMap": {"a": "b"}}
OTHERS = {"image": "x", "name": "PackageVariant.other.fn.0"}
OLD = {"image": "x", "name": "PackageVariant.pv.old.0"}
STAMP = PipelineFunction(image="set-annotations:v0.1.4", name="stamp", config_map={"k": "v"})


@pytest.mark.parametrize(
    ("existing", "own", "expected"),
    [
        pytest.param([], [], [], id="nothing"),
        pytest.param([FOREIGN], [], [FOREIGN], id="nothing-to-add"),
        pytest.param(
            [],
            [STAMP],
            [{"image": "set-annotations:v0.1.4", "name": "PackageVariant.pv.stamp.0", "configMap": {"k": "v"}}],
            id="to-none",
        ),
        pytest.param(
            [FOREIGN, OTHERS],
            [PipelineFunction(image="a"), PipelineFunction(image="b", name="c")],
            [
                {"image": "a", "name": "PackageVariant.pv..0"},
                {"image": "b", "name": "PackageVariant.pv.c.1"},
                FOREIGN,
                OTHERS,
            ],
            id="before-other-functions",
        ),
        pytest.param([OLD, FOREIGN, OLD], [], [FOREIGN], id="older-own-functions-are-removed"),
    ],
)
def test_functions_are_prepended_once(
    existing: list[dict[str, Any]], own: list[PipelineFunction], expected: list[dict[str, Any]]
) -> None:
    result = prepend_functions(existing, own, "pv")

    assert result == expected
    assert prepend_functions(result, own, "pv") == result
