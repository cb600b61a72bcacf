"""Tests of JSON patches: the conformance suite, error messages, and no partial application."""

from __future__ import annotations

import contextlib
import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.krm.json_patch import PatchError, apply_patch, apply_to_container
from reconciler.krm.json_text import encode_canonical_json

CONFORMANCE = Path(__file__).resolve().parents[3] / "../shared/data/json-patch"


def _read_rows() -> list[dict[str, Any]]:
    rows = (row for file in sorted(CONFORMANCE.glob("*.json")) for row in json.loads(file.read_text()))
    return [row for row in rows if "patch" in row]


def list_disabled_rows() -> list[dict[str, Any]]:
    return [row for row in _read_rows() if row.get("disabled")]


def list_conformance_rows() -> list[Any]:
    rows = [row for row in _read_rows() if not row.get("disabled")]
    return [pytest.param(row, id=f"{number}-{row.get('comment', 'no-comment')}") for number, row in enumerate(rows)]


@pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the RFC 6902 conformance tests are not on this machine")
@pytest.mark.parametrize("row", list_conformance_rows())
def test_conformance(row: dict[str, Any]) -> None:
    before = copy.deepcopy(row)

    if "error" in row:
        with pytest.raises(PatchError):
            apply_patch(row["doc"], row["patch"])
    else:
        expected = row.get("expected", row["doc"])
        assert encode_canonical_json(apply_patch(row["doc"], row["patch"])) == encode_canonical_json(expected)
    assert row == before


@pytest.mark.parametrize(
    ("operations", "index", "pointer", "reason"),
    [
        pytest.param([{"op": "remove", "path": "/x"}], 0, "/x", "x", id="remove-what-is-not-there"),
        pytest.param(
            [{"op": "add", "path": "/b", "value": 1}, {"op": "add", "path": "/c/d", "value": 1}],
            1,
            "/c/d",
            "c",
            id="the-second-fails",
        ),
        pytest.param([{"op": "test", "path": "/a", "value": True}], 0, "/a", "not equal", id="one-is-not-true"),
        pytest.param([{"op": "replace", "path": "/l/-", "value": 1}], 0, "/l/-", "-", id="replace-behind-the-end"),
        pytest.param([{"op": "add", "path": "/l/1e0", "value": 1}], 0, "/l/1e0", "index", id="index-that-is-no-number"),
        pytest.param([{"op": "add", "path": "a", "value": 1}], 0, "a", "", id="path-without-slash"),
        pytest.param([{"op": "add", "path": "/~", "value": 1}], 0, "/~", "", id="bad-escape"),
        pytest.param([{"op": "add", "path": "/a"}], 0, "/a", "value", id="no-value"),
        pytest.param([{"op": "move", "path": "/a"}], 0, "/a", "from", id="no-from"),
        pytest.param([{"op": "move", "from": 3, "path": "/a"}], 0, "/a", "from", id="from-is-no-text"),
        pytest.param([{"op": "merge", "path": "/a"}], 0, "/a", "op must be one of", id="unknown-op"),
        pytest.param(
            [{"op": "add", "value": 1}], 0, "", "the path of an operation must be a JSON pointer", id="no-path"
        ),
        pytest.param(
            [{"op": "add", "path": 1, "value": 1}],
            0,
            "",
            "the path of an operation must be a JSON pointer",
            id="path-is-no-text",
        ),
        pytest.param(["add"], 0, "", "must be a mapping", id="operation-is-text"),
        pytest.param([{"op": "add", "path": "/a/b", "value": 1}], 0, "/a/b", "", id="below-a-number"),
        pytest.param([{"op": "add", "path": "/s/0", "value": 1}], 0, "/s/0", "", id="below-a-string"),
        pytest.param([{"op": "remove", "path": "/s/0"}], 0, "/s/0", "", id="remove-from-a-string"),
        pytest.param([{"op": "replace", "path": "/s/0", "value": 1}], 0, "/s/0", "", id="replace-in-a-string"),
        pytest.param([{"op": "copy", "from": "/s/9", "path": "/t"}], 0, "/t", "", id="copy-from-a-string"),
    ],
)
def test_error_contains_the_operation(operations: list[Any], index: int, pointer: str, reason: str) -> None:
    data = {"a": 1, "l": [1], "s": "text"}

    with pytest.raises(PatchError) as caught:
        apply_patch(data, operations)

    assert (caught.value.index, caught.value.pointer) == (index, pointer)
    assert reason in caught.value.reason
    assert f"operation {index}" in str(caught.value)
    assert data == {"a": 1, "l": [1], "s": "text"}


def test_result_shares_no_data_with_the_patch() -> None:
    operations = [{"op": "add", "path": "/a", "value": {"b": []}}]

    apply_patch({}, operations)["a"]["b"].append(1)

    assert operations == [{"op": "add", "path": "/a", "value": {"b": []}}]


_POINTERS = st.sampled_from(["", "/", "/a", "/a/b", "/l", "/l/0", "/l/9", "/l/-", "/l/x", "/s/0", "x", "/~", None, 1])
_VALUES = st.sampled_from([None, 1, "x", [], {}])
_OPERATION = st.fixed_dictionaries(
    {"op": st.sampled_from(["add", "remove", "replace", "move", "copy", "test", "x", None]), "path": _POINTERS},
    optional={"from": _POINTERS, "value": _VALUES},
)


@given(st.lists(_OPERATION, max_size=4))
def test_input_is_unchanged_and_errors_are_patch_errors(operations: list[Any]) -> None:
    data = {"a": {"b": 1}, "l": [1, [2]], "s": "text"}
    before = copy.deepcopy((data, operations))
    with contextlib.suppress(PatchError):
        apply_patch(data, operations)

    assert (data, operations) == before


@pytest.mark.parametrize(
    ("container", "op", "step", "expected"),
    [
        pytest.param({"a": 1}, "add", "b", {"a": 1, "b": 9}, id="add-a-key"),
        pytest.param({"a": 1}, "add", "a", {"a": 9}, id="add-replaces-a-key"),
        pytest.param({"-": 1}, "add", "-", {"-": 9}, id="a-key-that-is-a-dash"),
        pytest.param({"x/y~z": 1}, "replace", "x/y~z", {"x/y~z": 9}, id="a-key-with-escapes"),
        pytest.param({"0": 1}, "remove", "0", {}, id="a-key-that-is-a-number"),
        pytest.param([1, 2], "add", 1, [1, 9, 2], id="insert-an-item"),
        pytest.param([1, 2], "add", 2, [1, 2, 9], id="append-an-item"),
        pytest.param([1, 2], "replace", 0, [9, 2], id="replace-an-item"),
        pytest.param([1, 2], "remove", 1, [1], id="remove-an-item"),
    ],
)
def test_a_container_is_changed(container: Any, op: Any, step: str | int, expected: Any) -> None:
    apply_to_container(container, op, step, 9)

    assert container == expected


@pytest.mark.parametrize(("container", "op", "step"), [({}, "remove", "a"), ([], "replace", 0), ([1], "add", 2)])
def test_an_operation_on_a_missing_value_is_an_error(container: Any, op: Any, step: str | int) -> None:
    with pytest.raises(PatchError):
        apply_to_container(container, op, step, 9)
