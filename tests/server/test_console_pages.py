"""Tests of all pages of the console: every link leads to a page, and lists have filters."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from html.parser import HTMLParser
from pathlib import Path

import pytest

from reconciler.controllers.package_variants.codes import VariantCodes
from reconciler.krm.findings import Finding, SourceLocation
from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.restricted_index import RestrictedIndexes
from reconciler.server.console.config_pages import ConfigPages
from reconciler.server.console.page_links import PageLinks
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.prepared_worlds import begin, published
from tests.support.world import config_map, variant


class LinkParser(HTMLParser):
    """Collects the links and images of a page, and the elements that the content policy forbids."""

    def __init__(self) -> None:
        super().__init__()
        self.links: set[str] = set()
        self.forbidden: list[str] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        attributes = dict(attrs)
        names = ("href", "src") if attributes.get("method") == "post" else ("href", "src", "action")
        self.links.update(link for name in names if (link := attributes.get(name)))
        self.forbidden += [name for name in attributes if name == "style" or name.startswith("on")]
        if tag == "script" and "src" not in attributes:
            self.forbidden.append(tag)


def parse(text: str) -> LinkParser:
    parser = LinkParser()
    parser.feed(text)
    return parser


def crawl(console: ConsoleClient) -> dict[str, str]:
    """Return the text of each page that links of the first page lead to, by path and query."""
    pages: dict[str, str] = {}
    waiting = ["/"]
    while waiting:
        path = waiting.pop().partition("#")[0]
        if path in pages:
            continue
        response = console.get(path)
        assert response.status_code == 200, path
        pages[path] = response.text
        if response.headers["content-type"].startswith("text/html"):
            base = path.partition("?")[0]
            links = [base + link if link.startswith("?") else link for link in sorted(parse(response.text).links)]
            # Each explanation of a value starts a process.
            waiting += [link for link in links if "pointer=" not in link]
    return pages


def open_fleet(folder: Path) -> ConsoleClient:
    """Packages are published, one draft is open, and one object has an error."""
    world = begin(folder, published)
    world.write(
        {
            "regions/north.yaml": config_map("region-north", api="other"),
            "broken.yaml": variant("broken", "berlin", "missing"),
        }
    )
    client = open_console(world)
    client.update()
    return client


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """The console of a fleet that no test changes."""
    return open_fleet(tmp_path_factory.mktemp("fleet"))


@pytest.mark.slow
def test_every_link_leads_to_a_page_without_forbidden_elements(console: ConsoleClient) -> None:
    pages = crawl(console)

    assert {
        "/", "/changes", "/targets", "/targets?view=matrix", "/targets/berlin", "/targets/berlin/packages/gateway",
        "/targets/berlin/packages/gateway?view=history", "/findings", "/activity", "/system",
    } <= pages.keys()  # fmt: skip
    assert {path: forbidden for path, text in pages.items() if (forbidden := parse(text).forbidden)} == {}


@pytest.mark.parametrize(
    ("path", "texts"),
    [
        pytest.param("/targets", ["berlin", "lisbon", "1 to 2 of 2 targets"], id="targets"),
        pytest.param("/targets?q=BER", ["1 to 1 of 1 target"], id="targets-by-name"),
        pytest.param("/targets?labels=region%3Dsouth", ["1 to 1 of 1 target", "lisbon"], id="targets-by-label"),
        pytest.param("/targets?state=draft", ["1 to 1 of 1 target", "berlin"], id="targets-by-state"),
        pytest.param("/targets?q=nowhere", ["No target matches 1 filter"], id="targets-without-match"),
        pytest.param("/targets?labels=a+in+(", ["Labels:", 'role="alert"'], id="invalid-selector"),
        pytest.param("/targets?view=matrix", ["gateway", "metrics"], id="matrix"),
        pytest.param("/targets/berlin", ["clusters/berlin", "PackageVariantSet default/gateway"], id="target"),
        pytest.param("/targets/berlin/packages/gateway", ["Deployment gateway", "kind: Deployment"], id="package"),
        pytest.param("/targets/berlin/packages/gateway?view=history", ["v1", "Ada"], id="history"),
        pytest.param("/targets/berlin/packages/gateway?view=fields", ["replicas", "[0]"], id="fields"),
        pytest.param("/targets/berlin/packages/gateway?view=files", ["deployment.yaml", "Kptfile"], id="files"),
        pytest.param("/findings?severity=error", ["UpstreamNotFound"], id="errors"),
        pytest.param("/findings?q=nothing-like-this", ["No finding matches 1 filter"], id="findings-without-match"),
        pytest.param("/activity?actor=ada&target=lisbon", ["lisbon/gateway", "1 to 1 of 1 event"], id="activity"),
        pytest.param("/activity?actor=nobody", ["No event matches 1 filter"], id="activity-without-match"),
        pytest.param("/search?q=gate+ber", ["berlin/gateway", "1 package"], id="search"),
        pytest.param("/search?q=zzz", ["Nothing matches"], id="search-without-match"),
        pytest.param("/system", ["Checks", "Risk of changes"], id="system"),
    ],
)
def test_pages_show_what_their_filters_select(path: str, texts: list[str], console: ConsoleClient) -> None:
    response = console.get(path)

    assert response.status_code == 200
    assert [text for text in texts if text not in response.text] == []


def test_errors_of_the_first_page_lead_to_all_their_packages(console: ConsoleClient) -> None:
    (link,) = (link for link in parse(console.get("/").text).links if link.startswith("/findings/"))
    text = console.get(link).text

    assert "UpstreamNotFound" in text
    assert "broken.yaml:6" in text


@pytest.mark.parametrize(
    "path",
    [
        "/targets/nowhere",
        "/targets/berlin/packages/nothing",
        "/targets/berlin/packages/..%2F..%2Fsecret",
        "/targets/%00",
        "/findings/0123456789ab",
        "/targets/berlin/packages/.git/config",
        f"/targets/{'x' * 5_000}",
    ],
)
def test_unknown_names_have_the_status_404(path: str, console: ConsoleClient) -> None:
    response = console.get(path)

    assert response.status_code == 404
    assert "There is no" in response.text


@pytest.mark.parametrize("kind", ["job", "search"])
def test_an_unknown_result_is_no_object_of_the_fleet(kind: str, console: ConsoleClient) -> None:
    path = {"job": "/jobs/none", "search": "/searches/none"}[kind]
    response = console.get(path)

    assert response.status_code == 404
    assert f"There is no {kind} none" in response.text
    assert "The last pass did not find it" not in response.text


@pytest.mark.slow
def test_a_value_has_the_steps_that_set_it(console: ConsoleClient) -> None:
    path = "/targets/berlin/packages/gateway?resource=Deployment/gateway&pointer=/spec/replicas"
    text = console.get(path).text

    assert "gateway/deployment.yaml:6" in text
    assert "upstream" in text
    assert "effective" in text


@pytest.mark.slow
@pytest.mark.parametrize(
    ("query", "message"),
    [
        pytest.param("resource=Deployment/none&pointer=/spec", "Deployment/none", id="unknown-resource"),
        pytest.param("resource=--help&pointer=/spec", "--help", id="option-as-resource"),
        pytest.param("resource=Deployment/gateway&pointer=/spec/none", "/spec/none", id="unknown-value"),
    ],
)
def test_a_value_that_cannot_be_explained_has_a_reason(query: str, message: str, console: ConsoleClient) -> None:
    response = console.get(f"/targets/berlin/packages/gateway?{query}")

    assert response.status_code == 200
    assert 'class="banner error"' in response.text
    assert message in response.text


@pytest.mark.slow
def test_a_target_that_cannot_be_read_keeps_its_packages(tmp_path: Path) -> None:
    console = open_fleet(tmp_path)
    console.world.fleet.rename(console.world.folder / "moved.git")
    console.update()
    text = console.get("/targets/lisbon").text

    assert "The target cannot be read" in text
    assert "gateway" in text


def find_finding_page(console: ConsoleClient, code: str) -> str:
    match = re.search(rf'href="(/findings/[0-9a-f]+)">{code}<', console.get("/findings").text)
    assert match
    return console.get(match[1]).text


def test_a_finding_has_the_description_of_its_code_and_its_lines(console: ConsoleClient) -> None:
    text = find_finding_page(console, "UpstreamNotFound")

    assert VariantCodes.UPSTREAM_NOT_FOUND.description in unescape(text)
    assert "the object creates no packages" in text or "the package on this cluster does not change" in text
    assert "<code data-copy>broken.yaml:" in text
    marked = re.search(r'class="marked".*?<code>(.*?)</code>', text)
    assert marked
    assert marked[1].strip() in variant("broken", "berlin", "missing")


def test_lines_of_the_config_are_only_for_people_who_read_everything(console: ConsoleClient) -> None:
    class Fixed:
        def authenticate(self, _request: object, *, extends_session: bool = True) -> Session:
            return Session(ADA, Permissions((RoleRule("viewer", targets=LabelSelector((("region", "north"),))),)))

    context = console.context
    index = context.index
    assert index is not None
    location = SourceLocation("broken.yaml", 2, "PackageVariantSet/default/gateway")
    indexes = RestrictedIndexes(lambda: replace(index, findings=(Finding("UpstreamNotFound", "message", location),)))
    console.context = replace(context, authenticator=Fixed(), indexes=indexes)
    try:
        text = find_finding_page(console, "UpstreamNotFound")
    finally:
        console.context = context

    assert 'class="marked"' not in text
    assert "broken.yaml" in text


def test_commits_and_files_have_links_to_the_forge(console: ConsoleClient) -> None:
    context = console.context
    head = "0123456789abcdef0123456789abcdef01234567"
    pages = ConfigPages(PageLinks(), "git@github.com:acme/config.git", "fleet", context.config.read_file)
    index = context.index
    assert index is not None
    console.context = replace(context, config=pages, indexes=RestrictedIndexes(lambda: replace(index, config=head)))
    try:
        text = find_finding_page(console, "UpstreamNotFound")
    finally:
        console.context = context

    assert f'<a href="https://github.com/acme/config/blob/{head}/fleet/broken.yaml#L' in text


def test_a_control_character_in_a_query_is_escaped(console: ConsoleClient) -> None:
    text = console.get("/search?q=%E2%80%AEabc").text

    assert "\u202e" not in text
    assert "\\u202eabc" in text
