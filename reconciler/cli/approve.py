"""`reconciler approve`: publish proposed drafts, or single packages of proposed drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.review_options import (
    CommandSetup,
    DraftSelection,
    ServerOptions,
    accept_conflicts_option,
    add_selection_options,
    add_server_options,
    author_option,
    get_current_person,
    removals_option,
    run_remote_action,
    run_review_action,
)
from reconciler.reconcile import review_actions

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.reconcile.remotes.targets import TargetReference


@click.command("approve")
@add_selection_options
@add_server_options
@removals_option
@author_option
@click.option("--propose", "includes_drafts", is_flag=True, help="Also approve drafts that are not proposed.")
@accept_conflicts_option
@click.option("-m", "--message", default="", help="A message for the commit.")
def command(
    targets: tuple[TargetReference, ...],
    is_all: bool,
    selector: str | None,
    author: tuple[str, str] | None,
    output: str,
    config: str | None,
    settings_file: str | None,
    fleet: str | None,
    cache: str | None,
    server: str | None,
    token_file: Path | None,
    removals: bool,
    includes_drafts: bool,
    accept_conflicts: bool,
    message: str,
) -> int:
    """Publish drafts on their target branches.

    If all packages of a draft branch are approved, the draft branch is merged. Single packages are published with one
    commit on the target branch.
    """
    selection = DraftSelection(targets, is_all, selector, output, removals)
    setup = CommandSetup(config, settings_file, fleet, cache, audits=True)
    service = ServerOptions(server, token_file)
    if service.check(setup, author=author):
        review = selection.build_remote_review(
            "approve", message, accepts_conflicts=accept_conflicts, includes_unproposed=includes_drafts
        )
        return run_remote_action(service, selection, review)
    person = get_current_person(setup, author)
    action = review_actions.ReviewAction(
        "approve", person.identity, message, includes_drafts, accept_conflicts, person_source=person.source
    )
    return run_review_action(setup, selection, action)
