"""Errors of CEL expressions, and the finding codes of these errors."""

from __future__ import annotations

from reconciler.krm.findings import CodeTable, error


class CelCodes(CodeTable):
    """Finding codes of errors in CEL expressions."""

    CEL_ARGUMENT = error("An argument in an expression has an invalid value.")
    CEL_ARITHMETIC = error("An expression divides by zero, or a number is outside of the range of its type.")
    CEL_ARROW_FUNCTION = error("An expression contains an arrow function, which CEL does not support.")
    CEL_BUDGET = error("The evaluation of an expression needs more steps or bytes than allowed.")
    CEL_CONVERSION = error("A value in an expression cannot be converted.")
    CEL_DUPLICATE_KEY = error("A map in an expression contains a key twice.")
    CEL_INDEX = error("An index in an expression is outside of the list or string.")
    CEL_NESTING = error("Comprehensions in an expression are nested more deeply than allowed.")
    CEL_NONE = error("An expression reads the value of an empty optional.")
    CEL_NOT_STRING = error("The result of an expression must be a string, but has another type.")
    CEL_NO_OVERLOAD = error("An operator or function in an expression does not accept values of these types.")
    CEL_NO_SUCH_KEY = error("An expression reads a map key that does not exist.")
    CEL_REGEX = error("A pattern in an expression is not an RE2 regular expression.")
    CEL_SYNTAX = error("The text of an expression is not CEL.")
    CEL_TOO_DEEP = error("An expression, or a value that it uses, is nested too deeply.")
    CEL_TOO_LONG = error("An expression has more characters than allowed.")
    CEL_UNDECLARED = error("An expression uses a variable that is not declared.")
    CEL_UNDEFINED_FIELD = error("An expression reads a field that is not declared.")
    CEL_UNKNOWN_FUNCTION = error(
        "An expression calls a function that does not exist, or calls a function with a wrong number of arguments."
    )


class ExpressionError(ValueError):
    """An expression that cannot be compiled or evaluated.

    Attributes:
        code: Name of a finding code in `CelCodes`.
        message: The message without the position.
        expression: The whole text of the expression.
        line: Line number of the error in the expression, from 1.
        column: Column number of the error in the expression, from 1.
    """

    def __init__(self, code: str, message: str, expression: str, offset: int) -> None:
        super().__init__(message)
        self.code = code
        self.message = _escape_unprintable(message)
        self.expression = expression
        self.line, self.column = _find_line_and_column(expression, offset)

    def __str__(self) -> str:
        return f"{self.message} (line {self.line}, column {self.column})"

    def __reduce__(self) -> tuple[object, ...]:
        """Return the constructor and its arguments for pickle, so that the error can be sent to another process."""
        return type(self), (self.code, self.message, self.expression, self._find_offset())

    def _find_offset(self) -> int:
        lines = self.expression.split("\n")[: self.line - 1]
        return sum(len(line) + 1 for line in lines) + self.column - 1


def _escape_unprintable(text: str) -> str:
    """Replace unprintable characters by escape sequences, so that a message has only one line."""
    if text.isprintable():
        return text
    return "".join(
        character if character.isprintable() else character.encode("unicode_escape").decode() for character in text
    )


def _find_line_and_column(text: str, offset: int) -> tuple[int, int]:
    before = text[: max(0, min(offset, len(text)))]
    return before.count("\n") + 1, len(before) - before.rfind("\n")


class EvaluationError(Exception):
    """An error in an expression.

    If the error occurs during evaluation, the operators `&&`, `||`, `all` and `exists` can ignore it.

    `offset` is the offset of the error in the expression. It is -1 if the offset is not known yet.
    """

    def __init__(self, code: str, message: str, offset: int = -1) -> None:
        super().__init__(message)
        self.code = code
        self.message = message
        self.offset = offset

    def with_offset(self, offset: int) -> EvaluationError:
        """Set the offset if it is not known yet. Return the same error."""
        if self.offset < 0:
            self.offset = offset
        return self


class BudgetExceededError(EvaluationError):
    """The evaluation needs more steps or bytes than its budget allows. No operator ignores this error."""

    def __init__(self, message: str) -> None:
        super().__init__("CelBudget", message)
