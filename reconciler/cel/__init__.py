"""Evaluation of CEL expressions: deterministic, with limited cost, and compiled once.

Maps are iterated in key order, costs are counted in steps and bytes, and errors contain a position. Parser and regular
expressions are loaded on first use. Only this package imports the parser library.
"""

from reconciler.cel.budget import ExpressionBudget, ExpressionLimits
from reconciler.cel.environment import CelEnvironment, CelProgram, evaluate_string, load_parser
from reconciler.cel.errors import CODES, BudgetExceededError, ExpressionError
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.cel.values import EMPTY_OPTIONAL, OMIT, CelOptional, CelType, Uint

__all__ = [
    "CODES",
    "EMPTY_OPTIONAL",
    "OMIT",
    "BudgetExceededError",
    "CelEnvironment",
    "CelOptional",
    "CelProgram",
    "CelType",
    "Duration",
    "ExpressionBudget",
    "ExpressionError",
    "ExpressionLimits",
    "Timestamp",
    "Uint",
    "evaluate_string",
    "load_parser",
]
