"""GitOps Promoter takes the drafts over: it goes by names and by one file, and merges in its own way (decision 12)."""

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
    """Berlin with two packages, a config in a repository, and a Promoter that can be told to look."""

    @property
    def source(self) -> str:
        return str(self.folder / "config.git")

    def configure(self, files: dict[str, str | None], message: str = "by hand") -> str:
        """Commit to the config; return the commit."""
        data = {path: None if text is None else text.encode() for path, text in files.items()}
        return commit_files(self.folder / "config.git", "refs/heads/main", data, message, 1_200_000_000)

    def release_metrics(self, version: str) -> str:
        """Release metrics and have Berlin take it; return the config commit."""
        self.release("metrics", version, package("metrics", image=version))
        return self.configure({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})

    def metadata(self, branch: str, path: str = FILE) -> dict[str, str]:
        """Return what a branch or commit says of the config that it was made of; {} where it says nothing."""
        text = git(self.fleet, "show", f"{branch}:{path}", check=False)
        loads: dict[str, str] = json.loads(text) if text else {}
        return loads

    def dry(self, branch: str) -> str:
        return self.metadata(branch).get("drySha", "")

    def promote(self) -> str:
        """Do what Promoter does with one environment; return what it was."""
        desk = self._clone()
        assert self.head(NEXT), "Promoter fails without the branch"
        if self.dry(NEXT) == self.dry(ACTIVE):
            return "nothing to promote"
        git(desk, "checkout", "--quiet", "--detach", f"origin/{NEXT}")
        if "CONFLICT" in git(desk, "merge-tree", "--write-tree", f"origin/{ACTIVE}", f"origin/{NEXT}", check=False):
            git(desk, "merge", "--quiet", "--strategy=ours", "--no-edit", f"origin/{ACTIVE}")
            git(desk, "push", "--quiet", "origin", f"HEAD:{NEXT}")
            return "resolved"
        git(desk, "checkout", "--quiet", "--detach", f"origin/{ACTIVE}")
        git(desk, "merge", "--quiet", "--no-ff", "--no-edit", f"origin/{NEXT}")
        git(desk, "push", "--quiet", "origin", f"HEAD:{ACTIVE}")
        return "merged"

    def squash(self, head: str = f"origin/{NEXT}") -> None:
        """Take the draft in one commit without its history, as many hosts are told to."""
        desk = self._clone()
        git(desk, "checkout", "--quiet", "--detach", f"origin/{ACTIVE}")
        git(desk, "merge", "--quiet", "--squash", head)
        git(desk, "commit", "--quiet", "-m", "Promote")
        git(desk, "push", "--quiet", "origin", f"HEAD:{ACTIVE}")

    def said_by_each_commit(self) -> list[str]:
        """Return the config commit that each commit of the draft names, oldest first."""
        listed = git(self.fleet, "log", "--reverse", "--first-parent", "--format=%H", f"{ACTIVE}..{NEXT}").split()
        return [self.dry(item) for item in listed]


def made(folder: Path, repo: str = repository("berlin"), **settings: object) -> PromotedWorld:
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
    """Berlin's draft holds gateway and metrics, for Promoter to take over."""
    return begin(tmp_path, drafted)


def drafted(folder: Path) -> PromotedWorld:
    world = made(folder)
    world.sync()
    return world


def rests(world: PromotedWorld) -> bool:
    """Return whether Promoter's branch is there without a draft on it."""
    return world.head(NEXT) == world.head(ACTIVE) and world.list_open_drafts("berlin") == []


def outrun(world: PromotedWorld) -> None:
    """Change by hand what the draft changes, before the next pass can see it."""
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync()
    world.edit(ACTIVE, "metrics/deployment.yaml", "example.com/metrics:1.0", "example.com/metrics:1.0.1")


def config_head(world: PromotedWorld) -> str:
    return read_ref(world.folder / "config.git", "refs/heads/main") or ""


def test_every_commit_names_the_config_that_it_was_made_of(world: PromotedWorld) -> None:
    assert world.said_by_each_commit() == [config_head(world)] * 2
    assert world.metadata(NEXT) == {
        "drySha": config_head(world),
        "author": "Ada <ada@example.com>",
        "date": "2008-01-10T21:20:00Z",
        "subject": "Berlin: gateway and metrics",
        "body": "The fair needs them.\n\nSigned-off-by: Ada",
    }
    assert world.sync().is_unchanged


def test_a_config_commit_that_changes_nothing_here_moves_nothing(world: PromotedWorld) -> None:
    before = world.head(NEXT)
    world.configure({"more.yaml": config_map("more", x="1")})

    assert world.sync().changed_branches == set()
    assert world.head(NEXT) == before


def test_a_promotion_ends_the_draft_and_the_next_one_begins_another(world: PromotedWorld) -> None:
    first = config_head(world)
    assert world.promote() == "merged"
    ended = world.sync()

    assert ended.changed_branches == {NEXT}
    assert rests(world)
    assert world.promote() == "nothing to promote"
    assert world.dry(ACTIVE) == first
    assert world.sync().is_unchanged
    second = world.release_metrics("v2")
    world.sync()
    assert (world.dry(ACTIVE), world.dry(NEXT)) == (first, second)
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.dry(ACTIVE) == second
    assert rests(world)
    assert_sound(world.fleet)


def test_what_is_added_while_promoter_waits_names_the_newer_config(world: PromotedWorld) -> None:
    first = config_head(world)
    second = world.release_metrics("v2")
    world.sync()

    assert world.said_by_each_commit() == [first, first, second]
    assert world.promote() == "merged"
    assert world.sync().changed_branches == {NEXT}
    assert world.sync().is_unchanged


def test_a_rebuilt_draft_names_the_config_of_today(world: PromotedWorld) -> None:
    second = world.configure({"metrics.yaml": None})
    world.sync()

    assert world.said_by_each_commit() == [second]
    assert world.tree(NEXT, "metrics") is None
    assert world.sync().is_unchanged


def test_an_older_head_that_was_squashed_leaves_a_draft_that_merges(world: PromotedWorld) -> None:
    world.squash()
    second = world.release_metrics("v2")
    world.sync()

    assert world.said_by_each_commit() == [second]
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.dry(ACTIVE) == second


def test_a_draft_that_people_work_on_takes_the_branch_in_and_says_so(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync()
    world.edit(NEXT, "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.commit(ACTIVE, {"metrics/note.txt": "by the night shift\n"})
    third = world.release_metrics("v3")
    world.sync_until_unchanged()

    assert world.dry(NEXT) == third
    assert "replicas: 5" in world.text(NEXT, "metrics/deployment.yaml")
    assert world.text(NEXT, "metrics/note.txt") == "by the night shift\n"
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert rests(world)


def test_an_older_head_that_was_squashed_is_no_collision_with_what_people_do(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    for version in ("v2", "v3"):
        world.release_metrics(version)
        world.sync()
    older = git(world.fleet, "rev-parse", f"{NEXT}^")
    world.edit(NEXT, "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.squash(older)
    last = world.release_metrics("v4")
    world.sync_until_unchanged()

    assert world.dry(NEXT) == last
    assert "replicas: 5" in world.text(NEXT, "metrics/deployment.yaml")
    assert world.promote() == "merged"


def test_a_draft_that_people_worked_on_and_finished_is_not_kept_for_the_file_alone(world: PromotedWorld) -> None:
    world.edit(NEXT, "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    mapping = {path: text + "\n" for path, text in world.files(world.fleet, NEXT).items() if path != FILE}
    world.commit(ACTIVE, mapping)
    world.sync_until_unchanged()

    assert rests(world)
    assert world.metadata(ACTIVE) == {}


def test_promoters_own_merge_of_a_conflict_is_lived_with(world: PromotedWorld) -> None:
    outrun(world)

    assert [world.promote(), world.promote()] == ["resolved", "merged"]
    world.sync_until_unchanged()
    assert "example.com/metrics:v2" in world.text(ACTIVE, "metrics/deployment.yaml")
    assert world.dry(ACTIVE) == config_head(world)
    assert rests(world)
    assert_sound(world.fleet)


def test_promoters_merge_that_a_pass_sees_is_people_s_work_and_stays(world: PromotedWorld) -> None:
    outrun(world)
    world.promote()
    third = world.release_metrics("v3")
    world.sync_until_unchanged()

    assert world.dry(NEXT) == third
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert world.dry(ACTIVE) == third
    assert rests(world)


def test_it_is_nobodys_work_beside_the_packages(world: PromotedWorld) -> None:
    (sheet,) = world.list_open_drafts("berlin")

    assert sheet.extra_paths == ()
    assert [drafted_package.package for drafted_package in sheet.draft.packages] == ["gateway", "metrics"]


def test_approving_all_by_command_takes_it_along(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)

    assert world.dry(ACTIVE) == config_head(world)
    world.sync_until_unchanged()
    assert rests(world)


def test_approving_one_package_leaves_it_with_the_rest(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin/gateway", should_approve_unproposed=True)
    world.sync_until_unchanged()

    assert (world.dry(ACTIVE), world.dry(NEXT)) == ("", config_head(world))
    assert world.tree(ACTIVE, "gateway")
    # Promoter sees that there is something left
    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert rests(world)


def test_approving_the_last_package_by_name_takes_it_along(world: PromotedWorld) -> None:
    world.run_review_action("approve", "berlin/gateway", should_approve_unproposed=True)
    world.sync()
    world.run_review_action("approve", "berlin/metrics", should_approve_unproposed=True)
    world.sync_until_unchanged()

    assert world.dry(ACTIVE) == config_head(world)
    assert rests(world)


def test_taking_a_package_out_leaves_it_and_taking_the_last_one_ends_the_draft(world: PromotedWorld) -> None:
    world.run_review_action("drop", "berlin/gateway")
    world.sync_until_unchanged()
    left = world.dry(NEXT)
    world.run_review_action("drop", "berlin/metrics")
    world.sync_until_unchanged()

    assert left == config_head(world)
    assert rests(world)


def test_a_draft_that_removes_packages_has_none(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    promoted = world.metadata(ACTIVE)
    world.configure({"metrics.yaml": None})
    world.sync_until_unchanged()

    assert world.head("removals/berlin")
    # what stands there came with the branch
    assert world.metadata("removals/berlin") == promoted
    assert git(world.fleet, "diff", "--name-only", ACTIVE, "removals/berlin", "--", FILE) == ""


def test_a_branch_at_rest_follows_the_cluster_branch(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.edit(ACTIVE, "metrics/deployment.yaml", "replicas: 2", "replicas: 3")
    assert world.list_open_drafts("berlin") == [], "it is no draft, before a pass has moved it along"
    followed = world.sync()

    assert followed.changed_branches == {NEXT}
    assert rests(world)
    assert world.sync().is_unchanged
    world.release_metrics("v2")
    world.sync()
    assert world.promote() == "merged"
    assert "replicas: 3" in world.text(ACTIVE, "metrics/deployment.yaml")


def test_a_branch_at_rest_that_moves_while_a_pass_pushes_is_planned_again(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.release_metrics("v2")
    world.sync_while(lambda: world.commit(ACTIVE, {"note.txt": "hot\n"}))
    world.sync_until_unchanged()

    assert world.promote() == "merged"
    assert world.text(ACTIVE, "note.txt") == "hot\n"


def test_a_branch_that_a_host_deletes_after_the_merge_is_there_again(world: PromotedWorld) -> None:
    world.promote()
    world.delete(NEXT)
    world.sync()

    assert rests(world)
    assert world.sync().is_unchanged


def test_a_draft_that_people_delete_is_declined_and_the_branch_rests(world: PromotedWorld) -> None:
    world.delete(NEXT)
    world.sync()

    assert rests(world)
    assert world.tree(NEXT, "metrics") is None
    assert world.sync().is_unchanged


def test_what_people_put_on_a_branch_at_rest_is_their_draft(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    head = world.commit(NEXT, {"note.txt": "not yet\n"})
    world.sync_until_unchanged()

    assert world.head(NEXT) == head
    assert [drafted_file.path for drafted_file in world.list_open_drafts("berlin")[0].draft.files_outside_packages] == [
        "note.txt"
    ]


def test_a_fast_forward_leaves_the_branch_where_it_rests(world: PromotedWorld) -> None:
    world.set_ref(f"refs/heads/{ACTIVE}", world.head(NEXT))

    assert world.sync().changed_branches == set()
    assert rests(world)
    assert world.sync().is_unchanged


def test_a_removal_that_is_approved_takes_the_branch_along(world: PromotedWorld) -> None:
    world.promote()
    world.sync_until_unchanged()
    world.configure({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.run_review_action("approve", "berlin", should_approve_unproposed=True, removals=True)
    world.sync_until_unchanged()

    assert world.tree(ACTIVE, "metrics") is None
    assert rests(world)


def test_lost_state_reads_the_draft_anew(world: PromotedWorld) -> None:
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/berlin")
    world.sync_until_unchanged()

    assert world.promote() == "merged"
    world.sync_until_unchanged()
    assert rests(world)


@pytest.mark.parametrize(
    ("template", "directory", "draft", "path"),
    [
        pytest.param("{branch}-next", "", NEXT, FILE, id="a-whole-branch"),
        pytest.param("{branch}-next", "berlin", NEXT, FILE, id="a-whole-branch-of-which-we-write-a-part"),
        pytest.param("{branch}-next/{repository}", "berlin", f"{NEXT}/berlin", f"berlin/{FILE}", id="an-active-path"),
        pytest.param("{branch}-next/{repository}", "sites/a", f"{NEXT}/berlin", "", id="a-path-of-another-name"),
        pytest.param("drafts/{repository}", "", "drafts/berlin", "", id="drafts-that-promoter-does-not-look-at"),
    ],
)
def test_it_stands_where_promoter_looks(tmp_path: Path, template: str, directory: str, draft: str, path: str) -> None:
    where = {"directory": directory} if directory else {}
    world = made(tmp_path, repository("berlin", **where), drafts={"branch": template})
    world.sync()

    values = [path for path in world.paths(world.fleet, draft) if path.endswith(FILE)]
    assert values == ([path] if path else [])
    assert world.sync_until_unchanged().is_unchanged


def test_a_plain_folder_has_no_commit_to_name(tmp_path: Path) -> None:
    world = World.create(tmp_path, **PROMOTED)
    world.release("gateway", "v1", package("gateway"))
    files = {"a.yaml": catalog(), "b.yaml": repository("berlin"), "c.yaml": variant("gw", "berlin", "gateway")}
    world.write(files)
    world.sync()

    assert world.head(NEXT)
    assert FILE not in world.paths(world.fleet, NEXT)


def test_two_repositories_on_one_draft_branch_are_both_left_alone(tmp_path: Path) -> None:
    world = World.create(tmp_path, **PROMOTED)
    world.release("gateway", "v1", package("gateway"))
    both = {
        f"{cluster}.yaml": repository(cluster, branch="main", directory=cluster) for cluster in ("berlin", "lisbon")
    }
    expected = {f"gw-{cluster}.yaml": variant(f"gw-{cluster}", cluster, "gateway") for cluster in ("berlin", "lisbon")}
    world.write({"catalog.yaml": catalog(), **both, **expected})

    after = world.sync()

    assert "DestinationConflict" in after.codes
    assert not world.head("main-next")
