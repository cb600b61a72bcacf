"""The long-running service: wake-ups, delays between passes, signals and shutdown.

The package `reconciler.reconcile` contains a single pass. The package `reconciler.server` contains the HTTP server.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
