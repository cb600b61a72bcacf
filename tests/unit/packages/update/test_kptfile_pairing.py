"""Tests of the pairing of functions between the sides of a merge."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.packages.update.kptfile_functions import (
    get_function_base,
    is_variant_function,
    number_functions,
    pair_functions,
)

Entry = dict[str, Any]


def build_function(image: str, name: str = "", **config: str) -> Entry:
    return {"image": image} | ({"name": name} if name else {}) | ({"configMap": config} if config else {})


A, B, C = build_function("a:v1"), build_function("b:v1"), build_function("c:v1")


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        pytest.param([], [A], {}, id="nothing-before"),
        pytest.param([A, B], [B, A], {0: 1, 1: 0}, id="order-does-not-matter"),
        pytest.param(
            [build_function("r.io/x/a:v1")], [build_function("q.io:5000/a@sha256:0")], {0: 0}, id="registry-tag-digest"
        ),
        pytest.param([A], [B], {}, id="another-image"),
        pytest.param([build_function("a", "n")], [build_function("b", "n")], {0: 0}, id="name-before-image"),
        pytest.param([build_function("a", "n"), A], [A, build_function("a", "n")], {0: 1, 1: 0}, id="name-and-none"),
        pytest.param([A], [build_function("a", "new")], {0: 0}, id="gets-a-name"),
        pytest.param([build_function("a", "old")], [A], {0: 0}, id="loses-its-name"),
        pytest.param([build_function("a", "old")], [build_function("a", "new")], {}, id="two-names-are-two-functions"),
        pytest.param(
            [build_function("a", "n"), build_function("a", "n")],
            [build_function("a", "n"), build_function("a", "n")],
            {0: 0, 1: 1},
            id="a-name-twice",
        ),
        pytest.param(
            [build_function("a", x="1"), build_function("a", x="2")],
            [build_function("a", x="2")],
            {0: 1},
            id="equal-one-of-two",
        ),
        pytest.param(
            [build_function("a", by="x", put="y")],
            [build_function("a", by="q", put="r"), build_function("a", by="x", put="z")],
            {1: 0},
            id="most-alike",
        ),
        pytest.param(
            [build_function("a", x="1"), build_function("a", x="2")],
            [build_function("a", x="3"), build_function("a", x="4")],
            {0: 0, 1: 1},
            id="nearest",
        ),
        pytest.param(
            [A],
            [build_function("a:v1", "PackageVariant.p.a.0"), build_function("a:v2")],
            {1: 0},
            id="variant-function-matched-by-name",
        ),
        pytest.param([{"exec": "sed -e x"}], [{"exec": "sed -e y"}, {"exec": "awk"}], {0: 0}, id="command"),
        pytest.param([{"exec": "sed"}], [build_function("sed")], {}, id="command-and-image"),
        pytest.param([{"name": "n"}], [{"name": "n"}, {}], {0: 0}, id="neither-image-nor-command"),
    ],
)
def test_pair_functions(before: list[Entry], after: list[Entry], pairs: dict[int, int]) -> None:
    assert pair_functions(before, after) == pairs


def test_many_functions_of_one_image_are_paired_by_order() -> None:
    functions = [build_function("a", x=str(number)) for number in range(200)]

    assert pair_functions(functions, functions[1:]) == {index: index for index in range(199)}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "numbers"),
    [
        pytest.param([A, B], [B, A], [A], ([0, 1], [1, 0], [0]), id="numbers-of-origin"),
        pytest.param([A], [A, C], [A, B], ([0], [0, 2], [0, 1]), id="additions"),
        pytest.param([], [A, C], [B, A], ([], [1, 2], [0, 1]), id="added-by-both"),
        pytest.param(
            [A], [build_function("a:v2", "n")], [build_function("a:v1", "n")], ([0], [0], [0]), id="named-by-both"
        ),
    ],
)
def test_number_functions(
    origin: list[Entry], updated: list[Entry], local: list[Entry], numbers: tuple[list[int], list[int], list[int]]
) -> None:
    sides = number_functions(origin, updated, local)

    assert tuple(list(side) for side in sides) == numbers
    assert tuple(list(side.values()) for side in sides) == (origin, updated, local)


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        pytest.param("PackageVariant.site-a.note.0", True, id="ours"),
        pytest.param("PackageVariant.site.a.note.12", True, id="variant-with-a-dot"),
        pytest.param("PackageVariant.site-a..0", True, id="function-without-a-name"),
        pytest.param("PackageVariant.a.b.c", False, id="no-index"),
        pytest.param("PackageVariant.a.0", False, id="too-short"),
        pytest.param("note", False, id="any-other"),
        pytest.param(None, False, id="none"),
    ],
)
def test_is_variant_function(name: str | None, expected: bool) -> None:
    assert is_variant_function({"name": name}) is expected


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        pytest.param({"image": "localhost:5000/x/set-labels:v1@sha256:0"}, ("image", "set-labels"), id="full"),
        pytest.param({"image": "set-labels"}, ("image", "set-labels"), id="short"),
        pytest.param({"exec": "/bin/sed -e s/a/b/"}, ("exec", "/bin/sed"), id="command"),
        pytest.param({"exec": " "}, ("exec", ""), id="blank"),
    ],
)
def test_function_base(function: Entry, expected: tuple[str, str]) -> None:
    assert get_function_base(function) == expected
