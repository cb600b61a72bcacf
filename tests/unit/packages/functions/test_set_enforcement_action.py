"""Tests of set-enforcement-action: which objects and which actions it supports."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.google_cloud import set_enforcement_action
from tests.unit.packages.builders import build_config, format_items, list_messages, run_function

CONSTRAINT = "apiVersion: constraints.gatekeeper.sh/v1beta1\nkind: A\nmetadata:\n  name: a\n"


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            f"{CONSTRAINT}spec:\n  enforcementAction: deny # why\n",
            f"{CONSTRAINT}spec:\n  enforcementAction: warn # why\n",
            id="changed",
        ),
        pytest.param(CONSTRAINT, f"{CONSTRAINT}spec:\n  enforcementAction: warn\n", id="made"),
    ],
)
def test_set_enforcement_action(before: str, after: str) -> None:
    output = run_function(set_enforcement_action, before, build_config("ConfigMap", {"enforcementAction": "warn"}))

    assert format_items(output.items) == after
    assert list_messages(output) == [("info", "Number of policies set to [warn]: 1"), ("info", "Policy name: [a]")]


def test_other_objects_are_unchanged() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec:\n  enforcementAction: deny\n"
    output = run_function(set_enforcement_action, text, build_config("ConfigMap", {"enforcementAction": "dryrun"}))

    assert format_items(output.items) == text
    assert list_messages(output) == [("warning", "Found no policy to set to [dryrun]")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param({}, "expecting exactly 1 enforcementAction", id="none"),
        pytest.param({"enforcementAction": "deny", "b": "c"}, "expecting exactly 1 enforcementAction", id="two"),
        pytest.param({"enforcementAction": "drop"}, '[deny], [warn] or [dryrun], not "drop"', id="unknown"),
    ],
)
def test_configuration_errors(data: dict[str, str], reason: str) -> None:
    output = run_function(set_enforcement_action, CONSTRAINT, build_config("ConfigMap", data))

    assert output.has_failed
    assert reason in output.results[0].message
