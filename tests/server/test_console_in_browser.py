"""All pages of the console in a real browser: accessibility, layout, keys, filters and live updates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import NoReturn

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

from reconciler.git.errors import OfflineError
from reconciler.krm.times import format_rfc3339
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.review.people import Reviewer
from reconciler.server.authentication.session_store import IDLE_SECONDS
from reconciler.server.console.routes import create_console_routes
from reconciler.service.fleet_view import Failure, PassRecord
from tests.support.browser import AXE, MISSING, Tab, open_tab
from tests.support.console import ADA, use_authentication
from tests.support.console_server import (
    TARGET_COUNT,
    ServedConsole,
    add_targets,
    create_conflicting_world,
    open_updated_console,
    serve_console,
)
from tests.support.console_states import keep_context, list_states
from tests.support.fleet_index import create_row, create_target

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.real_git, pytest.mark.slow]

ANA = Reviewer("Ana Silva", "ana@example.com", "f3c1", "https://id.example.com", frozenset({"g"}))
GATEWAY = "update gateway v1 → v2"
UNFOLD = "document.querySelectorAll('details').forEach(one => one.open = true)"
WIDTHS = "const page = document.documentElement; return [page.scrollWidth, page.clientWidth]"
FOCUSED = "return document.activeElement.textContent.trim()"
# The browser logs the status of pages for names that do not exist, and of failures.
STATUS_TEXTS = ("the server responded with a status of 4", "the server responded with a status of 500")
# These routes send no page.
OTHER_ROUTES = {
    "/activity.csv", "/activity.json", "/events", "/sign-in/session", "/sign-in/start", "/static/{name}",
}  # fmt: skip


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    """A console whose fleet no test changes."""
    world = create_conflicting_world(tmp_path_factory.mktemp("fleet") / "world")
    with serve_console(open_updated_console(world, TARGET_COUNT)) as result:
        yield result


@pytest.fixture(scope="module")
def browser_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab(tmp_path_factory.mktemp("profile")) as result:
        yield result


@pytest.fixture
def tab(browser_tab: Tab) -> Tab:
    browser_tab.resize(1280)
    return browser_tab


def get_text(tab: Tab, selector: str = "main") -> str:
    return tab.find(By.CSS_SELECTOR, selector)[0].text


def open_pages(tab: Tab, served: ServedConsole, *, has_states: bool) -> Iterator[str]:
    """Open all pages, also in other states, and yield the name of each page. The page shows all its folded parts."""
    with keep_context(served.client):
        pages = {name: (served.client.context, path) for name, path in served.list_pages().items()}
        for name, (context, path) in (pages | (list_states(served) if has_states else {})).items():
            served.client.context = context
            tab.open(served.url + path)
            tab.run(UNFOLD)
            yield name


def get_path(url: str) -> str:
    return url.partition("?")[0]


def list_errors(tab: Tab) -> list[str]:
    return [message for message in tab.log() if not any(text in message for text in STATUS_TEXTS)]


@pytest.mark.parametrize(
    ("width", "dark"),
    [
        pytest.param(1280, False, id="desktop-light"),
        pytest.param(1280, True, id="desktop-dark"),
        pytest.param(360, False, id="phone-light"),
        pytest.param(360, True, id="phone-dark"),
    ],
)
@pytest.mark.skipif(not AXE.exists(), reason=f"there is no axe-core: npm install --prefix {AXE.parents[2]} axe-core")
def test_every_page_is_accessible_and_logs_no_error(tab: Tab, served: ServedConsole, width: int, dark: bool) -> None:
    tab.resize(width, dark=dark)
    problems = {}
    # The fast tests open each page once.
    for name in open_pages(tab, served, has_states=dark or width < 1280):
        problems[name] = [*list_errors(tab), *tab.check_accessibility()]

    assert {name: found for name, found in problems.items() if found} == {}


def test_the_tests_open_a_page_of_each_route(served: ServedConsole) -> None:
    paths = [*served.list_pages().values(), *(path for _, path in list_states(served).values())]
    routes = {route.path: route for route in create_console_routes(lambda: None) if "GET" in (route.methods or ())}
    opened = {name for name, route in routes.items() if any(map(route.path_regex.match, map(get_path, paths)))}

    assert routes.keys() - opened == OTHER_ROUTES


@pytest.mark.parametrize(
    ("width", "height"),
    [
        pytest.param(320, 256, id="zoom-of-400-percent"),
        pytest.param(360, 740, id="phone"),
        pytest.param(1280, 900, id="desktop"),
    ],
)
def test_no_page_is_wider_than_the_window(tab: Tab, served: ServedConsole, width: int, height: int) -> None:
    tab.resize(width, height)
    widths = {name: tab.run(WIDTHS) for name in open_pages(tab, served, has_states=True)}

    assert {name: found for name, found in widths.items() if found[0] > found[1]} == {}


def choose_appearance(tab: Tab, url: str, theme: str, colors: str) -> list[str]:
    """Select a theme and colors, and return the backgrounds before, after the choice, and on a later page."""
    background = "return getComputedStyle(document.documentElement).backgroundColor"
    tab.open(f"{url}/targets")
    backgrounds = [tab.run(background)]
    for name, value in (("theme", theme), ("colors", colors)):
        tab.run(
            "const field = document.querySelector(`.appearance [name=${arguments[0]}]`); field.value = arguments[1];"
            "field.dispatchEvent(new Event('change', {bubbles: true}))",
            name, value,
        )  # fmt: skip
        tab.wait(lambda: not tab.find(By.CSS_SELECTOR, ".htmx-request"))
    backgrounds.append(tab.run(background))
    tab.open(f"{url}/activity")
    assert tab.run("return document.documentElement.dataset.colors") == colors
    return [*backgrounds, tab.run(background)]


def test_a_chosen_theme_applies_at_once_and_to_later_pages(tab: Tab, served: ServedConsole) -> None:
    light, dark = "rgb(252, 252, 250)", "rgb(20, 23, 26)"
    chosen = choose_appearance(tab, served.url, "dark", "blue-orange")
    accessibility = tab.check_accessibility() if AXE.exists() else []
    restored = choose_appearance(tab, served.url, "system", "green-red")

    assert chosen == [light, dark, dark]
    assert restored == [dark, light, light]
    assert accessibility == list_errors(tab) == []


OBSERVE_BUSY = """
window.busy = [];
new MutationObserver((records) => {
  for (const {target} of records) window.busy.push(`${target.id} ${target.getAttribute("aria-busy")}`);
}).observe(document.body, {attributes: true, attributeFilter: ["aria-busy"], subtree: true});
"""


def test_parts_that_load_are_busy_and_a_failed_part_can_be_loaded_again(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/targets")
    tab.run(OBSERVE_BUSY)
    tab.set_network(is_online=False)
    tab.find(By.ID, "filter-text")[0].send_keys("porto")
    tab.wait(lambda: tab.find(By.CSS_SELECTOR, ".part-error"))
    message = get_text(tab, "#content > h1 + .part-error")
    rows = len(tab.find(By.CSS_SELECTOR, "tbody tr"))
    tab.set_network(is_online=True)
    tab.find(By.CSS_SELECTOR, ".part-error button")[0].click()
    tab.wait(lambda: "q=porto" in tab.url)
    tab.wait(lambda: not tab.find(By.CSS_SELECTOR, ".part-error, [aria-busy]"))
    busy = tab.run("return window.busy")
    tab.open(f"{served.url}/targets")
    tab.log()

    assert message == "This part cannot be loaded, because the service does not respond. Try again"
    assert rows > 1
    assert busy[:3] == ["content true", "content null", "content true"]


def test_a_printed_change_contains_its_differences_without_forms(tab: Tab, served: ServedConsole) -> None:
    tab.resize(1280, paper=True)
    tab.open(served.url + served.find_change(GATEWAY))
    height = "return document.querySelector(arguments[0]).getBoundingClientRect().height"

    assert tab.run(height, ".diff") > 20
    assert [tab.run(height, item) for item in ("nav.main", "form.review", ".banner")] == [0, 0, 0]
    assert tab.print().startswith(b"%PDF")


def test_a_filter_keeps_the_focus_and_changes_the_address(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/targets")
    tab.find(By.ID, "filter-text")[0].click()
    tab.press("edge-00")
    tab.wait(lambda: "1 to 100 of 100 targets" in get_text(tab))
    field = tab.run("const one = document.activeElement; return [one.id, one.value, one.selectionStart]")
    (select,) = tab.find(By.ID, "filter-state")
    select.send_keys("b")
    tab.wait(lambda: "1 to 20 of 20 targets" in get_text(tab))

    assert field == ["filter-text", "edge-00", 7]
    assert tab.run("return document.activeElement.id") == "filter-state"
    assert tab.url == f"{served.url}/targets?q=edge-00&labels=&state=blocked&owner="
    assert list_errors(tab) == []


def count_changes(served: ServedConsole) -> int:
    index = served.client.context.index
    assert index is not None
    return len(index.changes)


def test_new_data_replaces_the_content_of_an_open_page(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/targets?q=new-")
    tab.press("j")
    add_targets(served.client, [create_target("new-1", {}, create_row("new-1", "web", change="new"))], ())
    tab.wait(lambda: "1 to 1 of 1 target" in get_text(tab))

    tab.wait(lambda: f"Changes {count_changes(served)}" in get_text(tab, "nav.main").replace("\n", " "))
    assert list_errors(tab) == []


def add_change_of(served: ServedConsole, target: str) -> None:
    """Add a package with a draft to a target."""
    index = served.client.context.index
    assert index is not None
    entry = index.by_target[target]
    changed = replace(entry, packages=(*entry.packages, create_row(target, f"added-{index.number}", change="added")))
    targets = (changed if each is entry else each for each in index.targets)
    served.client.context.index_thread.index = build_fleet_index(
        index.number + 1, index.completed_at, index.config, targets, index.findings
    )


def test_a_page_loads_again_only_if_its_data_changes(tab: Tab, served: ServedConsole) -> None:
    path = "/targets/edge-0001"
    tab.open(served.url + path)
    served.paths.clear()
    add_change_of(served, "edge-0002")
    tab.wait(lambda: f"Changes {count_changes(served)}" in get_text(tab, "nav.main").replace("\n", " "))
    before = served.paths.count(f"GET {path}")
    add_change_of(served, "edge-0001")
    tab.wait(lambda: "added-" in get_text(tab))

    assert (before, served.paths.count(f"GET {path}")) == (0, 1)
    assert list_errors(tab) == []


def test_a_page_shows_that_its_change_is_not_open_any_more(tab: Tab, served: ServedConsole) -> None:
    key = "short-lived"
    add_targets(served.client, [create_target("brief", {}, create_row("brief", "web", change=key))], ())
    index = served.client.context.index
    assert index is not None
    served.client.context.archive.update(index)
    tab.open(f"{served.url}/changes/{key}/targets")
    served.client.context.index_thread.index = build_fleet_index(
        index.number + 1, index.completed_at, index.config,
        (target for target in index.targets if target.name != "brief"), index.findings,
    )  # fmt: skip
    tab.wait(lambda: "Targets of" not in get_text(tab))

    assert get_text(tab, "h1")
    assert list_errors(tab) == []


def test_a_pass_without_changes_updates_only_the_header(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/activity")
    tab.run("document.querySelector('main h1').dataset.old = ''")
    state, clock = served.client.context.state, served.client.context.clock
    assert state.view is not None
    record = PassRecord(clock() + 120, 0.0, "degraded")
    failures = (Failure(state.clock(), "no connection", "eu-7"),)
    view = replace(state.view, number=state.view.number + 1, last_pass=record, remote_failures=failures)
    state.record_completed_pass(view)
    tab.wait(lambda: "degraded" in get_text(tab, "#pass"))
    tab.wait(lambda: "Some data is" in get_text(tab, "#stale"))

    assert tab.run("return document.querySelector('#pass time').dateTime") == format_rfc3339(int(clock()) + 120)
    assert tab.run("return document.querySelector('main h1[data-old]') !== null")


def test_new_data_waits_while_a_person_types(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/changes")
    tab.find(By.ID, "filter-target")[0].send_keys("region in (")
    tab.wait(lambda: tab.find(By.ID, "selector-error"))
    add_targets(served.client, [create_target("new-2", {}, create_row("new-2", "web", change="other"))], ())
    tab.wait(lambda: tab.find(By.ID, "news")[0].is_displayed())
    typed = tab.run("return document.activeElement.value")
    tab.open(f"{served.url}/changes")

    assert typed == "region in ("
    assert f"of {count_changes(served)} changes" in get_text(tab)


def test_the_button_for_new_data_shows_it(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/targets?q=new-3")
    tab.find(By.ID, "filter-labels")[0].click()
    add_targets(served.client, [create_target("new-3", {}, create_row("new-3", "web"))], ())
    tab.wait(lambda: tab.find(By.ID, "news")[0].is_displayed())
    before = get_text(tab)
    tab.find(By.CSS_SELECTOR, "#news button")[0].click()
    tab.wait(lambda: "1 to 1 of 1 target" in get_text(tab))

    assert "No target matches 1 filter" in before
    assert not tab.find(By.ID, "news")[0].is_displayed()


def test_the_page_of_a_job_shows_its_progress(tab: Tab, served: ServedConsole) -> None:
    def refuse() -> NoReturn:
        raise OfflineError("the host does not respond")

    console = served.client
    console.context.jobs.open_review = refuse
    form = {"verb": "reject", "change": served.client.find_change(GATEWAY).key}
    path = console.post("/changes/confirm", form).headers["location"]
    confirmation = console.context.confirmations.find(path.rpartition("/")[2], ADA)
    assert confirmation is not None
    fields = {"key": "1", "reason": "too early", "count": str(confirmation.typed_count)}
    job = console.post(f"{path}/submit", fields).headers["location"]
    tab.open(served.url + job)
    before = get_text(tab, "h1")
    console.context.jobs.apply_waiting()
    tab.wait(lambda: "completed" in get_text(tab, "h1"))

    assert before == "Reject: waiting"
    assert "the host does not respond" in get_text(tab)
    assert tab.find(By.CSS_SELECTOR, "form[action$='/retry']")
    assert list_errors(tab) == []


def test_keys_lead_to_pages_and_rows(tab: Tab, served: ServedConsole) -> None:
    tab.open(served.url)
    tab.press("g", "c")
    tab.wait(lambda: tab.url.endswith("/changes"))
    rows = []
    for key in ("j", "j", "k"):
        tab.press(key)
        rows.append(tab.run(FOCUSED))
    tab.press(Keys.ENTER)
    tab.wait(lambda: "/changes/" in tab.url)

    assert rows == [GATEWAY, "update metrics v1 → v2", GATEWAY]


def test_the_key_for_the_search_and_keys_in_fields(tab: Tab, served: ServedConsole) -> None:
    tab.open(served.url)
    tab.press("/")
    tab.press("g", "c", "?", "lisbon")
    typed = tab.run("return document.activeElement.value")
    tab.press(Keys.ENTER)
    tab.wait(lambda: "/search" in tab.url)

    assert typed == "gc?lisbon"


def test_the_palette_leads_to_pages_and_objects(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/system")
    tab.press_with(Keys.CONTROL, "k")
    tab.wait(lambda: "Changes with a high risk" in get_text(tab, "#palette"))
    accessibility = tab.check_accessibility() if AXE.exists() else []
    tab.press("porto/gate")
    tab.wait(lambda: "1 package" in get_text(tab, "#palette"))
    focused = []
    for key in (Keys.ARROW_DOWN, Keys.ARROW_DOWN, Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_DOWN):
        tab.press(key)
        focused.append(tab.run("return document.activeElement.id || document.activeElement.textContent"))
    tab.press("g", "c", Keys.ENTER)
    tab.wait(lambda: "/targets/porto/packages/gateway" in tab.url)

    assert accessibility == []
    assert focused == ["porto/gateway", "palette-text", "porto/gateway", "palette-text", "porto/gateway"]
    assert list_errors(tab) == []


def test_escape_closes_the_palette_and_new_data_waits_for_it(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/targets?q=new-7")
    tab.press("/")
    add_targets(served.client, [create_target("new-7", {}, create_row("new-7", "web"))], ())
    tab.wait(lambda: not tab.run("return document.getElementById('news').hidden"))
    text = get_text(tab)
    tab.press(Keys.ESCAPE)
    is_open = tab.run("return document.getElementById('palette').open")
    tab.press("/")
    tab.wait(lambda: tab.run("return document.activeElement.id") == "palette-text")
    tab.press(Keys.ESCAPE)

    assert "No target matches 1 filter" in text
    assert not is_open
    assert list_errors(tab) == []


def test_the_list_of_keys_opens_and_closes_and_turns_keys_off(tab: Tab, served: ServedConsole) -> None:
    tab.open(served.url)
    (dialog,) = tab.find(By.ID, "keys")
    shown = [dialog.is_displayed()]
    for key in ("?", Keys.ESCAPE):
        tab.press(key)
        shown.append(dialog.is_displayed())
    tab.press("?")
    tab.find(By.ID, "keys-off")[0].click()
    tab.press(Keys.ESCAPE, "g", "c", "?")
    shown.append(dialog.is_displayed())
    tab.run("localStorage.clear()")

    assert shown == [False, True, False, False]
    assert tab.url == f"{served.url}/"


def test_keys_of_a_change(tab: Tab, served: ServedConsole) -> None:
    path = served.find_change(GATEWAY)
    tab.open(served.url + path)
    resources = []
    for key in ("n", "n", "p"):
        tab.press(key)
        resources.append(tab.run("return document.activeElement.closest('details').id"))
    tab.press("v")
    is_open = "return [...document.querySelectorAll('details.resource')].map(one => one.open)"
    folded = tab.run(is_open)
    tab.press("u")
    tab.wait(lambda: "view=split" in tab.url)
    folded_in_split_view = tab.run(is_open)
    tab.press("]")
    tab.wait(lambda: "target=porto" in tab.url)
    heading = get_text(tab, "#differences")
    tab.press("[")
    tab.wait(lambda: "target=berlin" in tab.url)
    tab.run("document.querySelectorAll('[name=variant]')[1].focus()")
    tab.press("x")
    chosen = tab.run("return document.querySelectorAll('[name=variant]:checked').length")
    tab.press(Keys.TAB, "a")
    tab.wait(lambda: tab.find(By.ID, "review-dialog")[0].is_displayed())
    tab.press(Keys.ESCAPE)
    tab.run("localStorage.clear()")

    assert resources == ["r-Ingress-legacy", "r-Deployment-gateway", "r-Ingress-legacy"]
    assert folded == folded_in_split_view == [False, True, True]
    assert heading == "Differences on porto"
    assert chosen == 2
    assert list_errors(tab) == []


@pytest.mark.skipif(not AXE.exists(), reason=f"there is no axe-core: npm install --prefix {AXE.parents[2]} axe-core")
@pytest.mark.parametrize("width", [1280, 360])
def test_the_confirmation_is_a_dialog(tab: Tab, served: ServedConsole, width: int) -> None:
    """The dialog has the focus, stays open with an error, and returns the focus. The page behind it stays the same."""
    tab.resize(width)
    path = served.find_change(GATEWAY)
    tab.open(served.url + path)
    (dialog,) = tab.find(By.ID, "review-dialog")
    (button,) = tab.find(By.CSS_SELECTOR, "form.review button[value=reject]:not([data-only])")
    button.click()
    tab.wait(dialog.is_displayed)
    focused = tab.run("return document.activeElement.name")
    problems = tab.check_accessibility()
    sizes = tab.run("const one = document.getElementById('review-dialog'); return [one.scrollWidth, one.clientWidth]")
    tab.press("   ")
    tab.press_with(Keys.CONTROL, Keys.ENTER)
    tab.wait(lambda: tab.find(By.CSS_SELECTOR, "#review [role=alert]"))
    tab.wait(lambda: tab.run("return document.activeElement.name") == "reason")
    error = get_text(tab, "#review [role=alert]")
    headings = len(tab.find(By.TAG_NAME, "h1"))
    tab.press(Keys.ESCAPE)
    tab.wait(lambda: not dialog.is_displayed())

    assert focused == "reason"
    assert "reason" in error
    assert headings == 1
    assert tab.run("return [document.activeElement.value, document.getElementById('review').innerHTML]") == [
        "reject",
        "",
    ]
    assert tab.url == served.url + path
    assert sizes[0] <= sizes[1]
    assert [*list_errors(tab), *problems] == []


def list_selected(tab: Tab) -> list[int]:
    return tab.run("return [...document.querySelectorAll('[name=row]')].flatMap((box, n) => box.checked ? [n] : [])")


def test_rows_are_selected_with_keys_and_stay_selected(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/changes")
    count = tab.run("return document.querySelectorAll('[name=row]').length")
    selected = []
    for keys in (("j", "x"), ("j", "j", "X"), ("k", "x"), ("k", "X")):
        tab.press(*keys)
        selected.append(list_selected(tab))
    text = get_text(tab, "[data-selected-count]")
    add_targets(served.client, [create_target("new-5", {}, create_row("new-5", "web"))], ())
    tab.wait(lambda: tab.find(By.ID, "news")[0].is_displayed())
    (whole_page,) = tab.find(By.CSS_SELECTOR, "[data-all-rows]")
    whole_page.click()
    selected.append(list_selected(tab))
    tab.press("o")
    tab.wait(lambda: tab.find(By.ID, "review-dialog")[0].is_displayed())

    assert selected == [[0], [0, 1, 2], [0, 2], [2], [*range(count)]]
    assert text == "1 selected"
    assert "Propose" in get_text(tab, "#review h2")
    assert list_errors(tab) == []


def test_the_browser_stores_the_time_of_the_last_visit(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/changes")
    first_visit = tab.find(By.CSS_SELECTOR, "[data-last-visit]")[0].is_displayed()
    tab.run("localStorage.setItem('visit:latest', '1000000000')")
    tab.open(f"{served.url}/changes")
    tab.open(f"{served.url}/changes")
    (link,) = tab.find(By.CSS_SELECTOR, "[data-last-visit]")
    link.click()
    tab.wait(lambda: "since=" in tab.url)
    is_current = tab.run("return document.querySelector('[data-last-visit]').getAttribute('aria-current')")
    shown = get_text(tab, ".rows")
    tab.find(By.CSS_SELECTOR, "[data-last-visit]")[0].click()
    tab.wait(lambda: "since=" not in tab.url)
    tab.run("localStorage.clear()")

    assert not first_visit
    assert is_current == "true"
    assert GATEWAY in shown
    assert "update settings" not in shown
    assert list_errors(tab) == []


def test_an_expanded_row_stays_open_when_new_data_arrives(tab: Tab, served: ServedConsole) -> None:
    tab.open(f"{served.url}/changes")
    tab.find(By.CSS_SELECTOR, "details[id^=variants-] summary")[0].click()
    add_targets(served.client, [create_target("new-6", {}, create_row("new-6", "db", change="database"))], ())
    tab.wait(lambda: "update db" in get_text(tab))

    assert "the variant in this list" in get_text(tab, "details[id^=variants-]")
    assert list_errors(tab) == []


def test_a_viewed_mark_is_lost_only_when_the_content_of_its_resource_changes(tab: Tab, served: ServedConsole) -> None:
    path = served.find_change(GATEWAY)
    is_open = "return document.getElementById('r-Deployment-gateway').open"
    opened = []
    tab.open(f"{served.url}{path}?target=berlin")
    tab.find(By.CSS_SELECTOR, "#r-Deployment-gateway .viewed input")[0].click()
    for target in ("porto", "lisbon"):
        tab.open(f"{served.url}{path}?target={target}")
        opened.append(tab.run(is_open))
    tab.run("localStorage.clear()")

    # The draft of Porto changes the same lines. The draft of Lisbon keeps the replicas of a local change.
    assert opened == [False, True]


def test_all_resources_are_folded_and_unfolded_without_a_request(tab: Tab, served: ServedConsole) -> None:
    tab.open(served.url + served.find_change(GATEWAY))
    count = "return document.querySelectorAll('details.resource[open]').length"
    requests = len(served.paths)
    counts = []
    for state in ("closed", "open"):
        tab.find(By.CSS_SELECTOR, f"a[data-fold={state}]")[0].click()
        counts.append(tab.run(count))

    assert counts == [0, 3]
    assert [path for path in served.paths[requests:] if "/changes" in path] == []


FAST_CLOCK = """
const realInterval = setInterval, realNow = Date.now;
window.setInterval = (run, milliseconds) => realInterval(run, milliseconds / 300);
Date.now = () => realNow() * 300;
"""


def test_without_a_stream_the_page_requests_new_data_and_tries_to_connect_again(
    tab: Tab, served: ServedConsole
) -> None:
    served.unavailable_paths.add("/events")
    with tab.run_before_pages(FAST_CLOCK):
        tab.open(f"{served.url}/targets?q=new-4")
        tab.wait(lambda: tab.find(By.ID, "offline")[0].is_displayed())
        add_targets(served.client, [create_target("new-4", {}, create_row("new-4", "web"))], ())
        tab.wait(lambda: "1 to 1 of 1 target" in get_text(tab))
        served.unavailable_paths.clear()
        tab.wait(lambda: not tab.find(By.ID, "offline")[0].is_displayed())
    tab.open("about:blank")

    assert [message for message in tab.log() if "/events" not in message] == []


FAST_TIMERS = """
const realTimeout = window.setTimeout;
window.setTimeout = (run, milliseconds) => realTimeout(run, milliseconds / 100000);
"""


def test_a_person_extends_a_session_before_its_end(tab: Tab, served: ServedConsole) -> None:
    client, context = served.client, served.client.context
    now = client.world.now
    oidc, roles = {"issuer": ANA.issuer, "client_id": "console"}, [{"role": "viewer", "groups": ["g"]}]
    use_authentication(client, served.url, auth=["oidc"], oidc=oidc, roles=roles)
    tab.open(f"{served.url}/sign-in")
    tab.run(f"document.cookie = 'session={client.sign_ins.sessions.create(ANA)}'")
    texts = []
    with tab.run_before_pages(FAST_TIMERS):
        tab.open(f"{served.url}/targets")
        texts.append(tab.find(By.ID, "session")[0].text)
        client.world.now += IDLE_SECONDS - 200
        tab.wait(lambda: tab.find(By.ID, "session")[0].is_displayed())
        texts.append(tab.find(By.ID, "session")[0].text)
        tab.find(By.CSS_SELECTOR, "#session button")[0].click()
        tab.wait(lambda: not tab.find(By.ID, "session")[0].is_displayed())
        client.world.now += IDLE_SECONDS
        tab.wait(lambda: "has ended" in tab.find(By.ID, "session")[0].text)
        is_offered = tab.find(By.CSS_SELECTOR, "#session button")[0].is_displayed()
    tab.open("about:blank")
    client.context, client.world.now = context, now

    assert texts == ["", "Your session ends in less than 5 minutes. Stay signed in"]
    assert not is_offered


def test_a_location_can_be_copied(tab: Tab, served: ServedConsole) -> None:
    tab.allow_clipboard(served.url)
    tab.open(f"{served.url}/findings?q=zone")
    tab.find(By.CSS_SELECTOR, "main .copy")[0].click()
    tab.wait(lambda: get_text(tab, "main .copy") == "Copied")

    assert tab.run("return navigator.clipboard.readText()") == "sets/ingress.yaml:15"


def test_a_page_that_a_closed_server_sent_shows_that_it_is_not_live(tab: Tab, served: ServedConsole) -> None:
    with serve_console(served.client) as other:
        tab.open(f"{other.url}/changes")
        tab.wait(lambda: "GET /events" in other.paths)
    tab.wait(lambda: tab.find(By.ID, "offline")[0].is_displayed())

    assert GATEWAY in get_text(tab)
    tab.open("about:blank")
    assert list_errors(tab) != []
