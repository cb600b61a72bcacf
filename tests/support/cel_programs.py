"""CEL programs that no static check has accepted."""

from __future__ import annotations

from collections.abc import Container

from reconciler.cel import CelProgram, ExpressionLimits
from reconciler.cel.check import NameResolver
from reconciler.cel.compile import CelCompiler
from reconciler.cel.library import FUNCTIONS, METHODS
from reconciler.cel.parser import parse_expression


def compile_without_check(
    text: str, variables: Container[str], limits: ExpressionLimits, container: str = ""
) -> CelProgram:
    """Compile an expression whose variables and functions can be unknown."""
    compiler = CelCompiler(NameResolver(variables, FUNCTIONS, container), FUNCTIONS, METHODS)
    code = compiler.compile(parse_expression(text))
    return CelProgram(text, frozenset(), frozenset(), (), frozenset(), limits, code)
