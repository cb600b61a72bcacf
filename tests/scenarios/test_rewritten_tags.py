"""Tests of the tag mode `rewrite`: a moved tag is proposed as a change of the config repository."""

from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
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
    """A world with its config in the folder `prod` of a repository."""

    @property
    def source(self) -> str:
        return str(self.repo)

    @property
    def repo(self) -> Path:
        return self.folder / "config.git"

    def commit_config(self, files: dict[str, str], branch: str = "main", seconds: int = 1_200_000_000) -> str:
        data = {f"prod/{path}": text.encode() for path, text in files.items()}
        return commit_files(self.repo, f"refs/heads/{branch}", data, "by hand", seconds)

    def move_stable_tag(self, version: str) -> None:
        commit = git(self.catalog, "rev-parse", f"gateway/{version}")
        git(self.catalog, "update-ref", "refs/tags/gateway/stable", commit)

    def read_proposed_file(self, path: str = "gw.yaml") -> str:
        return read_file(self.repo, f"refs/heads/{DRAFT}", f"prod/{path}") + "\n"

    @property
    def proposal_head(self) -> str:
        """The head of the proposal branch, or "" without a branch."""
        return read_ref(self.repo, f"refs/heads/{DRAFT}") or ""

    def merge_proposal(self, *, delete: bool = True) -> None:
        git(self.repo, "update-ref", "refs/heads/main", self.proposal_head)
        if delete:
            self.delete_proposal()

    def delete_proposal(self) -> None:
        git(self.repo, "update-ref", "-d", f"refs/heads/{DRAFT}")


@pytest.fixture
def world(tmp_path: Path) -> ConfigWorld:
    """The catalog has three versions with the tag stable at the second. A variant requests the first."""
    world = ConfigWorld(tmp_path, config={"directory": "prod"})
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    for number in (1, 2, 3):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)), 1_000_000_000 + number)
    world.move_stable_tag("v2")
    world.commit_config({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    return world


def list_config_codes(pass_result: PassResult) -> list[str]:
    codes = {"Revision", "Proposal", "TagUnpinned", "UpstreamSettling"}
    return [finding.code for finding in pass_result.findings if finding.code.startswith(tuple(codes))]


def test_a_moved_tag_changes_one_line_of_the_config_on_a_branch(world: ConfigWorld) -> None:
    after = world.sync()

    assert world.read_proposed_file() == GW.replace("revision: v1 ", "revision: v2 ")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"
    assert git(world.repo, "log", "-1", "--format=%s", DRAFT) == "rewrite(config): catalog/gateway v1 → v2 (tag stable)"
    body = git(world.repo, "log", "-1", "--format=%b", DRAFT)
    assert "- gw.yaml:10: PackageVariant default/gw: catalog/gateway v1 → v2 (tag stable)" in body
    assert list_config_codes(after) == ["RevisionProposed"]
    # The downstream still has the revision of the config.
    assert "gateway:1" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_second_pass_changes_nothing_and_equal_worlds_give_equal_commits(world: ConfigWorld, tmp_path: Path) -> None:
    world.sync()
    first = git(world.repo, "for-each-ref")
    pass_result = world.sync()
    git(world.repo, "update-ref", "-d", "refs/reconciler/state/_config")
    world.delete_proposal()
    world.sync()

    assert pass_result.is_unchanged
    assert git(world.repo, "for-each-ref") == first


def test_a_merged_proposal_is_drafted_and_its_branch_is_deleted(world: ConfigWorld) -> None:
    world.sync()
    world.merge_proposal(delete=False)
    after = world.sync()

    assert world.proposal_head == ""
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")
    assert list_config_codes(after) == []
    assert world.sync().is_unchanged


def test_another_move_of_the_tag_rebuilds_the_proposal(world: ConfigWorld) -> None:
    world.sync()
    world.move_stable_tag("v3")
    world.sync()

    assert world.read_proposed_file() == GW.replace("revision: v1 ", "revision: v3 ")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"


def test_a_tag_that_moves_back_ends_the_proposal(world: ConfigWorld) -> None:
    world.sync()
    world.move_stable_tag("v1")
    world.sync()

    assert world.proposal_head == ""
    assert world.sync().is_unchanged


def test_only_config_commits_that_change_the_file_rebuild_the_proposal(world: ConfigWorld) -> None:
    world.sync()
    first = world.proposal_head
    world.commit_config({"more.yaml": "a: 1\n"})
    world.sync()
    elsewhere = world.proposal_head
    edited = GW.replace("of Berlin", "of all Berlin")
    head = world.commit_config({"gw.yaml": edited})
    world.sync()

    assert elsewhere == first
    assert world.read_proposed_file() == edited.replace("revision: v1 ", "revision: v2 ")
    assert git(world.repo, "rev-parse", f"{DRAFT}^") == head


def test_a_deleted_proposal_is_declined_until_the_tag_moves_again(world: ConfigWorld) -> None:
    world.sync()
    world.delete_proposal()
    declined = world.sync()
    proposal = world.proposal_head
    silent = world.sync().is_unchanged
    world.commit_config({"more.yaml": "a: 1\n"})
    later = world.sync()
    still_gone = world.proposal_head
    world.move_stable_tag("v3")
    world.sync()

    assert (proposal, still_gone, silent) == ("", "", True)
    assert (list_config_codes(declined), list_config_codes(later)) == (["RevisionDeclined"], ["RevisionDeclined"])
    assert world.read_proposed_file() == GW.replace("revision: v1 ", "revision: v3 ")


def test_a_proposal_that_was_merged_and_reverted_is_declined(world: ConfigWorld) -> None:
    world.sync()
    world.merge_proposal()
    world.sync()
    world.commit_config({"gw.yaml": GW})
    after = world.sync()

    assert (world.proposal_head, list_config_codes(after)) == ("", ["RevisionDeclined"])


def test_an_edited_proposal_is_not_changed(world: ConfigWorld) -> None:
    world.sync()
    by_hand = world.commit_config({"gw.yaml": GW.replace("v1 ", "v2 ").replace("counts", "we want")}, DRAFT)
    world.move_stable_tag("v3")
    after = world.sync()
    edited_head = world.proposal_head
    world.delete_proposal()
    world.sync()

    assert (edited_head, list_config_codes(after)) == (by_hand, ["ProposalEdited"])
    # The deletion declined only the second version.
    assert world.read_proposed_file() == GW.replace("revision: v1 ", "revision: v3 ")


def test_an_existing_branch_of_people_is_not_changed(world: ConfigWorld) -> None:
    foreign_head = world.commit_config({"notes.yaml": "a: 1\n"}, DRAFT)
    after = world.sync()

    assert (world.proposal_head, list_config_codes(after)) == (foreign_head, ["ProposalEdited"])
    assert world.sync().is_unchanged


def test_a_proposal_pushed_without_its_state_is_recognized(world: ConfigWorld) -> None:
    world.sync()
    git(world.repo, "update-ref", "-d", "refs/reconciler/state/_config")
    after = world.sync()
    world.move_stable_tag("v3")
    world.sync()

    assert list_config_codes(after) == ["RevisionProposed"]
    assert world.read_proposed_file() == GW.replace("revision: v1 ", "revision: v3 ")


def test_a_missing_revision_is_proposed_and_nothing_is_drafted_before_the_merge(world: ConfigWorld) -> None:
    config_text = GW.replace("    revision: v1   # what counts\n", "")
    world.commit_config({"gw.yaml": config_text})
    world.sync()
    reason = world.reason("gw", "Stalled")
    proposed = world.read_proposed_file()
    world.merge_proposal()
    world.sync()

    assert (reason, world.reason("gw")) == ("RevisionPending", "NoErrors")
    assert proposed == config_text.replace("    tag: stable", "    revision: v2\n    tag: stable")
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_number_in_the_file_of_a_set_stays_a_number(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": SET})
    world.sync()

    assert world.read_proposed_file() == SET.replace("revision: 1,", "revision: 2,")
    assert world.tree("drafts/berlin", "a")


def test_changes_of_several_objects_are_one_commit(world: ConfigWorld) -> None:
    west = GW.replace("name: gw", "name: west").replace("package: gateway}", "package: west}")
    world.commit_config({"gw.yaml": GW + "---\n" + west, "set.yaml": SET})
    world.sync()

    assert world.read_proposed_file() == (GW + "---\n" + west).replace("revision: v1 ", "revision: v2 ")
    assert world.read_proposed_file("set.yaml") == SET.replace("revision: 1,", "revision: 2,")
    assert git(world.repo, "rev-list", "--count", f"main..{DRAFT}") == "1"


def test_a_downgrade_is_named_in_the_subject(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": GW.replace("revision: v1 ", "revision: v3 ")})
    world.sync()
    subject = git(world.repo, "log", "-1", "--format=%s", DRAFT)

    assert subject == "rewrite(config): catalog/gateway downgrade v3 → v2 (tag stable)"


def test_a_tag_settles_before_its_proposal_and_a_merged_revision_does_not_settle(world: ConfigWorld) -> None:
    settling = GW.replace("tagMode: rewrite", "tagMode: rewrite\n    tagPolicy: {settle: 1h}")
    world.commit_config({"gw.yaml": settling})
    world.now = 1_000_000_002 + 3_599
    waiting = world.sync()
    nothing = world.proposal_head
    world.now += 1
    world.sync()
    proposed = world.read_proposed_file()
    world.merge_proposal()
    world.now = 1_000_000_002
    world.sync()

    assert (nothing, list_config_codes(waiting)) == ("", ["UpstreamSettling"])
    assert waiting.report.due_at == 1_000_000_002 + 3_600
    assert proposed == settling.replace("revision: v1 ", "revision: v2 ")
    assert "gateway:2" in world.text("drafts/berlin", "gateway/deployment.yaml")


def test_a_move_that_has_not_settled_keeps_the_open_proposal(world: ConfigWorld) -> None:
    world.commit_config({"gw.yaml": GW.replace("tagMode: rewrite", "tagMode: rewrite\n    tagPolicy: {settle: 1h}")})
    world.sync()
    first = world.proposal_head
    world.release("gateway", "v4", package("gateway", image="4"), world.now - 60)
    world.move_stable_tag("v4")
    world.sync()
    later_head = world.proposal_head
    world.now += 3_600
    world.sync()

    assert first == later_head
    assert "revision: v4 " in world.read_proposed_file()


def test_a_tag_on_a_commit_without_a_revision_is_reported(world: ConfigWorld) -> None:
    untagged_commit = world.release("gateway", "beta", package("gateway", image="loose"))
    git(world.catalog, "update-ref", "refs/tags/gateway/stable", untagged_commit)
    after = world.sync()
    (finding,) = [finding for finding in after.findings if finding.code == "TagUnpinned"]

    assert (finding.severity, finding.location.file, finding.location.line) == (Severity.WARNING, "gw.yaml", 10)
    assert world.proposal_head == ""


def test_a_refused_proposal_does_not_prevent_drafts(world: ConfigWorld) -> None:
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


def test_a_plain_config_folder_is_reported_with_the_line_to_write(world: ConfigWorld, tmp_path: Path) -> None:
    folder = World(tmp_path)
    folder.config.mkdir()
    folder.write({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    after = folder.sync()
    (finding,) = [finding for finding in after.findings if finding.code == "ProposalNotPossible"]

    assert finding.message == (
        'tag "stable" of catalog/gateway selects v2, but spec.upstream.revision is v1. The daemon cannot propose the change, because'
        " the config is a plain folder. Next step: set `revision: v2`"
    )
    assert (folder.config / "gw.yaml").read_text() == GW


def test_a_cluster_named_config_keeps_its_draft_branch(tmp_path: Path) -> None:
    world = ConfigWorld(tmp_path, config={"directory": "prod"})
    for name in ("catalog", "config"):
        make_bare(tmp_path / f"{name}.git")
    world.fleet = world.repo
    for number in (1, 2):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)))
    world.move_stable_tag("v2")
    at_config = repository("config", "./config.git")
    world.commit_config({"catalog.yaml": catalog(), "c.yaml": at_config, "gw.yaml": GW.replace("berlin", "config")})
    after = world.sync()

    assert "ProposalBranchTaken" in list_config_codes(after)
    assert world.tree(DRAFT, "gateway")
    world.sync_until_unchanged()


def test_the_config_state_is_a_branch_when_states_are_branches(tmp_path: Path) -> None:
    world = ConfigWorld(tmp_path, config={"directory": "prod"}, state_ref="refs/heads/reconciler/state/{repository}")
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    for number in (1, 2):
        world.release("gateway", f"v{number}", package("gateway", image=str(number)))
    world.move_stable_tag("v2")
    world.commit_config({"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "gw.yaml": GW})
    world.sync()
    world.delete_proposal()

    assert list_config_codes(world.sync()) == ["RevisionDeclined"]
    assert read_ref(world.repo, "refs/heads/reconciler/state/_config")


def test_validate_reports_the_revision_of_a_tag_and_writes_nothing(world: ConfigWorld) -> None:
    before = git(world.repo, "for-each-ref")
    settings = Settings.model_validate({"cache": str(world.folder / "cache"), "config": {"directory": "prod"}})
    services = build_services(settings, world.source)
    with services.remotes as remotes:
        findings = validate(services.source, remotes, services.pass_services).findings

    assert [(finding.code, finding.location.line) for finding in findings] == [("RevisionProposed", 10)]
    assert git(world.repo, "for-each-ref") == before


def test_a_state_of_a_newer_version_is_not_changed(world: ConfigWorld) -> None:
    newer = commit_files(world.repo, "refs/heads/x", {"config.json": b'{"format": 99}'})
    git(world.repo, "update-ref", "refs/reconciler/state/_config", newer)
    git(world.repo, "update-ref", "-d", "refs/heads/x")
    after = world.sync()

    assert "EngineTooOld" in after.codes
    assert read_ref(world.repo, "refs/reconciler/state/_config") == newer
    assert world.proposal_head == ""


def test_the_open_proposal_stays_while_its_file_is_unreadable(world: ConfigWorld) -> None:
    world.sync()
    first = world.proposal_head
    world.commit_config({"gw.yaml": GW + "  more: [\n"})
    world.sync()
    later_head = world.proposal_head
    world.commit_config({"gw.yaml": GW})
    world.sync()

    assert (first, first) == (later_head, world.proposal_head)
