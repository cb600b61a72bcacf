"""Reads the file of the option --clusters, which lists clusters."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from reconciler.cli.exit_codes import CannotRunError
from reconciler.output.scaffold import entries as scaffold_entries

if TYPE_CHECKING:
    from reconciler.output.scaffold.entries import ClusterEntry


def read_clusters_file(file: Path) -> tuple[ClusterEntry, ...]:
    """Return the clusters in the file.

    Raises:
        CannotRunError: A line of the file is invalid.
        OSError: The file cannot be read.
    """
    try:
        return scaffold_entries.parse_clusters_file(file.read_text(encoding="utf-8"))
    except ValueError as error:
        raise CannotRunError(f"--clusters {file}: {error}") from None
