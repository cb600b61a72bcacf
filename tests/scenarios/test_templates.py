"""Tests of templates through whole passes: inheritance across packages, updates of pools, and local changes."""

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
    """All packages are drafted: a Kafka, pools that inherit its whole template, and pools with an own empty pod."""
    return begin(tmp_path, templates_drafted)


@pytest.fixture
def world(tmp_path: Path) -> World:
    """The packages of `drafted`, all of them published."""
    return begin(tmp_path, templates_published)


def request_revision(world: World, name: str, revision: str, *clusters: str) -> None:
    """Request a revision of a package on clusters, by default on all clusters."""
    world.write(
        {f"{name}/{item}.yaml": variant(f"{name}-{item}", item, name, revision) for item in clusters or CLUSTERS}
    )


def change_kafka(world: World, template: Template | None, revision: str = "v2", *clusters: str) -> None:
    """Release a Kafka with another template, and request it on clusters, by default on all clusters."""
    world.release("kafka", revision, bundle("kafka", kafka=kafka(template)))
    request_revision(world, "kafka", revision, *clusters)


def change_brokers(world: World, template: Template | None, revision: str = "v2", **annotations: str) -> None:
    world.release("brokers", revision, bundle("brokers", pool=pool("brokers", template, **annotations)))
    request_revision(world, "brokers", revision, "berlin")


def list_changed_files(world: World, draft: str) -> list[str]:
    """Return the package files that a draft changes against the target branch."""
    cluster = draft.partition("/")[2]
    names = git(world.fleet, "diff", "--name-only", f"clusters/{cluster}...{draft}").splitlines()
    return [name for name in names if not name.startswith(".reconciler")]


def delete_state(world: World, cluster: str = "berlin") -> None:
    git(world.fleet, "update-ref", "-d", f"refs/reconciler/state/{cluster}")


def read_stable_outcomes(world: World) -> dict[str, str]:
    """Run a pass that must change nothing. Return the outcomes of Berlin's packages."""
    after = world.sync()
    assert after.is_unchanged, (after.outcomes, after.changed_branches, after.report.render_count)
    return {name.partition("/")[2]: outcome for name, outcome in after.outcomes.items() if name.startswith("berlin/")}


# Parents and children


def test_a_pool_inherits_from_a_kafka_of_another_package(drafted: World) -> None:
    assert template(drafted, "drafts/berlin", BROKERS) == BOTH
    assert template(drafted, "drafts/lisbon", READERS) == {"podSet": LABELLED, "pod": {}}
    assert [is_marked(drafted, "drafts/berlin", item) for item in (KAFKA, BROKERS, READERS)] == [False, True, True]
    assert drafted.sync().is_unchanged
    assert_sound(drafted.fleet)


def test_published_templates_stay_unchanged(world: World) -> None:
    assert set(read_stable_outcomes(world).values()) == {"published"}
    assert template(world, "clusters/berlin", BROKERS) == BOTH


def test_a_pool_inherits_from_a_kafka_of_the_same_package(tmp_path: Path) -> None:
    world = World.create(tmp_path / "world")
    world.release("bus", "v1", bundle("bus", kafka=kafka({"pod": URGENT}), pool=pool("brokers", {"podSet": {}})))
    world.write(
        {"catalog.yaml": catalog(), "berlin.yaml": repository("berlin"), "bus.yaml": variant("b", "berlin", "bus")}
    )

    after = world.sync()

    assert after.report.render_count == 1
    assert template(world, "drafts/berlin", "bus/pool.yaml") == {"podSet": {}, "pod": URGENT}
    assert world.sync().is_unchanged


def test_a_kafka_with_an_unavailable_function_is_still_a_parent(tmp_path: Path) -> None:
    world = template_world(tmp_path)
    unknown = "pipeline:\n  mutators:\n    - image: example.com/nobody-has-this:v1\n"
    files = bundle("kafka", kafka=kafka({"pod": CALM}))
    world.release("kafka", "v2", {**files, "Kptfile": files["Kptfile"] + unknown})
    request_revision(world, "kafka", "v2")

    after = world.sync()

    assert "FunctionUnavailable" in after.codes
    assert template(world, "drafts/berlin", BROKERS) == {"pod": CALM}
    assert world.sync().is_unchanged


def test_a_pool_of_a_package_inherits_from_a_placed_kafka(tmp_path: Path) -> None:
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


# Changes of the parent


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("parent", "files", "renders"),
    [
        pytest.param({"podSet": LABELLED, "pod": CALM}, [BROKERS, KAFKA], 2, id="a-property-of-one-pool"),
        pytest.param({"podSet": {}, "pod": URGENT}, [BROKERS, KAFKA, READERS], 3, id="a-property-of-both-pools"),
        pytest.param({"podSet": LABELLED}, [BROKERS, KAFKA], 2, id="a-deleted-property"),
        pytest.param(None, [BROKERS, KAFKA, READERS], 3, id="a-deleted-template"),
        pytest.param({**BOTH, "initContainer": {}}, [BROKERS, KAFKA, READERS], 3, id="an-added-empty-property"),
        pytest.param({**BOTH, "podDisruptionBudget": {"maxUnavailable": 0}}, [KAFKA], 1, id="a-property-of-kafka-only"),
    ],
)  # fmt: skip
def test_only_pools_that_inherit_the_changed_property_are_drafted(
    world: World, parent: Template | None, files: list[str], renders: int
) -> None:
    change_kafka(world, parent, "v2", "berlin")

    after = world.sync()

    assert [item for item in list_changed_files(world, "drafts/berlin") if not item.endswith("Kptfile")] == files
    assert after.changed_branches == {"drafts/berlin"}
    # Pools with an own value of the property are rendered too, with an equal result.
    assert renders <= after.report.render_count <= 3
    assert world.sync().is_unchanged


def test_a_property_deleted_from_the_kafka_is_deleted_from_its_pools(world: World) -> None:
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


def test_a_pool_that_sets_an_inherited_property_keeps_its_own_value(world: World) -> None:
    change_brokers(world, {"pod": URGENT})
    world.sync()
    publish(world)
    change_kafka(world, {"podSet": LABELLED, "pod": CALM})

    world.sync()

    assert template(world, "clusters/berlin", BROKERS) == BOTH
    assert BROKERS not in list_changed_files(world, "drafts/berlin")
    assert template(world, "drafts/lisbon", BROKERS) == {"podSet": LABELLED, "pod": CALM}


def test_packages_without_kafka_are_not_rendered(world: World) -> None:
    change_kafka(world, {}, "v2", "lisbon")

    after = world.sync()

    assert after.outcomes["lisbon/metrics"] == "published"
    assert after.report.render_count == 3


def test_a_pool_without_kafka_inherits_after_the_kafka_is_added(tmp_path: Path) -> None:
    world = template_world(tmp_path / "world")
    world.write({"kafka/berlin.yaml": None})
    before = world.sync()
    assert ("OrphanPool" in before.codes, template(world, "drafts/berlin", BROKERS)) == (True, None)

    request_revision(world, "kafka", "v1", "berlin")
    after = world.sync()

    assert ("OrphanPool" in after.codes, template(world, "drafts/berlin", BROKERS)) == (False, BOTH)
    assert world.sync().is_unchanged


def test_a_pool_can_move_to_another_kafka(world: World) -> None:
    world.release("other", "v1", bundle("other", kafka=kafka({"pod": CALM}, "metering")))
    request_revision(world, "other", "v1", "berlin")
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers", of="metering")))
    request_revision(world, "brokers", "v2", "berlin")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"pod": CALM}
    assert world.sync().is_unchanged


# The modes report and materialise


def test_an_annotation_can_limit_a_pool_to_reports(world: World) -> None:
    change_brokers(world, None, **{MODE: "report"})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) is None
    assert world.sync().is_unchanged
    publish(world)
    change_brokers(world, None, "v3")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == BOTH


def test_the_template_mode_can_be_changed_and_restored(tmp_path: Path) -> None:
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


# Blocked and removed parents

SOUND = {"podSet": LABELLED, "pod": CALM}
FAULTY: Template = {"podSet": {}, "pod": []}
UNFIT = {"podSet": {}, "pod": {"tmpDirSizeLimit": "lots"}}


def test_a_kafka_with_an_invalid_template_blocks_its_pools(world: World) -> None:
    change_kafka(world, FAULTY, "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert read_stable_outcomes(world) == dict.fromkeys(NAMES, "InvalidTemplateType")
    change_kafka(world, SOUND, "v3", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == SOUND
    assert read_stable_outcomes(world) == {"kafka": "drafted", "brokers": "drafted", "readers": "published"}


def test_an_invalid_property_of_a_kafka_blocks_only_the_pools_that_inherit_it(world: World) -> None:
    change_kafka(world, UNFIT, "v2", "berlin")

    world.sync()

    assert read_stable_outcomes(world) == {"kafka": "drafted", "brokers": "InvalidTemplateType", "readers": "drafted"}
    assert template(world, "drafts/berlin", BROKERS) == BOTH


def test_pools_inherit_from_the_published_kafka_while_its_new_version_is_blocked(world: World) -> None:
    """The error is in another pool of the Kafka's package. It blocks the package with its valid Kafka."""
    extra = pool("extra", {"pod": []})
    world.release("kafka", "v2", bundle("kafka", kafka=kafka({"podSet": {}}), extra=extra))
    request_revision(world, "kafka", "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert read_stable_outcomes(world) == {
        "kafka": "InvalidTemplateType",
        "brokers": "published",
        "readers": "published",
    }
    change_brokers(world, {"podSet": {}})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "pod": URGENT}
    assert read_stable_outcomes(world)["kafka"] == "InvalidTemplateType"


def test_two_packages_with_the_same_pool_block_each_other_until_one_removes_it(world: World) -> None:
    extra = {"extra": pool("extra")}
    world.release("kafka", "v2", bundle("kafka", kafka=kafka(BOTH), **extra))
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers"), **extra))
    request_revision(world, "kafka", "v2", "berlin")
    request_revision(world, "brokers", "v2", "berlin")

    after = world.sync()

    assert after.changed_branches == set()
    assert read_stable_outcomes(world) == {
        "kafka": "DuplicateObject",
        "brokers": "DuplicateObject",
        "readers": "published",
    }
    request_revision(world, "brokers", "v1", "berlin")
    world.sync()
    assert read_stable_outcomes(world) == {"kafka": "drafted", "brokers": "published", "readers": "published"}
    assert template(world, "drafts/berlin", "kafka/extra.yaml") == BOTH


def test_pools_inherit_from_the_published_kafka_while_its_render_fails(world: World) -> None:
    broken = bundle("kafka", kafka=kafka({"podSet": {}}), copy=kafka({"podSet": {}}).replace("shop", "../shop"))
    world.release("kafka", "v2", {**broken, "bad\\name.yaml": "a: b\n"})
    request_revision(world, "kafka", "v2", "berlin")

    world.sync()

    result = read_stable_outcomes(world)
    assert (result["brokers"], result["readers"]) == ("published", "published")
    assert result["kafka"] not in ("published", "drafted")


def test_pools_inherit_from_the_published_kafka_after_a_declined_draft(world: World) -> None:
    change_kafka(world, SOUND, "v2", "berlin")
    world.sync()
    world.delete("drafts/berlin")
    world.sync()

    result = read_stable_outcomes(world)

    assert (result["kafka"], world.head("drafts/berlin")) == ("declined", "")
    assert result["brokers"] == "declined"
    change_brokers(world, {"kafkaContainer": {}})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {**BOTH, "kafkaContainer": {}}
    assert list_changed_files(world, "drafts/berlin") == ["brokers/Kptfile", BROKERS]
    assert read_stable_outcomes(world)["kafka"] == "declined"
    change_kafka(world, {"podSet": {}}, "v3", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "kafkaContainer": {}}


def test_a_proposed_draft_is_not_changed(world: World) -> None:
    change_kafka(world, SOUND, "v2", "berlin")
    world.sync()
    world.run_review_action("propose", "berlin/kafka")

    assert set(read_stable_outcomes(world).values()) == {"drafted", "published"}
    change_kafka(world, {"podSet": LABELLED}, "v3", "berlin")
    assert world.sync().changed_branches == set()
    assert read_stable_outcomes(world) == {**dict.fromkeys(NAMES, "DownstreamProposed"), "readers": "published"}
    publish(world, "berlin")
    assert template(world, "clusters/berlin", BROKERS) == SOUND
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}


def test_pools_inherit_from_a_kafka_until_its_removal_is_merged(world: World) -> None:
    world.write({"kafka/berlin.yaml": None})

    world.sync()

    assert template(world, "clusters/berlin", BROKERS) == BOTH
    assert read_stable_outcomes(world)["brokers"] == "published"
    world.merge("berlin", "squash", draft="removals/berlin")
    after = world.sync()
    assert "OrphanPool" in after.codes
    assert template(world, "drafts/berlin", BROKERS) is None
    assert world.sync().is_unchanged


# Local changes


def write_pool_template(world: World, branch: str, path: str, template: Template | None, **replacements: str) -> None:
    """Change the template of a pool on a branch as a person, and replace other texts."""
    lines = world.text(branch, path).splitlines()
    begins = next((number for number, line in enumerate(lines) if line.startswith("  template:")), len(lines))
    text = "\n".join(lines[:begins]) + "\n" + (f"  template: {json.dumps(template)}\n" if template is not None else "")
    for old, new in replacements.items():
        text = text.replace(old, new)
    world.commit(branch, {path: text})


WHERE = pytest.mark.parametrize("branch", ["clusters/berlin", "drafts/berlin"])


def draft_brokers_and_kafka(world: World) -> None:
    """Draft new versions of the brokers and the Kafka on Berlin."""
    world.release("kafka", "v2", bundle("kafka", kafka=kafka(BOTH, version="4.1.0")))
    world.release("brokers", "v2", bundle("brokers", pool=pool("brokers", none="x")))
    request_revision(world, "kafka", "v2", "berlin")
    request_revision(world, "brokers", "v2", "berlin")
    world.sync()


@WHERE
def test_a_property_that_a_person_adds_stays(world: World, branch: str) -> None:
    draft_brokers_and_kafka(world)
    write_pool_template(world, branch, BROKERS, {**BOTH, "kafkaContainer": {"env": []}})
    change_kafka(world, SOUND, "v3", "berlin")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {**SOUND, "kafkaContainer": {"env": []}}
    assert world.sync().is_unchanged


@pytest.mark.slow
@WHERE
def test_an_inherited_property_that_a_person_changes_becomes_an_own_property(world: World, branch: str) -> None:
    change_kafka(world, {"pod": {**URGENT, "hostUsers": False}}, "v9", "berlin")
    world.sync()
    publish(world, "berlin")
    change_brokers(world, None, none="x")
    world.sync()
    write_pool_template(world, branch, BROKERS, {"pod": {**CALM, "hostUsers": False}})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == {"pod": {**CALM, "hostUsers": False}}
    assert world.sync().is_unchanged
    publish(world, "berlin")
    change_kafka(world, {"podSet": {}, "pod": URGENT}, "v10", "berlin")
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": {}, "pod": {**CALM, "hostUsers": False}}


@WHERE
def test_a_local_change_of_a_kafka_updates_its_pools(world: World, branch: str) -> None:
    draft_brokers_and_kafka(world)
    world.edit(branch, KAFKA, "urgent", "calm")

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == SOUND
    assert world.sync().is_unchanged
    publish(world, "berlin")
    assert template(world, "clusters/berlin", BROKERS) == SOUND


def test_an_inherited_property_that_a_person_deletes_is_restored(world: World) -> None:
    write_pool_template(world, "clusters/berlin", BROKERS, {"podSet": LABELLED})

    world.sync()

    assert template(world, "drafts/berlin", BROKERS) == BOTH
    overruled = [
        conflict
        for conflict in world.package_status("drafts/berlin", "brokers")["conflicts"]
        if conflict["kind"] == "field"
    ]
    assert [(item["rule"], item["pointer"]) for item in overruled] == [("templates", "/spec/template/pod")]
    assert world.sync().is_unchanged


# Lost state and races


def test_with_lost_state_inherited_properties_are_recognized(world: World) -> None:
    delete_state(world)

    after = world.sync()

    assert set(after.outcomes.values()) == {"published"}
    change_kafka(world, {"podSet": LABELLED})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert world.sync().is_unchanged


def test_with_lost_state_inherited_properties_of_a_draft_are_recognized(drafted: World) -> None:
    delete_state(drafted)

    drafted.sync()

    change_kafka(drafted, {"podSet": LABELLED})
    drafted.sync()
    assert template(drafted, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert drafted.sync().is_unchanged


def test_with_lost_state_a_local_change_stays(world: World) -> None:
    text = world.text("clusters/berlin", BROKERS)
    world.commit("clusters/berlin", {BROKERS: text.replace("replicas: 3", "replicas: 5")})
    delete_state(world)

    after = world.sync()

    assert "MaterialisedInput" not in after.codes
    change_kafka(world, {"podSet": LABELLED})
    world.sync()
    assert template(world, "drafts/berlin", BROKERS) == {"podSet": LABELLED}
    assert "replicas: 5" in world.text("drafts/berlin", BROKERS)


def test_two_concurrent_daemons_produce_the_same_templates(world: World) -> None:
    change_kafka(world, SOUND)

    world.sync_while(world.sync)

    assert [template(world, f"drafts/{cluster}", BROKERS) for cluster in CLUSTERS] == [SOUND, SOUND]
    assert world.sync().is_unchanged


def test_a_local_change_during_a_push_stays(world: World) -> None:
    change_kafka(world, SOUND)

    world.sync_while(lambda: write_pool_template(world, "clusters/berlin", BROKERS, {**BOTH, "kafkaContainer": {}}))

    world.sync_until_unchanged()
    assert template(world, "drafts/berlin", BROKERS) == {**SOUND, "kafkaContainer": {}}


# Other controllers


def test_a_new_merge_rule_renders_only_the_packages_with_its_kinds(world: World) -> None:
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
    request_revision(world, "ships", "v1", "lisbon")
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


def test_a_policy_on_a_kafka_of_one_cluster_updates_its_pools(world: World) -> None:
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


def test_a_rollout_updates_the_pools_in_waves(world: World) -> None:
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


def test_a_too_large_package_blocks_only_itself(world: World) -> None:
    deep = "/".join("d" for _ in range(210))
    world.commit("clusters/berlin", {f"kafka/{deep}/file": "x"})

    after = world.sync()

    assert after.outcomes["berlin/kafka"] == "PackageTooLarge"
    assert after.outcomes["berlin/brokers"] == "published"
    assert world.sync().is_unchanged


def test_deleting_a_drafted_kafka_removes_its_template_from_the_pools(drafted: World) -> None:
    drafted.write({"kafka/berlin.yaml": None})

    after = drafted.sync()

    assert template(drafted, "drafts/berlin", BROKERS) is None
    assert "OrphanPool" in after.codes
    assert drafted.sync().is_unchanged
