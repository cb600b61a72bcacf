"""Declarations of every kind that the reconciler reads, one pydantic model for each mapping of a manifest.

Reading, defaults, validation errors and JSON Schemas come from these models. Rules that need other objects, such as a
selector without a match, belong to the controllers.

Modules with models do not import `annotations` from `__future__`. Otherwise, pydantic compiles the annotations of a
class again for each of its subclasses, and the start of each command takes longer.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
