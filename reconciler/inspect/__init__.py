"""The commands that only read repositories: explain, why, verify, impact, validate, report and doctor.

This package computes the results and writes to no repository. The package `reconciler.output` formats the results.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
