"""Rules that are rolled out in waves, through whole passes: real dates in Git, a clock that is moved by hand."""

from collections.abc import Callable
from pathlib import Path
from unittest.mock import patch as patched

import pytest

from tests.support.git_repositories import HERMETIC, assert_sound, git
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
    """Amsterdam, Berlin and Lisbon, in the canary, early and late ring, have web published, with two replicas."""
    return begin(tmp_path, rollout_world)


@pytest.fixture
def arrived(tmp_path: Path) -> World:
    """The same, and a rule that asks for five replicas has arrived everywhere."""
    return begin(tmp_path, rolled_out_world)


def rolled_out_world(folder: Path) -> World:
    world = rollout_world(folder)
    write_rule(world, 5)
    world.sync()
    roll_out(world, "amsterdam", "berlin", "lisbon")
    return world


def write_rule(world: World, count: int, soak: str = "1h") -> None:
    world.write({SITE: policy("site", [rollout_rule(count, soak)])})


def merge(world: World, cluster: str) -> None:
    """Merge the draft of a cluster now, by the clock of the world."""
    with patched.dict(HERMETIC, {"GIT_COMMITTER_DATE": f"@{world.now} +0000"}):
        world.merge(cluster, "squash")


def count(world: World, branch: str) -> int:
    return int(world.text(branch, FILE).partition("replicas: ")[2].split()[0])


def published(world: World) -> list[int]:
    """Return how many replicas each cluster has, in the order of the waves."""
    return [count(world, f"clusters/{ring}") for ring in RINGS]


def drafted(world: World) -> dict[str, int]:
    """Return how many replicas each open draft has."""
    return {ring: count(world, f"drafts/{ring}") for ring in RINGS if world.head(f"drafts/{ring}")}


def roll_out(world: World, *clusters: str) -> None:
    """Merge what is drafted on clusters, one after the other, each when it stands and has soaked."""
    for cluster in clusters:
        assert world.head(f"drafts/{cluster}"), cluster
        merge(world, cluster)
        world.sync_until_unchanged()
        world.now += HOUR
        world.sync_until_unchanged()


# wave by wave


def test_a_wave_is_drafted_when_the_one_before_is_merged_and_has_soaked(world: World) -> None:
    write_rule(world, 5)

    first = world.sync()

    assert (first.changed_branches, drafted(world)) == ({"drafts/amsterdam"}, {"amsterdam": 5})
    # what is rendered only now may have arrived already, which the next pass sees
    assert first.report.due_at == world.now
    pass_result = world.sync()
    assert (pass_result.is_unchanged, pass_result.report.due_at) == (True, None)
    merge(world, "amsterdam")
    merged, until = world.sync(), world.now + HOUR
    assert (merged.report.due_at, drafted(world)) == (until, {})
    world.now = until - 1
    early = world.sync()
    assert (early.is_unchanged, early.report.due_at) == (True, until)
    world.now = until
    second = world.sync()
    assert (second.changed_branches, drafted(world)) == ({"drafts/berlin"}, {"berlin": 5})
    assert world.sync().is_unchanged
    roll_out(world, "berlin", "lisbon")
    assert published(world) == [5, 5, 5]
    last = world.sync()
    assert (last.is_unchanged, last.report.due_at) == (True, None)
    assert_sound(world.fleet)


def test_without_a_soak_time_the_pass_that_sees_the_merge_opens_the_next_wave(world: World) -> None:
    write_rule(world, 5, soak="")
    world.sync()
    merge(world, "amsterdam")

    after = world.sync()

    assert drafted(world) == {"berlin": 5}
    assert after.outcomes["amsterdam/web"] == "published"
    assert world.sync().is_unchanged


def test_no_daemon_has_to_have_been_running_while_a_wave_soaks(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.now += HOUR

    after = world.sync()

    assert drafted(world) == {"berlin": 5}
    assert after.outcomes["amsterdam/web"] == "published"
    assert world.sync().is_unchanged


def test_a_service_wakes_exactly_when_the_next_wave_opens(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    passes = world.service()
    passes.run()
    passes.run()
    world.now += HOUR - 1
    passes.run()
    was_skipped, wait = passes.summary.is_skipped, passes.seconds_until_due
    world.now += 1

    passes.run()

    assert (was_skipped, wait) == (True, 1)
    assert drafted(world) == {"berlin": 5}


def test_a_declined_draft_of_the_first_wave_holds_the_rollout(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.delete("drafts/amsterdam")

    after = world.sync()
    world.now += 100 * HOUR

    assert after.outcomes["amsterdam/web"] == "declined"
    assert (world.sync().is_unchanged, drafted(world)) == (True, {})


def test_an_edit_after_the_merge_does_not_hold_the_rollout(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.sync_until_unchanged()
    world.edit("clusters/amsterdam", FILE, "web:1.0", "web:1.0-ours")
    world.now += HOUR

    world.sync_until_unchanged()

    assert drafted(world) == {"berlin": 5}


# another text in the middle


def test_a_new_text_begins_with_the_first_wave_and_the_others_keep_what_they_had(arrived: World) -> None:
    write_rule(arrived, 6)

    after = arrived.sync()

    assert (after.changed_branches, drafted(arrived)) == ({"drafts/amsterdam"}, {"amsterdam": 6})
    assert arrived.sync().is_unchanged
    roll_out(arrived, "amsterdam", "berlin")
    assert published(arrived) == [6, 6, 5]
    assert drafted(arrived) == {"lisbon": 6}


def test_what_was_taken_back_before_it_was_published_never_comes(arrived: World) -> None:
    write_rule(arrived, 6)
    arrived.sync()
    roll_out(arrived, "amsterdam")
    before = drafted(arrived)
    write_rule(arrived, 5)

    arrived.sync_until_unchanged()

    assert before == {"berlin": 6}
    assert drafted(arrived) == {"amsterdam": 5}
    roll_out(arrived, "amsterdam")
    assert (published(arrived), drafted(arrived)) == ([5, 5, 5], {})
    assert arrived.sync().is_unchanged


def test_a_revert_on_the_first_wave_takes_the_drafts_of_the_next_back(arrived: World) -> None:
    write_rule(arrived, 6)
    arrived.sync()
    roll_out(arrived, "amsterdam")
    before = drafted(arrived)
    arrived.revert("amsterdam")

    after = arrived.sync()

    assert before == {"berlin": 6}
    assert (after.outcomes["amsterdam/web"], drafted(arrived)) == ("declined", {})
    assert arrived.sync().is_unchanged


def test_upstream_goes_on_where_a_wave_is_closed_with_the_text_from_before(arrived: World) -> None:
    write_rule(arrived, 6)
    arrived.release("web", "v2", labelled_package("web", "site", image="2.0"))
    arrived.write({f"web/{ring}.yaml": variant(f"web-{ring}", ring, "web", "v2") for ring in RINGS})

    arrived.sync()

    assert drafted(arrived) == {"amsterdam": 6, "berlin": 5, "lisbon": 5}
    assert ["web:2.0" in arrived.text(f"drafts/{ring}", FILE) for ring in RINGS] == [True, True, True]
    assert arrived.sync().is_unchanged
    publish(arrived, "berlin", "lisbon")
    assert (published(arrived), drafted(arrived)) == ([5, 5, 5], {"amsterdam": 6})
    merge(arrived, "amsterdam")
    arrived.sync_until_unchanged()
    arrived.now += HOUR
    arrived.sync_until_unchanged()
    assert drafted(arrived) == {"berlin": 6}


def test_a_rule_that_loses_its_rollout_is_in_force_everywhere(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.write({SITE: policy("site", [{name: value for name, value in rollout_rule(5).items() if name != "rollout"}])})

    world.sync()

    assert drafted(world) == {"amsterdam": 5, "berlin": 5, "lisbon": 5}
    assert world.sync().is_unchanged


def test_a_rollout_that_a_rule_gets_changes_nothing(world: World) -> None:
    plain = {name: value for name, value in rollout_rule(5).items() if name != "rollout"}
    world.write({SITE: policy("site", [plain])})
    world.sync()
    publish(world, *RINGS)
    write_rule(world, 5)

    after = world.sync()

    assert (after.changed_branches, published(world)) == (set(), [5, 5, 5])
    assert world.sync_until_unchanged().is_unchanged


def test_a_rule_that_goes_is_gone_everywhere_at_once(arrived: World) -> None:
    arrived.write({SITE: policy("site", [])})

    arrived.sync()

    assert drafted(arrived) == {"amsterdam": 2, "berlin": 2, "lisbon": 2}
    assert arrived.sync().is_unchanged


# clusters and packages that come


def add_paris(world: World, ring: str) -> None:
    world.write({"clusters/paris.yaml": ring_of("paris", ring)})
    world.write({"web/paris.yaml": variant("web-paris", "paris", "web")})


def test_a_cluster_that_comes_in_a_closed_wave_does_without_the_rule(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    world.write(
        {"clusters/paris.yaml": ring_of("paris", "late"), "web/paris.yaml": variant("web-paris", "paris", "web")}
    )

    world.sync()

    assert count(world, "drafts/paris") == 2
    assert world.sync().is_unchanged


def test_a_cluster_that_comes_in_the_first_wave_has_to_be_done_before_the_next_opens(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.write(
        {"clusters/paris.yaml": ring_of("paris", "canary"), "web/paris.yaml": variant("web-paris", "paris", "web")}
    )
    world.sync_until_unchanged()
    world.now += HOUR
    held = (world.sync_until_unchanged().is_unchanged, count(world, "drafts/paris"), drafted(world))
    merge(world, "paris")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert held == (True, 5, {})
    assert drafted(world) == {"berlin": 5}


def test_a_second_package_that_names_the_policy_is_waited_for(world: World) -> None:
    world.release("metrics", "v1", labelled_package("metrics", "site"))
    world.write({"metrics.yaml": variant("metrics-amsterdam", "amsterdam", "metrics")})
    write_rule(world, 5)
    world.sync()
    world.pick("amsterdam", "web")
    world.sync_until_unchanged()
    world.now += HOUR
    waiting = (world.sync_until_unchanged().is_unchanged, drafted(world))
    merge(world, "amsterdam")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert waiting == (True, {"amsterdam": 5})
    assert drafted(world) == {"berlin": 5}


def test_placed_resources_are_waited_for_as_well(world: World) -> None:
    waves = [{"clusterSelector": {"ring": "canary"}}]
    rule = patch("/data/cpu", "four", rollout={"waves": waves, "soak": "1h"})
    selectors = [{"apiVersion": "v1", "kind": "ConfigMap", "name": "limits"}]
    world.write({"placed.yaml": resource("ConfigMap", "limits", on="*", cpu="two")})
    world.write({"policies/cpu.yaml": policy("cpu", [rule], resourceSelectors=selectors)})
    world.sync()
    first = cpu_drafted(world)
    for cluster in ("berlin", "lisbon"):
        merge(world, cluster)
    world.sync_until_unchanged()
    merge(world, "amsterdam")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert first == {"amsterdam": "four", "berlin": "two", "lisbon": "two"}
    assert cpu_drafted(world) == {"berlin": "four", "lisbon": "four"}


def cpu_drafted(world: World) -> dict[str, str]:
    text = {ring: world.text(f"drafts/{ring}", LIMITS) for ring in RINGS if world.head(f"drafts/{ring}")}
    return {item: entry.partition("cpu: ")[2].split()[0] for item, entry in text.items()}


def test_packages_that_do_not_name_the_policy_are_not_waited_for(world: World) -> None:
    world.release("metrics", "v1", package("metrics"))
    world.write({"metrics.yaml": variant("metrics-amsterdam", "amsterdam", "metrics")})
    write_rule(world, 5)
    world.sync()
    world.pick("amsterdam", "web")
    world.sync_until_unchanged()
    world.now += HOUR

    world.sync_until_unchanged()

    assert drafted(world)["berlin"] == 5


def test_a_cluster_that_cannot_be_reached_keeps_the_next_wave_closed(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.sync_until_unchanged()
    reached = ring_of("amsterdam", "canary")
    world.write({"clusters/amsterdam.yaml": reached.replace("./fleet.git", "./nowhere.git")})
    world.now += HOUR
    world.sync()
    unreached = drafted(world)
    world.write({"clusters/amsterdam.yaml": reached})

    world.sync_until_unchanged()

    assert unreached == {}
    assert drafted(world) == {"berlin": 5}


AMSTERDAM = variant("web-amsterdam", "amsterdam", "web")


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("kind: [\n", id="unreadable"),
        pytest.param(AMSTERDAM.replace("spec:", "spec:\n  nonsense: 1"), id="invalid"),
        pytest.param(AMSTERDAM.replace("v1}", "v9}"), id="without-an-upstream"),
        pytest.param(f"{AMSTERDAM}---\n{AMSTERDAM}", id="twice"),
        pytest.param(AMSTERDAM.replace("kind: PackageVariant", "kind: PackageVarient"), id="misspelt"),
    ],
)
def test_a_package_in_doubt_keeps_the_next_wave_closed(arrived: World, text: str) -> None:
    write_rule(arrived, 6)
    arrived.sync_until_unchanged()
    arrived.write({"web/amsterdam.yaml": text})
    arrived.now += HOUR

    after = arrived.sync()

    assert (after.changed_branches, drafted(arrived)) == (set(), {"amsterdam": 6})
    assert arrived.sync().is_unchanged
    arrived.write({"web/amsterdam.yaml": AMSTERDAM})
    roll_out(arrived, "amsterdam")
    assert drafted(arrived) == {"berlin": 6}


def test_a_package_that_goes_for_good_holds_nothing_up(arrived: World) -> None:
    write_rule(arrived, 6)
    arrived.sync_until_unchanged()
    arrived.write({"web/amsterdam.yaml": None})

    arrived.sync_until_unchanged()

    assert drafted(arrived) == {"berlin": 6}


# what is lost, and who else is at work


def test_with_its_state_lost_in_the_middle_a_rollout_goes_on(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.sync_until_unchanged()
    for ring in RINGS:
        git(world.fleet, "update-ref", "-d", f"refs/reconciler/state/{ring}")
    world.sync_until_unchanged()
    lost = drafted(world)
    world.now += HOUR

    world.sync_until_unchanged()

    assert lost == {}
    assert (published(world), drafted(world)) == ([5, 2, 2], {"berlin": 5})


@pytest.mark.parametrize("lost", [("amsterdam",), ("berlin", "lisbon"), tuple(RINGS)], ids=", ".join)
def test_with_its_state_lost_a_rule_that_has_arrived_stays(arrived: World, lost: tuple[str, ...]) -> None:
    for item in lost:
        git(arrived.fleet, "update-ref", "-d", f"refs/reconciler/state/{item}")

    arrived.sync()

    assert drafted(arrived) == {}
    arrived.sync_until_unchanged()
    assert (published(arrived), drafted(arrived)) == ([5, 5, 5], {})


@pytest.mark.parametrize("lost", [("amsterdam",), ("berlin",), tuple(RINGS)], ids=", ".join)
def test_with_its_state_lost_a_closed_wave_stays_as_it_is(arrived: World, lost: tuple[str, ...]) -> None:
    write_rule(arrived, 6)
    arrived.sync_until_unchanged()
    for item in lost:
        git(arrived.fleet, "update-ref", "-d", f"refs/reconciler/state/{item}")

    after = arrived.sync()

    assert drafted(arrived) == {"amsterdam": 6}
    withheld = {place for place, outcome in after.outcomes.items() if outcome == "RuleTextUnknown"}
    assert withheld == {f"{entry}/web" for entry in lost if entry != "amsterdam"}
    arrived.sync_until_unchanged()
    assert drafted(arrived) == {"amsterdam": 6}
    roll_out(arrived, "amsterdam", "berlin")
    assert (published(arrived), drafted(arrived)) == ([6, 6, 5], {"lisbon": 6})


def test_a_second_daemon_comes_to_the_same_refs(world: World) -> None:
    write_rule(world, 5)
    world.sync()
    merge(world, "amsterdam")
    world.now += HOUR

    world.sync_while(world.sync)

    assert drafted(world) == {"berlin": 5}
    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged


# what is published without a date of its own


def test_a_soak_begins_when_an_approval_is_seen_however_old_the_draft_is(world: World) -> None:
    write_rule(world, 5)
    world.sync_until_unchanged()
    world.now += 30 * HOUR
    world.run_review_action("approve", "amsterdam", should_approve_unproposed=True)

    pass_result = world.sync()

    assert (pass_result.report.due_at, drafted(world)) == (world.now + HOUR, {})
    world.now += HOUR
    assert world.sync().changed_branches == {"drafts/berlin"}


def test_a_cache_that_knows_nothing_believes_git(world: World) -> None:
    write_rule(world, 5)
    world.sync_until_unchanged()
    world.run_review_action("approve", "amsterdam", should_approve_unproposed=True)
    world.now += 30 * HOUR
    (world.folder / "cache" / "published.json").unlink()

    assert world.sync().changed_branches == {"drafts/berlin"}


# unrelated changes while a wave is open


def new_version(world: World, cluster: str) -> None:
    world.release("web", "v2", labelled_package("web", "site", image="2.0"))
    world.write({f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2")})


def new_package(world: World, cluster: str) -> None:
    world.release("api", "v1", labelled_package("api", "site"))
    world.write({f"web/api-{cluster}.yaml": variant(f"api-{cluster}", cluster, "api", "v1")})


def local_change(world: World, cluster: str) -> None:
    world.edit(f"clusters/{cluster}", FILE, "web:1.0", "web:1.0-ours")


def new_cluster(world: World, cluster: str) -> None:
    add_paris(world, RINGS[cluster])


def file_in_the_way(world: World, cluster: str) -> None:
    new_package(world, cluster)
    world.commit(f"clusters/{cluster}", {"api": "mine\n"})


@pytest.mark.parametrize("change", [new_version, new_package, local_change, new_cluster, file_in_the_way])
@pytest.mark.parametrize("cluster", ["amsterdam", "berlin"])
def test_an_unrelated_change_never_closes_an_open_wave(
    arrived: World, change: Callable[[World, str], None], cluster: str
) -> None:
    write_rule(arrived, 6)
    arrived.sync()
    roll_out(arrived, "amsterdam")
    before = drafted(arrived)
    change(arrived, cluster)

    arrived.sync()

    assert before == {"berlin": 6}
    assert drafted(arrived)["berlin"] == 6
    pass_result = arrived.sync()
    assert (pass_result.changed_branches, drafted(arrived)["berlin"]) == (set(), 6)
    assert arrived.sync().is_unchanged
    if cluster == "amsterdam" and arrived.head("drafts/amsterdam"):
        # the soak time begins again, which closes nothing either
        merge(arrived, "amsterdam")
        arrived.sync_until_unchanged()
        assert drafted(arrived)["berlin"] == 6
