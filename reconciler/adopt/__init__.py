"""Import of existing fleets: reads YAML files as data, and returns config objects and the packages that they use.

This package starts no program and accesses no repository. `reconciler/bootstrap/adoption.py` renders the config
objects, and `comparison.py` compares the result with the existing content.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
