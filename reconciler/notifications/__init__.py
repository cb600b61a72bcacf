"""Notifications for people about the fleet: drafts to review, conflicts, blocked packages, and failing passes.

Each pass produces an observation of the fleet. A thread compares the observations, and sends messages to channels such
as Slack. This package does not decide about packages, and writes nothing to a Git repository.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
