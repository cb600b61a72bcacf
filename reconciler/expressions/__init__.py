"""CEL, the only importer of a CEL engine: compiled once, deterministic, bounded.

Maps are walked through in the order of their keys, costs are counted in steps and bytes, errors point into the text.
The parser and the regular expressions are loaded when the first expression needs them.
"""

from reconciler.expressions.budget import Budget, Limits
from reconciler.expressions.codes import CODES
from reconciler.expressions.environment import Environment, Program, evaluate_string, load_parser
from reconciler.expressions.errors import Exhausted, ExpressionError
from reconciler.expressions.timestamps import Duration, Timestamp
from reconciler.expressions.values import NONE, OMIT, Optional, Type, Uint

__all__ = [
    "CODES",
    "NONE",
    "OMIT",
    "Budget",
    "Duration",
    "Environment",
    "Exhausted",
    "ExpressionError",
    "Limits",
    "Optional",
    "Program",
    "Timestamp",
    "Type",
    "Uint",
    "evaluate_string",
    "load_parser",
]
