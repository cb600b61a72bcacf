"""Approvals by annotation: what they publish, when, and what they leave to people; the clock is moved by hand."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.reconcile.pass_runner import PassRunner
from tests.support.git_repositories import assert_sound, git, read_refs, write_hook
from tests.support.world import PassResult, World, catalog, package, repository, variant

HOUR = 3_600
BERLIN = repository("berlin")


def annotated(policy: str, delay: str = "") -> str:
    """Return the line of a variant's spec that asks for approvals."""
    more = f", approval.nephio.org/delay: {delay}" if delay else ""
    return f"annotations: {{approval.nephio.org/policy: {policy}{more}}}"


def wants(world: World, name: str, version: str = "v1", policy: str = "", delay: str = "", more: str = "") -> None:
    """Have Berlin want a package with these annotations."""
    extra = "\n".join(filter(None, [annotated(policy, delay) if policy else "", more]))
    world.write({f"{name}.yaml": variant(name, "berlin", name, version, extra=extra)})


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Berlin has nothing yet, and approvals by annotation are switched on."""
    world = World.create(tmp_path, approvals={"by_annotation": True})
    for name in ("metrics", "gateway"):
        world.release(name, "v1", package(name))
        world.release(name, "v2", package(name, image="2.0"))
    world.write({"catalog.yaml": catalog(), "berlin.yaml": BERLIN})
    return world


def published(world: World, name: str = "metrics") -> str:
    """Return the image of a package on the cluster branch; "" when it is not there."""
    if f"{name}/deployment.yaml" not in world.paths(world.fleet, "clusters/berlin"):
        return ""
    return world.text("clusters/berlin", f"{name}/deployment.yaml").rstrip().rpartition(":")[2]


def approved(pass_result: PassResult) -> tuple[str, ...]:
    return pass_result.report.approvals.packages


def ran(passes: PassRunner) -> str:
    """Run a pass; return whether it looked at anything."""
    passes.run()
    return "skipped" if passes.summary.is_skipped else "looked"


def log(world: World, form: str = "%s") -> list[str]:
    return git(world.fleet, "log", "--first-parent", f"--format={form}", "clusters/berlin").splitlines()


# which drafts


def test_initial_publishes_the_first_draft_in_the_next_pass_and_leaves_updates_to_people(world: World) -> None:
    wants(world, "metrics", policy="initial")
    first = world.sync()
    assert (approved(first), published(world), first.report.due_at) == ((), "", world.now)

    second = world.sync()

    assert (approved(second), published(world)) == (("berlin/metrics",), "1.0")
    assert world.head("drafts/berlin") == ""
    assert world.sync().outcomes["berlin/metrics"] == "published"
    assert world.sync().is_unchanged
    assert world.record("berlin", "metrics")["revision"] == 1
    wants(world, "metrics", "v2", policy="initial")
    assert world.sync().codes == set()
    assert world.sync().is_unchanged
    assert (published(world), world.head("drafts/berlin") != "") == ("1.0", True)
    assert_sound(world.fleet)


def test_always_publishes_updates_too(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync_until_unchanged()
    wants(world, "metrics", "v2", policy="always")

    world.sync_until_unchanged()

    assert (published(world), world.record("berlin", "metrics")["revision"]) == ("2.0", 2)


def test_what_was_published_and_removed_is_not_new(world: World) -> None:
    wants(world, "gateway")
    wants(world, "metrics", policy="initial")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})
    world.sync_until_unchanged()
    world.run_review_action("approve", "berlin/metrics", should_approve_unproposed=True)
    assert published(world) == ""
    world.sync_until_unchanged()
    wants(world, "metrics", policy="initial")

    world.sync()

    assert world.sync().is_unchanged
    assert published(world) == ""


def test_a_removal_always_waits_for_people(world: World) -> None:
    wants(world, "gateway")
    wants(world, "metrics", policy="always")
    world.sync_until_unchanged()
    world.write({"metrics.yaml": None})

    world.sync_until_unchanged()

    assert (published(world), world.head("removals/berlin") != "") == ("1.0", True)


def test_an_adopted_package_is_published_already(world: World) -> None:
    world.commit("clusters/berlin", {"metrics/Kptfile": package("metrics")["Kptfile"]})
    wants(world, "metrics", policy="initial", more="adoptionPolicy: adoptExisting")

    world.sync()

    assert world.sync_until_unchanged().report.approvals.packages == ()
    assert (published(world), world.head("drafts/berlin") != "") == ("", True)


def test_the_switch_is_off_unless_somebody_turns_it_on(world: World) -> None:
    world = World(world.folder)
    wants(world, "metrics", policy="initial")

    assert world.sync().codes == set()
    assert world.sync().is_unchanged
    assert (published(world), world.head("drafts/berlin") != "") == ("", True)


def test_a_plan_says_what_would_be_published_and_publishes_nothing(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.sync()
    before = read_refs(world.fleet)
    world.now += HOUR

    planned = world.plan()

    (finding,) = planned.findings
    assert (finding.code, finding.location.file) == ("ApprovalAhead", "metrics.yaml")
    assert finding.message == (
        "the draft of berlin/metrics is approved automatically when nothing blocks it"
        " (approval.nephio.org/policy: always, approval.nephio.org/delay: 1h)"
    )
    assert read_refs(world.fleet) == before


def test_a_new_draft_has_the_annotations_of_its_variant_and_an_open_one_those_it_was_made_with(world: World) -> None:
    wants(world, "metrics")
    world.sync()
    wants(world, "metrics", policy="always")
    world.sync_until_unchanged()
    assert published(world) == ""
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    wants(world, "metrics", "v2", policy="always")

    world.sync_until_unchanged()

    assert published(world) == "2.0"


def test_an_annotation_that_means_nothing_is_told_and_publishes_nothing(world: World) -> None:
    wants(world, "metrics", policy="sometimes")
    wants(world, "gateway", policy="always", delay="soon")
    planned = world.plan()
    world.sync()

    pass_result = world.sync()

    assert planned.findings == pass_result.findings
    assert {(finding.code, finding.severity, finding.location.file) for finding in pass_result.findings} == {
        ("ApprovalPolicyInvalid", "warning", f"{name}.yaml") for name in ("metrics", "gateway")
    }
    delay, policy = (finding.message for finding in pass_result.findings)
    assert delay.endswith(
        'such as "10m" or "1h30m", not "soon"; the draft of berlin/gateway waits for an approval by a person'
    )
    assert policy.endswith(
        '"initial" or "always", not "sometimes"; the draft of berlin/metrics waits for an approval by a person'
    )
    assert (published(world), published(world, "gateway")) == ("", "")


# when


def test_a_delay_counts_from_when_the_draft_was_first_seen(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    assert world.sync().report.due_at == world.now + HOUR
    world.now += HOUR - 1
    early = world.sync()
    assert (early.is_unchanged, early.report.due_at) == (True, world.now + 1)

    world.now += 1

    assert approved(world.sync()) == ("berlin/metrics",)
    assert (world.sync().report.due_at, published(world)) == (None, "1.0")


def test_a_delay_begins_anew_with_what_is_new_on_the_draft(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR - 1
    wants(world, "metrics", "v2", policy="always", delay="1h")

    assert world.sync().report.due_at == world.now + HOUR


def test_a_delay_does_not_begin_anew_because_another_package_joined_the_draft(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR
    wants(world, "gateway")
    joined = world.sync()
    assert (approved(joined), joined.report.due_at) == ((), world.now)

    assert approved(world.sync()) == ("berlin/metrics",)


def test_a_commit_from_the_future_is_waited_for(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.release("metrics", "v3", package("metrics", image="3.0"), seconds=world.now + 500)
    wants(world, "metrics", "v3", policy="always", delay="1h")

    due_at = world.sync().report.due_at
    drafted = int(git(world.fleet, "log", "-1", "--format=%ct", "drafts/berlin"))

    assert due_at == max(drafted, world.now) + HOUR


def test_a_restart_goes_on_counting_and_a_lost_cache_begins_anew(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.sync()
    world.now += HOUR - 10
    assert world.sync().report.due_at == world.now + 10

    moved_house = World(world.folder, approvals={"by_annotation": True}, cache=str(world.folder / "other"))
    moved_house.now = world.now

    assert moved_house.sync().report.due_at == world.now + HOUR
    world.now += 10
    assert approved(world.sync()) == ("berlin/metrics",)


def test_a_service_wakes_when_a_draft_is_due_and_looks_again_after_it_was_published(world: World) -> None:
    wants(world, "metrics", policy="initial", delay="10m")
    passes = world.service()
    passes.run()
    assert passes.seconds_until_due == 600
    assert ran(passes) == "skipped"

    world.now += 600

    assert ran(passes) == "looked"
    assert (published(world), passes.summary.counts["approved"]) == ("1.0", 1)
    assert ran(passes) == "looked"
    assert world.record("berlin", "metrics")["revision"] == 1
    assert ran(passes) == "skipped"


def test_a_restart_between_the_draft_and_its_approval_changes_nothing(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync()
    unbroken = World(world.folder)
    git(world.folder, "clone", "--quiet", "--mirror", str(world.fleet), "copy.git")
    world.sync()
    once = world.head("clusters/berlin")

    # killed before the push: the refs are as they were, the mirrors know the commit
    git(world.fleet, "fetch", "--quiet", "--prune", "--force", str(world.folder / "copy.git"), "refs/*:refs/*")
    assert published(unbroken) == ""
    world.sync()

    assert world.head("clusters/berlin") == once
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"
    assert_sound(world.fleet)


# how


def test_one_package_is_one_commit_and_the_others_of_the_draft_stay(world: World) -> None:
    wants(world, "metrics", policy="always")
    wants(world, "gateway")
    world.sync()
    head = world.head("drafts/berlin")

    world.sync()

    assert (published(world), published(world, "gateway")) == ("1.0", "")
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


def test_all_that_is_due_goes_in_one_push_and_ends_the_draft(world: World) -> None:
    wants(world, "metrics", policy="always")
    wants(world, "gateway", policy="initial")
    root = len(log(world)) if world.head("clusters/berlin") else 0
    world.sync()
    head = world.head("drafts/berlin")

    pass_result = world.sync()

    assert approved(pass_result) == ("berlin/gateway", "berlin/metrics")
    assert log(world)[:2] == ["publish metrics: install v1", "publish gateway: install v1"]
    assert len(log(world)) == root + 3
    assert git(world.fleet, "log", "-1", "--format=%P", "clusters/berlin").endswith(head)
    assert (published(world), published(world, "gateway"), world.head("drafts/berlin")) == ("1.0", "1.0", "")
    assert set(world.sync().outcomes.values()) == {"published"}
    assert world.sync().is_unchanged
    assert_sound(world.fleet)


def test_drafts_of_their_own_go_together_too(world: World) -> None:
    world = World(world.folder, approvals={"by_annotation": True}, drafts={"branch": "drafts/{repository}/{package}"})
    wants(world, "metrics", policy="always")
    wants(world, "gateway", policy="always")
    world.sync()

    assert approved(world.sync()) == ("berlin/gateway", "berlin/metrics")
    assert [name for name in read_refs(world.fleet) if "drafts/" in name] == []
    assert set(world.sync_until_unchanged().outcomes.values()) == {"published"}


def test_clusters_that_share_a_branch_go_one_after_the_other(world: World) -> None:
    shared = {cluster: repository(cluster, branch="all", directory=cluster) for cluster in ("berlin", "lisbon")}
    world.write({f"{entry}.yaml": text for entry, text in shared.items()})
    for item in shared:
        world.write({f"m-{item}.yaml": variant(f"m-{item}", item, "metrics", extra=annotated("always"))})
    world.sync()

    assert approved(world.sync()) == ("berlin/metrics",)
    assert approved(world.sync()) == ("lisbon/metrics",)
    assert set(world.sync_until_unchanged().outcomes.values()) == {"published"}


# what leaves a draft to people


def gated(status: str) -> dict[str, str]:
    files = package("metrics", image="3.0")
    files["Kptfile"] += (
        "info:\n  readinessGates:\n    - conditionType: acme.example/tested\n"
        f'status:\n  conditions:\n    - type: acme.example/tested\n      status: "{status}"\n'
    )
    return files


@pytest.mark.parametrize("deployment", ["true", "false"])
def test_an_unmet_gate_is_waited_for_wherever_it_is(world: World, deployment: str) -> None:
    text = repository("berlin", branch="clusters/berlin").replace("deployment: true", f"deployment: {deployment}")
    world.write({"berlin.yaml": text})
    world.release("metrics", "v3", gated("False"))
    wants(world, "metrics", "v3", policy="always")
    world.sync()
    assert world.sync().is_unchanged
    assert published(world) == ""
    world.release("metrics", "v4", gated("True"))
    wants(world, "metrics", "v4", policy="always")

    world.sync_until_unchanged()

    assert published(world) == "3.0"


def edit(world: World, cluster: str = "berlin") -> None:
    world.edit(f"drafts/{cluster}", "metrics/deployment.yaml", "replicas: 2", "replicas: 5")


def note(world: World, cluster: str = "berlin") -> None:
    world.commit(f"drafts/{cluster}", {"README.md": "look at this\n"})


def propose(world: World, cluster: str = "berlin") -> None:
    world.run_review_action("propose", cluster)


def stale(world: World, cluster: str = "berlin") -> None:
    propose(world, cluster)
    note(world, cluster)


def reject(world: World, cluster: str = "berlin") -> None:
    propose(world, cluster)
    world.run_review_action("reject", cluster, message="not before Monday")


def block(world: World, cluster: str = "berlin") -> None:
    world.write({f"m-{cluster}.yaml": variant(f"m-{cluster}", cluster, "metrics", "v7", extra=annotated("always"))})


def leave(world: World, cluster: str = "berlin") -> None:
    """Nobody touches it."""


def test_what_people_have_touched_is_theirs(world: World) -> None:
    touches = {item.__name__: item for item in (edit, note, propose, stale, reject, block, leave)}
    for name in touches:
        written = variant(f"m-{name}", name, "metrics", extra=annotated("always", "1h"))
        world.write({f"{name}.yaml": repository(name), f"m-{name}.yaml": written})
    world.sync()
    for name, touch in touches.items():
        touch(world, name)
    world.sync()
    world.now += HOUR

    pass_result = world.sync()

    assert (approved(pass_result), pass_result.report.due_at) == (("leave/metrics",), None)
    stands = [name for name in touches if world.paths(world.fleet, f"clusters/{name}", "metrics")]
    assert stands == ["leave"]


def test_a_rejection_is_about_the_draft_as_it_stood(world: World) -> None:
    wants(world, "metrics", policy="always", delay="1h")
    world.sync()
    reject(world)
    wants(world, "metrics", "v2", policy="always", delay="1h")
    world.sync()
    world.now += HOUR

    world.sync_until_unchanged()

    assert published(world) == "2.0"


def test_a_dropped_draft_is_not_published(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync()
    world.run_review_action("drop", "berlin")

    world.sync()

    assert world.sync().is_unchanged
    assert published(world) == ""


def test_a_draft_whose_function_failed_waits(world: World) -> None:
    files = package("metrics")
    files["Kptfile"] += "pipeline:\n  mutators:\n    - image: nobody/knows:v1\n"
    world.release("metrics", "v3", files)
    wants(world, "metrics", "v3", policy="always")
    world.sync()

    assert world.sync().is_unchanged
    assert published(world) == ""


def test_a_draft_with_conflicts_waits(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync_until_unchanged()
    world.edit("clusters/berlin", "metrics/deployment.yaml", "metrics:1.0", "metrics:1.0-ours")
    wants(world, "metrics", "v2", policy="always")
    world.sync()
    assert world.package_status("drafts/berlin", "metrics")["conflicts"]

    held = world.sync()
    assert held.is_unchanged
    assert published(world) == "1.0-ours"
    (finding,) = [finding for finding in held.findings if finding.code == "ApprovalHeld"]
    assert (finding.severity, finding.location.object) == ("warning", "PackageVariant/default/metrics")
    assert "reconciler approve berlin/metrics --propose --accept-conflicts" in finding.message


# other writers


def test_two_daemons_come_to_one_commit(world: World) -> None:
    other = World(world.folder, approvals={"by_annotation": True}, cache=str(world.folder / "replica"))
    wants(world, "metrics", policy="always")
    world.sync()
    other.sync()
    once = world.head("clusters/berlin")

    world.sync()
    other.sync()

    assert world.head("clusters/berlin") == once
    assert len([subject for subject in log(world) if subject.startswith("publish")]) == 1
    assert world.sync_until_unchanged().outcomes["berlin/metrics"] == "published"


def test_a_person_who_pushes_first_wins_and_the_next_pass_follows(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync()

    late = world.sync_while(lambda: world.commit("clusters/berlin", {"README.md": "ours\n"}), before="approve")

    assert (approved(late), late.report.approvals.has_changed_refs, published(world)) == ((), True, "")
    assert approved(world.sync()) == ("berlin/metrics",)
    assert world.text("clusters/berlin", "README.md") == "ours\n"


def test_a_person_who_edits_the_draft_first_keeps_it(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync()

    world.sync_while(lambda: edit(world), before="approve")

    assert published(world) == ""
    assert approved(world.sync()) == ()
    assert "replicas: 5" in world.text("drafts/berlin", "metrics/deployment.yaml")


def test_a_host_that_guards_the_cluster_branch_is_told_of_and_not_asked_again(world: World) -> None:
    wants(world, "metrics", policy="always")
    world.sync()
    path = world.folder / "asked"
    refuse = f'case "$1" in refs/heads/clusters/berlin) echo x >> {path}; echo guarded >&2; exit 1;; esac'
    write_hook(world.fleet, "update", refuse)
    passes = world.service()

    passes.run()

    (finding,) = [finding for finding in passes.summary.findings if finding.code == "ApprovalRefused"]
    assert "guarded" in finding.message
    assert (published(world), passes.summary.is_clean, path.read_text()) == ("", True, "x\n")
    assert ran(passes) == "skipped"
    world.release("gateway", "v3", package("gateway", image="3.0"))
    assert ran(passes) == "looked"
    assert ("ApprovalRefused" in {finding.code for finding in passes.summary.findings}, path.read_text()) == (
        True,
        "x\n",
    )
    (world.fleet / "hooks" / "update").unlink()
    world.commit("clusters/berlin", {"README.md": "ours\n"})
    passes.run()
    assert published(world) == "1.0"
