"""Tests of override policies through whole passes: re-renders, rollbacks, missing policies and local changes."""

from collections.abc import Callable
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.git_repositories import assert_sound, git
from tests.support.policies import (
    labelled,
    labelled_package,
    policies_drafted,
    policies_published,
    policy,
    policy_world,
    publish,
    replicas,
)
from tests.support.prepared_worlds import begin
from tests.support.world import World, package, repository, variant

SITE = "policies/site.yaml"
FILE = "web/deployment.yaml"
IN_BERLIN = {"clusters": ["berlin"]}
FIVE = replicas(5, IN_BERLIN)
BROKEN = "kind: [\n"
NEW_IMAGE = ["-          image: example.com/web:1.0", "+          image: example.com/web:2.0"]
PolicyChange = Callable[[World], None]


@pytest.fixture
def drafted_world(tmp_path: Path) -> World:
    """Return a world with drafts only. A policy sets five replicas of web on Berlin. Lisbon has two replicas."""
    return begin(tmp_path, policies_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Return the same world with published packages."""
    return begin(tmp_path, policies_published)


def count_replicas(world: World, branch: str, path: str = FILE) -> int:
    """Return the number of replicas on a branch."""
    return int(world.text(branch, path).partition("replicas: ")[2].split()[0])


def read_heads(world: World) -> tuple[str, ...]:
    return tuple(world.head(f"{kind}/{cluster}") for kind in ("clusters", "drafts") for cluster in ("berlin", "lisbon"))


def diff_draft(world: World, cluster: str) -> list[str]:
    """Return the lines of web that a draft changes, without context lines."""
    lines = git(world.fleet, "diff", "-U0", f"clusters/{cluster}", f"drafts/{cluster}", "--", FILE).splitlines()
    return [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]


def read_conflicts(world: World, branch: str = "drafts/berlin") -> list[tuple[str, object, object, str]]:
    """Return the conflicts in the status file of web: pointer, local value, upstream value and rule."""
    result = world.package_status(branch, "web").get("conflicts", ())
    return [(item["pointer"], item.get("local"), item.get("upstream"), item.get("rule", "")) for item in result]


# The tests of this section check which packages are rendered.


def test_each_cluster_has_its_own_value_and_no_policy_label(drafted_world: World) -> None:
    assert [count_replicas(drafted_world, f"drafts/{cluster}") for cluster in ("berlin", "lisbon")] == [5, 2]
    assert "override-policy-name" not in drafted_world.text("drafts/berlin", FILE) + drafted_world.text(
        "drafts/lisbon", FILE
    )
    assert "# enough for a small site" in drafted_world.text("drafts/berlin", FILE)
    assert drafted_world.reason("web-berlin") == "NoErrors"
    assert drafted_world.sync().is_unchanged
    assert_sound(drafted_world.fleet)


def test_changed_policy_renders_the_packages_that_name_it_only(world: World) -> None:
    world.write({SITE: policy("site", [replicas(7)])})

    after = world.sync()

    assert after.report.render_count == 2
    assert after.outcomes == {"berlin/metrics": "published", "berlin/web": "draft", "lisbon/web": "draft"}
    assert [diff_draft(world, cluster) for cluster in ("berlin", "lisbon")] == [
        ["-  replicas: 5 # enough for a small site", "+  replicas: 7 # enough for a small site"],
        ["-  replicas: 2 # enough for a small site", "+  replicas: 7 # enough for a small site"],
    ]
    assert world.sync().is_unchanged
    publish(world)
    assert [count_replicas(world, f"clusters/{cluster}") for cluster in ("berlin", "lisbon")] == [7, 7]


def test_unused_policy_renders_nothing_and_is_reported(world: World) -> None:
    world.write({"policies/other.yaml": policy("other", [replicas(9)])})

    after = world.sync()

    assert (after.report.render_count, after.changed_branches, "PolicyUnused" in after.codes) == (0, set(), True)
    assert world.sync().is_unchanged


def test_policy_with_a_kind_selector_changes_packages_without_a_label(world: World) -> None:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "metrics"}]
    world.write({"policies/all.yaml": policy("all", [replicas(4)], resourceSelectors=selectors)})

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin"}
    assert count_replicas(world, "drafts/berlin", "metrics/deployment.yaml") == 4
    assert count_replicas(world, "drafts/berlin") == 5
    assert world.sync().is_unchanged


def test_changed_cluster_label_updates_the_packages_of_that_cluster_only(world: World) -> None:
    world.write({SITE: policy("site", [replicas(5, {"clusterSelector": {"region": "north"}})])})
    assert world.sync_until_unchanged().outcomes["berlin/web"] == "published"
    world.write({"clusters/lisbon.yaml": repository("lisbon").replace("south", "north")})

    after = world.sync()

    assert after.report.render_count == 1
    assert (after.changed_branches, count_replicas(world, "drafts/lisbon")) == ({"drafts/lisbon"}, 5)
    assert world.sync().is_unchanged


def test_policy_with_an_equal_result_creates_no_draft(world: World) -> None:
    world.write({SITE: policy("site", [replicas(5, {"excludeClusters": ["lisbon"]})])})

    after = world.sync()

    assert (after.outcomes["berlin/web"], after.changed_branches) == ("published", set())
    assert world.sync().is_unchanged


def test_policy_rule_without_effect_is_reported_and_creates_no_draft(world: World) -> None:
    world.write({SITE: policy("site", [FIVE, replicas(2, {"clusters": ["lisbon"]})])})

    after = world.sync()

    assert (after.changed_branches, "PolicyNoEffect" in after.codes) == (set(), True)
    assert world.sync().is_unchanged


def test_policy_in_another_file_creates_no_draft(world: World) -> None:
    world.write({SITE: None, "elsewhere/policy.yaml": policy("site", [FIVE])})

    assert (world.sync().changed_branches, world.sync().is_unchanged) == (set(), True)


# The tests of this section attach and detach policies.


def test_removed_policy_label_restores_the_source_and_new_label_attaches_the_policy(world: World) -> None:
    plain = world.text("clusters/lisbon", FILE)
    world.release("web", "v2", package("web"))
    world.write(
        {f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2") for cluster in ("berlin", "lisbon")}
    )
    world.sync()
    without_policy = (world.text("drafts/berlin", FILE), diff_draft(world, "lisbon"))
    publish(world)
    world.release("web", "v3", labelled_package("web", "site"))
    world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v3")})
    world.sync()

    assert without_policy == (plain, [])
    assert count_replicas(world, "drafts/berlin") == 5
    assert world.sync().is_unchanged


def test_policy_without_rules_is_rolled_back_by_a_draft(world: World) -> None:
    world.write({SITE: policy("site", [])})

    after = world.sync()

    assert (after.changed_branches, after.outcomes["berlin/web"]) == ({"drafts/berlin"}, "draft")
    assert world.text("drafts/berlin", FILE) == world.text("clusters/lisbon", FILE)
    assert "overrides" not in world.package_status("drafts/berlin", "web")
    assert world.sync().is_unchanged
    publish(world)
    assert world.tree("clusters/berlin", "web") == world.tree("clusters/lisbon", "web")


def test_policy_without_rules_is_rolled_back_on_an_open_draft(drafted_world: World) -> None:
    drafted_world.write({SITE: policy("site", [])})

    drafted_world.sync()

    assert drafted_world.text("drafts/berlin", FILE) == drafted_world.text("drafts/lisbon", FILE)
    assert drafted_world.sync().is_unchanged


# The tests of this section have missing and invalid policies.


def delete_policy(world: World) -> None:
    world.write({SITE: None})


def break_policy_file(world: World) -> None:
    world.write({SITE: BROKEN})


def duplicate_policy(world: World) -> None:
    world.write({"policies/again.yaml": policy("site", [replicas(8)])})


def invalidate_policy(world: World) -> None:
    world.write({SITE: policy("site", [{"overriders": {"images": []}}])})


WITH_UNUSABLE_POLICY = pytest.mark.parametrize(
    ("make_unusable", "code"),
    [
        pytest.param(delete_policy, "PolicyNotFound", id="deleted"),
        pytest.param(break_policy_file, "PolicyNotFound", id="unreadable"),
        pytest.param(duplicate_policy, "PolicyDuplicate", id="stands-twice"),
        pytest.param(invalidate_policy, "PolicyInvalid", id="invalid"),
    ],
)


@pytest.mark.quick_cases(every=4)
@WITH_UNUSABLE_POLICY
def test_unusable_policy_keeps_the_drafts(drafted_world: World, make_unusable: PolicyChange, code: str) -> None:
    before = read_heads(drafted_world)
    make_unusable(drafted_world)

    after = drafted_world.sync()

    assert {after.outcomes[f"{cluster}/web"] for cluster in ("berlin", "lisbon")} == {code}
    assert after.outcomes["berlin/metrics"] == "drafted"
    assert read_heads(drafted_world) == before
    assert drafted_world.reason("web-berlin") == code
    assert drafted_world.sync().is_unchanged
    drafted_world.write({SITE: policy("site", [FIVE]), "policies/again.yaml": policy("other", [])})
    assert drafted_world.sync().outcomes["berlin/web"] == "drafted"
    assert read_heads(drafted_world) == before
    assert drafted_world.sync().is_unchanged


@pytest.mark.quick_cases(every=4)
@WITH_UNUSABLE_POLICY
def test_unusable_policy_keeps_published_content_and_delays_updates(
    world: World, make_unusable: PolicyChange, code: str
) -> None:
    before = read_heads(world)
    make_unusable(world)
    world.release("web", "v2", labelled_package("web", "site", image="2.0"))
    world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})

    after = world.sync()

    assert (after.outcomes["berlin/web"], read_heads(world)) == (code, before)
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [FIVE]), "policies/again.yaml": policy("other", [])})
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert diff_draft(world, "berlin") == [
        "-          image: example.com/web:1.0",
        "+          image: example.com/web:2.0",
    ]
    assert world.sync().is_unchanged


def test_deleted_policy_is_rolled_back_if_missing_policies_are_ignored(tmp_path: Path) -> None:
    world = policy_world(tmp_path, rules={"on_missing_policy": "ignore"})
    world.sync()
    publish(world)
    world.write({SITE: None})

    after = world.sync()

    assert (after.outcomes["berlin/web"], after.changed_branches) == ("draft", {"drafts/berlin"})
    assert world.text("drafts/berlin", FILE) == world.text("clusters/lisbon", FILE)
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "make_unusable",
    [
        pytest.param(break_policy_file, id="unreadable"),
        pytest.param(duplicate_policy, id="stands-twice"),
        pytest.param(invalidate_policy, id="invalid"),
    ],
)
def test_unusable_policy_does_not_count_as_missing_if_missing_policies_are_ignored(
    tmp_path: Path, make_unusable: PolicyChange
) -> None:
    world = policy_world(tmp_path, rules={"on_missing_policy": "ignore"})
    world.sync()
    publish(world)
    before = read_heads(world)
    make_unusable(world)

    world.sync()

    assert read_heads(world) == before
    assert world.sync().is_unchanged


# The tests of this section have failing packages beside valid packages.


def test_failed_patch_on_one_cluster_blocks_the_package_there_only(world: World) -> None:
    failing = {"overriders": {"jsonpatch": [{"operator": "remove", "path": "/spec/paused"}]}}
    world.write({SITE: policy("site", [replicas(6), {**failing, "targetClusters": {"clusters": ["lisbon"]}}])})

    after = world.sync()

    assert after.outcomes == {"berlin/metrics": "published", "berlin/web": "draft", "lisbon/web": "PatchTargetMissing"}
    assert (after.changed_branches, count_replicas(world, "drafts/berlin")) == ({"drafts/berlin"}, 6)
    assert (world.reason("web-lisbon"), world.reason("web-berlin")) == ("PatchTargetMissing", "NoErrors")
    assert world.sync().is_unchanged


def test_failed_package_does_not_block_another_package_of_the_cluster(drafted_world: World) -> None:
    drafted_world.release("metrics", "v2", labelled_package("metrics", "absent"))
    drafted_world.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
            SITE: policy("site", [replicas(6)]),
        }
    )
    metrics = drafted_world.tree("drafts/berlin", "metrics")

    after = drafted_world.sync()

    assert (after.outcomes["berlin/metrics"], after.outcomes["berlin/web"]) == ("PolicyNotFound", "draft")
    assert drafted_world.tree("drafts/berlin", "metrics") == metrics
    assert count_replicas(drafted_world, "drafts/berlin") == 6
    assert drafted_world.sync().is_unchanged
    publish(drafted_world, "berlin")
    assert drafted_world.tree("clusters/berlin", "metrics") == metrics


# The tests of this section have local changes.


ON_EACH_BRANCH = pytest.mark.parametrize("branch", ["drafts/berlin", "clusters/berlin"])


@pytest.fixture
def changed_world(branch: str, tmp_path: Path) -> World:
    """Return a world with an existing draft or published package, which the test changes on the branch."""
    return begin(tmp_path, policies_drafted if branch.startswith("drafts") else policies_published)


@ON_EACH_BRANCH
def test_local_change_of_an_overridden_field_is_reverted_with_a_conflict(changed_world: World, branch: str) -> None:
    changed_world.edit(branch, FILE, "replicas: 5", "replicas: 9")

    after = changed_world.sync()

    assert (after.outcomes["berlin/web"], count_replicas(changed_world, "drafts/berlin")) == ("draft", 5)
    assert read_conflicts(changed_world) == [("/spec/replicas", 9, 5, "overrides")]
    assert changed_world.sync().is_unchanged
    publish(changed_world)
    assert count_replicas(changed_world, "clusters/berlin") == 5
    assert changed_world.sync().is_unchanged


@pytest.mark.quick_cases(every=2)
@ON_EACH_BRANCH
def test_local_change_of_another_field_survives_policy_and_upstream_changes(changed_world: World, branch: str) -> None:
    changed_world.edit(branch, FILE, "example.com/web:1.0", "example.com/web:1.0-ours")
    changed_world.sync()
    changed_world.write({SITE: policy("site", [replicas(6)])})
    changed_world.sync()
    draft_with_policy = (
        count_replicas(changed_world, "drafts/berlin"),
        "web:1.0-ours" in changed_world.text("drafts/berlin", FILE),
    )
    assert changed_world.sync().is_unchanged
    publish(changed_world)
    changed_world.release(
        "web",
        "v2",
        labelled_package("web", "site", replicas=3, extra="apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"),
    )
    changed_world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})
    changed_world.sync()

    assert draft_with_policy == (6, True)
    assert count_replicas(changed_world, "drafts/berlin") == 6
    assert "web:1.0-ours" in changed_world.text("drafts/berlin", FILE)
    assert changed_world.text("drafts/berlin", "web/extra.yaml")
    assert read_conflicts(changed_world) == []
    assert changed_world.sync().is_unchanged
    changed_world.write({SITE: policy("site", [])})
    changed_world.sync()
    assert count_replicas(changed_world, "drafts/berlin") == 3
    assert "web:1.0-ours" in changed_world.text("drafts/berlin", FILE)
    assert changed_world.sync().is_unchanged


def test_local_list_item_beside_a_policy_item_is_added_once(world: World) -> None:
    append = {"containerName": "web", "operator": "append", "value": ["--site"]}
    with_args = {"deployment.yaml": labelled("web", "site") + "          args: [--log]\n"}
    world.release("web", "v2", {**labelled_package("web", "site"), **with_args})
    world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})
    world.write({SITE: policy("site", [{"overriders": {"args": [append]}}])})
    world.sync()
    publish(world)
    line = next(line for line in world.text("clusters/berlin", FILE).splitlines() if "args" in line)
    world.edit("clusters/berlin", FILE, line, line.replace("]", ", --ours]"))

    world.sync()

    assert read_container_arguments(world, "drafts/berlin") == ["--log", "--ours", "--site"]
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert read_container_arguments(world, "drafts/berlin") == ["--log", "--ours"]
    assert world.sync().is_unchanged


def read_container_arguments(world: World, branch: str) -> list[str]:
    pod = parse_yaml(world.text(branch, FILE)).documents[0].data["spec"]["template"]["spec"]
    args: list[str] = pod["containers"][0]["args"]
    return args


def test_update_does_not_treat_overrides_as_local_changes(world: World) -> None:
    world.release("web", "v2", labelled_package("web", "site", replicas=3, image="2.0"))
    world.write(
        {f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2") for cluster in ("berlin", "lisbon")}
    )

    world.sync()

    assert [diff_draft(world, cluster) for cluster in ("berlin", "lisbon")] == [
        NEW_IMAGE,
        ["-  replicas: 2 # enough for a small site", "+  replicas: 3 # enough for a small site", *NEW_IMAGE],
    ]
    assert read_conflicts(world) == []
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert world.text("drafts/berlin", FILE) == world.text("drafts/lisbon", FILE)
    assert world.sync().is_unchanged


def test_locally_added_label_attaches_a_policy_permanently(world: World) -> None:
    world.write({"policies/nine.yaml": policy("nine", [replicas(9)])})
    world.sync_until_unchanged()
    content = world.text("clusters/lisbon", FILE)
    label = "  labels: {kubeadmiral.io/cluster-override-policy-name: nine}\n"
    world.commit("clusters/lisbon", {FILE: content.replace("spec:\n", f"{label}spec:\n", 1)})

    world.sync()

    assert count_replicas(world, "drafts/lisbon") == 9
    assert "override-policy-name" not in world.text("drafts/lisbon", FILE)
    publish(world)
    world.write({"policies/nine.yaml": policy("nine", [replicas(10)])})
    world.sync()
    assert count_replicas(world, "drafts/lisbon") == 10
    assert world.sync().is_unchanged


def test_declined_draft_is_drafted_again_after_another_policy_change(world: World) -> None:
    world.write({SITE: policy("site", [replicas(7)])})
    world.sync()
    world.delete("drafts/berlin")
    declined = world.sync()
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [replicas(8)])})

    after = world.sync()

    assert (declined.outcomes["berlin/web"], world.text("drafts/berlin", FILE) == "") == ("declined", False)
    assert after.outcomes["berlin/web"] == "draft"
    world.write({SITE: policy("site", [replicas(7)])})
    assert world.sync().outcomes["berlin/web"] == "declined"
    assert world.head("drafts/berlin") == ""
    assert world.sync().is_unchanged


@pytest.mark.parametrize("start", [policies_drafted, policies_published])
def test_lost_state_is_restored_without_changes(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    before = read_heads(world)
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/berlin")

    world.sync()

    assert read_heads(world) == before
    assert world.sync_until_unchanged().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert world.text("drafts/berlin", FILE).count("replicas: 2") == 1
    assert world.sync().is_unchanged


def test_second_daemon_creates_the_same_refs(world: World) -> None:
    world.write({SITE: policy("site", [replicas(7)])})
    concurrent_worlds: list[World] = []

    def run_second_daemon() -> None:
        concurrent_worlds.append(world)
        world.sync()

    world.sync_while(run_second_daemon)

    assert concurrent_worlds
    assert (count_replicas(world, "drafts/berlin"), count_replicas(world, "drafts/lisbon")) == (7, 7)
    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged
