"""starlark: a script over the resource list.

The script is evaluated by a runner, which may be another process. What the runner is given and what it returns is one
JSON text each.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

from reconciler.packages.functions.function import (
    Config,
    Function,
    FunctionContext,
    Item,
    Output,
    failure,
    reports_faults,
    scalar_text,
)
from reconciler.packages.functions.limits import FunctionLimits, LimitError
from reconciler.packages.functions.starlark_script import evaluate_script
from reconciler.packages.functions.wire import resource_list, returned_items, returned_results


class ScriptRunner(Protocol):
    """Evaluates scripts."""

    def __call__(self, request: bytes, limits: FunctionLimits, most_bytes: int) -> bytes:
        """Return the answer to a request of `evaluate_script`, at most so many bytes of it.

        Raises LimitError for a script that exceeds a limit, InterruptedFunctionError where the environment failed.
        """
        ...


@dataclass(frozen=True)
class StarlarkFunction:
    """The function `starlark`, whose scripts are evaluated by `run`."""

    run: ScriptRunner

    def __call__(self, items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
        """Return the items as the script leaves them; errors, `fail()` included, are error results and a failure."""
        return _called(self.run, items, config, context)


def starlark_function(run: ScriptRunner) -> Function:
    """Return the function `starlark` whose scripts are evaluated by `run`."""
    return reports_faults(StarlarkFunction(run))


def run_here(request: bytes, limits: FunctionLimits, most_bytes: int) -> bytes:
    """Evaluate a script in this process, where neither its time nor its memory can be limited."""
    answer = evaluate_script(request)
    check_answer_size(len(answer), most_bytes)
    return answer


def check_answer_size(size: int, most_bytes: int) -> None:
    """Raise LimitError for an answer that is too large."""
    if size > most_bytes:
        raise LimitError(
            f"the script returns {size:,} bytes, and must not return more than {most_bytes:,}: the size of its "
            "input and what functions may still create in this render: return less, or raise the setting "
            "limits.functions.output_bytes"
        )


def _called(run: ScriptRunner, items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    source = _source(config)
    if source is None:
        return failure(items, "the configuration must be a StarlarkRun with `source` or a ConfigMap with `data.source`")
    request = {"name": _name(config), "source": source, "resourceList": resource_list(items, config)}
    # numbers that JSON has no words for are read again as they are written
    data = json.dumps(request).encode()
    context.budget.scan(len(data))
    answer = run(data, context.budget.limits, len(data) + context.budget.bytes)
    context.budget.create(max(0, len(answer) - len(data)), "the output of the script")
    returned = json.loads(answer)
    if "error" in returned:
        return failure(items, returned["error"])
    changed = returned_items(items, returned)
    if isinstance(changed, str):
        return failure(items, changed)
    return Output(changed, returned_results(returned), log=returned["log"])


def _source(config: Config | None) -> str | None:
    kind, api_version = (config or {}).get("kind"), (config or {}).get("apiVersion")
    if config and kind == "StarlarkRun" and str(api_version).startswith("fn.kpt.dev/"):
        source = config.get("source")
    elif config and (api_version, kind) == ("v1", "ConfigMap"):
        data = config.get("data")
        source = data.get("source") if isinstance(data, Mapping) else None
    else:
        return None
    return source if isinstance(source, str) and source.strip() else None


def _name(config: Config | None) -> str:
    metadata = (config or {}).get("metadata")
    return (scalar_text(metadata.get("name")) if isinstance(metadata, Mapping) else None) or "script"


run_starlark = starlark_function(run_here)
"""The function in this process, for tests and for tools that trust their scripts."""
