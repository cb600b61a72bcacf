"""Tests of located findings: line, column, path, and a fingerprint that does not depend on line numbers."""

from __future__ import annotations

import json
from typing import Any

import pytest

from reconciler.krm.findings import Finding, FindingCode, FindingScope, Severity, SourceLocation
from reconciler.output.findings import code_scanning as sarif_module
from reconciler.output.findings.code_scanning import (
    FindingLocator,
    LocatedFinding,
    build_code_quality_report,
    build_sarif_log,
    build_validation_result,
    format_validation_text,
    locate_findings,
)
from tests.support.catalogs import catalog_of
from tests.unit.output.builders import read_json

SITE = """\
apiVersion: example.com/v1
kind: Site
metadata: {name: a}
---
# the other
apiVersion: example.com/v1
kind: Site
metadata:
  name: b
  labels: {x/y: "1", "ä": "2"}
spec:
  doors:
    - name: front
    - {name: back, open: maybe}
"""
OWNER = "Site/_cluster/b"
CODES = (
    FindingCode("Door", Severity.ERROR, FindingScope.OBJECT, "A door is not right."),
    FindingCode("Wall", Severity.INFO, FindingScope.PACKAGE, "A wall."),
)


def locate(*findings: Finding, text: str = SITE, root: str = "") -> list[LocatedFinding]:
    return locate_findings(findings, FindingLocator(catalog_of(site=text).objects.values()), root, "reconciler.yaml")


def build_door_finding(pointer: str = "", line: int = 0, message: str = "no") -> Finding:
    return Finding("Door", message, SourceLocation("site.yaml", line, OWNER, pointer))


@pytest.mark.parametrize(
    ("where", "place"),
    [
        pytest.param(SourceLocation("site.yaml", 6, OWNER, "/spec/doors/1/open"), (14, 20), id="a-field-in-a-flow"),
        pytest.param(
            SourceLocation("site.yaml", 6, OWNER, "/spec/doors/7/open"), (12, 3), id="what-is-near-what-is-gone"
        ),
        pytest.param(SourceLocation("site.yaml", 6, OWNER, "/metadata/labels/x~1y"), (10, 12), id="an-escaped-key"),
        pytest.param(
            SourceLocation("site.yaml", 6, OWNER, "spec.doors[0].name"), (13, 7), id="a-field-as-messages-spell-it"
        ),
        pytest.param(SourceLocation("site.yaml", 3, "Site/_cluster/a"), (3, 1), id="a-line-without-a-field"),
        pytest.param(SourceLocation("site.yaml", 6, OWNER, "/spec/~7"), (6, 1), id="no-pointer-at-all"),
        pytest.param(SourceLocation("broken.yaml", 3), (3, 0), id="a-file-without-objects"),
        pytest.param(SourceLocation(object=OWNER), (6, 1), id="an-object-without-a-file"),
        pytest.param(SourceLocation("x.yaml", 9, "Pod/x/y", "/spec", "c/p", OWNER), (6, 1), id="inside-of-its-package"),
        pytest.param(SourceLocation(), (0, 0), id="nowhere"),
    ],
)
def test_location_of_a_finding(where: SourceLocation, place: tuple[int, int]) -> None:
    (located_finding,) = locate(Finding("Door", "no", where))

    assert (located_finding.line, located_finding.column) == place


@pytest.mark.parametrize(
    ("where", "root", "path"),
    [
        pytest.param(SourceLocation("a/b.yaml", 1), "", "a/b.yaml", id="the-root"),
        pytest.param(SourceLocation("a/b.yaml", 1), "clusters/prod", "clusters/prod/a/b.yaml", id="a-folder"),
        pytest.param(SourceLocation(), "clusters/prod", "reconciler.yaml", id="no-file"),
        pytest.param(SourceLocation("k.yaml", 1, "", "", "c/p", OWNER), "x", "x/site.yaml", id="owner-of-the-package"),
        pytest.param(
            SourceLocation("k.yaml", 1, "", "", "c/p", "Placement/_cluster/z"),
            "x",
            "reconciler.yaml",
            id="unknown-owner",
        ),
    ],
)
def test_path_of_a_finding(where: SourceLocation, root: str, path: str) -> None:
    (located_finding,) = locate(Finding("Door", "no", where), root=root)

    assert located_finding.path == path


def test_fingerprint_does_not_depend_on_lines_or_the_message() -> None:
    before = locate(build_door_finding("/spec/doors/1/open", 14))
    after = locate(build_door_finding("/spec/doors/1/open", 16, "a better word"), text=f"# new\n\n{SITE}")

    assert [located_finding.fingerprint for located_finding in before] == [
        located_finding.fingerprint for located_finding in after
    ]
    assert [located_finding.line for located_finding in after] == [16]


def test_similar_findings_of_one_field_have_different_fingerprints() -> None:
    located_findings = locate(
        build_door_finding("/spec", message="one"),
        build_door_finding("/spec", message="two"),
        build_door_finding("/metadata"),
    )

    assert len({located_finding.fingerprint for located_finding in located_findings}) == 3


def test_lines_and_data_contain_the_location_of_the_field() -> None:
    located_findings = locate(build_door_finding("/spec/doors/1/open", 6))

    result = build_validation_result(located_findings, "c0ffee")
    assert format_validation_text(result) == "site.yaml:14: error Door: no"
    assert read_json(result)["summary"] == {"errors": 1, "warnings": 0, "infos": 0}
    assert read_json(result)["findings"] == [{
        "severity": "error", "code": "Door", "message": "no", "file": "site.yaml", "line": 14, "object": OWNER,
        "pointer": "/spec/doors/1/open", "column": 20, "fingerprint": located_findings[0].fingerprint,
    }]  # fmt: skip


def build_log_run(*findings: Finding, root: str = "") -> dict[str, Any]:
    return build_sarif_log(locate(*findings, root=root), "1.2.3", CODES, "validate")["runs"][0]


def test_sarif() -> None:
    log = build_sarif_log(locate(build_door_finding("/spec/doors/1/open"), root="ü b"), "1.2.3", CODES, "validate")
    (run,) = log["runs"]
    (result,) = run["results"]

    assert log["version"] == "2.1.0"
    assert run["automationDetails"] == {"id": "reconciler/validate/"}
    assert run["invocations"] == [{"executionSuccessful": True}]
    assert [rule["id"] for rule in run["tool"]["driver"]["rules"]] == ["Door"]
    assert result.pop("partialFingerprints")["primaryLocationLineHash"]
    assert result == {
        "ruleId": "Door",
        "ruleIndex": 0,
        "level": "error",
        "message": {"text": "no"},
        "locations": [{
            "physicalLocation": {
                "artifactLocation": {"uri": "%C3%BC%20b/site.yaml"},
                "region": {"startLine": 14, "startColumn": 20},
            },
            "logicalLocations": [{"fullyQualifiedName": f"{OWNER} /spec/doors/1/open"}],
        }],
    }  # fmt: skip
    assert json.loads(json.dumps(log)) == log


def test_sarif_rule_describes_its_effect() -> None:
    door_rule, wall = build_log_run(build_door_finding(), Finding("Wall", "w", SourceLocation(), Severity.INFO))[
        "tool"
    ]["driver"]["rules"]

    assert door_rule["defaultConfiguration"] == {"level": "error"}
    assert door_rule["fullDescription"]["text"].startswith(
        "A door is not right. Effect of an error: the object creates no packages"
    )
    assert wall["defaultConfiguration"] == {"level": "note"}
    assert wall["help"]["text"].startswith("A wall. It blocks nothing.")


def test_every_sarif_result_has_a_location() -> None:
    results = build_log_run(Finding("Door", "no"), Finding("Door", "whole", SourceLocation("site.yaml")))["results"]

    places = [result["locations"][0]["physicalLocation"] for result in results]
    assert places == [
        {"artifactLocation": {"uri": "reconciler.yaml"}, "region": {"startLine": 1}},
        {"artifactLocation": {"uri": "site.yaml"}, "region": {"startLine": 1}},
    ]


def test_location_inside_a_package_is_part_of_the_message() -> None:
    (result,) = build_log_run(
        Finding("Wall", "crooked", SourceLocation("k.yaml", 2, "Pod/x/y", "/spec", "berlin/gw", OWNER))
    )["results"]

    assert result["message"]["text"] == "berlin/gw k.yaml:2 Pod x/y: crooked"
    assert result["locations"][0]["physicalLocation"]["artifactLocation"] == {"uri": "site.yaml"}
    assert [logical_location["fullyQualifiedName"] for logical_location in result["locations"][0]["logicalLocations"]] == [
        "berlin/gw Pod/x/y /spec", OWNER,
    ]  # fmt: skip


def test_sarif_limit_omits_infos_before_errors(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sarif_module, "MAX_RESULTS", 2)
    wall = Finding("Wall", "w", SourceLocation("site.yaml", 1, "Site/_cluster/a"), Severity.INFO)
    run = build_log_run(wall, build_door_finding("/spec"), build_door_finding("/metadata"))

    assert [result["ruleId"] for result in run["results"]] == ["Door", "Door"]
    assert (
        "1 more findings are not in this file"
        in run["invocations"][0]["toolExecutionNotifications"][0]["message"]["text"]
    )


def test_code_quality() -> None:
    inside = Finding("Wall", "two\nlines", SourceLocation("k.yaml", 2, "", "", "berlin/gw", OWNER), Severity.INFO)
    located_findings = locate(build_door_finding("/spec/doors"), inside, root="prod")

    assert build_code_quality_report(located_findings) == [
        {
            "description": "no", "check_name": "Door", "fingerprint": located_findings[0].fingerprint, "severity": "critical",
            "location": {"path": "prod/site.yaml", "lines": {"begin": 12}},
        },
        {
            "description": "berlin/gw k.yaml:2 (Site b): two⏎lines", "check_name": "Wall",
            "fingerprint": located_findings[1].fingerprint, "severity": "info",
            "location": {"path": "prod/site.yaml", "lines": {"begin": 6}},
        },
    ]  # fmt: skip
