"""The function `starlark`: runs a script on the resource list.

A runner evaluates the script, possibly in another process. Its input and its output are one JSON text each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.packages.functions.function import (
    FunctionConfig,
    FunctionContext,
    FunctionOutput,
    Item,
    KrmFunction,
    create_failure,
    format_scalar,
    report_errors_as_failure,
)
from reconciler.packages.functions.limits import FunctionLimits, LimitError
from reconciler.packages.functions.resource_list import build_resource_list, read_returned_items, read_returned_results
from reconciler.packages.functions.starlark_script import evaluate_script


class ScriptRunner(Protocol):
    """Evaluates scripts."""

    def __call__(self, request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
        """Return the answer to a request of `evaluate_script`, with at most `max_bytes`.

        Raises LimitError if the script exceeds a limit, InterruptedFunctionError if the environment failed.
        """
        ...


@dataclass(frozen=True)
class StarlarkFunction:
    """The function `starlark`, whose scripts are evaluated by `run`."""

    run: ScriptRunner

    def __call__(
        self, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
    ) -> FunctionOutput:
        """Return the items after the script. Errors, including `fail()`, are error results and a failure."""
        return _run_function(self.run, items, config, context)


def create_starlark_function(run: ScriptRunner) -> KrmFunction:
    """Return the function `starlark` with this script runner."""
    return report_errors_as_failure(StarlarkFunction(run))


def run_in_process(request: bytes, limits: FunctionLimits, max_bytes: int) -> bytes:
    """Evaluate a script in this process, which cannot limit its time and memory."""
    answer = evaluate_script(request)
    check_answer_size(len(answer), max_bytes)
    return answer


def check_answer_size(size: int, max_bytes: int) -> None:
    """Raise LimitError if an answer is too large."""
    if size > max_bytes:
        raise LimitError(
            f"the script returns {size:,} bytes and must not return more than {max_bytes:,}: the size of its "
            "input plus the remaining output of this render. Return less, or raise the setting "
            "limits.functions.output_bytes"
        )


def _run_function(
    run: ScriptRunner, items: Sequence[Item], config: FunctionConfig | None, context: FunctionContext
) -> FunctionOutput:
    source = _read_source(config)
    if source is None:
        return create_failure(
            items, "the configuration must be a StarlarkRun with `source` or a ConfigMap with `data.source`"
        )
    request = {"name": _read_name(config), "source": source, "resourceList": build_resource_list(items, config)}
    # JSON cannot represent infinity and NaN; Python reads and writes them as non-standard tokens.
    data = json.dumps(request).encode()
    context.budget.charge_scan(len(data))
    answer = run(data, context.budget.limits, len(data) + context.budget.remaining_bytes)
    context.budget.charge_output(max(0, len(answer) - len(data)), "the output of the script")
    response = json.loads(answer)
    if "error" in response:
        return create_failure(items, response["error"])
    changed_items = read_returned_items(items, response)
    if isinstance(changed_items, str):
        return create_failure(items, changed_items)
    return FunctionOutput(changed_items, read_returned_results(response), log=response["log"])


def _read_source(config: FunctionConfig | None) -> str | None:
    kind, api_version = (config or {}).get("kind"), (config or {}).get("apiVersion")
    if config and kind == "StarlarkRun" and str(api_version).startswith("fn.kpt.dev/"):
        source = config.get("source")
    elif config and (api_version, kind) == ("v1", "ConfigMap"):
        data = config.get("data")
        source = data.get("source") if isinstance(data, Mapping) else None
    else:
        return None
    return source if isinstance(source, str) and source.strip() else None


def _read_name(config: FunctionConfig | None) -> str:
    metadata = (config or {}).get("metadata")
    return (format_scalar(metadata.get("name")) if isinstance(metadata, Mapping) else None) or "script"


run_starlark = create_starlark_function(run_in_process)
"""The function in this process, for tests and for tools with trusted scripts."""
