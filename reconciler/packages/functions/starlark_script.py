"""Evaluate a Starlark script. Input and output are one JSON text each, so that any process can evaluate a script.

A script process imports this module when it starts. This module imports `starlark_modules` only when a script loads a
module.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
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

def _select_changed(returned, texts):
    items = returned["items"] if type(returned) == "dict" and type(returned.get("items")) == "list" else []
    if not items or any([type(item) != "dict" for item in items]):
        return returned, None

    originals = [json.decode(text) for text in texts]
    count = len(originals)
    order = [i if i < count and item == originals[i] else None for i, item in enumerate(items)]

    selected = dict(returned)
    selected["items"] = [item for i, item in enumerate(items) if order[i] == None]
    return selected, order
"""
_SELECTION = "_select_changed(_resource_list, _texts)"
# The function json.decode of the interpreter reads an integer of 19 or more digits as a float.
_LONG_NUMBER = re.compile("[0-9]{19}")


def evaluate_script(request: bytes) -> bytes:
    """Evaluate the script in a JSON request. Return the changed items and the log, or an error, as JSON.

    The answer omits unchanged items, and `restore_items` adds these items again. This is faster, because the conversion
    of an item to Python takes longer than a comparison in the interpreter.

    Loop iterations and calls are counted and time is not measured, so that an endless script stops at the same point on
    every machine.

    Raises:
        MemoryError: The script needs more memory than is available.
    """
    parsed_request = json.loads(request)
    name, source, resources = parsed_request["name"], parsed_request["source"], parsed_request["resourceList"]
    log = _Log()
    try:
        if error_message := find_nesting_error(source):
            return _format_error(error_message)
        texts = [json.dumps(item) for item in resources["items"]]
        returned, order = _run_script(name, source, resources, texts, log.write)
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
        text = json.dumps(answer, skipkeys=True)
        return (text if order is None else _add_order(text, order, texts)).encode()
    except (TypeError, ValueError, RecursionError) as error:
        return _format_error(f"{name}: the script must return plain data: {error}")


def _add_order(answer: str, order: Sequence[int | None], texts: Sequence[str]) -> str:
    """Add the fields `order` and `size` to an answer that omits unchanged items.

    `order` contains the original index of each omitted item, or None for an item in the answer. `size` is the size that
    the answer would have with all items.
    """
    omitted = [len(texts[index]) for index in order if index is not None]
    separators = len(omitted) - (len(omitted) == len(order))
    size = len(answer) + sum(omitted) + len(", ") * separators
    return f'{answer[:-1]}, "order": {json.dumps(order)}, "size": {size}}}'


def restore_items(answer: dict[str, Any], sent_items: Sequence[Any]) -> dict[str, Any]:
    """Add the items that a script omitted in its answer, because it did not change them. Return the complete answer.

    `sent_items` are the items in the request.
    """
    if "order" not in answer:
        return answer
    changed = iter(answer["items"])
    return {**answer, "items": [next(changed) if index is None else sent_items[index] for index in answer["order"]]}


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


def _run_script(
    name: str, source: str, resources: Mapping[str, Any], texts: Sequence[str], log: Callable[[str], None]
) -> tuple[Any, list[int | None] | None]:
    """Run the script on the resource list.

    Returns:
        Two values. The first value is the new resource list without unchanged items. The second value has one entry for
        each item of the complete new list: the old index of an unchanged item, or None for any other item. If the first
        value contains all items, the second value is None.
    """
    module = interpreter.Module()
    module["_resource_list"] = resources
    module.add_callable("_print", log)
    options, loader = _create_options(), interpreter.FileLoader(_load_module)
    for script in (_parse_script("prelude", _PRELUDE), _parse_script(name, source)):
        interpreter.eval_with(options, module, script, _get_globals(), file_loader=loader)
    if any(map(_LONG_NUMBER.search, texts)):
        return module["_resource_list"], None
    module["_texts"] = [*texts]
    selection = _parse_script("selection", _SELECTION)
    selected: Any
    try:
        selected = interpreter.eval_with(_create_options(), module, selection, _get_globals()).value
    except (interpreter.StarlarkError, TypeError, ValueError):
        # The script returned an invalid value. Return all items, so that their later conversion reports this value. Do
        # not report the caught error, because it refers to a line of `_SELECTION` and not to a line of the script.
        return module["_resource_list"], None
    return selected[0], selected[1]


def _create_options() -> interpreter.EvalOptions:
    polls = iter(range(_MAX_POLLS))
    return interpreter.EvalOptions(
        check_cancelled=lambda: next(polls, None) is None, max_callstack_size=_MAX_CALL_DEPTH
    )


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
