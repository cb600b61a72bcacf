"""Tests of merge comments: which resources receive one, and the additions of compat."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.packages.clone import add_merge_comments
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from tests.unit.packages.builders import build_tree, read_texts

DATA = Path(__file__).resolve().parents[3] / "../shared/data/kpt/packages.json"
ROWS: list[dict[str, Any]] = json.loads(DATA.read_text())["TestAddMetadataComment"] if DATA.exists() else []
HEAD = "apiVersion: v1\nkind: ConfigMap\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("metadata:\n  name: a\n", "metadata: # kpt-merge: /a\n  name: a\n", id="no-namespace"),
        pytest.param(
            "metadata:\n  name: a\n  namespace: n\n",
            "metadata: # kpt-merge: n/a\n  name: a\n  namespace: n\n",
            id="namespace",
        ),
        pytest.param(
            "metadata: # kpt-merge: x/y\n  name: a\n", "metadata: # kpt-merge: x/y\n  name: a\n", id="present"
        ),
        pytest.param("metadata: # mine\n  name: a\n", "metadata: # mine\n  name: a\n", id="unrelated-comment"),
        pytest.param("metadata:\n  annotations: {}\n", "metadata:\n  annotations: {}\n", id="no-identity"),
        pytest.param("data: {}\n", "data: {}\n", id="no-metadata"),
    ],
)
def test_add_merge_comments(before: str, after: str) -> None:
    files, findings = add_merge_comments(build_tree({"r.yaml": HEAD + before}))

    assert read_texts(files) == {"r.yaml": HEAD + after}
    assert findings == ()
    assert add_merge_comments(files)[0] == files


def test_ignored_and_other_files_stay() -> None:
    text = HEAD + "metadata:\n  name: a\n"
    before = build_tree(
        {"Kptfile": text, ".krmignore": "hidden.yaml\n", "hidden.yaml": text, "a.json": '{"metadata": {"name": "a"}}'}
    )

    assert add_merge_comments(before)[0] == before


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param("  name: a\n", "  name: a\n  annotations:\n    {}: '|ConfigMap|default|a'\n", id="no-annotations"),
        pytest.param(
            "  annotations:\n    x: y\n  name: a\n",
            "  annotations:\n    x: y\n    {}: '|ConfigMap|default|a'\n  name: a\n",
            id="beside-another",
        ),
        pytest.param(
            "  name: it's\n", "  name: it's\n  annotations:\n    {}: '|ConfigMap|default|it''s'\n", id="quote"
        ),
    ],
)
def test_identifiers_are_quoted_as_in_kpt(before: str, after: str) -> None:
    files, _ = add_merge_comments(build_tree({"r.yaml": f"{HEAD}metadata: # mine\n{before}"}), "compat")

    assert read_texts(files) == {"r.yaml": f"{HEAD}metadata: # mine\n{after.format(UPSTREAM_IDENTIFIER)}"}


@pytest.mark.skipif(not ROWS, reason="the test data of other projects is not beside this project")
@pytest.mark.parametrize("row", [pytest.param(row, id=row["case"]) for row in ROWS])
def test_table_of_kpt(row: dict[str, Any]) -> None:
    files, _ = add_merge_comments(build_tree({"r.yaml": row["input"].strip() + "\n"}), "compat")

    assert yaml.safe_load(read_texts(files)["r.yaml"]) == yaml.safe_load(row["expected"])
    comments = [line for line in row["expected"].splitlines() if "#" in line]
    assert [line for line in read_texts(files)["r.yaml"].splitlines() if "#" in line] == comments
