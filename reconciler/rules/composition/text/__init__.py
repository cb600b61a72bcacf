"""Templates: data with CEL in `${…}`, compiled once and rendered many times (openchoreo 5, 6.1, 6.2).

What kinds of objects have templates, and in which order they are rendered, is not known here.
"""

from reconciler.rules.composition.text.condition import Condition, compile_condition
from reconciler.rules.composition.text.literals import as_template, literal
from reconciler.rules.composition.text.loop import Loop, compile_loop
from reconciler.rules.composition.text.nodes import Origin
from reconciler.rules.composition.text.rule import CompiledRule, compile_rule
from reconciler.rules.composition.text.scope import ADDON, BASE, PATCH, RESERVED, Scope, declare, shape_of
from reconciler.rules.composition.text.template import Template, compile_template

__all__ = [
    "ADDON",
    "BASE",
    "PATCH",
    "RESERVED",
    "CompiledRule",
    "Condition",
    "Loop",
    "Origin",
    "Scope",
    "Template",
    "as_template",
    "compile_condition",
    "compile_loop",
    "compile_rule",
    "compile_template",
    "declare",
    "literal",
    "shape_of",
]
