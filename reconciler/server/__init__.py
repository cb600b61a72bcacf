"""The HTTP server of the service: health checks, metrics, webhooks, the API and the console.

The server runs in its own thread. A webhook only starts a pass. The content of a webhook has no effect on the result
of the pass.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
