"""Tests of the fleet report: entries, pending work, conflicts, grouped changes and explanations."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from reconciler.catalog.files import CommitId
from reconciler.output.fleet.target_data import PackageData, TargetData
from reconciler.output.report.builder import build_fleet_report
from reconciler.output.report.model import FleetReport, MatrixEntry, PendingItem
from reconciler.output.review.models import Rejection
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from tests.unit.output.builders import build_tree, format_secret
from tests.unit.output.fleet.builders import build_draft, build_index, build_plugin_owner
from tests.unit.output.report.builders import (
    CONFLICT,
    DAY,
    GATE,
    HEAD,
    STATUS,
    build_cluster,
    build_drafted_package,
    build_published_package,
    build_report,
)

BROKEN = BlockingReason("Broken", "it broke")


def build_package_report(report_package: PackageData, **sheet: Any) -> FleetReport:
    """Return the report of a fleet with one package. The keywords replace fields of its draft details."""
    report_cluster = build_cluster("eu-1", report_package)
    return build_report(
        replace(report_cluster, drafts={name: replace(known, **sheet) for name, known in report_cluster.drafts.items()})
    )


def get_entry(fleet_report: FleetReport) -> MatrixEntry:
    return fleet_report.rows[0].entries["gw"]


def get_pending_item(fleet_report: FleetReport) -> PendingItem:
    (pending_item,) = fleet_report.pending_items
    return pending_item


# Matrix entries


def test_entry_has_its_state_version_and_time() -> None:
    matrix_entry = get_entry(build_package_report(build_drafted_package()[0]))

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


def test_entry_counts_conflicts_and_refusals_of_its_draft() -> None:
    matrix_entry = get_entry(
        build_package_report(build_drafted_package(status={**STATUS, "conflicts": [CONFLICT]}, unmet=[GATE])[0])
    )

    assert (matrix_entry.conflict_count, matrix_entry.refusal_count) == (1, 1)


def test_published_conflicts_are_not_open() -> None:
    fleet_report = build_package_report(build_published_package(status={**STATUS, "conflicts": [CONFLICT]}))

    assert (get_entry(fleet_report).conflict_count, fleet_report.conflicts, fleet_report.pending_items) == (0, (), ())
    assert fleet_report.explanations[0].conflicts


@pytest.mark.parametrize(
    ("report_package", "expected"),
    [
        pytest.param(build_published_package(is_edited=True), ("local changes",), id="edited-where-it-is-published"),
        pytest.param(
            build_drafted_package(state="blocked", reasons=(BROKEN,))[0], ("open draft",), id="blocked-with-a-draft"
        ),
        pytest.param(build_drafted_package(proposed_head=CommitId("0"))[0], ("changed after proposal",), id="stale"),
        pytest.param(
            build_drafted_package(state="proposed", proposed_head=HEAD, reasons=(BROKEN,))[0],
            ("update pending",),
            id="frozen",
        ),
        pytest.param(build_published_package(), (), id="no-note"),
    ],
)
def test_entry_notes_add_information_to_its_state(report_package: PackageData, expected: tuple[str, ...]) -> None:
    assert get_entry(build_package_report(report_package)).notes == expected


def test_cluster_without_pending_work() -> None:
    rows = build_report(
        build_cluster("eu-1", build_published_package()),
        build_cluster("eu-2", build_drafted_package(cluster="eu-2")[0]),
        build_cluster("eu-3", read_error="unreachable"),
    ).rows

    assert [row.has_pending_work for row in rows] == [False, True, True]


# Pending work


@pytest.mark.parametrize(
    ("report_packages", "sheet", "expected"),
    [
        pytest.param(
            build_drafted_package(),
            {},
            ("draft", "reviewers", "update v1 → v2", "reconciler propose eu-1/gw"),
            id="a-draft",
        ),
        pytest.param(
            build_drafted_package(state="edited"),
            {"editors": ("Ada", "Grace")},
            ("draft", "reviewers", "update v1 → v2, edited by Ada, Grace", "reconciler propose eu-1/gw"),
            id="an-edited-draft",
        ),
        pytest.param(
            build_drafted_package(proposed_head=CommitId("0")),
            {},
            ("draft", "reviewers", "update v1 → v2, changed after it was proposed", "reconciler propose eu-1/gw"),
            id="a-stale-proposal",
        ),
        pytest.param(
            build_drafted_package(state="proposed", proposed_head=HEAD),
            {},
            ("proposed", "approvers", "update v1 → v2, proposed", "reconciler approve eu-1/gw"),
            id="a-proposal",
        ),
        pytest.param(
            build_drafted_package(state="removal"),
            {},
            ("removal", "approvers", "remove the package", "reconciler approve eu-1/gw --propose"),
            id="a-removal",
        ),
        pytest.param(
            build_drafted_package(),
            {"rejection": Rejection(by="Ada", reason="too early")},
            ("rejected", "config maintainers", "rejected by Ada: too early", "reconciler show eu-1/gw"),
            id="a-rejection",
        ),
        pytest.param(
            build_drafted_package(unmet=[GATE]),
            {},
            ("refused", "gate owners", "GateNotMet: gw: tested is not reported", "reconciler show eu-1/gw"),
            id="a-gate",
        ),
        pytest.param(
            build_drafted_package(status={**STATUS, "conflicts": [CONFLICT, "no conflict"]}),
            {},
            ("conflict", "reviewers", "update v1 → v2; review 1 conflict", "reconciler show eu-1/gw"),
            id="a-conflict",
        ),
        pytest.param(
            build_drafted_package(state="blocked", reasons=(BROKEN,)),
            {},
            ("blocked", "config maintainers", "Broken: it broke", "reconciler explain eu-1/gw"),
            id="blocked-with-a-draft",
        ),
        pytest.param(
            (build_published_package(state="held", reasons=(BROKEN,)),),
            {},
            ("held", "config maintainers", "Broken: it broke", "reconciler explain eu-1/gw"),
            id="held",
        ),
        pytest.param(
            (build_published_package(state="declined"),),
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
def test_pending_item_names_the_responsible_people_and_the_next_command(
    report_packages: tuple[PackageData, ...], sheet: dict[str, Any], expected: tuple[str, ...]
) -> None:
    pending_item = get_pending_item(build_package_report(report_packages[0], **sheet))

    assert (
        pending_item.kind,
        pending_item.responsible,
        pending_item.message,
        pending_item.format_command(pending_item.targets),
    ) == expected


def test_pending_item_of_many_clusters_is_listed_once_with_one_command() -> None:
    pending_item = get_pending_item(
        build_report(*(build_cluster(name, build_drafted_package(cluster=name)[0]) for name in ("eu-1", "eu-2")))
    )

    assert [str(report_target) for report_target in pending_item.targets] == ["eu-1/gw", "eu-2/gw"]
    assert pending_item.has_bulk_command
    assert pending_item.format_command(pending_item.targets) == "reconciler propose eu-1/gw eu-2/gw"


def test_messages_that_differ_only_by_the_cluster_name_are_merged() -> None:
    blocking_reasons = [BlockingReason("Broken", f"{name}/gw: it broke") for name in ("eu-1", "eu-2")]
    pending_item = get_pending_item(
        build_report(
            *(
                build_cluster(f"eu-{n}", build_published_package(state="blocked", reasons=(blocking_reasons[n - 1],)))
                for n in (1, 2)
            )
        )
    )

    assert (pending_item.message, pending_item.has_target_names, len(pending_item.targets)) == (
        "Broken: eu-1/gw: it broke",
        True,
        2,
    )


def test_same_refusal_of_several_packages_is_listed_once() -> None:
    drafts = [
        build_drafted_package(name, unmet=[BlockingReason("GateNotMet", f"{name}: tested is not reported")])[0]
        for name in ("a", "b")
    ]
    pending_item = get_pending_item(build_report(build_cluster("eu-1", *drafts)))

    assert (pending_item.packages, pending_item.has_target_names, len(pending_item.change_keys)) == (
        ("a", "b"),
        True,
        2,
    )


def test_oldest_item_comes_first_and_undated_item_last() -> None:
    ages = {"a": DAY, "b": DAY - 1, "c": None}
    drafts = [build_drafted_package(name, since=since)[0] for name, since in ages.items()]

    assert [pending_item.packages for pending_item in build_report(build_cluster("eu-1", *drafts)).pending_items] == [
        ("b",),
        ("a",),
        ("c",),
    ]


def test_blocked_package_without_draft_has_no_pending_time() -> None:
    fleet_report = build_package_report(build_published_package(state="blocked", reasons=(BROKEN,)))

    assert (get_entry(fleet_report).since, get_pending_item(fleet_report).since) == (DAY, None)


def test_target_with_blanks_is_quoted_in_commands() -> None:
    assert (
        get_pending_item(build_package_report(build_drafted_package("a b")[0]))
        .format_command(get_pending_item(build_package_report(build_drafted_package("a b")[0])).targets)
        .endswith("'eu-1/a b'")
    )


def test_open_conflict_contains_all_sides() -> None:
    status = {**STATUS, "conflicts": [{**CONFLICT, "local": {"deep": [1]}}, {"kind": "no conflict"}]}
    report_cluster, two = (
        build_cluster(name, build_drafted_package(cluster=name, status=status)[0]) for name in ("eu-1", "eu-2")
    )
    (reported_conflict,) = build_report(report_cluster, two).conflicts

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


# Changes


def list_changes(*images: tuple[str, str, str]) -> list[tuple[list[str], bool]]:
    reported_changes = build_report(
        *(build_cluster(name, build_drafted_package(cluster=name, old=old, new=new)[0]) for name, old, new in images)
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
def test_equal_changes_are_grouped(images: list[tuple[str, str, str]], expected: list[tuple[list[str], bool]]) -> None:
    assert list_changes(*images) == expected


def test_change_contains_resources_causes_and_diff() -> None:
    (reported_change,) = build_package_report(build_drafted_package()[0]).changes

    assert reported_change.summary_lines == ("Deployment web: template.spec.containers[web].image web:1 → web:2",)
    assert (reported_change.action, reported_change.owner, reported_change.causes) == (
        "update v1 → v2", "PackageVariant default/edge-gw", ("upstream moved",),
    )  # fmt: skip
    (file_diff,) = reported_change.diffs
    path, diff = file_diff.path, file_diff.diff
    assert path == "d.yaml"
    assert "-        image: web:1\n+        image: web:2\n" in diff
    assert (reported_change.show_command, reported_change.reproduce_command) == (
        "reconciler show eu-1/gw",
        f"git diff {'b0' * 6} {'d1' * 6} -- gw",
    )


def test_changes_are_those_of_the_console() -> None:
    drafts = [
        build_draft("eu", package="logs-eu", owner=build_plugin_owner("eu")),
        build_draft("us", package="logs-us", owner=build_plugin_owner("us")),
        build_draft("us-2", package="logs-us-2", owner=build_plugin_owner("us-2"), unmet_gates=["tested"]),
    ]
    fleet_report = build_report(*drafts)
    (change,) = build_index(*drafts).changes

    assert [([str(target) for target in reported.targets], reported.risk) for reported in fleet_report.changes] == [
        (["eu/logs-eu", "us/logs-us"], "medium"), (["us-2/logs-us-2"], "high"),
    ]  # fmt: skip
    assert [reported.review_key for reported in fleet_report.changes] == [change.key, change.key]
    assert [reported.key for reported in fleet_report.changes] == [variant.digest for variant in change.variants]
    assert fleet_report.columns == ("logs-*",)


def test_page_contains_only_the_first_changed_lines_of_a_resource() -> None:
    lines = {version: "".join(f"  k{number}: {version}\n" for number in range(150)) for version in (1, 2)}
    before, after = (
        {"a.yaml": f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: a}}\ndata:\n{text}"} for text in lines.values()
    )
    (diff,) = build_report(build_draft("eu", before, after)).changes[0].resource_diffs

    assert (diff.changed_lines, [len(block.new) for block in diff.blocks if block.is_changed]) == (200, [50])
    assert diff.note == "100 more changed lines, not shown. The command prints the whole diff."


def test_only_a_report_with_a_page_contains_the_diffs_of_resources() -> None:
    with_page, without_page = (
        build_fleet_report([build_draft("eu")], "c0ffee", {}, should_diff_resources=value).changes
        for value in (True, False)
    )

    assert [change.resource_diffs == () for change in (*with_page, *without_page)] == [False, True]
    assert replace(with_page[0], resource_diffs=()) == without_page[0]


def test_secret_values_are_masked() -> None:
    report_package, _ = build_drafted_package()
    assert report_package.details is not None
    sheet = replace(
        report_package.details,
        before=build_tree({"s.yaml": format_secret("hunter2")}),
        after=build_tree({"s.yaml": format_secret("hunter3")}),
    )
    (reported_change,) = build_package_report(replace(report_package, details=sheet)).changes

    assert "hunter" not in str(reported_change)
    assert "*****" in str(reported_change.diffs)
    assert "*****" in str(reported_change.resource_diffs)


# Explanations


def build_explanations(status: object, names: tuple[str, ...] = ("eu-1",)) -> list[Any]:
    fleet_report = build_report(*(build_cluster(name, build_published_package(status=status)) for name in names))  # type: ignore[arg-type]
    return [*fleet_report.explanations]


def test_explanation_contains_the_source_and_each_step_of_each_value() -> None:
    (item,) = build_explanations(STATUS)

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


def test_equal_explanations_are_grouped() -> None:
    (item,) = build_explanations(STATUS, ("eu-1", "eu-2"))

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
def test_invalid_status_file_has_no_values(status: object) -> None:
    (item,) = build_explanations(status)

    assert item.values == ()


def test_secret_value_in_a_status_file_is_masked() -> None:
    step = {
        "by": "p",
        "op": "replaced",
        "before": "x",
        "after": {"kind": "Secret", "apiVersion": "v1", "data": {"a": "aHVudGVy"}},
    }
    (item,) = build_explanations({"overrides": [{"resource": "r", "pointer": "/x", "steps": [step]}]})

    assert "aHVudGVy" not in str(item)


def test_status_files_that_differ_only_in_hashes_and_names_are_grouped() -> None:
    def build_status_file(name: str, value: int, tree_id: str) -> bytes:
        return (
            f"status:\n  repository: {name}\n  trees:\n    base: {tree_id}\n    rendered: {tree_id}\n"
            f"  inputs:\n    config: {tree_id}\n    digest: {tree_id}\n    objects:\n    - kind: ConfigMap\n"
            f"      name: {name}-endpoints\n      hash: {tree_id}\n"
            f"  overrides:\n  - resource: r\n    pointer: /x\n    steps:\n    - by: p\n      after: {value}\n"
        ).encode()

    def build_cluster_with_status(name: str, value: int, tree_id: str) -> TargetData:
        return build_cluster(
            name, replace(build_published_package(), status_file=build_status_file(name, value, tree_id))
        )

    reported_explanations = build_report(
        build_cluster_with_status("eu-1", 1, "aa"),
        build_cluster_with_status("eu-2", 1, "bb"),
        build_cluster_with_status("eu-3", 2, "aa"),
    ).explanations

    assert [
        ([place.cluster for place in reported_explanation.targets], reported_explanation.has_target_names)
        for reported_explanation in reported_explanations
    ] == [
        (["eu-1", "eu-2"], True),
        (["eu-3"], False),
    ]
