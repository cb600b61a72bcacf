"""`reconciler run`: run passes as a service until a signal stops the process."""

from __future__ import annotations

import click

from reconciler.bootstrap.publishers import NoStatusRepositoryError, build_push_publisher, start_webhook_server
from reconciler.bootstrap.services import build_services
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
from reconciler.reconcile.pass_runner import PassRunner, log_pass
from reconciler.server.webhooks import WebhookServer
from reconciler.service.loop import (
    PollSchedule,
    ServiceWork,
    UnusableSettingsError,
    Wakeup,
    WakeupQueue,
    handle_signals,
    serve,
)
from reconciler.settings import Settings, SettingsError


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
            return _build_work(settings(), webhooks, wakeups)
        except (SettingsError, NoStatusRepositoryError, GitError) as error:
            raise UnusableSettingsError(str(error)) from error

    wakeups = WakeupQueue()
    with WebhookServer(lambda: wakeups.add(Wakeup.WEBHOOK)) as webhooks:
        with report_errors():
            # Build the work once before the service starts, so that invalid settings end the command. If settings
            # become invalid later, the service continues with the previous settings.
            _build_work(settings(), webhooks, wakeups)
        with handle_signals(wakeups) as stops:
            serve(build, wakeups)
    return 128 + stops[0]


def _build_work(settings: Settings, webhooks: WebhookServer, wakeups: WakeupQueue) -> ServiceWork:
    set_up_logs(settings, service=True)
    publisher = build_push_publisher(settings)
    services = build_services(settings, require_config_url(settings), wake_up=lambda: wakeups.add(Wakeup.REMOTE))
    passes = PassRunner(services.source, services.remotes, services.pass_services, publisher)
    start_webhook_server(webhooks, settings)
    schedule = PollSchedule(settings.poll_seconds, settings.poll_jitter_percent, settings.max_backoff_seconds)

    def run() -> bool:
        is_successful = passes.run()
        log_pass(passes.summary)
        return is_successful

    gather_seconds = settings.webhooks.gather_seconds
    remotes, folders = services.remotes, services.watched_folders
    return ServiceWork(
        run, services.backoff.retry_now, schedule, folders, lambda: passes.seconds_until_due, gather_seconds,
        remotes.collect_late_results, remotes.close,
    )  # fmt: skip
