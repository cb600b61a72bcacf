"""Templates in words: what restarts stands first, then who decided what, and what a child hides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest

from reconciler.krm.conflicts import ABSENT
from reconciler.krm.yaml import parse
from reconciler.planning.outcome import Draft, Rendered
from reconciler.planning.source import Source
from reconciler.planning.stages import FilesStage
from reconciler.reporting.changes import compare
from reconciler.reporting.commit_message import draft_message
from reconciler.reporting.explain import explain
from reconciler.reporting.explain_words import explanation_data, explanation_text
from reconciler.reporting.explanation import Explained
from reconciler.reporting.plan import plan_json, plan_markdown, plan_text
from reconciler.reporting.review_messages import templates_in
from reconciler.reporting.status_file import status_file
from reconciler.reporting.templates import child_lines, folded_repeats, news_of_children, repeat_lines, template_lines
from reconciler.rules.templates.change import TemplateChange, changes
from reconciler.rules.templates.model import Options
from reconciler.rules.templates.pairs import find_pairs
from reconciler.snapshot.catalog import read_catalog
from reconciler.snapshot.files import FileTree
from tests.unit.reporting.world import CONFIG, destination, destination_plan, draft, fleet, variant
from tests.unit.rules.templates.template_world import PACKAGE, kafka, key, merge, pool, tree

POD = {"priorityClassName": "high"}
CONTAINER = {"env": [{"name": "TZ", "value": "UTC"}], "securityContext": {"runAsUser": 7}}
OWN = {"env": [{"name": "HEAP", "value": "on"}]}
BROKERS, LAST = key("brokers"), key("last")
OF = "KafkaNodePool/shop/brokers of Kafka/shop/orders"
HIDES = f"{OF}, written into it: kafkaContainer by pool hides env[TZ], securityContext.runAsUser; pod by kafka"
RESTARTS = "KafkaNodePool/shop/brokers restarts its pods: pod changed, on Pod"
REPEAT = [
    "# for KafkaNodePool/shop/brokers to inherit and add",
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


def rendered(options: Options | None = None, own: Any = None) -> Rendered:
    """Return a package whose Kafka got another priority class, so that its pool did."""
    done = merge(files(own=own), options=options)
    before, now = (
        find_pairs({PACKAGE: tree(one)}) for one in (files({"priorityClassName": "low"}, own), files(own=own))
    )
    plain = tree(files(own=own))
    return Rendered(
        done.files, templates=done, template_changes=changes(before, now), findings=done.findings,
        source=Source(plain, plain, plain), stages=(FilesStage("template", done.files),),
    )  # fmt: skip


def changed(*, is_new: bool = False, **options: Any) -> Draft:
    made = rendered(Options(**options))
    before = FileTree() if is_new else merge(files({"priorityClassName": "low"})).files
    return draft(before, made.files, rendered=made, task="edit", causes=("variant",))


def message(made: Draft) -> str:
    return draft_message(made, destination(), CONFIG, compare(made.before, made.rendered.files))


def status(made: Draft) -> dict[str, Any]:
    found: dict[str, Any] = parse(status_file(made, destination(), CONFIG)).documents[0].data["status"]
    return found


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        pytest.param(
            TemplateChange(BROKERS, ("pod", "podSet"), ("Pod", "StrimziPodSet"), True),
            "KafkaNodePool/shop/brokers restarts its pods: pod, podSet changed, on Pod, StrimziPodSet",
            id="pods-restart",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("podSet",), ("StrimziPodSet",), False),
            "KafkaNodePool/shop/brokers restarts no pods: podSet changed, on StrimziPodSet",
            id="no-pods-restart",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("perPodIngress",), (), False),
            "KafkaNodePool/shop/brokers restarts no pods: perPodIngress changed, on nothing that it has",
            id="without-effect",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("cache",), (), None),
            "KafkaNodePool/shop/brokers may restart pods, for nobody here knows: cache changed",
            id="unknown-kinds",
        ),
        pytest.param(
            TemplateChange(BROKERS, (), (), False, key("old", "Kafka")),
            "KafkaNodePool/shop/brokers was one of Kafka/shop/old: to its operator it is another, with other pods",
            id="it-moves",
        ),
        pytest.param(
            TemplateChange(BROKERS, ("pod",), ("Pod",), True, key("old", "Kafka")),
            "KafkaNodePool/shop/brokers was one of Kafka/shop/old: to its operator it is another, with other pods;"
            " pod changed, on Pod",
            id="it-moves-and-changes",
        ),
    ],
)
def test_what_a_change_does_in_a_line(change: TemplateChange, expected: str) -> None:
    assert template_lines(Rendered(FileTree(), template_changes=(change,)), 5) == (expected,)


def test_what_may_restart_stands_first() -> None:
    calm = TemplateChange(BROKERS, ("podSet",), ("StrimziPodSet",), False)
    moved = replace(calm, child=LAST, properties=(), moved_from=key("old", "Kafka"))
    rolls, unknown = (replace(calm, child=key(name), rolls=value) for name, value in (("x", True), ("y", None)))
    lines = template_lines(Rendered(FileTree(), template_changes=(calm, unknown, rolls, moved)), 5)

    assert [line.split()[0] for line in lines] == [str(one.child) for one in (moved, rolls, unknown, calm)]
    assert template_lines(Rendered(FileTree(), template_changes=(calm, unknown, rolls)), 2) == (
        lines[1], "and 2 more",
    )  # fmt: skip


@pytest.mark.parametrize(
    ("own", "options", "expected"),
    [
        pytest.param({"kafkaContainer": OWN}, Options(), HIDES, id="what-is-hidden-stands-first"),
        pytest.param({}, Options(), f"{OF}, written into it: pod, kafkaContainer by kafka", id="all-inherited"),
        pytest.param({}, Options("report"), f"{OF}, reported only: pod, kafkaContainer by kafka", id="only-reported"),
        pytest.param(
            {"pod": {}},
            Options(),
            f"{OF}, written into it: pod by pool-reset hides priorityClassName; kafkaContainer by kafka",
            id="a-reset",
        ),
        pytest.param(
            {"podSet": {"metadata": {}}},
            Options(),
            f"{OF}, written into it: podSet by pool; pod, kafkaContainer by kafka",
            id="its-own",
        ),
    ],
)
def test_who_decided_what_in_a_line(own: Any, options: Options, expected: str) -> None:
    made = rendered(options, own)

    assert made.templates is not None
    assert child_lines([one.as_data() for one in made.templates.effects], 5) == (expected,)


def test_a_child_without_any_template_says_so() -> None:
    done = merge({"kafka.yaml": kafka(), "pool.yaml": pool()})

    assert child_lines([one.as_data() for one in done.effects], 5) == (f"{OF}, written into it: no template",)


@pytest.mark.parametrize(
    "recorded",
    [
        pytest.param(None, id="nothing"),
        pytest.param("all", id="a-text"),
        pytest.param([7, {"resource": "a"}, {"parent": "b"}, {"resource": {}, "parent": 1}], id="no-children"),
    ],
)
def test_a_status_file_that_people_broke_tells_nothing(recorded: object) -> None:
    assert (child_lines(recorded, 5), list(repeat_lines(recorded)), folded_repeats(recorded)) == ((), [], [])


def test_what_people_wrote_stays_on_its_line() -> None:
    one = {
        "resource": "a\nb",
        "parent": "p",
        "mode": ["x"],
        "properties": [{"name": "n\tm", "source": 7}],
        "toRepeat": "k: \x1b",
    }

    assert child_lines([one], 5) == ("a⏎b of p: n\\tm by ",)
    assert list(repeat_lines([one])) == ["# for a⏎b to inherit and add", "  k: \\x1b"]


def test_the_yaml_to_repeat_is_told_where_something_is_hidden() -> None:
    assert list(repeat_lines(news_of_children(changed()))) == REPEAT
    assert folded_repeats(news_of_children(changed()))[1:4] == [
        "<details><summary>To inherit and add</summary>", "", "```yaml\n" + "\n".join(REPEAT) + "\n```",
    ]  # fmt: skip


def test_a_reset_hides_on_purpose() -> None:
    done = merge(files(own={"pod": {}}))

    assert list(repeat_lines([one.as_data() for one in done.effects])) == []


# where it stands


def test_a_commit_tells_the_risk_before_what_changed() -> None:
    text = message(changed())

    assert f"\n\nTemplates:\n- {RESTARTS}\n\nChanged:\n" in text
    assert f"\n\nChildren:\n- {HIDES}\n\nWhy:\n" in text
    assert templates_in(text) == (RESTARTS,)


def test_a_commit_of_a_package_without_templates_tells_nothing_of_them() -> None:
    text = message(draft({}, {"a.yaml": "a: 1\n"}))

    assert "Templates:" not in text
    assert "Children:" not in text
    assert templates_in(text) == ()


@pytest.mark.parametrize(
    ("made", "expected"),
    [
        pytest.param(changed(), [HIDES], id="what-changed"),
        pytest.param(replace(changed(), rendered=replace(rendered(), template_changes=())), [], id="what-did-not"),
        pytest.param(
            replace(changed(is_new=True), rendered=replace(rendered(), template_changes=())), [HIDES], id="what-is-new"
        ),
    ],
)
def test_which_children_a_draft_is_about(made: Draft, expected: list[str]) -> None:
    assert [*child_lines(news_of_children(made), 5)] == expected


def test_the_plan_has_all_of_it_in_every_format() -> None:
    plan = fleet(destination_plan(changed()))
    text, (group,) = plan_text(plan, 0).splitlines(), plan_json(plan, 0)["groups"]

    at = text.index(f"  templates: {RESTARTS}")
    assert text[at - 1] == "edit eu-1/gw (PackageVariant default/edge-gw)"
    assert f"  child: {HIDES}" in text
    assert text[-len(REPEAT) :] == [f"  {line}" for line in REPEAT]
    assert f"- `templates: {RESTARTS}`\n" in plan_markdown(plan, 0)
    assert "<summary>To inherit and add</summary>" in plan_markdown(plan, 0)
    assert group["templateChanges"] == [
        {"resource": "KafkaNodePool/shop/brokers", "properties": ["pod"], "objects": ["Pod"], "rolls": True}
    ]
    assert [one["resource"] for one in group["templates"]] == ["KafkaNodePool/shop/brokers"]


def test_equal_files_with_another_risk_are_no_equal_changes() -> None:
    one = changed(mode="report")
    (change,) = one.rendered.template_changes
    calm = replace(one.rendered, template_changes=(replace(change, rolls=False),))
    other = replace(one, rendered=calm, variant=variant("edge-gw", "us-1"))
    plan = fleet(destination_plan(one), destination_plan(other, name="us-1"))

    assert len(plan_json(plan, 0)["groups"]) == 2


def test_the_status_file_tells_the_state_and_not_what_changed() -> None:
    one = changed()
    other = replace(one, rendered=replace(one.rendered, template_changes=()))

    assert status(one) == status(other)
    assert [(each["resource"], each["mode"]) for each in status(one)["templates"]] == [
        ("KafkaNodePool/shop/brokers", "materialise")
    ]
    assert status(one)["templates"][0]["toRepeat"].startswith("spec:\n  template:\n    kafkaContainer:\n")
    assert "templateChanges" not in status(one)


@pytest.mark.parametrize(
    ("one", "other", "is_same"),
    [
        pytest.param(rendered(), rendered(), True, id="the-same"),
        pytest.param(rendered(Options("report")), rendered(Options("report"), {}), False, id="another-report"),
        pytest.param(rendered(), rendered(own={}), True, id="what-is-written-the-tree-tells"),
    ],
)
def test_a_report_is_part_of_what_makes_a_commit(one: Rendered, other: Rendered, is_same: bool) -> None:
    assert (one.review == other.review) is is_same


def test_what_a_template_writes_of_a_secret_is_shown_nowhere() -> None:
    manifest = "apiVersion: v1\nkind: Secret\nstringData: {password: hunter2}\n"
    own = {"kafkaContainer": {"env": [{"name": "MANIFEST", "value": manifest}]}}
    made = draft({}, {}, rendered=rendered(Options("report"), own))
    plan = fleet(destination_plan(made))
    known = Explained("eu-1/gw", CONFIG, {}, variant().owner, variant(), made.rendered)
    found = explain(known, "KafkaNodePool/brokers")
    told = [str(status(made)), message(made), plan_text(plan, 0), str(plan_json(plan, 0)), str(explanation_data(found))]

    assert [text for text in told if "hunter2" in text] == []
    assert status(made)["templates"][0]["template"]["kafkaContainer"]["env"][0]["value"] == "*****"


# explaining it


def explained(**options: Any) -> Explained:
    objects = read_catalog(tree({"kafka.yaml": kafka({"pod": POD, "kafkaContainer": CONTAINER})})).objects
    return Explained("eu-1/gw", CONFIG, objects, variant().owner, variant(), rendered(Options(**options)))


def test_an_inherited_value_leads_to_its_kafka() -> None:
    text = explanation_text(explain(explained(), "KafkaNodePool/brokers", "/spec/template/pod"))

    assert (
        "KafkaNodePool/shop/brokers /spec/template/pod/priorityClassName in pool.yaml: high\n"
        "  1. template  added high  Kafka/shop/orders kafka.yaml:10 spec.kafka.template.pod.priorityClassName  wins\n"
    ) in text


def test_what_a_pool_replaces_is_told_after_what_it_would_inherit() -> None:
    (value,) = explain(explained(), "KafkaNodePool/brokers", "/spec/template/kafkaContainer/env/0/name").values[-1:]

    assert [(step.layer, step.by, step.before, step.after) for step in value.steps] == [
        ("template", "Kafka/shop/orders", ABSENT, "TZ"),
        ("upstream", "catalog/gateway gateway/v4", "TZ", "HEAP"),
    ]


def test_a_whole_pool_is_explained_with_what_it_hides() -> None:
    found = explain(explained(), "KafkaNodePool/brokers")

    assert explanation_text(found).endswith("\n".join([HIDES, *REPEAT]) + "\n")
    assert [one["resource"] for one in explanation_data(found)["templates"]] == ["KafkaNodePool/shop/brokers"]
    assert explain(explained(), "Kafka/orders").children == ()


def test_what_is_only_reported_is_explained_too() -> None:
    assert f"{OF}, reported only" in explanation_text(explain(explained(mode="report")))
