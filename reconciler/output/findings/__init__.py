"""Formats findings as text, JSON, SARIF and GitLab Code Quality reports.

The module `krm/findings.py` defines findings, with codes and locations. All other packages create findings.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
