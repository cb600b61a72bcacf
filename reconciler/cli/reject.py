"""`reconciler reject`: reject proposed drafts, or delete drafts."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from reconciler.cli.review_options import (
    CommandSetup,
    DraftSelection,
    ServerOptions,
    add_selection_options,
    add_server_options,
    author_option,
    get_current_person,
    run_remote_action,
    run_review_action,
)
from reconciler.reconcile import review_actions

if TYPE_CHECKING:
    from pathlib import Path

    from reconciler.reconcile.remotes.targets import TargetReference


@click.command("reject")
@add_selection_options
@add_server_options
@author_option
@click.option(
    "--reason", default="", help="The reason for the rejection. Other commands show the reason until the draft changes."
)
@click.option(
    "--drop",
    is_flag=True,
    help="Delete the draft. A later pass creates the draft again only with different content.",
)
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
    reason: str,
    drop: bool,
) -> int:
    """Mark proposed drafts as not proposed. The next pass can change these drafts again."""
    selection = DraftSelection(targets, is_all, selector, output)
    setup = CommandSetup(config, settings_file, fleet, cache, audits=True)
    service = ServerOptions(server, token_file)
    if service.check(setup, author=author, drop=drop):
        review = selection.build_remote_review("reject", reason)
        return run_remote_action(service, selection, review)
    person = get_current_person(setup, author)
    action = review_actions.ReviewAction(
        "drop" if drop else "reject", person.identity, reason, person_source=person.source
    )
    return run_review_action(setup, selection, action)
