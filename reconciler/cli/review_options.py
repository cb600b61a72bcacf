"""Options, argument types and services that review commands and history commands share.

Review commands are `drafts`, `show`, `propose`, `approve` and `reject`. History commands, for example `why` and
`verify`, read earlier commits of the config and of the targets.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from reconciler.bootstrap import options
from reconciler.bootstrap import services as bootstrap_services
from reconciler.cli import service_client
from reconciler.cli.errors import report_errors
from reconciler.cli.exit_codes import ERROR_FINDING, SUCCESS, CannotRunError
from reconciler.cli.options import (
    cache_option,
    fleet_option,
    output_option,
    read_settings,
    require_config_url,
    set_up_logs,
    settings_option,
    show_progress,
)
from reconciler.git import local_repository
from reconciler.inspect import package_history
from reconciler.krm import field_text, selectors
from reconciler.lazy_dataclasses import dataclass
from reconciler.output.explain import model as explain_model
from reconciler.output.review import action_results
from reconciler.reconcile.remotes import targets as remotes_targets
from reconciler.review import actions, drafts
from reconciler.server import remote_review

if TYPE_CHECKING:
    from collections.abc import Sequence

    from reconciler.inspect.package_history import PastReader
    from reconciler.output.review.action_results import ReviewActionResult
    from reconciler.output.review.models import ReviewVerb
    from reconciler.reconcile.remotes.targets import ReviewSelection, TargetReference
    from reconciler.reconcile.review_actions import PersonSource, ReviewAction
    from reconciler.review.drafts import DraftReview
    from reconciler.server.remote_review import RemoteReview, RemoteVerb
    from reconciler.settings import Settings

Command = TypeVar("Command", bound=Callable[..., Any])


class SelectorType(click.ParamType[str]):
    """Type of a command-line option that contains a Kubernetes label selector."""

    name = "selector"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Check the label selector. Fail with a usage error if it is invalid."""
        if not value.strip():
            self.fail("must not be empty; --all selects every cluster", param, ctx)
        try:
            selectors.matches_label_query(value, {})
        except selectors.LabelQueryError as error:
            self.fail(str(error), param, ctx)
        return value


class TargetType(click.ParamType["TargetReference"]):
    """Type of command-line arguments of the form CLUSTER or CLUSTER/PACKAGE.

    `allowed` describes the form in error messages.
    """

    name = "target"
    allowed = "CLUSTER or CLUSTER/PACKAGE"

    def convert(
        self, value: str | TargetReference, param: click.Parameter | None, ctx: click.Context | None
    ) -> TargetReference:
        """Parse the argument. Fail with a usage error if the text has a different form."""
        if isinstance(value, remotes_targets.TargetReference):
            return value
        cluster, slash, package = value.partition("/")
        if not cluster or (slash and not package.strip("/")):
            self.fail(f"must be {self.allowed}, but is {field_text.quote_value(value)}", param, ctx)
        return remotes_targets.TargetReference(cluster, package.strip("/"))


class PersonType(click.ParamType[tuple[str, str]]):
    """Type of a command-line option of the form `Name <mail>`."""

    name = "person"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Parse the name and the mail address. Fail with a usage error if the text has a different form."""
        identity = local_repository.parse_identity(value) if isinstance(value, str) else value
        if identity is None or (isinstance(value, str) and not value.endswith(">")):
            self.fail(
                'must be a name and an address, for example "Ada <ada@example.com>", but is'
                f" {field_text.quote_value(value)}",
                param,
                ctx,
            )
        return identity


selector_option = click.option(
    "-l",
    "--selector",
    type=SelectorType(),
    help="Select the clusters with these labels, for example region=north,!test.",
)
targets_argument = click.argument("targets", metavar="[CLUSTER[/PACKAGE]]...", nargs=-1, type=TargetType())
removals_option = click.option(
    "--removals",
    is_flag=True,
    help="Also select drafts that delete packages. CLUSTER/PACKAGE selects such a draft without this option.",
)
author_option = click.option(
    "--author",
    type=PersonType(),
    help='The person who performs the action, as "Name <mail>". Default: your Git identity.',
)
accept_conflicts_option = click.option(
    "--accept-conflicts",
    is_flag=True,
    help="Accept the conflicts that the command prints. Without this option, drafts with conflicts are refused.",
)
offline_option = click.option("--offline", is_flag=True, help="Fetch nothing. Read all repositories from the cache.")


@dataclass(frozen=True)
class CommandSetup:
    """The options of the command line that locate the config, the settings and the repositories.

    Attributes:
        offline: Whether to use the last fetch of each remote instead of a new fetch.
        audits: Whether to log events at the level of the service, so that the log contains the review actions.
    """

    config: str | None
    settings_file: str | None
    fleet: str | None
    cache: str | None
    offline: bool = False
    audits: bool = False

    def read(self) -> Settings:
        """Load the settings and set up the logs.

        Raises:
            SettingsError: The settings are invalid.
        """
        settings = read_settings(self.settings_file, config=self.config, fleet=self.fleet, cache=self.cache)
        set_up_logs(settings, service=self.audits)
        return settings


def add_setup_options(command: Command) -> Command:
    """Add the options of CommandSetup to a command.

    The config is the option --config here instead of an argument, because the arguments of these commands are targets.
    """
    config = click.option("--config", metavar="CONFIG", help="The config. Overrides the setting `config.url`.")
    for option in (cache_option, fleet_option, settings_option, config):
        command = option(command)
    return command


@contextmanager
def open_review(setup: CommandSetup, *, should_sign: bool = False) -> Iterator[DraftReview]:
    """Yield a DraftReview, which reads the drafts of all targets.

    Args:
        should_sign: Whether the commits that the caller writes are signed.

    Raises:
        CannotRunError: The settings, a repository or a target cannot be used.
    """
    with report_errors(), show_progress() as show:
        settings = setup.read()
        services = bootstrap_services.build_services(
            settings, require_config_url(settings), can_fetch=not setup.offline, report_progress=show,
            should_sign=should_sign,
        )  # fmt: skip
        with services.remotes as remotes:
            try:
                yield drafts.DraftReview(services.source, remotes, services.pass_services)
            except remotes_targets.UnknownTargetError as error:
                raise CannotRunError(str(error)) from error


def add_selection_options(command: Command) -> Command:
    """Add the arguments and options that select drafts to a command."""
    all_option = click.option("--all", "is_all", is_flag=True, help="Select every open draft.")
    for option in (output_option("text", "json"), selector_option, all_option, targets_argument):
        command = option(command)
    return add_setup_options(command)


@dataclass(frozen=True)
class DraftSelection:
    """The drafts that the command line selects, and the output format."""

    targets: tuple[TargetReference, ...]
    is_all: bool
    selector: str | None
    output: str
    removals: bool = False

    def build_review_selection(self) -> ReviewSelection:
        """Return the selected drafts.

        The user must select drafts by targets, by --selector or by --all. A combination, or no selection, is a usage
        error.
        """
        kinds = [bool(self.targets), self.is_all, self.selector is not None]
        if sum(kinds) != 1:
            raise click.UsageError("select drafts in exactly one way: CLUSTER[/PACKAGE]..., --selector or --all")
        return remotes_targets.ReviewSelection(self.targets, self.selector or "", self.removals)

    def build_remote_review(self, verb: RemoteVerb, reason: str = "", **more: bool) -> RemoteReview:
        """Return the request to a service to apply a review action to the selected drafts.

        Raises:
            click.UsageError: The options do not select the drafts in exactly one way.
        """
        self.build_review_selection()
        references = frozenset((reference.cluster, reference.package) for reference in self.targets)
        return remote_review.RemoteReview(
            verb, references, self.selector or "", reason, includes_removals=self.removals, **more
        )


def run_review_action(setup: CommandSetup, selection: DraftSelection, action: ReviewAction) -> int:
    """Run a review action, and print the results. Return 1 if the action failed for a draft, otherwise 0."""
    review_selection = selection.build_review_selection()
    with open_review(setup, should_sign=True) as review:
        results = actions.apply_review_action(review, review_selection, action)
    return _print_results(results, selection, action.verb, review.config_id, action.person)


def add_server_options(command: Command) -> Command:
    """Add the options for an action through the API of a running service."""
    return _add_server_options(
        command,
        "Let the daemon with this URL apply the action, for example https://reconciler.example.com. It needs no access"
        " to the repositories.",
        "The file with an access token for --server. The owner of the token is the author of the action.",
    )


def add_read_server_options(command: Command) -> Command:
    """Add the options to read from the API of a running service."""
    return _add_server_options(
        command,
        "Read from the daemon with this URL, for example https://reconciler.example.com. It needs no access to the"
        " repositories.",
        "The file with an access token for --server.",
    )


def _add_server_options(command: Command, server_help: str, token_help: str) -> Command:
    server = click.option("--server", metavar="URL", help=server_help)
    file_type = click.Path(path_type=Path, dir_okay=False)
    token_file = click.option("--token-file", metavar="FILE", type=file_type, help=token_help)
    return server(token_file(command))


@dataclass(frozen=True)
class ServerOptions:
    """The service that a command uses. `url` is None if the command itself uses the repositories."""

    url: str | None
    token_file: Path | None

    def check(self, setup: CommandSetup, **others: object) -> bool:
        """Return whether the command uses a service.

        If the command uses a service, refuse options that have no effect with a service.

        Args:
            others: More options that have no effect with a service. Maps the name of each option to its value.

        Raises:
            click.UsageError: The options are not valid.
        """
        if self.url is None:
            if self.token_file:
                raise click.UsageError("--token-file requires --server")
            return False
        values = {
            "config": setup.config, "settings": setup.settings_file, "fleet": setup.fleet, "cache": setup.cache,
            "offline": setup.offline, **others,
        }  # fmt: skip
        if wrong := [f"--{name}" for name, value in values.items() if value not in (None, "", False)]:
            raise click.UsageError(f"--server cannot be used with {', '.join(wrong)}")
        return True


def run_remote_action(server: ServerOptions, selection: DraftSelection, review: RemoteReview) -> int:
    """Let a service apply a review action, and print the results.

    Return exit status 1 if the action failed for a draft. Otherwise return 0.

    Raises:
        CannotRunError: The service has refused the request, or does not respond.
    """
    with service_client.open_client(server.url or "", server.token_file) as client:
        results = remote_review.apply_remote_action(client, review)
    return _print_results(results, selection, review.verb, "", None)


def _print_results(
    results: Sequence[ReviewActionResult],
    selection: DraftSelection,
    verb: ReviewVerb,
    config: str,
    person: tuple[str, str] | None,
) -> int:
    result = action_results.build_review_result(results, verb, config, person)
    click.echo(result.to_json() if selection.output == "json" else action_results.format_review_text(result))
    return SUCCESS if all(result.is_successful for result in results) else ERROR_FINDING


@dataclass(frozen=True)
class Person:
    """The person who performs a review action, and the source of the name and mail address."""

    identity: tuple[str, str]
    source: PersonSource


def get_current_person(setup: CommandSetup, author: tuple[str, str] | None) -> Person:
    """Return the person who performs a review action.

    This is the person from `--author`, the configured Git user, or the author in the settings, in this order. The
    output of the command contains the source, because an automated job may have no Git user.
    """
    if author:
        return Person(author, "option")
    with report_errors():
        if person := local_repository.read_user_identity(Path.cwd()):
            return Person(person, "git")
        return Person(options.build_git_options(setup.read()).author, "settings")


@contextmanager
def open_history(setup: CommandSetup) -> Iterator[PastReader]:
    """Yield a reader of earlier commits.

    Raises:
        CannotRunError: The settings, a repository, a target or a value cannot be used.
    """
    with report_errors(), show_progress() as show:
        settings = setup.read()
        services = bootstrap_services.build_services(
            settings, require_config_url(settings), can_fetch=not setup.offline, report_progress=show
        )
        with services.remotes as remotes:
            try:
                yield package_history.PastReader(
                    services.source,
                    services.open_config_history,
                    remotes,
                    services.pass_services,
                    services.resolve_commit,
                )
            except (remotes_targets.UnknownTargetError, explain_model.ValueNotFoundError) as error:
                raise CannotRunError(str(error)) from error
