"""Tests of the removal of one local change: the earlier value returns, and other local changes stay."""

from __future__ import annotations

from typing import Any, Literal

import pytest

from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import DataPath
from reconciler.packages.package import Package
from reconciler.packages.update.options import MergeOptions
from reconciler.planning.attribution.removable_layers import LocalEdit, remove_from_source, undo_change
from reconciler.planning.model.sources import PackageSource
from tests.unit.output.builders import build_tree

A, B, C = {"name": "a", "v": 1}, {"name": "b", "v": 2}, {"name": "c", "v": 3}


@pytest.mark.parametrize(
    ("before", "after", "path", "deleted", "expected"),
    [
        pytest.param({"a": 1}, {"a": 2, "b": 3}, ("a",), False, {"a": 1, "b": 3}, id="changed"),
        pytest.param({"a": 1}, {"a": 1, "b": 3}, ("b",), False, {"a": 1}, id="new"),
        pytest.param({}, {"m": {"k": 1}}, ("m", "k"), False, {}, id="new-with-what-it-is-in"),
        pytest.param({}, {"m": {"k": 1, "l": 2}}, ("m", "k"), False, {"m": {"l": 2}}, id="new-beside-another"),
        pytest.param({"m": {}}, {"m": {"k": 1}}, ("m", "k"), False, {"m": {}}, id="in-what-was-there"),
        pytest.param({"m": "x"}, {"m": {"k": 1}}, ("m", "k"), False, {"m": "x"}, id="in-what-was-a-text"),
        pytest.param({"l": [A]}, {"l": [{"p": 1}, A]}, ("l", 0, "p"), False, {"l": [A]}, id="all-of-an-item"),
        pytest.param({"l": [A, B]}, {"l": [C, A, {**B, "v": 9}]}, ("l", 2, "v"), False, {"l": [C, A, B]}, id="moved"),
        pytest.param({"a": 1, "b": 2}, {"b": 3}, ("a",), True, {"a": 1, "b": 3}, id="deleted"),
        pytest.param({"l": [A, B]}, {"l": [B]}, ("l", 0), True, {"l": [A, B]}, id="the-first-item"),
        pytest.param({"l": [A, B]}, {"l": [A]}, ("l", 1), True, {"l": [A, B]}, id="the-last-item"),
        pytest.param({"l": [A, B, C]}, {"l": [C]}, ("l", 0), True, {"l": [A, C]}, id="one-of-two"),
        pytest.param(
            {"l": [A, B, C]}, {"l": [B, {"name": "c"}]}, ("l", 2, "v"), True, {"l": [B, C]}, id="of-an-item-that-moved"
        ),
    ],
)  # fmt: skip
def test_undo_change(before: Any, after: Any, path: DataPath, deleted: bool, expected: Any) -> None:
    assert undo_change(before, after, path, is_removed=deleted) == expected


ONE, TWO = (f"kind: ConfigMap\nmetadata: {{name: {name}}}\ndata: {{a: b}} # {name}\n" for name in ("one", "two"))


@pytest.mark.parametrize(
    ("came", "edited"),
    [
        pytest.param({"a.yaml": ONE, "b.yaml": TWO}, {"b.yaml": TWO}, id="a-file"),
        pytest.param({"a.yaml": f"{ONE}---\n{TWO}"}, {"a.yaml": TWO}, id="a-document"),
        pytest.param({"a.yaml": ONE}, {"a.yaml": "oops: {\n"}, id="a-file-that-was-broken"),
        pytest.param({"a.yaml": ONE}, {"a.yaml": "# nothing left\n"}, id="all-but-a-comment"),
    ],
)
@pytest.mark.parametrize("text", ["branch", "draft"])
def test_deleted_resource_is_restored(
    came: dict[str, str], edited: dict[str, str], text: Literal["branch", "draft"]
) -> None:
    base, files = build_tree(came), build_tree(edited)
    source = PackageSource(files, base if text == "draft" else files, base)
    layer = LocalEdit("a.yaml", 0, ("data", "a"), Package(base).resources[0].data, ABSENT, is_removed=True, origin=text)

    assert remove_from_source(source, layer, MergeOptions()).files == base


def test_comment_that_was_removed_with_a_change_is_restored() -> None:
    base, files = (
        build_tree({"a.yaml": f"kind: X\nmetadata: {{name: x}}\n{rest}"}) for rest in ("n: 1 # as agreed\n", "")
    )
    layer = LocalEdit(
        "a.yaml", 0, ("n",), Package(base).resources[0].data, Package(files).resources[0].data, True, "branch"
    )

    assert remove_from_source(PackageSource(files, files, base), layer, MergeOptions()).files == base
