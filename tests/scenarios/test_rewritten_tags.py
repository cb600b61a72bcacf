"""Tags that are not followed: what they name is proposed to the config repository, and people decide."""

from pathlib import Path

import pytest

from reconciler.bootstrap import build_services
from reconciler.inspect.validate import validate
from reconciler.krm.findings import Severity
from reconciler.settings import Settings
from tests.support.git_repositories import commit_files, git, make_bare, read_file, read_ref, write_hook
from tests.support.world import PassResult, World, catalog, package, repository

DRAFT = "drafts/config"
GW = """\
# the gateway of Berlin
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  name: gw
spec:
  upstream:
    repo: catalog
    package: gateway
    revision: v1   # what counts
    tag: stable    # what is looked at
    tagMode: rewrite
  downstream: {repo: berlin, package: gateway}
"""
SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: all}
spec:
  upstream: {repo: catalog, package: gateway, revision: 1, tag: stable, tagMode: rewrite} # flow
  targets:
    - repositories: [{name: berlin, packageNames: [a, b]}]
"""


class ConfigWorld(World):
    """A world whose config is in a repository, in its folder `prod`."""

    @property
    def source(self) -> str:
        return str(self.repo)

    @property
    def repo(self) -> Path:
        return self.folder / "config.git"

    def commit_config(self, files: dict[str, str], branch: str = "main", seconds: int = 1_200_000_000) -> str:
        data = {f"prod/{path}": text.encode() for path, text in files.items()}
        return commit_files(self.repo, f"refs/heads/{branch}", data, "by hand", seconds)

    def tag(self, version: str) -> None:
        commit = git(self.catalog, "rev-parse", f"gateway/{version}")
        git(self.catalog, "update-ref", "refs/tags/gateway/stable", commit)

    def proposed(self, path: str = "gw.yaml") -> str:
        return read_file(self.repo, f"refs/heads/{DRAFT}", f"prod/{path}") + "\n"

    @property
    def proposal(self) -> str:
        """The head of the branch for proposals; "" when there is none."""
        return read_ref(self.repo, f"refs/heads/{DRAFT}") or ""

    def take_proposal(self, *, delete: bool = True) -> None:
        git(self.repo, "update-ref", "refs/heads/main", self.proposal)
        if delete:
            self.drop_proposal()

    def drop_proposal(self) -> None:
        git(self.repo, "update-ref", "-d", f"refs/heads/{DRAFT}")


@pytest.fixture
def world(tmp_path: Path) -> ConfigWorld:
    """Three versions, the tag stable at the second, and a variant that is at the first."""
    world = ConfigWorld(tmp_path, config={"directory": "prod"})
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    for number in (1, 2, 3):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)), 1_000_000_000 + number)
    world.tag("v2")
    world.commit_config({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    return world


def of_config(pass_result: PassResult) -> list[str]:
    codes = {"Revision", "Proposal", "TagUnpinned", "UpstreamSettling"}
    return [finding.code for finding in pass_result.findings if finding.code.startswith(tuple(codes))]


def test_a_moved_tag_changes_one_line_of_the_config_on_a_branch(world: ConfigWorld) -> None:
    after = world.sync()

    assert world.proposed() == GW.replace("revision: v1 ", "revision: v2 ")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"
    assert git(world.repo, "log", "-1", "--format=%s", DRAFT) == "rewrite(config): catalog/gateway v1 → v2 (tag stable)"
    body = git(world.repo, "log", "-1", "--format=%b", DRAFT)
    assert "- gw.yaml:10: PackageVariant default/gw: catalog/gateway v1 → v2 (tag stable)" in body
    assert of_config(after) == ["RevisionProposed"]
    # the downstream is at what counts
    assert "gateway:1" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_second_pass_is_silent_and_equal_worlds_give_equal_commits(world: ConfigWorld, tmp_path: Path) -> None:
    world.sync()
    first = git(world.repo, "for-each-ref")
    pass_result = world.sync()
    git(world.repo, "update-ref", "-d", "refs/reconciler/state/_config")
    world.drop_proposal()
    world.sync()

    assert pass_result.is_unchanged
    assert git(world.repo, "for-each-ref") == first


def test_a_proposal_that_is_merged_is_followed_and_its_branch_ends(world: ConfigWorld) -> None:
    world.sync()
    world.take_proposal(delete=False)
    after = world.sync()

    assert world.proposal == ""
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")
    assert of_config(after) == []
    assert world.sync().is_unchanged


def test_a_tag_that_moves_on_rebuilds_the_proposal(world: ConfigWorld) -> None:
    world.sync()
    world.tag("v3")
    world.sync()

    assert world.proposed() == GW.replace("revision: v1 ", "revision: v3 ")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"


def test_a_tag_that_returns_leaves_nothing_to_propose(world: ConfigWorld) -> None:
    world.sync()
    world.tag("v1")
    world.sync()

    assert world.proposal == ""
    assert world.sync().is_unchanged


def test_the_config_moving_elsewhere_moves_nothing_and_moving_there_rebuilds(world: ConfigWorld) -> None:
    world.sync()
    first = world.proposal
    world.commit_config({"more.yaml": "a: 1\n"})
    world.sync()
    elsewhere = world.proposal
    edited = GW.replace("of Berlin", "of all Berlin")
    head = world.commit_config({"gw.yaml": edited})
    world.sync()

    assert elsewhere == first
    assert world.proposed() == edited.replace("revision: v1 ", "revision: v2 ")
    assert git(world.repo, "rev-parse", f"{DRAFT}^") == head


def test_a_deleted_proposal_is_declined_until_the_tag_moves_on(world: ConfigWorld) -> None:
    world.sync()
    world.drop_proposal()
    declined = world.sync()
    proposal = world.proposal
    silent = world.sync().is_unchanged
    world.commit_config({"more.yaml": "a: 1\n"})
    later = world.sync()
    still_gone = world.proposal
    world.tag("v3")
    world.sync()

    assert (proposal, still_gone, silent) == ("", "", True)
    assert (of_config(declined), of_config(later)) == (["RevisionDeclined"], ["RevisionDeclined"])
    assert world.proposed() == GW.replace("revision: v1 ", "revision: v3 ")


def test_a_proposal_that_was_merged_and_reverted_is_declined(world: ConfigWorld) -> None:
    world.sync()
    world.take_proposal()
    world.sync()
    world.commit_config({"gw.yaml": GW})
    after = world.sync()

    assert (world.proposal, of_config(after)) == ("", ["RevisionDeclined"])


def test_what_people_put_on_the_branch_is_left_alone(world: ConfigWorld) -> None:
    world.sync()
    by_hand = world.commit_config({"gw.yaml": GW.replace("v1 ", "v2 ").replace("counts", "we want")}, DRAFT)
    world.tag("v3")
    after = world.sync()
    stays = world.proposal
    world.drop_proposal()
    world.sync()

    assert (stays, of_config(after)) == (by_hand, ["ProposalEdited"])
    # deleting it declined the second version, and says nothing of the third
    assert world.proposed() == GW.replace("revision: v1 ", "revision: v3 ")


def test_a_branch_that_was_there_before_us_is_left_alone(world: ConfigWorld) -> None:
    theirs = world.commit_config({"notes.yaml": "a: 1\n"}, DRAFT)
    after = world.sync()

    assert (world.proposal, of_config(after)) == (theirs, ["ProposalEdited"])
    assert world.sync().is_unchanged


def test_a_head_that_was_pushed_without_its_state_is_ours(world: ConfigWorld) -> None:
    world.sync()
    git(world.repo, "update-ref", "-d", "refs/reconciler/state/_config")
    after = world.sync()
    world.tag("v3")
    world.sync()

    assert of_config(after) == ["RevisionProposed"]
    assert world.proposed() == GW.replace("revision: v1 ", "revision: v3 ")


def test_a_missing_revision_is_proposed_and_until_then_nothing_is_made(world: ConfigWorld) -> None:
    bare = GW.replace("    revision: v1   # what counts\n", "")
    world.commit_config({"gw.yaml": bare})
    world.sync()
    reason = world.reason("gw", "Stalled")
    proposed = world.proposed()
    world.take_proposal()
    world.sync()

    assert (reason, world.reason("gw")) == ("RevisionPending", "NoErrors")
    assert proposed == bare.replace("    tag: stable", "    revision: v2\n    tag: stable")
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_sets_own_file_is_rewritten_in_the_spelling_it_has(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": SET})
    world.sync()

    assert world.proposed() == SET.replace("revision: 1,", "revision: 2,")
    assert world.tree("drafts/berlin", "a")


def test_several_objects_are_one_commit(world: ConfigWorld) -> None:
    west = GW.replace("name: gw", "name: west").replace("package: gateway}", "package: west}")
    world.commit_config({"gw.yaml": GW + "---\n" + west, "set.yaml": SET})
    world.sync()

    assert world.proposed() == (GW + "---\n" + west).replace("revision: v1 ", "revision: v2 ")
    assert world.proposed("set.yaml") == SET.replace("revision: 1,", "revision: 2,")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"


def test_a_downgrade_is_marked(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": GW.replace("revision: v1 ", "revision: v3 ")})
    world.sync()
    subject = git(world.repo, "log", "-1", "--format=%s", DRAFT)

    assert subject == "rewrite(config): catalog/gateway downgrade v3 → v2 (tag stable)"


def test_a_tag_settles_before_it_is_proposed_and_a_merged_revision_does_not(world: ConfigWorld) -> None:
    settling = GW.replace("tagMode: rewrite", "tagMode: rewrite\n    tagPolicy: {settle: 1h}")
    world.commit_config({"gw.yaml": settling})
    world.now = 1_000_000_002 + 3_599
    waiting = world.sync()
    nothing = world.proposal
    world.now += 1
    world.sync()
    proposed = world.proposed()
    world.take_proposal()
    world.now = 1_000_000_002
    world.sync()

    assert (nothing, of_config(waiting)) == ("", ["UpstreamSettling"])
    assert waiting.report.due_at == 1_000_000_002 + 3_600
    assert proposed == settling.replace("revision: v1 ", "revision: v2 ")
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_move_that_has_not_settled_leaves_the_standing_proposal(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": GW.replace("tagMode: rewrite", "tagMode: rewrite\n    tagPolicy: {settle: 1h}")})
    world.sync()
    first = world.proposal
    world.release("gateway", "v4", package("gateway", image="4"), world.now - 60)
    world.tag("v4")
    world.sync()
    meanwhile = world.proposal
    world.now += 3_600
    world.sync()

    assert first == meanwhile
    assert "revision: v4 " in world.proposed()


def test_a_tag_that_no_revision_names_is_told(world: ConfigWorld) -> None:
    loose = world.release("gateway", "beta", package("gateway", image="loose"))
    git(world.catalog, "update-ref", "refs/tags/gateway/stable", loose)
    after = world.sync()
    (finding,) = [finding for finding in after.findings if finding.code == "TagUnpinned"]

    assert (finding.severity, finding.location.file, finding.location.line) == (Severity.WARNING, "gw.yaml", 10)
    assert world.proposal == ""


def test_a_host_that_refuses_holds_up_nobody(world: ConfigWorld) -> None:
    write_hook(world.repo, "pre-receive", "echo 'no robots here' >&2; exit 1")
    after = world.sync()

    (finding,) = [finding for finding in after.findings if finding.code == "ProposalRefused"]
    assert "no robots here" in finding.message
    assert (after.report.is_clean, after.report.is_final) == (True, True)
    assert "gateway:1" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_plan_shows_the_proposal_and_pushes_nothing(world: ConfigWorld) -> None:
    before = git(world.repo, "for-each-ref")
    planned = world.plan()

    assert planned.report.plan.proposal.action == "write"
    assert git(world.repo, "for-each-ref") == before


def test_a_folder_is_told_what_to_write(world: ConfigWorld, tmp_path: Path) -> None:
    folder = World(tmp_path)
    folder.config.mkdir()
    folder.write({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    after = folder.sync()
    (finding,) = [finding for finding in after.findings if finding.code == "ProposalNotPossible"]

    assert finding.message == (
        "tag stable of catalog/gateway names v2; spec.upstream.revision is v1; CONFIG is a plain folder, so write"
        " revision: v2 there by hand"
    )
    assert (folder.config / "gw.yaml").read_text() == GW


def test_a_cluster_that_is_called_config_keeps_its_branch(tmp_path: Path) -> None:
    world = ConfigWorld(tmp_path, config={"directory": "prod"})
    for name in ("catalog", "config"):
        make_bare(tmp_path / f"{name}.git")
    world.fleet = world.repo
    for number in (1, 2):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)))
    world.tag("v2")
    at_config = repository("config", "./config.git")
    world.commit_config({"catalog.yaml": catalog(), "c.yaml": at_config, "gw.yaml": GW.replace("berlin", "config")})
    after = world.sync()

    assert "ProposalBranchTaken" in of_config(after)
    assert world.tree(DRAFT, "gateway")
    world.sync_until_unchanged()


def test_a_host_that_allows_only_branches(tmp_path: Path) -> None:
    world = ConfigWorld(tmp_path, config={"directory": "prod"}, state_ref="refs/heads/reconciler/state/{repository}")
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    for number in (1, 2):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)))
    world.tag("v2")
    world.commit_config({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    world.sync()
    world.drop_proposal()

    assert of_config(world.sync()) == ["RevisionDeclined"]
    assert read_ref(world.repo, "refs/heads/reconciler/state/_config")


def test_validating_tells_what_a_tag_names_and_writes_nothing(world: ConfigWorld) -> None:
    before = git(world.repo, "for-each-ref")
    settings = Settings.model_validate({"cache": str(world.folder / "cache"), "config": {"directory": "prod"}})
    parts = build_services(settings, world.source)
    with parts.remotes as remotes:
        findings = validate(parts.source, remotes, parts.pass_services).findings

    assert [(finding.code, finding.location.line) for finding in findings] == [("RevisionProposed", 10)]
    assert git(world.repo, "for-each-ref") == before


def test_a_state_of_a_newer_engine_is_left_alone(world: ConfigWorld) -> None:
    newer = commit_files(world.repo, "refs/heads/x", {"config.json": b'{"format": 99}'})
    git(world.repo, "update-ref", "refs/reconciler/state/_config", newer)
    git(world.repo, "update-ref", "-d", "refs/heads/x")
    after = world.sync()

    assert "EngineTooOld" in after.codes
    assert read_ref(world.repo, "refs/reconciler/state/_config") == newer
    assert world.proposal == ""


def test_while_a_file_cannot_be_read_its_standing_proposal_stays(world: ConfigWorld) -> None:
    world.sync()
    first = world.proposal
    world.commit_config({"gw.yaml": GW + "  more: [\n"})
    world.sync()
    meanwhile = world.proposal
    world.commit_config({"gw.yaml": GW})
    world.sync()

    assert (first, first) == (meanwhile, world.proposal)
