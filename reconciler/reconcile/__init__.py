"""One reconcile pass: fetch, snapshot, plan, commit, push, pull requests and status.

The loop around passes is in `reconciler.service`. Decisions about packages are in `reconciler.planning`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
