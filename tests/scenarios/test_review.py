"""Tests of the review commands without a forge: propose, approve, reject and drop. The next pass changes nothing."""

from __future__ import annotations

from pathlib import Path

import pytest
from structlog.testing import capture_logs

from reconciler.output.review.action_results import ReviewActionResult, build_review_result, format_review_text
from reconciler.reconcile.remotes.targets import UnknownTargetError
from reconciler.reconcile.review_actions import ReviewVerb
from tests.support.git_repositories import assert_sound, git, read_refs, write_hook
from tests.support.prepared_worlds import begin, drafted
from tests.support.world import STATE, World, config_map, package, repository, small_world, variant

NOTE = f"{STATE}_rejected/drafts/berlin"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has a draft with the packages gateway and metrics. Lisbon has a draft with its gateway."""
    return begin(tmp_path, drafted)


def summarize_results(results: tuple[ReviewActionResult, ...]) -> dict[str, str]:
    """Return the status label and the reasons of each draft."""
    return {
        result.branch or result.repository: " ".join([result.status_label, *(r.reason for r in result.reasons)])
        for result in results
    }


def release_metrics(world: World, version: str = "v2", image: str = "2.0") -> None:
    world.release("metrics", version, package("metrics", image=image))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", version)})


def draft_unmet_gate(world: World, status: str = "False") -> None:
    """Release and draft a version of metrics with an unmet readiness gate."""
    files = package("metrics", image="2.0")
    files["Kptfile"] += (
        "info:\n  readinessGates:\n    - conditionType: acme.example/tested\n"
        f'status:\n  conditions:\n    - type: acme.example/tested\n      status: "{status}"\n      message: not yet\n'
    )
    world.release("metrics", "v2", files)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()


def draft_conflict(world: World) -> None:
    """Publish all packages of Berlin, change a field of metrics there, and draft an update of the same field."""
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    world.release("metrics", "v2", package("metrics", replicas=3))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync_until_unchanged()


# propose


def test_a_proposal_is_at_the_head_of_the_draft_and_freezes_it(world: World) -> None:
    proposed = world.run_review_action("propose", "berlin")

    assert summarize_results(proposed) == {"drafts/berlin": "proposed"}
    assert world.head("proposed/berlin") == world.head("drafts/berlin")
    assert world.sync().is_unchanged
    release_metrics(world)
    assert world.sync().outcomes["berlin/metrics"] == "DownstreamProposed"
    assert world.head("proposed/berlin") == world.head("drafts/berlin")
    assert world.sync().is_unchanged


def test_proposing_again_changes_nothing(world: World) -> None:
    world.run_review_action("propose", "berlin")
    before = read_refs(world.fleet)

    results = world.run_review_action("propose", "berlin")

    assert summarize_results(results) == {"drafts/berlin": "unchanged"}
    assert read_refs(world.fleet) == before


def test_a_proposal_of_an_older_head_is_stale_until_the_next_propose(world: World) -> None:
    world.run_review_action("propose", "berlin")
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")

    assert [details.draft.lifecycle for details in world.list_open_drafts("berlin")] == ["Stale"]
    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "refused NotProposed"}
    assert summarize_results(world.run_review_action("propose", "berlin")) == {"drafts/berlin": "proposed"}
    assert world.head("proposed/berlin") == world.head("drafts/berlin")


@pytest.mark.parametrize("verb", ["propose", "approve"])
def test_an_unmet_gate_prevents_propose_and_approve(world: World, verb: str) -> None:
    draft_unmet_gate(world)
    before = read_refs(world.fleet)

    results = (
        world.run_review_action("propose", "berlin")
        if verb == "propose"
        else world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    )

    assert summarize_results(results) == {"drafts/berlin": "refused GateNotMet"}
    assert (
        results[0]
        .reasons[0]
        .message.startswith('metrics: the readiness gate "acme.example/tested" is False; not yet. Next step: set this')
    )
    assert read_refs(world.fleet) == before


@pytest.mark.parametrize("verb", ["propose", "approve"])
def test_a_required_injection_without_an_object_warns_and_gates_the_draft(world: World, verb: str) -> None:
    world.release("metrics", "v2", package("metrics", ports=config_map("ports", "required", http="80")))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    pass_result = world.sync()
    before = read_refs(world.fleet)

    results = (
        world.run_review_action("propose", "berlin")
        if verb == "propose"
        else world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    )

    assert [
        (finding.code, finding.severity) for finding in pass_result.findings if finding.code == "InjectionMissing"
    ] == [("InjectionMissing", "warning")]
    assert summarize_results(results) == {"drafts/berlin": "refused GateNotMet"}
    assert results[0].reasons[0].message == (
        'metrics: the readiness gate "config.injection.ConfigMap.ports" is False (NoResourceSelected); no injectors defined. Next step:'
        " add the object to the config, or add an injector that selects an existing object, and run a sync"
    )
    assert read_refs(world.fleet) == before
    assert world.sync().is_unchanged


CONFLICT = "metrics: deployment.yaml: Deployment metrics: spec.replicas: local 5 is kept, upstream 3 is not applied"


@pytest.mark.parametrize("verb", ["propose", "approve"])
def test_a_draft_with_conflicts_is_refused_until_they_are_accepted(world: World, verb: str) -> None:
    draft_conflict(world)
    options = {"should_approve_unproposed": True} if verb == "approve" else {}
    before = read_refs(world.fleet)

    refused = world.run_review_action(verb, "berlin", **options)  # type: ignore[arg-type]

    assert summarize_results(refused) == {"drafts/berlin": "refused ConflictsNotAccepted"}
    assert refused[0].conflicts == (CONFLICT,)
    assert (
        format_review_text(build_review_result(refused, verb, "", None)).splitlines()[0]
        == f"conflict   berlin/{CONFLICT}"
    )
    assert "--accept-conflicts" in refused[0].reasons[0].message
    assert read_refs(world.fleet) == before
    (result,) = world.run_review_action(verb, "berlin", accepts_conflicts=True, **options)  # type: ignore[arg-type]
    assert result.status_label == ("published" if verb == "approve" else "proposed")
    assert result.conflicts == (CONFLICT,)


def test_a_draft_proposed_with_conflicts_is_approved_only_with_accepted_conflicts(world: World) -> None:
    draft_conflict(world)
    world.run_review_action("propose", "berlin", accepts_conflicts=True)

    assert summarize_results(world.run_review_action("approve", "berlin")) == {
        "drafts/berlin": "refused ConflictsNotAccepted"
    }
    assert summarize_results(world.run_review_action("approve", "berlin", accepts_conflicts=True)) == {
        "drafts/berlin": "published"
    }
    message = git(world.fleet, "log", "-1", "--format=%B", "clusters/berlin")
    assert f"Accepted conflicts:\n- {CONFLICT}\n" in message
    assert "replicas: 5" in world.text("clusters/berlin", "metrics/deployment.yaml")
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_approving_all_skips_drafts_with_conflicts(world: World) -> None:
    draft_conflict(world)

    results = world.run_review_action("approve", should_approve_unproposed=True)

    assert summarize_results(results) == {"drafts/berlin": "refused ConflictsNotAccepted", "drafts/lisbon": "published"}
    assert world.head("drafts/lisbon") == ""


def test_a_conflict_resolved_on_the_draft_ends_with_the_next_pass(world: World) -> None:
    draft_conflict(world)
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 5", "replicas: 3")
    world.sync_until_unchanged()

    assert summarize_results(world.run_review_action("propose", "berlin")) == {"drafts/berlin": "proposed"}


# Author and date


def test_an_approval_has_the_time_of_the_command_and_the_person(world: World) -> None:
    world.now = 1_600_000_000
    world.run_review_action("approve", "berlin", should_approve_unproposed=True, message="fine by me")

    format_ = "--format=%at %ct %an <%ae>%n%(trailers)"
    dates, *trailers = git(world.fleet, "log", "-1", format_, "clusters/berlin").splitlines()
    assert dates == "1600000000 1600000000 Grace <grace@example.com>"
    assert "Reconciler-Approved-By: Grace <grace@example.com>" in trailers
    assert "Reconciler-Approved-Via: cli" in trailers
    assert "Reconciler-Reason: fine by me" in trailers
    world.now = 1_700_000_000
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_draft_after_an_approval_has_the_same_id_at_every_time(world: World, tmp_path: Path) -> None:
    world.now = 1_600_000_000
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    release_metrics(world)
    state = read_refs(world.fleet)
    heads = []
    for now in (1_600_000_100, 1_700_000_000):
        world.now = now
        world.sync()
        heads.append(world.head("drafts/berlin"))
        for ref in read_refs(world.fleet).keys() - state.keys():
            git(world.fleet, "update-ref", "-d", ref)
        for ref, commit in state.items():
            world.set_ref(ref, commit)
    assert heads[0] == heads[1]
    assert git(world.fleet, "log", "-1", "--format=%ct", heads[0]) == "1600000000"


@pytest.mark.parametrize(
    ("clock", "now", "expected"),
    [
        pytest.param("real", 1_600_000_000, 1_600_000_000, id="the-time-of-the-command"),
        pytest.param("real", 1, 1_000_000_000, id="never-before-the-parents"),
        pytest.param("commits", 1_600_000_000, 1_000_000_000, id="the-parents-dates"),
    ],
)
def test_the_clock_setting_decides_the_date_of_an_approval(tmp_path: Path, clock: str, now: int, expected: int) -> None:
    world = small_world(tmp_path, review={"clock": clock})
    world.sync()
    world.now = now

    world.run_review_action("approve", "berlin", should_approve_unproposed=True)

    assert git(world.fleet, "log", "-1", "--format=%ct", "clusters/berlin") == str(expected)


@pytest.mark.parametrize(
    ("verb", "selection", "ref"),
    [
        pytest.param("reject", "berlin", NOTE, id="reject"),
        pytest.param("drop", "berlin", NOTE, id="drop-a-draft"),
        pytest.param("drop", "berlin/metrics", "refs/heads/drafts/berlin", id="drop-a-package"),
    ],
)
@pytest.mark.parametrize(
    ("now", "expected"),
    [pytest.param(1_600_000_000, 1_600_000_000, id="command"), pytest.param(1, 1_000_000_000, id="parent")],
)
def test_a_rejection_has_the_time_and_reason_of_the_command(
    world: World, verb: ReviewVerb, selection: str, ref: str, now: int, expected: int
) -> None:
    world.run_review_action("propose", "berlin")
    world.now = now

    world.run_review_action(verb, selection, message="too early")

    dates, author, reason = git(
        world.fleet, "log", "-1", "--format=%at %ct%n%an%n%(trailers:key=Reconciler-Reason,separator=)", ref
    ).splitlines()
    assert (dates, author) == (f"{expected} {expected}", "Grace")
    assert reason == "Reconciler-Reason: too early"


def test_a_repeated_command_writes_nothing(world: World) -> None:
    for verb in ("propose", "reject", "propose", "approve"):
        world.now += 60
        world.run_review_action(verb, "berlin")
        refs = read_refs(world.fleet)
        world.now += 60
        world.run_review_action(verb, "berlin")
        assert read_refs(world.fleet) == refs


def test_a_race_within_one_command_keeps_its_time(world: World) -> None:
    world.now = 1_600_000_000

    def commit_later() -> None:
        world.now = 1_650_000_000
        world.commit("clusters/berlin", {"NOTES.md": "by hand\n"})

    (results,) = world.run_review_action("approve", "berlin", should_approve_unproposed=True, meddle=commit_later)

    assert results.status_label == "published"
    assert git(world.fleet, "log", "-1", "--format=%ct", "clusters/berlin") == "1600000000"


@pytest.mark.parametrize(
    ("verb", "options", "level", "expected"),
    [
        pytest.param("propose", {}, "info", {"result": "done", "reason": ""}, id="propose"),
        pytest.param(
            "approve",
            {"should_approve_unproposed": True, "message": "fine"},
            "info",
            {"result": "done", "reason": "fine"},
            id="approve",
        ),
        pytest.param("approve", {}, "warning", {"result": "refused", "refusals": ["NotProposed"]}, id="refused"),
        pytest.param("drop", {"message": "no"}, "info", {"result": "done", "reason": "no"}, id="drop"),
        pytest.param("reject", {}, "info", {"result": "unchanged", "commits": []}, id="reject-without-a-proposal"),
    ],
)
def test_every_action_is_logged_for_audits(
    world: World, verb: ReviewVerb, options: dict[str, object], level: str, expected: dict[str, object]
) -> None:
    with capture_logs() as events:
        results = world.run_review_action(verb, "berlin", **options)

    (event,) = [event for event in events if event["event"] == "review_action"]
    assert event["log_level"] == level
    assert {name: event[name] for name in expected} == expected
    assert (event["action"], event["actor"]) == (verb, "Grace <grace@example.com>")
    assert event["targets"] == ["berlin"]
    assert event["packages"] == ["berlin/gateway", "berlin/metrics"]
    assert event["commits"] == [result.commit for result in results if result.commit]


def test_packages_without_a_gate_can_be_approved(world: World) -> None:
    draft_unmet_gate(world)

    assert summarize_results(world.run_review_action("propose", "berlin/gateway")) == {"drafts/berlin": "proposed"}
    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "refused GateNotMet"}
    assert summarize_results(world.run_review_action("approve", "berlin/gateway")) == {"drafts/berlin": "published"}
    assert world.paths(world.fleet, "clusters/berlin", "metrics") == []


def test_a_condition_met_on_the_draft_opens_the_gate(world: World) -> None:
    draft_unmet_gate(world)
    world.edit("drafts/berlin", "metrics/Kptfile", 'status: "False"', 'status: "True"')

    assert summarize_results(world.run_review_action("propose", "berlin")) == {"drafts/berlin": "proposed"}


def test_an_unmet_gate_is_a_warning_outside_deployment_repositories(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    blueprints = repository("berlin", branch="clusters/berlin").replace("deployment: true", "deployment: false")
    world.write({"clusters/berlin.yaml": blueprints})
    draft_unmet_gate(world)

    (results,) = world.run_review_action("approve", "berlin", should_approve_unproposed=True)

    assert results.status_label == "published"
    (warning,) = results.warnings
    assert warning.message.startswith('metrics: the readiness gate "acme.example/tested" is False; not yet. ')


def test_a_draft_with_a_failed_function_cannot_be_proposed(world: World) -> None:
    files = package("metrics", image="2.0")
    files["Kptfile"] += "pipeline:\n  mutators:\n    - image: nobody/knows:v1\n"
    world.release("metrics", "v2", files)
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    world.sync()

    assert summarize_results(world.run_review_action("propose", "berlin")) == {"drafts/berlin": "refused RenderFailed"}


def test_a_blocking_conflict_prevents_propose_of_the_older_draft(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "metrics:2.0", "metrics:2.0-ours")
    world.release("metrics", "v3", package("metrics", image="3.0"))
    text = variant("metrics-berlin", "berlin", "metrics", "v3", extra="conflictPolicy: block")
    world.write({"metrics.yaml": text})
    assert world.sync().outcomes["berlin/metrics"] == "MergeConflict"

    assert summarize_results(world.run_review_action("propose", "berlin")) == {"drafts/berlin": "refused MergeConflict"}


# approve


def test_one_package_is_approved_by_command_and_one_by_squash(world: World) -> None:
    world.run_review_action("propose", "berlin")
    root = world.head("clusters/berlin")

    approved = world.run_review_action("approve", "berlin/metrics")

    assert summarize_results(approved) == {"drafts/berlin": "published"}
    assert git(world.fleet, "log", "-1", "--format=%P", "clusters/berlin") == root
    assert git(world.fleet, "diff", "--name-only", "clusters/berlin", "drafts/berlin", "--", "metrics") == ""
    assert world.head("drafts/berlin") == world.head("proposed/berlin") != ""
    assert world.sync().outcomes["berlin/metrics"] == "published"
    assert world.sync().is_unchanged
    world.merge("berlin", "squash")
    world.sync()
    assert world.sync().is_unchanged
    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert [world.record("berlin", name)["revision"] for name in ("gateway", "metrics")] == [1, 1]
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")
    release_metrics(world)
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    text = world.text("drafts/berlin", "metrics/deployment.yaml")
    assert "metrics:2.0" in text
    assert "replicas: 5" in text
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert world.record("berlin", "metrics")["revision"] == 2
    assert_sound(world.fleet)


def test_approving_a_whole_draft_creates_one_merge_commit_and_ends_the_draft(world: World) -> None:
    world.run_review_action("propose", "berlin")
    root, head = world.head("clusters/berlin"), world.head("drafts/berlin")

    results = world.run_review_action("approve", "berlin", message="fine by me")

    assert summarize_results(results) == {"drafts/berlin": "published"}
    assert git(world.fleet, "log", "-1", "--format=%P", "clusters/berlin") == f"{root} {head}"
    assert git(world.fleet, "log", "-1", "--format=%an %cn", "clusters/berlin") == "Grace reconciler"
    message = git(world.fleet, "log", "-1", "--format=%B", "clusters/berlin")
    assert message.startswith("publish 2 packages of drafts/berlin\n\nfine by me\n\n- gateway: install v1\n")
    trailers = git(world.fleet, "log", "-1", "--format=%(trailers:key=Reconciler-Package,valueonly)", "clusters/berlin")
    assert trailers.split() == ["gateway", "metrics"]
    assert git(world.fleet, "diff", "--name-only", "clusters/berlin", head) == ""
    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert world.sync().outcomes["berlin/gateway"] == "published"
    assert world.sync().is_unchanged
    assert_sound(world.fleet)


def test_approving_the_last_package_ends_the_draft(world: World) -> None:
    world.run_review_action("propose", "berlin")
    world.run_review_action("approve", "berlin/metrics")

    world.run_review_action("approve", "berlin/gateway")

    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert set(world.paths(world.fleet, "clusters/berlin", ".reconciler")) == {"gateway.yaml", "metrics.yaml"}
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"


def test_approving_again_changes_nothing(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    before = read_refs(world.fleet)

    assert summarize_results(world.run_review_action("approve", "berlin")) == {"berlin": "unchanged"}
    assert summarize_results(world.run_review_action("approve", "berlin/metrics")) == {"berlin": "unchanged"}
    assert read_refs(world.fleet) == before


def test_a_draft_that_is_not_proposed_is_not_approved(world: World) -> None:
    before = read_refs(world.fleet)

    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "refused NotProposed"}
    assert read_refs(world.fleet) == before


def test_files_outside_the_packages_are_published_only_with_the_whole_draft(world: World) -> None:
    world.commit("drafts/berlin", {"README.md": "ours\n"})
    world.run_review_action("propose", "berlin")
    assert [details.extra_paths for details in world.list_open_drafts("berlin")] == [("README.md",)]

    world.run_review_action("approve", "berlin/gateway", "berlin/metrics")

    assert world.paths(world.fleet, "clusters/berlin", "metrics")
    assert "README.md" not in world.paths(world.fleet, "clusters/berlin")
    assert world.head("drafts/berlin")
    world.run_review_action("approve", "berlin")
    assert world.text("clusters/berlin", "README.md") == "ours\n"
    assert world.head("drafts/berlin") == ""
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_changes_outside_the_packages_on_the_target_branch_stay(world: World) -> None:
    world.run_review_action("propose", "berlin")
    world.commit("clusters/berlin", {"README.md": "ours\n", "metrics-of-ours/notes.md": "x\n"})

    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "published"}
    assert world.text("clusters/berlin", "README.md") == "ours\n"
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_file_changed_on_both_branches_refuses_the_approval(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    release_metrics(world)
    world.sync()
    world.run_review_action("propose", "berlin")
    world.edit("clusters/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")

    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "refused BranchMoved"}
    world.run_review_action("reject", "berlin")
    world.sync()
    assert summarize_results(world.run_review_action("approve", "berlin", should_approve_unproposed=True)) == {
        "drafts/berlin": "published"
    }
    text = world.text("clusters/berlin", "metrics/deployment.yaml")
    assert "replicas: 5" in text
    assert "metrics:2.0" in text


def test_a_commit_pushed_to_the_target_branch_meanwhile_is_not_overwritten(world: World) -> None:
    world.run_review_action("propose", "berlin")

    results = world.run_review_action(
        "approve", "berlin", meddle=lambda: world.commit("clusters/berlin", {"README.md": "first\n"}, "hot fix")
    )

    assert summarize_results(results) == {"drafts/berlin": "published"}
    assert world.text("clusters/berlin", "README.md") == "first\n"
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_two_people_can_approve_different_packages_at_the_same_time(world: World) -> None:
    world.run_review_action("propose", "berlin")
    other = World(world.folder, cache=str(world.folder / "other"))

    results = world.run_review_action(
        "approve", "berlin/gateway", meddle=lambda: other.run_review_action("approve", "berlin/metrics")
    )

    assert summarize_results(results) == {"drafts/berlin": "published"}
    assert set(world.paths(world.fleet, "clusters/berlin", ".reconciler")) == {"gateway.yaml", "metrics.yaml"}
    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"


def test_a_host_without_atomic_pushes_gets_the_same_refs(world: World) -> None:
    git(world.fleet, "config", "receive.advertiseAtomic", "false")
    world.run_review_action("propose", "berlin")

    assert summarize_results(world.run_review_action("approve", "berlin")) == {"drafts/berlin": "published"}
    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"


def test_a_rejection_note_is_a_branch_when_states_are_branches(tmp_path: Path) -> None:
    world = small_world(tmp_path, state_ref="refs/heads/reconciler/state/{repository}")
    world.sync()
    world.run_review_action("propose", "berlin")
    world.run_review_action("reject", "berlin", message="too early")

    assert [
        draft_details.rejection.reason for draft_details in world.list_open_drafts("berlin") if draft_details.rejection
    ] == ["too early"]
    assert world.head("reconciler/state/_rejected/drafts/berlin")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "drafted"


@pytest.mark.parametrize("selections", [["berlin"], ["berlin/gateway"]])
def test_approving_a_draft_that_moves_meanwhile_is_refused(world: World, selections: list[str]) -> None:
    results = world.run_review_action(
        "approve",
        *selections,
        should_approve_unproposed=True,
        meddle=lambda: world.commit("drafts/berlin", {"metrics/x.md": "unseen\n"}),
    )

    assert summarize_results(results) == {"drafts/berlin": "refused DraftMoved"}
    assert world.paths(world.fleet, "clusters/berlin") == []


def test_a_refused_push_is_reported_with_the_message_of_the_host_and_others_continue(world: World) -> None:
    write_hook(world.fleet, "update", 'case "$1" in refs/heads/clusters/berlin) echo two eyes >&2; exit 1;; esac')

    results = world.run_review_action("approve", should_approve_unproposed=True)

    assert summarize_results(results) == {"drafts/berlin": "refused HostRefused", "drafts/lisbon": "published"}
    assert "two eyes" in results[0].reasons[0].message
    assert world.head("drafts/berlin")
    assert world.head("drafts/lisbon") == ""


def test_clusters_that_share_a_branch_are_approved_one_after_the_other(tmp_path: Path) -> None:
    world = small_world(tmp_path)
    for cluster in ("berlin", "lisbon"):
        text = (world.config / f"clusters/{cluster}.yaml").read_text()
        git_fields = "repo: ./fleet.git\n    branch: all\n    directory: " + cluster
        world.write({f"clusters/{cluster}.yaml": text.replace("repo: ./fleet.git", git_fields)})
    world.sync()

    results = world.run_review_action("approve", should_approve_unproposed=True)

    assert summarize_results(results) == {"drafts/berlin": "published", "drafts/lisbon": "published"}
    assert {path.split("/")[0] for path in world.paths(world.fleet, "all")} == {"berlin", "lisbon"}
    assert world.sync_until_unchanged().outcomes["lisbon/gateway"] == "published"


def test_a_draft_for_each_package_is_proposed_and_approved_alone(tmp_path: Path) -> None:
    world = small_world(tmp_path, drafts={"branch": "drafts/{repository}/{package}"})
    world.sync()

    assert summarize_results(world.run_review_action("propose", "berlin/metrics")) == {
        "drafts/berlin/metrics": "proposed"
    }
    assert summarize_results(world.run_review_action("approve", "berlin")) == {
        "drafts/berlin/gateway": "refused NotProposed", "drafts/berlin/metrics": "published"
    }  # fmt: skip
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


# reject and drop


def test_a_rejected_draft_is_not_proposed_any_more_and_shows_the_reason(world: World) -> None:
    world.run_review_action("propose", "berlin")

    results = world.run_review_action("reject", "berlin", message="too early")

    assert summarize_results(results) == {"drafts/berlin": "rejected"}
    assert world.head("proposed/berlin") == ""
    (details,) = world.list_open_drafts("berlin")
    assert details.rejection
    assert details.rejection.line == "rejected by Grace: too early"
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "drafted"
    release_metrics(world)
    world.sync()
    assert "metrics:2.0" in world.text("drafts/berlin", "metrics/deployment.yaml")
    assert [details.rejection for details in world.list_open_drafts("berlin")] == [None]
    world.run_review_action("propose", "berlin")
    assert NOTE not in read_refs(world.fleet)


def test_rejecting_a_draft_that_is_not_proposed_changes_nothing(world: World) -> None:
    assert summarize_results(world.run_review_action("reject", "berlin")) == {"drafts/berlin": "unchanged"}


def test_a_dropped_draft_is_declined_until_its_content_changes(world: World) -> None:
    head = world.head("drafts/berlin")
    world.run_review_action("propose", "berlin")

    assert summarize_results(world.run_review_action("drop", "berlin", message="not here")) == {
        "drafts/berlin": "dropped"
    }

    assert (world.head("drafts/berlin"), world.head("proposed/berlin")) == ("", "")
    assert git(world.fleet, "log", "-1", "--format=%P", NOTE) == head
    after = world.sync_until_unchanged()
    assert (after.outcomes["berlin/gateway"], after.outcomes["berlin/metrics"]) == ("declined", "declined")
    release_metrics(world)
    assert world.sync().outcomes["berlin/metrics"] == "draft"
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "declined"


@pytest.mark.parametrize("published", [pytest.param(False, id="new"), pytest.param(True, id="an-update")])
def test_a_dropped_package_leaves_the_others_on_the_draft(world: World, published: bool) -> None:
    if published:
        world.run_review_action("approve", "berlin", should_approve_unproposed=True)
        world.sync_until_unchanged()
        release_metrics(world)
        world.write({"regions/north.yaml": config_map("region-north", api="api.new")})
        world.sync()

    assert summarize_results(world.run_review_action("drop", "berlin/metrics", message="not here")) == {
        "drafts/berlin": "dropped"
    }

    after = world.sync_until_unchanged()
    assert (after.outcomes["berlin/gateway"], after.outcomes["berlin/metrics"]) == ("drafted", "declined")
    assert git(world.fleet, "diff", "--name-only", "clusters/berlin", "drafts/berlin", "--", "metrics") == ""
    assert summarize_results(world.run_review_action("approve", "berlin", should_approve_unproposed=True)) == {
        "drafts/berlin": "published"
    }
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "declined"


# Removals


def test_a_removal_draft_needs_a_separate_approval(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    text = (world.config / "metrics.yaml").read_text()
    world.write({"metrics.yaml": f"{text}  deletionPolicy: delete\n"})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})
    world.sync()

    (details,) = world.list_open_drafts("berlin")
    assert (details.draft.branch, details.draft.is_removal) == ("removals/berlin", True)
    assert summarize_results(world.run_review_action("propose", "berlin")) == {"removals/berlin": "unchanged"}
    assert summarize_results(world.run_review_action("propose", "berlin/metrics")) == {"removals/berlin": "proposed"}
    assert world.sync().is_unchanged
    assert summarize_results(world.run_review_action("approve", "berlin", removals=True)) == {
        "removals/berlin": "published"
    }
    assert world.paths(world.fleet, "clusters/berlin", "metrics") == []
    assert world.head("removals/berlin") == ""
    world.sync()
    assert world.sync().is_unchanged


def test_a_dropped_removal_is_declined(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    text = (world.config / "metrics.yaml").read_text()
    world.write({"metrics.yaml": f"{text}  deletionPolicy: delete\n"})
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})
    world.sync()

    assert summarize_results(world.run_review_action("drop", "berlin/metrics")) == {"removals/berlin": "dropped"}
    world.sync()
    assert world.sync().is_unchanged
    assert world.head("removals/berlin") == ""
    assert world.paths(world.fleet, "clusters/berlin", "metrics")


# Lists and selection


def test_open_drafts_are_listed_with_their_edits_and_conflicts(world: World) -> None:
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "metrics:1.0", "metrics:1.0-ours")
    release_metrics(world)
    world.sync()
    world.edit("drafts/berlin", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")

    (details,) = world.list_open_drafts("berlin", whole=True)

    assert details.editors == ("Ada",)
    assert (details.draft.is_edited, details.behind_count) == (True, 0)
    (draft_package_details,) = details.packages
    assert draft_package_details.package.is_edited
    assert [conflict["pointer"] for conflict in draft_package_details.package.status["conflicts"]]
    assert "upstream catalog/metrics: v1 → v2" in draft_package_details.causes
    assert "replicas 2 → 5" in draft_package_details.changes.format_summary_lines()[0]


def test_a_selector_selects_drafts_by_repository_labels(world: World) -> None:
    assert summarize_results(world.run_review_action("propose", selector="region=south")) == {
        "drafts/lisbon": "proposed"
    }


def test_a_cluster_without_a_repository_is_selected_in_the_same_way(world: World) -> None:
    cluster = "apiVersion: core.kubeadmiral.io/v1alpha1\nkind: FederatedCluster\n"
    cluster += "metadata: {name: porto, labels: {region: west}}\n"
    till = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: till, annotations: {reconciler.dev/clusters: porto}}\n"
    world.write({"porto.yaml": cluster, "till.yaml": till})
    world.sync()

    assert [details.draft.branch for details in world.list_open_drafts("porto")] == ["drafts/porto"]
    assert summarize_results(world.run_review_action("propose", selector="region=west")) == {"drafts/porto": "proposed"}


@pytest.mark.parametrize(
    ("selection", "message"),
    [
        pytest.param(
            "paris", "paris: there is no Repository or cluster \"paris\"; existing names: berlin, catalog, lisbon", id="cluster"
        ),
        pytest.param(
            "berlin/none", "berlin/none: berlin has no such package; existing packages: gateway, metrics", id="package"
        ),
    ],
)  # fmt: skip
def test_an_unknown_name_is_reported_with_the_known_names(world: World, selection: str, message: str) -> None:
    with pytest.raises(UnknownTargetError, match=f"^{message}$"):
        world.run_review_action("propose", selection)


def test_an_unreadable_cluster_fails_and_others_are_proposed(world: World) -> None:
    git(world.fleet, "update-ref", "-d", "refs/heads/clusters/berlin")

    results = world.run_review_action("propose")

    assert summarize_results(results) == {"berlin": "failed", "drafts/lisbon": "proposed"}
    assert "does not exist. Its last known commit is" in results[0].message


def test_a_draft_without_recorded_state_is_not_approved_before_a_pass(world: World) -> None:
    git(world.fleet, "update-ref", "-d", f"{STATE}berlin")

    results = world.run_review_action("approve", "berlin", should_approve_unproposed=True)

    assert summarize_results(results) == {"berlin": "failed"}
    assert "run `reconciler sync`" in results[0].message
    world.sync()
    assert summarize_results(world.run_review_action("approve", "berlin", should_approve_unproposed=True)) == {
        "drafts/berlin": "published"
    }
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
