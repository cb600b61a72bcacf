"""Tests of the rollouts page: the open wave, and the reason why the next wave is closed."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.policies import policy, rollout_rule, rollout_world
from tests.support.prepared_worlds import begin


@pytest.fixture
def console(tmp_path: Path) -> ConsoleClient:
    """The first of three waves of a rule is open."""
    world = begin(tmp_path, rollout_world)
    world.write({"policies/site.yaml": policy("site", [rollout_rule(5, "1h")])})
    client = open_console(world)
    client.update()
    return client


def test_a_rollout_shows_its_open_wave_and_the_reason_of_the_next(console: ConsoleClient) -> None:
    text = console.get("/rollouts").text

    assert "amsterdam" in text
    assert "berlin" not in text.partition("<tbody>")[2].partition("in progress")[0]
    assert "in progress" in text
    assert "OverridePolicy" in text


@pytest.mark.slow
def test_a_person_who_reads_no_target_of_a_rollout_does_not_see_it(console: ConsoleClient) -> None:
    session = Session(ADA, Permissions((RoleRule("viewer", targets=LabelSelector((("ring", "late"),))),)))

    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return session

    console.context = replace(console.context, authenticator=Fixed())
    text = console.get("/rollouts").text

    assert "amsterdam" not in text
    assert "No override policy has a rollout" in text
