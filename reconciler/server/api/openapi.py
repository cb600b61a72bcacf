"""The OpenAPI document of the API, generated from the endpoints and the models of their bodies and results."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from pydantic.json_schema import models_json_schema

from reconciler.output.envelope import CommandResult
from reconciler.review.job_results import ReviewJobItem
from reconciler.server.address import API_PREFIX
from reconciler.server.api.actions import ACTIONS, ActionEndpoint
from reconciler.server.api.endpoint import Endpoint, list_parameters
from reconciler.server.api.endpoints import ENDPOINTS
from reconciler.server.api.problems import PROBLEM_TYPE

_SCHEMA_REF = "#/components/schemas/{model}"
_STATUSES = {
    "400": "A parameter is not valid.",
    "401": "The request has no valid token.",
    "403": "The person or program has no role.",
    "404": "The object does not exist, or the person may not read it.",
    "429": "The person or program has sent too many requests.",
    "503": "No pass is complete yet.",
}
_LIST_STATUSES = {"410": "The cursor is not valid any more."}
_ACTION_STATUSES = {
    "400": "The body is not valid.",
    "403": "The person has no role for the action, or the request comes from another site.",
    "409": "The action applies to no draft, or this process is a read-only standby.",
    "410": "The change does not exist any more.",
    "415": "The media type of the body is not application/json.",
    "422": "A reason is required, or another request has had the idempotency key.",
    "503": "No pass is complete yet, or too many actions wait.",
}


def build_openapi_document() -> dict[str, Any]:
    """Return the document for OpenAPI 3.1."""
    schemas = _build_result_schemas() | _build_body_schemas()
    schemas["Problem"] = {
        "type": "object",
        "description": "An error, in the format of RFC 9457.",
        "required": ["status", "title", "code", "detail"],
        "properties": {
            "type": {"type": "string"}, "status": {"type": "integer"}, "title": {"type": "string"},
            "code": {"type": "string"}, "detail": {"type": "string"}, "nextStep": {"type": "string"},
            "supersededBy": {"type": "array", "items": {"type": "string"}},
            "skipped": {"type": "array", "items": {"$ref": _SCHEMA_REF.format(model=ReviewJobItem.__name__)}},
        },
    }  # fmt: skip
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "reconciler",
            "version": "1",
            "description": "The state of the fleet, and review actions. New versions only add fields and endpoints.",
        },
        "paths": _build_paths(),
        "components": {
            "schemas": schemas,
            "securitySchemes": {"token": {"type": "http", "scheme": "bearer"}},
        },
        "security": [{"token": []}],
    }


def _build_paths() -> dict[str, dict[str, Any]]:
    paths: dict[str, dict[str, Any]] = {}
    for endpoint in ENDPOINTS:
        paths[API_PREFIX + endpoint.path] = {"get": _build_operation(endpoint)}
    for action in ACTIONS:
        paths.setdefault(API_PREFIX + action.path, {})["post"] = _build_action(action)
    return paths


def _build_result_schemas() -> dict[str, Any]:
    results = [result for endpoint in ENDPOINTS for result in _list_results(endpoint)]
    models = dict.fromkeys([*results, *(action.result for action in ACTIONS)])
    _, definitions = models_json_schema([(model, "serialization") for model in models], ref_template=_SCHEMA_REF)
    schemas = dict(definitions["$defs"])
    for schema in schemas.values():
        # Allow unknown fields in results, because new versions can add fields.
        schema.pop("additionalProperties", None)
    return schemas


def _build_body_schemas() -> dict[str, Any]:
    models = dict.fromkeys(action.body for action in ACTIONS)
    _, definitions = models_json_schema([(model, "validation") for model in models], ref_template=_SCHEMA_REF)
    return {name: {**schema, "additionalProperties": False} for name, schema in definitions["$defs"].items()}


def _build_operation(endpoint: Endpoint) -> dict[str, Any]:
    return {
        "operationId": _build_operation_id("get", endpoint.path),
        "summary": endpoint.summary,
        "parameters": [*_build_path_parameters(endpoint.path), *_build_query_parameters(endpoint)],
        "responses": {
            "200": {"description": "The result.", "content": _refer_to_results(endpoint)},
            **_build_problems(_STATUSES | (_LIST_STATUSES if endpoint.is_list else {}) | dict(endpoint.refusals)),
        },
    }


def _build_action(action: ActionEndpoint) -> dict[str, Any]:
    location = {"description": "The path of the newest result.", "schema": {"type": "string"}}
    return {
        "operationId": _build_operation_id("post", action.path),
        "summary": action.summary,
        "parameters": list(_build_path_parameters(action.path)),
        "requestBody": {"required": True, "content": _refer(action.body.__name__)},
        "responses": {
            "202": {
                "description": "The request is accepted.",
                "content": _refer(action.result.__name__),
                "headers": {"Location": location},
            },
            **_build_problems(_STATUSES | _ACTION_STATUSES),
        },
    }


def _list_results(endpoint: Endpoint) -> tuple[type[CommandResult], ...]:
    """Return the models of all results of an endpoint."""
    return (endpoint.result, *([endpoint.text_result] if endpoint.text_result else []))


def _refer_to_results(endpoint: Endpoint) -> dict[str, Any]:
    if endpoint.text_result is None:
        return _refer(endpoint.result.__name__)
    references = [{"$ref": _SCHEMA_REF.format(model=result.__name__)} for result in _list_results(endpoint)]
    return {"application/json": {"schema": {"oneOf": references}}}


def _refer(model: str, media_type: str = "application/json") -> dict[str, Any]:
    return {media_type: {"schema": {"$ref": _SCHEMA_REF.format(model=model)}}}


def _build_problems(statuses: Mapping[str, str]) -> dict[str, Any]:
    content = _refer("Problem", PROBLEM_TYPE)
    return {status: {"description": text, "content": content} for status, text in statuses.items()}


def _build_operation_id(method: str, path: str) -> str:
    words = re.findall("[a-z]+", path)
    return method + "".join(word.capitalize() for word in words)


def _build_path_parameters(path: str) -> Iterator[dict[str, Any]]:
    for name in re.findall(r"{([a-z]+)}", path):
        yield {"name": name, "in": "path", "required": True, "schema": {"type": "string"}}


def _build_query_parameters(endpoint: Endpoint) -> Iterator[dict[str, Any]]:
    for parameter in list_parameters(endpoint):
        schema: dict[str, Any] = {"type": "string"}
        if parameter.choices:
            schema["enum"] = list(parameter.choices)
        if parameter.is_repeatable:
            schema = {"type": "array", "items": schema}
        required = {"required": True} if parameter.is_required else {}
        yield {
            "name": parameter.name, "in": "query", "description": parameter.description, **required, "schema": schema,
        }  # fmt: skip
