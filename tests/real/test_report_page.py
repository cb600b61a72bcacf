"""The report page in a real browser: keyboard, phone, dark mode, print, and hostile names."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from reconciler.output.fleet.target_data import TargetData
from reconciler.output.report.page import format_report_page
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from tests.support.browser import AXE, MISSING, Tab, open_tab
from tests.unit.output.report.builders import (
    CONFLICT,
    STATUS,
    build_cluster,
    build_drafted_package,
    build_published_package,
    build_report,
)
from tests.unit.output.report.test_page import SUMMARY, build_hostile_report

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.slow]

HIDDEN = "return [...document.querySelectorAll('.matrix tbody tr')].filter(row => !row.hidden).length"
FOCUSED = "const one = document.activeElement; return [one.closest('tr').rowIndex, one.closest('td').cellIndex]"
WIDER = "one => one.scrollWidth > one.clientWidth"
FITS = "const one = document.documentElement; return one.scrollWidth <= one.clientWidth"


def _cluster(number: int) -> TargetData:
    name = f"eu-{number:03}"
    match number % 50:
        case 1:
            conflicting = {**STATUS, "conflicts": [CONFLICT]}
            return build_cluster(
                name, build_drafted_package(cluster=name, status=conflicting)[0], build_published_package("other")
            )
        case 2:
            return build_cluster(
                name, build_published_package(state="blocked", reasons=(BlockingReason("Broken", f"{name}: it broke"),))
            )
        case 3:
            return build_cluster(
                name, build_drafted_package(cluster=name, new=f"web:{number}{'x' * 80}")[0], labels={"region": "north"}
            )
    return build_cluster(
        name, build_published_package(), build_published_package("other", number=12), build_published_package("third")
    )


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab(tmp_path_factory.mktemp("profile")) as result:
        yield result


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Write a page of 300 clusters, of which 18 require attention and one cannot be read."""
    clusters = [*map(_cluster, range(299)), build_cluster("eu-299", read_error="Repository eu-299: unreachable")]
    file = tmp_path_factory.mktemp("page") / "report.html"
    file.write_text(format_report_page(build_report(*clusters, summary=SUMMARY), " --config config"), encoding="utf-8")
    return file


@pytest.mark.parametrize("dark", [pytest.param(False, id="light"), pytest.param(True, id="dark")])
def test_nothing_is_refused_or_goes_wrong(tab: Tab, page: Path, dark: bool) -> None:
    tab.show(page, dark=dark)

    assert tab.log() == []
    ground, ink = tab.run(
        "const it = getComputedStyle(document.documentElement); return [it.backgroundColor, it.color]"
    )
    lightness = [sum(map(int, item.removeprefix("rgb(").removesuffix(")").split(","))) for item in (ground, ink)]
    assert (lightness[0] < lightness[1]) == dark


@pytest.mark.parametrize("dark", [pytest.param(False, id="light"), pytest.param(True, id="dark")])
@pytest.mark.skipif(not AXE.exists(), reason=f"there is no axe-core: npm install --prefix {AXE.parents[2]} axe-core")
def test_the_page_is_accessible(tab: Tab, page: Path, dark: bool) -> None:
    tab.show(page, dark=dark)
    tab.run("document.querySelectorAll('.change, .explanation, .file').forEach(one => one.open = true)")

    assert tab.check_accessibility() == []


@pytest.mark.parametrize("width", [360, 768, 1280])
def test_the_page_is_never_wider_than_the_window(tab: Tab, page: Path, width: int) -> None:
    tab.show(page, width)
    tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")

    assert tab.run(FITS)
    # The browser clips content with deferred layout, so that it does not widen the page.
    assert tab.run(f"return [...document.querySelectorAll('.body :is(li, p, dd, div)')].filter({WIDER}).length") == 0


def test_what_is_well_is_folded_and_the_rest_is_not(tab: Tab, page: Path) -> None:
    tab.show(page)

    well = tab.find(By.CSS_SELECTOR, ".completed")
    assert [item.get_attribute("open") for item in well] == [None]
    assert len(tab.find(By.CSS_SELECTOR, "#matrix > .scroll tbody tr")) == 19


def test_the_filter_finds_clusters_by_name_label_and_state(tab: Tab, page: Path) -> None:
    tab.show(page)
    (search,) = tab.find(By.CSS_SELECTOR, ".filter input")
    search.send_keys("eu-1 north")
    by_label = tab.run(HIDDEN)
    search.clear()
    search.send_keys("eu-123")
    in_the_fold = (tab.run(HIDDEN), tab.run("return document.querySelector('.completed').open"))
    search.clear()
    tab.find(By.CSS_SELECTOR, ".filter option[value=blocked]")[0].click()
    by_state = (tab.run(HIDDEN), tab.find(By.CSS_SELECTOR, ".filter output")[0].text)

    assert (by_label, in_the_fold, by_state) == (2, (1, True), (6, "6 of 300"))


def test_arrows_go_from_cell_to_cell_and_the_tab_key_leaves_the_matrix(tab: Tab, page: Path) -> None:
    tab.show(page)
    tab.run("document.querySelector('#matrix > .scroll').focus()")
    tab.press(Keys.TAB)
    walked = [tab.run(FOCUSED)]
    for key in (Keys.ARROW_DOWN, Keys.ARROW_RIGHT, Keys.ARROW_UP, Keys.END, Keys.HOME):
        tab.press(key)
        walked.append(tab.run(FOCUSED))
    tab.press_with(Keys.CONTROL, Keys.END)
    walked.append(tab.run(FOCUSED))
    tab.press(Keys.TAB)

    # the state and the version of a draft are two links; the last line is the cluster that could not be read
    assert walked == [[1, 1], [2, 1], [2, 1], [1, 1], [1, 2], [1, 1], [18, 1]]
    assert tab.run("return document.activeElement.closest('.matrix')") is None
    assert tab.run("return document.querySelectorAll('#matrix > .scroll tbody [tabindex=\"0\"]').length") == 1


def test_the_first_stop_of_the_tab_key_skips_to_what_waits(tab: Tab, page: Path) -> None:
    tab.show(page)
    tab.press(Keys.TAB)
    shown = tab.run("return document.activeElement.getBoundingClientRect().width > 50")
    tab.press(Keys.ENTER)

    assert shown
    assert tab.run("return location.hash") == "#pending"


def test_a_link_unfolds_what_it_leads_to(tab: Tab, page: Path) -> None:
    tab.show(page)
    tab.find(By.CSS_SELECTOR, "td.draft a")[0].click()

    assert tab.run("return document.querySelector('.body:target').closest('details').open")
    assert tab.run("return document.querySelector(':target').getBoundingClientRect().top < innerHeight")


def test_ages_are_the_browsers(tab: Tab, page: Path) -> None:
    tab.show(page)

    assert "ago)" in tab.find(By.CSS_SELECTOR, ".items time")[0].text
    assert tab.find(By.CSS_SELECTOR, ".matrix time")[0].get_attribute("title") == "2026-01-02"


def test_on_paper_changes_are_unfolded_and_what_is_well_is_left_out(tab: Tab, page: Path) -> None:
    tab.show(page, paper=True)
    height = "return document.querySelector(arguments[0]).getBoundingClientRect().height"

    assert tab.run(height, ".change .body") > 50
    assert tab.run(height, ".completed") < 50
    assert [tab.run(height, item) for item in ("nav", ".filter", ".explanation")] == [0, 0, 0]
    assert tab.run("return getComputedStyle(document.querySelector('thead th')).position") == "static"
    assert tab.print().startswith(b"%PDF")


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize("text", ["<script>document.title='!'</script>", "\"><img src=x onerror=document.title='!'>"])
def test_hostile_names_do_nothing(tab: Tab, tmp_path: Path, text: str) -> None:
    file = tmp_path / "hostile.html"
    file.write_text(format_report_page(build_hostile_report(text), f" --config {text}"), encoding="utf-8")
    tab.show(file)

    assert tab.run("return document.title") == "Fleet report of 2026-01-02"
    assert tab.run("return document.images.length") == 0
    assert tab.log() == []


def test_without_scripts_everything_is_there(tab: Tab, page: Path, tmp_path: Path) -> None:
    text = page.read_text(encoding="utf-8")
    start, end = text.index("<script>"), text.index("</script>")
    file = tmp_path / "plain.html"
    file.write_text(text[:start] + text[end:], encoding="utf-8")
    tab.show(file)

    assert tab.find(By.CSS_SELECTOR, ".filter")[0].is_displayed() is False
    assert tab.find(By.CSS_SELECTOR, "td.draft time")[0].text == "2026-01-02"
    tab.find(By.CSS_SELECTOR, "td.draft a")[0].click()
    assert tab.run("return document.querySelector('.body:target').closest('details').open")
