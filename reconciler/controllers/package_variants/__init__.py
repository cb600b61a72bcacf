"""Controller of PackageVariants, PackageVariantSets and PackageRevisionSets (`config.porch.kpt.dev`, Porch v1.5).

The controller resolves upstreams, expands sets and creates the mutation steps of each package variant. The renderer
runs the steps later.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
