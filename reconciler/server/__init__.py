"""The HTTP server of the service. It receives webhooks and answers health checks.

The server runs in its own thread. Handlers only read immutable values, and they do not run Git or render. A webhook
only starts a pass. The content of a webhook has no effect on the result of the pass.
"""

from typing import TYPE_CHECKING

from reconciler.lazy_modules import import_submodules_lazily

if not TYPE_CHECKING:
    __getattr__ = import_submodules_lazily(__name__)
