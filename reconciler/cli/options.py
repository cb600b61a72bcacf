"""Options that several commands share. This module also loads the settings, shows progress bars and sets up the log."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler import settings as reconciler_settings
from reconciler.krm import field_text
from reconciler.output.text import MAX_DIFF_LINES
from reconciler.planning.model import shard as model_shard
from reconciler.process_protection import initial_environment
from reconciler.redaction import has_credentials, redact_url
from reconciler.telemetry import log_setup
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from reconciler.settings import Settings

if TYPE_CHECKING:
    from rich.progress import Progress, TaskID

_Command = TypeVar("_Command", bound=Callable[..., Any])
_SECONDS_WITHOUT_BARS = 1.0

# CONFIG is a Git URL, a bare repository or a plain folder. The default is the setting `config.url`.
config_argument = click.argument("config", metavar="[CONFIG]", required=False)
settings_option = click.option(
    "--settings", "settings_file", metavar="FILE", help="The settings file. Default: ./reconciler.yaml."
)
fleet_option = click.option(
    "--fleet",
    metavar="URL",
    help="The repository with the target branches of clusters. Overrides the setting `fleet.url`.",
)
cache_option = click.option(
    "--cache", metavar="DIR", help="The folder for mirrors of repositories. Overrides the setting `cache`."
)


def _validate_shard(context: click.Context, parameter: click.Parameter, text: str | None) -> str | None:
    try:
        return text if text is None else str(model_shard.parse_shard(text))
    except ValueError as error:
        raise click.BadParameter(f"{error}, but is {field_text.quote_value(text)}") from None


shard_option = click.option(
    "--shard",
    metavar="I/N",
    callback=_validate_shard,
    help="Divide the targets into N shards, and process only shard I. Overrides the setting `shard`.",
)
diff_lines_option = click.option(
    "--diff-lines",
    metavar="N",
    type=click.IntRange(0),
    default=MAX_DIFF_LINES,
    show_default=True,
    help="The maximum number of diff lines per file. 0 omits diffs.",
)

color_option = click.option(
    "--color",
    type=click.Choice(["auto", "always", "never"]),
    default="auto",
    show_default=True,
    help="Whether diffs are colored. `auto` colors them on a terminal, unless the variable NO_COLOR is set.",
)


def output_option(*formats: str) -> Callable[[_Command], _Command]:
    """Return the option `-o` of a command with these output formats. The first format is the default."""
    return click.option(
        "-o", "--output", type=click.Choice(formats), default=formats[0], show_default=True, help="The output format."
    )


def should_color(color: str) -> bool:
    """Return whether the output has colors, for a value of the option --color."""
    if color == "auto":
        return sys.stdout.isatty() and not initial_environment().get("NO_COLOR")
    return color == "always"


def read_settings(
    settings_file: str | None,
    *,
    config: str | None = None,
    fleet: str | None = None,
    cache: str | None = None,
    shard: str | None = None,
) -> Settings:
    """Load the settings. Arguments from the command line override settings. None means that an argument is missing.

    Raises:
        SettingsError: The settings are invalid, or a URL contains credentials.
    """
    settings = reconciler_settings.load_settings(settings_file, initial_environment(), Path.cwd())
    for name, url in (("CONFIG", config), ("--fleet", fleet)):
        if url is not None and has_credentials(url):
            raise reconciler_settings.SettingsError(
                f"{name}: {redact_url(url)!r} must not contain a user name, password or token (CredentialInUrl):"
                " put credentials into a file that the setting `git.credentials` names; if the @ belongs to a local"
                " path, start the path with ./"
            )
    groups: dict[str, Any] = {}
    options: dict[tuple[str, ...], str] = {}
    if config is not None:
        groups["config"] = settings.config.model_copy(update={"url": config})
        options["config", "url"] = "CONFIG"
    if fleet is not None:
        groups["fleet"] = settings.fleet.model_copy(update={"url": fleet})
        options["fleet", "url"] = "--fleet"
    if cache is not None:
        groups["cache"] = cache
        options["cache",] = "--cache"
    if shard is not None:
        groups["shard"] = shard
        options["shard",] = "--shard"
    return settings.model_copy(update=groups).with_origins(settings.origins.with_options(options))


def require_config_url(settings: Settings) -> str:
    """Return the URL or path of the config. Fail with a usage error if neither arguments nor settings contain it."""
    if not settings.config.url:
        context = click.get_current_context(silent=True)
        parameters = context.command.params if context else ()
        is_option = any("--config" in parameter.opts for parameter in parameters)
        source = "the option --config" if is_option else "the argument CONFIG"
        raise click.UsageError(f"CONFIG is missing: give {source}, or set `config.url` in the settings")
    return settings.config.url


def set_up_logs(settings: Settings, *, service: bool, command_level: str = "warning") -> None:
    """Set up logging to standard error.

    By default, a command logs warnings as text. The service logs JSON lines, or text if standard error is a terminal.

    Args:
        command_level: The lowest level that a command logs. The service uses the level of the settings.
    """
    level, shard = settings.log.level if service else command_level, settings.shard
    as_json = settings.log.format == "json" or (settings.log.format == "auto" and service and not sys.stderr.isatty())
    # Import `log_setup` with the first event, because most commands log no event and start faster without structlog.
    log.configure_with(lambda: log_setup.configure_log(level, shard, as_json=as_json))


@contextmanager
def show_progress() -> Iterator[Callable[[str, int, int], None]]:
    """Yield a callback that shows progress bars. If stderr is not a terminal, the callback does nothing.

    The arguments of the callback are the stage, the number of completed items, and the total number of items. Each
    stage has one bar.
    """
    if not sys.stderr.isatty():
        yield lambda stage, done, total: None
        return
    bars = _ProgressBars(time.monotonic)
    try:
        yield bars.show
    finally:
        bars.close()


class _ProgressBars:
    """Progress bars that appear only if the command takes longer than `_SECONDS_WITHOUT_BARS`."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._start_time = clock()
        self._bar: Progress | None = None
        self._stages: dict[str, TaskID] = {}

    def show(self, stage: str, done: int, total: int) -> None:
        if self._bar is None and self._clock() - self._start_time > _SECONDS_WITHOUT_BARS:
            self._bar = _start_bar()
        if self._bar is not None:
            if stage not in self._stages:
                self._stages[stage] = self._bar.add_task(stage, total=total)
            self._bar.update(self._stages[stage], completed=done, total=total)

    def close(self) -> None:
        if self._bar is not None:
            self._bar.stop()


def _start_bar() -> Progress:
    # Import rich here, because most commands end before a progress bar appears and start faster without the import.
    from rich.console import Console
    from rich.progress import Progress

    bar = Progress(console=Console(stderr=True), transient=True)
    bar.start()
    return bar
