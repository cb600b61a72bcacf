"""The command line, with one module per command.

The commands parse arguments, build services, call the other Python packages, and print the result. Code for
reconciling, reviewing and rendering is not in this package.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
