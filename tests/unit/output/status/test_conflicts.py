"""Tests of the text of conflicts."""

from dataclasses import replace

import pytest

from reconciler.krm.merge3.rules import ABSENT, Conflict
from reconciler.output.status.package_sections import format_conflicts

REPLICAS = Conflict("field", "/spec/replicas", 2, 5, 3, "upstream", "D2", "web.yaml", "Deployment/default/web")
PLACE = "web.yaml: Deployment default/web: spec.replicas"


@pytest.mark.parametrize(
    ("conflict", "expected"),
    [
        pytest.param(REPLICAS, f"{PLACE}: upstream 3 replaces local 5", id="upstream-wins"),
        pytest.param(
            replace(REPLICAS, chosen="local"), f"{PLACE}: local 5 is kept, upstream 3 is not applied", id="local-wins"
        ),
        pytest.param(
            replace(REPLICAS, chosen="rule", rule="pipeline"),
            f"{PLACE}: pipeline sets 3 and replaces local 5",
            id="a-rule",
        ),
        pytest.param(replace(REPLICAS, upstream=ABSENT), f"{PLACE}: upstream (none) replaces local 5", id="removed"),
        pytest.param(
            Conflict("resource", "", {}, {}, ABSENT, "local", "D3", "web.yaml", "Deployment/default/web"),
            "web.yaml: Deployment default/web: changed locally and removed upstream: the local version is kept",
            id="a-resource",
        ),
    ],
)
def test_each_conflict_is_one_line(conflict: Conflict, expected: str) -> None:
    assert format_conflicts([conflict], 5) == (expected,)


def test_conflicts_beyond_the_limit_are_counted() -> None:
    lines = format_conflicts([replace(REPLICAS, pointer=f"/{index}") for index in range(7)], 5)

    assert (len(lines), lines[-1]) == (6, "and 2 more")
