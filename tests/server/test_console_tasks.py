"""Tasks of reviewers in a real browser, with the number of clicks that each task may need.

Each click, each key and each text that a person types counts as one action. Each task starts at the first page.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path

import pytest
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.remote.webelement import WebElement

from reconciler.krm.selectors import LabelSelector
from reconciler.review.stages import Stage
from reconciler.service.fleet_view import Failure, FleetView, PassRecord
from tests.support.browser import MISSING, Tab, open_tab
from tests.support.console_server import (
    TARGET_COUNT,
    ServedConsole,
    create_conflicting_world,
    create_updated_world,
    open_updated_console,
    serve_console,
)
from tests.support.git_repositories import git
from tests.support.prepared_worlds import begin
from tests.support.world import World

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.real_git, pytest.mark.slow]

GATEWAY = "update gateway v1 → v2"
STAGES = {"canary": "south", "production": "north"}
CREATE = {"updated": create_updated_world, "conflicting": create_conflicting_world}
WINDOWS = [
    pytest.param(1280, True, id="desktop"),
    pytest.param(360, True, id="phone"),
    pytest.param(1280, False, id="without-scripts"),
]


class Person:
    """Works in a browser tab, and counts the actions."""

    def __init__(self, tab: Tab, served: ServedConsole) -> None:
        self.tab = tab
        self.served = served
        self.actions = 0

    def click(self, text: str) -> None:
        """Click the first link or button that contains a text."""
        path = f"//*[self::a or self::button or self::summary][contains(normalize-space(.), '{text}')]"
        self._act(By.XPATH, path, lambda element: element.click())

    def type(self, selector: str, text: str) -> None:
        """Type a text into a field."""
        self._act(By.CSS_SELECTOR, selector, lambda element: element.send_keys(text))

    def _act(self, by: str, path: str, action: Callable[[WebElement], object]) -> None:
        """Apply an action to the first visible element, as soon as there is one. New data can replace the content."""

        def act_if_found() -> bool:
            found = [element for element in self.tab.find(by, path) if element.is_displayed()]
            for element in found[:1]:
                action(element)
            return bool(found)

        self.tab.wait(act_if_found)
        self.actions += 1

    def press(self, key: str) -> None:
        """Press a key on the focused element, as soon as the scripts of the page run."""
        self.tab.wait(lambda: self.tab.run("return document.readyState") == "complete")
        self.tab.press(key)
        self.actions += 1

    def sees(self, *texts: str) -> bool:
        """Return whether the page soon contains all texts."""
        self.tab.wait(lambda: all(text in self.tab.run("return document.body.innerText") for text in texts))
        return True

    def apply_jobs(self) -> None:
        """Apply the confirmed actions, and run a pass, as the service does."""
        self.served.client.context.jobs.apply_waiting()
        self.served.client.update()


@pytest.fixture(scope="module")
def browser_tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab(tmp_path_factory.mktemp("profile")) as result:
        yield result


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("fleet") / "world"


@pytest.fixture
def world(folder: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    yield begin(folder, CREATE[getattr(request, "param", "updated")])
    shutil.rmtree(folder)


@pytest.fixture
def served(world: World) -> Iterator[ServedConsole]:
    with serve_console(open_updated_console(world, TARGET_COUNT)) as result:
        yield result


@pytest.fixture
def person(browser_tab: Tab, served: ServedConsole) -> Iterator[Person]:
    browser_tab.resize(1280)
    browser_tab.allow_clipboard(served.url)
    browser_tab.open(served.url)
    yield Person(browser_tab, served)
    browser_tab.set_scripts(enabled=True)
    browser_tab.open("about:blank")


def use_window(person: Person, width: int, scripts: bool) -> None:
    person.tab.resize(width)
    person.tab.set_scripts(enabled=scripts)
    person.tab.open(person.served.url)


conflicting = pytest.mark.parametrize("world", ["conflicting"], indirect=True)


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_see_what_is_wrong_and_the_time_of_the_last_pass(person: Person, width: int, scripts: bool) -> None:
    use_window(person, width, scripts)

    assert person.sees(
        "Last pass", "success", "no such key: zone", "200 findings on 200 targets", "sets/ingress.yaml:15"
    )
    assert person.actions == 0


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_approve_the_change_with_the_highest_risk(person: Person, world: World, width: int, scripts: bool) -> None:
    use_window(person, width, scripts)
    person.click(GATEWAY)
    person.click("Approve…")
    person.type("[name=reason]", "reviewed with Luis")
    person.click("Publish to 3 targets")
    person.sees("3 waiting")
    person.apply_jobs()

    assert person.sees("3 done · 0 skipped · 0 failed")
    assert person.actions <= 4
    assert "reviewed with Luis" in git(world.fleet, "log", "-1", "--format=%B", "clusters/porto")


def use_stages(person: Person) -> None:
    client = person.served.client
    stages = tuple(Stage(name, LabelSelector((("region", region),))) for name, region in STAGES.items())
    client.context = replace(client.context, stages=stages)


def test_approve_only_the_canary_stage(person: Person, world: World) -> None:
    use_stages(person)
    person.click(GATEWAY)
    person.type("[name=stage]", "canary")
    person.click("Approve…")
    person.type("[name=reason]", "canary first")
    person.click("Publish to 1 target")
    person.sees("1 waiting")
    person.apply_jobs()

    assert person.sees("1 done")
    assert person.actions <= 5
    assert "replicas: 3" in world.text("clusters/lisbon", "gateway/deployment.yaml")
    assert "replicas: 2" in world.text("clusters/porto", "gateway/deployment.yaml")


def test_reject_one_cluster_and_approve_the_others(person: Person, world: World) -> None:
    person.click(GATEWAY)
    person.click("porto")
    person.click("Reject only porto…")
    person.type("[name=reason]", "porto is closed for changes")
    person.click("Reject on 1 target")
    person.sees("1 waiting")
    person.apply_jobs()
    person.sees("1 done")
    person.click(f"Show the change {GATEWAY}")
    person.click("Approve…")
    person.click("Publish to 2 targets")
    person.sees("2 waiting")
    person.apply_jobs()

    assert person.sees("2 done · 0 skipped · 0 failed")
    assert person.actions <= 8
    assert "replicas: 2" in world.text("clusters/porto", "gateway/deployment.yaml")
    assert "replicas: 3" in world.text("clusters/lisbon", "gateway/deployment.yaml")


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_find_why_a_value_differs(person: Person, width: int, scripts: bool) -> None:
    use_window(person, width, scripts)
    person.type("[name=q]", "berlin metrics")
    person.press(Keys.ENTER)
    person.sees("1 package")
    person.click("berlin/metrics")
    person.click("/spec/replicas")
    assert person.sees("effective", "ClusterOverridePolicy/size", "policies/size.yaml:4")
    if scripts:
        person.click("Copy")
        assert person.sees("Copied")
    assert person.actions <= 5


@pytest.mark.parametrize(("width", "scripts"), WINDOWS)
def test_list_the_clusters_with_one_error(person: Person, width: int, scripts: bool) -> None:
    use_window(person, width, scripts)
    person.click("CelEvaluationFailed")

    assert person.sees("200 packages", "edge-0000/ingress", "edge-0995/ingress", "sets/ingress.yaml:15")
    if scripts:
        person.click("Copy")
        person.sees("Copied")
        assert person.tab.run("return navigator.clipboard.readText()") == "sets/ingress.yaml:15"
    assert person.actions <= 3


@conflicting
def test_see_which_clusters_differ_from_the_others(person: Person) -> None:
    person.click(GATEWAY)

    assert person.sees("1 target", "1 conflict", "lisbon")
    person.click("1 target")
    assert person.sees("1 conflict on 1 target", "Differences on lisbon")
    assert person.actions <= 3


def approve_gateway(person: Person) -> None:
    client = person.served.client
    key = person.served.client.find_change(GATEWAY).key
    client.confirm({"verb": "approve", "change": key}, reason="agreed with the team of Porto")
    client.world.sync()
    client.update()


def test_restore_the_version_before_the_last(person: Person, world: World) -> None:
    approve_gateway(person)
    person.type("[name=q]", "lisbon gateway")
    person.press(Keys.ENTER)
    person.click("lisbon/gateway")
    person.click("history")
    person.click("Restore v1")

    assert person.sees("A draft with the content of v1")
    assert person.actions <= 5
    assert "replicas: 2" in world.text("drafts/lisbon", "gateway/deployment.yaml")


def test_find_who_approved_a_change(person: Person) -> None:
    approve_gateway(person)
    person.click("Activity")
    person.type("#filter-target", "porto")

    assert person.sees("1 to 1 of 1 event", "Ada Example", "agreed with the team of Porto")
    assert person.actions <= 3


def test_find_who_approved_changes_on_a_day(person: Person, world: World) -> None:
    approve_gateway(person)
    person.click("Activity")
    # The format of the browser's language.
    person.type("#filter-from", datetime.fromtimestamp(world.now, UTC).strftime("%m%d%Y"))

    assert person.sees("1 to 3 of 3 events", "approved, published", "Ada Example", "agreed with the team of Porto")
    assert person.actions <= 3


def fail_remote(person: Person) -> None:
    state = person.served.client.context.state
    failure = Failure(state.clock() - 3_600, "authentication failed", "fleet.git")
    record = PassRecord(person.served.client.context.clock(), 1.5, "success")
    state.record_completed_pass(FleetView(2, state.clock(), record, "config", 3, (failure,)))
    person.tab.open(person.served.url)
    person.sees("RemotesUnavailable", "authentication failed")


def test_find_a_failing_remote_and_try_again(person: Person) -> None:
    fail_remote(person)
    person.click("RemotesUnavailable")
    person.sees("authentication failed", "fleet.git")
    person.click("Start a pass")
    person.tab.wait(lambda: person.served.client.requested_passes)

    assert person.actions <= 3


# The same tasks with the keyboard only. A text that a person types counts as one action with the key that selects its
# field.


def press_keys(person: Person, *keys: str) -> None:
    for key in keys:
        person.press(key)


def type_into(person: Person, key: str, text: str) -> None:
    """Select a field with a key, and type a text."""
    person.press(key)
    person.tab.press(text)


def confirm(person: Person, reason: str, sees: str) -> None:
    """Type a reason into the field that has the focus, confirm the action, and apply it."""
    person.tab.wait(lambda: person.tab.run("return document.activeElement.name") == "reason")
    if reason:
        person.press(reason)
    person.tab.press_with(Keys.CONTROL, Keys.ENTER)
    person.actions += 1
    person.sees(sees)
    person.apply_jobs()


def test_approve_with_the_keyboard(person: Person, world: World) -> None:
    press_keys(person, Keys.ENTER)
    person.sees("Differences on berlin")
    press_keys(person, "a")
    confirm(person, "reviewed with Luis", "3 waiting")

    assert person.sees("3 done")
    assert person.actions <= 4
    assert "reviewed with Luis" in git(world.fleet, "log", "-1", "--format=%B", "clusters/porto")


def test_approve_a_stage_with_the_keyboard(person: Person, world: World) -> None:
    use_stages(person)
    press_keys(person, Keys.ENTER)
    person.sees("Differences on berlin")
    press_keys(person, "1", "a")
    confirm(person, "canary first", "1 waiting")

    assert person.sees("1 done")
    assert person.actions <= 5
    assert "replicas: 3" in world.text("clusters/lisbon", "gateway/deployment.yaml")
    assert "replicas: 2" in world.text("clusters/porto", "gateway/deployment.yaml")


def test_reject_one_cluster_and_approve_the_others_with_the_keyboard(person: Person, world: World) -> None:
    press_keys(person, Keys.ENTER)
    person.sees("Differences on berlin")
    press_keys(person, "]")
    person.sees("Differences on lisbon")
    press_keys(person, "R")
    confirm(person, "lisbon is closed for changes", "1 waiting")
    person.sees("1 done")
    press_keys(person, Keys.ENTER)
    person.sees("Differences on")
    press_keys(person, "a")
    confirm(person, "", "2 waiting")

    assert person.sees("2 done · 0 skipped · 0 failed")
    assert person.actions <= 8
    assert "replicas: 2" in world.text("clusters/lisbon", "gateway/deployment.yaml")
    assert "replicas: 3" in world.text("clusters/porto", "gateway/deployment.yaml")


def test_find_why_a_value_differs_with_the_keyboard(person: Person) -> None:
    type_into(person, "/", "berlin/metrics")
    press_keys(person, Keys.ENTER)
    person.sees("1 package")
    press_keys(person, Keys.ENTER)
    person.sees("Values that a policy")
    press_keys(person, Keys.ENTER)
    person.sees("effective", "ClusterOverridePolicy/size", "policies/size.yaml:4")
    press_keys(person, ".")

    assert person.sees("Copied")
    assert person.tab.run("return navigator.clipboard.readText()") == "policies/size.yaml:4"
    assert person.actions <= 5


def test_list_the_clusters_with_one_error_with_the_keyboard(person: Person) -> None:
    press_keys(person, "e")
    person.sees("200 packages", "edge-0000/ingress", "edge-0995/ingress", "sets/ingress.yaml:15")
    press_keys(person, ".")

    assert person.sees("Copied")
    assert person.tab.run("return navigator.clipboard.readText()") == "sets/ingress.yaml:15"
    assert person.actions <= 3


@conflicting
def test_see_which_clusters_differ_with_the_keyboard(person: Person) -> None:
    press_keys(person, Keys.ENTER)
    person.sees("Differences on berlin", "1 conflict")
    press_keys(person, "]")
    person.sees("Differences on porto")
    press_keys(person, "]")

    assert person.sees("1 conflict on 1 target", "Differences on lisbon")
    assert person.actions <= 3


def test_restore_the_version_before_the_last_with_the_keyboard(person: Person, world: World) -> None:
    approve_gateway(person)
    type_into(person, "/", "lisbon gateway")
    press_keys(person, Keys.ENTER)
    person.sees("1 package")
    press_keys(person, Keys.ENTER)
    person.sees("history 2")
    press_keys(person, "h")
    person.sees("Restore v1")
    press_keys(person, ".")

    assert person.sees("A draft with the content of v1")
    assert person.actions <= 5
    assert "replicas: 2" in world.text("drafts/lisbon", "gateway/deployment.yaml")


def test_find_who_approved_a_change_with_the_keyboard(person: Person) -> None:
    approve_gateway(person)
    press_keys(person, "g", "a")
    person.tab.wait(lambda: person.tab.url.endswith("/activity"))
    type_into(person, "f", "porto/gateway")

    assert person.sees("1 to 1 of 1 event", "Ada Example", "agreed with the team of Porto")
    assert person.actions <= 3


def test_find_a_failing_remote_and_try_again_with_the_keyboard(person: Person) -> None:
    fail_remote(person)
    press_keys(person, "e")
    person.sees("authentication failed", "fleet.git", "Start a pass")
    press_keys(person, ".")
    person.tab.wait(lambda: person.served.client.requested_passes)

    assert person.actions <= 3
