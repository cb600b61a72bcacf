"""Tests of template merges in a package: changed bytes, order of properties, report mode and provenance."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.controllers.kafka_templates.model import TemplateOptions
from reconciler.krm.yaml import parse_yaml
from reconciler.krm.yaml.compare import is_equal_data
from tests.unit.controllers.kafka_templates.template_builders import (
    MISSING,
    data_of,
    format_codes,
    kafka,
    merge,
    pair,
    pool,
    template_of,
    tree,
)

PARENT = """\
# the bus
apiVersion: kafka.strimzi.io/v1
kind: Kafka
metadata: {name: bus, namespace: lines}
spec:
  kafka:
    version: 4.1.0 # pinned
    template:
      pod: # for all
        priorityClassName: high   # platform
        terminationGracePeriodSeconds: 0
      podSet: {}
      podDisruptionBudget: {maxUnavailable: 1}
"""
CHILD = """\
# brokers of the bus
apiVersion: kafka.strimzi.io/v1beta2
kind: KafkaNodePool
metadata:
  name: brokers  # they are
  namespace: lines
  labels: {"strimzi.io/cluster": 'bus'}
spec:
  replicas: 3 # one per zone
  roles: [controller,   broker]
  storage: {type: ephemeral}

  template:
    # dumps help
    kafkaContainer:
      env:
        - {name: HEAP_DUMP, value: "on"} # quoted
  # the end
"""
MARKED = """\
  labels: {"strimzi.io/cluster": 'bus'}
  annotations:
    reconciler.dev/materialised-template: "true"
"""
LABELS = """  labels: {"strimzi.io/cluster": 'bus'}\n"""
INHERITED = """\
    podSet: {}
    pod:
      priorityClassName: high
      terminationGracePeriodSeconds: 0
"""


def test_only_the_template_and_the_annotation_change() -> None:
    package = merge({"kafka.yaml": PARENT, "pool.yaml": CHILD})

    assert format_codes(package.findings) == []
    assert package.files["kafka.yaml"].data.decode() == PARENT
    expected = CHILD.replace(LABELS, MARKED).replace("    # dumps help\n", f"{INHERITED}    # dumps help\n")
    assert package.files["pool.yaml"].data.decode() == expected


def test_pool_in_a_file_with_other_resources() -> None:
    other = "---\n# somebody else's\napiVersion: v1\nkind: ConfigMap\nmetadata: {name:   x}\n"

    package = merge({"all.yaml": f"{PARENT}---\n{CHILD}{other}"})

    text = package.files["all.yaml"].data.decode()
    assert text.startswith(PARENT)
    assert text.endswith(other)
    assert is_equal_data(parse_yaml(text).documents[1].data["spec"]["template"]["podSet"], {})


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        pytest.param(CHILD[CHILD.index("  template:") :], "", [*INHERITED.splitlines()], id="no-template"),
        pytest.param(CHILD[CHILD.index("  template:") :], "  template: {}\n", None, id="empty-template"),
        pytest.param(CHILD[CHILD.index("  template:") :], "  template:\n", None, id="null-template"),
        pytest.param(CHILD[CHILD.index("  template:") :], "  template: {podSet: ~}  # c\n", None, id="null-property"),
    ],
)
def test_template_is_inherited(old: str, new: str, expected: list[str] | None) -> None:
    package = merge({"kafka.yaml": PARENT, "pool.yaml": CHILD.replace(old, new)})

    pod = {"priorityClassName": "high", "terminationGracePeriodSeconds": 0}
    assert is_equal_data(template_of(package), {"podSet": {}, "pod": pod})
    assert [line for line in expected or [] if line not in package.files["pool.yaml"].data.decode().splitlines()] == []


def test_json_file_is_merged() -> None:
    child = json.dumps(parse_yaml(CHILD).documents[0].data, indent=4) + "\n"

    package = merge({"kafka.yaml": PARENT, "pool.json": child})

    text = package.files["pool.json"].data.decode()
    assert {*json.loads(text)["spec"]["template"]} == {"podSet", "pod", "kafkaContainer"}
    assert [line for line in child.splitlines() if line.strip(" ,") not in text] == []


@pytest.mark.parametrize("child", [MISSING, {"pod": {}}, {"podSet": {"metadata": {}}, "pod": {"hostUsers": False}}])
def test_pool_that_inherits_nothing_keeps_its_bytes(child: Any) -> None:
    package = pair({"podDisruptionBudget": {}}, child)

    assert package.files["pool.yaml"].data.decode() == pool(child)
    assert package.as_data() == []


def test_existing_annotations_are_kept() -> None:
    package = pair({"pod": {}}, MISSING, annotations={"a": "b"})

    assert data_of(package)["metadata"]["annotations"] == {"a": "b", "reconciler.dev/materialised-template": "true"}


REPORT = {"reconciler.dev/template-mode": "report"}
MATERIALISE = {"reconciler.dev/template-mode": "materialise"}


@pytest.mark.parametrize(
    ("options", "annotations", "is_written"),
    [
        pytest.param(TemplateOptions(), {}, True, id="by-default"),
        pytest.param(TemplateOptions(), REPORT, False, id="pool-annotation-report"),
        pytest.param(TemplateOptions("report"), {}, False, id="report-for-all"),
        pytest.param(TemplateOptions("report"), MATERIALISE, True, id="pool-annotation-overrides-report"),
    ],
)
def test_template_mode(options: TemplateOptions, annotations: dict[str, str], is_written: bool) -> None:
    files = {
        "kafka.yaml": kafka({"pod": {"hostUsers": False}}),
        "pool.yaml": pool({"podSet": {}}, annotations=annotations),
    }

    package = merge(files, options=options)

    (effect,) = package.effects
    assert (package.files != tree(files)) is is_written
    assert dict(effect.template) == {"podSet": {}, "pod": {"hostUsers": False}}
    assert effect.as_data().get("template") == (None if is_written else effect.template)
    assert bool(package.as_data()) is is_written


def test_unknown_mode_is_an_error() -> None:
    package = pair({}, {}, annotations={"reconciler.dev/template-mode": "Report"})

    (finding,) = package.findings
    assert finding.code == "TemplateModeInvalid"
    assert finding.message == 'reconciler.dev/template-mode must be "materialise" or "report", but is "Report"'


def test_error_leaves_the_package_unchanged() -> None:
    files = {"kafka.yaml": kafka({"pod": {}}), "a.yaml": pool(name="a"), "b.yaml": pool({"pod": 1}, name="b")}

    package = merge(files)

    assert format_codes(package.findings) == ["E InvalidTemplateType"]
    assert package.files == tree(files)
    assert [template_effect.child.key.name for template_effect in package.effects] == ["a"]


def test_package_without_pairs_is_returned_unchanged() -> None:
    files = tree({"x.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x}\n", "readme.md": "hello"})

    package = merge(files)

    assert package.files is files
    assert (package.resources, package.findings, package.dependencies) == ((), (), ())


@pytest.mark.parametrize("unknown", ["bridge", "podSets"])
def test_unknown_properties_are_reported(unknown: str) -> None:
    package = pair({unknown: {}, "podDisruptionBudget": {}}, {unknown: {}, "podDisruptionBudget": {}})

    assert format_codes(package.findings) == ["W UnknownTemplateProperty"] * 3
    assert f"spec.kafka.template.{unknown} is an unknown property" in package.findings[0].message
    assert (
        f"spec.template.{unknown} is ignored, because it is an unknown property; allowed properties: podSet, pod, "
        in package.findings[1].message
    )
    assert "podDisruptionBudget can only be set in the Kafka object" in package.findings[2].message
    assert template_of(package) is MISSING


def test_provenance() -> None:
    parent = {"pod": {"priorityClassName": "high"}, "kafkaContainer": {"securityContext": {"runAsUser": 1}}}
    child: Any = {"kafkaContainer": {"env": []}, "podSet": None, "podDisruptionBudget": {"maxUnavailable": 2}}

    package = pair(parent, child)

    mapping = {
        item["pointer"]: [[step["by"], step["where"], step["op"]] for step in item["steps"]]
        for item in package.as_data()
    }
    of_kafka, of_pool, of_rule = (
        "Kafka/shop/orders",
        "KafkaNodePool/shop/brokers",
        "TemplateMergeRule/_cluster/kafka-node-pool",
    )
    container = "/spec/template/kafkaContainer"
    assert mapping == {
        "/metadata/annotations/reconciler.dev~1materialised-template": [[of_rule, "spec.child", "added"]],
        f"{container}/env": [[of_pool, "spec.template.kafkaContainer", "added"]],
        f"{container}/securityContext/runAsUser": [
            [of_kafka, "spec.kafka.template.kafkaContainer", "added"],
            [of_pool, "spec.template.kafkaContainer", "removed"],
        ],
        "/spec/template/pod/priorityClassName": [[of_kafka, "spec.kafka.template.pod", "added"]],
        "/spec/template/podDisruptionBudget/maxUnavailable": [[of_rule, "spec.properties", "removed"]],
        "/spec/template/podSet": [[of_rule, "spec.properties", "removed"]],
    }
    assert {(item["file"], item["resource"]) for item in package.as_data()} == {("pool.yaml", of_pool)}


def test_provenance_of_a_reset() -> None:
    package = pair({"pod": {"priorityClassName": "high"}}, {"pod": {}})

    (entry,) = package.as_data()
    assert [step["op"] for step in entry["steps"]] == ["added", "removed"]


@pytest.mark.parametrize(
    "template",
    [pytest.param("{<<: *shared, podSet: {}}", id="merge-key"), pytest.param("*shared", id="alias")],
)
def test_anchors_are_read_before_the_merge(template: str) -> None:
    shared = "  shared: &shared {podSet: {}, kafkaContainer: {env: []}}\n"
    child = CHILD[: CHILD.index("  template:")] + f"{shared}  template: {template}\n"

    package = merge({"kafka.yaml": PARENT, "pool.yaml": child})

    pod = {"priorityClassName": "high", "terminationGracePeriodSeconds": 0}
    assert is_equal_data(template_of(package), {"podSet": {}, "pod": pod, "kafkaContainer": {"env": []}})
    assert shared in package.files["pool.yaml"].data.decode()


def test_duplicate_key_is_reported_and_the_file_stays() -> None:
    files = {"kafka.yaml": PARENT, "pool.yaml": CHILD + "  template: {}\n"}

    package = merge(files)

    assert package.files == tree(files)
    assert format_codes(package.findings) == ["E NoUsablePool"]
