"""Matching: which documents are one resource."""

from __future__ import annotations

import pytest

from reconciler.krm.yaml import YamlFile
from reconciler.packages.parsing import parse_cached
from reconciler.packages.update.matching import Entry, Group, duplicates, match
from tests.unit.packages.update.builders import thing


def entries(path: str, *names: str) -> list[Entry]:
    file = parse_cached("---\n".join(thing(name) for name in names).encode())
    assert isinstance(file, YamlFile)
    return [Entry("", path, index, document) for index, document in enumerate(file.documents)]


def shown(groups: tuple[Group, ...]) -> list[str]:
    sides = [(group.origin, group.updated, group.local) for group in groups]
    return [" ".join(f"{entry.path}.{entry.name}" if entry else "-" for entry in each) for each in sides]


@pytest.mark.parametrize(
    ("origin", "updated", "local", "expected"),
    [
        pytest.param([("x", "a")], [("x", "a")], [("x", "a")], ["x.a x.a x.a"], id="exact"),
        pytest.param([("x", "a")], [("x", "a")], [("y", "a")], ["x.a x.a y.a"], id="moved-here"),
        pytest.param([("x", "a")], [("y", "a")], [("x", "a")], ["x.a y.a x.a"], id="moved-upstream"),
        pytest.param([("x", "a")], [("y", "a")], [("z", "a")], ["x.a y.a z.a"], id="moved-by-both"),
        pytest.param([], [("y", "a")], [("z", "a")], ["- y.a z.a"], id="added-by-both"),
        pytest.param(
            [("x", "a")], [("x", "a")], [("y", "a"), ("z", "a")], ["- - y.a", "- - z.a", "x.a x.a -"], id="ambiguous"
        ),
        pytest.param(
            [("x", "a"), ("y", "a")], [("x", "a")], [("x", "a"), ("y", "a")], ["x.a x.a x.a", "y.a - y.a"], id="copies"
        ),
    ],
)
def test_match(
    origin: list[tuple[str, str]], updated: list[tuple[str, str]], local: list[tuple[str, str]], expected: list[str]
) -> None:
    sides = [[entry for path, name in side for entry in entries(path, name)] for side in (origin, updated, local)]

    assert shown(match(sides, moved=True, noted=False)) == expected


def test_nameless_documents_are_not_followed() -> None:
    values = parse_cached(b"a: 1\n")
    assert isinstance(values, YamlFile)
    sides = [[Entry("", path, 0, values.documents[0])] for path in "xxy"]

    assert len(match(sides, moved=True, noted=True)) == 2


def test_duplicates() -> None:
    first, _, third = entries("x", "a", "b", "a")

    assert list(duplicates([*entries("x", "a", "b", "a"), *entries("y", "a")])) == [(first, third)]
