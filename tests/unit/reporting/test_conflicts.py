"""Conflicts in words."""

from dataclasses import replace

import pytest

from reconciler.krm.conflicts import ABSENT, Conflict
from reconciler.reporting.conflicts import conflict_lines

REPLICAS = Conflict("field", "/spec/replicas", 2, 5, 3, "upstream", "D2", "web.yaml", "Deployment/default/web")
PLACE = "web.yaml Deployment/default/web /spec/replicas"


@pytest.mark.parametrize(
    ("conflict", "expected"),
    [
        pytest.param(REPLICAS, f"{PLACE}: 3 upstream wins over 5 here", id="upstream-wins"),
        pytest.param(replace(REPLICAS, chosen="local"), f"{PLACE}: 5 here stays, not 3 upstream", id="local-wins"),
        pytest.param(
            replace(REPLICAS, chosen="rule", rule="pipeline"),
            f"{PLACE}: 3 by pipeline, though people set 5",
            id="a-rule",
        ),
        pytest.param(replace(REPLICAS, upstream=ABSENT), f"{PLACE}: nothing upstream wins over 5 here", id="removed"),
        pytest.param(
            Conflict("resource", "", {}, {}, ABSENT, "local", "D3", "web.yaml", "Deployment/default/web"),
            "web.yaml Deployment/default/web: changed here and removed upstream: what is here stays",
            id="a-resource",
        ),
    ],
)
def test_each_conflict_is_a_line(conflict: Conflict, expected: str) -> None:
    assert conflict_lines([conflict], 5) == (expected,)


def test_many_conflicts_are_counted() -> None:
    lines = conflict_lines([replace(REPLICAS, pointer=f"/{index}") for index in range(7)], 5)

    assert (len(lines), lines[-1]) == (6, "… and 2 more")
