"""Tests of root causes: each finding is listed once, and consequences are listed below their root cause."""

from __future__ import annotations

import pytest

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.output.findings.formats import build_findings_data, format_findings
from reconciler.output.findings.grouping import find_root_causes, map_root_causes


def build_finding(code: str, message: str, about: str, file: str = "", line: int = 0, package: str = "") -> Finding:
    return Finding(code, message, SourceLocation(file, line, about, package=package))


REPOSITORY = build_finding("RepositoryInvalid", "spec.git.repo must be a URL", "Repository/default/berlin", "z.yaml", 9)
POLICY = build_finding("PolicyInvalid", "spec.x is unknown", "ClusterOverridePolicy/_cluster/site", "y.yaml", 3)
UNRELATED = build_finding("ValidationError", "spec.x is unknown", "PackageVariant/default/other", "b.yaml", 2)


@pytest.mark.parametrize(
    ("consequence", "cause"),
    [
        pytest.param(
            build_finding("DownstreamNotFound", "could not find repo 'berlin'", "PackageVariant/default/a"),
            REPOSITORY,
            id="repository-by-name",
        ),
        pytest.param(
            build_finding("UpstreamUnreachable", "Repository berlin cannot be read", "PackageVariant/default/a"),
            REPOSITORY,
            id="repository-in-words",
        ),
        pytest.param(
            build_finding(
                "UpstreamNotFound", 'could not find Repository "berlin" in namespace "default"', "PackageVariant/x/a"
            ),
            REPOSITORY,
            id="repository-in-quotes",
        ),
        pytest.param(
            build_finding(
                "PolicyInvalid", "names ClusterOverridePolicy/_cluster/site, which is invalid", "", package="b/p"
            ),
            POLICY,
            id="object-by-key",
        ),
        pytest.param(
            build_finding("PolicyInvalid", "names ClusterOverridePolicy site, which is invalid", "", package="b/p"),
            POLICY,
            id="cluster-scoped-object",
        ),
        pytest.param(
            build_finding("DownstreamInvalid", "Repository default/berlin is invalid", "PackageVariant/default/a"),
            REPOSITORY,
            id="namespaced-object",
        ),
    ],
)
def test_finding_that_names_an_object_with_an_error_is_its_consequence(consequence: Finding, cause: Finding) -> None:
    assert map_root_causes([REPOSITORY, POLICY, UNRELATED, consequence]) == {consequence: cause}


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(UNRELATED, id="nothing-in-common"),
        pytest.param(build_finding("X", "repo 'berlin-2' is gone", "PackageVariant/default/a"), id="a-longer-name"),
        pytest.param(
            build_finding("X", "Repository berlin: again", "Repository/default/berlin"), id="the-object-itself"
        ),
    ],
)
def test_unrelated_finding_is_not_a_consequence(other: Finding) -> None:
    assert map_root_causes([REPOSITORY, other]) == {}


def test_warning_is_not_a_root_cause() -> None:
    warning = Finding("FieldMisspelt", "odd", REPOSITORY.location, Severity.WARNING)

    assert map_root_causes([warning, build_finding("X", "repo 'berlin' has no v1", "PackageVariant/default/a")]) == {}


def test_chain_ends_at_its_root_and_cycle_ends_at_its_first_finding() -> None:
    middle = build_finding("A", "names Repository/default/berlin", "PackageVariantSet/default/s")
    last = build_finding("B", "made by PackageVariantSet/default/s", "PackageVariant/default/v")
    result = build_finding("C", "as Kafka/x/two says", "Kafka/x/one", "a.yaml")
    two = build_finding("C", "as Kafka/x/one says", "Kafka/x/two", "b.yaml")

    assert map_root_causes([last, middle, REPOSITORY]) == {last: REPOSITORY, middle: REPOSITORY}
    assert map_root_causes([result, two]) == {two: result}


def test_every_finding_belongs_to_one_root_cause() -> None:
    below = [
        build_finding("X", f"repo 'berlin' is wrong {n}", f"PackageVariant/default/v{n}", "a.yaml", n) for n in range(9)
    ]
    findings = [*below, UNRELATED, REPOSITORY]

    listed = [
        item for root_cause in find_root_causes(findings) for item in (root_cause.finding, *root_cause.consequences)
    ]
    assert sorted(listed, key=str) == sorted(findings, key=str)
    assert [root_cause.finding for root_cause in find_root_causes(findings)] == [UNRELATED, REPOSITORY]


def test_consequences_are_printed_below_their_cause_and_counted() -> None:
    words = ("ant", "bee", "cat", "dog", "eel", "fox", "gnu")
    below = [
        build_finding(f"X{n}", f"repo 'berlin': {word}", "PackageVariant/default/v", "a.yaml", n)
        for n, word in enumerate(words, 1)
    ]

    assert format_findings([*below, REPOSITORY]) == [
        "z.yaml:9: error RepositoryInvalid: spec.git.repo must be a URL",
        *(f"  a.yaml:{n}: error X{n}: repo 'berlin': {word}" for n, word in enumerate(words[:5], 1)),
        "  and 2 more findings with this cause; -o json lists all",
    ]


def test_similar_consequences_are_one_line() -> None:
    below = [
        build_finding("X", "repo 'berlin' is wrong", f"PackageVariant/default/v{n}", "a.yaml", n) for n in range(1, 8)
    ]

    lines = format_findings([*below, REPOSITORY])
    assert lines[0] == "z.yaml:9: error RepositoryInvalid: spec.git.repo must be a URL"
    assert len(lines) == 2
    assert lines[1].startswith(
        "  a.yaml:1: error X: repo 'berlin' is wrong; the same finding at 7 locations: a.yaml:1, "
    )


def test_data_of_a_consequence_contains_its_cause() -> None:
    below = build_finding("X", "repo 'berlin' is wrong", "PackageVariant/default/v", "a.yaml", 1)

    assert [item.get("causedBy") for item in build_findings_data([below, REPOSITORY])] == [
        {"code": "RepositoryInvalid", "file": "z.yaml", "line": 9, "object": "Repository/default/berlin"},
        None,
    ]
