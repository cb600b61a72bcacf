"""The codes of expressions: what can be wrong with the text of one, and with its evaluation (openchoreo 5.5)."""

from __future__ import annotations

from reconciler.krm.findings import Code, Scope, Severity

CODES = (
    CEL_ARGUMENT := Code(
        "CelArgument",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, an argument has the right type and a wrong value.",
    ),
    CEL_ARITHMETIC := Code(
        "CelArithmetic",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, a division by zero, or a number outside of its type's range.",
    ),
    CEL_ARROW_FUNCTION := Code(
        "CelArrowFunction",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the text has an arrow function, which CEL has not.",
    ),
    CEL_BUDGET := Code(
        "CelBudget",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the evaluation needs more steps or bytes than allowed.",
    ),
    CEL_CONVERSION := Code(
        "CelConversion", Severity.ERROR, Scope.OBJECT, "In an expression, a value cannot be converted."
    ),
    CEL_DUPLICATE_KEY := Code(
        "CelDuplicateKey", Severity.ERROR, Scope.OBJECT, "In an expression, a map would have a key twice."
    ),
    CEL_INDEX := Code(
        "CelIndex", Severity.ERROR, Scope.OBJECT, "In an expression, an index lies outside of its list or string."
    ),
    CEL_NESTING := Code(
        "CelNesting",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, comprehensions stand deeper in one another than allowed.",
    ),
    CEL_NO_OVERLOAD := Code(
        "CelNoOverload",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, an operator or function does not take values of these types.",
    ),
    CEL_NO_SUCH_KEY := Code("CelNoSuchKey", Severity.ERROR, Scope.OBJECT, "In an expression, a map has no such key."),
    CEL_NONE := Code(
        "CelNone", Severity.ERROR, Scope.OBJECT, "In an expression, the value of an empty optional was asked for."
    ),
    CEL_NOT_STRING := Code(
        "CelNotString", Severity.ERROR, Scope.OBJECT, "In an expression, the result must be a string and is not."
    ),
    CEL_REGEX := Code(
        "CelRegex", Severity.ERROR, Scope.OBJECT, "In an expression, a pattern is not an RE2 regular expression."
    ),
    CEL_SYNTAX := Code("CelSyntax", Severity.ERROR, Scope.OBJECT, "In an expression, the text is not CEL."),
    CEL_TOO_DEEP := Code(
        "CelTooDeep",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the expression, or a value it handles, is nested too deeply.",
    ),
    CEL_TOO_LONG := Code(
        "CelTooLong", Severity.ERROR, Scope.OBJECT, "In an expression, the text has more characters than allowed."
    ),
    CEL_UNDECLARED := Code(
        "CelUndeclared",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the expression names a variable that does not exist here.",
    ),
    CEL_UNDEFINED_FIELD := Code(
        "CelUndefinedField",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the expression reads a field that the declared shape does not have.",
    ),
    CEL_UNKNOWN_FUNCTION := Code(
        "CelUnknownFunction",
        Severity.ERROR,
        Scope.OBJECT,
        "In an expression, the expression calls a function that does not exist, or with too many or few arguments.",
    ),
)
