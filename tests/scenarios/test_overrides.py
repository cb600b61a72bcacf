"""Override policies through whole passes: what is rendered again, what stays, and what becomes of people's edits."""

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
Lose = Callable[[World], None]


@pytest.fixture
def drafted(tmp_path: Path) -> World:
    """Everything is drafted, nothing published; Berlin has five replicas of web by policy, Lisbon its own two."""
    return begin(tmp_path, policies_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The same, and everything published."""
    return begin(tmp_path, policies_published)


def count(world: World, branch: str, path: str = FILE) -> int:
    """Return how many replicas a branch asks for."""
    return int(world.text(branch, path).partition("replicas: ")[2].split()[0])


def heads(world: World) -> tuple[str, ...]:
    return tuple(world.head(f"{kind}/{cluster}") for kind in ("clusters", "drafts") for cluster in ("berlin", "lisbon"))


def changed(world: World, cluster: str) -> list[str]:
    """Return the lines that a draft changes in web, without context."""
    lines = git(world.fleet, "diff", "-U0", f"clusters/{cluster}", f"drafts/{cluster}", "--", FILE).splitlines()
    return [line for line in lines if line[0] in "+-" and not line.startswith(("+++", "---"))]


def conflicts(world: World, branch: str = "drafts/berlin") -> list[tuple[str, object, object, str]]:
    """Return what the status file of web tells of edits that did not stay: where, theirs, ours, and by what rule."""
    result = world.package_status(branch, "web").get("conflicts", ())
    return [(item["pointer"], item.get("local"), item.get("upstream"), item.get("rule", "")) for item in result]


# what is rendered again


def test_each_cluster_gets_its_own_and_no_branch_has_the_label(drafted: World) -> None:
    assert [count(drafted, f"drafts/{cluster}") for cluster in ("berlin", "lisbon")] == [5, 2]
    assert "override-policy-name" not in drafted.text("drafts/berlin", FILE) + drafted.text("drafts/lisbon", FILE)
    assert "# enough for a small site" in drafted.text("drafts/berlin", FILE)
    assert drafted.reason("web-berlin") == "NoErrors"
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


def test_a_policy_that_changes_renders_the_packages_that_name_it_and_no_others(world: World) -> None:
    world.write({SITE: policy("site", [replicas(7)])})

    after = world.sync()

    assert after.report.render_count == 2
    assert after.outcomes == {"berlin/metrics": "published", "berlin/web": "draft", "lisbon/web": "draft"}
    assert [changed(world, cluster) for cluster in ("berlin", "lisbon")] == [
        ["-  replicas: 5 # enough for a small site", "+  replicas: 7 # enough for a small site"],
        ["-  replicas: 2 # enough for a small site", "+  replicas: 7 # enough for a small site"],
    ]
    assert world.sync().is_unchanged
    publish(world)
    assert [count(world, f"clusters/{cluster}") for cluster in ("berlin", "lisbon")] == [7, 7]


def test_a_policy_that_nobody_names_renders_nothing_and_is_told_of(world: World) -> None:
    world.write({"policies/other.yaml": policy("other", [replicas(9)])})

    after = world.sync()

    assert (after.report.render_count, after.changed_branches, "PolicyUnused" in after.codes) == (0, set(), True)
    assert world.sync().is_unchanged


def test_a_policy_that_chooses_by_kind_reaches_packages_that_name_none(world: World) -> None:
    selectors = [{"apiVersion": "apps/v1", "kind": "Deployment", "name": "metrics"}]
    world.write({"policies/all.yaml": policy("all", [replicas(4)], resourceSelectors=selectors)})

    after = world.sync()

    assert after.changed_branches == {"drafts/berlin"}
    assert count(world, "drafts/berlin", "metrics/deployment.yaml") == 4
    assert count(world, "drafts/berlin") == 5
    assert world.sync().is_unchanged


def test_a_label_of_a_cluster_that_a_policy_asks_for_moves_the_packages_of_that_one_alone(world: World) -> None:
    world.write({SITE: policy("site", [replicas(5, {"clusterSelector": {"region": "north"}})])})
    assert world.sync_until_unchanged().outcomes["berlin/web"] == "published"
    world.write({"clusters/lisbon.yaml": repository("lisbon").replace("south", "north")})

    after = world.sync()

    assert after.report.render_count == 1
    assert (after.changed_branches, count(world, "drafts/lisbon")) == ({"drafts/lisbon"}, 5)
    assert world.sync().is_unchanged


def test_a_policy_that_says_the_same_otherwise_makes_no_draft(world: World) -> None:
    world.write({SITE: policy("site", [replicas(5, {"excludeClusters": ["lisbon"]})])})

    after = world.sync()

    assert (after.outcomes["berlin/web"], after.changed_branches) == ("published", set())
    assert world.sync().is_unchanged


def test_a_policy_without_effect_moves_nothing_and_is_told_of(world: World) -> None:
    world.write({SITE: policy("site", [FIVE, replicas(2, {"clusters": ["lisbon"]})])})

    after = world.sync()

    assert (after.changed_branches, "PolicyNoEffect" in after.codes) == (set(), True)
    assert world.sync().is_unchanged


def test_a_policy_in_another_file_is_the_same_policy(world: World) -> None:
    world.write({SITE: None, "elsewhere/policy.yaml": policy("site", [FIVE])})

    assert (world.sync().changed_branches, world.sync().is_unchanged) == (set(), True)


# attached and taken off again


def test_a_label_that_a_release_brings_attaches_and_one_that_it_drops_gives_back_the_source(world: World) -> None:
    plain = world.text("clusters/lisbon", FILE)
    world.release("web", "v2", package("web"))
    world.write(
        {f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2") for cluster in ("berlin", "lisbon")}
    )
    world.sync()
    off = (world.text("drafts/berlin", FILE), changed(world, "lisbon"))
    publish(world)
    world.release("web", "v3", labelled_package("web", "site"))
    world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v3")})
    world.sync()

    assert off == (plain, [])
    assert count(world, "drafts/berlin") == 5
    assert world.sync().is_unchanged


def test_a_policy_that_is_emptied_is_rolled_back_by_a_draft(world: World) -> None:
    world.write({SITE: policy("site", [])})

    after = world.sync()

    assert (after.changed_branches, after.outcomes["berlin/web"]) == ({"drafts/berlin"}, "draft")
    assert world.text("drafts/berlin", FILE) == world.text("clusters/lisbon", FILE)
    assert "overrides" not in world.package_status("drafts/berlin", "web")
    assert world.sync().is_unchanged
    publish(world)
    assert world.tree("clusters/berlin", "web") == world.tree("clusters/lisbon", "web")


def test_a_policy_that_is_emptied_before_anybody_merged_leaves_the_plain_package_on_the_draft(drafted: World) -> None:
    drafted.write({SITE: policy("site", [])})

    drafted.sync()

    assert drafted.text("drafts/berlin", FILE) == drafted.text("drafts/lisbon", FILE)
    assert drafted.sync().is_unchanged


# policies that are not there


def missing(world: World) -> None:
    world.write({SITE: None})


def unreadable(world: World) -> None:
    world.write({SITE: BROKEN})


def twice(world: World) -> None:
    world.write({"policies/again.yaml": policy("site", [replicas(8)])})


def invalid(world: World) -> None:
    world.write({SITE: policy("site", [{"overriders": {"images": []}}])})


gone = pytest.mark.parametrize(
    ("lose", "code"),
    [
        pytest.param(missing, "PolicyNotFound", id="deleted"),
        pytest.param(unreadable, "PolicyNotFound", id="unreadable"),
        pytest.param(twice, "PolicyDuplicate", id="stands-twice"),
        pytest.param(invalid, "PolicyInvalid", id="invalid"),
    ],
)


@gone
def test_without_a_sound_policy_drafts_stay_as_they_are(drafted: World, lose: Lose, code: str) -> None:
    before = heads(drafted)
    lose(drafted)

    after = drafted.sync()

    assert {after.outcomes[f"{cluster}/web"] for cluster in ("berlin", "lisbon")} == {code}
    assert after.outcomes["berlin/metrics"] == "drafted"
    assert heads(drafted) == before
    assert drafted.reason("web-berlin") == code
    assert drafted.sync().is_unchanged
    drafted.write({SITE: policy("site", [FIVE]), "policies/again.yaml": policy("other", [])})
    assert drafted.sync().outcomes["berlin/web"] == "drafted"
    assert heads(drafted) == before
    assert drafted.sync().is_unchanged


@gone
def test_without_a_sound_policy_what_is_published_stays_and_updates_wait(world: World, lose: Lose, code: str) -> None:
    before = heads(world)
    lose(world)
    world.release("web", "v2", labelled_package("web", "site", image="2.0"))
    world.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})

    after = world.sync()

    assert (after.outcomes["berlin/web"], heads(world)) == (code, before)
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [FIVE]), "policies/again.yaml": policy("other", [])})
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert changed(world, "berlin") == [
        "-          image: example.com/web:1.0",
        "+          image: example.com/web:2.0",
    ]
    assert world.sync().is_unchanged


def test_where_missing_policies_are_ignored_deleting_one_rolls_back(tmp_path: Path) -> None:
    world = policy_world(tmp_path, rules={"on_missing_policy": "ignore"})
    world.sync()
    publish(world)
    world.write({SITE: None})

    after = world.sync()

    assert (after.outcomes["berlin/web"], after.changed_branches) == ("draft", {"drafts/berlin"})
    assert world.text("drafts/berlin", FILE) == world.text("clusters/lisbon", FILE)
    assert world.sync().is_unchanged


@pytest.mark.parametrize(
    "lose",
    [
        pytest.param(unreadable, id="unreadable"),
        pytest.param(twice, id="stands-twice"),
        pytest.param(invalid, id="invalid"),
    ],
)
def test_where_missing_policies_are_ignored_one_in_doubt_is_not_missing(tmp_path: Path, lose: Lose) -> None:
    world = policy_world(tmp_path, rules={"on_missing_policy": "ignore"})
    world.sync()
    publish(world)
    before = heads(world)
    lose(world)

    world.sync()

    assert heads(world) == before
    assert world.sync().is_unchanged


# what fails holds up nobody else


def test_a_patch_that_fails_on_one_cluster_withholds_the_package_there_alone(world: World) -> None:
    failing = {"overriders": {"jsonpatch": [{"operator": "remove", "path": "/spec/paused"}]}}
    world.write({SITE: policy("site", [replicas(6), {**failing, "targetClusters": {"clusters": ["lisbon"]}}])})

    after = world.sync()

    assert after.outcomes == {"berlin/metrics": "published", "berlin/web": "draft", "lisbon/web": "PatchTargetMissing"}
    assert (after.changed_branches, count(world, "drafts/berlin")) == ({"drafts/berlin"}, 6)
    assert (world.reason("web-lisbon"), world.reason("web-berlin")) == ("PatchTargetMissing", "NoErrors")
    assert world.sync().is_unchanged


def test_of_two_packages_on_a_cluster_the_one_that_fails_does_not_hold_the_other(drafted: World) -> None:
    drafted.release("metrics", "v2", labelled_package("metrics", "absent"))
    drafted.write(
        {
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
            SITE: policy("site", [replicas(6)]),
        }
    )
    metrics = drafted.tree("drafts/berlin", "metrics")

    after = drafted.sync()

    assert (after.outcomes["berlin/metrics"], after.outcomes["berlin/web"]) == ("PolicyNotFound", "draft")
    assert drafted.tree("drafts/berlin", "metrics") == metrics
    assert count(drafted, "drafts/berlin") == 6
    assert drafted.sync().is_unchanged
    publish(drafted, "berlin")
    assert drafted.tree("clusters/berlin", "metrics") == metrics


# people's edits


EDITED = pytest.mark.parametrize("branch", ["drafts/berlin", "clusters/berlin"])


@pytest.fixture
def edited(branch: str, tmp_path: Path) -> World:
    """The world in which there is something to edit on a branch."""
    return begin(tmp_path, policies_drafted if branch.startswith("drafts") else policies_published)


@EDITED
def test_an_edit_of_a_field_that_a_policy_sets_is_overruled_and_told(edited: World, branch: str) -> None:
    edited.edit(branch, FILE, "replicas: 5", "replicas: 9")

    after = edited.sync()

    assert (after.outcomes["berlin/web"], count(edited, "drafts/berlin")) == ("draft", 5)
    assert conflicts(edited) == [("/spec/replicas", 9, 5, "overrides")]
    assert edited.sync().is_unchanged
    publish(edited)
    assert count(edited, "clusters/berlin") == 5
    assert edited.sync().is_unchanged


@EDITED
def test_an_edit_beside_what_a_policy_sets_is_kept_whatever_the_policy_and_upstream_do(
    edited: World, branch: str
) -> None:
    edited.edit(branch, FILE, "example.com/web:1.0", "example.com/web:1.0-ours")
    edited.sync()
    edited.write({SITE: policy("site", [replicas(6)])})
    edited.sync()
    by_policy = (count(edited, "drafts/berlin"), "web:1.0-ours" in edited.text("drafts/berlin", FILE))
    assert edited.sync().is_unchanged
    publish(edited)
    edited.release(
        "web",
        "v2",
        labelled_package("web", "site", replicas=3, extra="apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"),
    )
    edited.write({"web/berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})
    edited.sync()

    assert by_policy == (6, True)
    assert count(edited, "drafts/berlin") == 6
    assert "web:1.0-ours" in edited.text("drafts/berlin", FILE)
    assert edited.text("drafts/berlin", "web/extra.yaml")
    assert conflicts(edited) == []
    assert edited.sync().is_unchanged
    edited.write({SITE: policy("site", [])})
    edited.sync()
    assert count(edited, "drafts/berlin") == 3
    assert "web:1.0-ours" in edited.text("drafts/berlin", FILE)
    assert edited.sync().is_unchanged


def test_what_people_add_to_a_list_beside_what_a_policy_adds_brings_that_in_once(world: World) -> None:
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

    assert arguments(world, "drafts/berlin") == ["--log", "--ours", "--site"]
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert arguments(world, "drafts/berlin") == ["--log", "--ours"]
    assert world.sync().is_unchanged


def arguments(world: World, branch: str) -> list[str]:
    pod = parse_yaml(world.text(branch, FILE)).documents[0].data["spec"]["template"]["spec"]
    args: list[str] = pod["containers"][0]["args"]
    return args


def test_the_update_of_a_package_with_overrides_takes_none_of_them_for_an_edit(world: World) -> None:
    world.release("web", "v2", labelled_package("web", "site", replicas=3, image="2.0"))
    world.write(
        {f"web/{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", "v2") for cluster in ("berlin", "lisbon")}
    )

    world.sync()

    assert [changed(world, cluster) for cluster in ("berlin", "lisbon")] == [
        NEW_IMAGE,
        ["-  replicas: 2 # enough for a small site", "+  replicas: 3 # enough for a small site", *NEW_IMAGE],
    ]
    assert conflicts(world) == []
    assert world.sync().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert world.text("drafts/berlin", FILE) == world.text("drafts/lisbon", FILE)
    assert world.sync().is_unchanged


def test_a_label_that_people_add_attaches_a_policy_for_good(world: World) -> None:
    world.write({"policies/nine.yaml": policy("nine", [replicas(9)])})
    world.sync_until_unchanged()
    content = world.text("clusters/lisbon", FILE)
    label = "  labels: {kubeadmiral.io/cluster-override-policy-name: nine}\n"
    world.commit("clusters/lisbon", {FILE: content.replace("spec:\n", f"{label}spec:\n", 1)})

    world.sync()

    assert count(world, "drafts/lisbon") == 9
    assert "override-policy-name" not in world.text("drafts/lisbon", FILE)
    publish(world)
    world.write({"policies/nine.yaml": policy("nine", [replicas(10)])})
    world.sync()
    assert count(world, "drafts/lisbon") == 10
    assert world.sync().is_unchanged


def test_a_declined_draft_comes_again_when_the_policy_makes_something_else(world: World) -> None:
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
def test_with_its_state_lost_everything_is_found_again(tmp_path: Path, start: Callable[[Path], World]) -> None:
    world = begin(tmp_path, start)
    before = heads(world)
    git(world.fleet, "update-ref", "-d", "refs/reconciler/state/berlin")

    world.sync()

    assert heads(world) == before
    assert world.sync_until_unchanged().is_unchanged
    world.write({SITE: policy("site", [])})
    world.sync()
    assert world.text("drafts/berlin", FILE).count("replicas: 2") == 1
    assert world.sync().is_unchanged


def test_a_second_daemon_comes_to_the_same_refs(world: World) -> None:
    world.write({SITE: policy("site", [replicas(7)])})
    raced: list[World] = []

    def other() -> None:
        raced.append(world)
        world.sync()

    world.sync_while(other)

    assert raced
    assert (count(world, "drafts/berlin"), count(world, "drafts/lisbon")) == (7, 7)
    assert git(world.fleet, "rev-list", "--count", "clusters/berlin..drafts/berlin") == "1"
    assert world.sync_until_unchanged().is_unchanged
