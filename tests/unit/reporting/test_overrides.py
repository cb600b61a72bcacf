from __future__ import annotations

from typing import Any

import pytest

from reconciler.planning.outcome import Rendered
from reconciler.reporting.changes import compare
from reconciler.reporting.commit_message import draft_message
from reconciler.reporting.overrides import override_lines
from reconciler.snapshot.files import FileTree
from tests.unit.reporting.world import CONFIG, deployment, destination, draft, kptfile

EDGE = "ClusterOverridePolicy/edge"
SHOP = "OverridePolicy/shop/till"
NEW = {"Kptfile": kptfile("v4"), "a.yaml": deployment(5)}


def record(*steps: dict[str, Any], pointer: str = "/spec/replicas") -> dict[str, Any]:
    return {"file": "a.yaml", "resource": "Deployment/shop/till", "pointer": pointer, "steps": list(steps)}


def step(by: str = EDGE, **values: Any) -> dict[str, Any]:
    return {"by": by, "where": "spec.overrideRules[0].overriders.jsonpatch[0]", "op": "replaced", **values}


REPLACED = record(step(before=3, after=1))


@pytest.mark.parametrize(
    ("one", "line"),
    [
        pytest.param(REPLACED, f"/spec/replicas: 3 → 1 by {EDGE}", id="replaced"),
        pytest.param(
            record(step(before=3, after=1), step(SHOP, before=1, after=7)),
            f"/spec/replicas: 3 → 7 by {EDGE}, {SHOP}",
            id="first-and-last-of-several-steps",
        ),
        pytest.param(
            record(step(before=3, after=2), step(before=2, after=1)),
            f"/spec/replicas: 3 → 1 by {EDGE}",
            id="a-policy-is-named-once",
        ),
        pytest.param(record(step(after="x")), f"/spec/replicas: added, x by {EDGE}", id="added"),
        pytest.param(record(step(before="x")), f"/spec/replicas: removed, was x by {EDGE}", id="removed"),
        pytest.param(
            record(step(after="x"), step(SHOP, before="x")),
            f"/spec/replicas: added and removed by {EDGE}, {SHOP}",
            id="nothing-is-left-of-it",
        ),
        pytest.param(record(step(before=5, after="5")), f'/spec/replicas: 5 → "5" by {EDGE}', id="another-type"),
        pytest.param(
            record(step(before=60, after=5), pointer="/data/app.yaml!/ttl"),
            f"/data/app.yaml!/ttl: 60 → 5 by {EDGE}",
            id="inside-of-text",
        ),
    ],
)
def test_a_place_that_policies_changed_is_one_line(one: dict[str, Any], line: str) -> None:
    assert override_lines([one], 5) == (f"Deployment/shop/till {line}",)


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(None, id="nothing"),
        pytest.param("text", id="text"),
        pytest.param([1], id="a-number"),
        pytest.param([{**REPLACED, "steps": []}], id="no-step"),
        pytest.param([{**REPLACED, "steps": "x"}], id="steps-that-are-no-list"),
        pytest.param([{**REPLACED, "steps": [1]}], id="a-step-that-is-none"),
        pytest.param([{"steps": REPLACED["steps"]}], id="no-place"),
    ],
)
def test_what_people_broke_is_left_out(recorded: object) -> None:
    assert override_lines(recorded, 5) == ()


def test_the_rest_is_counted() -> None:
    assert override_lines([REPLACED] * 5, 2)[2:] == ("… and 3 more",)


@pytest.mark.parametrize(
    ("before", "told"),
    [
        pytest.param({}, True, id="a-new-package"),
        pytest.param({"a.yaml": deployment(3)}, False, id="its-changes-tell-of-any-other"),
    ],
)
def test_a_commit_tells_what_policies_made_of_a_package(before: dict[str, str], told: bool) -> None:
    made = draft(before, NEW, task="clone", rendered=Rendered(FileTree(), overrides=(REPLACED,)))
    message = draft_message(made, destination(), CONFIG, compare(made.before, made.rendered.files))

    assert (f"Overridden:\n- Deployment/shop/till /spec/replicas: 3 → 1 by {EDGE}\n" in message) == told
