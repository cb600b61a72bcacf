"""What an update comes to."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

from reconciler.krm.conflicts import Conflict
from reconciler.krm.findings import Finding, errors
from reconciler.snapshot.files import FileTree


@dataclass(frozen=True)
class Updated:
    """The files of a package, or of a part of it, after an update.

    `conflicts` are what both sides changed. With an error among the findings the files must not be used.
    """

    files: FileTree
    conflicts: tuple[Conflict, ...] = ()
    findings: tuple[Finding, ...] = ()

    @property
    def has_failed(self) -> bool:
        """Whether the files must not be used."""
        return bool(errors(self.findings))

    def noting(self, conflicts: Iterable[Conflict] = (), findings: Iterable[Finding] = ()) -> Updated:
        """Return the same files with more to tell, in front."""
        return replace(self, conflicts=(*conflicts, *self.conflicts), findings=(*findings, *self.findings))


def combined(parts: Iterable[Updated]) -> Updated:
    """Return the parts, which share no path, as one."""
    every = tuple(parts)
    return Updated(
        FileTree({path: file for each in every for path, file in each.files.items()}),
        tuple(conflict for each in every for conflict in each.conflicts),
        tuple(finding for each in every for finding in each.findings),
    )
