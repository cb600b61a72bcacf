"""Merge comments: where one is written, and what `compat` adds."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.packages.clone import add_merge_comments
from reconciler.packages.resource import UPSTREAM_IDENTIFIER
from tests.unit.packages.builders import texts, tree

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
        pytest.param("metadata: # mine\n  name: a\n", "metadata: # mine\n  name: a\n", id="somebody-elses-comment"),
        pytest.param("metadata:\n  annotations: {}\n", "metadata:\n  annotations: {}\n", id="no-identity"),
        pytest.param("data: {}\n", "data: {}\n", id="no-metadata"),
    ],
)
def test_with_merge_comments(before: str, after: str) -> None:
    files, findings = add_merge_comments(tree({"r.yaml": HEAD + before}))

    assert texts(files) == {"r.yaml": HEAD + after}
    assert findings == ()
    assert add_merge_comments(files)[0] == files


def test_hidden_and_other_files_are_left_alone() -> None:
    text = HEAD + "metadata:\n  name: a\n"
    before = tree(
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
def test_identifiers_are_quoted_as_upstreams_tool_does(before: str, after: str) -> None:
    files, _ = add_merge_comments(tree({"r.yaml": f"{HEAD}metadata: # mine\n{before}"}), "compat")

    assert texts(files) == {"r.yaml": f"{HEAD}metadata: # mine\n{after.format(UPSTREAM_IDENTIFIER)}"}


@pytest.mark.skipif(not ROWS, reason="the test data of other projects is not beside this project")
@pytest.mark.parametrize("row", [pytest.param(row, id=row["case"]) for row in ROWS])
def test_upstreams_table(row: dict[str, Any]) -> None:
    files, _ = add_merge_comments(tree({"r.yaml": row["input"].strip() + "\n"}), "compat")

    assert yaml.safe_load(texts(files)["r.yaml"]) == yaml.safe_load(row["expected"])
    comments = [line for line in row["expected"].splitlines() if "#" in line]
    assert [line for line in texts(files)["r.yaml"].splitlines() if "#" in line] == comments
