"""A real daemon with a real problem fires the alert of the problem.

The test reads the metrics of one daemon before and after it creates each problem. promtool then evaluates the alert rules
over these values, as if the problem existed for a long time.
"""

from __future__ import annotations

import os
import re
import signal
import time
from collections.abc import Callable
from contextlib import chdir, suppress
from functools import partial
from pathlib import Path
from threading import Thread

import httpx
import pytest
import yaml

from reconciler.bootstrap.notifications import build_channels
from reconciler.bootstrap.publishers import build_push_publisher
from reconciler.bootstrap.services import build_services
from reconciler.bootstrap.start_event import log_start, record_shard
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.rate_limits import RateLimiter
from reconciler.git.errors import GitError
from reconciler.notifications.channel_findings import ChannelFindings
from reconciler.notifications.delivery import Delivery
from reconciler.notifications.samples import build_sample
from reconciler.reconcile.pass_runner import PassRunner
from reconciler.server.tls import ServerCertificate
from reconciler.service.pass_reporter import Clocks, PassReporter
from reconciler.settings import Settings, load_settings
from reconciler.telemetry.metrics import REGISTRY, SETTINGS_RELOAD_SUCCESS, render_metrics
from tests.support.certificates import write_certificate
from tests.support.daemon import PROJECT, Daemon, run_daemon
from tests.support.git_repositories import write_hook
from tests.support.notification_servers import http_server
from tests.support.page_commands import build_environment
from tests.support.programs import make_program
from tests.support.published_fleet import SETTINGS, Fleet

RULES = PROJECT / "deploy/monitoring/rules.yaml"
_SAMPLE = re.compile(r"^(?P<name>\w+)(?:\{(?P<labels>.*)\})? (?P<value>\S+)$", re.MULTILINE)
# Each alert of the rules has a test with a real cause. tests/deploy/test_monitoring.py and tests/docs/test_metrics_page.py contain the fast tests of the rules and the metrics.
pytestmark = pytest.mark.slow
_FIRING = re.compile(r"alertname: ?(\w+), time: ?(\w+)")
_POD = 'pod="reconciler-1-0"'
_TARGET = f'job="reconciler", instance="a", {_POD}'
# The problem begins two hours after the first scrape.
_START_MINUTES = 120
_NOW, _SOON, _SHORT, _EIGHT_DAYS = 0, 10, 45, 8 * 24 * 60

Scrape = dict[str, float]


def read_samples(text: str) -> Scrape:
    """Return the value of each series that the rules use. Times are relative to the start of the evaluation."""
    rules, now = RULES.read_text(), time.time()
    samples = {f"up{{{_TARGET}}}": 1.0}
    for sample in _SAMPLE.finditer(text):
        if sample["name"] in rules:
            value = float(sample["value"])
            is_time = "_timestamp_seconds" in sample["name"] and value > 0
            labels = ", ".join(filter(None, [_TARGET, sample["labels"]]))
            samples[f"{sample['name']}{{{labels}}}"] = value - now + _START_MINUTES * 60 if is_time else value
    return samples


def find_firing_alerts(before: Scrape, after: Scrape, minutes: int, folder: Path) -> set[str]:
    """Return the alerts that fire if the values stay as in `after` for this time."""
    # Prometheus ignores samples that are older than five minutes.
    step = 5 if minutes < _EIGHT_DAYS else 60
    series = [
        {"series": name, "values": f"{before.get(name, 0)}x{_START_MINUTES // step - 1} {value}x{minutes // step}"}
        for name, value in after.items()
    ]
    end = f"{_START_MINUTES + minutes}m"
    # promtool reports each alert that fires, because the test expects none.
    expected = [{"alertname": alert, "eval_time": end, "exp_alerts": []} for alert in list_alerts()]
    test = {"interval": f"{step}m", "input_series": series, "alert_rule_test": expected}
    file = folder / "test.yaml"
    file.write_text(yaml.safe_dump({"rule_files": [str(RULES)], "evaluation_interval": f"{step}m", "tests": [test]}))
    process = make_program("promtool")("test", "rules", file)
    firing = {alert for alert, _ in _FIRING.findall(process.stdout + process.stderr)}
    assert (process.returncode == 0) == (not firing), process.stdout + process.stderr
    return firing


def list_alerts() -> list[str]:
    return [rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]]


class Service:
    """Passes of a daemon in this process, with its metrics.

    Attributes:
        wall_offset: The time of the daemon minus the time of the machine, in seconds.
        monotonic: The monotonic clock of the daemon.
    """

    def __init__(self, fleet: Fleet, shard: str = "1/1") -> None:
        self.fleet = fleet
        self.wall_offset = self.monotonic = 0.0
        environment = {**build_environment(fleet.folder), "RECONCILER_SHARD": shard}
        self._settings = load_settings(None, environment, fleet.folder)
        clocks = Clocks(lambda: time.time() + self.wall_offset, lambda: self.monotonic)
        services = build_services(self._settings, self._settings.config.url, monotonic_clock=clocks.monotonic)
        publisher = build_push_publisher(self._settings)
        self._passes = PassRunner(services.source, services.remotes, services.pass_services, publisher)
        self._reporter = PassReporter(clocks=clocks)
        log_start(self._settings, None)
        record_shard(self._settings)
        SETTINGS_RELOAD_SUCCESS.set(1)

    def run_pass(self) -> Scrape:
        with suppress(GitError):
            self._reporter.run(self._passes, {"timer"})
        return scrape()


def scrape() -> Scrape:
    """Return the current metrics of this process."""
    return read_samples(render_metrics("")[0].decode())


def scrape_daemon(daemon: Daemon) -> Scrape:
    """Return the metrics of a daemon. If it does not answer, return the value that Prometheus stores in this case."""
    try:
        return read_samples(daemon.get("/metrics")[1])
    except OSError:  # refused, or reset because the process ended while the connection waited
        return {f"up{{{_TARGET}}}": 0.0}


def propose_change(service: Service) -> None:
    service.fleet.change_config("regions.yaml", "auth.us-east", "login.us-east")


def refuse_pushes(service: Service) -> None:
    propose_change(service)
    write_hook(service.fleet.folder / "fleet.git", "pre-receive", "exit 1")


def misspell_field(service: Service) -> None:
    service.fleet.change_config("gateway.yaml", "revision: v1", "revison: v1")


def move_away(name: str, service: Service) -> None:
    (service.fleet.folder / name).rename(service.fleet.folder / "moved.git")


@pytest.mark.parametrize(
    ("alert", "create_problem", "minutes"),
    [
        pytest.param("ReconcilerReviewOverdue", propose_change, _EIGHT_DAYS, id="review-overdue"),
        pytest.param("ReconcilerPushRefused", refuse_pushes, _SHORT, id="push-refused"),
        pytest.param("ReconcilerErrorFindings", misspell_field, _SHORT, id="error-findings"),
        pytest.param("ReconcilerRemoteUnavailable", partial(move_away, "catalog.git"), _SHORT, id="remote-unavailable"),
        pytest.param("ReconcilerPassFailing", partial(move_away, "config.git"), _SHORT, id="pass-failing"),
    ],
)
def test_a_problem_fires_its_alert(
    alert: str, create_problem: Callable[[Service], None], minutes: int, fleet: Fleet, tmp_path: Path
) -> None:
    with chdir(fleet.folder), REGISTRY.export():
        service = Service(fleet)
        healthy = service.run_pass()
        create_problem(service)
        problem = service.run_pass()

    # The values do not change any more, so Prometheus also reports that no pass completes.
    assert find_firing_alerts(healthy, healthy, minutes, tmp_path) == {"ReconcilerPassStale"}
    assert alert in find_firing_alerts(healthy, problem, minutes, tmp_path)


def test_each_alert_has_a_test() -> None:
    text = Path(__file__).read_text()

    assert [alert for alert in list_alerts() if f'"{alert}"' not in text] == []


def test_a_killed_daemon_fires_its_alert(fleet: Fleet, tmp_path: Path) -> None:
    (fleet.folder / "reconciler.yaml").write_text(f"{SETTINGS}server: {{listen: '127.0.0.1:0'}}\n")
    with run_daemon(["run"], fleet.folder, build_environment(fleet.folder)) as daemon:
        healthy = scrape_daemon(daemon)
        daemon.process.kill()
        daemon.process.wait(60)
        down = scrape_daemon(daemon)

    assert "ReconcilerDown" not in find_firing_alerts(healthy, healthy, _SOON, tmp_path)
    assert "ReconcilerDown" in find_firing_alerts(healthy, down, _SOON, tmp_path)


def test_a_pass_that_hangs_fires_its_alert(fleet: Fleet, tmp_path: Path) -> None:
    started, released = tmp_path / "started", tmp_path / "released"
    for pipe in (started, released):
        os.mkfifo(pipe)
    with chdir(fleet.folder), REGISTRY.export():
        service = Service(fleet)
        service.run_pass()
        propose_change(service)
        # Only one push waits.
        write_hook(
            fleet.folder / "fleet.git", "pre-receive", f'rm "$0" || exit 0\necho >{started}\nread line <{released}'
        )
        hanging = Thread(target=service.run_pass)
        hanging.start()
        started.read_text()
        stale = scrape()
        service.wall_offset = _SHORT * 60.0
        released.write_text("\n")
        hanging.join()
        completed = scrape()

    assert "ReconcilerPassStale" in find_firing_alerts(stale, stale, _SHORT, tmp_path)
    assert "ReconcilerPassStale" not in find_firing_alerts(stale, completed, _SHORT, tmp_path)


def test_drafts_that_are_late_fire_their_alert(fleet: Fleet, tmp_path: Path) -> None:
    with chdir(fleet.folder), REGISTRY.export():
        service = Service(fleet)
        healthy = service.run_pass()
        for number in range(5):
            fleet.change_config("regions.yaml", ".us-east", f".us-east-{number}")
            (fleet.folder / "fleet.git").rename(fleet.folder / "moved.git")
            service.run_pass()
            (fleet.folder / "moved.git").rename(fleet.folder / "fleet.git")
            service.monotonic += 400
            late = service.run_pass()

    assert "ReconcilerDraftLatencyBudgetBurn" not in find_firing_alerts(healthy, healthy, _NOW, tmp_path)
    assert "ReconcilerDraftLatencyBudgetBurn" in find_firing_alerts(healthy, late, _NOW, tmp_path)


def test_a_service_that_refuses_messages_fires_its_alert(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("secret\n")
    with http_server() as http, REGISTRY.export():
        http.responses = [(403, {}, b"revoked")] * 100
        channel = {"name": "ops", "kind": "webhook", "url": http.url, "secret_file": str(tmp_path / "secret")}
        settings = Settings.model_validate({"notifications": {"channels": [channel], "allowed_hosts": ["127.0.0.1"]}})
        findings = ChannelFindings()
        delivery = Delivery(build_channels(settings, findings), lambda *_: None, findings)
        healthy, now = scrape(), 0.0
        delivery.add(build_sample("ops", "package_blocked", "1/1", 0, ""))
        while len(delivery):
            now += delivery.seconds_until_due(now)
            delivery.deliver_due(now)
        failed = scrape()

    assert "ReconcilerNotificationsFailing" not in find_firing_alerts(healthy, healthy, _SOON, tmp_path)
    assert "ReconcilerNotificationsFailing" in find_firing_alerts(healthy, failed, _SOON, tmp_path)


def test_a_missing_shard_fires_its_alert(fleet: Fleet, tmp_path: Path) -> None:
    with chdir(fleet.folder), REGISTRY.export():
        samples = Service(fleet, "1/2").run_pass()

    assert "ReconcilerShardMissing" in find_firing_alerts(samples, samples, _SHORT, tmp_path)


def test_a_forge_that_allows_few_requests_fires_its_alert(tmp_path: Path) -> None:
    headers = {"X-RateLimit-Remaining": "42", "X-RateLimit-Resource": "core"}
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=[], headers=headers))
    with REGISTRY.export():
        client = ForgeClient("https://forge.example/api", dict, RateLimiter(0, 0, time.time), time.time, transport)
        client.get("/pulls")
        client.close()
        samples = scrape()

    assert "ReconcilerRateLimitLow" in find_firing_alerts(samples, samples, _SHORT, tmp_path)


def test_an_expiring_certificate_fires_its_alert(tmp_path: Path) -> None:
    with REGISTRY.export():
        ServerCertificate(write_certificate(tmp_path, "server"))
        samples = scrape()

    assert "ReconcilerCredentialExpiring" in find_firing_alerts(samples, samples, _SHORT, tmp_path)


@pytest.mark.parametrize(
    ("part", "is_firing"), [pytest.param(0.95, True, id="95-%"), pytest.param(0.85, False, id="85-%")]
)
def test_the_memory_of_a_process_near_its_limit_fires_its_alert(part: float, is_firing: bool, tmp_path: Path) -> None:
    # One process cannot create this cause: kube-state-metrics exports the limit of the container, which the kubelet
    # enforces. The test compares the real memory of this process with a limit near it.
    with REGISTRY.export():
        samples = scrape()
    limit = samples[f"process_resident_memory_bytes{{{_TARGET}}}"] / part
    samples[f'kube_pod_container_resource_limits{{{_POD}, resource="memory", container="reconciler"}}'] = limit

    assert ("ReconcilerMemoryHigh" in find_firing_alerts(samples, samples, _SHORT, tmp_path)) == is_firing


def test_refused_settings_fire_their_alert(fleet: Fleet, tmp_path: Path) -> None:
    settings = f"{SETTINGS}server: {{listen: '127.0.0.1:0'}}\nlog: {{level: debug}}\n"
    (fleet.folder / "reconciler.yaml").write_text(settings)
    with run_daemon(["run"], fleet.folder, build_environment(fleet.folder)) as daemon:
        healthy = scrape_daemon(daemon)
        (fleet.folder / "reconciler.yaml").write_text(f"{settings}poll_second: 5\n")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for("settings_refused")
        # When the daemon receives the next signal, the metric has its new value.
        daemon.process.send_signal(signal.SIGUSR1)
        daemon.wait_for("wakeup_received")
        refused = scrape_daemon(daemon)

    assert "ReconcilerSettingsRejected" not in find_firing_alerts(healthy, healthy, _SHORT, tmp_path)
    assert "ReconcilerSettingsRejected" in find_firing_alerts(healthy, refused, _SHORT, tmp_path)
