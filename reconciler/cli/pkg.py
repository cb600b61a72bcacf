"""`reconciler pkg`: the package engine by hand, on one package in a folder, without a config (design 7)."""

from __future__ import annotations

import click

from reconciler.cli.lazy import LazyGroup

VERBS = {
    "get": "Get a package from a repository.",
    "update": "Bring a package to where its upstream stands, edits kept.",
    "render": "Run a package's functions, and write what they make of it.",
    "diff": "Show how a package differs from its upstream.",
}


@click.group("pkg", cls=LazyGroup, table=VERBS, prefix="reconciler.cli.pkg_")
def command() -> None:
    """Get, update, render or compare one kpt package in a folder; no config repository is needed."""
