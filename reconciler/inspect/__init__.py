"""Commands and console contents that only read repositories.

The commands are explain, why, verify, impact, validate, report and doctor. For the console, the package builds the
index of the fleet, and reads the contents of drafts and packages. It writes to no repository. Formats of results belong
to `reconciler.output`, review actions to `reconciler.review`, and pages to `reconciler.server`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
