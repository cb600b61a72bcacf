"""`reconciler run`: run passes as a service until a signal stops the process."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler import settings as reconciler_settings
from reconciler.bootstrap import health as bootstrap_health
from reconciler.bootstrap import notifications as bootstrap_notifications
from reconciler.bootstrap import publishers, start_event
from reconciler.bootstrap import server as bootstrap_server
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli.errors import report_errors
from reconciler.cli.options import (
    cache_option,
    config_argument,
    fleet_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    shard_option,
)
from reconciler.git.errors import GitError
from reconciler.reconcile import pass_runner
from reconciler.service import loop, pass_reporter
from reconciler.service import state as service_state
from reconciler.telemetry import metrics, remote_metrics, target_metrics
from reconciler.telemetry.progress import progress

if TYPE_CHECKING:
    from reconciler.bootstrap.server import ServiceServer
    from reconciler.service.loop import ServiceWork, Wakeup, WakeupQueue
    from reconciler.service.pass_reporter import PassReporter
    from reconciler.service.state import ServiceState
    from reconciler.settings import Settings


@click.command("run")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
def command(
    config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, shard: str | None
) -> int:
    """Run passes until the signal TERM. A timer, a change of a local folder or a webhook starts a pass.

    The signal HUP reloads the settings. The signal USR1 starts a pass.
    """

    def settings() -> Settings:
        return read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)

    def build() -> ServiceWork:
        try:
            return _build_work(settings(), server, state, wakeups, reporter)
        except (reconciler_settings.SettingsError, publishers.NoStatusRepositoryError, GitError) as error:
            raise loop.UnusableSettingsError(str(error)) from error

    wakeups = loop.WakeupQueue()
    state = service_state.ServiceState()
    reporter = pass_reporter.PassReporter()
    with report_errors():
        service_server = bootstrap_server.ServiceServer(state, lambda: wakeups.add(loop.Wakeup.WEBHOOK))
    with metrics.REGISTRY.export(target_metrics.TARGET_METRICS), service_server as server:
        with report_errors():
            # Build the work once before the service starts, so that invalid settings end the command. If settings
            # become invalid later, the service continues with the previous settings.
            first_settings = settings()
            _build_work(first_settings, server, state, wakeups, reporter)
        start_event.log_start(first_settings, settings_file)
        with loop.handle_signals(wakeups, state) as stops:
            loop.serve(build, wakeups)
    return 128 + stops[0]


def _build_work(
    settings: Settings, server: ServiceServer, state: ServiceState, wakeups: WakeupQueue, reporter: PassReporter
) -> ServiceWork:
    set_up_logs(settings, service=True)
    publisher = publishers.build_push_publisher(settings)
    services = bootstrap_services.build_services(
        settings, require_config_url(settings), wake_up=lambda: wakeups.add(loop.Wakeup.REMOTE), should_sign=True,
        report_progress=lambda stage, done, total: progress.update(stage),
    )  # fmt: skip
    bootstrap_services.warn_about_signatures(services.inputs.signer)
    notifications = bootstrap_notifications.build_notifications(settings)
    passes = pass_runner.PassRunner(
        services.source, services.remotes, services.pass_services, publisher, observe=notifications.observe
    )
    server.apply(settings)
    schedule = loop.PollSchedule(settings.poll_seconds, settings.poll_jitter_percent, settings.max_backoff_seconds)
    state.limits, state.shard = bootstrap_health.build_health_limits(settings), settings.shard
    recorder = bootstrap_health.PassRecorder(state, passes, services)
    reporter.heartbeat_seconds = settings.log.heartbeat_seconds
    remote_metrics.select_remote_label(settings.metrics.remote_label)
    target_metrics.TARGET_METRICS.set_limit(settings.metrics.max_targets if settings.metrics.per_target else 0)

    def run(reasons: frozenset[Wakeup]) -> bool:
        return recorder.run(lambda: notifications.run_pass(passes, lambda: reporter.run(passes, reasons)))

    gather_seconds = settings.webhooks.gather_seconds
    remotes, folders = services.remotes, services.watched_folders

    def close() -> None:
        remotes.close()
        notifications.close()

    return loop.ServiceWork(
        run, services.backoff.retry_now, schedule, folders, lambda: passes.seconds_until_due, gather_seconds,
        remotes.collect_late_results, close, reporter.report_failure,
    )  # fmt: skip
