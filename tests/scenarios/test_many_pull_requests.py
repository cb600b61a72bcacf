"""Test of a change to many clusters: one push, limited pull requests for each hour, and no duplicate pull requests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.forge_world import github_world
from tests.support.git_repositories import write_hook

HOUR = 3_600


@pytest.mark.slow
def test_new_pull_requests_respect_the_hourly_limit_after_restarts(tmp_path: Path) -> None:
    clusters = tuple(f"c{number:03}" for number in range(60))
    with github_world(tmp_path, clusters, new_per_hour=25, writes_per_minute=0) as world:
        write_hook(world.fleet, "post-receive", "grep -c . >> pushes")
        first = world.sync()
        # The pushes contain the target branches, the drafts and states, the pull request numbers, and the status.
        assert (world.fleet / "pushes").read_text().split() == ["60", "120", "60", "1"]
        assert len([name for name in first.after if "heads/drafts/" in name]) == 60
        opened = [len(world.open_requests)]
        assert opened == [25]
        assert "no pull request is open for 35 drafts; a later pass opens the missing pull requests" in [
            finding.message for finding in first.findings
        ]
        assert first.report.due_at == world.now + HOUR
        # Each pass of this world is a new process with its own limit.
        while len(world.open_requests) < 60:
            world.now += HOUR
            world.sync()
            opened.append(len(world.open_requests))
        assert opened == [25, 50, 60]
        assert sorted(world.open_requests) == [f"drafts/{name}" for name in clusters]
        assert "Same change as 59 others" in world.open_requests["drafts/c000"].body
        world.writes()
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == []
