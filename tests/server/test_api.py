"""Tests of the read API: results have the schemas of the OpenAPI document, and lists have pages and filters."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

import httpx
import jsonschema_rs
import pytest
from starlette.datastructures import QueryParams

from reconciler.inspect.value_explainer import ValueExplanation
from reconciler.krm.selectors import LabelSelector
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.review.restricted_index import RestrictedIndexes
from reconciler.server.address import API_PREFIX
from reconciler.server.api.actions import ACTIONS
from reconciler.server.api.endpoints import ENDPOINTS
from reconciler.server.api.openapi import build_openapi_document
from reconciler.server.api.paging import Cursor, compute_selection
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.prepared_worlds import begin, drafted, published
from tests.support.world import config_map, variant

# A cursor of another process, for the list of changes without filters.
OTHER_CURSOR = Cursor("01234567", 1, 1, compute_selection(f"{API_PREFIX}/changes", QueryParams()))


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    """Packages are published, one draft is open, and one object has an error."""
    world = begin(tmp_path_factory.mktemp("fleet"), published)
    world.write(
        {
            "regions/north.yaml": config_map("region-north", api="other"),
            "broken.yaml": variant("broken", "berlin", "missing"),
        }
    )
    client = open_console(world)
    client.update()
    return client


def read(console: ConsoleClient, path: str) -> dict[str, Any]:
    response = console.get(f"{API_PREFIX}{path}")
    assert response.status_code == 200, response.text
    data: dict[str, Any] = response.json()
    return data


def list_paths(console: ConsoleClient) -> dict[str, str]:
    """Return an existing path for each endpoint, except for jobs."""
    key = read(console, "/changes")["items"][0]["key"]
    values = {"{key}": key, "{target}": "berlin", "{package}": "gateway"}
    required = {"target": "berlin", "package": "gateway", "q": "gateway"}
    paths = {}
    for endpoint in filter(lambda endpoint: endpoint.depends_on_index, ENDPOINTS):
        path = endpoint.path
        for name, value in values.items():
            path = path.replace(name, value)
        query = {parameter.name: required[parameter.name] for parameter in endpoint.parameters if parameter.is_required}
        paths[endpoint.path] = f"{path}?{urlencode(query)}"
    return paths


def test_every_result_has_the_schema_of_the_openapi_document(console: ConsoleClient) -> None:
    document = read(console, "/openapi.json")
    for path, real_path in list_paths(console).items():
        operation = document["paths"][API_PREFIX + path]["get"]
        schema = operation["responses"]["200"]["content"]["application/json"]["schema"]
        jsonschema_rs.validate({**schema, "components": document["components"]}, read(console, real_path))


def test_the_openapi_document_describes_every_endpoint(console: ConsoleClient) -> None:
    document = build_openapi_document()
    operations = [operation["operationId"] for path in document["paths"].values() for operation in path.values()]

    assert document == read(console, "/openapi.json")
    assert len(operations) == len(set(operations)) == len(ENDPOINTS) + len(ACTIONS)
    assert all(f"#/components/schemas/{name}" in str(document) for name in ("ChangeListResult", "Problem"))


def test_results_contain_the_fleet(console: ConsoleClient) -> None:
    change = read(console, "/changes")["items"][0]
    draft = change["variants"][0]["drafts"][0]

    assert read(console, "/status")["summary"]["packages"] == {"draft": 1, "published": 2}
    assert change["title"] == "re-render gateway v1"
    assert (draft["target"], draft["package"], draft["state"]) == ("berlin", "gateway", "waiting")
    assert draft["draftHead"] == console.world.head("drafts/berlin")
    assert draft["branchHead"] == console.world.head("clusters/berlin")
    assert [item["name"] for item in read(console, "/targets?labels=region%3Dsouth")["items"]] == ["lisbon"]
    assert [item["package"] for item in read(console, "/targets/berlin")["items"]] == ["gateway", "metrics"]
    assert {item["code"] for item in read(console, "/findings?severity=error")["items"]} == {"UpstreamNotFound"}
    assert {item["by"] for item in read(console, "/activity?action=published")["items"]} == {"Ada"}


def test_one_change_contains_its_differences(console: ConsoleClient) -> None:
    key = read(console, "/changes")["items"][0]["key"]
    changes = read(console, f"/changes/{key}")["items"][0]["variants"][0]["changes"]

    assert changes["objects"][0]["object"]["kind"] == "ConfigMap"


def test_the_diff_of_a_change_has_the_hunks_of_its_resources(console: ConsoleClient) -> None:
    key = read(console, "/changes")["items"][0]["key"]
    result = read(console, f"/changes/{key}/diff?target=berlin")
    (item,) = result["items"]

    assert (item["resource"], item["changeType"], item["file"]) == ("ConfigMap endpoints", "changed", "endpoints.yaml")
    assert item["diff"].splitlines()[0] == "@@ -7,4 +7,4 @@"
    assert item["diff"].splitlines()[-2:] == ["-  api: api.north", "+  api: other"]
    assert result["summary"]["draftHead"] == console.world.head("drafts/berlin")
    assert (result["summary"]["resources"], result["summary"]["changedLines"]) == (1, 2)


def test_the_history_of_a_package_contains_its_revisions(console: ConsoleClient) -> None:
    result = read(console, "/history?target=berlin&package=gateway")

    assert [(item["revision"], item["by"]) for item in result["items"]] == [(1, "Ada")]
    assert result["items"][0]["commit"] == console.world.head("clusters/berlin")
    assert result["summary"] == {"target": "berlin", "package": "gateway", "revisions": 1}


def test_a_search_finds_objects_of_all_types(console: ConsoleClient) -> None:
    first = read(console, "/search?q=gateway&limit=2")
    rest = read(console, f"/search?q=gateway&cursor={first['next']}")

    assert [(item["type"], item["title"], item["page"]) for item in first["items"] + rest["items"]] == [
        ("change", "re-render gateway v1", first["items"][0]["page"]),
        ("package", "berlin/gateway", "/targets/berlin/packages/gateway"),
        ("package", "lisbon/gateway", "/targets/lisbon/packages/gateway"),
        ("object", "PackageVariantSet default/gateway", "/targets?owner=PackageVariantSet+default%2Fgateway"),
    ]
    assert first["summary"] == rest["summary"] == {"found": {"change": 1, "package": 2, "object": 1}}


def test_the_pages_of_a_list_contain_each_item_once(console: ConsoleClient) -> None:
    first = read(console, "/activity?action=published&limit=2")
    second = read(console, f"/activity?action=published&limit=2&cursor={first['next']}")

    packages = [f"{item['target']}/{item['package']}" for item in [*first["items"], *second["items"]]]
    assert sorted(packages) == ["berlin/gateway", "berlin/metrics", "lisbon/gateway"]
    assert second["next"] is None
    assert first["summary"] == second["summary"] == {"events": 3}


def test_all_pages_of_a_list_come_from_one_view(tmp_path: Path) -> None:
    """A cursor is valid for ten minutes after a newer view."""
    world = begin(tmp_path, drafted)
    console = open_console(world)
    now = 0.0
    indexes = RestrictedIndexes(lambda: console.context.index, lambda: now)
    console.context = replace(console.context, indexes=indexes)
    console.update()
    first = read(console, "/changes?limit=1")
    path = f"{API_PREFIX}/changes?limit=500&cursor={first['next']}"
    rest = console.get(path)
    for cluster in ("berlin", "lisbon"):
        world.merge(cluster, "squash")
    console.update()
    later = console.get(path)
    now = 599.0
    before_end = console.get(path)
    now = 600.0
    expired = console.get(path)

    assert rest.json() == later.json() == before_end.json()
    assert (rest.headers["x-view"], later.headers["x-view"]) == ("1", "2")
    assert later.headers["etag"] == rest.headers["etag"]
    assert len(rest.json()["items"]) == 1
    assert read(console, "/changes")["items"] == []
    assert (expired.status_code, expired.json()["code"]) == (410, "CursorExpired")
    assert expired.json()["nextStep"] == "Read the list again from its first page."


def test_a_kept_view_has_the_permissions_of_the_request(console: ConsoleClient) -> None:
    cursor = read(console, "/targets?limit=1")["next"]
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    response = request_as(console, Session(ADA, Permissions((rule,))), f"/targets?cursor={cursor}")

    assert (response.status_code, response.json()["items"]) == (200, [])
    assert "berlin" not in response.text


@pytest.mark.parametrize(
    ("path", "status", "code", "detail"),
    [
        pytest.param("/changes?limit=0", 400, "InvalidParameter", "limit: must be a number from 1 to 500", id="limit"),
        pytest.param("/changes?limit=501", 400, "InvalidParameter", "limit:", id="limit-too-large"),
        pytest.param("/changes?cursor=%FF", 400, "InvalidParameter", "cursor:", id="cursor"),
        pytest.param(
            f"/changes?cursor={OTHER_CURSOR}", 410, "CursorExpired", "valid for 10 minutes", id="other-process"
        ),
        pytest.param(
            f"/changes?cursor={OTHER_CURSOR}&risk=high",
            400,
            "CursorMismatch",
            "different parameters",
            id="other-filters",
        ),
        pytest.param(f"/findings?cursor={OTHER_CURSOR}", 400, "CursorMismatch", "different path", id="other-path"),
        pytest.param(
            "/changes?since=soon",
            400,
            "InvalidParameter",
            'since: must be a day in UTC such as "2024-05-31',
            id="since",
        ),
        pytest.param("/changes?state=new", 400, "InvalidParameter", 'state: must be one of "waiting"', id="choice"),
        pytest.param("/changes?page=2", 400, "UnknownParameter", "allowed parameters: cursor, limit", id="unknown"),
        pytest.param("/targets?labels=a+in+(", 400, "InvalidParameter", "labels:", id="selector"),
        pytest.param("/changes/0123456789ab", 410, "UnknownChange", "there is no change", id="change"),
        pytest.param(
            "/changes/0123456789ab/diff", 410, "UnknownChange", "there is no change", id="diff-of-a-past-change"
        ),
        pytest.param("/changes/KEY/diff?variant=other", 400, "InvalidParameter", 'variant: must be "', id="variant"),
        pytest.param("/changes/KEY/diff?target=lisbon", 404, "UnknownTarget", "lisbon", id="target-of-a-diff"),
        pytest.param("/drafts?target=porto", 404, "UnknownTarget", "porto", id="target-of-drafts"),
        pytest.param("/drafts?target=berlin&package=x", 404, "UnknownPackage", "berlin/x", id="package-of-drafts"),
        pytest.param(
            "/drafts?package=x",
            400,
            "InvalidParameter",
            "package: requires exactly one parameter `target`",
            id="only-package",
        ),
        pytest.param(
            "/drafts?target=berlin&labels=a", 400, "InvalidParameter", "together with the parameter `target`", id="both"
        ),
        pytest.param("/drafts?diffLines=x", 400, "InvalidParameter", "diffLines: must be a number", id="diff-lines"),
        pytest.param("/history?target=berlin&package=x", 404, "UnknownPackage", "berlin/x", id="history"),
        pytest.param(
            "/history?target=berlin", 400, "InvalidParameter", "package: the query parameter", id="no-package"
        ),
        pytest.param("/search?q=", 400, "InvalidParameter", "q: the query parameter is required", id="search"),
        pytest.param(
            "/targets/nowhere", 404, "UnknownTarget", 'there is no target "nowhere" that you may read', id="target"
        ),
        pytest.param("/targets/berlin/packages/x/y", 404, "UnknownPackage", "berlin/x/y", id="package"),
    ],
)
def test_a_wrong_request_has_a_problem(path: str, status: int, code: str, detail: str, console: ConsoleClient) -> None:
    key = read(console, "/changes")["items"][0]["key"]
    response = console.get(f"{API_PREFIX}{path.replace('KEY', key)}")
    problem = response.json()

    assert response.headers["content-type"] == "application/problem+json"
    assert (response.status_code, problem["status"], problem["code"]) == (status, status, code)
    assert detail in problem["detail"]


EXPLAIN = "/explain?target=berlin&package=gateway&resource=Deployment%2Fgateway&pointer=%2Fspec%2Freplicas"


@pytest.mark.slow
def test_an_explanation_has_the_layers_of_the_value(console: ConsoleClient) -> None:
    document, result = read(console, "/openapi.json"), read(console, EXPLAIN)
    schema = document["paths"][f"{API_PREFIX}/explain"]["get"]["responses"]["200"]["content"]["application/json"][
        "schema"
    ]
    jsonschema_rs.validate({**schema, "components": document["components"]}, result)
    (value,) = result["items"]

    assert (result["kind"], result["metadata"]["source"]) == ("Explanation", "api")
    assert (value["pointer"], value["steps"][-1]["file"]) == ("/spec/replicas", "gateway/deployment.yaml")


@pytest.mark.quick_cases(every=3)
@pytest.mark.parametrize(
    ("change", "status", "code", "detail"),
    [
        pytest.param(("gateway", "nothing"), 404, "UnknownPackage", "berlin/nothing", id="package"),
        pytest.param(("replicas", "none"), 422, "NotExplained", "/spec/none", id="value"),
        pytest.param(
            ("&resource=Deployment%2Fgateway", ""),
            400,
            "InvalidParameter",
            "resource: the query parameter",
            id="absent",
        ),
        pytest.param(("&resource", "&at=HEAD&resource"), 400, "InvalidParameter", "at: must be the ID", id="head"),
        pytest.param(("&resource", "&at=-x&resource"), 400, "InvalidParameter", "at: must be the ID", id="option"),
        pytest.param(("&resource", "&path=a&resource"), 400, "InvalidParameter", "values: must be charts", id="path"),
        pytest.param(("&resource", "&values=charts&resource"), 400, "InvalidParameter", "resource: must", id="both"),
    ],
)
def test_a_value_that_cannot_be_explained_has_a_problem(
    change: tuple[str, str], status: int, code: str, detail: str, console: ConsoleClient
) -> None:
    response = console.get(API_PREFIX + EXPLAIN.replace(*change, 1))

    assert (response.status_code, response.json()["code"]) == (status, code)
    assert detail in response.json()["detail"]


def test_only_people_who_read_everything_explain_earlier_commits(console: ConsoleClient) -> None:
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    path = EXPLAIN.replace("berlin", "lisbon") + "&at=clusters/berlin"
    response = request_as(console, Session(ADA, Permissions((rule,))), path)

    assert (response.status_code, response.json()["code"]) == (403, "NotPermitted")


class FixedExplainer:
    """Returns an explanation with the name of another target."""

    def __init__(self, explanation: ValueExplanation) -> None:
        self._explanation = explanation

    def explain(self, *_arguments: object) -> ValueExplanation:
        return self._explanation


@pytest.mark.parametrize(
    "explanation",
    [
        pytest.param(ValueExplanation("", ({"steps": [{"file": "policies/berlin.yaml"}]},)), id="value"),
        pytest.param(ValueExplanation("", error="berlin/gateway has no such field"), id="error"),
    ],
)
def test_an_explanation_with_names_of_other_targets_is_refused(
    explanation: ValueExplanation, console: ConsoleClient
) -> None:
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    context = console.context
    console.context = replace(context, explainer=FixedExplainer(explanation))
    path = EXPLAIN.replace("berlin", "lisbon")
    response = request_as(console, Session(ADA, Permissions((rule,))), path)
    page = request_as(
        console, Session(ADA, Permissions((rule,))), "/targets/lisbon/packages/gateway?resource=a&pointer=/b", prefix=""
    )
    console.context = context

    assert (response.status_code, response.json()["code"]) == (403, "NotPermitted")
    assert "berlin" not in response.text + page.text
    assert "names of targets that you may not read" in page.text


def test_a_result_that_has_not_changed_is_not_sent_again(console: ConsoleClient) -> None:
    first = console.get(f"{API_PREFIX}/changes")
    again = console.get(f"{API_PREFIX}/changes", if_none_match=first.headers["etag"])
    other = console.get(f"{API_PREFIX}/changes?limit=1", if_none_match=first.headers["etag"])

    assert (again.status_code, again.content) == (304, b"")
    assert other.status_code == 200
    assert first.headers["x-view"] == "1"


class FixedSession:
    """Identifies each request as a request of one session."""

    def __init__(self, session: Session | None) -> None:
        self._session = session

    def authenticate(self, _request: object, *, extends_session: bool = True) -> Session | None:
        return self._session


def request_as(console: ConsoleClient, session: Session | None, path: str, prefix: str = API_PREFIX) -> httpx.Response:
    context = console.context
    console.context = replace(context, authenticator=FixedSession(session))
    try:
        return console.get(f"{prefix}{path}")
    finally:
        console.context = context


def test_a_person_reads_only_permitted_targets(console: ConsoleClient) -> None:
    rule = RoleRule("viewer", targets=LabelSelector((("region", "south"),)))
    session = Session(ADA, Permissions((rule,)))
    texts = [request_as(console, session, endpoint.path).text for endpoint in ENDPOINTS if "{" not in endpoint.path]

    assert [text for text in texts if "berlin" in text] == []
    assert request_as(console, session, "/targets/berlin").status_code == 404


def test_a_request_without_a_session_is_refused(console: ConsoleClient) -> None:
    response = request_as(console, None, "/status")

    assert response.status_code == 401
    assert response.headers["www-authenticate"] == "Bearer"
    assert response.json()["nextStep"] == "Send a token in the header Authorization."


@pytest.mark.slow
def test_before_the_first_pass_the_client_must_wait(tmp_path: Path) -> None:
    response = open_console(begin(tmp_path, published)).get(f"{API_PREFIX}/status")

    assert (response.status_code, response.json()["code"]) == (503, "NoView")


@pytest.mark.slow
def test_the_number_of_requests_is_limited(tmp_path: Path) -> None:
    console = open_console(begin(tmp_path, published), 3)
    console.update()
    paths = ["/status", "/targets/nowhere", "/changes?limit=0"]
    responses = [console.get(f"{API_PREFIX}{path}") for path in paths]
    refused = [console.get(f"{API_PREFIX}/status"), console.post_json(f"{API_PREFIX}/passes", {})]
    console.world.now += 20

    assert [response.headers["ratelimit"] for response in responses] == [
        '"requests";r=2;t=20', '"requests";r=1;t=40', '"requests";r=0;t=60',
    ]  # fmt: skip
    assert {response.headers["ratelimit-policy"] for response in responses} == {'"requests";q=3;w=60'}
    assert {response.status_code for response in refused} == {429}
    assert refused[0].json()["code"] == "TooManyRequests"
    assert refused[0].headers["retry-after"] == "20"
    assert console.requested_passes == 0
    assert console.get(f"{API_PREFIX}/status").status_code == 200
