"""The report of a fleet as it goes on: read from refs alone, equal for equal refs, and nothing is written."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from reconciler.output.report.model import FleetReport
from reconciler.output.report.page import format_report_page
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import CLUSTERS, World, config_map, injected_set, package, variant


def states(report: FleetReport) -> dict[str, str]:
    """Return the state of each package with the number of its revision, 0 for none."""
    return {
        f"{row.cluster}/{name}": f"{entry.state} {entry.version}"
        for row in report.rows
        for name, entry in row.entries.items()
    }


def waiting(report: FleetReport) -> dict[str, str]:
    return {
        str(place): f"{pending_item.kind}: {pending_item.message}"
        for pending_item in report.pending_items
        for place in pending_item.targets
    }


@pytest.fixture
def fresh(tmp_path: Path) -> World:
    """Everything is drafted, nothing published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin and Lisbon have all packages published."""
    return begin(tmp_path, published)


def test_drafts_are_reported_as_people_go_on_with_them(fresh: World) -> None:
    before = fresh.report()
    fresh.run_review_action("propose", "lisbon")
    fresh.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    after = fresh.report()

    assert states(before) == {"berlin/gateway": "draft 0", "berlin/metrics": "draft 0", "lisbon/gateway": "draft 0"}
    assert [len(reported_change.targets) for reported_change in before.changes] == [1, 1, 1]
    assert states(after) == {"berlin/gateway": "draft 0", "berlin/metrics": "edited 0", "lisbon/gateway": "proposed 0"}
    assert waiting(after)["lisbon/gateway"] == "proposed: install v1, proposed"
    assert "edited" in waiting(after)["berlin/metrics"]


def test_what_is_published_is_well_and_explained_by_its_status_file(world: World) -> None:
    report = world.report()

    assert states(report) == {
        "berlin/gateway": "published 1", "berlin/metrics": "published 1", "lisbon/gateway": "published 1",
    }  # fmt: skip
    assert (report.pending_items, report.changes, [row.has_pending_work for row in report.rows]) == (
        (),
        (),
        [False, False],
    )
    mapping = {
        str(place): dict(reported_explanation.facts)["owner"]
        for reported_explanation in report.explanations
        for place in reported_explanation.targets
    }
    assert mapping["berlin/metrics"] == "PackageVariant default/metrics-berlin"


def test_one_change_that_goes_to_both_clusters_is_told_once_with_its_age(world: World) -> None:
    world.edit("clusters/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 4")
    files = package("gateway", image="2.0", endpoints=config_map("endpoints", "required", api="none"))
    world.release("gateway", "v2", files, seconds=1_200_000_000)
    world.write({"gateway.yaml": injected_set("gateway", CLUSTERS, "v2")})
    world.sync()
    report = world.report()

    (change,) = report.changes
    assert [str(report_target) for report_target in change.targets] == ["berlin/gateway", "lisbon/gateway"]
    assert (change.action, change.since) == ("update v1 → v2", 1_200_000_000)
    assert change.summary_lines[0].endswith("example.com/gateway:1.0 → example.com/gateway:2.0")
    assert [row.entries["gateway"].notes for row in report.rows] == [("local changes",), ()]


def test_what_is_dropped_is_declined_and_what_nothing_wants_waits_for_its_removal(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    world.run_review_action("drop", "berlin/metrics")
    dropped = world.report()
    world.sync()
    declined = world.report()
    world.write({"metrics.yaml": None})
    world.sync()
    removed = world.report()

    assert states(dropped)["berlin/metrics"] == states(declined)["berlin/metrics"] == "declined 1"
    assert waiting(declined)["berlin/metrics"] == "declined: the last draft was declined"
    assert states(removed)["berlin/metrics"] == "removal 1"
    assert waiting(removed)["berlin/metrics"].startswith(
        "removal: remove the package: RemovalProposed: package berlin/metrics"
    )
    assert [reported_change.action for reported_change in removed.changes] == ["remove"]


def test_what_is_orphaned_stays_and_is_nobodys(world: World) -> None:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra="deletionPolicy: orphan")})
    world.sync()
    world.write({"metrics.yaml": None})
    world.sync()

    assert states(world.report())["berlin/metrics"] == "orphaned 0"


def test_a_conflict_is_told_with_both_sides_and_one_that_blocks_with_its_reason(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    drafted = world.report()
    extra = "conflictPolicy: block"
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2", extra=extra)})
    world.sync()
    blocked = world.report()

    (conflict,) = drafted.conflicts
    assert (conflict.base, conflict.local, conflict.upstream) == ("2", "5", "3")
    assert waiting(drafted)["berlin/metrics"].startswith("conflict: ")
    assert states(blocked)["berlin/metrics"] == "blocked 1"
    assert waiting(blocked)["berlin/metrics"].startswith("blocked: MergeConflict: ")
    assert "MergeConflict" in format_report_page(blocked)


def test_a_report_moves_no_ref_and_equal_refs_give_equal_pages(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    before = read_refs(world.fleet)
    first = format_report_page(world.report())
    shutil.rmtree(world.folder / "cache")
    world.now += 1_000_000

    assert format_report_page(world.report()) == first
    assert read_refs(world.fleet) == before


def test_a_cluster_that_cannot_be_read_is_told_and_the_others_are_reported(world: World) -> None:
    world.delete("clusters/lisbon")
    report = world.report()

    (row,) = report.unread_rows
    assert row.cluster == "lisbon"
    assert "clusters/lisbon" in row.read_error
    assert states(report).keys() == {"berlin/gateway", "berlin/metrics"}


def test_a_draft_that_is_too_deep_to_read_spoils_the_report_of_its_cluster_alone(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    world.commit("drafts/berlin", {f"metrics/{'d/' * 201}file": "x"})
    report = world.report()

    (row,) = report.unread_rows
    assert row.read_error.startswith("Repository berlin: the folder (tree ")
    assert states(report) == {"lisbon/gateway": "published 1"}
