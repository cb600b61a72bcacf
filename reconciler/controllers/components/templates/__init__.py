"""Templates: data with CEL expressions in `${…}`, which are compiled once and rendered many times.

These modules do not depend on the config objects that contain templates, or on the order in which templates are
rendered.
"""

from reconciler.controllers.components.template_syntax import escape_template, format_cel_literal
from reconciler.controllers.components.templates.directives import (
    CompiledRule,
    TemplateCondition,
    TemplateLoop,
    compile_condition,
    compile_loop,
    compile_rule,
)
from reconciler.controllers.components.templates.nodes import ValueOrigin
from reconciler.controllers.components.templates.template import (
    ADDON_VARIABLES,
    COMPONENT_VARIABLES,
    PATCH_VARIABLES,
    RESERVED_VARIABLES,
    CompiledTemplate,
    TemplateScope,
    build_scope,
    build_shape,
    compile_template,
)

__all__ = [
    "ADDON_VARIABLES",
    "COMPONENT_VARIABLES",
    "PATCH_VARIABLES",
    "RESERVED_VARIABLES",
    "CompiledRule",
    "CompiledTemplate",
    "TemplateCondition",
    "TemplateLoop",
    "TemplateScope",
    "ValueOrigin",
    "build_scope",
    "build_shape",
    "compile_condition",
    "compile_loop",
    "compile_rule",
    "compile_template",
    "escape_template",
    "format_cel_literal",
]
