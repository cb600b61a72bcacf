"""What commands that look at the past share: they open the config, and what it was."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from reconciler.cli.ends import told_plainly
from reconciler.cli.exits import CannotRunError
from reconciler.cli.reviewing import Setup
from reconciler.cli.shared import config_of, progress
from reconciler.daemon.past import Past
from reconciler.daemon.review import UnknownPlaceError
from reconciler.daemon.verify import Names
from reconciler.reporting.explanation import NothingToExplainError
from reconciler.wiring import build_parts


@contextmanager
def looking_back(setup: Setup) -> Iterator[tuple[Past, Names]]:
    """Open what was, with who knows commits by name; what stops the whole command is told in a sentence."""
    with told_plainly(), progress() as show:
        settings = setup.read()
        parts = build_parts(settings, config_of(settings), fetches=not setup.offline, progress=show)
        with parts.remotes as remotes:
            try:
                yield Past(parts.source, parts.history, remotes, parts.tools), parts.names
            except (UnknownPlaceError, NothingToExplainError) as error:
                raise CannotRunError(str(error)) from error
