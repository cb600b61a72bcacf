"""All executors produce the same refs, and a lost worker only costs time."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

import pytest
from structlog.testing import capture_logs

import reconciler.bootstrap.pass_services as parts
from reconciler.bootstrap.renderer_factory import SettingsRendererFactory, build_executor
from reconciler.executors.dask_cluster import DaskExecutor
from reconciler.executors.executor import (
    Executor,
    ExecutorUnusableError,
    Job,
    PendingRenders,
    RenderContext,
    RendererFactory,
)
from reconciler.executors.processes import ProcessExecutor
from reconciler.reconcile import render_batches as ahead
from reconciler.settings import Settings
from tests.scenarios.test_render_helm_chart import package as build_chart_package
from tests.support.charts import FakeHelm
from tests.support.failing_renderers import EndlessRenderer, KillingRenderer, RaisingRenderer, UnpicklableFactory
from tests.support.world import World, package, small_world, variant

Make = Callable[[RendererFactory], Executor]


def build_process_executor(factory: RendererFactory) -> Executor:
    return ProcessExecutor(2, factory, min_jobs=1)


@pytest.fixture(scope="module")
def scheduler() -> Iterator[str]:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    dask = pytest.importorskip("dask")
    with (
        # A low limit reports a job that always ends its worker sooner.
        dask.config.set({"distributed.scheduler.allowed-failures": 1}),
        distributed.LocalCluster(
            n_workers=2,
            threads_per_worker=1,
            processes=True,
            dashboard_address="127.0.0.1:0",
            host="127.0.0.1",
            silence_logs=50,
        ) as cluster,
    ):
        yield cluster.scheduler_address


@pytest.fixture(params=["processes", pytest.param("dask", marks=pytest.mark.slow)])
def make(request: pytest.FixtureRequest) -> Make:
    if request.param == "processes":
        return build_process_executor
    address = request.getfixturevalue("scheduler")
    # The nanny restarts a worker that ends, which takes long on a busy machine. The sum of all waits of one
    # test must stay below the time limit of tests.
    return lambda factory: Eager(address, factory, timeout_seconds=60)


class Eager(DaskExecutor):
    """Dask executor that distributes even a single render."""

    def should_distribute(self, jobs: int) -> bool:
        return jobs > 0


class Refusing:
    """Accept batches of at least `worth` renders, but fail to start them."""

    def __init__(self, worth: int = 1) -> None:
        self.least = worth
        self.batch_sizes: list[int] = []

    def should_distribute(self, jobs: int) -> bool:
        return jobs >= self.least

    @contextmanager
    def open_session(self, orders: RenderContext) -> Iterator[Refusing]:
        yield self

    def start(self, jobs: Sequence[Job]) -> PendingRenders:
        self.batch_sizes.append(len(jobs))
        raise ExecutorUnusableError("no job starts here")


def build_factory(world: World) -> SettingsRendererFactory:
    return SettingsRendererFactory(Settings(merge=world.read_settings().merge).model_dump_json(), "")


def use(monkeypatch: pytest.MonkeyPatch, executor: Executor | None) -> None:
    monkeypatch.setattr(parts, "build_executor", lambda settings, search_path: executor)


def run_scenario(world: World) -> list[Mapping[str, str]]:
    """Run first drafts, local changes on both branches, and an update. Return the refs after each pass."""
    values = [world.sync().after]
    world.merge("berlin", "squash")
    world.commit("clusters/berlin", {"metrics/notes.md": "checked\n"})
    world.commit("drafts/lisbon", {"gateway/own.md": "mine\n"})
    values.append(world.sync().after)
    world.release("metrics", "v2", package("metrics", image="2.0"))
    world.write({"metrics.yaml": variant("metrics-berlin", "berlin", "metrics", "v2")})
    values += [world.sync().after, world.sync_until_unchanged().after]
    return values


@pytest.mark.slow
def test_every_executor_leaves_the_same_refs(make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    place = tmp_path / "world"
    use(monkeypatch, None)
    expected = run_scenario(small_world(place))
    place.rename(tmp_path / "aside")
    world = small_world(place)

    use(monkeypatch, make(build_factory(world)))

    assert run_scenario(world) == expected


def test_a_worker_that_is_lost_costs_a_retry_and_nothing_else(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, marks = small_world(tmp_path / "world"), tmp_path / "marks"
    marks.mkdir()
    use(monkeypatch, None)
    expected = world.plan()
    use(monkeypatch, make(KillingRenderer(build_factory(world), "berlin/gateway", str(marks), once=True)))

    after = world.sync()

    assert [*marks.iterdir()], "no worker has ended"
    assert after.outcomes == expected.outcomes
    assert world.sync().is_unchanged


@pytest.mark.slow
def test_a_render_that_ends_every_worker_holds_up_no_other(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, marks = small_world(tmp_path / "world"), tmp_path / "marks"
    marks.mkdir()
    use(monkeypatch, make(KillingRenderer(build_factory(world), "berlin/gateway", str(marks), once=False)))

    with capture_logs() as events:
        after = world.sync()

    # If workers restart too slowly for the limit, this process renders the package, and the log contains the reason.
    is_too_slow = any("within 60 seconds" in event.get("why", "") for event in events)
    assert after.outcomes["berlin/gateway"] == ("draft" if is_too_slow else "FunctionInterrupted")
    assert after.outcomes["berlin/metrics"] == "draft"
    assert after.outcomes["lisbon/gateway"] == "draft"
    use(monkeypatch, None)
    assert world.sync().outcomes["berlin/gateway"] == "draft"


@pytest.mark.emits("executor_failed")
def test_packages_of_a_worker_that_does_not_answer_are_rendered_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world, marks = small_world(tmp_path / "world"), tmp_path / "marks"
    marks.mkdir()
    use(monkeypatch, None)
    expected = world.plan()
    endless = EndlessRenderer(build_factory(world), "berlin/gateway", str(marks), once=False)
    use(monkeypatch, ProcessExecutor(2, endless, min_jobs=1, timeout_seconds=1))

    with capture_logs() as events:
        after = world.sync()

    assert after.outcomes == expected.outcomes
    (event,) = (event for event in events if event["event"] == "executor_failed")
    assert "within 1 seconds (setting `rendering.timeout_seconds`)" in event["message"]
    worker = int(next(marks.iterdir()).name)
    assert not Path(f"/proc/{worker}").exists() or "Z" in Path(f"/proc/{worker}/stat").read_text().split()[2]


@pytest.mark.emits("worker_render_refused")
def test_package_of_a_worker_with_another_helm_is_rendered_here(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = create_chart_world(tmp_path / "world", FakeHelm(tmp_path / "here"))
    worker_helm = FakeHelm(tmp_path / "worker")
    worker_helm.behave(output=CHART_OUTPUT.replace("ClusterIP", "NodePort"))
    use(monkeypatch, make(build_chart_factory(world, worker_helm)))

    with capture_logs() as events:
        world.sync()

    assert len(worker_helm.calls()) == 1
    assert "type: ClusterIP" in world.text("drafts/berlin", "shop/service_web.yaml")
    (event,) = (event for event in events if event["event"] == "worker_render_refused")
    assert event["package"] == "berlin/shop"
    assert event["expected"] != event["actual"]
    assert "render-helm-chart" in event["function"]
    assert world.sync_until_unchanged().report.render_count == 0


def test_package_of_a_worker_with_the_same_helm_is_used(
    make: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    helm = FakeHelm(tmp_path / "here")
    world = create_chart_world(tmp_path / "world", helm)
    use(monkeypatch, make(build_chart_factory(world, helm)))

    with capture_logs() as events:
        result = world.sync()

    assert result.outcomes["berlin/shop"] == "draft"
    assert len(helm.calls()) == 1
    assert not [event for event in events if event["event"] == "worker_render_refused"]


CHART_OUTPUT = (
    "---\n# Source: web/templates/service.yaml\n"
    "apiVersion: v1\nkind: Service\nmetadata: {name: web}\nspec: {type: ClusterIP}\n"
)


def create_chart_world(folder: Path, helm: FakeHelm) -> World:
    """Create a world with a package whose function renders a chart."""
    helm.behave(output=CHART_OUTPUT)
    world = small_world(folder, sources={"helm": {"program": str(helm.path)}})
    world.release("shop", "v1", build_chart_package())
    world.write({"shop.yaml": variant("shop", "berlin", "shop")})
    return world


def build_chart_factory(world: World, helm: FakeHelm) -> SettingsRendererFactory:
    """Return a factory whose workers use another program and another cache than the pass."""
    sources = {"helm": {"program": str(helm.path)}}
    cache = str(world.folder / "worker-cache")
    settings = Settings.model_validate({"merge": world.read_settings().merge, "sources": sources, "cache": cache})
    return SettingsRendererFactory(settings.model_dump_json(), "")


def test_packages_for_a_cluster_without_workers_are_rendered_here(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    distributed = pytest.importorskip("distributed", reason="the extra `dask` is not installed")
    world = small_world(tmp_path / "world")
    use(monkeypatch, None)
    expected = world.plan()
    with distributed.LocalCluster(
        n_workers=0, processes=True, dashboard_address="127.0.0.1:0", host="127.0.0.1", silence_logs=50
    ) as cluster:
        use(monkeypatch, Eager(cluster.scheduler_address, build_factory(world), timeout_seconds=0.5))

        after = world.sync()

    assert after.outcomes == expected.outcomes


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("error", [MemoryError, RecursionError, ValueError, OSError])
@pytest.mark.emits("internal_error")
def test_an_unexpected_exception_in_a_worker_blocks_one_package(
    error: type[Exception], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    world = small_world(tmp_path / "world")
    use(monkeypatch, ProcessExecutor(2, RaisingRenderer(build_factory(world), "berlin/gateway", error), min_jobs=1))

    after = world.sync()

    assert after.outcomes["berlin/gateway"] == "InternalError"
    assert after.outcomes["berlin/metrics"] == "draft"
    assert after.outcomes["lisbon/gateway"] == "draft"
    (finding,) = (finding for finding in after.findings if finding.code == "InternalError")
    assert finding.failure
    assert "raise self.error" in finding.failure.traceback
    use(monkeypatch, None)
    assert world.sync().outcomes["berlin/gateway"] == "draft"


SERVICE = """
import sys
from pathlib import Path
from reconciler.executors.processes import ProcessExecutor
import reconciler.bootstrap.pass_services as services
from tests.executors.test_executors import build_factory
from tests.support.failing_renderers import EndlessRenderer
from tests.support.world import small_world

world = small_world(Path(sys.argv[1]))
executor = ProcessExecutor(
    2, EndlessRenderer(build_factory(world), "berlin/gateway", sys.argv[2], once=False), min_jobs=1
)
services.build_executor = lambda settings, search_path: executor
world.sync()
"""


@pytest.mark.slow
def test_no_worker_outlives_a_service_that_is_killed(tmp_path: Path) -> None:
    marks = tmp_path / "marks"
    marks.mkdir()
    command = [sys.executable, "-c", SERVICE, str(tmp_path / "world"), str(marks)]
    service = subprocess.Popen(command, cwd=Path(__file__).parents[2])
    while not (paths := [*marks.iterdir()]):
        assert service.poll() is None
        time.sleep(0.05)

    service.kill()
    service.wait()

    worker = int(paths[0].name)
    for _ in range(600):
        if not is_there(worker):
            return
        time.sleep(0.05)
    os.kill(worker, signal.SIGKILL)
    pytest.fail("a worker continues without its service")


def is_there(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


@pytest.mark.parametrize(
    ("unusable", "why"),
    [
        pytest.param(
            lambda value: Eager("tcp://127.0.0.1:9", value),
            "the Dask scheduler at tcp://127.0.0.1:9 does not respond",
            id="no-scheduler",
        ),
        pytest.param(
            lambda value: build_process_executor(UnpicklableFactory(value)),
            "the worker processes do not start",
            id="no-processes",
        ),
        pytest.param(lambda value: Refusing(), "no job starts here", id="start-fails"),
    ],
)
def test_what_cannot_run_elsewhere_runs_here(
    unusable: Callable[[SettingsRendererFactory], Executor], why: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if "scheduler" in why:
        pytest.importorskip("distributed", reason="the extra `dask` is not installed")
        monkeypatch.setattr("reconciler.executors.dask_cluster._CONNECT_SECONDS", 1)
    world = small_world(tmp_path)
    use(monkeypatch, unusable(build_factory(world)))

    with capture_logs() as logs:
        after = world.sync()

    assert after.outcomes["berlin/gateway"] == "draft"
    assert next(log["message"] for log in logs if log["event"] == "executor_failed").startswith(why)


@pytest.mark.parametrize(
    ("settings", "kind"),
    [
        pytest.param({"workers": 1}, type(None), id="one-worker-in-process"),
        pytest.param({"workers": 3}, ProcessExecutor, id="several-processes"),
        pytest.param({"workers": 3, "dask": "tls://scheduler:8786"}, DaskExecutor, id="dask-takes-precedence"),
    ],
)
def test_settings_choose_the_executor(settings: dict[str, object], kind: type) -> None:
    assert isinstance(build_executor(Settings.model_validate({"rendering": settings}), ""), kind)


def test_few_renders_stay_in_this_process(tmp_path: Path) -> None:
    processes = ProcessExecutor(2, build_factory(small_world(tmp_path)))

    assert not processes.should_distribute(10)
    # The number of renders in the first batch decides.
    assert processes.should_distribute(ahead._MAX_JOBS_PER_BATCH)
    assert processes.should_distribute(ahead._MAX_TARGETS_PER_BATCH)


def test_a_group_is_as_large_as_an_executor_is_worth(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    world, executor = small_world(tmp_path), Refusing(worth=3)
    monkeypatch.setattr(ahead, "_MAX_JOBS_PER_BATCH", 1)
    monkeypatch.setattr(ahead, "_MAX_TARGETS_PER_BATCH", 1)
    use(monkeypatch, executor)

    world.sync()

    assert executor.batch_sizes == [3]


def test_what_leaves_this_process_has_no_credentials() -> None:
    settings = Settings.model_validate({
        "git": {"credentials_file": "/etc/git-credentials"}, "rendering": {"dask": "tls://scheduler:8786"},
        "merge": {"conflict_policy": "local"},
    })  # fmt: skip

    executor = build_executor(settings, "")

    assert isinstance(executor, DaskExecutor)
    result = str(executor._renderer_factory)
    assert "local" in result
    assert "git-credentials" not in result


def test_workers_receive_the_settings_of_programs_and_no_other_settings_of_sources() -> None:
    sources = {"helm": {"program": "/opt/helm"}, "sandbox": "none", "credentials_file": "/run/secrets/sources"}
    settings = Settings.model_validate({"rendering": {"workers": 2}, "sources": sources, "cache": "/var/cache/x"})

    executor = build_executor(settings, "/opt/bin")

    assert isinstance(executor, ProcessExecutor)
    factory = executor._renderer_factory
    assert isinstance(factory, SettingsRendererFactory)
    received = Settings.model_validate_json(factory.settings)
    assert (received.sources.helm.program, received.sources.sandbox, received.cache, factory.search_path) == (
        "/opt/helm",
        "none",
        "/var/cache/x",
        "/opt/bin",
    )
    assert received.sources.credentials_file == ""
