"""The fleet as the console, the read API and the report show it: targets, packages, changes for review, and findings.

The indexer of the service builds an index after each pass. Pages and API results read only this index. The report
builds its own index. Notifications use the same keys as the index to group drafts. This folder contains no HTML, and it
reads no Git repository.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
