"""Evaluate a Starlark script. Input and output are one JSON text each, so that any process can evaluate a script.

A script process imports this module when it starts. This module imports `starlark_modules` only when a script loads a
module.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import starlark as interpreter

from reconciler.memory import cached
from reconciler.packages.functions.limits import find_items_error
from reconciler.packages.functions.starlark_syntax import (
    create_starlark_dialect,
    create_starlark_globals,
    find_nesting_error,
)

# The interpreter calls a check function after each thousand loop iterations or calls. This limit stops a script after
# ten million iterations or calls.
_MAX_POLLS = 10_000
_MAX_CALL_DEPTH = 200
_MAX_LOG_CHARACTERS = 10_000
# Maximum number of cached scripts. This number is sufficient for all packages that are rendered at the same time.
_MAX_CACHED_SCRIPTS = 256
# Define set() as a function that returns a dictionary, because the interpreter has no sets.
_PRELUDE = """
def print(*args, sep=" "):
    _print(sep.join([str(arg) for arg in args]))

def set(items=[]):
    return {item: None for item in items}

ctx = struct(resource_list=_resource_list, open_api={}, environment={})
"""


def evaluate_script(request: bytes) -> bytes:
    """Evaluate the script in a JSON request. Return the new resource list and the log, or an error, as JSON.

    Loop iterations and calls are counted and time is not measured, so that an endless script stops at the same point on
    every machine.

    Raises:
        MemoryError: The script needs more memory than is available.
    """
    parsed_request = json.loads(request)
    name, source = parsed_request["name"], parsed_request["source"]
    log = _Log()
    try:
        if error_message := find_nesting_error(source):
            return _format_error(error_message)
        returned = _run_script(name, source, parsed_request["resourceList"], log.write)
    except (interpreter.StarlarkError, TypeError, ValueError) as error:
        if _MEMORY_ERROR_LINE in str(error).splitlines():
            raise MemoryError from error
        return _format_error(_format_reason(str(error), name))
    except (MemoryError, KeyboardInterrupt, SystemExit):
        raise
    except BaseException as error:
        # The interpreter, which is written in Rust, panics if a value exceeds 4 GiB. The class of this exception cannot
        # be imported. Therefore, compare its name.
        if type(error).__name__ != "PanicException":
            raise
        if "out of memory" in str(error):
            raise MemoryError from error
        return _format_error(f"{name}: the interpreter failed: {error}")
    # Check the items before the conversion to JSON, because the conversion changes all keys to strings.
    if error_message := find_items_error(returned):
        return _format_error(error_message)
    answer = {"items": returned["items"], "results": returned.get("results"), "log": log.text}
    try:
        return json.dumps(answer, skipkeys=True).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return _format_error(f"{name}: the script must return plain data: {error}")


def _format_error(message: str) -> bytes:
    return json.dumps({"error": message}).encode()


# If a module function such as `re.sub` raises MemoryError, the error report of the interpreter has this line. A script
# cannot produce this line: `fail("MemoryError: ")` gives "error: fail: MemoryError: ".
_MEMORY_ERROR_LINE = "error: MemoryError: "


class _Log:
    """The text that a script prints, up to a maximum length."""

    def __init__(self) -> None:
        self._lines: list[str] = []
        self._remaining_characters = _MAX_LOG_CHARACTERS

    def write(self, line: str) -> None:
        """Store a line. If the log becomes too long, store only the beginning of the line."""
        if self._remaining_characters > 0:
            self._lines.append(line[: self._remaining_characters])
            self._remaining_characters -= len(line) + 1

    @property
    def text(self) -> str:
        """The stored lines as one text."""
        return "\n".join(self._lines)


def _run_script(name: str, source: str, resources: dict[str, Any], log: Callable[[str], None]) -> Any:
    """Run the script on the resource list, and return the changed resource list."""
    module = interpreter.Module()
    module["_resource_list"] = resources
    module.add_callable("_print", log)
    polls = iter(range(_MAX_POLLS))
    options = interpreter.EvalOptions(
        check_cancelled=lambda: next(polls, None) is None, max_callstack_size=_MAX_CALL_DEPTH
    )
    loader = interpreter.FileLoader(_load_module)
    for script in (_parse_script("prelude", _PRELUDE), _parse_script(name, source)):
        interpreter.eval_with(options, module, script, _get_globals(), file_loader=loader)
    return module["_resource_list"]


@cached(1)
def _get_globals() -> interpreter.Globals:
    return create_starlark_globals()


@cached(_MAX_CACHED_SCRIPTS)
def _parse_script(name: str, source: str) -> interpreter.AstModule:
    return interpreter.parse(name, source, create_starlark_dialect())


def _format_reason(text: str, name: str) -> str:
    """Return the error report of the interpreter as one line, with the position in the script."""
    lines = text.splitlines()
    message = next((line.removeprefix("error: ") for line in lines if line.startswith("error: ")), text.strip())
    position = next((line.partition("--> ")[2] for line in lines if "--> " in line), "")
    if message == "Evaluation cancelled":
        message = f"the script takes more than {_MAX_POLLS * 1000:,} steps"
    return message if message.startswith("fail:") or not position else f"{position or name}: {message}"


def _load_module(name: str) -> interpreter.FrozenModule:
    # Import the modules here and not at the top, because the import is slow, and most scripts load no module.
    from reconciler.packages.functions.starlark_modules import load_starlark_module

    return load_starlark_module(name)
