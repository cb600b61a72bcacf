"""Tests of the fleet report: it is read from refs only, equal refs give equal reports, and no ref changes."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.output.report.model import FleetReport
from reconciler.output.report.page import format_report_page
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.presets import presets_drafted
from tests.support.world import CLUSTERS, World, config_map, injected_set, package, variant


def list_states(report: FleetReport) -> dict[str, str]:
    """Return the state of each package with its revision number, 0 for none."""
    return {
        f"{row.cluster}/{name}": f"{entry.state} {entry.version}"
        for row in report.rows
        for name, entry in row.entries.items()
    }


def list_pending_messages(report: FleetReport) -> dict[str, str]:
    return {
        str(target): f"{pending_item.kind}: {pending_item.message}"
        for pending_item in report.pending_items
        for target in pending_item.targets
    }


@pytest.fixture
def unpublished(tmp_path: Path) -> World:
    """All packages are drafted, and no package is published."""
    return begin(tmp_path, drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """All packages of Berlin and Lisbon are published."""
    return begin(tmp_path, published)


def test_drafts_are_reported_with_proposals_and_edits(unpublished: World) -> None:
    before = unpublished.report()
    unpublished.run_review_action("propose", "lisbon")
    unpublished.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    after = unpublished.report()

    assert list_states(before) == {
        "berlin/gateway": "draft 0",
        "berlin/metrics": "draft 0",
        "lisbon/gateway": "draft 0",
    }
    assert [len(reported_change.targets) for reported_change in before.changes] == [1, 1, 1]
    assert list_states(after) == {
        "berlin/gateway": "draft 0",
        "berlin/metrics": "edited 0",
        "lisbon/gateway": "proposed 0",
    }
    assert list_pending_messages(after)["lisbon/gateway"] == "proposed: install v1, proposed"
    assert "edited" in list_pending_messages(after)["berlin/metrics"]


def test_published_packages_have_no_pending_work_and_an_explanation(world: World) -> None:
    report = world.report()

    assert list_states(report) == {
        "berlin/gateway": "published 1", "berlin/metrics": "published 1", "lisbon/gateway": "published 1",
    }  # fmt: skip
    assert (report.pending_items, report.changes, [row.has_pending_work for row in report.rows]) == (
        (),
        (),
        [False, False],
    )
    mapping = {
        str(target): dict(reported_explanation.facts)["owner"]
        for reported_explanation in report.explanations
        for target in reported_explanation.targets
    }
    assert mapping["berlin/metrics"] == "PackageVariant default/metrics-berlin"


def test_a_change_of_both_clusters_is_reported_once_with_its_date(world: World) -> None:
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


@pytest.mark.parametrize("prepare", [pytest.param(drafted, id="set"), pytest.param(presets_drafted, id="plugins")])
def test_report_shows_the_changes_of_the_console(tmp_path: Path, prepare: Callable[[Path], World]) -> None:
    world = begin(tmp_path, prepare)
    index = world.create_indexer().update(world.observe_pass(), lambda done, total: None)
    report = world.report()

    variants = [(change, variant) for change in index.changes for variant in change.variants]
    assert report.index.changes == index.changes
    assert [(change.review_key, change.key, len(change.targets)) for change in report.changes] == [
        (change.key, variant.digest, len(variant.members)) for change, variant in variants
    ]


def test_declined_updates_and_proposed_removals_are_pending(world: World) -> None:
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

    assert list_states(dropped)["berlin/metrics"] == list_states(declined)["berlin/metrics"] == "declined 1"
    assert list_pending_messages(declined)["berlin/metrics"] == "declined: the last draft was declined"
    assert list_states(removed)["berlin/metrics"] == "removal 1"
    assert list_pending_messages(removed)["berlin/metrics"].startswith(
        "removal: remove the package: RemovalProposed: package berlin/metrics"
    )
    assert [reported_change.action for reported_change in removed.changes] == ["remove"]


def test_orphaned_packages_are_reported_as_orphaned(world: World) -> None:
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", extra="deletionPolicy: orphan")})
    world.sync()
    world.write({"metrics.yaml": None})
    world.sync()

    assert list_states(world.report())["berlin/metrics"] == "orphaned 0"


def test_a_conflict_is_reported_with_both_sides_and_a_blocked_update_with_its_reason(world: World) -> None:
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
    assert list_pending_messages(drafted)["berlin/metrics"].startswith("conflict: ")
    assert list_states(blocked)["berlin/metrics"] == "blocked 1"
    assert list_pending_messages(blocked)["berlin/metrics"].startswith("blocked: MergeConflict: ")
    assert "MergeConflict" in format_report_page(blocked)


def test_a_report_changes_no_ref_and_equal_refs_give_equal_pages(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    before = read_refs(world.fleet)
    first = format_report_page(world.report())
    shutil.rmtree(world.folder / "cache")
    world.now += 1_000_000

    assert format_report_page(world.report()) == first
    assert read_refs(world.fleet) == before


def test_an_unreadable_cluster_is_reported_and_the_other_clusters_too(world: World) -> None:
    world.delete("clusters/lisbon")
    report = world.report()

    (row,) = report.unread_rows
    assert row.cluster == "lisbon"
    assert "clusters/lisbon" in row.read_error
    assert list_states(report).keys() == {"berlin/gateway", "berlin/metrics"}


def test_a_draft_with_too_deep_folders_affects_only_the_report_of_its_cluster(world: World) -> None:
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()
    world.commit("drafts/berlin", {f"metrics/{'d/' * 201}file": "x"})
    report = world.report()

    (row,) = report.unread_rows
    assert row.read_error.startswith("Repository berlin: the folder (tree ")
    assert list_states(report) == {"lisbon/gateway": "published 1"}
