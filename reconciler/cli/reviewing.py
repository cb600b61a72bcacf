"""What the commands of the review loop share: whom they ask for, who is at the keyboard, how they end."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import ERROR_FINDING, FINE, CannotRunError
from reconciler.cli.shared import (
    cache_option,
    config_of,
    fleet_option,
    progress,
    read_settings,
    set_up_logs,
    settings_option,
)
from reconciler.daemon.acting import act_on
from reconciler.daemon.acts import Act, PersonSource
from reconciler.daemon.review import Asked, Place, Review, UnknownPlaceError
from reconciler.gitio.identity import parse_person, read_person
from reconciler.krm.label_query import LabelQueryError, matches_query
from reconciler.reporting.acted import acted_data, acted_text
from reconciler.settings import Settings
from reconciler.wiring import build_parts, git_options

Command = TypeVar("Command", bound=Callable[..., Any])


class SelectorType(click.ParamType[str]):
    """A label selector."""

    name = "selector"

    def convert(self, value: str, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Return the selector; a usage error says what is allowed."""
        if not value.strip():
            self.fail("must not be empty; --all means every cluster", param, ctx)
        try:
            matches_query(value, {})
        except LabelQueryError as error:
            self.fail(str(error), param, ctx)
        return value


class PlaceType(click.ParamType[Place]):
    """CLUSTER, or CLUSTER/PACKAGE; `allowed` says it in the words of the command."""

    name = "place"
    allowed = "CLUSTER or CLUSTER/PACKAGE"

    def convert(self, value: str | Place, param: click.Parameter | None, ctx: click.Context | None) -> Place:
        """Return the place; a usage error says what is allowed."""
        if isinstance(value, Place):
            return value
        cluster, slash, package = value.partition("/")
        if not cluster or (slash and not package.strip("/")):
            self.fail(f"must be {self.allowed}, not {value!r}", param, ctx)
        return Place(cluster, package.strip("/"))


class PersonType(click.ParamType[tuple[str, str]]):
    """`Name <mail>`."""

    name = "person"

    def convert(
        self, value: str | tuple[str, str], param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, str]:
        """Return name and address; a usage error says what is allowed."""
        found = parse_person(value) if isinstance(value, str) else value
        if found is None or (isinstance(value, str) and not value.endswith(">")):
            self.fail(f'must be a name and an address, as "Ada <ada@example.com>", not {value!r}', param, ctx)
        return found


selector_option = click.option(
    "-l", "--selector", type=SelectorType(), help="Clusters that have these labels, as region=north,!test."
)
places_argument = click.argument("places", metavar="[CLUSTER[/PACKAGE]]...", nargs=-1, type=PlaceType())
removals_option = click.option(
    "--removals", is_flag=True, help="Drafts that remove packages, too, where only their cluster is named."
)
author_option = click.option(
    "--author", type=PersonType(), help='Who does it, as "Name <mail>"; default: as your Git knows you.'
)
accept_conflicts_option = click.option(
    "--accept-conflicts",
    is_flag=True,
    help="Accept the conflicts of the drafts, which are printed first; without it such drafts are refused.",
)
offline_option = click.option(
    "--offline", is_flag=True, help="Fetch nothing: look at what the cache has of every repository."
)
_output_option = click.option(
    "-o", "--output", type=click.Choice(["text", "json"]), default="text", help="How to tell it."
)


@dataclass(frozen=True)
class Setup:
    """Where a command works: the config, and what the command line says of the settings.

    `offline`: remotes are as they were when somebody last fetched them.
    """

    config: str | None
    settings_file: str | None
    fleet: str | None
    cache: str | None
    offline: bool = False
    audits: bool = False

    def read(self) -> Settings:
        """Return the settings, with logs set up: `audits` writes events as a service does. Raises SettingsError."""
        settings = read_settings(self.settings_file, config=self.config, fleet=self.fleet, cache=self.cache)
        set_up_logs(settings, service=self.audits)
        return settings


def setup_options(command: Command) -> Command:
    """Give a command the options that say where it works; as positions are taken by places, CONFIG is an option."""
    config = click.option("--config", metavar="CONFIG", help="The config, in place of config.url.")
    for option in (cache_option, fleet_option, settings_option, config):
        command = option(command)
    return command


@contextmanager
def reviewing(setup: Setup) -> Iterator[Review]:
    """Open the config and its destinations; what stops the whole command is told in a sentence."""
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(settings, config_of(settings), progress=show)
        with parts.remotes as remotes:
            try:
                yield Review(parts.source, remotes, parts.tools)
            except UnknownPlaceError as error:
                raise CannotRunError(str(error)) from error


def bulk_options(command: Command) -> Command:
    """Give a command its places, and the ways to mean many."""
    everything = click.option("--all", "everything", is_flag=True, help="Every open draft.")
    for option in (_output_option, selector_option, everything, places_argument):
        command = option(command)
    return setup_options(command)


@dataclass(frozen=True)
class Bulk:
    """What is meant, as the command line says."""

    places: tuple[Place, ...]
    everything: bool
    selector: str | None
    output: str
    removals: bool = False

    def asked(self) -> Asked:
        """Return what is asked for; a usage error unless it is said in exactly one way."""
        ways = [bool(self.places), self.everything, self.selector is not None]
        if sum(ways) != 1:
            raise click.UsageError("name what is meant in one way: CLUSTER[/PACKAGE]..., --selector or --all")
        return Asked(self.places, self.selector or "", self.removals)


def run_act(setup: Setup, bulk: Bulk, act: Act) -> int:
    """Do it, tell what became of it, and return the exit status: 1 when something could not be done."""
    asked = bulk.asked()
    with reviewing(setup) as review:
        acted = act_on(review, asked, act)
    data, text = acted_data(acted, act.person), acted_text(acted, act.person)
    click.echo(json.dumps(data, indent=2) if bulk.output == "json" else text)
    return FINE if all(one.is_well for one in acted) else ERROR_FINDING


@dataclass(frozen=True)
class Person:
    """Who acts, and what named the person."""

    identity: tuple[str, str]
    source: PersonSource


def person_at(setup: Setup, author: tuple[str, str] | None) -> Person:
    """Return who acts: whom the command line names, else whom Git knows here, else the author of the settings.

    A pipeline without anybody's identity acts as the reconciler, and what it prints says so.
    """
    if author:
        return Person(author, "option")
    with told_plainly():
        if person := read_person(Path.cwd()):
            return Person(person, "git")
        return Person(git_options(setup.read()).author, "settings")
