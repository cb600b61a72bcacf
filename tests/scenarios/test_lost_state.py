"""Tests of lost, earlier and newer state: the daemon removes and overwrites nothing."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from reconciler.git.mirror import Mirror
from reconciler.output.review.formats import format_draft_text
from reconciler.output.review.open_drafts import build_draft_entry
from tests.support.git_repositories import commit_files, git
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import STATE, World, config_map, package, small_world, variant


def delete_state(world: World, *clusters: str) -> None:
    for cluster in clusters:
        git(world.fleet, "update-ref", "-d", STATE + cluster)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world with published packages of Berlin and an open draft of Lisbon."""
    return begin(tmp_path, berlin_published)


def test_lost_state_is_restored_from_status_files_without_branch_changes(world: World) -> None:
    delete_state(world, "berlin", "lisbon")

    after = world.sync()

    assert after.changed_branches == set()
    assert after.outcomes == {"berlin/gateway": "published", "berlin/metrics": "published", "lisbon/gateway": "drafted"}
    assert world.sync().is_unchanged


def test_update_after_a_lost_state_is_drafted_and_published(world: World) -> None:
    delete_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.sync().outcomes["berlin/metrics"] == "draft"
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_update_after_a_lost_state_keeps_local_changes_of_the_package(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    delete_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:2.0" in text) == (True, True)


def test_update_after_a_lost_state_keeps_local_changes_of_the_draft(world: World) -> None:
    edited = world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    delete_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.sync_until_unchanged()

    assert git(world.fleet, "merge-base", edited, "drafts/lisbon") == edited
    assert "replicas: 5" in world.text("drafts/lisbon", "gateway/deployment.yaml")
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")


def test_update_after_a_lost_state_is_appended_to_the_open_draft(world: World) -> None:
    before = world.head("drafts/lisbon")
    delete_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.sync()

    assert git(world.fleet, "merge-base", before, "drafts/lisbon") == before
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")
    assert world.sync().is_unchanged


def test_lost_state_and_deleted_variant_remove_nothing(world: World) -> None:
    delete_state(world, "berlin")
    world.write({"metrics.yaml": None})

    after = world.sync_until_unchanged()

    assert after.changed_branches == set()
    assert world.tree("clusters/berlin", "metrics")


def test_status_file_of_another_owner_does_not_prove_ownership(world: World) -> None:
    delete_state(world, "berlin")
    world.write({"metrics.yaml": variant("other-owner", "berlin", "metrics")})

    assert world.sync().outcomes["berlin/metrics"] == "DownstreamExists"
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("a: [\n", id="no-yaml"),
        pytest.param("", id="empty"),
        pytest.param("status: none\n", id="no-mapping"),
        pytest.param("- 1\n", id="a-list"),
    ],
)
def test_invalid_status_file_is_ignored(world: World, text: str) -> None:
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": text})
    delete_state(world, "berlin")

    after = world.sync_until_unchanged()

    assert after.outcomes == {
        "berlin/gateway": "published", "berlin/metrics": "DownstreamExists", "lisbon/gateway": "drafted",
    }  # fmt: skip


def test_status_file_with_false_trees_does_not_hide_local_changes(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    rendered = world.record("berlin", "metrics")["desiredTree"]
    lie = world.text("clusters/berlin", ".reconciler/metrics.yaml").replace(
        str(rendered), str(world.tree("clusters/berlin", "metrics"))
    )
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": lie})
    delete_state(world, "berlin")

    assert world.sync_until_unchanged().changed_branches == set()
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")


def test_newer_state_format_stops_an_earlier_version(world: World) -> None:
    text = git(world.fleet, "show", f"{STATE}berlin:destination.json")
    newer = json.dumps({**json.loads(text), "format": 999}).encode()
    commit_files(world.fleet, f"{STATE}berlin", {"destination.json": newer})
    world.write({"regions/north.yaml": config_map("region-north", api="new")})

    after = world.sync()

    assert "EngineTooOld" in after.codes
    assert after.changed_branches == set()


def test_state_keeps_all_trees_that_it_names(world: World) -> None:
    part = git(world.fleet, "ls-tree", "--name-only", f"{STATE}berlin:trees").split()

    record = world.record("berlin", "metrics")
    assert isinstance(record["publishedVersion"], dict)
    assert {record["publishedVersion"][name] for name in ("base", "merged", "plain", "rendered")} <= set(part)
    git(world.fleet, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")
    world.write({"regions/north.yaml": config_map("region-north", api="new")})
    world.sync()
    assert world.sync().is_unchanged


def test_new_cache_changes_nothing(world: World) -> None:
    fresh = World(world.folder, cache=str(world.folder / "another-cache"))

    assert fresh.sync().is_unchanged


def publish_revision(world: World, cluster: str, revision: str) -> None:
    world.release("metrics", revision, package("metrics", image=revision))
    world.write({"metrics.yaml": variant("metrics-berlin", cluster, "metrics", revision)})
    world.sync_until_unchanged()
    world.merge(cluster, "squash")
    world.sync_until_unchanged()


@pytest.fixture
def tagged_world(tmp_path: Path) -> World:
    """Return a world in which the package metrics of Berlin has three revisions with tags."""
    return begin(tmp_path, create_three_revisions)


def create_three_revisions(folder: Path) -> World:
    world = small_world(folder, git={"revision_tags": "all"})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    for revision in ("v2", "v3"):
        publish_revision(world, "berlin", revision)
    return world


def read_recorded_numbers(world: World) -> tuple[object, object, list[tuple[object, object, object]]]:
    """Return the revision number, the workspace and the revisions of the package metrics of Berlin in the state."""
    record = world.record("berlin", "metrics")
    revisions = record["revisions"]
    assert isinstance(revisions, list)
    return (
        record["revision"],
        record["workspace"],
        [(revision["number"], revision["commit"], revision["tag"]) for revision in revisions],
    )


@pytest.mark.slow
def test_lost_state_restores_its_numbers_from_tags(tagged_world: World) -> None:
    before = read_recorded_numbers(tagged_world)
    delete_state(tagged_world, "berlin", "lisbon")

    World(
        tagged_world.folder, cache=str(tagged_world.folder / "fresh"), git={"revision_tags": "all"}
    ).sync_until_unchanged()

    assert before[:2] == (3, 3)
    assert read_recorded_numbers(tagged_world) == (3, 3, before[2][-1:])
    publish_revision(tagged_world, "berlin", "v4")
    assert tagged_world.record("berlin", "metrics")["revision"] == 4
    result = git(tagged_world.fleet, "for-each-ref", "--format=%(contents)", "refs/tags/berlin/metrics/v4")
    assert "Reconciler-Workspace: packagevariant-4" in result


@pytest.mark.slow
def test_lost_state_restores_a_revision_after_a_revert(tagged_world: World) -> None:
    tagged_world.revert("berlin")
    delete_state(tagged_world, "berlin")

    tagged_world.sync_until_unchanged()

    number, _, revisions = read_recorded_numbers(tagged_world)
    assert (number, revisions[0][0]) == (3, 2)


def test_untagged_revision_before_the_lost_state_gets_the_next_number(tagged_world: World) -> None:
    before = read_recorded_numbers(tagged_world)
    git(tagged_world.fleet, "update-ref", "-d", "refs/tags/berlin/metrics/v3")
    delete_state(tagged_world, "berlin")

    tagged_world.sync_until_unchanged()

    number, _, revisions = read_recorded_numbers(tagged_world)
    assert (number, before[0]) == (3, 3)
    assert [revision[0] for revision in revisions] == [3]
    assert git(tagged_world.fleet, "rev-parse", "berlin/metrics/v3^{commit}") == tagged_world.head("clusters/berlin")


def test_locally_changed_package_keeps_its_number_after_a_lost_state(tagged_world: World) -> None:
    tagged_world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    delete_state(tagged_world, "berlin")

    tagged_world.sync_until_unchanged()

    assert read_recorded_numbers(tagged_world) == (3, 3, [])


def test_number_of_a_deleted_package_is_not_used_again_after_a_lost_state(tagged_world: World) -> None:
    deleted: dict[str, str | None] = {
        f"metrics/{path}": None for path in tagged_world.paths(tagged_world.fleet, "clusters/berlin", "metrics")
    }
    tagged_world.commit("clusters/berlin", {**deleted, ".reconciler/metrics.yaml": None})
    delete_state(tagged_world, "berlin")

    tagged_world.sync_until_unchanged()
    tagged_world.merge("berlin", "squash")
    tagged_world.sync_until_unchanged()

    assert tagged_world.record("berlin", "metrics")["revision"] == 4
    assert git(tagged_world.fleet, "tag", "--list", "berlin/metrics/*").split() == [
        f"berlin/metrics/v{n}" for n in (1, 2, 3, 4)
    ]


def test_lost_states_of_a_fleet_need_one_tag_fetch(tagged_world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tagged_world.merge("lisbon", "squash")
    tagged_world.sync_until_unchanged()
    delete_state(tagged_world, "berlin", "lisbon")
    values: list[set[str]] = []
    fetch_tags = Mirror.fetch_tags

    def record_fetch(mirror: Mirror, starts: Iterable[str]) -> None:
        values.append({*starts})
        fetch_tags(mirror, values[-1])

    monkeypatch.setattr(Mirror, "fetch_tags", record_fetch)

    after = tagged_world.sync()

    assert values == [{"berlin/gateway/v", "berlin/metrics/v", "lisbon/gateway/v"}]
    assert {after.outcomes[f"{cluster}/gateway"] for cluster in ("berlin", "lisbon")} == {"published"}
    assert [tagged_world.record(cluster, "gateway")["revision"] for cluster in ("berlin", "lisbon")] == [1, 1]
    tagged_world.sync_until_unchanged()
    assert len(values) == 1


LABELLED = "labels: {team: edge}\nannotations: {example.com/ticket: '7', approval.nephio.org/policy: initial}"
RELABELLED = "labels: {team: core}\nannotations: {approval.nephio.org/policy: always}"


def read_metadata(world: World) -> tuple[object, object]:
    record = world.record("berlin", "logs")
    return record["labels"], record["annotations"]


@pytest.mark.parametrize(
    ("created_with", "later", "expected"),
    [
        pytest.param(
            LABELLED, RELABELLED, ({"team": "edge"}, {"example.com/ticket": "7"}), id="approval-annotation-changed"
        ),
        pytest.param(
            LABELLED,
            LABELLED.replace("edge", "core"),
            ({"team": "edge"}, {"example.com/ticket": "7", "approval.nephio.org/policy": "initial"}),
            id="approval-annotation-kept",
        ),
        pytest.param("", RELABELLED, ({}, {}), id="created-without-any"),
    ],
)
def test_draft_keeps_the_labels_of_its_creation(
    world: World, created_with: str, later: str, expected: tuple[object, object]
) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=created_with)})
    world.sync()
    before = world.head("drafts/berlin")
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=later)})
    delete_state(world, "berlin")
    world.sync()

    assert read_metadata(world) == expected
    # The recovery makes no new commit.
    assert world.head("drafts/berlin") == before
    assert world.sync_until_unchanged().is_unchanged


def test_status_file_of_an_earlier_version_restores_the_labels_of_the_variant(world: World) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=LABELLED)})
    world.sync()
    path = ".reconciler/logs.yaml"
    lines = world.text("drafts/berlin", path).splitlines()
    start = lines.index("  labels:")
    world.commit("drafts/berlin", {path: "\n".join(lines[:start] + lines[start + 5 :]) + "\n"})
    assert not {"labels", "annotations"} & world.package_status("drafts/berlin", "logs").keys()
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=RELABELLED)})
    delete_state(world, "berlin")
    world.sync()

    assert read_metadata(world) == ({"team": "core"}, {"approval.nephio.org/policy": "always"})


def test_show_lists_the_labels_and_annotations_of_a_draft(world: World) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=LABELLED)})
    world.sync()
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=RELABELLED)})
    world.sync()
    (sheet,) = world.list_open_drafts("berlin/logs", whole=True)

    text = format_draft_text(build_draft_entry(sheet), world.now)
    assert "  labels: team=edge\n" in text
    assert "  annotations: approval.nephio.org/policy=initial, example.com/ticket=7\n" in text
    (data,) = build_draft_entry(sheet).to_data()["packages"]
    assert data["labels"] == {"team": "edge"}
