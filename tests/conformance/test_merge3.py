"""kpt's own tests of the field merge, in the profile that reproduces kpt (`compat`) and in the profile `safe`.

Each row that differs in `compat` has a reason. Each row that differs in `safe` names its deviation. Both lists are exact.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.merge3 import COMPAT, SAFE, MergeError, MergeRules, merge3
from reconciler.krm.schema import load_builtin_merge_schemas
from reconciler.krm.schema.merge_schemas import UNKNOWN_SCHEMA, MergeSchema
from reconciler.krm.yaml import Document, parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.support.go_text import raw_string

DATA = Path(__file__).resolve().parents[2] / "../shared/data/kpt/merge3.json"
ROWS: list[dict[str, Any]] = json.loads(DATA.read_text()) if DATA.exists() else []
NAMED = {f"{row['file'].removesuffix('_test.go')}-{number}": row for number, row in enumerate(ROWS)}
EVERY = pytest.mark.parametrize("name", list(NAMED))

_NEW_KPT = "kpt no longer copies a changed comment if the value beside it is unchanged"
ONLY_OLD_KPT = {name: _NEW_KPT for name, row in NAMED.items() if row["kyaml_only"]}
# The merge of kpt fails for these rows. D7 and D22 define their results.
GOES_ON = "the merge of kpt fails, and this merge continues"

D4, D5, D9, D14 = "D4", "D5", "D9", "D14"
SAFE_DIFFERS = {
    "list: Add keep an omitted field": (D14, "a new key is inserted at its position in upstream"),
    "list: Explicitly clear a field": (D9, "a null in upstream is a value"),
    "map: Verify key style behavior": (D14, "a new key is inserted at its position in upstream"),
    "element: Add an element to an existing list": (D14, "the keys of a new element keep their order"),
    "element: Add a field to the element, element missing from dest": (
        D4,
        "a removed element is not partially restored",
    ),
    "element: Remove an element -- empty containers": (D5, "the list contains a local element, which is kept"),
    "element: Remove an element -- missing list field": (D5, "the list contains a local element, which is kept"),
    "element: no infer merge keys merge using schema": (D14, "a new key is inserted at its position in upstream"),
    "element: no infer merge keys merge using explicit schema as line comment'": (
        D14,
        "the comment does not change the position of a new key",
    ),
    "element: no infer merge keys merge using explicit schema as head comment'": (
        D14,
        "the comment does not change the position of a new key",
    ),
    "element: no infer merge keys merge using explicit schema to parent field header'": (
        D14,
        "the comment does not change the position of a new key",
    ),
    "element: Merge with name for same container-port": (D14, "the keys of a new element keep their order"),
}
ONLY_TEXT = (D14,)

pytestmark = pytest.mark.skipif(not ROWS, reason="the test data of other projects is not beside this project")


def read(text: str | None) -> Document | None:
    return next(iter(parse_yaml(raw_string(text)).documents), None)


def shape_of(row: dict[str, Any]) -> MergeSchema:
    """Return the shape as kpt finds it: from the first side that defines it."""
    for side in ("local", "origin", "update"):
        data = document.data if (document := read(row[side])) else {}
        if isinstance(data, dict) and data.get("kind") and data.get("apiVersion"):
            return load_builtin_merge_schemas().find_schema(data["apiVersion"], data["kind"])
    return UNKNOWN_SCHEMA


def merged(row: dict[str, Any], rules: MergeRules) -> Document | None:
    if row["infer"] and rules == COMPAT:
        rules = replace(rules, requires_names=True)
    origin, updated, local = (read(row[side]) for side in ("origin", "update", "local"))
    return merge3(origin, updated, local, shape_of(row), rules).document


def normal(text: str) -> list[str]:
    """Return the lines as kpt writes them: none blank, one space before a comment."""
    return [re.sub(r"(\S)\s+#", r"\1 #", line.rstrip()) for line in text.splitlines() if line.strip(" -")]


def find_difference(row: dict[str, Any], rules: MergeRules) -> str:
    """Return the difference from the merged document of kpt: "data", "text", or "" for equal documents."""
    ours, theirs = merged(row, rules), read(row["expected"])
    if ours is None or theirs is None:
        return "" if ours is theirs else "data"
    if not is_equal_data(ours.data, theirs.data):
        return "data"
    return "" if normal(ours.text) == normal(theirs.text) else "text"


@EVERY
def test_as_kpt_does_it(name: str) -> None:
    row = NAMED[name]
    if row["expect_error"]:
        with pytest.raises(MergeError):
            merged(row, COMPAT)
        return

    assert find_difference(row, COMPAT) == ("text" if name in ONLY_OLD_KPT else "")


@EVERY
def test_safely(name: str) -> None:
    row = NAMED[name]
    if row["expect_error"]:
        merged(row, SAFE)
        return
    table = row["file"].removesuffix("_test.go")
    rule, reason = SAFE_DIFFERS.get(f"{table}: {row['description']}", ("", ""))

    result = find_difference(row, SAFE)

    assert result == ("" if not rule else "text" if rule in ONLY_TEXT else "data"), reason


@EVERY
@pytest.mark.parametrize("rules", [pytest.param(COMPAT, id="compat"), pytest.param(SAFE, id="safe")])
def test_a_second_merge_is_silent(name: str, rules: MergeRules) -> None:
    row = NAMED[name]
    if row["expect_error"] and rules is COMPAT:
        return
    first = merged(row, rules)

    second = merge3(read(row["update"]), read(row["update"]), first, shape_of(row), rules)

    assert second.document is first or (second.document and first and second.document.text == first.text)
