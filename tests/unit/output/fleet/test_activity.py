"""The activity contains each publication once, also if the log and the index contain it."""

from __future__ import annotations

import pytest

from reconciler.output.fleet.activity import ActivityAction, ActivityEvent, merge_activity
from reconciler.output.fleet.publications import Publication
from tests.support.fleet_index import create_row

ROW = create_row("lisbon", "web")


def event(*actions: ActivityAction, commit: str = "c1", revision: int = 0, seconds: int = 50) -> ActivityEvent:
    return ActivityEvent(actions, seconds, 60, "lisbon", "web", "Ada", commit=commit, revision=revision)


@pytest.mark.parametrize(
    ("via", "events", "expected"),
    [
        pytest.param("", [], [(("published",), 2)], id="only-in-the-index"),
        pytest.param("console", [], [(("approved", "published"), 2)], id="approved"),
        pytest.param("", [event("published", revision=2)], [(("published",), 2)], id="also-in-the-log"),
        pytest.param("", [event("approved")], [(("approved", "published"), 2)], id="approval-in-the-log"),
        pytest.param(
            "", [event("published", commit="c0", revision=1)], [(("published",), 2), (("published",), 1)], id="replaced"
        ),
        pytest.param(
            "", [event("approved", commit="c0"), event("published", commit="c0", revision=1)],
            [(("published",), 2), (("approved", "published"), 1)], id="replaced-with-approval",
        ),
        pytest.param(
            "", [event("approved", commit="c3"), event("removed", commit="c3")],
            [(("published",), 2), (("approved", "removed"), 0)], id="removed-with-approval",
        ),
        pytest.param(
            "", [event("rejected"), event("pass", commit="")], [(("pass",), 0), (("rejected",), 0), (("published",), 2)],
            id="other-events",
        ),
    ],
)  # fmt: skip
def test_a_publication_is_one_event(
    via: str, events: list[ActivityEvent], expected: list[tuple[tuple[str, ...], int]]
) -> None:
    seconds = 40 if any("rejected" in item.actions for item in events) else 100
    publication = Publication(2, "c1", "Ada", seconds, "publish web v2", via=via)
    merged = merge_activity(events, [(ROW, publication)])

    assert [(item.actions, item.revision) for item in merged] == expected
