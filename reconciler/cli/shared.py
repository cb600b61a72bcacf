"""What commands share: their common options, the settings they lead to, progress and logs."""

from __future__ import annotations

import logging
import sys
import time
from collections.abc import Callable, Iterator, MutableMapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from reconciler.daemon.events import log
from reconciler.planning.shard import read_shard
from reconciler.process_protection import initial_environment
from reconciler.redaction import has_credentials, redact, redact_url
from reconciler.reporting.diffs import MAX_LINES
from reconciler.settings import Settings, SettingsError, load_settings

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_SECONDS_WITHOUT_BARS = 1.0
_LEVELS = {"debug": logging.DEBUG, "info": logging.INFO, "warning": logging.WARNING, "error": logging.ERROR}

# a Git URL, a bare repository or a plain folder; without it config.url counts
config_argument = click.argument("config", metavar="[CONFIG]", required=False)
settings_option = click.option(
    "--settings", "settings_file", metavar="FILE", help="Settings; default: ./reconciler.yaml."
)
fleet_option = click.option("--fleet", metavar="URL", help="The fleet repository, in place of fleet.url.")
cache_option = click.option("--cache", metavar="DIR", help="Where mirrors are kept, in place of the setting cache.")


def _usable_shard(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    try:
        return text if text is None else str(read_shard(text))
    except ValueError as error:
        raise click.BadParameter(f"{error}; not {text!r}") from None


shard_option = click.option(
    "--shard",
    metavar="I/N",
    callback=_usable_shard,
    help="Only the I-th of N shares of the destinations, in place of the setting shard.",
)
diff_lines_option = click.option(
    "--diff-lines",
    metavar="N",
    type=click.IntRange(0),
    default=MAX_LINES,
    show_default=True,
    help="The most lines of one file's diff; 0 leaves diffs out.",
)


def read_settings(
    settings_file: str | None,
    *,
    config: str | None = None,
    fleet: str | None = None,
    cache: str | None = None,
    shard: str | None = None,
) -> Settings:
    """Return the settings with what the command line says on top. Raises SettingsError."""
    settings = load_settings(settings_file, initial_environment(), Path.cwd())
    for name, url in (("CONFIG", config), ("--fleet", fleet)):
        if url is not None and has_credentials(url):
            raise SettingsError(
                f"{name}: {redact_url(url)!r} must be written without user name, password or token (CredentialInUrl):"
                " put them into the file that git.credentials_file names; write a local path that has an @ as ./path"
            )
    groups: dict[str, Any] = {}
    if config is not None:
        groups["config"] = settings.config.model_copy(update={"url": config})
    if fleet is not None:
        groups["fleet"] = settings.fleet.model_copy(update={"url": fleet})
    if cache is not None:
        groups["cache"] = cache
    if shard is not None:
        groups["shard"] = shard
    return settings.model_copy(update=groups)


def config_of(settings: Settings) -> str:
    """Return where the config is; a usage error when nobody says."""
    if not settings.config.url:
        context = click.get_current_context(silent=True)
        asked = context.command.params if context else ()
        is_option = any("--config" in parameter.opts for parameter in asked)
        how = "as --config" if is_option else "as an argument"
        raise click.UsageError(f"CONFIG is missing: give it {how}, or set config.url")
    return settings.config.url


def set_up_logs(settings: Settings, *, service: bool) -> None:
    """Send events to standard error: JSON lines in service, readable on a terminal."""
    level = _LEVELS[settings.log.level if service else "warning"]
    as_json = settings.log.format == "json" or (settings.log.format == "auto" and service and not sys.stderr.isatty())
    log.set_up(lambda: _configure(level, as_json=as_json))


def _configure(level: int, *, as_json: bool) -> None:
    # imported here: most commands end without an event
    import structlog

    shape: list[Any] = [structlog.stdlib.add_log_level] if as_json else [structlog.processors.add_log_level]
    end = (
        structlog.processors.JSONRenderer(sort_keys=True)
        if as_json
        else structlog.dev.ConsoleRenderer(
            colors=sys.stderr.isatty(), exception_formatter=structlog.dev.plain_traceback
        )
    )
    structlog.configure(
        processors=[
            *shape,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            # a plain traceback: one with local variables would contain secrets
            structlog.processors.format_exc_info,
            _redact_event,
            end,
        ],
        wrapper_class=structlog.make_filtering_bound_logger(level),
        logger_factory=structlog.PrintLoggerFactory(sys.stderr),
        cache_logger_on_first_use=False,
    )


def _redact_event(_logger: object, _method: str, event: MutableMapping[str, Any]) -> MutableMapping[str, Any]:
    """Remove credentials from every text of an event."""
    return {name: _redact_value(value) for name, value in event.items()}


def _redact_value(value: Any) -> Any:
    match value:
        case str():
            return redact(value)
        case dict():
            return {_redact_value(key): _redact_value(inner) for key, inner in value.items()}
        case list() | tuple():
            return [_redact_value(inner) for inner in value]
        case None | bool() | int() | float():
            return value
        case _:
            return redact(str(value))


@contextmanager
def progress() -> Iterator[Callable[[str, int, int], None]]:
    """Show how far a pass is: a bar for each stage on a terminal once it takes a second, nothing elsewhere."""
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    bars = _Bars(time.monotonic)
    try:
        yield bars.show
    finally:
        bars.close()


class _Bars:
    """Progress bars that appear only when they are worth it."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began = clock()
        self._bar: Progress | None = None
        self._stages: dict[str, TaskID] = {}

    def show(self, stage: str, done: int, total: int) -> None:
        if self._bar is None and self._clock() - self._began > _SECONDS_WITHOUT_BARS:
            self._bar = _start()
        if self._bar is not None:
            if stage not in self._stages:
                self._stages[stage] = self._bar.add_task(stage, total=total)
            self._bar.update(self._stages[stage], completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _start() -> Progress:
    # imported here: most commands end before a bar is worth its import
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar
