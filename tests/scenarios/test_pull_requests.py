"""Tests of pull requests: one for each draft, declined when it is closed, and unchanged after an approval."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.console_reviews import ReviewConsole
from tests.support.forge_world import ForgeWorld, github_world
from tests.support.git_repositories import git
from tests.support.world import package, variant

GATED = (
    "apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: web\ninfo:\n"
    "  readinessGates:\n    - conditionType: example.com/Tested\n"
)
MET = "status:\n  conditions:\n    - {type: example.com/Tested, status: 'True'}\ninfo:"


def merge_pull_request(world: ForgeWorld, cluster: str, method: str = "squash") -> None:
    """Mark the pull request of a cluster's draft as ready, and merge it."""
    pull_request = world.open_requests[f"drafts/{cluster}"]
    pull_request.draft = False
    world.on_forge.merge(pull_request.number, method, "merged")


def test_a_draft_gets_a_pull_request_and_merging_it_publishes(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.sync()
        pull_request = world.open_requests["drafts/lisbon"]
        assert (pull_request.base, pull_request.draft, pull_request.title) == (
            "clusters/lisbon",
            True,
            "lisbon/web: install v1",
        )
        assert "Same change as 1 other" in pull_request.body
        assert world.sync_until_unchanged().is_unchanged
        assert world.writes() == [
            "POST /repos/acme/fleet/pulls", f"POST /repos/acme/fleet/statuses/{world.head('drafts/berlin')}",
            "POST /repos/acme/fleet/pulls", f"POST /repos/acme/fleet/statuses/{world.head('drafts/lisbon')}",
        ]  # fmt: skip
        merge_pull_request(world, "lisbon")
        world.sync_until_unchanged()
        assert world.record("lisbon", "web")["revision"] == 1
        assert list(world.open_requests) == ["drafts/berlin"]
        assert world.writes() == []


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
def test_a_pull_request_is_published_with_every_merge_method(method: str, tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync()
        merge_pull_request(world, "lisbon", method)
        git(world.fleet, "update-ref", "-d", "refs/heads/drafts/lisbon")
        world.sync_until_unchanged()
        assert world.record("lisbon", "web")["revision"] == 1
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        world.release("web", "v2", package("web", replicas=3))
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].title == "lisbon/web: update v1 → v2"


@pytest.mark.slow
def test_closing_a_pull_request_declines_the_draft_until_its_content_changes(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.sync_until_unchanged()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        pass_result = world.sync()
        assert pass_result.outcomes["lisbon/web"] == "declined"
        assert "refs/heads/drafts/lisbon" not in pass_result.after
        assert world.sync_until_unchanged().is_unchanged
        world.release("web", "v2", package("web", replicas=3))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].title == "lisbon/web: install v2"
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v1")})
        world.sync_until_unchanged()
        assert "drafts/lisbon" not in world.open_requests, "the declined version stays declined"


@pytest.mark.slow
def test_edits_on_a_closed_draft_are_kept_on_a_ref(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        edited_head = world.edit("drafts/lisbon", "web/deployment.yaml", "replicas: 2", "replicas: 5")
        world.sync_until_unchanged()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        end = world.sync_until_unchanged()
        assert edited_head in [commit for ref, commit in end.after.items() if "/kept/lisbon/" in ref]
        assert "refs/heads/drafts/lisbon" not in end.after


@pytest.mark.slow
def test_a_closed_draft_with_edits_from_an_earlier_version_is_declined_without_the_edits_too(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.sync_until_unchanged()
        world.release("web", "v2", package("web", replicas=3))
        for cluster in ("berlin", "lisbon"):
            world.edit(f"drafts/{cluster}", "web/deployment.yaml", "web:1.0", "web:7")
            world.write({f"web-{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2")})
        world.sync_until_unchanged()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        world.delete("drafts/berlin")
        assert world.sync().outcomes == {"berlin/web": "declined", "lisbon/web": "declined"}
        assert world.sync_until_unchanged().is_unchanged
        assert world.open_requests == {}
        world.release("web", "v3", package("web", replicas=4))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v3")})
        world.sync_until_unchanged()
        assert list(world.open_requests) == ["drafts/lisbon"]


def test_a_pull_request_reopened_before_the_next_pass_is_not_declined(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        world.on_forge.close(pull_request)
        world.on_forge.reopen(pull_request)
        assert world.sync_until_unchanged().outcomes == {"lisbon/web": "drafted"}
        assert world.open_requests["drafts/lisbon"] is pull_request


def test_an_edit_on_a_closed_draft_opens_a_new_pull_request(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        world.on_forge.close(pull_request)
        world.edit("drafts/lisbon", "web/deployment.yaml", "replicas: 2", "replicas: 5")
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].number > pull_request.number, "a new pull request is opened"


@pytest.mark.slow
def test_an_approved_draft_is_not_changed_until_it_is_merged(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.draft = False
        world.on_forge.review(pull_request.number, "grace", "APPROVED")
        head = world.head("drafts/lisbon")
        world.release("web", "v2", package("web", replicas=3))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        world.sync_until_unchanged()
        assert world.head("drafts/lisbon") == head
        assert world.reason("web-lisbon") == "DownstreamProposed"
        merge_pull_request(world, "lisbon")
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].title == "lisbon/web: update v1 → v2"


@pytest.mark.slow
def test_proposing_marks_the_pull_request_ready_and_rejecting_reverts_that(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        for verb, draft in (("propose", False), ("reject", True), ("propose", False)):
            world.run_review_action(verb, "lisbon")
            world.sync_until_unchanged()
            assert pull_request.draft == draft, verb
        world.run_review_action("reject", "lisbon")
        pull_request.draft = True
        world.sync_until_unchanged()
        pull_request.draft = False
        assert world.sync_until_unchanged().is_unchanged
        assert pull_request.draft is False, "the ready state that a person sets stays"


def test_unmet_readiness_gates_fail_the_check(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        gated = {**package("web"), "Kptfile": GATED}
        world.release("web", "v1", gated)
        world.sync_until_unchanged()
        check = world.on_forge.status(world.head("drafts/lisbon"), "reconciler")
        assert check is not None
        assert check.state == "failure"
        assert check.description.startswith(
            'GateNotMet: web: the readiness gate "example.com/Tested" has no condition. '
        )
        assert "example.com/Tested" in world.open_requests["drafts/lisbon"].body.partition("###")[0]
        world.edit("drafts/lisbon", "web/Kptfile", "info:", MET)
        world.sync_until_unchanged()
        check = world.on_forge.status(world.head("drafts/lisbon"), "reconciler")
        assert check is not None
        assert check.state == "success"


@pytest.mark.slow
def test_titles_and_bodies_are_rewritten_only_after_a_change_of_the_draft(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.title, pull_request.body = (
            "Hold this until Friday",
            f"Ask Grace.\n\n{pull_request.body}\n\nThanks!",
        )
        world.writes()
        merge_pull_request(world, "berlin")
        world.commit("clusters/lisbon", {"other/file.txt": "theirs"})
        world.sync_until_unchanged()
        assert world.writes() == [], "a merge of another draft and an unrelated commit change no body"
        world.release("web", "v2", package("web", replicas=3))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        world.sync_until_unchanged()
        assert pull_request.title == "lisbon/web: update v1 → v2"
        assert pull_request.body.startswith("Ask Grace.")
        assert pull_request.body.endswith("Thanks!")
        assert pull_request.body.count("reconciler:begin") == 1


@pytest.mark.slow
def test_a_pull_request_that_people_opened_is_used_and_keeps_its_text(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.forge.break_down()
        world.sync_until_unchanged()
        assert "PullRequestsUnreachable" in world.sync().codes
        world.forge.recover()
        foreign_request = world.on_forge.open("drafts/lisbon", "clusters/lisbon", "Mine", "please look", draft=False)
        world.sync_until_unchanged()
        assert list(world.open_requests.values()) == [foreign_request]
        assert (foreign_request.title, foreign_request.body, foreign_request.draft) == ("Mine", "please look", False)
        world.on_forge.close(foreign_request)
        assert world.sync().outcomes["lisbon/web"] == "declined"


def test_an_unreachable_forge_declines_and_approves_nothing(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        world.forge.break_down()
        pass_result = world.sync()
        assert pass_result.outcomes["lisbon/web"] == "drafted"
        assert pass_result.report.due_at is not None
        world.forge.recover()
        assert world.sync().outcomes["lisbon/web"] == "declined"


def test_a_refused_pull_request_does_not_fail_the_pass(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.forge.forbid("Resource not accessible by integration")
        pass_result = world.sync()
        assert pass_result.codes >= {"PullRequestRefused"}
        assert pass_result.report.is_clean
        world.forge.recover()
        world.sync_until_unchanged()
        assert len(world.open_requests) == 2


@pytest.mark.slow
def test_removal_drafts_have_separate_pull_requests(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.sync_until_unchanged()
        merge_pull_request(world, "lisbon")
        world.write({"web-lisbon.yaml": None})
        world.sync_until_unchanged()
        pull_request = world.open_requests["removals/lisbon"]
        assert pull_request.title == "lisbon/web: remove the package"
        assert "to delete these packages" in pull_request.body
        world.on_forge.close(pull_request)
        world.sync_until_unchanged()
        assert list(world.open_requests) == ["drafts/berlin"]
        assert "web" in {path.partition("/")[0] for path in world.paths(world.fleet, "clusters/lisbon")}


@pytest.mark.slow
@pytest.mark.parametrize("method", ["merge", "squash", "rebase"])
@pytest.mark.emits("pull_request_merged", "pull_request_opened")
def test_approve_merges_the_pull_request_where_the_forge_decides(method: str, tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",), merge=method) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        (refused,) = world.run_review_action("approve", "lisbon")
        assert [reason.reason for reason in refused.reasons] == ["NotProposed"]
        (result,) = world.run_review_action("approve", "lisbon", should_approve_unproposed=True)
        assert (result.outcome, result.message.rpartition("/")[2]) == ("done", str(pull_request.number))
        assert pull_request.state == "merged"
        world.sync_until_unchanged()
        assert world.record("lisbon", "web")["revision"] == 1
        if method != "rebase":
            message = git(world.fleet, "log", "-1", "--format=%B", "clusters/lisbon")
            assert "Reconciler-Approved-By: Grace <grace@example.com>" in message
            assert "Reconciler-Approved-Via: forge" in message


@pytest.mark.slow
@pytest.mark.emits("pull_request_merged", "pull_request_opened")
def test_an_approval_in_the_console_merges_the_pull_request_as_reviewed(tmp_path: Path) -> None:
    with github_world(tmp_path, merge="merge") as world:
        world.sync_until_unchanged()
        console = ReviewConsole(world)
        confirmation = console.confirm("install web")
        world.edit("drafts/berlin", "web/deployment.yaml", "replicas: 2", "replicas: 5")
        requests = world.open_requests

        results = console.run(console.submit(confirmation))

        assert results == {"berlin web": "skipped DraftMoved", "lisbon web": "done"}
        assert [requests[f"drafts/{name}"].state for name in ("berlin", "lisbon")] == ["open", "merged"]
        message = git(world.fleet, "log", "-1", "--format=%B", "clusters/lisbon")
        assert "Reconciler-Approved-By: Ana Silva <ana@example.com>\nReconciler-Approved-Via: console\n" in message
        assert message.splitlines()[-1] == "Reconciler-Request-Id: request-1"


def test_a_merge_that_the_forge_refuses_is_not_pushed(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",), merge="squash") as world:
        world.sync_until_unchanged()
        before = world.head("clusters/lisbon")
        world.forge.forbid("Required status check is missing")
        (refused,) = world.run_review_action("approve", "lisbon", should_approve_unproposed=True)
        assert "Required status check is missing" in refused.reasons[0].message
        world.forge.break_down()
        (failed,) = world.run_review_action("approve", "lisbon", should_approve_unproposed=True)
        assert failed.outcome == "failed"
        assert world.head("clusters/lisbon") == before
