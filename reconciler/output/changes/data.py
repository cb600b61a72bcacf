"""Diffs of files in results."""

from __future__ import annotations

from pydantic import Field

from reconciler.catalog.files import FileTree
from reconciler.output.changes.diffs import format_file_diffs
from reconciler.output.envelope import OutputModel


class FileDiff(OutputModel):
    """The unified diff of one file, with masked secrets. The paths in the diff start at the root of the branch."""

    path: str = Field(description="The path in the package.")
    diff: str


def build_diffs(before: FileTree, after: FileTree, folder: str, max_lines: int) -> tuple[FileDiff, ...]:
    """Return the diffs of the changed files.

    Args:
        folder: The path of the package on its branch, without a slash at the end.
        max_lines: The maximum number of lines per diff. The value 0 omits all diffs.
    """
    diffs = format_file_diffs(before, after, folder, max_lines) if max_lines else ()
    return tuple(FileDiff(path=path, diff=diff) for path, diff in diffs)
