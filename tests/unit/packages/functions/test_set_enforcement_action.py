"""set-enforcement-action: which objects, which actions."""

from __future__ import annotations

import pytest

from reconciler.packages.functions.google_cloud import set_enforcement_action
from tests.unit.packages.builders import config, messages, run, shown

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
    output = run(set_enforcement_action, before, config("ConfigMap", {"enforcementAction": "warn"}))

    assert shown(output.items) == after
    assert messages(output) == [("info", "Number of policies set to [warn]: 1"), ("info", "Policy name: [a]")]


def test_other_objects() -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\nspec:\n  enforcementAction: deny\n"
    output = run(set_enforcement_action, text, config("ConfigMap", {"enforcementAction": "dryrun"}))

    assert shown(output.items) == text
    assert messages(output) == [("warning", "Found no policy to set to [dryrun]")]


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        pytest.param({}, "expecting exactly 1 enforcementAction", id="none"),
        pytest.param({"enforcementAction": "deny", "b": "c"}, "expecting exactly 1 enforcementAction", id="two"),
        pytest.param({"enforcementAction": "drop"}, '[deny], [warn] or [dryrun], not "drop"', id="unknown"),
    ],
)
def test_configuration_errors(data: dict[str, str], reason: str) -> None:
    output = run(set_enforcement_action, CONSTRAINT, config("ConfigMap", data))

    assert output.has_failed
    assert reason in output.results[0].message
