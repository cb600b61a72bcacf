"""Tests of approvals by annotation: the published drafts, the delays, and the drafts that require a person."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.reconcile.pass_runner import PassRunner
from tests.support.git_repositories import assert_sound, git, read_refs, write_hook
from tests.support.world import PassResult, World, catalog, package, repository, variant

HOUR = 3_600
BERLIN = repository("berlin")


def approval_annotations(policy: str, delay: str = "") -> str:
    """Return the line of a variant spec that requests automatic approvals."""
    more = f", approval.nephio.org/delay: {delay}" if delay else ""
    return f"annotations: {{approval.nephio.org/policy: {policy}{more}}}"


def request_package(
    world: World, name: str, version: str = "v1", policy: str = "", delay: str = "", more: str = ""
) -> None:
    """Write a PackageVariant for Berlin with these annotations."""
    extra = "\n".join(filter(None, [approval_annotations(policy, delay) if policy else "", more]))
    world.write({f"{name}.yaml": variant(name, "berlin", name, version, extra=extra)})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return a world in which Berlin is empty and approvals by annotation are enabled."""
    world = World.create(tmp_path, approvals={"by_annotation": True})
    for name in ("metrics", "gateway"):
        world.release(name, "v1", package(name))
        world.release(name, "v2", package(name, image="2.0"))
    world.write({"catalog.yaml": catalog(), "berlin.yaml": BERLIN})
    return world


def read_published_image(world: World, name: str = "metrics") -> str:
    """Return the image tag of a package on the target branch, or "" if the package is not published."""
    if f"{name}/deployment.yaml" not in world.paths(world.fleet, "clusters/berlin"):
        return ""
    return world.text("clusters/berlin", f"{name}/deployment.yaml").rstrip().rpartition(":")[2]


def list_approved(pass_result: PassResult) -> tuple[str, ...]:
    return pass_result.report.approvals.packages


def run_pass(passes: PassRunner) -> str:
    """Run a pass, and return "skipped" or "looked"."""
    passes.run()
    return "skipped" if passes.summary.is_skipped else "looked"


def read_log(world: World, form: str = "%s") -> list[str]:
    return git(world.fleet, "log", "--first-parent", f"--format={form}", "clusters/berlin").splitlines()


# The tests of this section vary the policy and the draft.


def test_initial_publishes_the_first_draft_and_no_updates(world: World) -> None:
    request_package(world, "metrics", policy="initial")
    first = world.sync()
    assert (list_approved(first), read_published_image(world), first.report.due_at) == ((), "", world.now)

    second = world.sync()

    assert (list_approved(second), read_published_image(world)) == (("berlin/metrics",), "1.0")
    assert world.head("drafts/berlin") == ""
    assert world.sync().outcomes["berlin/metrics"] == "published"
    assert world.sync().is_unchanged
    assert world.record("berlin", "metrics")["revision"] == 1
    request_package(world, "metrics", "v2", policy="initial")
    assert world.sync().codes == set()
    assert world.sync().is_unchanged
    assert (read_published_image(world), world.head("drafts/berlin") != "") == ("1.0", True)
    assert_sound(world.fleet)


def test_always_also_publishes_updates(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync_until_unchanged()
    request_package(world, "metrics", "v2", policy="always")

    world.sync_until_unchanged()

    assert (read_published_image(world), world.record("berlin", "metrics")["revision"]) == ("2.0", 2)


def test_initial_does_not_publish_a_removed_package_again(world: World) -> None:
    request_package(world, "gateway")
    request_package(world, "metrics", policy="initial")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.run_review_action("approve", "berlin/metrics", should_approve_unproposed=True)
    assert read_published_image(world) == ""
    world.sync_until_unchanged()
    request_package(world, "metrics", policy="initial")

    world.sync()

    assert world.sync().is_unchanged
    assert read_published_image(world) == ""


def test_removal_always_requires_a_person(world: World) -> None:
    request_package(world, "gateway")
    request_package(world, "metrics", policy="always")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    world.sync_until_unchanged()

    assert (read_published_image(world), world.head("removals/berlin") != "") == ("1.0", True)


def test_adopted_package_counts_as_published(world: World) -> None:
    world.commit("clusters/berlin", {"metrics/Kptfile": package("metrics")["Kptfile"]})
    request_package(world, "metrics", policy="initial", more="adoptionPolicy: adoptExisting")

    world.sync()

    assert world.sync_until_unchanged().report.approvals.packages == ()
    assert (read_published_image(world), world.head("drafts/berlin") != "") == ("", True)


def test_approvals_by_annotation_are_disabled_by_default(world: World) -> None:
    world = World(world.folder)
    request_package(world, "metrics", policy="initial")

    assert world.sync().codes == set()
    assert world.sync().is_unchanged
    assert (read_published_image(world), world.head("drafts/berlin") != "") == ("", True)


def test_plan_shows_future_approvals_and_publishes_nothing(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.sync()
    before = read_refs(world.fleet)
    world.now += HOUR

    planned = world.plan()

    (finding,) = planned.findings
    assert (finding.code, finding.location.file) == ("ApprovalAhead", "metrics.yaml")
    assert finding.message == (
        "the draft of berlin/metrics is approved automatically when nothing blocks it, because an annotation"
        " requests this (approval.nephio.org/policy: always, approval.nephio.org/delay: 1h)"
    )
    assert read_refs(world.fleet) == before


def test_changed_annotation_applies_to_new_drafts_only(world: World) -> None:
    request_package(world, "metrics")
    world.sync()
    request_package(world, "metrics", policy="always")
    world.sync_until_unchanged()
    assert read_published_image(world) == ""
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    request_package(world, "metrics", "v2", policy="always")

    world.sync_until_unchanged()

    assert read_published_image(world) == "2.0"


def test_invalid_annotation_is_reported_and_publishes_nothing(world: World) -> None:
    request_package(world, "metrics", policy="sometimes")
    request_package(world, "gateway", policy="always", delay="soon")
    planned = world.plan()
    world.sync()

    pass_result = world.sync()

    assert planned.findings == pass_result.findings
    assert {(finding.code, finding.severity, finding.location.file) for finding in pass_result.findings} == {
        ("ApprovalPolicyInvalid", "warning", f"{name}.yaml") for name in ("metrics", "gateway")
    }
    delay, policy = (finding.message for finding in pass_result.findings)
    assert delay.endswith(
        'such as "10m" or "1h30m", but is "soon"; the draft of berlin/gateway waits for an approval by a person'
    )
    assert policy.endswith(
        '"initial" or "always", but is "sometimes"; the draft of berlin/metrics waits for an approval by a person'
    )
    assert (read_published_image(world), read_published_image(world, "gateway")) == ("", "")


# The tests of this section vary the time.


def test_delay_starts_with_the_first_observation_of_the_draft(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    assert world.sync().report.due_at == world.now + HOUR
    world.now += HOUR - 1
    early = world.sync()
    assert (early.is_unchanged, early.report.due_at) == (True, world.now + 1)

    world.now += 1

    assert list_approved(world.sync()) == ("berlin/metrics",)
    assert (world.sync().report.due_at, read_published_image(world)) == (None, "1.0")


def test_delay_restarts_when_the_draft_of_the_package_changes(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR - 1
    request_package(world, "metrics", "v2", policy="always", delay="1h")

    assert world.sync().report.due_at == world.now + HOUR


def test_delay_does_not_restart_when_another_package_joins_the_draft(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR
    request_package(world, "gateway")
    joined = world.sync()
    assert (list_approved(joined), joined.report.due_at) == ((), world.now)

    assert list_approved(world.sync()) == ("berlin/metrics",)


def test_delay_after_a_commit_in_the_future_starts_at_its_time(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.release("metrics", "v3", package("metrics", image="3.0"), seconds=world.now + 500)
    request_package(world, "metrics", "v3", policy="always", delay="1h")

    due_at = world.sync().report.due_at
    drafted = int(git(world.fleet, "log", "-1", "--format=%ct", "drafts/berlin"))

    assert due_at == max(drafted, world.now) + HOUR


def test_delay_continues_after_a_restart_and_restarts_without_the_cache(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR - 10
    assert world.sync().report.due_at == world.now + 10

    other_cache_world = World(world.folder, approvals={"by_annotation": True}, cache=str(world.folder / "other"))
    other_cache_world.now = world.now

    assert other_cache_world.sync().report.due_at == world.now + HOUR
    world.now += 10
    assert list_approved(world.sync()) == ("berlin/metrics",)


@pytest.mark.slow
def test_service_runs_a_pass_when_a_draft_is_due_and_after_its_publication(world: World) -> None:
    request_package(world, "metrics", policy="initial", delay="10m")
    passes = world.service()
    passes.run()
    assert passes.seconds_until_due == 600
    assert run_pass(passes) == "skipped"

    world.now += 600

    assert run_pass(passes) == "looked"
    assert (read_published_image(world), passes.summary.counts["approved"]) == ("1.0", 1)
    assert run_pass(passes) == "looked"
    assert world.record("berlin", "metrics")["revision"] == 1
    assert run_pass(passes) == "skipped"


def test_restart_between_draft_and_approval_creates_the_same_commit(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync()
    unbroken = World(world.folder)
    git(world.folder, "clone", "--quiet", "--mirror", str(world.fleet), "copy.git")
    world.sync()
    once = world.head("clusters/berlin")

    # The daemon stops before the push: the refs are unchanged, but the mirrors contain the commit.
    git(world.fleet, "fetch", "--quiet", "--prune", "--force", str(world.folder / "copy.git"), "refs/*:refs/*")
    assert read_published_image(unbroken) == ""
    world.sync()

    assert world.head("clusters/berlin") == once
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert_sound(world.fleet)


# The tests of this section check the published commits.


def test_approval_of_one_package_is_one_commit_and_keeps_the_other_drafts(world: World) -> None:
    request_package(world, "metrics", policy="always")
    request_package(world, "gateway")
    world.sync()
    head = world.head("drafts/berlin")

    world.sync()

    assert (read_published_image(world), read_published_image(world, "gateway")) == ("1.0", "")
    assert world.head("drafts/berlin") == head
    assert git(world.fleet, "log", "-1", "--format=%an %cn", "clusters/berlin") == "reconciler reconciler"
    message = git(world.fleet, "log", "-1", "--format=%B", "clusters/berlin")
    assert message.startswith("publish metrics: install v1")
    assert "Approved by annotation, approval.nephio.org/policy: always\n" in message
    assert "Reconciler-Task: publish\nReconciler-Repository: berlin\nReconciler-Package: metrics\n" in message
    assert world.sync().outcomes == {"berlin/metrics": "published", "berlin/gateway": "drafted"}
    assert world.sync().is_unchanged
    world.merge("berlin", "squash")
    assert world.sync_until_unchanged().outcomes["berlin/gateway"] == "published"


def test_all_due_packages_are_published_in_one_push_that_deletes_the_draft(world: World) -> None:
    request_package(world, "metrics", policy="always")
    request_package(world, "gateway", policy="initial")
    root = len(read_log(world)) if world.head("clusters/berlin") else 0
    world.sync()
    head = world.head("drafts/berlin")

    pass_result = world.sync()

    assert list_approved(pass_result) == ("berlin/gateway", "berlin/metrics")
    assert read_log(world)[:2] == ["publish metrics: install v1", "publish gateway: install v1"]
    assert len(read_log(world)) == root + 3
    assert git(world.fleet, "log", "-1", "--format=%P", "clusters/berlin").endswith(head)
    assert (read_published_image(world), read_published_image(world, "gateway"), world.head("drafts/berlin")) == (
        "1.0",
        "1.0",
        "",
    )
    assert set(world.sync().outcomes.values()) == {"published"}
    assert world.sync().is_unchanged
    assert_sound(world.fleet)


def test_separate_draft_branches_are_published_together(world: World) -> None:
    world = World(world.folder, approvals={"by_annotation": True}, drafts={"branch": "drafts/{repository}/{package}"})
    request_package(world, "metrics", policy="always")
    request_package(world, "gateway", policy="always")
    world.sync()

    assert list_approved(world.sync()) == ("berlin/gateway", "berlin/metrics")
    assert [name for name in read_refs(world.fleet) if "drafts/" in name] == []
    assert set(world.sync_until_unchanged().outcomes.values()) == {"published"}


def test_clusters_with_a_shared_branch_are_published_one_by_one(world: World) -> None:
    shared = {cluster: repository(cluster, branch="all", directory=cluster) for cluster in ("berlin", "lisbon")}
    world.write({f"{entry}.yaml": text for entry, text in shared.items()})
    for item in shared:
        world.write({f"m-{item}.yaml": variant(f"m-{item}", item, "metrics", extra=approval_annotations("always"))})
    world.sync()

    assert list_approved(world.sync()) == ("berlin/metrics",)
    assert list_approved(world.sync()) == ("lisbon/metrics",)
    assert set(world.sync_until_unchanged().outcomes.values()) == {"published"}


# The tests of this section have drafts that require a person.


def build_gated_package(status: str) -> dict[str, str]:
    files = package("metrics", image="3.0")
    files["Kptfile"] += (
        "info:\n  readinessGates:\n    - conditionType: acme.example/tested\n"
        f'status:\n  conditions:\n    - type: acme.example/tested\n      status: "{status}"\n'
    )
    return files


@pytest.mark.parametrize("deployment", ["true", "false"])
def test_draft_with_an_unmet_gate_waits(world: World, deployment: str) -> None:
    text = repository("berlin", branch="clusters/berlin").replace("deployment: true", f"deployment: {deployment}")
    world.write({"berlin.yaml": text})
    world.release("metrics", "v3", build_gated_package("False"))
    request_package(world, "metrics", "v3", policy="always")
    world.sync()
    assert world.sync().is_unchanged
    assert read_published_image(world) == ""
    world.release("metrics", "v4", build_gated_package("True"))
    request_package(world, "metrics", "v4", policy="always")

    world.sync_until_unchanged()

    assert read_published_image(world) == "3.0"


def edit_draft(world: World, cluster: str = "berlin") -> None:
    world.edit(f"drafts/{cluster}", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")


def add_readme_to_draft(world: World, cluster: str = "berlin") -> None:
    world.commit(f"drafts/{cluster}", {"README.md": "look at this\n"})


def propose_draft(world: World, cluster: str = "berlin") -> None:
    world.run_review_action("propose", cluster)


def change_proposed_draft(world: World, cluster: str = "berlin") -> None:
    propose_draft(world, cluster)
    add_readme_to_draft(world, cluster)


def reject_draft(world: World, cluster: str = "berlin") -> None:
    propose_draft(world, cluster)
    world.run_review_action("reject", cluster, message="not before Monday")


def block_update(world: World, cluster: str = "berlin") -> None:
    world.write(
        {f"m-{cluster}.yaml": variant(f"m-{cluster}", cluster, "metrics", "v7", extra=approval_annotations("always"))}
    )


def keep_draft(world: World, cluster: str = "berlin") -> None:
    """Do not change the draft."""


def test_draft_that_a_person_changed_or_reviewed_is_not_published(world: World) -> None:
    actions = {
        "edit": edit_draft,
        "note": add_readme_to_draft,
        "propose": propose_draft,
        "stale": change_proposed_draft,
        "reject": reject_draft,
        "block": block_update,
        "leave": keep_draft,
    }
    for name in actions:
        written = variant(f"m-{name}", name, "metrics", extra=approval_annotations("always", "1h"))
        world.write({f"{name}.yaml": repository(name), f"m-{name}.yaml": written})
    world.sync()
    for name, apply_action in actions.items():
        apply_action(world, name)
    world.sync()
    world.now += HOUR

    pass_result = world.sync()

    assert (list_approved(pass_result), pass_result.report.due_at) == (("leave/metrics",), None)
    published_names = [name for name in actions if world.paths(world.fleet, f"clusters/{name}", "metrics")]
    assert published_names == ["leave"]


def test_rejection_applies_only_to_the_rejected_version(world: World) -> None:
    request_package(world, "metrics", policy="always", delay="1h")
    world.sync()
    reject_draft(world)
    request_package(world, "metrics", "v2", policy="always", delay="1h")
    world.sync()
    world.now += HOUR

    world.sync_until_unchanged()

    assert read_published_image(world) == "2.0"


def test_dropped_draft_is_not_published(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync()
    world.run_review_action("drop", "berlin")

    world.sync()

    assert world.sync().is_unchanged
    assert read_published_image(world) == ""


def test_draft_with_a_failed_function_waits(world: World) -> None:
    files = package("metrics")
    files["Kptfile"] += "pipeline:\n  mutators:\n    - image: unknown/function:v1\n"
    world.release("metrics", "v3", files)
    request_package(world, "metrics", "v3", policy="always")
    world.sync()

    assert world.sync().is_unchanged
    assert read_published_image(world) == ""


@pytest.mark.emits("approval_skipped")
def test_draft_with_conflicts_waits(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "metrics:1.0", "metrics:1.0-ours")
    request_package(world, "metrics", "v2", policy="always")
    world.sync()
    assert world.package_status("drafts/berlin", "metrics")["conflicts"]

    held = world.sync()
    assert held.is_unchanged
    assert read_published_image(world) == "1.0-ours"
    (finding,) = [finding for finding in held.findings if finding.code == "ApprovalHeld"]
    assert (finding.severity, finding.location.object) == ("warning", "PackageVariant/default/metrics")
    assert "reconciler approve berlin/metrics --propose --accept-conflicts" in finding.message


# The tests of this section have several writers.


def test_two_daemons_create_one_commit(world: World) -> None:
    other = World(world.folder, approvals={"by_annotation": True}, cache=str(world.folder / "replica"))
    request_package(world, "metrics", policy="always")
    world.sync()
    other.sync()
    once = world.head("clusters/berlin")

    world.sync()
    other.sync()

    assert world.head("clusters/berlin") == once
    assert len([subject for subject in read_log(world) if subject.startswith("publish")]) == 1
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_push_of_a_person_wins_and_the_next_pass_publishes(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync()

    late = world.sync_while(lambda: world.commit("clusters/berlin", {"README.md": "ours\n"}), before="approve")

    assert (list_approved(late), late.report.approvals.has_changed_refs, read_published_image(world)) == ((), True, "")
    assert list_approved(world.sync()) == ("berlin/metrics",)
    assert world.text("clusters/berlin", "README.md") == "ours\n"


def test_edit_of_a_person_during_the_pass_keeps_the_draft(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync()

    world.sync_while(lambda: edit_draft(world), before="approve")

    assert read_published_image(world) == ""
    assert list_approved(world.sync()) == ()
    assert "replicas: 5" in world.text("drafts/berlin", "metrics/deployment.yaml")


@pytest.mark.slow
def test_refused_push_to_the_target_branch_is_reported_and_not_repeated(world: World) -> None:
    request_package(world, "metrics", policy="always")
    world.sync()
    path = world.folder / "asked"
    refuse = f'case "$1" in refs/heads/clusters/berlin) echo x >> {path}; echo guarded >&2; exit 1;; esac'
    write_hook(world.fleet, "update", refuse)
    passes = world.service()

    passes.run()

    (finding,) = [finding for finding in passes.summary.findings if finding.code == "ApprovalRefused"]
    assert "guarded" in finding.message
    assert (read_published_image(world), passes.summary.is_clean, path.read_text()) == ("", True, "x\n")
    assert run_pass(passes) == "skipped"
    world.release("gateway", "v3", package("gateway", image="3.0"))
    assert run_pass(passes) == "looked"
    assert ("ApprovalRefused" in {finding.code for finding in passes.summary.findings}, path.read_text()) == (
        True,
        "x\n",
    )
    (world.fleet / "hooks" / "update").unlink()
    world.commit("clusters/berlin", {"README.md": "ours\n"})
    passes.run()
    assert read_published_image(world) == "1.0"
