"""The composition root: create the services for Git, files and the network from the settings, and connect them.

All other packages receive these services as arguments. Decisions about packages and targets do not belong here.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
