"""The console of a test fleet, without a socket and without threads."""

from __future__ import annotations

import httpx

from reconciler.server.application import create_app
from reconciler.server.console.context import ConsoleContext
from reconciler.server.console.people import LocalAuthenticator, Person
from reconciler.server.console.routes import create_console_routes
from reconciler.server.limits import ServerLimits
from reconciler.server.request_origin import build_origin_rules
from reconciler.service.fleet_view import FleetView, PassRecord
from reconciler.service.index_thread import IndexThread
from reconciler.service.state import ServiceState
from tests.support.asgi_client import request
from tests.support.world import World

ADA = Person("Ada Example", "ada@example.com")
_RULES = build_origin_rules("127.0.0.1:8080", (), "", ())


class ConsoleClient:
    """Sends requests to the console of a fleet.

    Attributes:
        world: The fleet.
        context: The data of the console. A test can replace it.
    """

    def __init__(self, world: World, context: ConsoleContext) -> None:
        self.world = world
        self.context = context
        routes = create_console_routes(lambda: self.context)
        self._app = create_app(routes, ServerLimits(), lambda: _RULES)

    def update(self) -> None:
        """Run a pass, and update the index."""
        observed = self.world.observe_pass()
        self.context.index_thread.build(observed)
        record = PassRecord(observed.completed_at, 1.5, "success")
        self.context.state.record_completed_pass(FleetView(1, 0.0, record, observed.config, len(observed.targets)))

    def get(self, path: str, **headers: str) -> httpx.Response:
        """Return the response to a GET request."""
        return request(self._app, path, **headers)


def open_console(world: World) -> ConsoleClient:
    """Return a client of the console of a fleet. The index is empty until the first update."""
    state = ServiceState()
    indexer = world.create_indexer()
    contents, packages = world.create_content_reader(indexer), world.create_package_reader(indexer)
    context = ConsoleContext(
        state, IndexThread(indexer), LocalAuthenticator(ADA), contents, packages, clock=lambda: float(world.now)
    )
    return ConsoleClient(world, context)
