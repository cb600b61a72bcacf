"""Random requests to all paths of the console and the API: no request has a server error, and none moves a ref."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any
from urllib.parse import quote, quote_from_bytes, urlencode

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reconciler.server.address import API_PREFIX
from reconciler.server.api.actions import ACTIONS
from reconciler.server.api.endpoint import list_parameters
from reconciler.server.api.endpoints import ENDPOINTS
from reconciler.server.console.events import EVENTS_PATH
from reconciler.server.console.routes import create_console_routes
from tests.support.console import ConsoleClient, open_console
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted

ROUTES = create_console_routes(lambda: None)
PAGE_PATHS = tuple(route.path for route in ROUTES if "GET" in (route.methods or ()) and route.path != EVENTS_PATH)
ACTION_PATHS = tuple(route.path for route in ROUTES if "POST" in (route.methods or ()))
API_PATHS = tuple(API_PREFIX + endpoint.path for endpoint in ENDPOINTS)
PARAMETERS = tuple(
    sorted(
        {parameter.name for endpoint in ENDPOINTS for parameter in list_parameters(endpoint)}
        | {"page", "columns", "view", "noise", "variant", "resource", "sort", "label", "revision"}
    )
)
FIELDS = (
    "verb",
    "change",
    "variant",
    "target",
    "removals",
    "conflicts",
    "reason",
    "count",
    "key",
    "package",
    "revision",
)
EXAMPLES = settings(max_examples=150)


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted), api_requests=1_000_000)
    client.update()
    return client


# The names of the fleet lead to code behind the first checks.
known_texts = st.sampled_from(
    ["berlin", "lisbon", "gateway", "metrics", "region=north", "region in (", "1", "0", "-1", "99999999999", "list",
     "matrix", "split", "approve", "propose", "reject", "yes", "accept", "history", "values", "draft", "..", ".git", "\0",
     "\u202e", "<script>", "'", "/", "//", "a" * 5_000]
)  # fmt: skip
texts = known_texts | st.text(max_size=30)
raw_texts: SearchStrategy[str] = texts.map(lambda text: quote(text, safe="", errors="surrogatepass")) | st.binary(
    max_size=10
).map(quote_from_bytes)


@st.composite
def requested_paths(draw: st.DrawFn, templates: Sequence[str]) -> str:
    """Return a path with random names."""
    return re.sub(r"{[^}]*}", lambda _: draw(raw_texts), draw(st.sampled_from(templates)))


queries = st.lists(st.tuples(st.sampled_from(PARAMETERS) | st.text(max_size=5), raw_texts), max_size=4).map(
    lambda items: "&".join(f"{quote(name, errors='surrogatepass')}={value}" for name, value in items)
)
forms = st.dictionaries(st.sampled_from(FIELDS), st.lists(texts, max_size=3), max_size=len(FIELDS))
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=10,
)
bodies = json_values | st.dictionaries(
    st.sampled_from(["variants", "targets", "reason", "idempotencyKey", "removals", "acceptConflicts"]), json_values
)


@pytest.mark.slow
@EXAMPLES
@given(path=requested_paths(API_PATHS), query=queries)
def test_requests_to_the_api(path: str, query: str, console: ConsoleClient) -> None:
    response = console.get(f"{path}?{query}")

    assert response.status_code < 500
    # A path without a route has an empty response.
    assert response.content == b"" or isinstance(response.json(), dict)


@pytest.mark.slow
@EXAMPLES
@given(path=requested_paths(PAGE_PATHS), query=queries)
def test_requests_for_pages(path: str, query: str, console: ConsoleClient) -> None:
    assert console.get(f"{path}?{query}").status_code < 500


@pytest.mark.slow
@EXAMPLES
@given(path=requested_paths(ACTION_PATHS), fields=forms)
def test_forms(path: str, fields: Mapping[str, Sequence[str]], console: ConsoleClient) -> None:
    before = read_refs(console.world.fleet)
    response = console.post(path, encode_fields(fields))
    console.context.jobs.apply_waiting()

    assert response.status_code < 500
    assert read_refs(console.world.fleet) == before


def encode_fields(fields: Mapping[str, Sequence[str]]) -> dict[str, list[str]]:
    return {name: [value.encode(errors="replace").decode() for value in values] for name, values in fields.items()}


@pytest.mark.slow
@EXAMPLES
@given(path=requested_paths([API_PREFIX + action.path for action in ACTIONS]), body=bodies)
def test_bodies_of_the_api(path: str, body: Any, console: ConsoleClient) -> None:
    before = read_refs(console.world.fleet)
    response = console.post_json(path, body)
    console.context.jobs.apply_waiting()

    assert response.status_code < 500
    assert read_refs(console.world.fleet) == before


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("resource", "pointer"),
    [
        pytest.param("Deployment/gateway", "/spec" * 2_000, id="deep-pointer"),
        pytest.param("Deployment/gateway", "/spec\0", id="nul"),
        pytest.param("Deployment\0", "/spec", id="nul-in-the-resource"),
        pytest.param("--help", "--version", id="options"),
        pytest.param("Deployment/gateway", "/\ud800", id="half-of-a-character"),
    ],
)
def test_a_value_that_cannot_be_explained_has_a_page(resource: str, pointer: str, console: ConsoleClient) -> None:
    query = urlencode({"view": "values", "resource": resource, "pointer": pointer}, errors="surrogatepass")
    response = console.get(f"/targets/berlin/packages/gateway?{query}")

    assert response.status_code in (200, 431)
