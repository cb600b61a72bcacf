"""The console of a test fleet on a real HTTP server of this machine, for tests in a browser."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

from starlette.responses import PlainTextResponse
from starlette.types import ASGIApp, Receive, Scope, Send
from structlog.testing import capture_logs

from reconciler.krm.findings import Finding, SourceLocation
from reconciler.output.fleet.builder import build_fleet_index
from reconciler.output.fleet.model import TargetEntry
from reconciler.planning.lifecycle.open_drafts import BlockingReason
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from tests.support.console import ConsoleClient, open_console
from tests.support.fleet_index import create_row, create_target
from tests.support.policies import labelled_package, policy, replicas
from tests.support.world import World, catalog, config_map, injected_set, package, repository, variant

CLUSTERS = ("berlin", "lisbon", "porto")
REQUIRED_GATEWAY = config_map("endpoints", "required", api="none")
LEGACY = "apiVersion: networking.k8s.io/v1\nkind: Ingress\nmetadata:\n  name: legacy\n"
SERVICE = "apiVersion: v1\nkind: Service\nmetadata:\n  name: gateway\nspec:\n  ports:\n    - port: 80\n"
BROKEN_FILE, BROKEN_LINE = "sets/ingress.yaml", 15
TARGET_COUNT = 1_000
_REGIONS = ("eu-west", "us-east", "ap-south", "sa-east")


class ServedConsole:
    """The console of a fleet with its address.

    Attributes:
        client: The console without a browser.
        paths: The method and the path of each request, in order.
        unavailable_paths: The paths whose responses have the status 503.
    """

    def __init__(self, client: ConsoleClient) -> None:
        self.client = client
        self.paths: list[str] = []
        self.unavailable_paths: set[str] = set()
        self.url = ""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Record a request, and process it."""
        self.paths.append(f"{scope['method']} {scope['path']}")
        is_unavailable = scope["path"] in self.unavailable_paths
        app: ASGIApp = PlainTextResponse("", 503) if is_unavailable else self.client.app
        await app(scope, receive, send)

    def find_change(self, title: str) -> str:
        """Return the path of the change with this title."""
        return f"/changes/{self.client.find_change(title).key}"

    def replace_change(self) -> str:
        """Record that a change of this fleet has replaced an earlier change. Return the key of the earlier change."""
        index, key = self.client.context.index, "replaced-one"
        assert index is not None
        entry = index.by_target["berlin"]
        rows = tuple(
            replace(row, draft=replace(row.draft, change_key=key, title="update gateway v0 → v1"))
            if row.draft and row.package == "gateway" else row
            for row in entry.packages
        )  # fmt: skip
        earlier = build_fleet_index(0, 0, "config", [replace(entry, packages=rows)], ())
        self.client.context.archive.update(earlier)
        self.client.context.archive.update(index)
        return key

    def list_pages(self) -> dict[str, str]:
        """Return the path of one page of each type, by a name."""
        gateway, metrics = self.find_change("update gateway v1 → v2"), self.find_change("update metrics v1 → v2")
        index = self.client.context.index
        assert index is not None
        finding = self.client.get("/findings").text.partition('href="/findings/')[2].partition('"')[0]
        pages = {
            "fleet": "/", "changes": "/changes", "no-match": "/changes?q=nothing-like-this", "change": gateway,
            "conflict": f"{gateway}?target=lisbon", "split": f"{gateway}?view=split&noise=show", "list": f"{gateway}?view=list",
            "tree": "/targets/berlin/packages/metrics?tree=Deployment%2Fmetrics", "set-values": "/targets/berlin/packages/metrics",
            "rejected": metrics, "change-targets": f"{gateway}/targets", "gone": "/changes/0123456789ab", "past": f"/changes/{self.replace_change()}",
            "targets": "/targets", "matrix": "/targets?view=matrix", "invalid-selector": "/targets?labels=a+in+(",
            "target": "/targets/berlin", "waiting": "/targets/lisbon?view=waiting", "resources": "/targets/berlin?view=resources",
            "target-history": "/targets/berlin?view=history", "target-findings": "/targets/berlin?view=findings",
            "comparison": "/targets/berlin?compare=lisbon", "no-comparison": "/targets/berlin?compare=on",
            "compared-package": "/targets/berlin?compare=lisbon&package=gateway", "package": "/targets/berlin/packages/gateway",
            "history": "/targets/berlin/packages/gateway?view=history",
            "files": "/targets/berlin/packages/gateway?view=files", "fields": "/targets/berlin/packages/gateway?view=fields",
            "values": "/targets/berlin/packages/metrics?view=values", "rollouts": "/rollouts",
            "value": "/targets/berlin/packages/metrics?resource=Deployment%2F_cluster%2Fmetrics&pointer=%2Fspec%2Freplicas", "missing": "/targets/nowhere",
            "findings": "/findings", "finding": f"/findings/{finding}", "activity": "/activity",
            "search": "/search?q=gateway", "no-result": "/search?q=zzz", "system": "/system",
            "remotes": "/system/remotes", "settings": "/system/settings?q=git", "tokens": "/system/tokens",
            "label-columns": "/targets?show=region&tenant=none&owner=gateway", "invalid-time": "/changes?since=soon",
        }  # fmt: skip
        for name, verb in (("approval", "approve"), ("rejection", "reject")):
            created = self.client.post("/changes/confirm", {"verb": verb, "change": gateway.rpartition("/")[2]})
            pages[name] = created.headers["location"]
        job = self.client.post(f"{pages['rejection']}/submit", {"key": "page", "reason": "too early", "count": "3"})
        return {
            **pages, "effects": f"{gateway}/effects", "job": job.headers["location"], "no-confirmation": "/confirmations/1",
            "no-job": "/jobs/1", "no-search": "/searches/1",
        }  # fmt: skip


@contextmanager
def serve_console(client: ConsoleClient) -> Iterator[ServedConsole]:
    """Serve a console on a free port of this machine."""
    served = ServedConsole(client)
    # Pages hold their stream of events open, so the server must not wait for open requests.
    limits = ServerLimits(stop_seconds=0)
    with capture_logs(), HttpServer(served, limits) as server:
        server.listen("127.0.0.1:0")
        served.url = f"http://127.0.0.1:{server.port}"
        yield served


def create_updated_world(folder: Path) -> World:
    """Return a small published fleet with an open update of both packages, and a package that does not exist."""
    world = _create_published_world(folder)
    _release_updates(world)
    return world


def create_conflicting_world(folder: Path) -> World:
    """Return the same fleet with a local change of Lisbon that conflicts with the update."""
    world = _create_published_world(folder)
    world.edit("clusters/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")
    world.sync_until_unchanged()
    _release_updates(world)
    return world


def _create_published_world(folder: Path) -> World:
    world = World.create(folder)
    world.release("gateway", "v1", package("gateway", endpoints=REQUIRED_GATEWAY, legacy=LEGACY))
    world.release("metrics", "v1", labelled_package("metrics", "size"))
    world.write(
        {
            "catalog.yaml": catalog(),
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS},
            "gateway.yaml": injected_set("gateway", CLUSTERS),
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics"),
            "policies/size.yaml": policy("size", [replicas(5)]),
            **{f"regions/{region}.yaml": config_map(f"region-{region}", api="x") for region in ("north", "south")},
        }
    )
    world.sync()
    for cluster in CLUSTERS:
        world.merge(cluster, "squash")
    world.sync_until_unchanged()
    return world


def _release_updates(world: World) -> None:
    world.release(
        "gateway", "v2", package("gateway", 3, "1.1", endpoints=REQUIRED_GATEWAY, service=SERVICE), 1_200_000_000
    )
    world.release("metrics", "v2", labelled_package("metrics", "size", 4, "1.1"), 1_200_000_000)
    world.write(
        {
            "gateway.yaml": injected_set("gateway", CLUSTERS, "v2"),
            "metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2"),
            "broken.yaml": variant("broken", "berlin", "missing"),
        }
    )
    world.sync_until_unchanged()


def create_targets(count: int) -> Iterator[TargetEntry]:
    """Yield targets without repositories: one draft of one change each, and every fifth with a blocked package."""
    reason = (BlockingReason("CelEvaluationFailed", "no such key: zone"),)
    for number in range(count):
        name = f"edge-{number:04}"
        row = create_row(name, "settings", change="settings", risk="fields")
        second = create_row(name, "ingress")
        if number % 5 == 0:
            second = replace(second, state="blocked", reasons=reason)
        yield create_target(name, {"region": _REGIONS[number % 4]}, row, second)


def create_findings(count: int) -> Iterator[Finding]:
    """Yield the errors of these targets. They have one cause."""
    for number in range(0, count, 5):
        location = SourceLocation(BROKEN_FILE, BROKEN_LINE, package=f"edge-{number:04}/ingress")
        yield Finding("CelEvaluationFailed", "no such key: zone", location)


def add_targets(
    client: ConsoleClient,
    targets: Iterable[TargetEntry],
    findings: Iterable[Finding],
    finding_tenants: Mapping[str, str] | None = None,
) -> None:
    """Add targets and findings to the index of a console."""
    index = client.context.index
    assert index is not None
    client.context.index_thread.index = build_fleet_index(
        index.number + 1, index.completed_at, index.config, (*index.targets, *targets),
        (*index.findings, *findings), finding_tenants=finding_tenants,
    )  # fmt: skip


def open_updated_console(world: World, extra_targets: int = 0) -> ConsoleClient:
    """Return the console of a small fleet, with more targets that have no repositories."""
    client = open_console(world)
    client.update()
    if extra_targets:
        add_targets(client, create_targets(extra_targets), create_findings(extra_targets))
    return client
