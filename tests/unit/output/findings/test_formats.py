from __future__ import annotations

import pytest

from reconciler.krm.findings import Finding, FindingCode, FindingScope, Severity, SourceLocation
from reconciler.output.findings.formats import build_findings_data, format_findings, format_findings_page

BAD = Finding(
    "NameMissing", "metadata.name must be a non-empty string", SourceLocation("a.yaml", 3, "Site", "/metadata/name")
)
ODD = Finding("Alias", "spelt in an old way", SourceLocation("a.yaml", 3), Severity.WARNING)
FAR = Finding("NotPortable", "only here", SourceLocation("ü b/c.yaml", 0, "Site/x/y"), Severity.INFO)
LOST = Finding("NoDestination", "nowhere to go", SourceLocation(object="Plugin/x/y"))
BARE = Finding("Odd", "two\nlines")
OWNER = "PackageVariant/default/gw"
INSIDE = Finding("KptfileInvalid", "wrong", SourceLocation("Kptfile", 2, "", "info.site", "berlin/gateway", OWNER))
WHOLE = Finding("InjectionPointInvalid", "x.yaml: broken", SourceLocation(package="berlin/gateway", owner=OWNER))
CODES = (
    FindingCode("NameMissing", Severity.ERROR, FindingScope.OBJECT, "No name."),
    FindingCode("NotPortable", Severity.INFO, FindingScope.OBJECT, "Not there."),
    FindingCode("Odd", Severity.WARNING, FindingScope.FILE, "Hm."),
    FindingCode("KptfileInvalid", Severity.ERROR, FindingScope.PACKAGE, "Wrong."),
    FindingCode("Unused", Severity.ERROR, FindingScope.PACKAGE, "Never."),
)
NAMED = Finding("RenderFailed", "berlin/gateway: no", SourceLocation("", 0, OWNER, "", "berlin/gateway", OWNER))


@pytest.mark.parametrize(
    ("findings", "expected"),
    [
        pytest.param([], [], id="none"),
        pytest.param(
            [BAD], ["a.yaml:3: error NameMissing: metadata.name must be a non-empty string"], id="file-and-line"
        ),
        pytest.param(
            [Finding("YamlSyntax", "a.yaml:3: no YAML", SourceLocation("a.yaml", 3))],
            ["a.yaml:3: error YamlSyntax: no YAML"],
            id="location-appears-once",
        ),
        pytest.param([FAR], ["ü b/c.yaml: info NotPortable: only here"], id="a-file-without-a-line"),
        pytest.param([LOST], ["Plugin x/y: error NoDestination: nowhere to go"], id="an-object-without-a-file"),
        pytest.param([BARE], ["error Odd: two⏎lines"], id="no-place-at-all-and-one-line-for-each"),
        pytest.param(
            [INSIDE],
            ["berlin/gateway Kptfile:2 (PackageVariant default/gw): error KptfileInvalid: wrong"],
            id="a-file-of-a-package-with-its-package-and-owner",
        ),
        pytest.param(
            [WHOLE],
            ["berlin/gateway (PackageVariant default/gw): error InjectionPointInvalid: x.yaml: broken"],
            id="a-package-with-its-owner",
        ),
        pytest.param(
            [NAMED], ["PackageVariant default/gw: error RenderFailed: berlin/gateway: no"], id="owner-appears-once"
        ),
        pytest.param([BAD, BAD], ["a.yaml:3: error NameMissing: metadata.name must be a non-empty string"], id="once"),
    ],
)
def test_lines(findings: list[Finding], expected: list[str]) -> None:
    assert format_findings(findings) == expected


def test_findings_are_sorted_by_location_then_severity() -> None:
    same_place = Finding("Zed", "z", ODD.location)

    assert [item["code"] for item in build_findings_data([FAR, BAD, ODD, same_place, LOST])] == [
        "NoDestination", "Zed", "Alias", "NameMissing", "NotPortable",
    ]  # fmt: skip
    assert build_findings_data([LOST, ODD, same_place, BAD, FAR]) == build_findings_data(
        [FAR, BAD, same_place, ODD, LOST]
    )


def test_findings_of_packages_come_after_findings_of_the_config() -> None:
    assert [item["code"] for item in build_findings_data([INSIDE, WHOLE, BAD, LOST])] == [
        "NoDestination", "NameMissing", "InjectionPointInvalid", "KptfileInvalid",
    ]  # fmt: skip


def test_data_contains_package_and_owner() -> None:
    assert build_findings_data([INSIDE]) == [{
        "severity": "error", "code": "KptfileInvalid", "message": "wrong", "file": "Kptfile", "line": 2,
        "pointer": "info.site", "package": "berlin/gateway", "owner": OWNER,
    }]  # fmt: skip


def test_data_omits_unknown_fields() -> None:
    assert build_findings_data([LOST]) == [
        {"severity": "error", "code": "NoDestination", "message": "nowhere to go", "object": "Plugin/x/y"}
    ]


def test_findings_page_has_a_row_for_each_code() -> None:
    *_, first, second = format_findings_page([CODES[2], CODES[0]]).splitlines()

    assert first == "| `NameMissing` | error | object | No name. |"
    assert second == "| `Odd` | warning | file | Hm. |"
