"""Tests with a simulated GitOps Promoter, which reads draft branches and `hydrator.metadata` and merges drafts."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.support.git_repositories import assert_sound, commit_files, git, make_bare, read_ref
from tests.support.prepared_worlds import begin
from tests.support.world import World, catalog, config_map, package, repository, variant

FILE = "hydrator.metadata"
NEXT, ACTIVE = "clusters/berlin-next", "clusters/berlin"
PROMOTED = {"drafts": {"branch": "{branch}-next"}}


class PromotedWorld(World):
    """Berlin with two packages, a config in a repository, and a simulated Promoter."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def configure(self, files: dict[str, str | None], message: str = "by hand") -> str:
        """Commit to the config. Return the commit."""
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        return commit_files(self.folder / "config.git", "refs/heads/main", data, message, 1_200_000_000)

    def release_metrics(self, version: str) -> str:
        """Release metrics and request the version on Berlin. Return the config commit."""
        self.release("metrics", version, package("metrics", image=version))
        return self.configure({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})

    def read_metadata(self, branch: str, path: str = FILE) -> dict[str, str]:
        """Return the metadata of a branch or commit about its config commit, or {} without metadata."""
        text = git(self.fleet, "show", f"{branch}:{path}", check=False)
        loads: dict[str, str] = json.loads(text) if text else {}
        return loads

    def read_dry_commit(self, branch: str) -> str:
        return self.read_metadata(branch).get("drySha", "")

    def promote(self) -> str:
        """Run the steps of Promoter for one environment. Return the name of the result."""
        clone = self._clone()
        assert self.head(NEXT), "Promoter requires the branch"
        if self.read_dry_commit(NEXT) == self.read_dry_commit(ACTIVE):
            return "nothing to promote"
        git(clone, "checkout", "--quiet", "--detach", f"origin/{NEXT}")
        if "CONFLICT" in git(clone, "merge-tree", "--write-tree", f"origin/{ACTIVE}", f"origin/{NEXT}", check=False):
            git(clone, "merge", "--quiet", "--strategy=ours", "--no-edit", f"origin/{ACTIVE}")
            git(clone, "push", "--quiet", "origin", f"HEAD:{NEXT}")
            return "resolved"
        git(clone, "checkout", "--quiet", "--detach", f"origin/{ACTIVE}")
        git(clone, "merge", "--quiet", "--no-ff", "--no-edit", f"origin/{NEXT}")
        git(clone, "push", "--quiet", "origin", f"HEAD:{ACTIVE}")
        return "merged"

    def squash_draft(self, head: str = f"origin/{NEXT}") -> None:
        """Merge the draft as one commit without its history."""
        clone = self._clone()
        git(clone, "checkout", "--quiet", "--detach", f"origin/{ACTIVE}")
        git(clone, "merge", "--quiet", "--squash", head)
        git(clone, "commit", "--quiet", "-m", "Promote")
        git(clone, "push", "--quiet", "origin", f"HEAD:{ACTIVE}")

    def list_dry_commits(self) -> list[str]:
        """Return the config commit that each commit of the draft names, oldest first."""
        listed = git(self.fleet, "log", "--reverse", "--first-parent", "--format=%H", f"{ACTIVE}..{NEXT}").split()
        return [self.read_dry_commit(item) for item in listed]


def build_promoted_world(folder: Path, repo: str = repository("berlin"), **settings: object) -> PromotedWorld:
    world = PromotedWorld(folder, **(settings or PROMOTED))
    for name in ("catalog.git", "fleet.git", "config.git"):
        make_bare(folder / name)
    for name in ("gateway", "metrics"):
        world.release(name, "v1", package(name))
    world.configure(
        {
            "catalog.yaml": catalog(),
            "berlin.yaml": repo,
            "gateway.yaml": variant("gateway-berlin", "berlin", "gateway"),
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics"),
        },
        "Berlin: gateway and metrics\n\nThe fair needs them.\n\nSigned-off-by: Ada",
    )
    return world


@pytest.fixture
def world(tmp_path: Path) -> PromotedWorld:
    """Berlin's draft contains gateway and metrics, ready for Promoter."""
    return begin(tmp_path, build_drafted_world)


def build_drafted_world(folder: Path) -> PromotedWorld:
    world = build_promoted_world(folder)
    world.sync()
    return world


def is_idle(world: PromotedWorld) -> bool:
    """Return whether the draft branch exists without a draft."""
    return world.head(NEXT) == world.head(ACTIVE) and world.list_open_drafts("berlin") == []


def edit_below_draft(world: PromotedWorld) -> None:
    """Change a drafted field on the target branch before the next pass."""
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync()
    world.edit(ACTIVE, "metrics/deployment.yaml", "example.com/metrics:1.0", "example.com/metrics:1.0.1")


def read_config_head(world: PromotedWorld) -> str:
    return read_ref(world.folder / "config.git", "refs/heads/main") or ""


def test_every_draft_commit_names_its_config_commit(world: PromotedWorld) -> None:
    assert world.list_dry_commits() == [read_config_head(world)] * 2
    assert world.read_metadata(NEXT) == {
        "drySha": read_config_head(world),
        "author": "Ada <ada@example.com>",
        "date": "2008-01-10T21:20:00Z",
        "subject": "Berlin: gateway and metrics",
        "body": "The fair needs them.\n\nSigned-off-by: Ada",
    }
    assert world.sync().is_unchanged


def test_a_config_commit_without_effect_on_the_cluster_moves_no_branch(world: PromotedWorld) -> None:
    before = world.head(NEXT)
    world.configure({"more.yaml": config_map("more", x="1")})

    assert world.sync().changed_branches == set()
    assert world.head(NEXT) == before


def test_a_promotion_ends_the_draft_and_a_release_starts_the_next_one(world: PromotedWorld) -> None:
    first = read_config_head(world)
    assert world.promote() == "merged"
    ended = world.sync()

    assert ended.changed_branches == {NEXT}
    assert is_idle(world)
    assert world.promote() == "nothing to promote"
    assert world.read_dry_commit(ACTIVE) == first
    assert world.sync().is_unchanged
    second = world.release_metrics("v2")
    world.sync()
    assert (world.read_dry_commit(ACTIVE), world.read_dry_commit(NEXT)) == (first, second)
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.read_dry_commit(ACTIVE) == second
    assert is_idle(world)
    assert_sound(world.fleet)


def test_a_commit_appended_to_an_open_draft_names_the_newer_config(world: PromotedWorld) -> None:
    first = read_config_head(world)
    second = world.release_metrics("v2")
    world.sync()

    assert world.list_dry_commits() == [first, first, second]
    assert world.promote() == "merged"
    assert world.sync().changed_branches == {NEXT}
    assert world.sync().is_unchanged


def test_a_rebuilt_draft_names_the_current_config(world: PromotedWorld) -> None:
    second = world.configure({"metrics.yaml": None})
    world.sync()

    assert world.list_dry_commits() == [second]
    assert world.tree(NEXT, "metrics") is None
    assert world.sync().is_unchanged


def test_after_a_squash_of_an_older_head_the_new_draft_merges(world: PromotedWorld) -> None:
    world.squash_draft()
    second = world.release_metrics("v2")
    world.sync()

    assert world.list_dry_commits() == [second]
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.read_dry_commit(ACTIVE) == second


@pytest.mark.slow
def test_an_edited_draft_merges_the_target_branch_and_names_the_new_config(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync()
    world.edit(NEXT, "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.commit(ACTIVE, {"metrics/note.txt": "by the night shift\n"})
    third = world.release_metrics("v3")
    world.sync_until_unchanged()

    assert world.read_dry_commit(NEXT) == third
    assert "replicas: 5" in world.text(NEXT, "metrics/deployment.yaml")
    assert world.text(NEXT, "metrics/note.txt") == "by the night shift\n"
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert is_idle(world)


@pytest.mark.slow
def test_after_a_squash_of_an_older_head_an_edited_draft_merges(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    for version in ("v2", "v3"):
        world.release_metrics(version)
        world.sync()
    older = git(world.fleet, "rev-parse", f"{NEXT}^")
    world.edit(NEXT, "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.squash_draft(older)
    last = world.release_metrics("v4")
    world.sync_until_unchanged()

    assert world.read_dry_commit(NEXT) == last
    assert "replicas: 5" in world.text(NEXT, "metrics/deployment.yaml")
    assert world.promote() == "merged"


def test_an_edited_draft_that_differs_only_in_the_metadata_file_ends(world: PromotedWorld) -> None:
    world.edit(NEXT, "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    mapping = {path: text + "\n" for path, text in world.files(world.fleet, NEXT).items() if path != FILE}
    world.commit(ACTIVE, mapping)
    world.sync_until_unchanged()

    assert is_idle(world)
    assert world.read_metadata(ACTIVE) == {}


def test_a_conflict_merge_of_promoter_is_accepted(world: PromotedWorld) -> None:
    edit_below_draft(world)

    assert [world.promote(), world.promote()] == ["resolved", "merged"]
    world.sync_until_unchanged()
    assert "example.com/metrics:v2" in world.text(ACTIVE, "metrics/deployment.yaml")
    assert world.read_dry_commit(ACTIVE) == read_config_head(world)
    assert is_idle(world)
    assert_sound(world.fleet)


@pytest.mark.slow
def test_a_conflict_merge_of_promoter_before_a_pass_stays_in_the_draft(world: PromotedWorld) -> None:
    edit_below_draft(world)
    world.promote()
    third = world.release_metrics("v3")
    world.sync_until_unchanged()

    assert world.read_dry_commit(NEXT) == third
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.read_dry_commit(ACTIVE) == third
    assert is_idle(world)


def test_the_metadata_file_is_not_an_extra_path_of_the_draft(world: PromotedWorld) -> None:
    (details,) = world.list_open_drafts("berlin")

    assert details.extra_paths == ()
    assert [drafted_package.package for drafted_package in details.draft.packages] == ["gateway", "metrics"]


def test_approving_the_whole_draft_by_command_publishes_the_metadata(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)

    assert world.read_dry_commit(ACTIVE) == read_config_head(world)
    world.sync_until_unchanged()
    assert is_idle(world)


def test_approving_one_package_keeps_the_metadata_on_the_draft(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin/gateway", should_approve_unproposed=True)
    world.sync_until_unchanged()

    assert (world.read_dry_commit(ACTIVE), world.read_dry_commit(NEXT)) == ("", read_config_head(world))
    assert world.tree(ACTIVE, "gateway")
    # The metadata still differs, so Promoter merges the remaining packages.
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert is_idle(world)


def test_approving_the_last_package_by_name_publishes_the_metadata(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin/gateway", should_approve_unproposed=True)
    world.sync()
    world.run_review_action("approve", "berlin/metrics", should_approve_unproposed=True)
    world.sync_until_unchanged()

    assert world.read_dry_commit(ACTIVE) == read_config_head(world)
    assert is_idle(world)


def test_dropping_a_package_keeps_the_metadata_and_dropping_the_last_one_ends_the_draft(world: PromotedWorld) -> None:
    world.run_review_action("drop", "berlin/gateway")
    world.sync_until_unchanged()
    metadata_commit = world.read_dry_commit(NEXT)
    world.run_review_action("drop", "berlin/metrics")
    world.sync_until_unchanged()

    assert metadata_commit == read_config_head(world)
    assert is_idle(world)


def test_a_removal_draft_does_not_change_the_metadata(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    promoted = world.read_metadata(ACTIVE)
    world.configure({"metrics.yaml": None})
    world.sync_until_unchanged()

    assert world.head("removals/berlin")
    # The file on the removal draft comes from the target branch.
    assert world.read_metadata("removals/berlin") == promoted
    assert git(world.fleet, "diff", "--name-only", ACTIVE, "removals/berlin", "--", FILE) == ""


def test_an_idle_draft_branch_follows_the_target_branch(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.edit(ACTIVE, "metrics/deployment.yaml", "replicas: 2", "replicas: 3")
    assert world.list_open_drafts("berlin") == [], "an idle branch behind the target branch is not a draft"
    followed = world.sync()

    assert followed.changed_branches == {NEXT}
    assert is_idle(world)
    assert world.sync().is_unchanged
    world.release_metrics("v2")
    world.sync()
    assert world.promote() == "merged"
    assert "replicas: 3" in world.text(ACTIVE, "metrics/deployment.yaml")


def test_an_idle_draft_branch_that_moves_during_a_push_is_planned_again(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync_while(lambda: world.commit(ACTIVE, {"note.txt": "hot\n"}))
    world.sync_until_unchanged()

    assert world.promote() == "merged"
    assert world.text(ACTIVE, "note.txt") == "hot\n"


def test_a_draft_branch_that_the_host_deletes_after_the_merge_is_created_again(world: PromotedWorld) -> None:
    world.promote()
    world.delete(NEXT)
    world.sync()

    assert is_idle(world)
    assert world.sync().is_unchanged


def test_a_draft_that_people_delete_is_declined_and_the_branch_is_idle(world: PromotedWorld) -> None:
    world.delete(NEXT)
    world.sync()

    assert is_idle(world)
    assert world.tree(NEXT, "metrics") is None
    assert world.sync().is_unchanged


def test_a_commit_of_people_on_an_idle_branch_is_their_draft(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    head = world.commit(NEXT, {"note.txt": "not yet\n"})
    world.sync_until_unchanged()

    assert world.head(NEXT) == head
    assert [drafted_file.path for drafted_file in world.list_open_drafts("berlin")[0].draft.files_outside_packages] == [
        "note.txt"
    ]


def test_a_fast_forward_merge_leaves_the_branch_idle(world: PromotedWorld) -> None:
    world.set_ref(f"refs/heads/{ACTIVE}", world.head(NEXT))

    assert world.sync().changed_branches == set()
    assert is_idle(world)
    assert world.sync().is_unchanged


def test_approving_a_removal_moves_the_idle_branch(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.configure({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.run_review_action("approve", "berlin", should_approve_unproposed=True, removals=True)
    world.sync_until_unchanged()

    assert world.tree(ACTIVE, "metrics") is None
    assert is_idle(world)


def test_with_lost_state_the_draft_is_recognized(world: PromotedWorld) -> None:
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/berlin")
    world.sync_until_unchanged()

    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert is_idle(world)


@pytest.mark.parametrize(
    ("template", "directory", "draft", "path"),
    [
        pytest.param("{branch}-next", "", NEXT, FILE, id="a-whole-branch"),
        pytest.param("{branch}-next", "berlin", NEXT, FILE, id="a-directory-of-a-whole-branch"),
        pytest.param("{branch}-next/{repository}", "berlin", f"{NEXT}/berlin", f"berlin/{FILE}", id="an-active-path"),
        pytest.param("{branch}-next/{repository}", "sites/a", f"{NEXT}/berlin", "", id="a-path-with-another-name"),
        pytest.param("drafts/{repository}", "", "drafts/berlin", "", id="drafts-that-promoter-does-not-read"),
    ],
)
def test_metadata_file_is_written_where_promoter_reads_it(
    tmp_path: Path, template: str, directory: str, draft: str, path: str
) -> None:
    git_fields = {"directory": directory} if directory else {}
    world = build_promoted_world(tmp_path, repository("berlin", **git_fields), drafts={"branch": template})
    world.sync()

    values = [path for path in world.paths(world.fleet, draft) if path.endswith(FILE)]
    assert values == ([path] if path else [])
    assert world.sync_until_unchanged().is_unchanged


def test_a_plain_config_folder_produces_no_metadata_file(tmp_path: Path) -> None:
    world = World.create(tmp_path, **PROMOTED)
    world.release("gateway", "v1", package("gateway"))
    files = {"a.yaml": catalog(), "b.yaml": repository("berlin"), "c.yaml": variant("gw", "berlin", "gateway")}
    world.write(files)
    world.sync()

    assert world.head(NEXT)
    assert FILE not in world.paths(world.fleet, NEXT)


def test_two_repositories_with_one_draft_branch_are_a_conflict(tmp_path: Path) -> None:
    world = World.create(tmp_path, **PROMOTED)
    world.release("gateway", "v1", package("gateway"))
    repositories = {
        f"{cluster}.yaml": repository(cluster, branch="main", directory=cluster) for cluster in ("berlin", "lisbon")
    }
    expected = {f"gw-{cluster}.yaml": variant(f"gw-{cluster}", cluster, "gateway") for cluster in ("berlin", "lisbon")}
    world.write({"catalog.yaml": catalog(), **repositories, **expected})

    after = world.sync()

    assert "DestinationConflict" in after.codes
    assert not world.head("main-next")
