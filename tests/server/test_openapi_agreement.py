"""Each response of the API agrees with the OpenAPI document: its status is documented, and its body matches the schema.

The parameters and bodies are generated from the document.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from functools import cache
from typing import Any
from urllib.parse import quote, urlencode

import httpx
import jsonschema_rs
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from reconciler.inspect.command_process import CommandOutput
from reconciler.inspect.value_explainer import ValueExplanation
from reconciler.review.permissions import ADMIN_PERMISSIONS, Permissions, RoleRule
from reconciler.server.api.openapi import build_openapi_document
from reconciler.server.console.people import Session
from tests.support.console import ADA, ConsoleClient, open_console, sign_in
from tests.support.git_repositories import read_refs
from tests.support.prepared_worlds import begin, drafted

DOCUMENT = build_openapi_document()
OPERATIONS = tuple((method, path) for path, methods in DOCUMENT["paths"].items() for method in methods)
READS = tuple(operation for operation in OPERATIONS if operation[0] == "get")
EXAMPLES = settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
ROLES = {
    "viewer": Permissions((RoleRule("viewer"),)),
    "reviewer": Permissions((RoleRule("reviewer", max_risk="medium"),)),
    "admin": ADMIN_PERMISSIONS,
}
# Values of the fleet lead to code behind the first checks.
KNOWN = (
    "berlin",
    "lisbon",
    "gateway",
    "metrics",
    "default",
    "Deployment/gateway",
    "/spec/replicas",
    "warning",
    "1",
    "500",
)
INVALID = (
    "",
    "0",
    "-1",
    "501",
    "9" * 30,
    "..",
    ".git",
    "region in (",
    "<script>",
    "é",
    "\u202e",
    "a" * 2_000,
    "2026-02-30",
)


class FixedExplainer:
    """Explains each value without a process."""

    def explain(self, *_arguments: object) -> ValueExplanation:
        return ValueExplanation("reconciler explain", error="the value does not exist")

    def run(self, *_arguments: object) -> tuple[str, CommandOutput]:
        return "reconciler explain", CommandOutput(text="berlin/gateway\n")


@pytest.fixture(scope="module")
def console(tmp_path_factory: pytest.TempPathFactory) -> ConsoleClient:
    client = open_console(begin(tmp_path_factory.mktemp("fleet"), drafted), api_requests=1_000_000)
    client.update()
    client.context = replace(client.context, explainer=FixedExplainer())
    return client


def list_known(console: ConsoleClient) -> tuple[str, ...]:
    """Return names and IDs of the fleet."""
    index = console.context.index
    assert index is not None
    return (*KNOWN, *(change.key for change in index.changes), *(change.variants[0].key for change in index.changes))


def list_texts(console: ConsoleClient) -> SearchStrategy[str]:
    known = st.sampled_from(list_known(console))
    # Other characters cannot be a part of a query or of a name. Other tests send them.
    return known | known | st.sampled_from(INVALID) | st.text(st.characters(codec="utf-8"), max_size=10)


@st.composite
def requested_urls(draw: st.DrawFn, path: str, parameters: list[dict[str, Any]], texts: SearchStrategy[str]) -> str:
    """Return a URL of an operation with allowed and other values of its parameters."""
    names = texts.filter(lambda text: text and "/" not in text and text not in (".", ".."))
    url = re.sub(r"{[^}]*}", lambda _: quote(draw(names), safe=""), path)
    query = []
    for parameter in parameters:
        is_required = parameter.get("required", False)
        if parameter["in"] == "path" or (not is_required and draw(st.integers(0, 2))):
            continue
        schema = parameter["schema"].get("items", parameter["schema"])
        values = st.sampled_from(schema["enum"]) if "enum" in schema and draw(st.integers(0, 3)) else texts
        query += [
            (parameter["name"], value)
            for value in draw(st.lists(values, min_size=1, max_size=2))[: 1 + draw(st.integers(0, 1))]
        ]
    return f"{url}?{urlencode(query)}"


@cache
def create_validator(method: str, path: str, status: str, media_type: str) -> Any:
    content = DOCUMENT["paths"][path][method]["responses"][status].get("content", {})
    assert media_type in content, f"{method} {path}: {status} {media_type} is not documented"
    schema = {**content[media_type]["schema"], "components": DOCUMENT["components"]}
    return jsonschema_rs.Draft202012Validator(schema)


def check_response(method: str, path: str, response: httpx.Response) -> None:
    status = str(response.status_code)
    documented = DOCUMENT["paths"][path][method]["responses"]

    assert status in documented, f"{method} {path}: {status} is not documented: {response.text[:200]}"
    validator = create_validator(method, path, status, response.headers["content-type"].partition(";")[0])
    assert [error.message[:200] for error in validator.iter_errors(response.json())] == []


def use_role(console: ConsoleClient, role: str) -> None:
    sign_in(console, Session(ADA, ROLES[role], mode="token"))


@pytest.mark.parametrize("operation", list(READS), ids=[path for _, path in READS])
def test_a_request_with_known_names(operation: tuple[str, str], console: ConsoleClient) -> None:
    method, path = operation
    use_role(console, "viewer")
    names = {"target": "berlin", "package": "gateway", "key": list_known(console)[len(KNOWN)]}
    url = re.sub(r"{([^}]*)}", lambda match: names.get(match[1], "unknown"), path)
    required = [item["name"] for item in DOCUMENT["paths"][path]["get"]["parameters"] if item.get("required")]
    query = urlencode({name: names.get(name, "gateway") for name in required if f"{{{name}}}" not in path})

    check_response(method, path, console.get(f"{url}?{query}"))


@pytest.mark.slow
@EXAMPLES
@given(data=st.data())
def test_each_read_agrees_with_the_document(data: st.DataObject, console: ConsoleClient) -> None:
    method, path = data.draw(st.sampled_from(READS))
    use_role(console, data.draw(st.sampled_from(sorted(ROLES))))
    parameters = DOCUMENT["paths"][path][method]["parameters"]

    check_response(method, path, console.get(data.draw(requested_urls(path, parameters, list_texts(console)))))


def draw_value(data: st.DataObject, schema: Mapping[str, Any], texts: SearchStrategy[str], depth: int = 0) -> Any:
    """Return a value that matches a schema of the document, or sometimes another value."""
    if "$ref" in schema:
        schema = DOCUMENT["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    if data.draw(st.integers(0, 19)) == 0:
        return data.draw(st.none() | st.integers() | st.booleans() | texts | st.lists(texts, max_size=2))
    if "enum" in schema:
        return data.draw(st.sampled_from(schema["enum"]))
    match schema.get("type"):
        case "object":
            required, properties = schema.get("required", ()), schema.get("properties", {})
            shown = [name for name in properties if name in required or data.draw(st.booleans())]
            return {name: draw_value(data, properties[name], texts, depth + 1) for name in shown}
        case "array":
            count = data.draw(st.integers(0, 2))
            return [draw_value(data, schema["items"], texts, depth + 1) for _ in range(count)]
        case "boolean":
            return data.draw(st.booleans())
        case "integer":
            return data.draw(st.integers(-1, 10))
        case _:
            return data.draw(texts)


@pytest.mark.slow
@EXAMPLES
@given(data=st.data())
def test_each_action_agrees_with_the_document(data: st.DataObject, console: ConsoleClient) -> None:
    method, path = data.draw(st.sampled_from([operation for operation in OPERATIONS if operation[0] == "post"]))
    use_role(console, data.draw(st.sampled_from(sorted(ROLES))))
    texts = list_texts(console)
    schema = DOCUMENT["paths"][path][method]["requestBody"]["content"]["application/json"]["schema"]
    before = read_refs(console.world.fleet)
    url = data.draw(requested_urls(path, [], texts))
    check_response(method, path, console.post_json(url.partition("?")[0], draw_value(data, schema, texts)))

    # A job starts later, so that no request moves a branch itself.
    assert read_refs(console.world.fleet) == before
