"""Tests of JSON patches: the public conformance tests of RFC 6902, and a comparison with krm.json_patch on random
patches.
"""

from __future__ import annotations

import copy
import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.controllers.override_policies.json_patch import apply_patch_operation
from reconciler.controllers.override_policies.read_rules import read_rule_text
from reconciler.krm.json_patch import PatchError, apply_patch
from tests.support.examples import examples
from tests.unit.controllers.override_policies.override_world import is_same_json

CONFORMANCE = Path(__file__).resolve().parents[4] / "../shared/data/json-patch"
FAILED = object()


def apply_operations(document: Any, operations: list[Any]) -> Any:
    """Return the document after the operations of a policy, or FAILED."""
    written = [
        {"operator" if key == "op" else key: value for key, value in operation.items()} for operation in operations
    ]
    rule = read_rule_text(json.dumps({"overriders": {"jsonpatch": written}}))
    if rule is None:
        return FAILED
    for item in dict(rule.overriders).get("jsonpatch", ()):
        effect = apply_patch_operation(document, item)  # type: ignore[arg-type]
        if effect.has_errors:
            return FAILED
        document = effect.data
    return document


def list_conformance_rows() -> list[Any]:
    values = [row for file in sorted(CONFORMANCE.glob("*.json")) for row in json.loads(file.read_text())]
    expected = [row for row in values if "patch" in row and not row.get("disabled") and _is_supported(row["patch"])]
    return [pytest.param(row, id=f"{number}-{row.get('comment', '')}"[:60]) for number, row in enumerate(expected)]


def _is_supported(operations: list[Any]) -> bool:
    # RFC 6902 has more operations, and can patch the whole document. A policy refuses them.
    known, fields = ("add", "remove", "replace"), {"op", "path", "value"}
    return all(
        operation.get("op") in known and operation.get("path") and not operation.keys() - fields
        for operation in operations
    )


@pytest.mark.skipif(not CONFORMANCE.is_dir(), reason="the RFC 6902 conformance tests are not on this machine")
@pytest.mark.parametrize("row", list_conformance_rows())
def test_result_conforms_to_rfc_6902(row: dict[str, Any]) -> None:
    before = copy.deepcopy(row["doc"])

    result = apply_operations(row["doc"], row["patch"])

    assert row["doc"] == before
    if "error" in row and not _creates_member(row):
        assert result is FAILED
    elif "error" not in row:
        assert is_same_json(result, row.get("expected", row["doc"]))


def _creates_member(row: dict[str, Any]) -> bool:
    # In contrast to RFC 6902, `replace` in a policy adds a missing member.
    return any(item["op"] == "replace" for item in row["patch"]) and "missing" in row["error"]


documents = st.recursive(
    st.none() | st.integers(0, 3) | st.sampled_from(["a", "b"]),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(["a", "0", ""]), inner, max_size=3),
    max_leaves=8,
)
steps = st.lists(st.sampled_from(["a", "b", "0", "1", "2", "-", "", "01", "-1"]), min_size=1, max_size=3)
operations = st.lists(
    st.fixed_dictionaries(
        {
            "op": st.sampled_from(["add", "remove", "replace"]),
            "path": steps.map(lambda path: "".join(f"/{step}" for step in path)),
            "value": documents,
        }
    ),
    max_size=3,
)


@settings(max_examples=examples(100), deadline=None)
@given(documents, operations)
def test_result_is_the_same_as_of_krm_patch(document: Any, some: list[Any]) -> None:
    try:
        expected = apply_patch(document, some)
    except PatchError:
        expected = FAILED
    result = apply_operations(document, some)

    if expected is not FAILED:
        assert is_same_json(result, expected)
    elif not any(item["op"] == "replace" for item in some):
        assert result is FAILED
