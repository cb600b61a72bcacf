"""The HTTP server of the service. It receives webhooks.

A webhook only starts a pass. The content of a webhook has no effect on the result of the pass.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
