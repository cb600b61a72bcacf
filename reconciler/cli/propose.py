"""`reconciler propose`: mark drafts as ready for approval. The daemon does not change a proposed draft."""

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


@click.command("propose")
@add_selection_options
@add_server_options
@removals_option
@author_option
@accept_conflicts_option
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
    accept_conflicts: bool,
) -> int:
    """Mark drafts as ready for approval.

    The command refuses a draft with conflicts, unless --accept-conflicts is set. In a deployment repository, it also
    refuses a draft with an unmet readiness gate.
    """
    selection = DraftSelection(targets, is_all, selector, output, removals)
    setup = CommandSetup(config, settings_file, fleet, cache, audits=True)
    service = ServerOptions(server, token_file)
    if service.check(setup, author=author):
        review = selection.build_remote_review("propose", accepts_conflicts=accept_conflicts)
        return run_remote_action(service, selection, review)
    person = get_current_person(setup, author)
    action = review_actions.ReviewAction(
        "propose", person.identity, accepts_conflicts=accept_conflicts, person_source=person.source
    )
    return run_review_action(setup, selection, action)
