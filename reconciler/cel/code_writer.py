"""Generation of Python functions from lines of source code.

The text of an expression never becomes Python code. The lines contain only names that this package chooses. All
generated functions are inside the function `create`, which receives the names and constants of the expression as
arguments.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from reconciler.cel.errors import EvaluationError
from reconciler.lazy_dataclasses import dataclass, field

GENERATED_FILE: Final = "<CEL expression>"
"""File name of the generated code in tracebacks."""

UNKNOWN_OFFSET: Final = -1
"""The offset of a line that has no position in the expression. Its errors get the offset of the calling line."""

MAX_INDENTATION: Final = 10
"""Indentation above which a nested block becomes a new function, because Python allows only 20 nested blocks."""

NOT_CONSTANT: Final = object()
"""The value of `Operand.constant` if the value is not known before the evaluation."""


@dataclass(frozen=True, slots=True)
class Operand:
    """A value in the generated code.

    Attributes:
        text: The name of the Python variable with the value.
        kind: The class of the value, if it is known before the evaluation. If it is `int`, the value has at most 64
            bits.
        constant: The value, if it is known before the evaluation.
    """

    text: str
    kind: type | None = None
    constant: Any = NOT_CONSTANT

    @property
    def is_constant(self) -> bool:
        """Whether the value is known before the evaluation."""
        return self.constant is not NOT_CONSTANT


@dataclass
class _FunctionCode:
    """The code of one generated function.

    Attributes:
        parameters: The parameters after `bindings` and `budget`.
        lines: For each line: its indentation, its text, and its offset in the expression.
        variables: Maps the name of each declared CEL variable that the function reads to a Python variable.
        loop_offset: Offset of the macro whose loop contains the line that is written next.
    """

    name: str
    parameters: tuple[str, ...]
    lines: list[tuple[int, str, int]] = field(default_factory=list)
    variables: dict[str, str] = field(default_factory=dict)
    indentation: int = 2
    loop_offset: int = UNKNOWN_OFFSET


class _Block:
    """Context manager that indents the lines that are written inside the `with` statement."""

    __slots__ = ("function", "line_count")

    def __init__(self, function: _FunctionCode) -> None:
        self.function = function
        self.line_count = len(function.lines)

    def __enter__(self) -> None:
        self.function.indentation += 1

    def __exit__(self, *error: object) -> None:
        if len(self.function.lines) == self.line_count:
            self.function.lines.append((self.function.indentation, "pass", UNKNOWN_OFFSET))
        self.function.indentation -= 1


@dataclass(frozen=True, slots=True)
class GeneratedCode:
    """Python code that evaluates an expression.

    Expressions that differ only in their names and constants have the same source.

    Attributes:
        source: Source of the function `create`. Its parameters are the constants and the offsets.
        constants: Values of the constants.
        offsets: For each line of the source: its offset in the expression, or `UNKNOWN_OFFSET`. Line numbers start with
            1.
    """

    source: str
    constants: tuple[Any, ...]
    offsets: tuple[int, ...]


class CodeWriter:
    """Writer for the Python functions that evaluate one expression.

    Each line of Python code is stored with an offset: the position of the evaluated part in the expression.
    `locate_error` converts the line number of an error to this offset. Therefore, the generated code needs no error
    handler for each operation.
    """

    def __init__(self) -> None:
        self._constants: dict[str, Any] = {}
        self._constant_names: dict[int, str] = {}
        self._finished: list[_FunctionCode] = []
        self._unfinished: list[_FunctionCode] = []
        self._local_count = 0

    @property
    def is_deep(self) -> bool:
        """Whether the next block should be in a new function, because too many blocks are nested."""
        return self._unfinished[-1].indentation > MAX_INDENTATION

    def add_constant(self, value: Any) -> Operand:
        """Return an operand for a constant."""
        return Operand(self.add_object(value), type(value), value)

    def add_object(self, value: Any) -> str:
        """Add `value` to the arguments of the function `create`. Return the name of its parameter."""
        name = self._constant_names.get(id(value))
        if name is None:
            name = self._constant_names[id(value)] = f"k{len(self._constants)}"
            self._constants[name] = value
        return name

    def add_local(self) -> str:
        """Return the name of a new local variable."""
        self._local_count += 1
        return f"v{self._local_count}"

    def read_variable(self, name: str) -> str:
        """Return the name of the Python variable with the value of a declared CEL variable."""
        variables = self._unfinished[-1].variables
        if name not in variables:
            variables[name] = self.add_local()
        return variables[name]

    def write(self, text: str, offset: int | None = None) -> None:
        """Write a line. `offset` is the offset of the operation. None means the offset of the surrounding macro."""
        function = self._unfinished[-1]
        function.lines.append((function.indentation, text, function.loop_offset if offset is None else offset))

    def assign(self, text: str, offset: int | None = None, kind: type | None = None) -> Operand:
        """Write the assignment of a Python expression to a new local variable, and return this variable."""
        local = self.add_local()
        self.write(f"{local} = {text}", offset)
        return Operand(local, kind)

    def block(self, header: str, offset: int | None = None) -> _Block:
        """Write a header, such as `try:`. The lines that are written inside the `with` statement are its block."""
        self.write(header, offset)
        return _Block(self._unfinished[-1])

    @contextmanager
    def iteration(self, offset: int) -> Iterator[None]:
        """Set the default offset to the offset of a macro, for lines that are written inside the `with` statement."""
        function = self._unfinished[-1]
        outer_offset, function.loop_offset = function.loop_offset, offset
        yield
        function.loop_offset = outer_offset

    @contextmanager
    def function(self, parameters: Iterable[str] = ()) -> Iterator[str]:
        """Start a new function for the lines that are written inside the `with` statement. Yield the function name."""
        function = _FunctionCode(f"f{len(self._finished) + len(self._unfinished)}", tuple(parameters))
        self._unfinished.append(function)
        yield function.name
        self._finished.append(self._unfinished.pop())

    def spend_steps(self, steps: int, offset: int | None = None) -> None:
        """Write code that subtracts steps from the budget."""
        self.write(f"budget.steps -= {steps}", offset)
        self.write("if budget.steps < 0: budget.raise_no_steps()", offset)

    def allocate(self, size: int | str, offset: int | None = None) -> None:
        """Write code that subtracts bytes from the budget."""
        self.write(f"budget.bytes -= {size}", offset)
        self.write("if budget.bytes < 0: budget.raise_no_bytes()", offset)

    def build(self, function: str) -> GeneratedCode:
        """Return the code of all functions. The generated function `create` returns the function with this name."""
        lines = [line for code in self._finished for line in _list_lines(code, self.add_object)]
        header = f"def create({', '.join((*self._constants, 'offsets'))}):"
        body = [f"{' ' * indentation}{text}" for indentation, text, _ in lines]
        return GeneratedCode(
            "\n".join((header, *body, f" return {function}")),
            tuple(self._constants.values()),
            (UNKNOWN_OFFSET, UNKNOWN_OFFSET, *(offset for _, _, offset in lines)),
        )


def _list_lines(function: _FunctionCode, add_object: Callable[[Any], str]) -> Iterator[tuple[int, str, int]]:
    yield 1, f"def {function.name}({', '.join(('bindings', 'budget', *function.parameters))}):", UNKNOWN_OFFSET
    for variable, local in function.variables.items():
        yield 2, f"{local} = bindings.get({add_object(variable)}, MISSING)", UNKNOWN_OFFSET
    yield from function.lines


def locate_error(error: EvaluationError, offsets: tuple[int, ...]) -> EvaluationError:
    """Set the offset of an error: the position of the failed operation in the expression. Return the error.

    Args:
        offsets: The offset of each line of the generated code. The traceback of the error contains some of these lines.
            The innermost of them with a known offset determines the result.
    """
    traceback = error.__traceback__ if error.offset < 0 else None
    while traceback is not None:
        if traceback.tb_frame.f_code.co_filename == GENERATED_FILE:
            offset = offsets[traceback.tb_lineno]
            # Do not stop here, because a later frame can have a more exact offset.
            error.offset = error.offset if offset == UNKNOWN_OFFSET else offset
        traceback = traceback.tb_next
    return error
