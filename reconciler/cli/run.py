"""`reconciler run`: run passes as a service until a signal stops the process."""

from __future__ import annotations

import os
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import click

from reconciler.bootstrap import console as bootstrap_console
from reconciler.bootstrap import console_authentication, publishers, settings_changes, start_event
from reconciler.bootstrap import health as bootstrap_health
from reconciler.bootstrap import heartbeat as bootstrap_heartbeat
from reconciler.bootstrap import notifications as bootstrap_notifications
from reconciler.bootstrap import options as bootstrap_options
from reconciler.bootstrap import server as bootstrap_server
from reconciler.bootstrap import services as bootstrap_services
from reconciler.bootstrap import tracing as bootstrap_tracing
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import SUCCESS, CannotRunError
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
from reconciler.lazy_dataclasses import dataclass
from reconciler.reconcile import pass_runner
from reconciler.reconcile.remotes import availability
from reconciler.service import health, loop, pass_reporter, signals, systemd
from reconciler.service import state as service_state
from reconciler.service.controls import ServiceControls
from reconciler.telemetry import metrics, remote_metrics, target_metrics
from reconciler.telemetry.event_log import log
from reconciler.telemetry.progress import progress

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from reconciler.bootstrap.console import Console
    from reconciler.bootstrap.console_authentication import SignInState
    from reconciler.bootstrap.server import ServiceServer
    from reconciler.bootstrap.tracing import TraceExport
    from reconciler.git.errors import GitError
    from reconciler.krm.findings import Finding
    from reconciler.reconcile.reconcile_pass import PassReport
    from reconciler.reconcile.remotes.availability import RemoteTimes
    from reconciler.service.loop import ServiceWork, Wakeup, WakeupQueue
    from reconciler.service.pass_reporter import PassReporter
    from reconciler.service.state import ServiceState
    from reconciler.service.systemd import SystemdNotifier
    from reconciler.settings import Settings


@click.command("run")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
@click.option(
    "--read-only", "is_read_only", is_flag=True,
    help="Run as a standby: fetch and plan, but push nothing, send no notification, and call no forge.",
)  # fmt: skip
def command(
    config: str | None,
    fleet: str | None,
    settings_file: str | None,
    cache: str | None,
    shard: str | None,
    is_read_only: bool,
) -> int:
    """Run passes until the signal TERM. A timer, a change of a local folder or a webhook starts a pass.

    The signal HUP reloads the settings. The signal USR1 starts a pass. The signal TERM ends the service with exit
    status 0 after the current push. A second TERM ends it at once with exit status 143.
    """

    def load_settings() -> Settings:
        return read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)

    options = {"--config": config, "--fleet": fleet, "--settings": settings_file, "--cache": cache}
    command_options = tuple(text for name, value in options.items() if value for text in (name, value))
    return run_service(load_settings, settings_file, command_options, is_read_only=is_read_only)


def run_service(
    load_settings: Callable[[], Settings],
    settings_file: str | None = None,
    command_options: tuple[str, ...] = (),
    *,
    is_read_only: bool = False,
    announce: Callable[[int], None] | None = None,
) -> int:
    """Run passes until a signal stops the process, and return the exit status.

    Args:
        load_settings: Loads the settings at the start and at each reload.
        settings_file: The settings file, for the log.
        command_options: Command-line options for other commands. With these options, the commands use the config, the
            settings and the repositories of this service.
        announce: Receives the port on which the server listens. The port is 0 if the service has no server.

    Raises:
        CannotRunError: The settings, the config or the cache cannot be used.
    """
    with ExitStack() as stack:
        wakeups, state = loop.WakeupQueue(), service_state.ServiceState()
        state.is_read_only = is_read_only
        stack.enter_context(signals.handle_signals(wakeups, state))
        notifier = systemd.SystemdNotifier(os.environ)
        stack.enter_context(metrics.REGISTRY.export(target_metrics.TARGET_METRICS))
        with report_errors():
            server = bootstrap_server.ServiceServer(state, lambda: wakeups.add(loop.Wakeup.WEBHOOK))
            stack.enter_context(server)
            traces = stack.enter_context(bootstrap_tracing.TraceExport())
            sign_ins = console_authentication.SignInState()
            reporter = pass_reporter.PassReporter()
            times = availability.RemoteTimes()
            parts = _Parts(server, state, wakeups, reporter, notifier, traces, sign_ins, times, command_options)
            settings = load_settings()
            set_up_logs(settings, service=True)
            # Invalid settings end the command. If settings become invalid later, the service continues with the
            # previous settings.
            first_work = _build_work(settings, parts)
        start_event.log_start(settings, settings_file)
        if announce:
            announce(server.port)
        stack.enter_context(notifier.keep_watchdog(lambda: health.is_stuck(state)))
        loop.serve(first_work, lambda: _reload(load_settings, parts), wakeups)
        notifier.send("STOPPING=1")
    log.info("daemon_stopped", uptime_seconds=parts.reporter.uptime_seconds, exit_status=SUCCESS)
    return SUCCESS


@dataclass
class _Parts:
    """The parts of the service that a reload of the settings does not replace, and the current settings."""

    server: ServiceServer
    state: ServiceState
    wakeups: WakeupQueue
    reporter: PassReporter
    notifier: SystemdNotifier
    traces: TraceExport
    sign_ins: SignInState
    remote_times: RemoteTimes
    command_options: tuple[str, ...] = ()
    settings: Settings | None = None
    console: Console | None = None


def _reload(load_settings: Callable[[], Settings], parts: _Parts) -> ServiceWork:
    with parts.notifier.report_reload():
        try:
            with report_errors():
                work = _build_work(load_settings(), parts)
        except (CannotRunError, click.UsageError) as error:
            parts.state.record_reload(str(error))
            raise loop.UnusableSettingsError(str(error)) from error
        parts.state.record_reload("")
    return work


def _build_work(settings: Settings, parts: _Parts) -> ServiceWork:
    """Build the work, and then apply the settings to all parts of the service. No part changes if the build fails."""
    state, wakeups, reporter = parts.state, parts.wakeups, parts.reporter

    def report_progress(stage: str, _done: int, _total: int) -> None:
        progress.update(stage)
        # Stop only during planning, because at this stage, the pass has not written anything.
        if stage == "planning" and state.stopping_since is not None:
            raise loop.StopRequested

    bootstrap_tracing.check_libraries(settings)
    publisher = publishers.build_service_publisher(settings, is_read_only=state.is_read_only)
    services = bootstrap_services.build_services(
        settings, require_config_url(settings), wake_up=lambda: wakeups.add(loop.Wakeup.REMOTE),
        should_sign=not state.is_read_only, can_call_forges=not state.is_read_only, report_progress=report_progress,
        should_stop=lambda: state.stopping_since is not None, remote_times=parts.remote_times,
    )  # fmt: skip
    bootstrap_services.warn_about_signatures(services.inputs.signer)
    notifications = bootstrap_notifications.build_notifications(settings, is_read_only=state.is_read_only)
    heartbeat = bootstrap_heartbeat.build_heartbeat(settings, services.inputs, is_read_only=state.is_read_only)

    def retry_remote(url: str) -> None:
        services.backoff.retry(url)
        wakeups.add(loop.Wakeup.RETRY)

    controls = ServiceControls(
        wake_pass=lambda: wakeups.add(loop.Wakeup.NOW),
        reload=lambda: wakeups.add(loop.Wakeup.RELOAD),
        retry_remote=retry_remote,
    )
    console = bootstrap_console.build_console(
        settings, require_config_url(settings), state, controls, parts.sign_ins, parts.command_options, parts.console
    )

    def observe(report: PassReport, failures: Mapping[str, GitError]) -> tuple[Finding, ...]:
        if console:
            console.observe(report, failures)
        return notifications.observe(report, failures)

    passes = pass_runner.PassRunner(
        services.source, services.remotes, services.pass_services, publisher, observe=observe
    )
    parts.server.apply(settings, console.context if console else None)
    parts.console = console
    set_up_logs(settings, service=True)
    start_event.record_shard(settings)
    parts.traces.apply(settings)
    changed = settings_changes.list_changed_settings(parts.settings, settings) if parts.settings else ()
    parts.settings = settings
    schedule = loop.PollSchedule(settings.poll_seconds, settings.poll_jitter_percent, settings.max_backoff_seconds)
    state.limits, state.shard = bootstrap_health.build_health_limits(settings), settings.shard
    recorder = bootstrap_health.PassRecorder(state, passes, services, lambda: reporter.phases)
    reporter.heartbeat_seconds = settings.log.heartbeat_seconds
    reporter.cache_size.folder = Path(settings.cache).expanduser()
    reporter.last_pass_file = bootstrap_options.build_last_pass_file(settings)
    remote_metrics.select_remote_label(settings.metrics.remote_label)
    target_metrics.TARGET_METRICS.set_limit(settings.metrics.max_targets if settings.metrics.per_target else 0)

    def run(reasons: frozenset[Wakeup]) -> bool:
        if console:
            # Start the threads of the console in the first pass and not earlier. Before this pass, the server can still
            # refuse the settings, and the previous console can still apply review actions.
            console.start()
        is_done = recorder.run(lambda: notifications.run_pass(passes, lambda: reporter.run(passes, reasons)), reasons)
        parts.notifier.report_pass(state.view)
        heartbeat.record_pass(passes.summary.result)
        return is_done

    gather_seconds = settings.webhooks.gather_seconds
    remotes, folders = services.remotes, services.watched_folders

    def close() -> None:
        remotes.close()
        notifications.close()
        heartbeat.close()
        if console:
            console.close(parts.console if parts.console is not console else None)

    return loop.ServiceWork(
        run, services.backoff.retry_now, schedule, folders, lambda: passes.seconds_until_due, gather_seconds,
        remotes.collect_late_results, close, reporter.report_failure, changed,
    )  # fmt: skip
