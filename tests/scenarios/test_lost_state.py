"""State is only memory: lost, old, or newer than we are, nothing is removed, overwritten or fought over."""

import json
from collections.abc import Iterable
from pathlib import Path

import pytest

from reconciler.git.mirror import Mirror
from reconciler.output.review.open_drafts import build_draft_data, format_draft_text
from tests.support.git_repositories import commit_files, git
from tests.support.prepared_worlds import begin, berlin_published
from tests.support.world import STATE, World, config_map, package, small_world, variant


def lose_state(world: World, *clusters: str) -> None:
    for cluster in clusters:
        git(world.fleet, "update-ref", "-d", STATE + cluster)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has both packages published; Lisbon's draft is open."""
    return begin(tmp_path, berlin_published)


def test_a_lost_state_is_read_back_from_status_files_and_moves_no_branch(world: World) -> None:
    lose_state(world, "berlin", "lisbon")

    after = world.sync()

    assert after.changed_branches == set()
    assert after.outcomes == {"berlin/gateway": "published", "berlin/metrics": "published", "lisbon/gateway": "drafted"}
    assert world.sync().is_unchanged


def test_after_a_lost_state_an_update_goes_on_as_before(world: World) -> None:
    lose_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.sync().outcomes["berlin/metrics"] == "draft"
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_after_a_lost_state_an_edited_package_is_not_overwritten(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    lose_state(world, "berlin")
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})

    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert ("replicas: 5" in text, "metrics:2.0" in text) == (True, True)


def test_after_a_lost_state_an_edited_draft_is_not_overwritten(world: World) -> None:
    edited = world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    lose_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.sync_until_unchanged()

    assert git(world.fleet, "merge-base", edited, "drafts/lisbon") == edited
    assert "replicas: 5" in world.text("drafts/lisbon", "gateway/deployment.yaml")
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")


def test_after_a_lost_state_an_open_draft_is_only_appended_to(world: World) -> None:
    before = world.head("drafts/lisbon")
    lose_state(world, "lisbon")
    world.write({"regions/south.yaml": config_map("region-south", api="new")})

    world.sync()

    assert git(world.fleet, "merge-base", before, "drafts/lisbon") == before
    assert "api: new" in world.text("drafts/lisbon", "gateway/endpoints.yaml")
    assert world.sync().is_unchanged


def test_after_a_lost_state_nothing_of_a_vanished_variant_is_removed(world: World) -> None:
    lose_state(world, "berlin")
    world.write({"metrics.yaml": None})

    after = world.sync_until_unchanged()

    assert after.changed_branches == set()
    assert world.tree("clusters/berlin", "metrics")


def test_a_status_file_of_another_owner_gives_nobody_a_right(world: World) -> None:
    lose_state(world, "berlin")
    world.write({"metrics.yaml": variant("somebody", "berlin", "metrics")})

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
def test_a_spoilt_status_file_is_as_good_as_none(world: World, text: str) -> None:
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": text})
    lose_state(world, "berlin")

    after = world.sync_until_unchanged()

    assert after.outcomes == {
        "berlin/gateway": "published", "berlin/metrics": "DownstreamExists", "lisbon/gateway": "drafted",
    }  # fmt: skip


def test_a_status_file_that_lies_about_its_trees_does_not_pass_edits_off_as_ours(world: World) -> None:
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    rendered = world.record("berlin", "metrics")["wanted"]
    lie = world.text("clusters/berlin", ".reconciler/metrics.yaml").replace(
        str(rendered), str(world.tree("clusters/berlin", "metrics"))
    )
    world.commit("clusters/berlin", {".reconciler/metrics.yaml": lie})
    lose_state(world, "berlin")

    assert world.sync_until_unchanged().changed_branches == set()
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")


def test_a_newer_state_stops_an_older_engine(world: World) -> None:
    text = git(world.fleet, "show", f"{STATE}berlin:destination.json")
    newer = json.dumps({**json.loads(text), "format": 999}).encode()
    commit_files(world.fleet, f"{STATE}berlin", {"destination.json": newer})
    world.write({"regions/north.yaml": config_map("region-north", api="new")})

    after = world.sync()

    assert "EngineTooOld" in after.codes
    assert after.changed_branches == set()


def test_the_state_keeps_every_tree_it_names(world: World) -> None:
    part = git(world.fleet, "ls-tree", "--name-only", f"{STATE}berlin:trees").split()

    record = world.record("berlin", "metrics")
    assert isinstance(record["ours"], dict)
    assert {record["ours"][name] for name in ("base", "merged", "plain", "rendered")} <= set(part)
    git(world.fleet, "-c", "gc.pruneExpire=now", "gc", "--quiet", "--prune=now")
    world.write({"regions/north.yaml": config_map("region-north", api="new")})
    world.sync()
    assert world.sync().is_unchanged


def test_a_fresh_cache_changes_nothing(world: World) -> None:
    fresh = World(world.folder, cache=str(world.folder / "another-cache"))

    assert fresh.sync().is_unchanged


def publish_next(world: World, cluster: str, revision: str) -> None:
    world.release("metrics", revision, package("metrics", image=revision))
    world.write({"metrics.yaml": variant("metrics-berlin", cluster, "metrics", revision)})
    world.sync_until_unchanged()
    world.merge(cluster, "squash")
    world.sync_until_unchanged()


@pytest.fixture
def tagged(tmp_path: Path) -> World:
    """Berlin's metrics have three revisions with tags."""
    return begin(tmp_path, three_revisions)


def three_revisions(folder: Path) -> World:
    world = small_world(folder, git={"revision_tags": "all"})
    world.sync()
    world.merge("berlin", "squash")
    world.sync_until_unchanged()
    for revision in ("v2", "v3"):
        publish_next(world, "berlin", revision)
    return world


def known_as(world: World) -> tuple[object, object, list[tuple[object, object, object]]]:
    """Return the number, the workspace and the revisions of Berlin's metrics as state knows them."""
    record = world.record("berlin", "metrics")
    revisions = record["revisions"]
    assert isinstance(revisions, list)
    return (
        record["revision"],
        record["workspace"],
        [(revision["number"], revision["commit"], revision["tag"]) for revision in revisions],
    )


def test_a_lost_state_has_its_numbers_from_tags(tagged: World) -> None:
    before = known_as(tagged)
    lose_state(tagged, "berlin", "lisbon")

    World(tagged.folder, cache=str(tagged.folder / "fresh"), git={"revision_tags": "all"}).sync_until_unchanged()

    assert before[:2] == (3, 3)
    assert known_as(tagged) == (3, 3, before[2][-1:])
    publish_next(tagged, "berlin", "v4")
    assert tagged.record("berlin", "metrics")["revision"] == 4
    result = git(tagged.fleet, "for-each-ref", "--format=%(contents)", "refs/tags/berlin/metrics/v4")
    assert "Reconciler-Workspace: packagevariant-4" in result


def test_a_lost_state_knows_a_revision_that_the_branch_went_back_to(tagged: World) -> None:
    tagged.revert("berlin")
    lose_state(tagged, "berlin")

    tagged.sync_until_unchanged()

    number, _, revisions = known_as(tagged)
    assert (number, revisions[0][0]) == (3, 2)


def test_what_was_published_and_not_tagged_before_the_state_was_lost_is_the_next_revision(tagged: World) -> None:
    before = known_as(tagged)
    git(tagged.fleet, "update-ref", "-d", "refs/tags/berlin/metrics/v3")
    lose_state(tagged, "berlin")

    tagged.sync_until_unchanged()

    number, _, revisions = known_as(tagged)
    assert (number, before[0]) == (3, 3)
    assert [revision[0] for revision in revisions] == [3]
    assert git(tagged.fleet, "rev-parse", "berlin/metrics/v3^{commit}") == tagged.head("clusters/berlin")


def test_an_edited_package_keeps_its_number_when_the_state_is_lost(tagged: World) -> None:
    tagged.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    lose_state(tagged, "berlin")

    tagged.sync_until_unchanged()

    assert known_as(tagged) == (3, 3, [])


def test_the_number_of_a_package_that_is_gone_is_not_used_again_after_a_lost_state(tagged: World) -> None:
    deleted: dict[str, str | None] = {
        f"metrics/{path}": None for path in tagged.paths(tagged.fleet, "clusters/berlin", "metrics")
    }
    tagged.commit("clusters/berlin", {**deleted, ".reconciler/metrics.yaml": None})
    lose_state(tagged, "berlin")

    tagged.sync_until_unchanged()
    tagged.merge("berlin", "squash")
    tagged.sync_until_unchanged()

    assert tagged.record("berlin", "metrics")["revision"] == 4
    assert git(tagged.fleet, "tag", "--list", "berlin/metrics/*").split() == [
        f"berlin/metrics/v{n}" for n in (1, 2, 3, 4)
    ]


def test_a_lost_fleet_asks_for_its_tags_at_once(tagged: World, monkeypatch: pytest.MonkeyPatch) -> None:
    tagged.merge("lisbon", "squash")
    tagged.sync_until_unchanged()
    lose_state(tagged, "berlin", "lisbon")
    values: list[set[str]] = []
    fetch_tags = Mirror.fetch_tags

    def noted(mirror: Mirror, starts: Iterable[str]) -> None:
        values.append({*starts})
        fetch_tags(mirror, values[-1])

    monkeypatch.setattr(Mirror, "fetch_tags", noted)

    after = tagged.sync()

    assert values == [{"berlin/gateway/v", "berlin/metrics/v", "lisbon/gateway/v"}]
    assert {after.outcomes[f"{cluster}/gateway"] for cluster in ("berlin", "lisbon")} == {"published"}
    assert [tagged.record(cluster, "gateway")["revision"] for cluster in ("berlin", "lisbon")] == [1, 1]
    tagged.sync_until_unchanged()
    assert len(values) == 1


LABELLED = "labels: {team: edge}\nannotations: {example.com/ticket: '7', approval.nephio.org/policy: initial}"
RELABELLED = "labels: {team: core}\nannotations: {approval.nephio.org/policy: always}"


def metadata_of(world: World) -> tuple[object, object]:
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
def test_a_draft_keeps_the_labels_of_its_creation(
    world: World, created_with: str, later: str, expected: tuple[object, object]
) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=created_with)})
    world.sync()
    before = world.head("drafts/berlin")
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=later)})
    lose_state(world, "berlin")
    world.sync()

    assert metadata_of(world) == expected
    # The recovery makes no new commit.
    assert world.head("drafts/berlin") == before
    assert world.sync_until_unchanged().is_unchanged


def test_a_status_file_of_an_earlier_version_gives_the_labels_of_the_variant(world: World) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=LABELLED)})
    world.sync()
    path = ".reconciler/logs.yaml"
    lines = world.text("drafts/berlin", path).splitlines()
    start = lines.index("  labels:")
    world.commit("drafts/berlin", {path: "\n".join(lines[:start] + lines[start + 5 :]) + "\n"})
    assert not {"labels", "annotations"} & world.package_status("drafts/berlin", "logs").keys()
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=RELABELLED)})
    lose_state(world, "berlin")
    world.sync()

    assert metadata_of(world) == ({"team": "core"}, {"approval.nephio.org/policy": "always"})


def test_show_lists_the_labels_and_annotations_of_a_draft(world: World) -> None:
    world.release("logs", "v1", package("logs"))
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=LABELLED)})
    world.sync()
    world.write({"logs.yaml": variant("logs-berlin", "berlin", "logs", extra=RELABELLED)})
    world.sync()
    (sheet,) = world.list_open_drafts("berlin/logs", whole=True)

    text = format_draft_text(sheet, world.now, 0)
    assert "  labels: team=edge\n" in text
    assert "  annotations: approval.nephio.org/policy=initial, example.com/ticket=7\n" in text
    (data,) = build_draft_data(sheet, 0)["packages"]
    assert data["labels"] == {"team": "edge"}
