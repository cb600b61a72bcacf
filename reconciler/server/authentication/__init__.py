"""The identification of people and programs that send requests: tokens, trusted proxies, OpenID Connect, sessions.

This package contains no rules for permissions, and no pages.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
