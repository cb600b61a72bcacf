"""Tests of the lines of fields that provenance refers to."""

from __future__ import annotations

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.krm.field_text import format_path
from reconciler.krm.yaml import DataPath
from reconciler.output.config_fields import ConfigFieldLocator, parse_field_path
from tests.unit.output.builders import build_tree

DATA = {"a": {"b": [{"c": 1}, [2]], "b.c": 3, "x/y.z": {"w": 4}}, "a.b": 5, "": 6}


@pytest.mark.parametrize(
    "path",
    [(), ("a",), ("a", "b", 0, "c"), ("a", "b", 1, 0), ("a", "b.c"), ("a", "x/y.z", "w"), ("a.b",)],
    ids=format_path,
)
def test_formatted_path_is_parsed_to_the_same_path(path: DataPath) -> None:
    assert parse_field_path(DATA, format_path(path)) == path


@pytest.mark.parametrize("field", ["b", "a.c", "a.b[2]", "a.b[0].d", "a.bc", "a.b[0].c.d", "a.b (earlier text)"])
def test_unknown_path_is_not_found(field: str) -> None:
    assert parse_field_path(DATA, field) is None


ONE = "apiVersion: x/v1\nkind: Policy\nmetadata:\n  name: site\nspec:\n  rules:\n    - a: 1\n"
OTHER = ONE.replace("x/v1", "y/v1")


@pytest.mark.parametrize(
    ("files", "name", "field", "file", "expected"),
    [
        pytest.param({"p.yaml": ONE}, "Policy/_cluster/site", "spec.rules[0].a", "", ("p.yaml", 7), id="field"),
        pytest.param({"p.yaml": ONE}, "Policy/site", "spec.rules[0]", "", ("p.yaml", 7), id="as-policies-are-called"),
        pytest.param({"p.yaml": "# why\n" + ONE}, "Policy/site", "", "p.yaml", ("p.yaml", 2), id="whole-object"),
        pytest.param({"p.yaml": ONE}, "Policy/site", "spec.rules[1]", "p.yaml", ("p.yaml", 0), id="field-that-is-gone"),
        pytest.param({"p.yaml": ONE}, "Policy/other", "spec", "", ("", 0), id="unknown-object"),
        pytest.param({"p.yaml": ONE, "q.yaml": OTHER}, "Policy/site", "spec", "", ("", 0), id="two-of-one-name"),
        pytest.param({"p.yaml": ONE, "q.yaml": OTHER}, "Policy/site", "spec", "q.yaml", ("q.yaml", 5), id="by-file"),
    ],
)
def test_file_and_line_of_a_field(
    files: dict[str, str], name: str, field: str, file: str, expected: tuple[str, int]
) -> None:
    lines = ConfigFieldLocator(read_catalog(build_tree(files)).objects.values())

    assert lines.find_line(name, field, file) == expected
