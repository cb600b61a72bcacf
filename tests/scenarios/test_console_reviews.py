"""Tests of reviews in the console: a person confirms the drafts of a change, and a job applies the action."""

from __future__ import annotations

from pathlib import Path
from threading import Event

import pytest
from structlog.testing import capture_logs

from reconciler.krm.selectors import LabelSelector
from reconciler.review.jobs import Submission
from reconciler.review.people import Reviewer
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.review.review_job import ReviewJob
from reconciler.review.review_requests import (
    ChangeSelection,
    ConsoleVerb,
    ReviewRequest,
    ReviewRequestError,
    SelectedTarget,
)
from tests.support.console_reviews import ANA, LUIS, ReviewConsole, list_excluded
from tests.support.git_repositories import assert_sound, git, read_refs
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import STATE, World, config_map, package, small_world, variant

NORTH = LabelSelector((("region", "north"),))


@pytest.fixture
def console(tmp_path: Path) -> ReviewConsole:
    """Berlin has a draft with the packages gateway and metrics. Lisbon has a draft with its gateway."""
    return ReviewConsole(begin(tmp_path, drafted))


def read_message(world: World, branch: str, form: str = "%B") -> str:
    return git(world.fleet, "log", "-1", f"--format={form}", branch)


# Approve


@pytest.mark.slow
def test_an_approval_is_a_commit_by_the_person_with_the_request(console: ReviewConsole) -> None:
    world = console.world
    world.now = 1_600_000_000
    job = console.submit(console.confirm("install gateway"), "two\nlines")
    with capture_logs() as logs:
        results = console.run(job)

    assert results == {"berlin gateway": "done", "lisbon gateway": "done"}
    assert read_message(world, "clusters/lisbon", "%an <%ae> %at %ad; %cn").endswith("+0000; reconciler")
    assert read_message(world, "clusters/lisbon", "%an <%ae> %at") == "Ana Silva <ana@example.com> 1600000000"
    change = next(change for change in console.index.changes if change.title == "install gateway v1")
    assert read_message(world, "clusters/lisbon", "%(trailers:only)").splitlines()[-6:] == [
        "Reconciler-Approved-By: Ana Silva <ana@example.com>",
        "Reconciler-Approved-Via: console",
        "Reconciler-Reason: two lines",
        "Reconciler-Subject: f3c1@https://id.example.com",
        f"Reconciler-Change: {change.key}/{change.variants[1].key}",
        "Reconciler-Request-Id: request-1",
    ]
    (event,) = [entry for entry in logs if entry["event"] == "review_action"]
    assert (event["actor"], event["actor_source"], event["request_id"], event["targets"]) == (
        "Ana Silva <ana@example.com>", "console", "request-1", ["berlin", "lisbon"],
    )  # fmt: skip
    assert console.woken == 1
    assert world.sync_until_unchanged().outcomes["lisbon/gateway"] == "published"
    assert_sound(world.fleet)


@pytest.mark.slow
def test_a_reviewer_approves_one_package_of_a_draft(console: ReviewConsole) -> None:
    results = console.run(console.submit(console.confirm("install metrics")))

    assert results == {"berlin metrics": "done"}
    assert console.world.paths(console.world.fleet, "clusters/berlin", "gateway") == []
    assert console.world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_one_job_can_approve_several_changes_of_a_draft(console: ReviewConsole) -> None:
    keys = [change.key for change in console.index.changes]
    request = ReviewRequest("approve", tuple(ChangeSelection(key) for key in keys))
    confirmation = console.confirmations.create(console.index, ANA, ADMIN_PERMISSIONS, request)

    results = console.run(console.submit(confirmation))

    assert results == {"berlin gateway metrics": "done", "lisbon gateway": "done"}
    changes = read_message(console.world, "clusters/berlin", "%(trailers:key=Reconciler-Change,valueonly)").split()
    assert [change.partition("/")[0] for change in sorted(changes)] == sorted(keys)


def test_a_job_approves_several_drafts_of_one_target_branch(tmp_path: Path) -> None:
    world = small_world(tmp_path, drafts={"branch": "drafts/{repository}/{package}"})
    world.sync_until_unchanged()
    console = ReviewConsole(world)
    request = ReviewRequest("approve", tuple(ChangeSelection(change.key) for change in console.index.changes))

    results = console.run(console.submit(console.confirmations.create(console.index, ANA, ADMIN_PERMISSIONS, request)))

    # The first approval moves the target branch of the second one.
    assert results == {"berlin gateway": "done", "berlin metrics": "done", "lisbon gateway": "done"}


def test_a_draft_that_moves_after_the_confirmation_is_skipped(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway")
    console.world.edit("drafts/berlin", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    before = read_refs(console.world.fleet)["refs/heads/clusters/berlin"]

    assert console.run(console.submit(confirmation)) == {
        "berlin gateway": "skipped DraftMoved", "lisbon gateway": "done",
    }  # fmt: skip
    assert read_refs(console.world.fleet)["refs/heads/clusters/berlin"] == before


def test_a_draft_whose_target_branch_moves_is_skipped(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway")
    console.world.commit("clusters/lisbon", {"notes.txt": "by hand"})

    assert console.run(console.submit(confirmation)) == {
        "berlin gateway": "done", "lisbon gateway": "skipped BranchMoved",
    }  # fmt: skip


def test_a_draft_that_moves_during_the_push_is_skipped(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway", "approve", "lisbon")
    job = console.submit(confirmation)
    world = console.world
    console.before_push.append(
        lambda: world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    )

    assert console.run(job) == {"lisbon gateway": "skipped DraftMoved"}
    assert world.paths(world.fleet, "clusters/lisbon", "gateway") == []


def test_a_running_job_shows_its_progress(console: ReviewConsole) -> None:
    job = console.submit(console.confirm("install gateway"))
    progress: list[tuple[str, int]] = []
    console.before_push.append(lambda: progress.append(read_progress(console.find(job))))
    console.run(job)

    assert progress == [("running", 2)]
    assert read_progress(console.find(job)) == ("completed", 0)


def read_progress(job: ReviewJob) -> tuple[str, int]:
    return job.state, job.count_items("waiting")


def test_the_second_of_two_simultaneous_approvals_is_already_published(console: ReviewConsole) -> None:
    job = console.submit(console.confirm("install gateway"))
    # Apply the job of Luis between the checks and the push of the job of Ana, as a second process does.
    other = ReviewConsole(console.world)
    other_job = other.submit(other.confirm("install gateway", person=LUIS))
    console.before_push.append(other.jobs.apply_waiting)

    results = console.run(job)

    assert other.list_results(other_job) == {"berlin gateway": "done", "lisbon gateway": "done"}
    assert results == {
        "berlin gateway": "skipped AlreadyPublished", "lisbon gateway": "skipped AlreadyPublished",
    }  # fmt: skip
    log = git(console.world.fleet, "log", "--first-parent", "--format=%an", "clusters/lisbon").splitlines()
    assert log.count("Luis Vega") == 1
    assert "Ana Silva" not in log


def test_an_approval_of_a_published_draft_is_already_published(console: ReviewConsole) -> None:
    first, second = (console.confirm("install gateway", "approve", "lisbon", person=person) for person in (ANA, LUIS))
    console.run(console.submit(first))
    console.world.sync_until_unchanged()

    job = console.submit(second, key="luis")

    assert console.run(job) == {"lisbon gateway": "skipped AlreadyPublished"}
    assert console.find(job).items[0].message == '"clusters/lisbon" already contains the reviewed content'


@pytest.mark.parametrize("is_same_key", [True, False], ids=["same-key", "same-confirmation"])
def test_a_repeated_submission_makes_one_commit(console: ReviewConsole, is_same_key: bool) -> None:
    confirmation = console.confirm("install gateway", "approve", "lisbon")
    first = console.submit(confirmation, key="key-1")
    before = console.submit(confirmation, key="key-1" if is_same_key else "key-2")
    console.run(first)
    after = console.submit(confirmation, key="key-1" if is_same_key else "key-2")
    console.run(first)

    assert first.id == before.id == after.id
    authors = git(console.world.fleet, "log", "--format=%an", "clusters/lisbon").splitlines()
    assert authors.count("Ana Silva") == 1


def test_the_keys_of_two_people_are_independent(console: ReviewConsole) -> None:
    jobs = [
        console.submit(console.confirm("install gateway", "approve", "lisbon", person=person)) for person in (ANA, LUIS)
    ]

    assert jobs[0].id != jobs[1].id


def test_a_draft_of_a_removed_target_is_skipped(console: ReviewConsole) -> None:
    job = console.submit(console.confirm("install gateway"))
    console.world.write({"clusters/lisbon.yaml": None})

    assert console.run(job) == {"berlin gateway": "done", "lisbon gateway": "skipped DraftMoved"}


# People, names and reasons


def test_names_and_reasons_cannot_change_the_format_of_a_commit(console: ReviewConsole) -> None:
    mallory = Reviewer("Eve <root@example.com>\nx", "eve@example.com>\n", "s\nReconciler-Subject: ana", "i")
    reason = "fine\n\nReconciler-Approved-By: Ana <ana@example.com>\nSigned-off-by: Ana\x1b[2J" + "y" * 2_000

    console.run(console.submit(console.confirm("install gateway", "approve", "lisbon", person=mallory), reason))

    world = console.world
    assert read_message(world, "clusters/lisbon", "%an|%ae") == "Eve root@example.com x|eve@example.com"
    trailers = read_message(world, "clusters/lisbon", "%(trailers:only)")
    assert trailers.count("Reconciler-Approved-By") == 2
    assert read_message(world, "clusters/lisbon", "%(trailers:key=Reconciler-Approved-By,valueonly)") == (
        "Eve root@example.com x <eve@example.com>"
    )
    assert read_message(world, "clusters/lisbon", "%(trailers:key=Reconciler-Subject,valueonly)") == (
        "s Reconciler-Subject: ana@i"
    )
    assert read_message(world, "clusters/lisbon", "%(trailers:key=Signed-off-by)") == ""
    assert len(read_message(world, "clusters/lisbon", "%(trailers:key=Reconciler-Reason,valueonly)")) <= 1_000


def test_a_person_approves_only_the_permitted_targets_of_a_change(console: ReviewConsole) -> None:
    permissions = Permissions((RoleRule("viewer"), RoleRule("reviewer", targets=NORTH)))
    confirmation = console.confirm("install gateway", permissions=permissions)

    assert list_excluded(confirmation) == {"lisbon gateway": "NotPermitted"}
    assert confirmation.targets == ("berlin",)
    assert console.run(console.submit(confirmation, permissions=permissions)) == {"berlin gateway": "done"}
    assert console.world.paths(console.world.fleet, "clusters/lisbon", "gateway") == []


def test_a_confirmation_contains_only_drafts_that_the_person_may_read(console: ReviewConsole) -> None:
    permissions = Permissions((RoleRule("reviewer", targets=NORTH),))

    confirmation = console.confirm("install gateway", "approve", "berlin", "lisbon", permissions=permissions)

    assert confirmation.targets == ("berlin",)
    # The person named the target. The reason is the same for a target that does not exist.
    assert [(draft.target, draft.reason.message) for draft in confirmation.excluded] == [
        ("lisbon", "the target has no draft of this change any more")
    ]


def test_permissions_are_checked_again_when_the_action_is_confirmed(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway")

    job = console.submit(confirmation, permissions=Permissions((RoleRule("reviewer", targets=NORTH),)))

    assert console.run(job) == {"berlin gateway": "done", "lisbon gateway": "skipped NotPermitted"}


@pytest.mark.parametrize("verb", ["propose", "reject"])
def test_an_action_on_a_whole_draft_requires_permission_for_all_its_packages(
    console: ReviewConsole, verb: ConsoleVerb
) -> None:
    permissions = Permissions((RoleRule("viewer"), RoleRule("reviewer", packages=("gateway",))))

    confirmation = console.confirm("install gateway", verb, permissions=permissions)

    assert list_excluded(confirmation) == {"berlin gateway": "NotPermitted"}
    assert confirmation.targets == ("lisbon",)
    approval = console.confirm("install gateway", "approve", permissions=permissions)
    assert approval.targets == ("berlin", "lisbon")


# Propose and reject


def test_a_rejection_records_the_reason_of_the_person(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway", "reject", "lisbon")
    with pytest.raises(ReviewRequestError, match="a reason is required"):
        console.submit(confirmation, " \n ")

    assert console.run(console.submit(confirmation, "not in this week")) == {"lisbon gateway": "done"}
    console.update()
    (member,) = (m for change in console.index.changes for m in change.members if m.target == "lisbon")
    assert (member.state, member.rejection) == ("rejected", "rejected by Ana Silva: not in this week")
    message = git(console.world.fleet, "log", "-1", "--format=%B", f"{STATE}_rejected/drafts/lisbon")
    assert message.splitlines()[-1] == "Reconciler-Request-Id: request-1"
    again = console.confirm("install gateway", "reject", "lisbon")
    assert list_excluded(again) == {"lisbon gateway": "AlreadyRejected"}


def test_a_proposal_freezes_the_whole_draft(console: ReviewConsole) -> None:
    confirmation = console.confirm("install gateway", "propose", "berlin")

    assert [draft.other_packages for draft in confirmation.drafts] == [("metrics",)]
    assert console.run(console.submit(confirmation)) == {"berlin gateway": "done"}
    assert console.world.head("proposed/berlin") == console.world.head("drafts/berlin")
    console.update()
    again = console.confirm("install gateway", "propose", "berlin")
    assert list_excluded(again) == {"berlin gateway": "AlreadyProposed"}


# Exclusions


def test_a_removal_needs_a_separate_action(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    world.write({"metrics.yaml": None})
    world.sync_until_unchanged()
    console = ReviewConsole(world)
    reviewer = Permissions((RoleRule("reviewer"),))

    assert list_excluded(console.confirm("delete metrics")) == {"berlin metrics": "RemovalNeedsSeparateAction"}
    assert list_excluded(console.confirm("delete metrics", removals=True, permissions=reviewer)) == {
        "berlin metrics": "NotPermitted"
    }
    removal = console.confirm("delete metrics", removals=True)
    assert [draft.risk for draft in removal.drafts] == ["high"]
    assert (removal.typed_count, removal.reason_causes) == (1, ("high risk",))
    assert console.run(console.submit(removal)) == {"berlin metrics": "done"}
    assert world.paths(world.fleet, "clusters/berlin", "metrics") == []


def test_an_action_for_removals_skips_other_drafts(console: ReviewConsole) -> None:
    assert list_excluded(console.confirm("install metrics", removals=True)) == {"berlin metrics": "NotARemoval"}


def test_conflicts_are_excluded_until_they_are_accepted(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync_until_unchanged()
    console = ReviewConsole(world)

    assert list_excluded(console.confirm("update metrics")) == {"berlin metrics": "ConflictsNotAccepted"}
    accepted = console.confirm("update metrics", accepts_conflicts=True)
    assert accepted.reason_causes == ("high risk", "conflict")
    assert accepted.typed_count == 1
    assert console.run(console.submit(accepted)) == {"berlin metrics": "done"}
    assert "Accepted conflicts:" in read_message(world, "clusters/berlin")


def test_a_draft_with_an_unmet_gate_is_excluded(tmp_path: Path) -> None:
    world = begin(tmp_path, published)
    world.release("metrics", "v2", package("metrics", ports=config_map("ports", "required", http="80")))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync_until_unchanged()
    console = ReviewConsole(world)

    confirmation = console.confirm("update metrics")

    assert list_excluded(confirmation) == {"berlin metrics": "GateNotMet"}
    with pytest.raises(ReviewRequestError, match="applies to no draft"):
        console.submit(confirmation)


@pytest.mark.parametrize(
    ("head", "published_head", "code"),
    [("0" * 40, "", "DraftMoved"), ("", "0" * 40, "BranchMoved"), ("", "", "")],
    ids=["draft", "branch", "unknown"],
)
def test_a_request_can_name_the_reviewed_heads(
    console: ReviewConsole, head: str, published_head: str, code: str
) -> None:
    selection = ChangeSelection(
        console.find_key("install gateway"), targets=(SelectedTarget("lisbon", head, published_head),)
    )

    confirmation = console.confirmations.create(
        console.index, ANA, ADMIN_PERMISSIONS, ReviewRequest("approve", (selection,))
    )

    assert list_excluded(confirmation) == ({"lisbon gateway": code} if code else {})


# Failures


def test_a_failed_draft_can_be_applied_again(console: ReviewConsole) -> None:
    job = console.submit(console.confirm("install gateway", "approve", "lisbon"))
    moved = console.world.folder / "moved.git"
    console.world.fleet.rename(moved)
    assert console.run(job) == {"lisbon gateway": "failed"}
    assert console.woken == 0
    moved.rename(console.world.fleet)

    repeated = console.jobs.retry(job.id, "request-2", console.index, ANA, ADMIN_PERMISSIONS)

    assert (repeated.id, repeated.state) == (job.id, "waiting")
    assert console.run(job) == {"lisbon gateway": "done"}
    assert read_message(console.world, "clusters/lisbon").splitlines()[-1] == "Reconciler-Request-Id: request-2"
    assert console.jobs.retry(job.id, "request-3", console.index, ANA, ADMIN_PERMISSIONS).state == "completed"


def test_an_unreadable_config_fails_the_whole_job(console: ReviewConsole) -> None:
    job = console.submit(console.confirm("install gateway"))
    console.world.config.rename(console.world.folder / "moved")

    assert console.run(job) == {"berlin gateway": "failed", "lisbon gateway": "failed"}
    assert console.find(job).items[0].message


def test_the_thread_of_the_service_applies_submitted_jobs(console: ReviewConsole) -> None:
    is_woken = Event()
    reviews = console.world.build_console_reviews(is_woken.set)
    reviews.jobs.start()
    selection = ChangeSelection(console.find_key("install gateway"), targets=(SelectedTarget("lisbon"),))
    confirmation = reviews.confirmations.create(
        console.index, ANA, ADMIN_PERMISSIONS, ReviewRequest("approve", (selection,))
    )
    submission = Submission(confirmation.id, "", None, "key", "request")
    job = reviews.jobs.submit(submission, console.index, ANA, ADMIN_PERMISSIONS)

    assert is_woken.wait(60)
    reviews.jobs.close()

    found = reviews.jobs.find(job.id, ANA, ADMIN_PERMISSIONS)
    assert found
    assert (found.state, found.count_items("done")) == ("completed", 1)
