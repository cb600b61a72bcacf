"""Tests of the events and metrics of passes, with scripted passes and manual clocks."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from typing import Any

import pytest
from structlog.testing import capture_logs

from reconciler.git.errors import UnreachableError
from reconciler.krm.findings import Finding, Severity
from reconciler.reconcile.pass_numbers import PassNumbers
from reconciler.reconcile.pass_runner import PassSummary
from reconciler.service.pass_reporter import Clocks, PassReporter
from reconciler.telemetry.event_log import log
from reconciler.telemetry.metrics import REGISTRY, render_metrics
from reconciler.telemetry.phases import phase
from reconciler.telemetry.target_metrics import TARGET_METRICS, TargetNumbers
from tests.support.metric_samples import read_metric

START = 1_764_000_000.0
SKIPPED = PassSummary("c1", {}, is_skipped=True)
IDLE = PassSummary("c1", {"renders": 0})
CHANGED = PassSummary(
    "c2",
    {"renders": 3},
    (Finding("SomeCode", "some message"), Finding("OtherCode", "other", severity=Severity.INFO)),
    drafts={"berlin": {"drafts/berlin": "1a"}},
    numbers=PassNumbers(
        {"ready": 2, "blocked": 1, "unreachable": 0},
        {"published": 5, "draft": 2},
        {"created": 2, "updated": 1, "withdrawn": 0, "unchanged": 0},
        4,
        {"draft": 1_763_000_000, "proposed": 0},
    ),
)
PARTIAL = PassSummary("c1", {}, unavailable_remotes=1)
CRASHED = PassSummary("", {}, is_clean=False)
ERROR = UnreachableError("no route to host")


@dataclass
class World:
    """A reporter whose passes take two seconds and have the given summaries."""

    now: float = 0.0
    phases: tuple[str, ...] = ()
    pass_ids: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        ids = iter(range(1, 100))
        clocks = Clocks(lambda: START + self.now, lambda: self.now, lambda: f"pass-{next(ids)}")
        self.reporter = PassReporter(300, clocks)

    def run(self, result: PassSummary | UnreachableError, *triggers: str) -> list[dict[str, Any]]:
        """Run one pass, and return its events above the level debug."""
        with capture_logs() as events:
            try:
                self.reporter.run(ScriptedPasses(self, result), triggers or ("timer",))
            except UnreachableError as error:
                self.reporter.report_failure(error, 120.0)
        return [dict(event) for event in events if event["log_level"] != "debug"]


class ScriptedPasses:
    def __init__(self, world: World, result: PassSummary | UnreachableError) -> None:
        self._world = world
        self._result = result
        self.summary = PassSummary("", {})

    def run(self) -> bool:
        self._world.pass_ids.append(log.pass_id)
        for name in self._world.phases:
            with phase(name):
                pass
        self._world.now += 2
        if isinstance(self._result, UnreachableError):
            raise self._result
        self.summary = self._result
        return True


@pytest.fixture
def world() -> Iterator[World]:
    with REGISTRY.export():
        yield World()


def test_a_pass_with_changes_is_logged_with_its_numbers(world: World) -> None:
    world.phases = ("fetch", "plan")
    *findings, completed = world.run(CHANGED, "webhook", "remote")

    assert [event["event"] for event in findings] == ["finding_reported", "finding_reported"]
    assert {**completed, "phases": [*completed["phases"]]} == {
        "log_level": "info",
        "event": "pass_completed",
        "result": "success",
        "trigger": ["remote", "webhook"],
        "config_commit": "c2",
        "duration_seconds": 2.0,
        "phases": ["fetch", "plan"],
        "targets": 3,
        "packages": {"published": 5, "draft": 2},
        "drafts": {"created": 2, "updated": 1, "withdrawn": 0, "unchanged": 0},
        "renders": 3,
        "findings": {"error": 1, "warning": 0, "info": 1},
        "remotes_unavailable": 0,
    }


@pytest.mark.parametrize(
    ("summary", "names"),
    [
        pytest.param(SKIPPED, [], id="skipped"),
        pytest.param(IDLE, [], id="without-a-change"),
        pytest.param(PARTIAL, ["pass_completed"], id="with-an-unavailable-remote"),
        pytest.param(CRASHED, ["pass_completed"], id="with-an-unexpected-exception"),
        pytest.param(PassSummary("c1", {"renders": 1}), ["pass_completed"], id="with-a-render"),
    ],
)
def test_only_passes_with_a_change_or_an_error_are_logged(world: World, summary: PassSummary, names: list[str]) -> None:
    first = world.run(IDLE)

    assert [event["event"] for event in first] == ["pass_completed"]
    assert [event["event"] for event in world.run(summary)] == names


@pytest.mark.emits("heartbeat")
def test_idle_passes_are_logged_as_a_heartbeat(world: World) -> None:
    world.run(IDLE)
    logged = []
    for _ in range(10):
        world.now += 58
        logged += world.run(SKIPPED)

    assert logged == [
        {
            "event": "heartbeat", "log_level": "info", "last_pass": "2025-11-24T16:05:02.000Z", "passes": 5,
            "uptime_seconds": 302.0,
        },
        {
            "event": "heartbeat", "log_level": "info", "last_pass": "2025-11-24T16:10:02.000Z", "passes": 5,
            "uptime_seconds": 602.0,
        },
    ]  # fmt: skip


def test_heartbeats_can_be_turned_off(world: World) -> None:
    world.run(IDLE)
    world.reporter.heartbeat_seconds = 0
    world.now += 10_000

    assert world.run(SKIPPED) == []


@pytest.mark.emits("pass_failed", "pass_recovered")
def test_failures_are_counted_until_a_pass_completes(world: World) -> None:
    failures = [*world.run(ERROR), *world.run(ERROR)]
    world.now += 116
    recovered, *_ = world.run(IDLE)
    again = world.run(ERROR)

    assert failures[1] == {
        "event": "pass_failed", "log_level": "error", "reason": "Unreachable", "message": "no route to host",
        "next_step": "retry", "retry_seconds": 120.0, "consecutive": 2,
    }  # fmt: skip
    assert recovered == {
        "event": "pass_recovered", "log_level": "info", "failed_for_seconds": 120.0, "passes_failed": 2
    }  # fmt: skip
    assert again[0]["consecutive"] == 1


def test_each_pass_has_its_own_id(world: World) -> None:
    world.run(IDLE)
    world.run(ERROR)

    assert (world.pass_ids, log.pass_id) == (["pass-1", "pass-2"], "")


@pytest.mark.parametrize(
    ("result", "triggers", "label"),
    [
        pytest.param(SKIPPED, ("timer",), 'result="success",trigger="timer"', id="skipped"),
        pytest.param(PARTIAL, ("timer", "remote"), 'result="partial",trigger="remote"', id="partial"),
        pytest.param(CRASHED, ("start",), 'result="failure",trigger="start"', id="crashed"),
        pytest.param(ERROR, ("folder", "webhook"), 'result="failure",trigger="webhook"', id="failed"),
    ],
)
def test_passes_are_counted(
    world: World, result: PassSummary | UnreachableError, triggers: tuple[str, ...], label: str
) -> None:
    world.run(result, *triggers)

    result_label = "{" + label.partition(",")[0] + "}"
    assert read_metric("reconciler_passes_total") == {"{" + label + "}": 1}
    assert read_metric("reconciler_pass_duration_seconds_sum") == {result_label: 2}
    assert read_metric("reconciler_last_pass_timestamp_seconds")[result_label] == START + 2
    assert read_metric("reconciler_pass_start_timestamp_seconds") == {}


def test_the_numbers_of_a_pass_are_exported_until_the_next_pass(world: World) -> None:
    world.run(CHANGED)
    world.run(SKIPPED)

    def read_all() -> list[dict[str, float]]:
        return [
            read_metric(f"reconciler_{name}")
            for name in ("targets", "packages", "oldest_draft_timestamp_seconds", "conflicts", "findings")
        ]

    assert read_all() == [
        {'{state="ready"}': 2, '{state="blocked"}': 1},
        {'{state="published"}': 5, '{state="draft"}': 2},
        {'{state="draft"}': 1_763_000_000},
        {"": 4},
        {'{code="OtherCode",severity="info"}': 1, '{code="SomeCode",severity="error"}': 1},
    ]
    assert read_metric("reconciler_draft_changes_total") == {'{action="created"}': 2, '{action="updated"}': 1}

    world.run(PassSummary("c3", {}))
    assert read_metric("reconciler_findings") == {}


def test_findings_with_many_codes_have_a_limited_number_of_series(world: World) -> None:
    world.run(PassSummary("c1", {}, tuple(Finding(f"Code{number:05}", "text") for number in range(10_000))))
    lines = [line for line in render_metrics("")[0].decode().splitlines() if line.startswith("reconciler_findings{")]

    assert len(lines) == 3 * 161
    assert 'reconciler_findings{code="other",severity="error"} 9840.0' in lines


@pytest.mark.emits("metrics_limited")
def test_targets_are_exported_only_up_to_their_limit() -> None:
    berlin = TargetNumbers("berlin", "ready", {"published": 3, "draft": 0})
    lisbon = TargetNumbers("lisbon", "blocked", {"published": 0, "draft": 1})

    def run_passes(limit: int, *passes: tuple[TargetNumbers, ...]) -> tuple[dict[str, float], dict[str, float], int]:
        TARGET_METRICS.set_limit(limit)
        world = World()
        with capture_logs() as events:
            for targets in passes:
                world.reporter.run(
                    ScriptedPasses(world, PassSummary("c1", {}, numbers=PassNumbers(by_target=targets))), ["timer"]
                )
        limited = sum(event["event"] == "metrics_limited" for event in events)
        return read_metric("reconciler_target_info"), read_metric("reconciler_target_packages"), limited

    both = (berlin, lisbon)
    berlin_info, lisbon_info = {'{state="ready",target="berlin"}': 1.0}, {'{state="blocked",target="lisbon"}': 1.0}
    published, draft = {'{state="published",target="berlin"}': 3.0}, {'{state="draft",target="lisbon"}': 1.0}
    with REGISTRY.export(TARGET_METRICS):
        assert run_passes(0, both) == ({}, {}, 0)
        assert run_passes(2, both) == ({**berlin_info, **lisbon_info}, {**published, **draft}, 0)
        assert run_passes(2, both, (lisbon,)) == (lisbon_info, draft, 0)
        assert run_passes(1, both, both) == ({}, {}, 1)
        assert run_passes(1, both, (berlin,), both) == ({}, {}, 2)
        TARGET_METRICS.set_limit(0)


UNPUSHED = PassSummary("c2", {}, drafts={"berlin": {"b": "1"}}, unpushed_drafts={"lisbon": ()})
DRAFTED = PassSummary("c2", {}, drafts={"berlin": {"b": "1"}})


@pytest.mark.parametrize(
    ("passes", "seconds"),
    [
        pytest.param([DRAFTED], [2], id="drafts-in-the-first-pass"),
        pytest.param([UNPUSHED, DRAFTED], [4], id="a-later-push"),
        pytest.param([DRAFTED, DRAFTED], [2], id="later-drafts-of-the-same-commit"),
        pytest.param([PassSummary("c2", {}), DRAFTED], [], id="a-commit-without-drafts"),
        pytest.param([PassSummary("c2", {}, unavailable_remotes=1), DRAFTED], [4], id="a-remote-that-recovers"),
        pytest.param([IDLE, DRAFTED, PassSummary("c3", {}, drafts={"a": {"b": "2"}})], [2, 2], id="two-commits"),
    ],
)
def test_the_latency_of_drafts(world: World, passes: list[PassSummary], seconds: list[float]) -> None:
    for summary in passes:
        world.run(summary)

    assert read_metric("reconciler_draft_latency_seconds_count").get("", 0) == len(seconds)
    assert read_metric("reconciler_draft_latency_seconds_sum").get("", 0) == sum(seconds)


def test_phases_are_exported(world: World) -> None:
    world.phases = ("fetch", "push")
    world.run(IDLE)

    assert read_metric("reconciler_pass_phase_duration_seconds_count") == {
        '{phase="fetch"}': 1.0, '{phase="push"}': 1.0
    }  # fmt: skip
