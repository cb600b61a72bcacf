"""Evaluating a starlark script: one JSON text in, one JSON text out, so that any process can do it.

This module and what it imports at once is all that a script worker loads when it starts; the modules that scripts may
load come with the first script that loads one.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import starlark as interpreter

from reconciler.caching import cached
from reconciler.packages.functions.starlark_language import dialect, language
from reconciler.packages.functions.starlark_nesting import nesting_fault
from reconciler.packages.functions.wire_faults import items_fault

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


def evaluate_script(request: bytes) -> bytes:
    """Return the answer to a request: the resource list as the script leaves it and its log, or its error.

    Both are JSON. Loops and calls are counted, so that a script without end stops at the same place everywhere. Raises
    MemoryError.
    """
    given = json.loads(request)
    name, source = given["name"], given["source"]
    log = _Log()
    try:
        if fault := nesting_fault(source):
            return _error(fault)
        returned = _run(name, source, given["resourceList"], log.write)
    except (interpreter.StarlarkError, TypeError, ValueError) as error:
        return _error(_reason(str(error), name))
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # the interpreter panics at values of more than 4 GiB; the class of that exception cannot be imported
        if type(error).__name__ != "PanicException":
            raise
        if "out of memory" in str(error):
            raise MemoryError from error
        return _error(f"{name}: the interpreter gave up: {error}")
    # before it becomes JSON, where every key is a string
    if fault := items_fault(returned):
        return _error(fault)
    answer = {"items": returned["items"], "results": returned.get("results"), "log": log.text}
    try:
        return json.dumps(answer, skipkeys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return _error(f"{name}: the script must return plain data: {error}")


def _error(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


class _Log:
    """What a script prints, as far as it is kept."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._left = _MAX_LOG_CHARACTERS

    def write(self, line: str) -> None:
        """Keep a line, or the part that fits the limit."""
        if self._left > 0:
            self._lines.append(line[: self._left])
            self._left -= len(line) + 1

    @property
    def text(self) -> str:
        """All that was kept."""
        return "\n".join(self._lines)


def _run(name: str, source: str, resources: dict[str, Any], log: Callable[[str], None]) -> Any:
    """Return the resource list as a script leaves it."""
    module = interpreter.Module()
    module["_resource_list"] = resources
    module.add_callable("_print", log)
    polls = iter(range(_MAX_POLLS))
    options = interpreter.EvalOptions(
        check_cancelled=lambda: next(polls, None) is None, max_callstack_size=_MAX_CALL_DEPTH
    )
    loader = interpreter.FileLoader(_load)
    for script in (_parsed("prelude", _PRELUDE), _parsed(name, source)):
        interpreter.eval_with(options, module, script, _globals(), file_loader=loader)
    return module["_resource_list"]


@cached(1)
def _globals() -> interpreter.Globals:
    return language()


@cached(_REMEMBERED_SCRIPTS)
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


def _load(name: str) -> interpreter.FrozenModule:
    # here, not above: most scripts load nothing, and these modules take longer to import than the interpreter
    from reconciler.packages.functions.starlark_modules import load_module

    return load_module(name)
