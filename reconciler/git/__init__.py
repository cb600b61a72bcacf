"""Git access: mirrors, bulk reads and writes of Git objects, atomic pushes, and plain folders on disk.

Only this package imports GitPython and starts git processes. The mirrors are bare repositories, so that no code here
uses a work tree, a HEAD or an index.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
