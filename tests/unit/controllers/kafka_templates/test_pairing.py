"""Tests of pairing: which pools belong to which Kafka on a cluster, and the findings about pools without a Kafka."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.controllers.kafka_templates.pairing import find_pairs
from tests.unit.controllers.kafka_templates.template_builders import (
    MISSING,
    PACKAGE,
    find_resource,
    format_codes,
    kafka,
    key,
    merge,
    pool,
    template_of,
    tree,
)

TEMPLATE = {"pod": {"priorityClassName": "high"}}
KAFKA = kafka(TEMPLATE)


def add_local_config_annotation(text: str) -> str:
    mark = '  annotations: {config.kubernetes.io/local-config: "true"}\n'
    return text.replace("metadata:\n", f"metadata:\n{mark}", 1)


@pytest.mark.parametrize(
    ("parent", "child", "values"),
    [
        pytest.param(KAFKA, pool(), [], id="by-label-and-namespace"),
        pytest.param(kafka(TEMPLATE, version="v1beta2"), pool(), [], id="v1beta2-with-v1"),
        pytest.param(KAFKA, pool(version="v1beta2"), [], id="v1-with-v1beta2"),
        pytest.param(kafka(TEMPLATE, namespace=""), pool(namespace=""), [], id="without-a-namespace"),
    ],
)
def test_pool_inherits_from_its_kafka(parent: str, child: str, values: list[str]) -> None:
    package = merge({"kafka.yaml": parent, "pool.yaml": child})

    assert template_of(package) == TEMPLATE
    assert format_codes(package.findings) == values


@pytest.mark.parametrize(
    ("parent", "child", "text"),
    [
        pytest.param(KAFKA, pool(cluster=MISSING), "W PoolWithoutCluster", id="no-label"),
        pytest.param(KAFKA, pool(cluster=""), "W PoolWithoutCluster", id="empty-label"),
        pytest.param(KAFKA, pool(cluster=7), "W PoolWithoutCluster", id="a-label-that-is-no-text"),
        pytest.param(KAFKA, pool(cluster="Orders"), "W OrphanPool", id="case-matters"),
        pytest.param(KAFKA, pool(namespace="other"), "W OrphanPool", id="another-namespace"),
        pytest.param(KAFKA, pool(namespace=""), "W OrphanPool", id="only-the-pool-has-no-namespace"),
        pytest.param(kafka(TEMPLATE, namespace=""), pool(), "W OrphanPool", id="only-the-kafka-has-no-namespace"),
        pytest.param(add_local_config_annotation(KAFKA), pool(), "W OrphanPool", id="local-config-is-no-parent"),
        pytest.param("a: 1\n", pool(), "W OrphanPool", id="a-kafka-that-comes-later"),
        pytest.param(kafka(TEMPLATE, version="v2"), pool(), "W OrphanPool", id="a-kafka-of-another-version"),
        pytest.param(KAFKA, pool(version="v1alpha1"), "W TemplateVersionUnknown", id="a-pool-of-another-version"),
        pytest.param(KAFKA, add_local_config_annotation(pool(cluster="elsewhere")), None, id="a-local-pool"),
    ],
)
def test_pool_without_kafka_keeps_its_bytes(parent: str, child: str, text: str | None) -> None:
    package = merge({"kafka.yaml": parent, "pool.yaml": child})

    assert package.files["pool.yaml"].data.decode() == child
    values = [code for code in format_codes(package.findings) if code not in ("E NoUsablePool",)]
    assert [item for item in values if item != "W TemplateVersionUnknown" or text == item] == ([text] if text else [])


def test_orphan_finding_names_the_kafka_in_another_namespace() -> None:
    package = merge({"k.yaml": KAFKA, "p.yaml": pool(), "stray.yaml": pool(name="stray", namespace="lake")})

    (orphan,) = package.findings
    assert (
        "which does not exist on this cluster; this label can only refer to a Kafka in the same namespace, not to Kafka shop/orders"
        in orphan.message
    )
    assert (orphan.location.file, orphan.location.pointer) == ("stray.yaml", "/metadata/labels/strimzi.io~1cluster")


def test_pairs_across_packages() -> None:
    package = merge({"pool.yaml": pool()}, {"operators": {"kafka.yaml": KAFKA}})

    assert template_of(package) == TEMPLATE
    assert package.dependencies == (key("orders", "Kafka"), key("brokers"))


def test_pools_inherit_from_their_own_kafka() -> None:
    files = {
        "a.yaml": kafka({"pod": {"priorityClassName": "a"}}, name="a") + "---\n" + pool(name="x", cluster="a"),
        "b.yaml": kafka({"pod": {"priorityClassName": "b"}}, name="b") + "---\n" + pool(name="y", cluster="b"),
        "c.yaml": kafka({"pod": {"priorityClassName": "c"}}, name="a", namespace="n")
        + "---\n"
        + pool(name="x", cluster="a", namespace="n"),
    }

    package = merge(files)

    values = [
        templated_resource.document.data["spec"]["template"]["pod"]["priorityClassName"]
        for templated_resource in package.resources
        if templated_resource.effect
    ]
    assert values == ["a", "b", "c"]
    assert package.findings == ()


@pytest.mark.parametrize(
    ("files", "value", "values"),
    [
        pytest.param(
            {"a.yaml": pool(), "b.yaml": pool(), "k.yaml": KAFKA}, {}, {"brokers", "orders"}, id="pools-in-a-package"
        ),
        pytest.param(
            {"a.yaml": pool(), "k.yaml": KAFKA}, {"z": {"b.yaml": pool()}}, {"brokers", "orders"}, id="pools-across"
        ),
        pytest.param({"a.yaml": pool()}, {"y": {"k.yaml": KAFKA}, "z": {"k.yaml": KAFKA}}, {"brokers"}, id="kafkas"),
        pytest.param(
            {"a.yaml": pool(), "k.yaml": KAFKA},
            {"z": {"b.yaml": pool(version="v1beta2")}},
            {"brokers", "orders"},
            id="another-version-is-the-same-object",
        ),
    ],
)
def test_duplicate_objects_have_no_effect(files: Any, value: Any, values: set[str]) -> None:
    package = merge(files, value)

    assert package.files == tree(files)
    duplicates = {
        finding.location.object.rpartition("/")[2] for finding in package.findings if finding.code == "DuplicateObject"
    }
    without = {
        finding.location.object.rpartition("/")[2] for finding in package.findings if finding.code == "NoUsablePool"
    }
    assert duplicates | without == values
    assert package.effects == ()


def test_duplicate_finding_lists_all_files() -> None:
    package = merge({"a.yaml": pool()}, {"more": {"x/b.yaml": pool()}})

    (finding,) = package.findings
    message = (
        "KafkaNodePool shop/brokers must be unique on a cluster, but is in the files more/x/b.yaml, streaming/a.yaml"
    )
    assert finding.message == message


@pytest.mark.parametrize(
    ("parent", "pools", "values"),
    [
        pytest.param(kafka(), [], ["NoUsablePool"], id="no-pools"),
        pytest.param(kafka(version="v1beta2"), [], ["NoUsablePool"], id="no-pools-of-v1beta2"),
        pytest.param(kafka(version="v1beta2", replicas=3), [], [], id="nodes-of-its-own"),
        pytest.param(kafka(), [pool(replicas=0)], ["NoUsablePool"], id="no-replicas"),
        pytest.param(kafka(), [pool(replicas=0), pool(name="more")], [], id="some-replicas"),
        pytest.param(kafka(), [pool(roles=["broker"])], ["NoControllerPool"], id="no-controller"),
        pytest.param(kafka(), [pool(roles=["controller"])], ["NoBrokerPool"], id="no-broker"),
        pytest.param(
            kafka(),
            [pool(roles=["broker"]), pool(name="c", roles=["controller"], replicas=0)],
            ["NoControllerPool"],
            id="a-controller-without-replicas",
        ),
        pytest.param(kafka(), [pool(name="b", roles=["broker"]), pool(name="c", roles=["controller"])], [], id="both"),
        pytest.param(kafka(), [pool(), pool(name="b", roles=[])], ["PoolWithoutRole"], id="no-role"),
        pytest.param(kafka(), [pool(), pool(name="b", roles=["zookeeper"])], ["PoolWithoutRole"], id="unknown-role"),
    ],
)
def test_required_roles_and_replicas(parent: str, pools: list[str], values: list[str]) -> None:
    package = merge({"k.yaml": parent, **{f"p{number}.yaml": text for number, text in enumerate(pools)}})

    assert format_codes(package.findings) == [f"E {code}" for code in values]


def test_missing_role_does_not_hide_the_effect() -> None:
    package = merge({"k.yaml": kafka(TEMPLATE), "p.yaml": pool(roles=["broker"])})

    assert format_codes(package.findings) == ["E NoControllerPool"]
    assert [dict(template_effect.template) for template_effect in package.effects] == [TEMPLATE]
    assert package.files["p.yaml"].data.decode() == pool(roles=["broker"])


def test_colliding_component_names_are_errors() -> None:
    first = {"a.yaml": kafka(name="a"), "p.yaml": pool(name="b-c", cluster="a")}
    second = {"b.yaml": kafka(name="a-b"), "q.yaml": pool(name="c", cluster="a-b")}

    package = merge({**first, **second})
    apart = merge(
        {**first, "b.yaml": kafka(name="a-b", namespace="n"), "q.yaml": pool(name="c", cluster="a-b", namespace="n")}
    )

    assert format_codes(package.findings) == ["E ComponentNameCollision"] * 2
    assert {finding.location.object for finding in package.findings} == {
        "KafkaNodePool/shop/b-c",
        "KafkaNodePool/shop/c",
    }
    assert apart.findings == ()


def test_digest_changes_only_with_the_inherited_values() -> None:
    base = find_pairs({PACKAGE: tree({"k.yaml": KAFKA, "p.yaml": pool()})})

    def pair_with(parent: str, *more: str) -> Any:
        return find_pairs(
            {PACKAGE: tree({"k.yaml": parent, "p.yaml": pool(), **{f"m{i}.yaml": t for i, t in enumerate(more)}})}
        )

    orders, brokers = key("orders", "Kafka"), key("brokers")
    same = [
        pair_with(kafka({**TEMPLATE, "podDisruptionBudget": {"maxUnavailable": 1}})),
        pair_with(kafka(TEMPLATE, config={"a": "b"})),
        pair_with(KAFKA, pool(name="more", roles=["broker"])),
    ]
    different = [
        pair_with(kafka({"pod": {}})),
        pair_with(kafka({})),
        pair_with(kafka(TEMPLATE, rack={"topologyKey": "zone"})),
        pair_with(kafka(TEMPLATE, listeners=[{"name": "x", "type": "nodeport"}])),
        pair_with(kafka(TEMPLATE, jvmOptions={})),
        pair_with(kafka(TEMPLATE, name="another")),
    ]

    assert {item.compute_digest(orders) for item in same} == {base.compute_digest(orders)}
    assert base.compute_digest(orders) not in {item.compute_digest(orders) for item in different}
    assert base.compute_digest(brokers) != pair_with(KAFKA, pool()).compute_digest(brokers)
    assert len({item.compute_digest(orders) for item in different}) == len(different)


def test_dependencies_include_missing_kafkas() -> None:
    package = merge({"k.yaml": KAFKA, "p.yaml": pool(), "q.yaml": pool(name="stray", cluster="nobody")})

    assert package.dependencies == (key("nobody", "Kafka"), key("orders", "Kafka"), key("brokers"), key("stray"))
    assert find_resource(package, "stray").dependencies == (key("stray"), key("nobody", "Kafka"))


@pytest.mark.slow
def test_kafka_change_updates_only_the_pools_that_inherit() -> None:
    names = [f"kafka-{number:02}" for number in range(50)]

    def build_files(changed: str, value: str) -> dict[str, str]:
        texts = {}
        for name in names:
            texts[f"{name}.yaml"] = kafka(
                {"pod": {"priorityClassName": value if name == changed else "low"}}, name=name
            )
            for number in range(6):
                own = {"pod": {}} if number == 1 else {"kafkaContainer": {"env": []}} if number == 2 else MISSING
                texts[f"{name}-{number}.yaml"] = pool(own, name=f"p{number}", cluster=name, namespace="shop").replace(
                    f"name: p{number}", f"name: {name}-p{number}"
                )
        return texts

    before, after = merge(build_files("", "")), merge(build_files("kafka-07", "high"))

    moved = [path for path in before.files if before.files[path] != after.files[path]]
    assert moved == ["kafka-07-0.yaml", *(f"kafka-07-{number}.yaml" for number in (2, 3, 4, 5)), "kafka-07.yaml"]
