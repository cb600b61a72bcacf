"""Updates of packages: the three-way merge of file trees, resources and Kptfiles. Conflicts are returned as values.

The merge of a single resource is in `krm.merge3`. Rendering does not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
