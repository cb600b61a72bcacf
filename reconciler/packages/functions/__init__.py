"""Built-in KRM functions, which are selected by image name and version, and the types that all functions use.

A module with functions is named after its subject. For example, `setters` contains `apply-setters` and
`create-setters`. To add a function, add it to the table in `builtin.py`. Code that runs functions in other processes or
containers does not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
