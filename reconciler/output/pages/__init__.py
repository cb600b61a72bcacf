"""Templates, styles and filters that the pages of the console and the HTML report share.

The folder contains no page. The console adds its own templates, and `output/report` adds those of the report.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
