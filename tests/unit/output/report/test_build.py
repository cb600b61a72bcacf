"""What a report tells of a fleet: entries, what waits for whom, conflicts, equal changes once, explanations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import CommitId
from reconciler.output.report.model import FleetReport, MatrixEntry, PendingItem, ReportCluster, ReportPackage
from reconciler.output.review.open_drafts import Rejection
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from tests.unit.output.report.values import (
    CONFLICT,
    DAY,
    GATE,
    HEAD,
    STATUS,
    cluster,
    drafted,
    published,
    report,
)
from tests.unit.output.world import secret, tree

BROKEN = BlockingReason("Broken", "it broke")


def of(report_package: ReportPackage, **sheet: Any) -> FleetReport:
    """Return the report of a fleet with one package, whose sheet says more."""
    report_cluster = cluster("eu-1", report_package)
    return report(
        replace(report_cluster, drafts={name: replace(known, **sheet) for name, known in report_cluster.drafts.items()})
    )


def entry(fleet_report: FleetReport) -> MatrixEntry:
    return fleet_report.rows[0].entries["gw"]


def waiting(fleet_report: FleetReport) -> PendingItem:
    (pending_item,) = fleet_report.pending_items
    return pending_item


# entries


def test_an_entry_has_its_state_version_and_since_when() -> None:
    matrix_entry = entry(of(drafted()[0]))

    assert (
        matrix_entry.state,
        matrix_entry.version,
        matrix_entry.since,
        matrix_entry.conflict_count,
        matrix_entry.refusal_count,
    ) == (
        "draft",
        1,
        DAY,
        0,
        0,
    )


def test_an_entry_counts_the_conflicts_of_its_draft_and_what_is_in_its_way() -> None:
    matrix_entry = entry(of(drafted(status={**STATUS, "conflicts": [CONFLICT]}, unmet=[GATE])[0]))

    assert (matrix_entry.conflict_count, matrix_entry.refusal_count) == (1, 1)


def test_conflicts_that_were_published_are_not_open() -> None:
    fleet_report = of(published(status={**STATUS, "conflicts": [CONFLICT]}))

    assert (entry(fleet_report).conflict_count, fleet_report.conflicts, fleet_report.pending_items) == (0, (), ())
    assert fleet_report.explanations[0].conflicts


@pytest.mark.parametrize(
    ("report_package", "expected"),
    [
        pytest.param(published(is_edited=True), ("local changes",), id="edited-where-it-is-published"),
        pytest.param(drafted(state="blocked", reasons=(BROKEN,))[0], ("open draft",), id="blocked-with-a-draft"),
        pytest.param(drafted(proposed_head=CommitId("0"))[0], ("changed after proposal",), id="stale"),
        pytest.param(
            drafted(state="proposed", proposed_head=HEAD, reasons=(BROKEN,))[0], ("update pending",), id="frozen"
        ),
        pytest.param(published(), (), id="nothing-more-to-say"),
    ],
)
def test_an_entry_notes_what_its_state_does_not_say(report_package: ReportPackage, expected: tuple[str, ...]) -> None:
    assert entry(of(report_package)).notes == expected


def test_a_cluster_is_well_when_nothing_on_it_needs_anybody() -> None:
    rows = report(
        cluster("eu-1", published()),
        cluster("eu-2", drafted(cluster="eu-2")[0]),
        cluster("eu-3", read_error="unreachable"),
    ).rows

    assert [row.has_pending_work for row in rows] == [False, True, True]


# what waits


@pytest.mark.parametrize(
    ("report_packages", "sheet", "expected"),
    [
        pytest.param(
            drafted(), {}, ("draft", "reviewers", "update v1 → v2", "reconciler propose eu-1/gw"), id="a-draft"
        ),
        pytest.param(
            drafted(state="edited"),
            {"editors": ("Ada", "Grace")},
            ("draft", "reviewers", "update v1 → v2, edited by Ada, Grace", "reconciler propose eu-1/gw"),
            id="an-edited-draft",
        ),
        pytest.param(
            drafted(proposed_head=CommitId("0")),
            {},
            ("draft", "reviewers", "update v1 → v2, changed after it was proposed", "reconciler propose eu-1/gw"),
            id="a-stale-proposal",
        ),
        pytest.param(
            drafted(state="proposed", proposed_head=HEAD),
            {},
            ("proposed", "approvers", "update v1 → v2, proposed", "reconciler approve eu-1/gw"),
            id="a-proposal",
        ),
        pytest.param(
            drafted(state="removal"),
            {},
            ("removal", "approvers", "remove the package", "reconciler approve eu-1/gw --propose"),
            id="a-removal",
        ),
        pytest.param(
            drafted(),
            {"rejection": Rejection("Ada", "too early")},
            ("rejected", "config maintainers", "rejected by Ada: too early", "reconciler show eu-1/gw"),
            id="a-rejection",
        ),
        pytest.param(
            drafted(unmet=[GATE]),
            {},
            ("refused", "gate owners", "GateNotMet: gw: tested is not reported", "reconciler show eu-1/gw"),
            id="a-gate",
        ),
        pytest.param(
            drafted(status={**STATUS, "conflicts": [CONFLICT, "no conflict"]}),
            {},
            ("conflict", "reviewers", "update v1 → v2; review 1 conflict", "reconciler show eu-1/gw"),
            id="a-conflict",
        ),
        pytest.param(
            drafted(state="blocked", reasons=(BROKEN,)),
            {},
            ("blocked", "config maintainers", "Broken: it broke", "reconciler explain eu-1/gw"),
            id="blocked-with-a-draft",
        ),
        pytest.param(
            (published(state="held", reasons=(BROKEN,)),),
            {},
            ("held", "config maintainers", "Broken: it broke", "reconciler explain eu-1/gw"),
            id="held",
        ),
        pytest.param(
            (published(state="declined"),),
            {},
            (
                "declined",
                "none; a new draft follows when the rendered content changes",
                "the last draft was declined",
                "reconciler explain eu-1/gw",
            ),
            id="declined",
        ),
    ],
)
def test_what_waits_says_for_whom_and_how_to_go_on(
    report_packages: tuple[ReportPackage, ...], sheet: dict[str, Any], expected: tuple[str, ...]
) -> None:
    pending_item = waiting(of(report_packages[0], **sheet))

    assert (
        pending_item.kind,
        pending_item.responsible,
        pending_item.message,
        pending_item.format_command(pending_item.targets),
    ) == expected


def test_what_waits_on_many_clusters_is_told_once_with_one_command_for_all() -> None:
    pending_item = waiting(report(*(cluster(name, drafted(cluster=name)[0]) for name in ("eu-1", "eu-2"))))

    assert [str(report_target) for report_target in pending_item.targets] == ["eu-1/gw", "eu-2/gw"]
    assert pending_item.has_bulk_command
    assert pending_item.format_command(pending_item.targets) == "reconciler propose eu-1/gw eu-2/gw"


def test_sentences_that_differ_by_the_name_of_the_cluster_alone_are_one() -> None:
    blocking_reasons = [BlockingReason("Broken", f"{name}/gw: it broke") for name in ("eu-1", "eu-2")]
    pending_item = waiting(
        report(*(cluster(f"eu-{n}", published(state="blocked", reasons=(blocking_reasons[n - 1],))) for n in (1, 2)))
    )

    assert (pending_item.message, pending_item.has_target_names, len(pending_item.targets)) == (
        "Broken: eu-1/gw: it broke",
        True,
        2,
    )


def test_what_is_in_the_way_of_many_packages_alike_is_told_once() -> None:
    drafts = [
        drafted(name, unmet=[BlockingReason("GateNotMet", f"{name}: tested is not reported")])[0] for name in ("a", "b")
    ]
    pending_item = waiting(report(cluster("eu-1", *drafts)))

    assert (pending_item.packages, pending_item.has_target_names, len(pending_item.change_keys)) == (
        ("a", "b"),
        True,
        2,
    )


def test_the_oldest_comes_first_and_what_nobody_dated_last() -> None:
    ages = {"a": DAY, "b": DAY - 1, "c": None}
    drafts = [drafted(name, since=since)[0] for name, since in ages.items()]

    assert [pending_item.packages for pending_item in report(cluster("eu-1", *drafts)).pending_items] == [
        ("b",),
        ("a",),
        ("c",),
    ]


def test_what_is_on_no_draft_waits_since_nobody_knows_when() -> None:
    fleet_report = of(published(state="blocked", reasons=(BROKEN,)))

    assert (entry(fleet_report).since, waiting(fleet_report).since) == (DAY, None)


def test_a_place_with_odd_letters_is_quoted_in_commands() -> None:
    assert waiting(of(drafted("a b")[0])).format_command(waiting(of(drafted("a b")[0])).targets).endswith("'eu-1/a b'")


def test_an_open_conflict_is_told_with_all_its_sides() -> None:
    status = {**STATUS, "conflicts": [{**CONFLICT, "local": {"deep": [1]}}, {"kind": "no conflict"}]}
    report_cluster, two = (cluster(name, drafted(cluster=name, status=status)[0]) for name in ("eu-1", "eu-2"))
    (reported_conflict,) = report(report_cluster, two).conflicts

    assert (reported_conflict.base, reported_conflict.local, reported_conflict.upstream, reported_conflict.chosen) == (
        "1",
        '{"deep": [1]}',
        "3",
        "upstream",
    )
    assert (reported_conflict.resource, reported_conflict.pointer, len(reported_conflict.targets)) == (
        "Deployment/web",
        "/spec/replicas",
        2,
    )


# changes


def changes(*images: tuple[str, str, str]) -> list[tuple[list[str], bool]]:
    reported_changes = report(
        *(cluster(name, drafted(cluster=name, old=old, new=new)[0]) for name, old, new in images)
    ).changes
    return [
        ([place.cluster for place in reported_change.targets], reported_change.has_target_names)
        for reported_change in reported_changes
    ]


@pytest.mark.parametrize(
    ("images", "expected"),
    [
        pytest.param([("a", "w:1", "w:2"), ("b", "w:1", "w:2")], [(["a", "b"], False)], id="the-same"),
        pytest.param(
            [("a", "w:1", "w:2"), ("b", "w:1", "w:3"), ("c", "w:1", "w:3")],
            [(["b", "c"], False), (["a"], False)],
            id="the-largest-group-first",
        ),
        pytest.param(
            [("eu-1", "w:1", "eu-1.x/w"), ("eu-2", "w:1", "eu-2.x/w")], [(["eu-1", "eu-2"], True)], id="its-own-name"
        ),
        pytest.param(
            [("eu-1", "w:1", "eu-2.x/w"), ("eu-2", "w:1", "eu-1.x/w")],
            [(["eu-1"], False), (["eu-2"], False)],
            id="the-name-of-another",
        ),
    ],
)
def test_equal_changes_are_told_once(
    images: list[tuple[str, str, str]], expected: list[tuple[list[str], bool]]
) -> None:
    assert changes(*images) == expected


def test_a_change_is_told_by_resources_with_its_causes_and_its_diff() -> None:
    (reported_change,) = of(drafted()[0]).changes

    assert reported_change.summary_lines == ("Deployment web: template.spec.containers[web].image web:1 → web:2",)
    assert (reported_change.action, reported_change.owner, reported_change.causes) == (
        "update v1 → v2", "PackageVariant default/edge-gw", ("upstream moved",),
    )  # fmt: skip
    ((path, diff),) = reported_change.diffs
    assert path == "d.yaml"
    assert "-        image: web:1\n+        image: web:2\n" in diff
    assert (reported_change.show_command, reported_change.reproduce_command) == (
        "reconciler show eu-1/gw",
        f"git diff {'b0' * 6} {'d1' * 6} -- gw",
    )


def test_the_values_of_secrets_are_masked() -> None:
    report_package, _ = drafted()
    assert report_package.details is not None
    sheet = replace(
        report_package.details, before=tree({"s.yaml": secret("hunter2")}), after=tree({"s.yaml": secret("hunter3")})
    )
    (reported_change,) = of(replace(report_package, details=sheet)).changes

    assert "hunter" not in str(reported_change)
    assert "*****" in str(reported_change.diffs)


# explanations


def explained(status: object, names: tuple[str, ...] = ("eu-1",)) -> list[Any]:
    fleet_report = report(*(cluster(name, published(status=status)) for name in names))  # type: ignore[arg-type]
    return [*fleet_report.explanations]


def test_an_explanation_tells_the_source_and_each_step_of_each_value() -> None:
    (item,) = explained(STATUS)

    assert item.facts == (
        ("owner", "PackageVariant default/edge-gw"),
        ("source", f"./catalog.git gw/v2 at {'9f2c' * 3}"),
    )
    (value,) = item.values
    assert (value.resource, value.pointer) == ("Deployment/web", "/spec/replicas")
    assert [(step.source, step.location, step.change) for step in value.steps] == [
        ("OverridePolicy/small", "spec.rules[0]", "3 → 1")
    ]
    assert item.explain_command == "reconciler explain eu-1/gw"


def test_equal_explanations_are_told_once() -> None:
    (item,) = explained(STATUS, ("eu-1", "eu-2"))

    assert ([target.cluster for target in item.targets], item.has_target_names) == (["eu-1", "eu-2"], False)


@pytest.mark.parametrize(
    "status",
    [
        pytest.param({"overrides": "all of it"}, id="no-list"),
        pytest.param({"overrides": [1, {"steps": [1]}], "layers": [{"steps": {}}]}, id="no-steps"),
        pytest.param({"owner": 1, "upstream": [], "inputs": {"objects": "x"}, "injected": [None]}, id="no-facts"),
        pytest.param({"conflicts": [{"chosen": "me"}], "templates": 7}, id="no-conflicts"),
    ],
)
def test_whatever_people_make_of_a_status_file_is_told_or_left_out(status: object) -> None:
    (item,) = explained(status)

    assert item.values == ()


def test_a_value_of_a_secret_that_somebody_wrote_there_is_masked() -> None:
    step = {
        "by": "p",
        "op": "replaced",
        "before": "x",
        "after": {"kind": "Secret", "apiVersion": "v1", "data": {"a": "aHVudGVy"}},
    }
    (item,) = explained({"overrides": [{"resource": "r", "pointer": "/x", "steps": [step]}]})

    assert "aHVudGVy" not in str(item)


def test_status_files_of_ours_that_differ_in_what_is_not_told_are_alike() -> None:
    def file(name: str, value: int, tree_id: str) -> bytes:
        return (
            f"status:\n  repository: {name}\n  trees:\n    base: {tree_id}\n    rendered: {tree_id}\n"
            f"  inputs:\n    config: {tree_id}\n    digest: {tree_id}\n    objects:\n    - kind: ConfigMap\n"
            f"      name: {name}-endpoints\n      hash: {tree_id}\n"
            f"  overrides:\n  - resource: r\n    pointer: /x\n    steps:\n    - by: p\n      after: {value}\n"
        ).encode()

    def read(name: str, value: int, tree_id: str) -> ReportCluster:
        return cluster(name, replace(published(), status_file=file(name, value, tree_id)))

    reported_explanations = report(read("eu-1", 1, "aa"), read("eu-2", 1, "bb"), read("eu-3", 2, "aa")).explanations

    assert [
        ([place.cluster for place in reported_explanation.targets], reported_explanation.has_target_names)
        for reported_explanation in reported_explanations
    ] == [
        (["eu-1", "eu-2"], True),
        (["eu-3"], False),
    ]
