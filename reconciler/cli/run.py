"""`reconciler run`: the daemon."""

from __future__ import annotations

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.shared import (
    cache_option,
    config_argument,
    config_of,
    fleet_option,
    read_settings,
    set_up_logs,
    settings_option,
    shard_option,
)
from reconciler.daemon.passes import Passes, log_pass
from reconciler.daemon.service import Rhythm, UnusableSettingsError, Work, serve, signals_as
from reconciler.daemon.wakeups import Wakeup, Wakeups
from reconciler.gitio.errors import GitError
from reconciler.settings import Settings, SettingsError
from reconciler.web.webhooks import Webhooks
from reconciler.wiring import NoStatusPlaceError, build_parts, build_push, listen


@click.command("run")
@config_argument
@fleet_option
@settings_option
@cache_option
@shard_option
def command(
    config: str | None, fleet: str | None, settings_file: str | None, cache: str | None, shard: str | None
) -> int:
    """Serve until TERM: poll with jitter, watch local folders, hear webhooks.

    HUP reads the settings anew, USR1 reconciles now.
    """

    def settings() -> Settings:
        return read_settings(settings_file, config=config, fleet=fleet, cache=cache, shard=shard)

    def build() -> Work:
        try:
            return _work(settings(), webhooks, wakeups)
        except (SettingsError, NoStatusPlaceError, GitError) as error:
            raise UnusableSettingsError(str(error)) from error

    wakeups = Wakeups()
    with Webhooks(lambda: wakeups.wake(Wakeup.WEBHOOK)) as webhooks:
        with told_plainly():
            # the first time round, what is wrong ends the command; later the service goes on as it was
            _work(settings(), webhooks, wakeups)
        with signals_as(wakeups) as stops:
            serve(build, wakeups)
    return 128 + stops[0]


def _work(settings: Settings, webhooks: Webhooks, wakeups: Wakeups) -> Work:
    set_up_logs(settings, service=True)
    publisher = build_push(settings)
    parts = build_parts(settings, config_of(settings), wake=lambda: wakeups.wake(Wakeup.REMOTE))
    passes = Passes(parts.source, parts.remotes, parts.tools, publisher)
    listen(webhooks, settings)
    rhythm = Rhythm(settings.poll_seconds, settings.poll_jitter_percent, settings.max_backoff_seconds)

    def run() -> bool:
        done = passes.run()
        log_pass(passes.told)
        return done

    gather_seconds = settings.webhooks.gather_seconds
    remotes = parts.remotes
    return Work(
        run, parts.backoff.forgive, rhythm, parts.folders, lambda: passes.due_in, gather_seconds,
        remotes.only_collect, remotes.close,
    )  # fmt: skip
