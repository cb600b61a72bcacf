"""Pairing of functions: which one is which on another side."""

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


def fn(image: str, name: str = "", **config: str) -> Entry:
    return {"image": image} | ({"name": name} if name else {}) | ({"configMap": config} if config else {})


A, B, C = fn("a:v1"), fn("b:v1"), fn("c:v1")


@pytest.mark.parametrize(
    ("before", "after", "pairs"),
    [
        pytest.param([], [A], {}, id="nothing-before"),
        pytest.param([A, B], [B, A], {0: 1, 1: 0}, id="order-does-not-matter"),
        pytest.param([fn("r.io/x/a:v1")], [fn("q.io:5000/a@sha256:0")], {0: 0}, id="registry-tag-digest"),
        pytest.param([A], [B], {}, id="another-image"),
        pytest.param([fn("a", "n")], [fn("b", "n")], {0: 0}, id="name-before-image"),
        pytest.param([fn("a", "n"), A], [A, fn("a", "n")], {0: 1, 1: 0}, id="name-and-none"),
        pytest.param([A], [fn("a", "new")], {0: 0}, id="gets-a-name"),
        pytest.param([fn("a", "old")], [A], {0: 0}, id="loses-its-name"),
        pytest.param([fn("a", "old")], [fn("a", "new")], {}, id="two-names-are-two-functions"),
        pytest.param([fn("a", "n"), fn("a", "n")], [fn("a", "n"), fn("a", "n")], {0: 0, 1: 1}, id="a-name-twice"),
        pytest.param([fn("a", x="1"), fn("a", x="2")], [fn("a", x="2")], {0: 1}, id="equal-one-of-two"),
        pytest.param(
            [fn("a", by="x", put="y")], [fn("a", by="q", put="r"), fn("a", by="x", put="z")], {1: 0}, id="most-alike"
        ),
        pytest.param([fn("a", x="1"), fn("a", x="2")], [fn("a", x="3"), fn("a", x="4")], {0: 0, 1: 1}, id="nearest"),
        pytest.param([A], [fn("a:v1", "PackageVariant.p.a.0"), fn("a:v2")], {1: 0}, id="a-variants-is-told-by-name"),
        pytest.param([{"exec": "sed -e x"}], [{"exec": "sed -e y"}, {"exec": "awk"}], {0: 0}, id="command"),
        pytest.param([{"exec": "sed"}], [fn("sed")], {}, id="command-and-image"),
        pytest.param([{"name": "n"}], [{"name": "n"}, {}], {0: 0}, id="neither-image-nor-command"),
    ],
)
def test_pair_functions(before: list[Entry], after: list[Entry], pairs: dict[int, int]) -> None:
    assert pair_functions(before, after) == pairs


def test_many_of_one_image_are_paired_by_order() -> None:
    functions = [fn("a", x=str(number)) for number in range(200)]

    assert pair_functions(functions, functions[1:]) == {index: index for index in range(199)}


@pytest.mark.parametrize(
    ("origin", "updated", "local", "numbers"),
    [
        pytest.param([A, B], [B, A], [A], ([0, 1], [1, 0], [0]), id="numbers-of-origin"),
        pytest.param([A], [A, C], [A, B], ([0], [0, 2], [0, 1]), id="additions"),
        pytest.param([], [A, C], [B, A], ([], [1, 2], [0, 1]), id="added-by-both"),
        pytest.param([A], [fn("a:v2", "n")], [fn("a:v1", "n")], ([0], [0], [0]), id="named-by-both"),
    ],
)
def test_numbered(
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
def test_is_of_a_variant(name: str | None, expected: bool) -> None:
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
def test_base_name(function: Entry, expected: tuple[str, str]) -> None:
    assert get_function_base(function) == expected
