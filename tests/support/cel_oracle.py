"""The C++ reference engine for CEL in a separate process, because some expressions crash it."""

from __future__ import annotations

import math
from concurrent.futures import ProcessPoolExecutor
from concurrent.futures.process import BrokenProcessPool
from datetime import UTC, datetime, timedelta
from functools import cache
from multiprocessing import get_context
from typing import Any

from reconciler.cel import Duration, Timestamp

EXTENSIONS = "name: all\nextensions:\n" + "".join(
    f"- name: {name}\n" for name in ("math", "strings", "lists", "sets", "optional", "bindings", "encoders")
)
BINDINGS = {"x": {"a": 1, "s": "text", "l": [3, 1, 2], "m": {"b": True}, "d": 2.5, "n": None}}
FAULT = "a fault"
"""Stands for an error in place of a value."""
NO_ANSWER = "no answer"
"""Stands for a value that the engine's Python binding cannot return, or for an engine that crashed."""
_ANSWER_SECONDS = 60


class ReferenceEngine:
    """Evaluates expressions in a worker process, and starts a new process after a crash."""

    def __init__(self) -> None:
        self._pool = self._start()

    def evaluate(self, text: str) -> Any:
        """Return the value with its type, FAULT or NO_ANSWER."""
        try:
            return self._pool.submit(_evaluate, text).result(_ANSWER_SECONDS)
        except BrokenProcessPool:
            self._pool = self._start()
            return NO_ANSWER

    def close(self) -> None:
        """Stop the worker."""
        self._pool.shutdown()

    @staticmethod
    def _start() -> ProcessPoolExecutor:
        return ProcessPoolExecutor(1, mp_context=get_context("spawn"))


def _evaluate(text: str) -> Any:
    try:
        value = _engine().compile(text, disable_check=True).eval(data=BINDINGS)
    except RuntimeError:
        return FAULT
    try:
        plain = value.plain_value()
    except (TypeError, SystemError):
        return NO_ANSWER  # The value is an optional.
    return FAULT if str(value.type()) == "ERROR" else to_comparable(plain)


@cache
def _engine() -> Any:
    from cel_expr_python import cel

    return cel.NewEnv(config=cel.NewEnvConfigFromYaml(EXTENSIONS), variables={"x": cel.Type.DYN})


def to_comparable(value: Any) -> Any:
    """Return the value with its type, in a form that both engines share."""
    match value:
        case Timestamp(nanoseconds=nanoseconds):
            return datetime(1970, 1, 1, tzinfo=UTC) + timedelta(microseconds=nanoseconds // 1000)
        case Duration(nanoseconds=nanoseconds):
            return timedelta(microseconds=nanoseconds // 1000)
        case list():
            return [to_comparable(element) for element in value]
        case dict():
            return {key: to_comparable(element) for key, element in value.items()}
        case bytes() | bytearray():
            return bytes(value)
        case float() if math.isnan(value):
            return "NaN"
        case bool() | float() | str() | None:
            return type(value), value
        case int():
            return int(value)
    return value
