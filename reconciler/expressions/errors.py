"""What can go wrong in an expression: for the author an `ExpressionError`, inside the evaluator a `Fault`."""

from __future__ import annotations


class ExpressionError(ValueError):
    """An expression that cannot be compiled, or whose evaluation failed.

    `code` is the name of one of the codes in `codes`, `message` says what went wrong without the place, `line` and
    `column` count from 1 and point into `expression`, the whole text. `str()` gives one line, `pointed()` two.
    """

    def __init__(self, code: str, message: str, expression: str, offset: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = _printable(message)
        self.expression = expression
        self.line, self.column = _place(expression, offset)

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"

    def __reduce__(self) -> tuple[object, ...]:
        """Errors cross process borders: rebuild from the arguments, not from the message alone."""
        return type(self), (self.code, self.message, self.expression, self._offset())

    def pointed(self) -> str:
        """Return the line at fault and, below it, a caret under the place."""
        line = self.expression.split("\n")[self.line - 1]
        margin = "".join("\t" if character == "\t" else " " for character in line[: self.column - 1])
        return f"{line}\n{margin}^ {self.message}"

    def _offset(self) -> int:
        lines = self.expression.split("\n")[: self.line - 1]
        return sum(len(line) + 1 for line in lines) + self.column - 1


def _printable(text: str) -> str:
    """Return the text on one line: what is quoted in a message may hold any character."""
    if text.isprintable():
        return text
    return "".join(one if one.isprintable() else one.encode("unicode_escape").decode() for one in text)


def _place(text: str, offset: int) -> tuple[int, int]:
    before = text[: max(0, min(offset, len(text)))]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class Fault(Exception):  # noqa: N818  an error value of the language, not yet an error of anybody
    """An error while evaluating, without its text; `&&`, `||`, `all` and `exists` may absorb it.

    `at` is the offset in the expression, -1 until the node that noticed it says so.
    """

    def __init__(self, code: str, message: str, at: int = -1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.at = at

    def placed(self, at: int) -> Fault:
        """Return the same fault, placed at `at` unless an inner node has placed it already."""
        if self.at < 0:
            self.at = at
        return self


class Exhausted(Fault):
    """The budget is used up; nothing absorbs this one."""

    def __init__(self, message: str) -> None:
        super().__init__("CelBudget", message)
