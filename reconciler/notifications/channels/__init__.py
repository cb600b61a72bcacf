"""The channels of notifications. Each module formats a message for one kind of channel, and sends it.

This package does not decide which messages a channel receives (`routes`, `tracker`), and does not retry (`delivery`).
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
