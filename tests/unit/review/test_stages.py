"""Tests of stages: the stage of a target, and the earlier stages on which a change is not published."""

from __future__ import annotations

from dataclasses import replace

import pytest

from reconciler.krm.selectors import parse_label_query
from reconciler.review.stages import Stage, StageProgress, find_stage, list_progress, list_unpublished
from tests.support.fleet_index import create_index, create_row, create_target

STAGES = (Stage("canary", parse_label_query("tier=canary")), Stage("all", parse_label_query("")))
PROGRESS = (
    StageProgress("canary", ("a", "b"), 0, 2),
    StageProgress("small", ("c",), 1, 2),
    StageProgress("large", ("d", "e"), 0, 2),
)


@pytest.mark.parametrize(
    ("tier", "stage"),
    [pytest.param("canary", "canary", id="first-match"), pytest.param("other", "all", id="later-match")],
)
def test_a_target_belongs_to_the_first_matching_stage(tier: str, stage: str) -> None:
    assert find_stage(create_target("a", {"tier": tier}), STAGES) == stage


def test_a_target_can_belong_to_no_stage() -> None:
    assert find_stage(create_target("a", {"tier": "other"}), STAGES[:1]) == ""


def test_blocked_packages_and_packages_of_other_owners_are_not_published() -> None:
    canary, other = {"tier": "canary"}, {"tier": "other"}
    index = create_index(
        [
            create_target("a", canary, create_row("a", "gateway")),
            create_target("b", canary, replace(create_row("b", "gateway"), state="blocked")),
            create_target("c", canary, replace(create_row("c", "gateway"), owner="another set")),
            create_target("d", other, create_row("d", "gateway", change="update"), create_row("d", "metrics")),
        ]
    )

    assert list_progress(index, index.changes[0], STAGES) == (
        StageProgress("canary", (), 1, 2), StageProgress("all", ("d",), 0, 1),
    )  # fmt: skip


@pytest.mark.parametrize(
    ("targets", "unpublished"),
    [
        pytest.param(["a"], [], id="first-stage"),
        pytest.param(["c"], ["canary"], id="second-stage"),
        pytest.param(["d", "e"], ["canary", "small"], id="last-stage"),
        pytest.param(["a", "b", "d"], ["small"], id="with-the-first-stage"),
        pytest.param(["a", "d"], ["canary", "small"], id="with-a-part-of-the-first-stage"),
        pytest.param(["a", "b", "c", "d"], [], id="with-all-earlier-stages"),
        pytest.param(["x"], [], id="no-stage"),
    ],
)
def test_earlier_stages_that_are_not_published(targets: list[str], unpublished: list[str]) -> None:
    assert [stage.name for stage in list_unpublished(PROGRESS, targets)] == unpublished
