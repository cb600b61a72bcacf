"""Names and contents of draft branches and tags. Decisions about which packages are drafted do not belong here."""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
