"""Tests of finding groups: many similar findings are one line with five examples; other findings stay separate."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from reconciler.krm.findings import (
    MAX_MESSAGE_CHARACTERS,
    Finding,
    Severity,
    SourceLocation,
    join_messages,
    truncate_message,
)
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.findings.grouping import group_findings


def build_findings(number: int, message: str = "{name} has no region", **more: object) -> list[Finding]:
    names = [f"c-{index:03}" for index in range(number)]
    return [Finding("Broken", message.format(name=name), _build_location(name), **more) for name in names]  # type: ignore[arg-type]


def _build_location(name: str) -> SourceLocation:
    return SourceLocation(
        "deployment.yaml", 3, "Deployment/edge/web", "", f"{name}/web", f"PackageVariant/default/web-{name}"
    )


def test_finding_on_a_hundred_clusters_is_one_line_with_five_examples() -> None:
    (line,) = format_findings(build_findings(100))

    assert line == (
        "c-000/web deployment.yaml:3 (PackageVariant default/web-c-000): error Broken: c-000 has no region; the same finding at"
        " 100 locations: c-000/web, c-001/web, c-002/web, c-003/web, c-004/web and 95 more"
    )


@pytest.mark.parametrize(
    ("findings", "lines"),
    [
        pytest.param(build_findings(5), 5, id="five-are-shown-one-by-one"),
        pytest.param(build_findings(6), 1, id="six-are-one-group"),
        pytest.param([*build_findings(6), *build_findings(6, "{name} has no zone")], 2, id="other-messages"),
        pytest.param([*build_findings(6), *build_findings(6, severity=Severity.WARNING)], 2, id="other-severities"),
        pytest.param(
            [*build_findings(6, "{name} has 1 region"), *build_findings(3, "{name} has 2 regions")],
            4,
            id="other-values",
        ),
        pytest.param([], 0, id="none"),
    ],
)
def test_similar_findings_are_one_line(findings: Sequence[Finding], lines: int) -> None:
    assert len(format_findings(findings)) == lines


def test_data_contains_every_finding() -> None:
    assert len(build_findings_data(build_findings(100))) == 100


def test_groups_keep_the_order_of_their_first_findings() -> None:
    other = Finding("Alone", "once", SourceLocation("a.yaml", 1))

    groups = list(group_findings([*build_findings(6), other, *build_findings(6, "{name} has no zone")]))

    assert [(finding_group.first.code, len(finding_group.findings)) for finding_group in groups] == [
        ("Broken", 6),
        ("Alone", 1),
        ("Broken", 6),
    ]


def test_line_length_is_limited() -> None:
    assert max(map(len, format_findings([Finding("Broken", "x" * 100_000)]))) <= 1_000


def test_joined_messages_are_limited_to_five_and_the_others_are_counted() -> None:
    assert join_messages(str(number) for number in range(100)) == "0; 1; 2; 3; 4; … and 95 more"
    assert join_messages(["a", "b", "a"]) == "a; b"
    assert join_messages([]) == ""


def test_message_length_is_limited() -> None:
    long = truncate_message("x" * 20_000)

    assert len(long) == MAX_MESSAGE_CHARACTERS
    assert long.endswith("… (20000 characters)")
    assert truncate_message("x" * MAX_MESSAGE_CHARACTERS) == "x" * MAX_MESSAGE_CHARACTERS
