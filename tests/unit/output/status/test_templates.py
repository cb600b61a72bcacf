"""Tests of the text about templates: possible restarts first, then the decisive source, then hidden settings."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates.effective_templates import TemplateChange, find_template_changes
from reconciler.controllers.kafka_templates.model import TemplateOptions
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import parse_yaml
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commit_messages import format_draft_message, parse_templates
from reconciler.output.explain.builder import explain
from reconciler.output.explain.formats import format_explanation
from reconciler.output.explain.result import build_explanation_result
from reconciler.output.plan.formats import format_plan_markdown, format_plan_text
from reconciler.output.plan.overview import build_plan_result
from reconciler.output.status.package_sections import (
    build_changed_children,
    format_children,
    format_folded_settings,
    format_settings_to_repeat,
    format_template_changes,
)
from reconciler.output.status.package_status import build_package_status
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.planning.model.outcomes import Draft, FilesStage, PackageRender
from reconciler.planning.model.sources import PackageSource
from tests.unit.controllers.kafka_templates.template_builders import PACKAGE, kafka, key, merge, pool, tree
from tests.unit.output.builders import (
    CONFIG,
    build_draft,
    build_explained_sources,
    build_fleet_plan,
    build_target,
    build_target_plan,
    build_variant,
    read_json,
)

POD = {"priorityClassName": "high"}
CONTAINER = {"env": [{"name": "TZ", "value": "UTC"}], "securityContext": {"runAsUser": 7}}
OWN = {"env": [{"name": "HEAP", "value": "on"}]}
BROKERS, LAST = key("brokers"), key("last")
OF = "KafkaNodePool shop/brokers (parent Kafka shop/orders"
HIDES = f"{OF}, template is written): kafkaContainer from pool hides env[TZ], securityContext.runAsUser; pod from kafka"
RESTARTS = "KafkaNodePool shop/brokers: pods restart: pod changed (affects Pod)"
REPEAT = [
    "# KafkaNodePool shop/brokers: template that repeats the inherited settings",
    "  spec:",
    "    template:",
    "      kafkaContainer:",
    "        env:",
    "        - name: TZ",
    "          value: UTC",
    "        - name: HEAP",
    '          value: "on"',
    "        securityContext:",
    "          runAsUser: 7",
]


def build_files(pod: Mapping[str, Any] | None = None, own: Any = None) -> dict[str, str]:
    shared = {"pod": POD if pod is None else pod, "kafkaContainer": CONTAINER}
    return {"kafka.yaml": kafka(shared), "pool.yaml": pool({"kafkaContainer": OWN} if own is None else own)}


def build_render(options: TemplateOptions | None = None, own: Any = None) -> PackageRender:
    """Return a package whose Kafka received another priority class, so that its pool inherits it."""
    package = merge(build_files(own=own), options=options)
    before, now = (
        find_pairs({PACKAGE: tree(item)})
        for item in (build_files({"priorityClassName": "low"}, own), build_files(own=own))
    )
    plain = tree(build_files(own=own))
    return PackageRender(
        package.files, templates=package, template_changes=find_template_changes(before, now), findings=package.findings,
        source=PackageSource(plain, plain, plain), stages=(FilesStage("template", package.files),),
    )  # fmt: skip


def build_changed_draft(*, is_new: bool = False, **options: Any) -> Draft:
    package_render = build_render(TemplateOptions(**options))
    before = FileTree() if is_new else merge(build_files({"priorityClassName": "low"})).files
    return build_draft(before, package_render.files, rendered=package_render, task="edit", causes=("variant",))


def format_message(new_draft: Draft) -> str:
    return format_draft_message(
        new_draft, build_target(), CONFIG, compare_packages(new_draft.previous_files, new_draft.rendered.files)
    )


def read_status(new_draft: Draft) -> dict[str, Any]:
    value: dict[str, Any] = (
        parse_yaml(build_package_status(new_draft, build_target(), CONFIG)).documents[0].data["status"]
    )
    return value


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            TemplateChange(BROKERS, ("pod", "podSet"), ("Pod", "StrimziPodSet"), True),
            "KafkaNodePool shop/brokers: pods restart: pod, podSet changed (affects Pod, StrimziPodSet)",
            id="pods-restart",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("podSet",), ("StrimziPodSet",), False),
            "KafkaNodePool shop/brokers: pods do not restart: podSet changed (affects StrimziPodSet)",
            id="no-pods-restart",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("perPodIngress",), (), False),
            "KafkaNodePool shop/brokers: pods do not restart: perPodIngress changed (affects no existing resource)",
            id="without-effect",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("cache",), (), None),
            "KafkaNodePool shop/brokers: pods may restart (unknown kind): cache changed",
            id="unknown-kinds",
        ),
        pytest.param(
            TemplateChange(BROKERS, (), (), False, key("old", "Kafka")),
            "KafkaNodePool shop/brokers: the parent changed from Kafka shop/old, so the operator creates new pods",
            id="it-moves",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("pod",), ("Pod",), True, key("old", "Kafka")),
            "KafkaNodePool shop/brokers: the parent changed from Kafka shop/old, so the operator creates new pods;"
            " pod changed (affects Pod)",
            id="it-moves-and-changes",
        ),
    ],
)
def test_template_change_is_one_line(change: TemplateChange, expected: str) -> None:
    assert format_template_changes((change,), 5) == (expected,)


def test_possible_restarts_come_first() -> None:
    calm = TemplateChange(BROKERS, ("podSet",), ("StrimziPodSet",), False)
    moved = replace(calm, child=LAST, properties=(), previous_parent=key("old", "Kafka"))
    rolls, unknown = (replace(calm, child=key(name), restarts_pods=value) for name, value in (("x", True), ("y", None)))
    lines = format_template_changes((calm, unknown, rolls, moved), 5)

    assert [line.partition(":")[0] for line in lines] == [
        str(template_change.child) for template_change in (moved, rolls, unknown, calm)
    ]
    assert format_template_changes((calm, unknown, rolls), 2) == (
        lines[1], "and 2 more",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own", "options", "expected"),
    [
        pytest.param({"kafkaContainer": OWN}, TemplateOptions(), HIDES, id="what-is-hidden-stands-first"),
        pytest.param(
            {}, TemplateOptions(), f"{OF}, template is written): pod, kafkaContainer from kafka", id="all-inherited"
        ),
        pytest.param(
            {},
            TemplateOptions("report"),
            f"{OF}, template is only reported): pod, kafkaContainer from kafka",
            id="only-reported",
        ),
        pytest.param(
            {"pod": {}},
            TemplateOptions(),
            f"{OF}, template is written): pod from pool-reset hides priorityClassName; kafkaContainer from kafka",
            id="a-reset",
        ),
        pytest.param(
            {"podSet": {"metadata": {}}},
            TemplateOptions(),
            f"{OF}, template is written): podSet from pool; pod, kafkaContainer from kafka",
            id="its-own",
        ),
    ],
)
def test_sources_of_template_properties_are_one_line(own: Any, options: TemplateOptions, expected: str) -> None:
    package_render = build_render(options, own)

    assert package_render.templates is not None
    assert format_children([template_effect.as_data() for template_effect in package_render.templates.effects], 5) == (
        expected,
    )


def test_child_without_template_has_a_message() -> None:
    package = merge({"kafka.yaml": kafka(), "pool.yaml": pool()})

    assert format_children([template_effect.as_data() for template_effect in package.effects], 5) == (
        f"{OF}, template is written): no template",
    )


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(None, id="nothing"),
        pytest.param("all", id="a-text"),
        pytest.param([7, {"resource": "a"}, {"parent": "b"}, {"resource": {}, "parent": 1}], id="no-children"),
    ],
)
def test_invalid_status_file_has_no_template_lines(recorded: object) -> None:
    assert (
        format_children(recorded, 5),
        list(format_settings_to_repeat(recorded)),
        format_folded_settings(recorded),
    ) == ((), [], [])


def test_text_from_status_files_stays_on_one_line() -> None:
    mapping = {
        "resource": "a\nb",
        "parent": "p",
        "mode": ["x"],
        "properties": [{"name": "n\tm", "source": 7}],
        "toRepeat": "k: \x1b",
    }

    assert format_children([mapping], 5) == ("a⏎b (parent p): n\\tm from ",)
    assert list(format_settings_to_repeat([mapping])) == [
        "# a⏎b: template that repeats the inherited settings",
        "  k: \\x1b",
    ]


def test_yaml_to_repeat_is_shown_when_settings_are_hidden() -> None:
    assert list(format_settings_to_repeat(build_changed_children(build_changed_draft()))) == REPEAT
    assert format_folded_settings(build_changed_children(build_changed_draft()))[1:4] == [
        "<details><summary>Templates that repeat the inherited settings</summary>", "", "```yaml\n" + "\n".join(REPEAT) + "\n```",
    ]  # fmt: skip


def test_reset_hides_settings_intentionally() -> None:
    package = merge(build_files(own={"pod": {}}))

    assert list(format_settings_to_repeat([template_effect.as_data() for template_effect in package.effects])) == []


# Commit messages, plans and status files


def test_commit_message_shows_restarts_before_changes() -> None:
    text = format_message(build_changed_draft())

    assert f"\n\nTemplates:\n- {RESTARTS}\n\nChanged:\n" in text
    assert f"\n\nChildren:\n- {HIDES}\n\nWhy:\n" in text
    assert parse_templates(text) == (RESTARTS,)


def test_commit_message_without_templates_has_no_template_section() -> None:
    text = format_message(build_draft({}, {"a.yaml": "a: 1\n"}))

    assert "Templates:" not in text
    assert "Children:" not in text
    assert parse_templates(text) == ()


@pytest.mark.parametrize(
    ("new_draft", "expected"),
    [
        pytest.param(build_changed_draft(), [HIDES], id="what-changed"),
        pytest.param(
            replace(build_changed_draft(), rendered=replace(build_render(), template_changes=())), [], id="what-did-not"
        ),
        pytest.param(
            replace(build_changed_draft(is_new=True), rendered=replace(build_render(), template_changes=())),
            [HIDES],
            id="what-is-new",
        ),
    ],
)
def test_changed_children_of_a_draft(new_draft: Draft, expected: list[str]) -> None:
    assert [*format_children(build_changed_children(new_draft), 5)] == expected


def test_plan_contains_templates_in_every_format() -> None:
    plan = build_plan_result(build_fleet_plan(build_target_plan(build_changed_draft())), 0)
    text, (change,) = format_plan_text(plan).splitlines(), read_json(plan)["items"]

    at = text.index(f"  templates: {RESTARTS}")
    assert text[at - 1] == "re-render eu-1/gw (PackageVariant default/edge-gw)"
    assert f"  child: {HIDES}" in text
    assert text[-len(REPEAT) :] == [f"  {line}" for line in REPEAT]
    assert f"- `templates: {RESTARTS}`\n" in format_plan_markdown(plan)
    assert "<summary>Templates that repeat the inherited settings</summary>" in format_plan_markdown(plan)
    assert change["templateChanges"] == [
        {
            "resource": "KafkaNodePool/shop/brokers", "properties": ["pod"], "affectedKinds": ["Pod"],
            "restartsPods": True,
        }
    ]  # fmt: skip
    assert [template["resource"] for template in change["templates"]] == ["KafkaNodePool/shop/brokers"]


def test_equal_files_with_different_restarts_are_separate_groups() -> None:
    result = build_changed_draft(mode="report")
    (change,) = result.rendered.template_changes
    calm = replace(result.rendered, template_changes=(replace(change, restarts_pods=False),))
    other = replace(result, rendered=calm, variant=build_variant("edge-gw", "us-1"))
    plan = build_fleet_plan(build_target_plan(result), build_target_plan(other, name="us-1"))

    assert len(build_plan_result(plan, 0).changes) == 2


def test_status_file_contains_templates_and_not_their_changes() -> None:
    result = build_changed_draft()
    other = replace(result, rendered=replace(result.rendered, template_changes=()))

    assert read_status(result) == read_status(other)
    assert [(template["resource"], template["mode"]) for template in read_status(result)["templates"]] == [
        ("KafkaNodePool/shop/brokers", "materialise")
    ]
    assert read_status(result)["templates"][0]["toRepeat"].startswith("spec:\n  template:\n    kafkaContainer:\n")
    assert "templateChanges" not in read_status(result)


@pytest.mark.parametrize(
    ("package_render", "other", "is_same"),
    [
        pytest.param(build_render(), build_render(), True, id="the-same"),
        pytest.param(
            build_render(TemplateOptions("report")),
            build_render(TemplateOptions("report"), {}),
            False,
            id="another-report",
        ),
        pytest.param(build_render(), build_render(own={}), True, id="what-is-written-the-tree-tells"),
    ],
)
def test_template_report_is_part_of_the_review_digest(
    package_render: PackageRender, other: PackageRender, is_same: bool
) -> None:
    assert (package_render.review_digest == other.review_digest) is is_same


def test_secret_in_a_template_is_masked_everywhere() -> None:
    manifest = "apiVersion: v1\nkind: Secret\nstringData: {password: hunter2}\n"
    own = {"kafkaContainer": {"env": [{"name": "MANIFEST", "value": manifest}]}}
    new_draft = build_draft({}, {}, rendered=build_render(TemplateOptions("report"), own))
    plan = build_fleet_plan(build_target_plan(new_draft))
    known = ReRenderedPackage("eu-1/gw", CONFIG, {}, build_variant().owner, build_variant(), new_draft.rendered)
    package_explanation = explain(known, "KafkaNodePool/brokers")
    values = [
        str(read_status(new_draft)),
        format_message(new_draft),
        format_plan_text(build_plan_result(plan, 0)),
        build_plan_result(plan, 0).to_json(),
        build_explanation_result(package_explanation).to_json(),
    ]

    assert [text for text in values if "hunter2" in text] == []
    assert read_status(new_draft)["templates"][0]["template"]["kafkaContainer"]["env"][0]["value"] == "*****"


# Explanations


def build_explained_package(**options: Any) -> ReRenderedPackage:
    objects = read_catalog(tree({"kafka.yaml": kafka({"pod": POD, "kafkaContainer": CONTAINER})})).objects
    variant, sources = build_variant(), build_explained_sources(build_variant())
    rendered = build_render(TemplateOptions(**options))
    return ReRenderedPackage("eu-1/gw", CONFIG, objects, variant.owner, variant, rendered, sources=sources)


def test_inherited_value_is_explained_by_its_kafka() -> None:
    text = format_explanation(
        build_explanation_result(explain(build_explained_package(), "KafkaNodePool/brokers", "/spec/template/pod"))
    )

    assert (
        "KafkaNodePool/shop/brokers /spec/template/pod/priorityClassName in pool.yaml: high\n"
        "  1. template  added high  Kafka/shop/orders (kafka.yaml:10 spec.kafka.template.pod.priorityClassName)  wins\n"
    ) in text


def test_replaced_value_is_explained_after_the_inherited_value() -> None:
    (value,) = explain(
        build_explained_package(), "KafkaNodePool/brokers", "/spec/template/kafkaContainer/env/0/name"
    ).values[-1:]

    assert [(step.layer, step.set_by, step.before, step.after) for step in value.steps] == [
        ("template", "Kafka/shop/orders", ABSENT, "TZ"),
        ("upstream", "catalog/gateway gateway/v4", "TZ", "HEAP"),
    ]


def test_explanation_of_a_pool_contains_its_hidden_settings() -> None:
    package_explanation = explain(build_explained_package(), "KafkaNodePool/brokers")

    assert format_explanation(build_explanation_result(package_explanation)).endswith(
        "\n".join([HIDES, *REPEAT]) + "\n"
    )
    assert [
        template["resource"]
        for template in read_json(build_explanation_result(package_explanation))["summary"]["templates"]
    ] == ["KafkaNodePool/shop/brokers"]
    assert explain(build_explained_package(), "Kafka/orders").template_children == ()


def test_template_in_report_mode_is_explained() -> None:
    assert f"{OF}, template is only reported)" in format_explanation(
        build_explanation_result(explain(build_explained_package(mode="report")))
    )
