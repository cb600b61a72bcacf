"""Tests of rules that are rolled out in waves, through whole passes, with real dates in Git and a fake clock."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch as patched

import pytest

from tests.support.git_environment import HERMETIC
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import (
    HOUR,
    RINGS,
    labelled_package,
    patch,
    policy,
    publish,
    resource,
    ring_of,
    rollout_rule,
    rollout_world,
)
from tests.support.prepared_worlds import begin
from tests.support.world import World, package, variant

SITE = "policies/site.yaml"
FILE = "web/deployment.yaml"
LIMITS = "resources/shop/configmap-limits.yaml"


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Amsterdam, Berlin and Lisbon, in the canary, early and late ring, have web published with two replicas."""
    return begin(tmp_path, rollout_world)


@pytest.fixture
def rolled_out(tmp_path: Path) -> World:
    """The clusters of `world`, after a rule with five replicas is published on all of them."""
    return begin(tmp_path, build_rolled_out_world)


def build_rolled_out_world(folder: Path) -> World:
    world = rollout_world(folder)
    write_rule(world, 5)
    world.sync()
    roll_out(world, "amsterdam", "berlin", "lisbon")
    return world


def write_rule(world: World, count: int, soak: str = "1h") -> None:
    world.write({SITE: policy("site", [rollout_rule(count, soak)])})


def merge_draft(world: World, cluster: str) -> None:
    """Merge the draft of a cluster with the current time of the world."""
    with patched.dict(HERMETIC, {"GIT_COMMITTER_DATE": f"@{world.now} +0000"}):
        world.merge(cluster, "squash")


def read_replicas(world: World, branch: str) -> int:
    return int(world.text(branch, FILE).partition("replicas: ")[2].split()[0])


def list_published_replicas(world: World) -> list[int]:
    """Return the published replicas of each cluster, in the order of the waves."""
    return [read_replicas(world, f"clusters/{ring}") for ring in RINGS]


def list_drafted_replicas(world: World) -> dict[str, int]:
    """Return the replicas of each open draft."""
    return {ring: read_replicas(world, f"drafts/{ring}") for ring in RINGS if world.head(f"drafts/{ring}")}


def roll_out(world: World, *clusters: str) -> None:
    """Merge the draft of each cluster after the soak time of the cluster before it."""
    for cluster in clusters:
        assert world.head(f"drafts/{cluster}"), cluster
        merge_draft(world, cluster)
        world.sync_until_unchanged()
        world.now += HOUR
        world.sync_until_unchanged()


# Waves


def test_a_wave_is_drafted_after_the_merge_and_soak_time_of_the_wave_before(world: World) -> None:
    write_rule(world, 5)

    first = world.sync()

    assert (first.changed_branches, list_drafted_replicas(world)) == ({"drafts/amsterdam"}, {"amsterdam": 5})
    # The rendered rule may already be published, which only the next pass detects.
    assert first.report.due_at == world.now
    pass_result = world.sync()
    assert (pass_result.is_unchanged, pass_result.report.due_at) == (True, None)
    merge_draft(world, "amsterdam")
    merged, until = world.sync(), world.now + HOUR
    assert (merged.report.due_at, list_drafted_replicas(world)) == (until, {})
    world.now = until - 1
    early = world.sync()
    assert (early.is_unchanged, early.report.due_at) == (True, until)
    world.now = until
    second = world.sync()
    assert (second.changed_branches, list_drafted_replicas(world)) == ({"drafts/berlin"}, {"berlin": 5})
    assert world.sync().is_unchanged
    roll_out(world, "berlin", "lisbon")
    assert list_published_replicas(world) == [5, 5, 5]
    last = world.sync()
    assert (last.is_unchanged, last.report.due_at) == (True, None)
    assert_sound(world.fleet)


def test_without_a_soak_time_the_pass_after_the_merge_opens_the_next_wave(world: World) -> None:
    write_rule(world, 5, soak="")
    world.sync()
    merge_draft(world, "amsterdam")

    after = world.sync()

    assert list_drafted_replicas(world) == {"berlin": 5}
    assert after.outcomes["amsterdam/web"] == "published"
    assert world.sync().is_unchanged


def test_no_daemon_needs_to_run_during_the_soak_time(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.now += HOUR

    after = world.sync()

    assert list_drafted_replicas(world) == {"berlin": 5}
    assert after.outcomes["amsterdam/web"] == "published"
    assert world.sync().is_unchanged


@pytest.mark.slow
def test_a_service_wakes_exactly_when_the_next_wave_opens(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    passes = world.service()
    passes.run()
    passes.run()
    world.now += HOUR - 1
    passes.run()
    was_skipped, wait = passes.summary.is_skipped, passes.seconds_until_due
    world.now += 1

    passes.run()

    assert (was_skipped, wait) == (True, 1)
    assert list_drafted_replicas(world) == {"berlin": 5}


def test_a_declined_draft_of_the_first_wave_holds_the_rollout(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.delete("drafts/amsterdam")

    after = world.sync()
    world.now += 100 * HOUR

    assert after.outcomes["amsterdam/web"] == "declined"
    assert (world.sync().is_unchanged, list_drafted_replicas(world)) == (True, {})


def test_an_edit_after_the_merge_does_not_hold_the_rollout(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.sync_until_unchanged()
    world.edit("clusters/amsterdam", FILE, "web:1.0", "web:1.0-ours")
    world.now += HOUR

    world.sync_until_unchanged()

    assert list_drafted_replicas(world) == {"berlin": 5}


# A changed rule during a rollout


@pytest.mark.slow
def test_a_changed_rule_starts_at_the_first_wave_and_later_waves_keep_the_old_rule(rolled_out: World) -> None:
    write_rule(rolled_out, 6)

    after = rolled_out.sync()

    assert (after.changed_branches, list_drafted_replicas(rolled_out)) == ({"drafts/amsterdam"}, {"amsterdam": 6})
    assert rolled_out.sync().is_unchanged
    roll_out(rolled_out, "amsterdam", "berlin")
    assert list_published_replicas(rolled_out) == [6, 6, 5]
    assert list_drafted_replicas(rolled_out) == {"lisbon": 6}


@pytest.mark.slow
def test_a_rule_reverted_before_its_publication_is_not_drafted_on_later_waves(rolled_out: World) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync()
    roll_out(rolled_out, "amsterdam")
    before = list_drafted_replicas(rolled_out)
    write_rule(rolled_out, 5)

    rolled_out.sync_until_unchanged()

    assert before == {"berlin": 6}
    assert list_drafted_replicas(rolled_out) == {"amsterdam": 5}
    roll_out(rolled_out, "amsterdam")
    assert (list_published_replicas(rolled_out), list_drafted_replicas(rolled_out)) == ([5, 5, 5], {})
    assert rolled_out.sync().is_unchanged


@pytest.mark.slow
def test_a_revert_on_the_first_wave_withdraws_the_drafts_of_the_next_wave(rolled_out: World) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync()
    roll_out(rolled_out, "amsterdam")
    before = list_drafted_replicas(rolled_out)
    rolled_out.revert("amsterdam")

    after = rolled_out.sync()

    assert before == {"berlin": 6}
    assert (after.outcomes["amsterdam/web"], list_drafted_replicas(rolled_out)) == ("declined", {})
    assert rolled_out.sync().is_unchanged


def test_an_upstream_update_on_a_closed_wave_is_drafted_with_the_old_rule(rolled_out: World) -> None:
    write_rule(rolled_out, 6)
    rolled_out.release("web", "v2", labelled_package("web", "site", image="2.0"))
    rolled_out.write({f"web/{ring}.yaml": variant(f"web-{ring}", ring, "web", "v2") for ring in RINGS})

    rolled_out.sync()

    assert list_drafted_replicas(rolled_out) == {"amsterdam": 6, "berlin": 5, "lisbon": 5}
    assert ["web:2.0" in rolled_out.text(f"drafts/{ring}", FILE) for ring in RINGS] == [True, True, True]
    assert rolled_out.sync().is_unchanged
    publish(rolled_out, "berlin", "lisbon")
    assert (list_published_replicas(rolled_out), list_drafted_replicas(rolled_out)) == ([5, 5, 5], {"amsterdam": 6})
    merge_draft(rolled_out, "amsterdam")
    rolled_out.sync_until_unchanged()
    rolled_out.now += HOUR
    rolled_out.sync_until_unchanged()
    assert list_drafted_replicas(rolled_out) == {"berlin": 6}


def test_a_rule_without_its_rollout_is_drafted_on_all_clusters(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.write({SITE: policy("site", [{name: value for name, value in rollout_rule(5).items() if name != "rollout"}])})

    world.sync()

    assert list_drafted_replicas(world) == {"amsterdam": 5, "berlin": 5, "lisbon": 5}
    assert world.sync().is_unchanged


def test_adding_a_rollout_to_a_published_rule_changes_nothing(world: World) -> None:
    plain = {name: value for name, value in rollout_rule(5).items() if name != "rollout"}
    world.write({SITE: policy("site", [plain])})
    world.sync()
    publish(world, *RINGS)
    write_rule(world, 5)

    after = world.sync()

    assert (after.changed_branches, list_published_replicas(world)) == (set(), [5, 5, 5])
    assert world.sync_until_unchanged().is_unchanged


def test_a_deleted_rule_is_removed_from_all_clusters_at_once(rolled_out: World) -> None:
    rolled_out.write({SITE: policy("site", [])})

    rolled_out.sync()

    assert list_drafted_replicas(rolled_out) == {"amsterdam": 2, "berlin": 2, "lisbon": 2}
    assert rolled_out.sync().is_unchanged


# New clusters and packages


def add_paris(world: World, ring: str) -> None:
    world.write({"clusters/paris.yaml": ring_of("paris", ring)})
    world.write({"web/paris.yaml": variant("web-paris", "paris", "web")})


def test_a_new_cluster_of_a_closed_wave_does_not_get_the_rule(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.write(
        {"clusters/paris.yaml": ring_of("paris", "late"), "web/paris.yaml": variant("web-paris", "paris", "web")}
    )

    world.sync()

    assert read_replicas(world, "drafts/paris") == 2
    assert world.sync().is_unchanged


def test_a_new_cluster_of_the_first_wave_delays_the_next_wave(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.write(
        {"clusters/paris.yaml": ring_of("paris", "canary"), "web/paris.yaml": variant("web-paris", "paris", "web")}
    )
    world.sync_until_unchanged()
    world.now += HOUR
    held = (
        world.sync_until_unchanged().is_unchanged,
        read_replicas(world, "drafts/paris"),
        list_drafted_replicas(world),
    )
    merge_draft(world, "paris")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert held == (True, 5, {})
    assert list_drafted_replicas(world) == {"berlin": 5}


def test_a_second_package_with_the_policy_delays_the_next_wave(world: World) -> None:
    world.release("metrics", "v1", labelled_package("metrics", "site"))
    world.write({"metrics.yaml": variant("metrics-amsterdam", "amsterdam", "metrics")})
    write_rule(world, 5)
    world.sync()
    world.pick("amsterdam", "web")
    world.sync_until_unchanged()
    world.now += HOUR
    waiting = (world.sync_until_unchanged().is_unchanged, list_drafted_replicas(world))
    merge_draft(world, "amsterdam")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert waiting == (True, {"amsterdam": 5})
    assert list_drafted_replicas(world) == {"berlin": 5}


def test_placed_resources_are_rolled_out_in_waves_too(world: World) -> None:
    waves = [{"clusterSelector": {"ring": "canary"}}]
    rule = patch("/data/cpu", "four", rollout={"waves": waves, "soak": "1h"})
    selectors = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "limits"}]
    world.write({"placed.yaml": resource("ConfigMap", "limits", on="*", cpu="two")})
    world.write({"policies/cpu.yaml": policy("cpu", [rule], resourceSelectors=selectors)})
    world.sync()
    first = list_drafted_cpu(world)
    for cluster in ("berlin", "lisbon"):
        merge_draft(world, cluster)
    world.sync_until_unchanged()
    merge_draft(world, "amsterdam")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert first == {"amsterdam": "four", "berlin": "two", "lisbon": "two"}
    assert list_drafted_cpu(world) == {"berlin": "four", "lisbon": "four"}


def list_drafted_cpu(world: World) -> dict[str, str]:
    text = {ring: world.text(f"drafts/{ring}", LIMITS) for ring in RINGS if world.head(f"drafts/{ring}")}
    return {item: entry.partition("cpu: ")[2].split()[0] for item, entry in text.items()}


def test_packages_without_the_policy_do_not_delay_the_next_wave(world: World) -> None:
    world.release("metrics", "v1", package("metrics"))
    world.write({"metrics.yaml": variant("metrics-amsterdam", "amsterdam", "metrics")})
    write_rule(world, 5)
    world.sync()
    world.pick("amsterdam", "web")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert list_drafted_replicas(world)["berlin"] == 5


def test_an_unreachable_cluster_keeps_the_next_wave_closed(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.sync_until_unchanged()
    reached = ring_of("amsterdam", "canary")
    world.write({"clusters/amsterdam.yaml": reached.replace("./fleet.git", "./nowhere.git")})
    world.now += HOUR
    world.sync()
    unreached = list_drafted_replicas(world)
    world.write({"clusters/amsterdam.yaml": reached})

    world.sync_until_unchanged()

    assert unreached == {}
    assert list_drafted_replicas(world) == {"berlin": 5}


AMSTERDAM = variant("web-amsterdam", "amsterdam", "web")


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: [\n", id="unreadable"),
        pytest.param(AMSTERDAM.replace("spec:", "spec:\n  nonsense: 1"), id="invalid"),
        pytest.param(AMSTERDAM.replace("v1}", "v9}"), id="without-an-upstream"),
        pytest.param(f"{AMSTERDAM}---\n{AMSTERDAM}", id="defined-twice"),
        pytest.param(AMSTERDAM.replace("kind: PackageVariant", "kind: PackageVarient"), id="misspelled"),
    ],
)
def test_a_stalled_package_keeps_the_next_wave_closed(rolled_out: World, text: str) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync_until_unchanged()
    rolled_out.write({"web/amsterdam.yaml": text})
    rolled_out.now += HOUR

    after = rolled_out.sync()

    assert (after.changed_branches, list_drafted_replicas(rolled_out)) == (set(), {"amsterdam": 6})
    assert rolled_out.sync().is_unchanged
    rolled_out.write({"web/amsterdam.yaml": AMSTERDAM})
    roll_out(rolled_out, "amsterdam")
    assert list_drafted_replicas(rolled_out) == {"berlin": 6}


def test_a_deleted_package_does_not_delay_the_next_wave(rolled_out: World) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync_until_unchanged()
    rolled_out.write({"web/amsterdam.yaml": None})

    rolled_out.sync_until_unchanged()

    assert list_drafted_replicas(rolled_out) == {"berlin": 6}


# Lost state and other daemons


def test_with_lost_state_an_unfinished_rollout_continues(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.sync_until_unchanged()
    for ring in RINGS:
        git(world.fleet, "update-ref", "-d", f"refs/reconciler/state/{ring}")
    world.sync_until_unchanged()
    drafts_before = list_drafted_replicas(world)
    world.now += HOUR

    world.sync_until_unchanged()

    assert drafts_before == {}
    assert (list_published_replicas(world), list_drafted_replicas(world)) == ([5, 2, 2], {"berlin": 5})


@pytest.mark.parametrize("lost_clusters", [("amsterdam",), ("berlin", "lisbon"), tuple(RINGS)], ids=", ".join)
def test_with_lost_state_a_published_rule_stays(rolled_out: World, lost_clusters: tuple[str, ...]) -> None:
    for item in lost_clusters:
        git(rolled_out.fleet, "update-ref", "-d", f"refs/reconciler/state/{item}")

    rolled_out.sync()

    assert list_drafted_replicas(rolled_out) == {}
    rolled_out.sync_until_unchanged()
    assert (list_published_replicas(rolled_out), list_drafted_replicas(rolled_out)) == ([5, 5, 5], {})


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize("lost_clusters", [("amsterdam",), ("berlin",), tuple(RINGS)], ids=", ".join)
def test_with_lost_state_a_closed_wave_stays_unchanged(rolled_out: World, lost_clusters: tuple[str, ...]) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync_until_unchanged()
    for item in lost_clusters:
        git(rolled_out.fleet, "update-ref", "-d", f"refs/reconciler/state/{item}")

    after = rolled_out.sync()

    assert list_drafted_replicas(rolled_out) == {"amsterdam": 6}
    withheld = {target for target, outcome in after.outcomes.items() if outcome == "RuleTextUnknown"}
    assert withheld == {f"{entry}/web" for entry in lost_clusters if entry != "amsterdam"}
    rolled_out.sync_until_unchanged()
    assert list_drafted_replicas(rolled_out) == {"amsterdam": 6}
    roll_out(rolled_out, "amsterdam", "berlin")
    assert (list_published_replicas(rolled_out), list_drafted_replicas(rolled_out)) == ([6, 6, 5], {"lisbon": 6})


def test_a_second_daemon_produces_the_same_refs(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge_draft(world, "amsterdam")
    world.now += HOUR

    world.sync_while(world.sync)

    assert list_drafted_replicas(world) == {"berlin": 5}
    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged


# Publication without a date in Git


def test_the_soak_time_starts_when_a_pass_detects_the_approval_of_an_old_draft(world: World) -> None:
    write_rule(world, 5)
    world.sync_until_unchanged()
    world.now += 30 * HOUR
    world.run_review_action("approve", "amsterdam", should_approve_unproposed=True)

    pass_result = world.sync()

    assert (pass_result.report.due_at, list_drafted_replicas(world)) == (world.now + HOUR, {})
    world.now += HOUR
    assert world.sync().changed_branches == {"drafts/berlin"}


def test_without_its_cache_a_pass_uses_the_dates_of_git(world: World) -> None:
    write_rule(world, 5)
    world.sync_until_unchanged()
    world.run_review_action("approve", "amsterdam", should_approve_unproposed=True)
    world.now += 30 * HOUR
    (world.folder / "cache" / "published.json").unlink()

    assert world.sync().changed_branches == {"drafts/berlin"}


# Unrelated changes during an open wave


def release_new_version(world: World, cluster: str) -> None:
    world.release("web", "v2", labelled_package("web", "site", image="2.0"))
    world.write({f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2")})


def add_new_package(world: World, cluster: str) -> None:
    world.release("api", "v1", labelled_package("api", "site"))
    world.write({f"web/api-{cluster}.yaml": variant(f"api-{cluster}", cluster, "api", "v1")})


def add_local_change(world: World, cluster: str) -> None:
    world.edit(f"clusters/{cluster}", FILE, "web:1.0", "web:1.0-ours")


def add_new_cluster(world: World, cluster: str) -> None:
    add_paris(world, RINGS[cluster])


def add_conflicting_file(world: World, cluster: str) -> None:
    add_new_package(world, cluster)
    world.commit(f"clusters/{cluster}", {"api": "mine\n"})


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "change", [release_new_version, add_new_package, add_local_change, add_new_cluster, add_conflicting_file]
)
@pytest.mark.parametrize("cluster", ["amsterdam", "berlin"])
def test_an_unrelated_change_never_closes_an_open_wave(
    rolled_out: World, change: Callable[[World, str], None], cluster: str
) -> None:
    write_rule(rolled_out, 6)
    rolled_out.sync()
    roll_out(rolled_out, "amsterdam")
    before = list_drafted_replicas(rolled_out)
    change(rolled_out, cluster)

    rolled_out.sync()

    assert before == {"berlin": 6}
    assert list_drafted_replicas(rolled_out)["berlin"] == 6
    pass_result = rolled_out.sync()
    assert (pass_result.changed_branches, list_drafted_replicas(rolled_out)["berlin"]) == (set(), 6)
    assert rolled_out.sync().is_unchanged
    if cluster == "amsterdam" and rolled_out.head("drafts/amsterdam"):
        # The soak time starts again, but the open wave stays open.
        merge_draft(rolled_out, "amsterdam")
        rolled_out.sync_until_unchanged()
        assert list_drafted_replicas(rolled_out)["berlin"] == 6
