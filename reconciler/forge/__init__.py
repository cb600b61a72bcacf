"""Clients for the pull requests of GitHub, GitLab and Gitea. All clients implement the Protocol `Forge`.

`drivers.py` selects the client for a repository, and describes how to add a forge. The code that decides which pull
requests to open is in `reconciler.reconcile`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
