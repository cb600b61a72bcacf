"""The endpoint of the API with the results of the command `explain`."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from http import HTTPStatus
from typing import Any

from reconciler.inspect.value_explainer import ExplainOptions, ValueExplanation
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.envelope import API_VERSION, ResultMetadata
from reconciler.output.explain.result import ExplanationResult
from reconciler.output.text_result import TextResult, TextSummary
from reconciler.server.api.endpoint import (
    PACKAGE_PARAMETER,
    TARGET_PARAMETER,
    ApiRequest,
    Endpoint,
    JsonResult,
    Parameter,
    find_row,
)
from reconciler.server.api.problems import ApiError

# HEAD is not allowed, because it would be a commit of the work tree in which the service runs.
_COMMIT_NAME = re.compile(r"(?!(?:HEAD|@)\b)[A-Za-z0-9][A-Za-z0-9._/~^-]{0,199}")


@dataclass(frozen=True)
class ExplanationData:
    """The result of `reconciler explain -o json`, which another process has built."""

    metadata: ResultMetadata
    values: Sequence[Mapping[str, Any]]
    findings: Sequence[Mapping[str, Any]]
    summary: Mapping[str, Any]

    def to_json(self) -> str:
        """Return the JSON text. It has the same top-level fields as all results of the API."""
        envelope = {"apiVersion": API_VERSION, "kind": "Explanation", "metadata": self.metadata.to_data()}
        return json.dumps(
            {**envelope, "items": self.values, "findings": self.findings, "summary": self.summary, "next": None}
        )


def _explain(request: ApiRequest) -> JsonResult:
    target, package = request.query["target"], request.query["package"]
    resource, pointer = request.query.get("resource", ""), request.query.get("pointer", "")
    if pointer and not resource:
        raise ApiError("InvalidParameter", "resource: the query parameter is required together with `pointer`")
    find_row(request.index, target, package)
    options = _read_options(request)
    explainer = request.context.explainer
    if request.query.get("output") == "text":
        command, output = explainer.run(target, package, resource, pointer, "text", options)
        text = TextResult(
            metadata=ResultMetadata(source="api"),
            items=(output.text,),
            summary=TextSummary(exit_status=output.exit_status),
        )
        return _check(request, text, output.error, command)
    explanation = explainer.explain(target, package, resource, pointer, options)
    return _check(request, _build_data(explanation), explanation.error, explanation.command)


def _read_options(request: ApiRequest) -> ExplainOptions:
    query = request.query
    at, path, source = query.get("at", ""), query.get("path", ""), query.get("source", "")
    selects_charts = query.get("values") == "charts"
    if (path or source) and not selects_charts:
        raise ApiError("InvalidParameter", "values: must be charts together with `path` or `source`")
    if selects_charts and query.get("resource"):
        raise ApiError("InvalidParameter", "resource: must be empty, because `values` selects charts")
    if at and not _COMMIT_NAME.fullmatch(at):
        raise ApiError("InvalidParameter", "at: must be the ID of a commit, or the name of a branch or tag")
    # A commit of the repository can belong to the branch of a target that the person may not read.
    if at and not request.session.permissions.reads_everything:
        raise ApiError(
            "NotPermitted", "at: requires a role for all targets, because a commit can contain packages of any target",
            HTTPStatus.FORBIDDEN,
        )  # fmt: skip
    return ExplainOptions(at, path if selects_charts else None, source)


def _build_data(explanation: ValueExplanation) -> ExplanationData:
    metadata = ResultMetadata(source="api", config=explanation.config)
    return ExplanationData(metadata, explanation.values, explanation.findings, explanation.summary)


def _check(request: ApiRequest, result: JsonResult, error: str, command: str) -> JsonResult:
    """Return the result of a command `reconciler explain`.

    Raises:
        ApiError: The command has failed, or its output contains names of targets that the person may not read.
    """
    if request.hidden_names.occur_in(error + result.to_json()):
        raise ApiError(
            "NotPermitted", "the explanation contains names of targets that you may not read", HTTPStatus.FORBIDDEN
        )
    if error:
        raise ApiError(
            "NotExplained", error, HTTPStatus.UNPROCESSABLE_ENTITY, f"Run `{command}` on a machine with the config."
        )
    return result


EXPLAIN_ENDPOINT = Endpoint(
    "/explain", "The layers of the values of a package, from the current config", ExplanationResult, _explain,
    (
        TARGET_PARAMETER, PACKAGE_PARAMETER,
        Parameter("resource", "The resource as Kind/name or Kind/namespace/name. By default, all resources."),
        Parameter("pointer", "The JSON pointer of a value, for example /spec/replicas. By default, all values."),
        Parameter(
            "at",
            "The commit of the repository of the target at which the package is explained: its ID, or the name of a"
            " branch or tag. By default, the current config. This parameter requires a role for all targets.",
        ),
        Parameter(
            "values", "The explained values: those of resources (the default) or of charts.", ("resources", "charts")
        ),
        Parameter("path", "With `values=charts`: a path such as image.tag, or a JSON pointer. By default, all values."),
        Parameter("source", "With `values=charts`: the source whose chart is explained. By default, all charts."),
        Parameter("output", "The form of the result: data, or the text of the command.", ("json", "text")),
    ),
    depends_on_index=False, text_result=TextResult, refusals={"422": "The value cannot be explained."},
)  # fmt: skip
"""The endpoint that explains values."""
