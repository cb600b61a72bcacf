"""starlark: a script over the resource list (kpt.md 15.6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import Any

import starlark as interpreter

from reconciler.packages.functions.function import (
    Config,
    FunctionContext,
    Item,
    Output,
    failure,
    scalar_text,
)
from reconciler.packages.functions.starlark_modules import dialect, language, load_module
from reconciler.packages.functions.starlark_nesting import nesting_fault
from reconciler.packages.functions.wire import resource_list, returned_items, returned_results

# the interpreter asks once per thousand loop turns or calls: a script may take ten million of them, on every machine
_MAX_POLLS = 10_000
_MAX_CALL_DEPTH = 200
_MAX_LOG_CHARACTERS = 10_000
# the scripts of the packages in flight
_REMEMBERED_SCRIPTS = 256
# a script's set() is a dictionary's keys: the interpreter has no sets of its own
_PRELUDE = """
def print(*args, sep=" "):
    _print(sep.join([str(arg) for arg in args]))

def set(items=[]):
    return {item: None for item in items}

ctx = struct(resource_list=_resource_list, open_api={}, environment={})
"""


def run_starlark(items: Sequence[Item], config: Config | None, context: FunctionContext) -> Output:
    """Return the items as the script leaves them; errors, `fail()` included, are error results and a failure.

    Loops and calls are counted, so a script without end stops at the same place everywhere.
    """
    source = _source(config)
    if source is None:
        return failure(items, "the configuration must be a StarlarkRun with `source` or a ConfigMap with `data.source`")
    if fault := nesting_fault(source):
        return failure(items, fault)
    log = _Log()
    try:
        returned = _run(_name(config), source, resource_list(items, config), log.write)
    except (interpreter.StarlarkError, TypeError, ValueError) as error:
        return failure(items, _reason(str(error), _name(config)))
    except BaseException as error:
        # the interpreter panics at values of more than 4 GiB; what it raises then has no name that could be imported
        if type(error).__name__ != "PanicException":
            raise
        return failure(items, f"{_name(config)}: the interpreter gave up: {error}")
    changed = returned_items(items, returned)
    if isinstance(changed, str):
        return failure(items, changed)
    return Output(changed, returned_results(returned), log=log.text)


class _Log:
    """What a script prints, as far as it is kept."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._left = _MAX_LOG_CHARACTERS

    def write(self, line: str) -> None:
        """Keep a line, or what there is room for."""
        if self._left > 0:
            self._lines.append(line[: self._left])
            self._left -= len(line) + 1

    @property
    def text(self) -> str:
        """All that was kept."""
        return "\n".join(self._lines)


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


def _run(name: str, source: str, resources: dict[str, Any], log: Callable[[str], None]) -> Any:
    module = interpreter.Module()
    module["_resource_list"] = resources
    module.add_callable("_print", log)
    polls = iter(range(_MAX_POLLS))
    options = interpreter.EvalOptions(
        check_cancelled=lambda: next(polls, None) is None, max_callstack_size=_MAX_CALL_DEPTH
    )
    loader = interpreter.FileLoader(load_module)
    for script in (_parsed("prelude", _PRELUDE), _parsed(name, source)):
        interpreter.eval_with(options, module, script, language(), file_loader=loader)
    return module["_resource_list"]


@lru_cache(maxsize=_REMEMBERED_SCRIPTS)
def _parsed(name: str, source: str) -> interpreter.AstModule:
    return interpreter.parse(name, source, dialect())


def _reason(text: str, name: str) -> str:
    """Return the interpreter's report in one line: what is wrong, and at which line of the script."""
    lines = text.splitlines()
    message = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), text.strip())
    at = next((line.partition("--> ")[2] for line in lines if "--> " in line), "")
    if message == "Evaluation cancelled":
        message = f"the script takes more than {_MAX_POLLS * 1000:,} steps"
    return message if message.startswith("fail:") or not at else f"{at or name}: {message}"
