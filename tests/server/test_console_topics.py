"""Tests of the topics of pages: the version of a page changes only with the data that the page shows."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.lazy_dataclasses import replace
from reconciler.output.fleet.model import FleetIndex, PackageRow, TargetEntry
from reconciler.server.console.topics import (
    FLEET_TOPIC,
    MAX_TOPICS,
    build_change_topic,
    build_package_topic,
    build_target_topic,
    compute_version,
)
from tests.support.fleet_index import create_index, create_refusal, create_row, create_target

BERLIN = create_target(
    "berlin", {"region": "eu"}, create_row("berlin", "web", change="roll"), create_row("berlin", "db, old")
)
LISBON = create_target("lisbon", {"region": "eu"}, create_row("lisbon", "web", change="roll"))
PORTO = create_target("porto", {"region": "us"}, create_row("porto", "db", change="tune"))
TOPICS = {
    "fleet": FLEET_TOPIC,
    "change": build_change_topic("roll"),
    "other change": build_change_topic("tune"),
    "target": build_target_topic("berlin"),
    "other target": build_target_topic("porto"),
    "package": build_package_topic("berlin", "web"),
    "other package": build_package_topic("berlin", "db, old"),
}


def build(*targets: TargetEntry, findings: tuple[Finding, ...] = ()) -> FleetIndex:
    return create_index(targets, findings, number=2)


def with_row(target: TargetEntry, change: Callable[[PackageRow], PackageRow], position: int = 0) -> TargetEntry:
    """Return a target with a changed package."""
    rows = list(target.packages)
    rows[position] = change(rows[position])
    return replace(target, packages=tuple(rows))


def move_draft(row: PackageRow) -> PackageRow:
    """Return a package whose draft has a new head."""
    assert row.draft is not None
    return replace(row, draft=replace(row.draft, member=replace(row.draft.member, head="moved")))


def replace_effect(row: PackageRow) -> PackageRow:
    """Return a package whose draft has a different effect."""
    assert row.draft is not None
    return replace(row, draft=replace(row.draft, variant_digest="sha256:other"))


def find_in(package: str) -> tuple[Finding, ...]:
    return (Finding("UpstreamNotFound", "there is no v3", SourceLocation("a.yaml", 1, package=package)),)


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        pytest.param(build(BERLIN, LISBON, PORTO), set(), id="a-new-index-with-equal-data"),
        pytest.param(
            build(BERLIN, with_row(LISBON, move_draft), PORTO), {"change"}, id="the-draft-of-another-target-moves"
        ),
        pytest.param(
            build(with_row(BERLIN, move_draft), LISBON, PORTO), {"change", "target", "package"}, id="a-draft-moves"
        ),
        pytest.param(
            build(with_row(BERLIN, replace_effect), LISBON, PORTO), {"change", "target", "package"}, id="a-new-effect"
        ),
        pytest.param(
            build(with_row(BERLIN, lambda row: replace(row, is_edited=True), 1), LISBON, PORTO),
            {"target", "other package"},
            id="a-local-change",
        ),
        pytest.param(
            build(replace(BERLIN, head="moved"), LISBON, PORTO), {"target", "package", "other package"},
            id="the-target-branch-moves",
        ),
        pytest.param(
            build(replace(BERLIN, labels={"region": "us"}), LISBON, PORTO), {"change", "target"}, id="new-labels"
        ),
        pytest.param(
            build(BERLIN, LISBON, PORTO, findings=find_in("berlin/web")), {"target", "package"}, id="a-finding"
        ),
        pytest.param(build(BERLIN, LISBON, PORTO, findings=find_in("rome/web")), set(), id="a-finding-about-another-target"),
        pytest.param(build(BERLIN, PORTO), {"change", "target"}, id="a-draft-less"),
        pytest.param(build(LISBON, PORTO), {"change", "target", "package", "other package"}, id="a-target-less"),
        pytest.param(
            build(BERLIN, LISBON, PORTO, create_target("rome", {}, create_row("rome", "web"))), {"change"},
            id="the-package-on-a-new-target",
        ),
        pytest.param(
            build(
                BERLIN, LISBON,
                with_row(PORTO, lambda row: replace(row, reasons=(create_refusal("closed"),), state="blocked")),
            ),
            {"other change", "other target"},
            id="a-blocked-package",
        ),
    ],
)  # fmt: skip
def test_only_topics_with_changed_data_have_a_new_version(index: FleetIndex, expected: set[str]) -> None:
    first = create_index((BERLIN, LISBON, PORTO), number=1)
    changed = {
        name for name, topic in TOPICS.items() if compute_version(first, [topic]) != compute_version(index, [topic])
    }

    assert changed == expected | {"fleet"}


@pytest.mark.parametrize(
    "topics",
    [
        pytest.param([], id="none"),
        pytest.param([""], id="empty"),
        pytest.param(["weather:berlin"], id="unknown"),
        pytest.param([TOPICS["target"], FLEET_TOPIC], id="with-the-fleet"),
        pytest.param([TOPICS["target"]] * (MAX_TOPICS + 1), id="too-many"),
    ],
)
def test_the_version_of_other_topics_changes_with_each_index(topics: list[str]) -> None:
    first, second = (create_index((BERLIN,), number=number) for number in (1, 2))

    assert compute_version(first, topics) != compute_version(second, topics)
