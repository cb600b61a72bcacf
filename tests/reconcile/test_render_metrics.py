"""Metrics of renders, function calls, worker processes and the cache folder."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from threading import Event
from typing import NoReturn

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.bootstrap.engine import build_functions
from reconciler.packages.functions.function import FunctionContext, InterruptedFunctionError, KrmFunction
from reconciler.packages.functions.registry import FunctionMatch
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.service.cache_size import CacheSize
from reconciler.service.pass_reporter import PassReporter
from reconciler.settings import Settings
from reconciler.telemetry.metrics import REGISTRY
from reconciler.telemetry.render_metrics import FunctionCall, collect_function_calls, record_function_calls
from tests.support.metric_samples import read_metric
from tests.support.world import World, small_world

CALL = FunctionCall("builtin", "success", 0.25)


@pytest.fixture(autouse=True)
def _export() -> Iterator[None]:
    with REGISTRY.export():
        yield


def read_calls() -> dict[str, float]:
    return read_metric("reconciler_function_duration_seconds_count")


@pytest.mark.parametrize("workers", [pytest.param(1, id="in-this-process"), pytest.param(2, id="in-worker-processes")])
def test_renders_are_measured(tmp_path: Path, workers: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("reconciler.executors.processes.ProcessExecutor.should_distribute", lambda *_: workers > 1)
    world: World = small_world(tmp_path, rendering={"workers": workers})
    passes = world.service()
    PassReporter().run(passes, ["start"])
    rendered = passes.summary.counts["renders"]
    first = read_metric("reconciler_renders_total")
    PassReporter().run(passes, ["timer"])

    assert rendered > 0
    assert first == {'{result="rendered"}': rendered}
    assert read_metric("reconciler_render_duration_seconds_count") == {'{controller="package_variants"}': rendered}
    assert read_metric("reconciler_renders_total") == first, "a skipped pass decides about no package"
    assert read_metric("reconciler_worker_processes") == {}


def interrupt(*_: object) -> NoReturn:
    raise InterruptedFunctionError("ended")


@pytest.mark.parametrize(
    ("spec", "function", "expected"),
    [
        pytest.param(FunctionSpec(image="set-labels:v0.2"), None, 'result="success",runtime="builtin"', id="builtin"),
        pytest.param(
            FunctionSpec(image="starlark:v0.4"), interrupt, 'result="interrupted",runtime="starlark"', id="script"
        ),
    ],
)
def test_function_calls_are_measured(
    spec: FunctionSpec, function: KrmFunction | None, expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider = build_functions(Settings(), Backoff(1, 1, lambda: 0.0), lambda: pytest.fail("no chart is rendered"))
    if function:
        monkeypatch.setattr(provider, "_starlark", function)
    match = provider.find(spec)
    assert isinstance(match, FunctionMatch)
    with suppress(InterruptedFunctionError):
        match.function((), None, FunctionContext("safe", match.version))

    assert read_calls() == {f"{{{expected}}}": 1}


def test_a_worker_collects_calls_for_the_main_process() -> None:
    with collect_function_calls() as calls:
        record_function_calls([CALL, CALL])
    inside = read_calls()
    record_function_calls(calls)

    assert calls == [CALL, CALL]
    assert (inside, read_calls()) == ({}, {'{result="success",runtime="builtin"}': 2})


def wait_for_measurement(cache_size: CacheSize) -> None:
    assert cache_size.thread
    cache_size.thread.join(60)


def test_a_slow_disk_does_not_delay_a_pass(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gate = Event()

    def list_slowly(_folder: Path) -> Iterator[tuple[Path, int]]:
        gate.wait(60)
        return iter(())

    monkeypatch.setattr("reconciler.service.cache_size._list_sizes", list_slowly)
    cache_size = CacheSize()
    cache_size.folder = tmp_path
    cache_size.update(0)
    first = cache_size.thread
    cache_size.update(10_000)

    assert cache_size.thread is first
    assert first
    assert first.is_alive()
    gate.set()
    first.join(60)


def test_the_cache_is_measured_once_per_hour(tmp_path: Path) -> None:
    mirror = tmp_path / "a.git" / "objects"
    mirror.mkdir(parents=True)
    (mirror / "pack").write_bytes(b"x" * 1_000)
    (tmp_path / "last_pass.json").write_bytes(b"x" * 10)
    cache_size = CacheSize()
    cache_size.update(0)
    before = read_metric("reconciler_cache_bytes")
    cache_size.folder = tmp_path
    cache_size.update(10)
    wait_for_measurement(cache_size)
    measured = read_metric("reconciler_cache_bytes")
    (mirror / "pack").write_bytes(b"x" * 3_000)
    cache_size.update(3_609)
    unchanged = read_metric("reconciler_cache_bytes")
    cache_size.update(3_610)
    wait_for_measurement(cache_size)

    assert before == {}
    assert measured == unchanged == {'{cache="mirrors"}': 1_000, '{cache="other"}': 10}
    assert read_metric("reconciler_cache_bytes") == {'{cache="mirrors"}': 3_000, '{cache="other"}': 10}
