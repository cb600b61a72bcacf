"""No route shows or changes anything outside of the permissions of a person: each role, each route, each target."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from urllib.parse import quote

import pytest

from reconciler.krm.selectors import LabelSelector, parse_label_query
from reconciler.output.fleet.model import FleetIndex
from reconciler.review.permissions import Permissions, Role, RoleRule
from reconciler.review.restricted_index import HIDDEN_TEXT
from reconciler.server.api.routes import create_api_routes
from reconciler.server.console.events import EVENTS_PATH
from reconciler.server.console.finding_groups import group_findings
from reconciler.server.console.people import Session
from reconciler.server.console.routes import create_console_routes
from reconciler.server.rate_limit import RateLimit
from tests.support.console import ADA, ConsoleClient, open_console, sign_in, use_authentication
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted

ALL = LabelSelector()
SOUTH = parse_label_query("region=south")
PUBLIC_PATHS = ("/static/", "/api/v1/openapi.json", "/sign-in", "/sign-out")


def rule(role: Role, targets: LabelSelector = ALL, *packages: str) -> tuple[RoleRule, ...]:
    return (RoleRule(role, groups=("g",), targets=targets, packages=packages),)


# For each role: its rules, and the packages that the person may read and approve. Berlin is in the north.
EVERYTHING = {"berlin/gateway", "berlin/metrics", "lisbon/gateway"}
CASES = {
    "no-role": ((), set(), set()),
    "viewer": (rule("viewer"), EVERYTHING, set()),
    "viewer-south": (rule("viewer", SOUTH), {"lisbon/gateway"}, set()),
    "viewer-metrics": (rule("viewer", ALL, "metrics"), {"berlin/metrics"}, set()),
    "reviewer": (rule("reviewer"), EVERYTHING, EVERYTHING),
    "reviewer-south": (rule("reviewer", SOUTH), {"lisbon/gateway"}, {"lisbon/gateway"}),
    "reviewer-metrics": (rule("reviewer", ALL, "metrics"), {"berlin/metrics"}, {"berlin/metrics"}),
    "reads-all-reviews-south": (rule("viewer") + rule("reviewer", SOUTH), EVERYTHING, {"lisbon/gateway"}),
    "admin": (rule("admin"), EVERYTHING, EVERYTHING),
}


@pytest.fixture(scope="module")
def fleet(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """Return a console for tests that do not change the fleet."""
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted))
    client.update()
    return client


def get_index(console: ConsoleClient) -> FleetIndex:
    assert console.context.index is not None
    return console.context.index


def list_paths(console: ConsoleClient) -> Iterator[str]:
    """Yield the paths of all routes for GET requests, with all names of the fleet."""
    index = get_index(console)
    values = {
        "key": [change.key for change in index.changes],
        "target": ["berlin", "lisbon"],
        "package": ["gateway", "metrics"],
        "id": [*(group.id for group in group_findings(index.findings)), "unknown"],
        "name": ["console.css"],
    }
    for route in [*create_api_routes(lambda: None, RateLimit(1)), *create_console_routes(lambda: None)]:
        if "GET" not in (route.methods or ()) or route.path == EVENTS_PATH:
            continue
        names = re.findall(r"{(\w+)(?::path)?}", route.path)
        for combination in itertools.product(*(values[name] for name in names)):
            path = route.path
            for name, value in zip(names, combination, strict=True):
                path = re.sub(rf"{{{name}(:path)?}}", quote(value), path, count=1)
            yield path
    for name in values["target"]:
        yield f"/api/v1/history?target={name}&package=gateway"
        yield f"/targets/{name}/packages/gateway?view=history"
    yield from (
        "/search?q=gateway",
        "/api/v1/search?q=gateway",
        "/api/v1/drafts?content=true&diffLines=100",
        "/api/v1/drafts?content=true&output=markdown",
        "/changes?q=metrics",
        "/changes?target=region%3Dnorth",
        "/targets?view=matrix",
    )


def has_name(text: str, names: set[str]) -> bool:
    return any(re.search(rf"\b{name}\b", text) for name in names)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", sorted(CASES))
def test_no_response_contains_a_hidden_name(name: str, fleet: ConsoleClient) -> None:
    rules, readable, _ = CASES[name]
    sign_in(fleet, Session(ADA, Permissions(rules)))
    hidden = {"berlin", "lisbon"} - {package.partition("/")[0] for package in readable}
    responses = {path: fleet.get(path) for path in list_paths(fleet)}
    # The page of a missing object repeats the name of the request.
    shown = [path for path, item in responses.items() if item.status_code == 200 and has_name(item.text, hidden)]

    assert shown == []
    assert [path for path, item in responses.items() if item.status_code >= 500] == []


INLINE_CODE = re.compile(r"<script(?![^>]* src=)|<style|<[^>]+ (?:style|on[a-z]+)=|javascript:", re.IGNORECASE)


def test_every_response_has_the_security_headers_and_no_inline_code(fleet: ConsoleClient) -> None:
    sign_in(fleet, Session(ADA, Permissions(CASES["admin"][0])))
    expected = {"x-content-type-options": "nosniff", "referrer-policy": "same-origin"}
    problems = {}
    for path in list_paths(fleet):
        response = fleet.get(path)
        headers = response.headers
        policy = headers.get("content-security-policy", "")
        is_safe = (
            policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'") and "unsafe" not in policy
        )
        is_page = headers.get("content-type", "").startswith("text/html")
        code = INLINE_CODE.findall(response.text) if is_page else []
        if not is_safe or code or not expected.items() <= headers.items():
            problems[path] = code or dict(headers)

    assert problems == {}


@pytest.mark.slow
def test_texts_of_people_show_no_hidden_name(tmp_path: Path) -> None:
    """The reason of an approval and the reason of a rejection name hidden targets."""
    console = open_console(begin(tmp_path, drafted))
    console.update()
    keys = {change.title.split()[1]: change.key for change in get_index(console).changes}
    console.confirm({"verb": "reject", "change": keys["gateway"]}, reason="wait for berlin", count="2")
    console.confirm({"verb": "approve", "change": keys["metrics"]}, reason="after lisbon", count="1")
    console.update()

    for case, hidden in (("viewer-metrics", "lisbon"), ("viewer-south", "berlin")):
        sign_in(console, Session(ADA, Permissions(CASES[case][0])))
        responses = {path: console.get(path) for path in list_paths(console)}
        shown = {path for path, found in responses.items() if found.status_code == 200 and hidden in found.text}
        assert shown == set()
        assert any(HIDDEN_TEXT in response.text for response in responses.values())


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", sorted(CASES))
def test_pages_of_packages(name: str, fleet: ConsoleClient) -> None:
    rules, readable, _ = CASES[name]
    sign_in(fleet, Session(ADA, Permissions(rules)))
    found = {
        package
        for package in EVERYTHING
        for prefix in ("", "/api/v1")
        if fleet.get(f"{prefix}/targets/{package.replace('/', '/packages/')}").status_code == 200
    }

    assert found == readable


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", sorted(CASES))
def test_only_permitted_drafts_are_published(name: str, tmp_path: Path) -> None:
    console = open_console(begin(tmp_path, drafted))
    console.update()
    rules, _, approvable = CASES[name]
    permissions = Permissions(rules)
    restricted = console.context.indexes.find(permissions)
    assert restricted is not None
    visible = [change.key for change in restricted.changes]
    hidden = [change.key for change in get_index(console).changes if change.key not in visible]
    sign_in(console, Session(ADA, permissions))
    refused = [console.post("/changes/confirm", {"verb": "approve", "change": key}).status_code for key in hidden]
    console.confirm({"verb": "approve", "change": visible}, reason="matrix", count="2")
    world = console.world
    published = {
        f"{cluster}/{path.partition('/')[0]}"
        for cluster in ("berlin", "lisbon")
        if f"refs/heads/clusters/{cluster}" in read_refs(world.fleet)
        for path in world.paths(world.fleet, f"clusters/{cluster}")
        if path.partition("/")[0] in ("gateway", "metrics")
    }

    assert published == approvable
    assert set(refused) <= {403, 409}


def test_without_a_session_only_public_paths_respond(fleet: ConsoleClient, tmp_path: Path) -> None:
    context = fleet.context
    (tmp_path / "tokens").write_text("# no token\n")
    use_authentication(fleet, auth=["tokens"], token_file=str(tmp_path / "tokens"))
    statuses = {path: fleet.get(path).status_code for path in [*list_paths(fleet), EVENTS_PATH]}
    routes = [*create_api_routes(lambda: None, RateLimit(1)), *create_console_routes(lambda: None)]
    actions = [re.sub("{.*?}", "x", route.path) for route in routes if "POST" in (route.methods or ())]
    posts = [
        (path, fleet.post_json(path, {}).status_code if path.startswith("/api") else fleet.post(path, {}).status_code)
        for path in actions
    ]
    fleet.context = context

    assert [path for path, status in statuses.items() if status != 401 and not path.startswith(PUBLIC_PATHS)] == []
    assert [item for item in posts if item[1] != 401 and not item[0].startswith(PUBLIC_PATHS)] == []
    assert len(actions) >= 6


def test_a_mode_without_authentication_is_an_admin(fleet: ConsoleClient) -> None:
    fleet.context = replace(fleet.context, sign_in=None)
    use_authentication(fleet, auth=["none"])

    assert fleet.get("/targets/berlin").status_code == 200


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(("case", "is_shown"), [("viewer-south", False), ("viewer", True)])
@pytest.mark.parametrize("has_index", [pytest.param(True, id="old-index"), pytest.param(False, id="no-index")])
def test_errors_of_the_service_are_shown_to_people_who_read_everything(
    case: str, is_shown: bool, has_index: bool, tmp_path: Path
) -> None:
    console = open_console(begin(tmp_path, drafted))
    if has_index:
        console.update()
    sign_in(console, Session(ADA, Permissions(CASES[case][0])))
    console.context.index_thread.error = "berlin cannot be read"
    console.context.state.record_failed_pass("berlin cannot be read", has_read_config=True)
    text = console.get("/targets").text

    assert ("</time> old" if has_index else "The targets cannot be read") in text
    assert ("berlin cannot be read" in text) == is_shown
