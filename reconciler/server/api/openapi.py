"""The OpenAPI document of the read API, generated from the endpoints and the models of their results."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from pydantic.json_schema import models_json_schema

from reconciler.output.fleet.results import API_RESULTS
from reconciler.server.api.endpoints import ENDPOINTS, PREFIX, Endpoint, list_parameters
from reconciler.server.api.problems import PROBLEM_TYPE

_SCHEMA_REF = "#/components/schemas/{model}"
_STATUSES = {
    "400": "A parameter is not valid.",
    "401": "The request has no valid token.",
    "404": "The object does not exist, or the person may not read it.",
    "503": "No pass is complete yet.",
}


def build_openapi_document() -> dict[str, Any]:
    """Return the document for OpenAPI 3.1."""
    _, definitions = models_json_schema([(model, "serialization") for model in API_RESULTS], ref_template=_SCHEMA_REF)
    schemas = dict(definitions["$defs"])
    for schema in schemas.values():
        # Clients must accept unknown fields, because new versions can add fields.
        schema.pop("additionalProperties", None)
    schemas["Problem"] = {
        "type": "object",
        "description": "An error, in the format of RFC 9457.",
        "required": ["status", "title", "code", "detail"],
        "properties": {
            "type": {"type": "string"}, "status": {"type": "integer"}, "title": {"type": "string"},
            "code": {"type": "string"}, "detail": {"type": "string"}, "nextStep": {"type": "string"},
        },
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "reconciler",
            "version": "1",
            "description": "The state of the fleet. New versions of the service only add fields and endpoints.",
        },
        "paths": {PREFIX + endpoint.path: {"get": _build_operation(endpoint)} for endpoint in ENDPOINTS},
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _build_operation(endpoint: Endpoint) -> dict[str, Any]:
    problem = {PROBLEM_TYPE: {"schema": {"$ref": _SCHEMA_REF.format(model="Problem")}}}
    schema = {"$ref": _SCHEMA_REF.format(model=endpoint.result.__name__)}
    return {
        "operationId": _build_operation_id(endpoint.path),
        "summary": endpoint.summary,
        "parameters": list(_build_parameters(endpoint)),
        "responses": {
            "200": {"description": "The result.", "content": {"application/json": {"schema": schema}}},
            **{status: {"description": text, "content": problem} for status, text in _STATUSES.items()},
        },
    }


def _build_operation_id(path: str) -> str:
    words = re.findall("[a-z]+", path)
    return "get" + "".join(word.capitalize() for word in words)


def _build_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{([a-z]+)}", endpoint.path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}
    for parameter in list_parameters(endpoint):
        schema: dict[str, Any] = {"type": "string"}
        if parameter.choices:
            schema["enum"] = list(parameter.choices)
        yield {"name": parameter.name, "in": "query", "description": parameter.description, "schema": schema}
