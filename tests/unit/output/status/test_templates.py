"""Templates in words: what restarts stands first, then who decided what, and what a child hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import FileTree
from reconciler.controllers.kafka_templates.model import TemplateOptions
from reconciler.controllers.kafka_templates.pairing import find_pairs
from reconciler.controllers.kafka_templates.template_effects import TemplateChange, find_template_changes
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml import parse_yaml
from reconciler.output.changes.package_changes import compare_packages
from reconciler.output.commits import format_draft_message, parse_templates
from reconciler.output.explain.builder import explain
from reconciler.output.explain.formats import build_explanation_data, format_explanation
from reconciler.output.explain.model import ExplainedPackage
from reconciler.output.plan.formats import build_plan_data, format_plan_markdown, format_plan_text
from reconciler.output.status.package_sections import (
    build_changed_children,
    format_children,
    format_folded_settings,
    format_settings_to_repeat,
    format_template_changes,
)
from reconciler.output.status.package_status import build_package_status
from reconciler.output.text import format_object
from reconciler.planning.model.outcomes import Draft, FilesStage, PackageRender
from reconciler.planning.model.sources import PackageSource
from tests.unit.controllers.kafka_templates.template_world import PACKAGE, kafka, key, merge, pool, tree
from tests.unit.output.world import CONFIG, destination, destination_plan, draft, fleet, variant

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


def files(pod: Mapping[str, Any] | None = None, own: Any = None) -> dict[str, str]:
    shared = {"pod": POD if pod is None else pod, "kafkaContainer": CONTAINER}
    return {"kafka.yaml": kafka(shared), "pool.yaml": pool({"kafkaContainer": OWN} if own is None else own)}


def rendered(options: TemplateOptions | None = None, own: Any = None) -> PackageRender:
    """Return a package whose Kafka got another priority class, so that its pool did."""
    package = merge(files(own=own), options=options)
    before, now = (
        find_pairs({PACKAGE: tree(item)}) for item in (files({"priorityClassName": "low"}, own), files(own=own))
    )
    plain = tree(files(own=own))
    return PackageRender(
        package.files, templates=package, template_changes=find_template_changes(before, now), findings=package.findings,
        source=PackageSource(plain, plain, plain), stages=(FilesStage("template", package.files),),
    )  # fmt: skip


def changed(*, is_new: bool = False, **options: Any) -> Draft:
    package_render = rendered(TemplateOptions(**options))
    before = FileTree() if is_new else merge(files({"priorityClassName": "low"})).files
    return draft(before, package_render.files, rendered=package_render, task="edit", causes=("variant",))


def message(new_draft: Draft) -> str:
    return format_draft_message(
        new_draft, destination(), CONFIG, compare_packages(new_draft.previous_files, new_draft.rendered.files)
    )


def status(new_draft: Draft) -> dict[str, Any]:
    value: dict[str, Any] = (
        parse_yaml(build_package_status(new_draft, destination(), CONFIG)).documents[0].data["status"]
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
def test_what_a_change_does_in_a_line(change: TemplateChange, expected: str) -> None:
    assert format_template_changes(PackageRender(FileTree(), template_changes=(change,)), 5) == (expected,)


def test_what_may_restart_stands_first() -> None:
    calm = TemplateChange(BROKERS, ("podSet",), ("StrimziPodSet",), False)
    moved = replace(calm, child=LAST, properties=(), previous_parent=key("old", "Kafka"))
    rolls, unknown = (replace(calm, child=key(name), restarts_pods=value) for name, value in (("x", True), ("y", None)))
    lines = format_template_changes(PackageRender(FileTree(), template_changes=(calm, unknown, rolls, moved)), 5)

    assert [line.partition(":")[0] for line in lines] == [
        format_object(template_change.child) for template_change in (moved, rolls, unknown, calm)
    ]
    assert format_template_changes(PackageRender(FileTree(), template_changes=(calm, unknown, rolls)), 2) == (
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
def test_who_decided_what_in_a_line(own: Any, options: TemplateOptions, expected: str) -> None:
    package_render = rendered(options, own)

    assert package_render.templates is not None
    assert format_children([template_effect.as_data() for template_effect in package_render.templates.effects], 5) == (
        expected,
    )


def test_a_child_without_any_template_says_so() -> None:
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
def test_a_status_file_that_people_broke_tells_nothing(recorded: object) -> None:
    assert (
        format_children(recorded, 5),
        list(format_settings_to_repeat(recorded)),
        format_folded_settings(recorded),
    ) == ((), [], [])


def test_what_people_wrote_stays_on_its_line() -> None:
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


def test_the_yaml_to_repeat_is_told_where_something_is_hidden() -> None:
    assert list(format_settings_to_repeat(build_changed_children(changed()))) == REPEAT
    assert format_folded_settings(build_changed_children(changed()))[1:4] == [
        "<details><summary>Templates that repeat the inherited settings</summary>", "", "```yaml\n" + "\n".join(REPEAT) + "\n```",
    ]  # fmt: skip


def test_a_reset_hides_on_purpose() -> None:
    package = merge(files(own={"pod": {}}))

    assert list(format_settings_to_repeat([template_effect.as_data() for template_effect in package.effects])) == []


# where it stands


def test_a_commit_tells_the_risk_before_what_changed() -> None:
    text = message(changed())

    assert f"\n\nTemplates:\n- {RESTARTS}\n\nChanged:\n" in text
    assert f"\n\nChildren:\n- {HIDES}\n\nWhy:\n" in text
    assert parse_templates(text) == (RESTARTS,)


def test_a_commit_of_a_package_without_templates_tells_nothing_of_them() -> None:
    text = message(draft({}, {"a.yaml": "a: 1\n"}))

    assert "Templates:" not in text
    assert "Children:" not in text
    assert parse_templates(text) == ()


@pytest.mark.parametrize(
    ("new_draft", "expected"),
    [
        pytest.param(changed(), [HIDES], id="what-changed"),
        pytest.param(replace(changed(), rendered=replace(rendered(), template_changes=())), [], id="what-did-not"),
        pytest.param(
            replace(changed(is_new=True), rendered=replace(rendered(), template_changes=())), [HIDES], id="what-is-new"
        ),
    ],
)
def test_which_children_a_draft_is_about(new_draft: Draft, expected: list[str]) -> None:
    assert [*format_children(build_changed_children(new_draft), 5)] == expected


def test_the_plan_has_all_of_it_in_every_format() -> None:
    plan = fleet(destination_plan(changed()))
    text, (group,) = format_plan_text(plan, 0).splitlines(), build_plan_data(plan, 0)["groups"]

    at = text.index(f"  templates: {RESTARTS}")
    assert text[at - 1] == "edit eu-1/gw (PackageVariant default/edge-gw)"
    assert f"  child: {HIDES}" in text
    assert text[-len(REPEAT) :] == [f"  {line}" for line in REPEAT]
    assert f"- `templates: {RESTARTS}`\n" in format_plan_markdown(plan, 0)
    assert "<summary>Templates that repeat the inherited settings</summary>" in format_plan_markdown(plan, 0)
    assert group["templateChanges"] == [
        {"resource": "KafkaNodePool/shop/brokers", "properties": ["pod"], "objects": ["Pod"], "rolls": True}
    ]
    assert [template["resource"] for template in group["templates"]] == ["KafkaNodePool/shop/brokers"]


def test_equal_files_with_another_risk_are_no_equal_changes() -> None:
    result = changed(mode="report")
    (change,) = result.rendered.template_changes
    calm = replace(result.rendered, template_changes=(replace(change, restarts_pods=False),))
    other = replace(result, rendered=calm, variant=variant("edge-gw", "us-1"))
    plan = fleet(destination_plan(result), destination_plan(other, name="us-1"))

    assert len(build_plan_data(plan, 0)["groups"]) == 2


def test_the_status_file_tells_the_state_and_not_what_changed() -> None:
    result = changed()
    other = replace(result, rendered=replace(result.rendered, template_changes=()))

    assert status(result) == status(other)
    assert [(template["resource"], template["mode"]) for template in status(result)["templates"]] == [
        ("KafkaNodePool/shop/brokers", "materialise")
    ]
    assert status(result)["templates"][0]["toRepeat"].startswith("spec:\n  template:\n    kafkaContainer:\n")
    assert "templateChanges" not in status(result)


@pytest.mark.parametrize(
    ("package_render", "other", "is_same"),
    [
        pytest.param(rendered(), rendered(), True, id="the-same"),
        pytest.param(
            rendered(TemplateOptions("report")), rendered(TemplateOptions("report"), {}), False, id="another-report"
        ),
        pytest.param(rendered(), rendered(own={}), True, id="what-is-written-the-tree-tells"),
    ],
)
def test_a_report_is_part_of_what_makes_a_commit(
    package_render: PackageRender, other: PackageRender, is_same: bool
) -> None:
    assert (package_render.review_digest == other.review_digest) is is_same


def test_what_a_template_writes_of_a_secret_is_shown_nowhere() -> None:
    manifest = "apiVersion: v1\nkind: Secret\nstringData: {password: hunter2}\n"
    own = {"kafkaContainer": {"env": [{"name": "MANIFEST", "value": manifest}]}}
    new_draft = draft({}, {}, rendered=rendered(TemplateOptions("report"), own))
    plan = fleet(destination_plan(new_draft))
    known = ExplainedPackage("eu-1/gw", CONFIG, {}, variant().owner, variant(), new_draft.rendered)
    package_explanation = explain(known, "KafkaNodePool/brokers")
    values = [
        str(status(new_draft)),
        message(new_draft),
        format_plan_text(plan, 0),
        str(build_plan_data(plan, 0)),
        str(build_explanation_data(package_explanation)),
    ]

    assert [text for text in values if "hunter2" in text] == []
    assert status(new_draft)["templates"][0]["template"]["kafkaContainer"]["env"][0]["value"] == "*****"


# explaining it


def explained(**options: Any) -> ExplainedPackage:
    objects = read_catalog(tree({"kafka.yaml": kafka({"pod": POD, "kafkaContainer": CONTAINER})})).objects
    return ExplainedPackage(
        "eu-1/gw", CONFIG, objects, variant().owner, variant(), rendered(TemplateOptions(**options))
    )


def test_an_inherited_value_leads_to_its_kafka() -> None:
    text = format_explanation(explain(explained(), "KafkaNodePool/brokers", "/spec/template/pod"))

    assert (
        "KafkaNodePool/shop/brokers /spec/template/pod/priorityClassName in pool.yaml: high\n"
        "  1. template  added high  Kafka/shop/orders (kafka.yaml:10 spec.kafka.template.pod.priorityClassName)  wins\n"
    ) in text


def test_what_a_pool_replaces_is_told_after_what_it_would_inherit() -> None:
    (value,) = explain(explained(), "KafkaNodePool/brokers", "/spec/template/kafkaContainer/env/0/name").values[-1:]

    assert [(step.layer, step.set_by, step.before, step.after) for step in value.steps] == [
        ("template", "Kafka/shop/orders", ABSENT, "TZ"),
        ("upstream", "catalog/gateway gateway/v4", "TZ", "HEAP"),
    ]


def test_a_whole_pool_is_explained_with_what_it_hides() -> None:
    package_explanation = explain(explained(), "KafkaNodePool/brokers")

    assert format_explanation(package_explanation).endswith("\n".join([HIDES, *REPEAT]) + "\n")
    assert [template["resource"] for template in build_explanation_data(package_explanation)["templates"]] == [
        "KafkaNodePool/shop/brokers"
    ]
    assert explain(explained(), "Kafka/orders").template_children == ()


def test_what_is_only_reported_is_explained_too() -> None:
    assert f"{OF}, template is only reported)" in format_explanation(explain(explained(mode="report")))
