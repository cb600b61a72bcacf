"""Tests of the HTML page: it loads nothing, it runs no script from config text, and every link has a target."""

from __future__ import annotations

import re
from base64 import b64encode
from collections import Counter
from dataclasses import replace
from hashlib import sha256
from html.parser import HTMLParser
from itertools import groupby

import pytest

from reconciler.output.report.model import FleetReport
from reconciler.output.report.page import format_report_page
from reconciler.output.report.result import ReportResult, build_report_result
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from tests.unit.output.builders import build_tree, read_json
from tests.unit.output.report.builders import (
    CONFLICT,
    DAY,
    STATUS,
    build_cluster,
    build_drafted_package,
    build_published_package,
    build_report,
)

VOID = {"meta", "br", "wbr", "input"}
SUMMARY = {
    "totals": {"packages": 1, "targets": 1},
    "findings": [{"severity": "error", "code": "Broken", "message": "it broke", "file": "a.yaml", "line": 3}],
}
HOSTILE = [
    pytest.param("<script>alert(1)</script>", id="a-script"),
    pytest.param("</style><script>alert(1)</script>", id="the-end-of-the-style"),
    pytest.param('</details></section>"><img src=x onerror=alert(1)>', id="the-end-of-an-attribute"),
    pytest.param("' onmouseover='alert(1)", id="an-attribute"),
    pytest.param("{{ 7 * 7 }}{% raw %}", id="a-template"),
    pytest.param("a\u202etxt.exe\u2066", id="another-direction"),
    pytest.param("a\r\n\0\x1b[31m", id="control-characters"),
    pytest.param("&lt;b&gt; &amp;quot;", id="what-is-escaped-already"),
]


class ParsedPage(HTMLParser):
    """Elements with attributes, IDs, links and text of a page. It checks that all elements are closed.

    `diff_elements` are the elements in the diffs of resources, whose number depends on the content of files.
    """

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.diff_elements: list[tuple[str, dict[str, str | None]]] = []
        self._diff_depth = 0
        self.words: list[str] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        (self.diff_elements if self._diff_depth else self.elements).append((tag, dict(attrs)))
        if tag not in VOID:
            self._open.append(tag)
        if ("class", "resource") in attrs:
            self._diff_depth = len(self._open)

    def handle_endtag(self, tag: str) -> None:
        if len(self._open) == self._diff_depth:
            self._diff_depth = 0
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self._open and self._open[-1] not in ("style", "script"):
            self.words.append(data)

    @property
    def all_elements(self) -> list[tuple[str, dict[str, str | None]]]:
        return [*self.elements, *self.diff_elements]

    def list_values(self, attribute: str) -> list[str]:
        """Return the values of an attribute."""
        return [value for _, attributes in self.all_elements if (value := attributes.get(attribute)) is not None]

    @property
    def text(self) -> str:
        """All visible text, with runs of blanks collapsed."""
        return " ".join("".join(self.words).split())


def build_full_report() -> FleetReport:
    """Return a fleet report with content in every section."""
    status = {**STATUS, "conflicts": [CONFLICT]}
    blocked = build_published_package(state="blocked", reasons=(BlockingReason("Broken", "it broke"),))
    return build_report(
        build_cluster("eu-1", build_drafted_package(status=status)[0], build_published_package("other")),
        build_cluster("eu-2", blocked),
        build_cluster("eu-3", read_error="Repository eu-3: unreachable"),
        summary=SUMMARY,
    )


def build_hostile_report(text: str) -> FleetReport:
    """Return a fleet report in which every text from outside is the given text."""
    conflict = {**CONFLICT, "file": text, "resource": text, "pointer": text, "local": text, "rule": text}
    step = {"by": text, "where": text, "layer": text, "before": text, "after": text, "expression": text}
    status = {
        "owner": {"kind": text, "name": text}, "task": text, "upstream": {"to": {"ref": text, "repo": text}},
        "conflicts": [conflict], "layers": [{"resource": text, "pointer": text, "option": text, "steps": [step]}],
        "injected": [{"point": text, "object": text}], "templates": [{"resource": text, "parent": text}],
    }  # fmt: skip
    reason = (BlockingReason(text, text),)
    report_package, _ = build_drafted_package(text, status=status)
    assert report_package.details is not None
    sheet = replace(
        report_package.details,
        before=build_tree({text: "a: 1\n"}),
        after=build_tree({text: f"{text}\n"}),
        causes=(text,),
    )
    here = build_cluster(
        "eu-1",
        replace(report_package, details=sheet),
        build_published_package("~", "blocked", reasons=reason),
        labels={text: text},
    )
    finding = {"severity": "error", "code": text, "message": text, "file": text}
    totals = {"packages": 1, "targets": 1}
    summary = {"totals": totals, "findings": [finding], "notReady": [{"object": text, "reason": text, "message": text}]}
    return build_report(here, build_cluster("eu-2", read_error=text), summary=summary)


def test_page_contains_everything_that_its_report_contains() -> None:
    text = ParsedPage(format_report_page(build_full_report(), " --config c")).text

    for item in (
        "3 packages on 3 clusters", "1 cluster cannot be read.", "Repository eu-3: unreachable", "2026-01-02",
        "Blocked 1", "Broken: it broke", "Conflicts to review 1", "reconciler explain eu-2/gw --config c",
        "reconciler show eu-1/gw --config c", "/spec/replicas", "removed image: web:1", "install gw", "HIGH", "OverridePolicy/small",
        "3 → 1", "upstream moved", "it broke", "a.yaml:3", "41ab" * 10,
    ):  # fmt: skip
        assert item in text


def test_links_have_targets_and_ids_are_unique() -> None:
    page = ParsedPage(format_report_page(build_full_report()))
    ids = Counter(page.list_values("id"))

    assert max(ids.values()) == 1
    assert {link.removeprefix("#") for link in page.list_values("href")} <= ids.keys()
    assert {label for value in page.list_values("aria-labelledby") for label in value.split()} <= ids.keys()
    assert {"change-1", "explanation-1", "pending-1", "conflicts"} <= ids.keys()


def test_draft_links_to_its_change_and_version_links_to_its_explanation() -> None:
    page = format_report_page(build_full_report())

    assert re.search(r'<td class="draft"><a href="#change-1">.*?draft</a>.*?<a href="#explanation-\d">v1</a>', page)
    assert re.search(r'<td class="published"><a href="#explanation-\d">v1</a>', page)
    assert re.search(r'<td class="blocked"><a href="#pending-\d">', page)


def test_page_loads_nothing_and_runs_only_the_script_of_its_policy() -> None:
    text = format_report_page(build_full_report())
    page = ParsedPage(text)
    (policy,) = (item["content"] for tag, item in page.elements if item.get("http-equiv") == "Content-Security-Policy")
    (style,), (script,) = (re.findall(f"<{tag}>(.*?)</{tag}>", text, re.DOTALL) for tag in ("style", "script"))
    hashes = [f"'sha256-{b64encode(sha256(item.encode()).digest()).decode()}'" for item in (style, script)]

    assert policy == (
        f"default-src 'none'; style-src {hashes[0]}; script-src {hashes[1]}; base-uri 'none'; form-action 'none'"
    )
    assert not {"src", "style", "srcset", "action"} & {name for _, item in page.all_elements for name in item}
    assert not [name for _, item in page.all_elements for name in item if name.startswith("on")]
    assert all(link.startswith("#") for link in page.list_values("href"))
    assert "url(" not in style
    assert "@import" not in style


@pytest.mark.parametrize("text", HOSTILE)
def test_hostile_text_does_not_change_the_elements(text: str) -> None:
    page = ParsedPage(format_report_page(build_hostile_report(text), f" --config {text}"))
    plain = ParsedPage(format_report_page(build_hostile_report("plain"), " --config plain"))

    def list_shapes(elements: list[tuple[str, dict[str, str | None]]]) -> list[tuple[str, tuple[str, ...]]]:
        # A name can be broken at its slashes.
        return [(tag, tuple(sorted(attributes))) for tag, attributes in elements if tag != "wbr"]

    assert list_shapes(page.elements) == list_shapes(plain.elements)
    # A file with other line ends has more lines, and a file with control characters has a note instead of lines.
    assert {*list_shapes(page.diff_elements)} <= {*list_shapes(plain.diff_elements), ("p", ())}
    assert not re.search("[\u202a-\u202e\u2066-\u2069\0\x1b]", page.text)


def test_equal_reports_have_equal_pages() -> None:
    assert format_report_page(build_full_report()) == format_report_page(build_full_report())
    assert build_result().to_json() == build_result().to_json()


def build_result() -> ReportResult:
    return build_report_result(build_full_report())


def test_empty_fleet_has_a_page() -> None:
    text = ParsedPage(format_report_page(build_report())).text

    assert "0 packages on 0 clusters: the config contains no clusters." in text
    assert "No work is pending." in text


def test_data_refers_to_existing_changes_and_explanations() -> None:
    data = read_json(build_result())
    items = {
        kind: [item[kind] for item in group] for kind, group in groupby(data["items"], key=lambda item: item["type"])
    }
    packages = [package for cluster in items["cluster"] for package in cluster["packages"].values()]

    assert {package["changeKey"] for package in packages if "changeKey" in package} == {
        change["key"] for change in items["change"]
    }
    assert {package["explanationKey"] for package in packages} == {
        explanation["key"] for explanation in items["explanation"]
    }
    assert data["summary"] == {
        "date": "2026-01-02T00:00:00Z",
        "packages": {"blocked": 1, "draft": 1, "published": 1},
        "status": {"packages": 1, "targets": 1},
    }
    assert data["findings"] == SUMMARY["findings"]
    assert items["cluster"][2] == {
        "cluster": "eu-3", "labels": {}, "readError": "Repository eu-3: unreachable", "packages": {},
    }  # fmt: skip
    assert next(item for item in data["items"] if item["type"] == "pending")["command"] == "reconciler explain eu-2/gw"
    assert items["change"][0]["diffs"][0]["path"] == "d.yaml"
    assert items["conflict"][0]["targets"] == ["eu-1/gw"]
    assert DAY == 1_767_312_000


def test_diffs_beyond_the_line_limit_are_omitted(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.output.report.changes._MAX_DIFF_LINES", 1)
    drafts = [build_drafted_package(name, new=f"web:{name}")[0] for name in ("a", "b")]
    first, second = build_report(build_cluster("eu-1", *drafts)).changes

    assert (bool(first.diffs), first.is_diff_omitted) == (True, False)
    assert (second.diffs, second.is_diff_omitted) == ((), True)
    assert "The diff is omitted" in format_report_page(build_report(build_cluster("eu-1", *drafts)))
