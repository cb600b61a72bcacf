"""Tests of texts that differ only by the names of their target."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.output.fleet.target_names import TargetNames
from tests.unit.output.builders import build_tree

EAST, WEST = TargetNames("east", "gw-east"), TargetNames("west", "gw-west")


@pytest.mark.parametrize(
    ("text", "other", "alike"),
    [
        pytest.param("replicas: 1", "replicas: 1", True, id="equal"),
        pytest.param("replicas: 1", "replicas: 2", False, id="different"),
        pytest.param("host: a.east.example", "host: a.west.example", True, id="its-name"),
        pytest.param("for east-1_east", "for west-1_west", True, id="its-name-between-marks"),
        pytest.param("by gw-east of east", "by gw-west of west", True, id="its-owner"),
        pytest.param("host: west", "host: east", False, id="the-name-of-the-other"),
        pytest.param("northeast", "northwest", False, id="a-part-of-a-word"),
        pytest.param("east2", "west2", False, id="a-part-of-a-name"),
        pytest.param("east", "\ue000", False, id="private-use-character-in-a-name"),
    ],
)
def test_texts_are_equal_after_own_names_are_masked(text: str, other: str, alike: bool) -> None:
    assert (EAST.mask_names(text) == WEST.mask_names(other)) == alike


def test_longer_name_is_masked_first_when_one_name_contains_the_other() -> None:
    assert TargetNames("edge-1", "edge").mask_names("edge-1 edge") == TargetNames("edge-2", "edge").mask_names(
        "edge-2 edge"
    )


def test_common_name_is_masked_as_a_whole() -> None:
    east, west = (TargetNames(name, common="east-logs") for name in ("east", "west"))

    assert east.mask_names("east-logs in east") == west.mask_names("east-logs in west")


@pytest.mark.parametrize("names", [("1", "2"), ("v1", "v2"), ("1.4", "1.5"), ("true", "false"), ("1e3", "2e3")])
def test_names_that_are_values_are_not_masked(names: tuple[str, str]) -> None:
    first, second = (TargetNames(name).mask_names(f"tag: {name}") for name in names)

    assert first != second


@pytest.mark.parametrize(
    ("names", "text", "expected"),
    [
        pytest.param(TargetNames("east"), "apps/east", "apps/*", id="cluster"),
        pytest.param(TargetNames("east"), "northeast/east-1", "northeast/*-1", id="whole-word"),
        pytest.param(
            TargetNames("east", "east-logs-east"), "plugins/east-logs-east", "plugins/east-logs-*", id="owner"
        ),
        pytest.param(TargetNames("east", "east-logs"), "plugins/east-logs", "plugins/*-logs", id="other-owner"),
        pytest.param(TargetNames("1", "logs-1"), "plugins/logs-1", "plugins/logs-*", id="number"),
    ],
)
def test_cluster_in_a_path_is_replaced(names: TargetNames, text: str, expected: str) -> None:
    assert names.replace_cluster(text, "*") == expected


def test_binary_files_are_not_masked() -> None:
    files = build_tree({"a": b"\xff east", "b": "east"})

    apart = EAST.mask_file_names(files)

    assert (apart["a"], apart["b"] == files["b"]) == (files["a"], False)


@given(st.lists(st.sampled_from(["east", "west", "gw-east", "gw-west", "-", ".", "x", " "])).map("".join))
def test_masked_text_with_inserted_names_is_the_original_text(text: str) -> None:
    apart = EAST.mask_names(text)

    assert apart.replace("\ue001", EAST.owner).replace("\ue000", EAST.cluster) == text
