"""Templates through whole passes: what pools inherit across packages, what moves them, and what stays people's."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.git_repositories import assert_sound, git
from tests.support.policies import format_object, patch, policy, publish
from tests.support.prepared_worlds import begin
from tests.support.templates import (
    KAFKA,
    LABELLED,
    MODE,
    URGENT,
    bundle,
    is_marked,
    kafka,
    pool,
    template,
    template_world,
    templates_drafted,
    templates_published,
)
from tests.support.world import CLUSTERS, World, catalog, repository, variant

BROKERS, READERS = "brokers/pool.yaml", "readers/pool.yaml"
BOTH = {"podSet": LABELLED, "pod": URGENT}
CALM = {"priorityClassName": "calm"}
NAMES = ("kafka", "brokers", "readers")
Template = Mapping[str, Any]


@pytest.fixture
def drafted(tmp_path: Path) -> World:
    """Everything is drafted: a Kafka, pools that inherit all of it, and pools with an empty pod of their own."""
    return begin(tmp_path, templates_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The same, and everything published."""
    return begin(tmp_path, templates_published)


def want(world: World, name: str, revision: str, *clusters: str) -> None:
    """Have a package at a revision on clusters, all by default."""
    world.write(
        {f"{name}/{item}.yaml": variant(f"{name}-{item}", item, name, revision) for item in clusters or CLUSTERS}
    )


def change_kafka(world: World, template: Template | None, revision: str = "v2", *clusters: str) -> None:
    """Release a Kafka with another template, and have it on clusters, all by default."""
    world.release("kafka", revision, bundle("kafka", kafka=kafka(template)))
    want(world, "kafka", revision, *clusters)


def change_brokers(world: World, template: Template | None, revision: str = "v2", **annotations: str) -> None:
    world.release("brokers", revision, bundle("brokers", pool=pool("brokers", template, **annotations)))
    want(world, "brokers", revision, "berlin")


def changed(world: World, draft: str) -> list[str]:
    """Return the files of packages that a draft changes against the cluster branch."""
    cluster = draft.partition("/")[2]
    names = git(world.fleet, "diff", "--name-only", f"clusters/{cluster}...{draft}").splitlines()
    return [name for name in names if not name.startswith(".reconciler")]


def lose_state(world: World, cluster: str = "berlin") -> None:
    git(world.fleet, "update-ref", "-d", f"refs/reconciler/state/{cluster}")


def outcomes(world: World) -> dict[str, str]:
    """Run a pass that must be silent; return what it says of Berlin's packages."""
    after = world.sync()
    assert after.is_unchanged, (after.outcomes, after.changed_branches, after.report.render_count)
    return {name.partition("/")[2]: how for name, how in after.outcomes.items() if name.startswith("berlin/")}


# where pairs lie


def test_a_pool_has_what_it_inherits_from_another_package(drafted: World) -> None:
    assert template(drafted, "drafts/berlin", BROKERS) == BOTH
    assert template(drafted, "drafts/lisbon", READERS) == {"podSet": LABELLED, "pod": {}}
    assert [is_marked(drafted, "drafts/berlin", item) for item in (KAFKA, BROKERS, READERS)] == [False, True, True]
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


def test_what_is_published_stays(world: World) -> None:
    assert set(outcomes(world).values()) == {"published"}
    assert template(world, "clusters/berlin", BROKERS) == BOTH


def test_a_pair_in_one_package(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    world.release("bus", "v1", bundle("bus", kafka=kafka({"pod": URGENT}), pool=pool("brokers", {"podSet": {}})))
    world.write(
        {"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "bus.yaml": variant("b", "berlin", "bus")}
    )

    after = world.sync()

    assert after.report.render_count == 1
    assert template(world, "drafts/berlin", "bus/pool.yaml") == {"podSet": {}, "pod": URGENT}
    assert world.sync().is_unchanged


def test_a_kafka_whose_functions_cannot_run_is_a_parent_all_the_same(tmp_path: Path) -> None:
    world = template_world(tmp_path)
    unknown = "pipeline:\n  mutators:\n    - image: example.com/nobody-has-this:v1\n"
    files = bundle("kafka", kafka=kafka({"pod": CALM}))
    world.release("kafka", "v2", {**files, "Kptfile": files["Kptfile"] + unknown})
    want(world, "kafka", "v2")

    after = world.sync()

    assert "FunctionUnavailable" in after.codes
    assert template(world, "drafts/berlin", BROKERS) == {"pod": CALM}
    assert world.sync().is_unchanged


def test_a_pool_of_a_package_inherits_from_a_kafka_that_is_placed(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    world.release("brokers", "v1", bundle("brokers", pool=pool("brokers")))
    world.write(
        {
            "catalog.yaml": catalog(),
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            **{f"brokers/{cluster}.yaml": variant(f"brokers-{cluster}", cluster, "brokers") for cluster in CLUSTERS},
            "kafka.yaml": kafka({"pod": URGENT}, on="berlin"),
        }
    )

    after = world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"pod": URGENT}
    assert template(world, "drafts/lisbon", BROKERS) is None
    assert "OrphanPool" in after.codes
    assert world.sync().is_unchanged
    publish(world)
    world.write({"kafka.yaml": kafka({"pod": CALM}, on="berlin, lisbon")})
    world.sync()
    assert [template(world, f"drafts/{cluster}", BROKERS) for cluster in CLUSTERS] == [{"pod": CALM}, {"pod": CALM}]
    assert world.sync().is_unchanged


# what moves pools


@pytest.mark.parametrize(
    ("parent", "files", "renders"),
    [
        pytest.param({"podSet": LABELLED, "pod": CALM}, [BROKERS, KAFKA], 2, id="a-property-that-one-inherits"),
        pytest.param({"podSet": {}, "pod": URGENT}, [BROKERS, KAFKA, READERS], 3, id="a-property-that-both-inherit"),
        pytest.param({"podSet": LABELLED}, [BROKERS, KAFKA], 2, id="a-property-goes"),
        pytest.param(None, [BROKERS, KAFKA, READERS], 3, id="the-template-goes"),
        pytest.param({**BOTH, "initContainer": {}}, [BROKERS, KAFKA, READERS], 3, id="an-empty-property-comes"),
        pytest.param({**BOTH, "podDisruptionBudget": {"maxUnavailable": 0}}, [KAFKA], 1, id="one-of-kafka-alone"),
    ],
)  # fmt: skip
def test_pools_that_inherit_what_changed_are_drafted_and_no_others(
    world: World, parent: Template | None, files: list[str], renders: int
) -> None:
    change_kafka(world, parent, "v2", "berlin")

    after = world.sync()

    assert [item for item in changed(world, "drafts/berlin") if not item.endswith("Kptfile")] == files
    assert after.changed_branches == {"drafts/berlin"}
    # a pool whose own property hides what changed is looked at, and comes out the same
    assert renders <= after.report.render_count <= 3
    assert world.sync().is_unchanged


def test_what_a_kafka_says_no_more_is_gone_at_the_next_pass(world: World) -> None:
    change_kafka(world, {"podSet": {}})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}}
    publish(world)
    change_kafka(world, None, "v3")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) is None
    assert not is_marked(world, "drafts/berlin", BROKERS)
    publish(world)
    assert template(world, "clusters/berlin", READERS) == {"pod": {}}


def test_a_pool_that_sets_what_it_inherited_goes_its_own_way(world: World) -> None:
    change_brokers(world, {"pod": URGENT})
    world.sync()
    publish(world)
    change_kafka(world, {"podSet": LABELLED, "pod": CALM})

    world.sync()

    assert template(world, "clusters/berlin", BROKERS) == BOTH
    assert BROKERS not in changed(world, "drafts/berlin")
    assert template(world, "drafts/lisbon", BROKERS) == {"podSet": LABELLED, "pod": CALM}


def test_packages_without_kafka_are_left_in_peace(world: World) -> None:
    change_kafka(world, {}, "v2", "lisbon")

    after = world.sync()

    assert after.outcomes["lisbon/metrics"] == "published"
    assert after.report.render_count == 3


def test_a_pool_that_comes_before_its_kafka(tmp_path: Path) -> None:
    world = template_world(tmp_path / "world")
    world.write({"kafka/berlin.yaml": None})
    before = world.sync()
    assert ("OrphanPool" in before.codes, template(world, "drafts/berlin", BROKERS)) == (True, None)

    want(world, "kafka", "v1", "berlin")
    after = world.sync()

    assert ("OrphanPool" in after.codes, template(world, "drafts/berlin", BROKERS)) == (False, BOTH)
    assert world.sync().is_unchanged


def test_a_pool_moves_to_another_kafka(world: World) -> None:
    world.release("other", "v1", bundle("other", kafka=kafka({"pod": CALM}, "metering")))
    want(world, "other", "v1", "berlin")
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers", of="metering")))
    want(world, "brokers", "v2", "berlin")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"pod": CALM}
    assert world.sync().is_unchanged


# report and materialise


def test_a_pool_is_only_reported_where_its_annotation_says_so(world: World) -> None:
    change_brokers(world, None, **{MODE: "report"})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) is None
    assert world.sync().is_unchanged
    publish(world)
    change_brokers(world, None, "v3")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == BOTH


def test_the_setting_changes_and_changes_back(tmp_path: Path) -> None:
    world = begin(tmp_path, templates_published)
    world._settings = {"rules": {"template_mode": "report"}}
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) is None
    assert world.sync().is_unchanged

    world._settings = {}
    after = world.sync()

    assert after.outcomes["berlin/brokers"] == "published"
    assert world.sync().is_unchanged
    assert template(world, "clusters/berlin", BROKERS) == BOTH


# partners that do not come along

SOUND = {"podSet": LABELLED, "pod": CALM}
FAULTY: Template = {"podSet": {}, "pod": []}
UNFIT = {"podSet": {}, "pod": {"tmpDirSizeLimit": "lots"}}


def test_a_kafka_at_fault_blocks_its_pools_and_moves_none(world: World) -> None:
    change_kafka(world, FAULTY, "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert outcomes(world) == dict.fromkeys(NAMES, "InvalidTemplateType")
    change_kafka(world, SOUND, "v3", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == SOUND
    assert outcomes(world) == {"kafka": "drafted", "brokers": "drafted", "readers": "published"}


def test_a_kafka_whose_pod_no_pool_can_have_blocks_those_that_inherit_it(world: World) -> None:
    change_kafka(world, UNFIT, "v2", "berlin")

    world.sync()

    assert outcomes(world) == {"kafka": "drafted", "brokers": "InvalidTemplateType", "readers": "drafted"}
    assert template(world, "drafts/berlin", BROKERS) == BOTH


def test_what_a_blocked_kafka_would_be_counts_for_nobody(world: World) -> None:
    """The fault is of another pool of its package, so that the package is blocked, and the Kafka is sound."""
    extra = pool("extra", {"pod": []})
    world.release("kafka", "v2", bundle("kafka", kafka=kafka({"podSet": {}}), extra=extra))
    want(world, "kafka", "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert outcomes(world) == {"kafka": "InvalidTemplateType", "brokers": "published", "readers": "published"}
    change_brokers(world, {"podSet": {}})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "pod": URGENT}
    assert outcomes(world)["kafka"] == "InvalidTemplateType"


def test_two_packages_with_one_pool_block_each_other_until_one_gives_way(world: World) -> None:
    extra = {"extra": pool("extra")}
    world.release("kafka", "v2", bundle("kafka", kafka=kafka(BOTH), **extra))
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers"), **extra))
    want(world, "kafka", "v2", "berlin")
    want(world, "brokers", "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert outcomes(world) == {"kafka": "DuplicateObject", "brokers": "DuplicateObject", "readers": "published"}
    want(world, "brokers", "v1", "berlin")
    world.sync()
    assert outcomes(world) == {"kafka": "drafted", "brokers": "published", "readers": "published"}
    assert template(world, "drafts/berlin", "kafka/extra.yaml") == BOTH


def test_a_kafka_whose_render_fails_counts_with_what_is_published(world: World) -> None:
    broken = bundle("kafka", kafka=kafka({"podSet": {}}), copy=kafka({"podSet": {}}).replace("shop", "../shop"))
    world.release("kafka", "v2", {**broken, "bad\\name.yaml": "a: b\n"})
    want(world, "kafka", "v2", "berlin")

    world.sync()

    result = outcomes(world)
    assert (result["brokers"], result["readers"]) == ("published", "published")
    assert result["kafka"] not in ("published", "drafted")


def test_a_declined_kafka_counts_with_what_is_published(world: World) -> None:
    change_kafka(world, SOUND, "v2", "berlin")
    world.sync()
    world.delete("drafts/berlin")
    world.sync()

    result = outcomes(world)

    assert (result["kafka"], world.head("drafts/berlin")) == ("declined", "")
    assert result["brokers"] == "declined"
    change_brokers(world, {"kafkaContainer": {}})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {**BOTH, "kafkaContainer": {}}
    assert changed(world, "drafts/berlin") == ["brokers/Kptfile", BROKERS]
    assert outcomes(world)["kafka"] == "declined"
    change_kafka(world, {"podSet": {}}, "v3", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "kafkaContainer": {}}


def test_a_proposed_draft_stands_as_it_is(world: World) -> None:
    change_kafka(world, SOUND, "v2", "berlin")
    world.sync()
    world.run_review_action("propose", "berlin/kafka")

    assert set(outcomes(world).values()) == {"drafted", "published"}
    change_kafka(world, {"podSet": LABELLED}, "v3", "berlin")
    assert world.sync().changed_branches == set()
    assert outcomes(world) == {**dict.fromkeys(NAMES, "DownstreamProposed"), "readers": "published"}
    publish(world, "berlin")
    assert template(world, "clusters/berlin", BROKERS) == SOUND
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}


def test_a_kafka_on_its_way_out_counts_until_it_is_gone(world: World) -> None:
    world.write({"kafka/berlin.yaml": None})

    world.sync()

    assert template(world, "clusters/berlin", BROKERS) == BOTH
    assert outcomes(world)["brokers"] == "published"
    world.merge("berlin", "squash", draft="removals/berlin")
    after = world.sync()
    assert "OrphanPool" in after.codes
    assert template(world, "drafts/berlin", BROKERS) is None
    assert world.sync().is_unchanged


# people


def rewrite(world: World, branch: str, path: str, template: Template | None, **more: str) -> None:
    """Let a person write the template of a pool on a branch, and replace other words."""
    lines = world.text(branch, path).splitlines()
    begins = next((number for number, line in enumerate(lines) if line.startswith("  template:")), len(lines))
    text = "\n".join(lines[:begins]) + "\n" + (f"  template: {json.dumps(template)}\n" if template is not None else "")
    for old, new in more.items():
        text = text.replace(old, new)
    world.commit(branch, {path: text})


WHERE = pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])


def begun(world: World) -> None:
    """Have a draft of the brokers and the Kafka open in Berlin."""
    world.release("kafka", "v2", bundle("kafka", kafka=kafka(BOTH, version="4.1.0")))
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers", none="x")))
    want(world, "kafka", "v2", "berlin")
    want(world, "brokers", "v2", "berlin")
    world.sync()


@WHERE
def test_an_own_property_of_a_person_stays(world: World, branch: str) -> None:
    begun(world)
    rewrite(world, branch, BROKERS, {**BOTH, "kafkaContainer": {"env": []}})
    change_kafka(world, SOUND, "v3", "berlin")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {**SOUND, "kafkaContainer": {"env": []}}
    assert world.sync().is_unchanged


@WHERE
def test_what_a_person_sets_in_a_pool_is_its_own_as_a_whole(world: World, branch: str) -> None:
    change_kafka(world, {"pod": {**URGENT, "hostUsers": False}}, "v9", "berlin")
    world.sync()
    publish(world, "berlin")
    change_brokers(world, None, none="x")
    world.sync()
    rewrite(world, branch, BROKERS, {"pod": {**CALM, "hostUsers": False}})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"pod": {**CALM, "hostUsers": False}}
    assert world.sync().is_unchanged
    publish(world, "berlin")
    change_kafka(world, {"podSet": {}, "pod": URGENT}, "v10", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "pod": {**CALM, "hostUsers": False}}


@WHERE
def test_a_persons_edit_of_a_kafka_moves_its_pools(world: World, branch: str) -> None:
    begun(world)
    world.edit(branch, KAFKA, "urgent", "calm")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == SOUND
    assert world.sync().is_unchanged
    publish(world, "berlin")
    assert template(world, "clusters/berlin", BROKERS) == SOUND


def test_what_is_inherited_comes_back_when_a_person_takes_it_out(world: World) -> None:
    rewrite(world, "clusters/berlin", BROKERS, {"podSet": LABELLED})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == BOTH
    overruled = [
        conflict
        for conflict in world.package_status("drafts/berlin", "brokers")["conflicts"]
        if conflict["kind"] == "field"
    ]
    assert [(item["rule"], item["pointer"]) for item in overruled] == [("templates", "/spec/template/pod")]
    assert world.sync().is_unchanged


# lost states and races


def test_our_own_mark_never_comes_back_as_a_persons(world: World) -> None:
    lose_state(world)

    after = world.sync()

    assert set(after.outcomes.values()) == {"published"}
    change_kafka(world, {"podSet": LABELLED})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert world.sync().is_unchanged


def test_a_lost_state_with_a_draft(drafted: World) -> None:
    lose_state(drafted)

    drafted.sync()

    change_kafka(drafted, {"podSet": LABELLED})
    drafted.sync()
    assert template(drafted, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert drafted.sync().is_unchanged


def test_a_lost_state_with_an_edit(world: World) -> None:
    text = world.text("clusters/berlin", BROKERS)
    world.commit("clusters/berlin", {BROKERS: text.replace("replicas: 3", "replicas: 5")})
    lose_state(world)

    after = world.sync()

    assert "MaterialisedInput" not in after.codes
    change_kafka(world, {"podSet": LABELLED})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert "replicas: 5" in world.text("drafts/berlin", BROKERS)


def test_two_daemons_at_once(world: World) -> None:
    change_kafka(world, SOUND)

    world.sync_while(world.sync)

    assert [template(world, f"drafts/{cluster}", BROKERS) for cluster in CLUSTERS] == [SOUND, SOUND]
    assert world.sync().is_unchanged


def test_a_race_with_a_person(world: World) -> None:
    change_kafka(world, SOUND)

    world.sync_while(lambda: rewrite(world, "clusters/berlin", BROKERS, {**BOTH, "kafkaContainer": {}}))

    world.sync_until_unchanged()
    assert template(world, "drafts/berlin", BROKERS) == {**SOUND, "kafkaContainer": {}}


# other rooms


def test_a_new_rule_renders_the_packages_with_its_kinds_and_no_others(world: World) -> None:
    fleet = {"kind": "Fleet", "apiGroup": "ships.example", "path": "spec.common"}
    ship = {"kind": "Ship", "apiGroup": "ships.example", "path": "spec.own", "parentLabel": "fleet"}
    world.release(
        "ships", "v1",
        bundle(
            "ships",
            fleet=format_object("Fleet", "f", {"common": {"paint": {"hull": "red"}}}, api="ships.example/v1"),
            ship=format_object("Ship", "s", {"own": {}}, api="ships.example/v1", labels={"fleet": "f"}),
        ),
    )  # fmt: skip
    want(world, "ships", "v1", "lisbon")
    world.sync()
    publish(world, "lisbon")
    spec = {"parent": fleet, "child": ship, "properties": ["paint"]}
    world.write({"rules/ships.yaml": format_object("TemplateMergeRule", "ships", spec, api="reconciler.dev/v1alpha1")})

    after = world.sync()

    assert (after.report.render_count, after.changed_branches) == (1, {"drafts/lisbon"})
    assert "hull: red" in world.text("drafts/lisbon", "ships/ship.yaml").replace('"', "")
    assert world.sync().is_unchanged
    world.write({"rules/ships.yaml": None})
    assert world.sync().outcomes["lisbon/ships"] == "published"


CHOOSES = [{"apiVersion": "kafka.strimzi.io/v1", "kind": "Kafka", "name": "orders"}]
PATH = "/spec/kafka/template/pod/priorityClassName"


def test_a_policy_changes_a_kafka_on_one_cluster_and_its_pools_follow(world: World) -> None:
    text = policy("calm", [patch(PATH, "calm", {"clusters": ["lisbon"]})], resourceSelectors=CHOOSES)
    world.write({"policies/calm.yaml": text})

    after = world.sync()

    assert after.changed_branches == {"drafts/lisbon"}
    assert template(world, "drafts/lisbon", BROKERS) == SOUND
    assert world.sync().is_unchanged
    publish(world)
    world.write({"policies/calm.yaml": None})
    world.sync()
    assert template(world, "drafts/lisbon", BROKERS) == BOTH


def test_a_rollout_takes_the_pools_along(world: World) -> None:
    waves = {"waves": [{"clusters": ["berlin"]}], "soak": "1h"}
    rule = patch(PATH, "calm", name="calm", rollout=waves)
    world.write({"policies/calm.yaml": policy("calm", [rule], resourceSelectors=CHOOSES)})

    assert world.sync().changed_branches == {"drafts/berlin"}
    assert template(world, "drafts/berlin", BROKERS) == SOUND
    assert world.sync().changed_branches == set()
    publish(world, "berlin")
    assert world.sync().changed_branches == set()
    world.now += 2 * 3_600
    world.sync()
    assert template(world, "drafts/lisbon", BROKERS) == SOUND


def test_what_people_made_too_large_spoils_itself_only(world: World) -> None:
    deep = "/".join("d" for _ in range(210))
    world.commit("clusters/berlin", {f"kafka/{deep}/file": "x"})

    after = world.sync()

    assert after.outcomes["berlin/kafka"] == "PackageTooLarge"
    assert after.outcomes["berlin/brokers"] == "published"
    assert world.sync().is_unchanged


def test_a_drafted_kafka_that_nobody_wants_any_more_goes_with_what_pools_had_of_it(drafted: World) -> None:
    drafted.write({"kafka/berlin.yaml": None})

    after = drafted.sync()

    assert template(drafted, "drafts/berlin", BROKERS) is None
    assert "OrphanPool" in after.codes
    assert drafted.sync().is_unchanged
