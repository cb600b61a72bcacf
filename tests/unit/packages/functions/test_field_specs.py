"""Tests of field specs: the concrete paths that match a pattern."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from reconciler.api.functions import FieldSpecEntry
from reconciler.packages.functions.field_specs import FieldSpec, convert_field_specs
from tests.unit.packages.builders import parse_items

DATA = {
    "apiVersion": "apps/v1",
    "kind": "Deployment",
    "spec": {"list": [{"a": 1}, {"b": 2}, 3], "map": {"x/y": 1}, "null": None, "text": "t"},
}


@pytest.mark.parametrize(
    ("spec", "expected"),
    [
        pytest.param(FieldSpec("spec/map"), [("spec", "map")], id="present"),
        pytest.param(FieldSpec("spec/new"), [], id="absent-is-not-created"),
        pytest.param(FieldSpec("spec/new/deep", create=True), [("spec", "new", "deep")], id="created"),
        pytest.param(FieldSpec("spec/null/a", create=True), [("spec", "null", "a")], id="null-counts-as-absent"),
        pytest.param(FieldSpec("spec/text/a", create=True), [], id="a-scalar-has-no-fields"),
        pytest.param(FieldSpec("spec/list[]/a"), [("spec", "list", 0, "a")], id="elements"),
        pytest.param(FieldSpec("spec/list/a"), [("spec", "list", 0, "a")], id="elements-untold"),
        pytest.param(FieldSpec("spec/list[]"), [("spec", "list", n) for n in range(3)], id="elements-themselves"),
        pytest.param(FieldSpec("spec/none[]/a", create=True), [], id="lists-are-not-created"),
        pytest.param(FieldSpec("spec/new?/a", create=True), [], id="question-mark-needs-the-field"),
        pytest.param(FieldSpec("spec/map/x\\/y"), [("spec", "map", "x/y")], id="escaped-slash"),
        pytest.param(FieldSpec("kind", kind="Deployment"), [("kind",)], id="kind"),
        pytest.param(FieldSpec("kind", kind="Service"), [], id="another-kind"),
        pytest.param(FieldSpec("kind", group="apps", version="v1"), [("kind",)], id="group-and-version"),
        pytest.param(FieldSpec("kind", group=""), [], id="core-group"),
    ],
)
def test_find_paths(spec: FieldSpec, expected: list[Any]) -> None:
    assert list(spec.find_paths(parse_items(yaml.safe_dump(DATA))[0])) == expected


def test_convert_field_specs() -> None:
    entries = [FieldSpecEntry(path="a", group="g", kind="K", version="v", create=True), FieldSpecEntry(kind="no path")]

    assert convert_field_specs(entries) == (FieldSpec("a", "K", "g", "v", create=True),)
    assert convert_field_specs(()) == ()
