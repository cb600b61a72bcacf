"""The pages of the web console. A page reads only the index of the fleet, and immutable values of the service.

The folder `templates` contains the HTML, and `static` contains the style sheet and the scripts. Every page works
without scripts. Do not read repositories or start commands here: this belongs to `reconciler.inspect`. Roles and review
actions belong to `reconciler.review`, and filters that the API shares are in `filters.py`.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
