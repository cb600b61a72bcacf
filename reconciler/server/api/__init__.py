"""The API of the service below `/api/v1`, for reads and actions.

Its results have the same top-level fields as the output of commands with `-o json`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
