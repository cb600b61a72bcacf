"""Building blocks for Kubernetes resources: lossless YAML, merges, schemas, selectors, names and findings.

This package contains no code for the API kinds of the controllers. Its functions do not use Git, the clock, files,
processes, threads or the log.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
