"""Hostile names, contents and messages in a real browser: no page runs a script or sends an unexpected request."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import parse_qs, unquote, urlsplit

import pytest

from reconciler.krm.findings import Finding, Severity, SourceLocation
from reconciler.output.entries import ConflictEntry
from reconciler.output.fleet.model import TargetEntry
from reconciler.output.fleet.publications import Publication
from reconciler.output.fleet.risk import Risk
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.server.console.urls import build_finding_url
from tests.support.browser import MISSING, Tab, open_tab
from tests.support.console import open_console
from tests.support.console_server import ServedConsole, add_targets, create_updated_world, serve_console
from tests.support.fleet_index import create_row, create_target
from tests.support.world import World, config_map

pytestmark = [pytest.mark.skipif(bool(MISSING), reason=MISSING), pytest.mark.real_git]

HOSTILE = (
    "<img src=x onerror=alert(1)><script>alert(2)</script></textarea></title>"
    '"\' autofocus onfocus=alert(3) hx-get="/evil" hx-trigger="load" javascript:alert(4)'
    "<a href=javascript:alert(5) hx-get=/evil hx-trigger=load>x</a>{{ 7 * 7 }}\u202e\u2066\x1b[31m" + "x" * 300
)
SHORT = '"><img src=x onerror=alert(6)>'
HUGE = SHORT + "x" * 500_000 + "</script><svg onload=alert(8)>" + "<b>" * 170_000
"""A text with a payload before and after the first half megabyte."""
PAGES_PER_SHAPE = 6
MARKS = "\u202e\u2066\x1b"
LINKS = "return [...document.links].filter(link => !link.hasAttribute('download')).map(link => link.href)"
# Elements and attributes that only the templates may add. The forms of filters have `hx-get` or `hx-post` with the path of their page.
ADDED = """return [...document.querySelectorAll('img, iframe, object, script:not([src]), [onerror], [onfocus], [hx-on]')]
  .map(one => one.outerHTML)
  .concat([...document.querySelectorAll('[hx-get]')].map(one => one.getAttribute('hx-get'))
    .filter(path => !path.startsWith('?') && ![location.pathname, '/changes', '/targets', '/findings', '/activity', '/search?brief=yes'].includes(path)))"""


def create_hostile_target(text: str) -> TargetEntry:
    """Return a target in which every text from outside is the given text. Names of targets contain no slash."""
    name = text.replace("/", "_")
    row = create_row(name, name, change="hostile", editors=(text,), rejection=text)
    assert row.draft
    content = replace(
        row.draft.content, action=text, risk=Risk("blocked", (text,)), causes=(text,), config=text,
        conflicts=(ConflictEntry(kind="field", file=text, resource=text, pointer=text, base=text, chosen="local", rule=text),),
    )  # fmt: skip
    member = replace(row.draft.member, branch=text, head=text, refusals=(BlockingReason(text, text),))
    draft = replace(row.draft, title=text, owner=text, content=content, member=member)
    row = replace(
        row, owner=text, upstream=text, draft=draft, state="blocked", reasons=(BlockingReason(text, text),),
        publication=Publication(1, text, text, 1_000_000_000, text, text),
    )  # fmt: skip
    entry = create_target(name, {text: text}, row, create_row(name, "web"))
    return replace(entry, url=text, branch=text, directory=text, head=text)


def create_hostile_finding(text: str) -> Finding:
    name = text.replace("/", "_")
    location = SourceLocation(text, 3, object=text, pointer=text, package=f"{name}/{name}", owner=text)
    return Finding(text, text, location, Severity.ERROR)


def create_hostile_world(folder: Path) -> World:
    """Return a small fleet with local changes whose contents and messages are hostile."""
    world = create_updated_world(folder)
    printable = "".join(character for character in HOSTILE if character.isprintable())
    content = config_map("endpoints", api="none") + f"  text: |\n    {printable}\n    {MARKS[:2]}\n"
    for branch in ("clusters/berlin", "drafts/lisbon"):
        world.commit(branch, {"gateway/endpoints.yaml": content, f"gateway/{SHORT}.txt": SHORT}, HOSTILE)
    world.sync()
    return world


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ServedConsole]:
    client = open_console(create_hostile_world(tmp_path_factory.mktemp("fleet") / "world"))
    client.update()
    client.confirm({"verb": "reject", "change": client.find_change("update metrics v1 → v2").key}, reason=HOSTILE)
    client.world.sync()
    client.update()
    texts = (HOSTILE, SHORT, "javascript:alert(7)", "x" * 4_000)
    add_targets(client, map(create_hostile_target, texts), map(create_hostile_finding, texts))
    with serve_console(client) as result:
        yield result


@pytest.fixture(scope="module")
def tab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Tab]:
    with open_tab(tmp_path_factory.mktemp("profile")) as result:
        result.resize(360)
        yield result


def find_shape(path: str) -> tuple[object, ...]:
    """Return the page type and the names of the parameters of a path."""
    parts = urlsplit(path)
    segments = parts.path.split("/")
    return segments[1], min(len(segments), 5), *sorted(parse_qs(parts.query))


def crawl(tab: Tab, served: ServedConsole, paths: list[str]) -> dict[str, list[str]]:
    """Open all pages to which links lead, and return the problems of each page. An open dialog raises an exception."""
    problems: dict[str, list[str]] = {}
    counts: Counter[tuple[object, ...]] = Counter()
    waiting = list(paths)
    while waiting:
        path = waiting.pop(0)
        shape = find_shape(path)
        # The page of a value starts a process.
        if path in problems or counts[shape] >= (1 if "pointer" in shape else PAGES_PER_SHAPE):
            continue
        counts[shape] += 1
        tab.open(served.url + path)
        tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")
        links = tab.run(LINKS)
        width, available = tab.run("const page = document.documentElement; return [page.scrollWidth, page.clientWidth]")
        problems[path] = [
            *tab.log(),
            *tab.run(ADDED),
            *(link for link in links if not link.startswith(f"{served.url}/")),
        ]
        problems[path] += [f"{width} px wide"] if width > available else []
        problems[path] += (
            ["a mark of the text direction"] if MARKS[0] in tab.run("return document.body.innerText") else []
        )
        waiting += [link.removeprefix(served.url).partition("#")[0] for link in links]
    return problems


@pytest.mark.slow
def test_pages_with_texts_of_one_megabyte_run_no_script(tab: Tab, tmp_path: Path) -> None:
    client = open_console(create_updated_world(tmp_path / "world"))
    client.update()
    target = create_hostile_target(HUGE)
    # The URL of a target with this name is longer than a request can be, so a second target has a short name.
    named = replace(target, name="huge", packages=(replace(target.packages[0], target="huge", package="web"),))
    draft = named.packages[0].draft
    assert draft
    member = replace(draft.member, target="huge", package="web")
    named = replace(named, packages=(replace(named.packages[0], draft=replace(draft, member=member)),))
    finding = create_hostile_finding(HUGE)
    add_targets(client, [target, named], [finding, replace(finding, code="HugeText")])
    paths = [
        "/", "/changes", "/changes/hostile", "/changes/hostile/targets", "/targets", "/targets/huge",
        "/targets/huge?view=waiting", "/targets/huge?view=findings", "/targets/huge/packages/web", "/findings",
        build_finding_url(finding), "/activity", "/search?q=onerror",
    ]  # fmt: skip
    problems, statuses = {}, {}
    with serve_console(client) as served:
        for path in paths:
            tab.open(served.url + path)
            tab.run("document.querySelectorAll('details').forEach(one => one.open = true)")
            statuses[path] = tab.run("return performance.getEntriesByType('navigation')[0].responseStatus")
            problems[path] = [text[:200] for text in (*tab.log(), *tab.run(ADDED))]
        # Otherwise, the open page would log an error about its stream when the server stops.
        tab.open("about:blank")

    assert {path: found for path, found in problems.items() if found} == {}
    assert statuses == dict.fromkeys(paths, 200)


@pytest.mark.slow
def test_no_page_runs_a_script_or_sends_an_unexpected_request(tab: Tab, served: ServedConsole) -> None:
    pages = crawl(tab, served, ["/", f"/search?q={SHORT}", f"/changes?q={SHORT}&target={SHORT}"])
    opened = {"/events", *(urlsplit(path).path for path in pages)}
    requested = {path.removeprefix("GET ") for path in served.paths if not path.startswith("GET /static/")}

    assert {path[:200]: found for path, found in pages.items() if found} == {}
    assert len(pages) > 60
    assert {unquote(path) for path in requested} <= {unquote(path) for path in opened}
