"""Controllers. Each controller converts one family of API kinds into package variants.

All controllers share the modules in this folder, such as result types, validation, deletion guards and caches. A
controller does not import another controller. Planning depends only on the module `results`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
