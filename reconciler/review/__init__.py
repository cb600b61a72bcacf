"""Review commands: list, show, propose, approve and reject drafts.

`reconciler.planning.lifecycle` checks whether an action is possible. `reconciler.reconcile` contains the passes.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
