"""Telemetry of the process: the log, metrics and traces.

Other packages import this package to report what happens. It contains no code of a pass, and it writes nothing to Git.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
