"""The fleet as the console, the read API and the report show it: targets, packages, changes for review, and findings.

The indexer of the service builds an index after each pass. Pages and API results read only the index, and the report
builds an index of its own. Notifications group drafts by the same keys of changes. This folder contains no HTML, and it
reads no Git repository.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
