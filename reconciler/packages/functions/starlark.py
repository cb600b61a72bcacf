"""The function `starlark`: run a script on the resource list.

A script runner evaluates the script, possibly in another process. The script runner receives one JSON text and returns
one JSON text.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Protocol

from reconciler.api.functions import StarlarkRun
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    Item,
    KrmFunction,
    create_failure,
    format_scalar,
    read_config_object,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionLimits, LimitError
from reconciler.packages.functions.resource_list import build_resource_list, read_returned_items, read_returned_results
from reconciler.packages.functions.starlark_script import evaluate_script, restore_items


class ScriptRunner(Protocol):
    """Evaluates Starlark scripts."""

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Evaluate the script in a request, and return the answer.

        The function `evaluate_script` defines the formats of the request and of the answer.

        Raises:
            LimitError: The script exceeds a limit.
            InterruptedFunctionError: The script process did not start, or was interrupted.
        """
        ...


@dataclass(frozen=True)
class StarlarkFunction:
    """The function `starlark`. The script runner `run` evaluates its scripts."""

    run: ScriptRunner

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Run the script on the items. If the script raises an error or calls `fail()`, return a failed output."""
        return _run_function(self.run, items, config, context)


def create_starlark_function(run: ScriptRunner) -> KrmFunction:
    """Return the function `starlark` that evaluates scripts with the script runner `run`."""
    return report_errors_as_failure(StarlarkFunction(run))


def run_in_process(request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
    """Evaluate a script in this process. The CPU time and the memory of the script are not limited."""
    answer = evaluate_script(request)
    check_answer_size(len(answer), max_bytes)
    return answer


def check_answer_size(size: int, max_bytes: int) -> None:
    """Raise LimitError if `size`, the bytes that a script returns, exceeds `max_bytes`."""
    if size > max_bytes:
        raise LimitError(
            f"the script returns {size:,} bytes, but must not return more than {max_bytes:,} bytes. This limit is the "
            "size of its input plus the bytes that remain of the output limit of this render. Next step: return less "
            "data, or raise the setting `limits.functions.output_bytes`"
        )


def _run_function(
    run: ScriptRunner, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    source = _read_source(config)
    if source is None:
        return create_failure(
            items, "the configuration must be a StarlarkRun with `source` or a ConfigMap with `data.source`"
        )
    resources = build_resource_list(items, config)
    request = {"name": _read_name(config), "source": source, "resourceList": resources}
    # Use the JSON module of Python, because it can write and read infinity and NaN, which standard JSON does not allow.
    data = json.dumps(request).encode()
    context.budget.charge_scan(len(data))
    max_bytes = len(data) + context.budget.remaining_bytes
    answer = run(data, context.budget.limits, max_bytes)
    response = json.loads(answer)
    # `size` is the size of all items. The answer itself omits the unchanged items.
    size = response.get("size", len(answer))
    check_answer_size(size, max_bytes)
    context.budget.charge_output(max(0, size - len(data)), "the output of the script")
    response = restore_items(response, resources["items"])
    if "error" in response:
        return create_failure(items, response["error"])
    changed_items = read_returned_items(items, response)
    if isinstance(changed_items, str):
        return create_failure(items, changed_items)
    return FunctionOutput(changed_items, read_returned_results(response), log=response["log"])


def _read_source(config: FunctionConfig | None) -> str | None:
    kind, api_version = (config or {}).get("kind"), (config or {}).get("apiVersion")
    source: object = None
    if config and kind == "StarlarkRun" and str(api_version).startswith("fn.kpt.dev/"):
        source = read_config_object(StarlarkRun, config).source
    elif config and (api_version, kind) == ("v1", "ConfigMap"):
        data = config.get("data")
        source = data.get("source") if isinstance(data, Mapping) else None
    return source if isinstance(source, str) and source.strip() else None


def _read_name(config: FunctionConfig | None) -> str:
    metadata = (config or {}).get("metadata")
    return (format_scalar(metadata.get("name")) if isinstance(metadata, Mapping) else None) or "script"


run_starlark = create_starlark_function(run_in_process)
"""The function `starlark` without a script process, for tests and for tools with trusted scripts."""
