"""Evaluation of CEL expressions. An expression is compiled once, and has the same result and cost on each machine.

Map keys are iterated in sorted order. Costs are counted in steps and bytes, and errors contain a position. The parser
library and the RE2 library are imported at the first use, because these imports are slow.
"""

from reconciler.cel.budget import ExpressionBudget, ExpressionLimits
from reconciler.cel.check import FieldAccess, VariableReference
from reconciler.cel.environment import CelEnvironment, CelProgram, evaluate_string, load_parser
from reconciler.cel.errors import BudgetExceededError, CelCodes, ExpressionError
from reconciler.cel.timestamps import Duration, Timestamp
from reconciler.cel.values import EMPTY_OPTIONAL, OMIT, CelOptional, CelType, Uint

__all__ = [
    "EMPTY_OPTIONAL",
    "OMIT",
    "BudgetExceededError",
    "CelCodes",
    "CelEnvironment",
    "CelOptional",
    "CelProgram",
    "CelType",
    "Duration",
    "ExpressionBudget",
    "ExpressionError",
    "ExpressionLimits",
    "FieldAccess",
    "Timestamp",
    "Uint",
    "VariableReference",
    "evaluate_string",
    "load_parser",
]
