"""The places of the objects in the config that request packages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from reconciler.catalog.catalog import ConfigObject
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey
from reconciler.output.fleet.model import TargetEntry


def locate_owners(
    targets: Iterable[TargetEntry], objects: Mapping[ObjectKey, ConfigObject]
) -> Mapping[str, SourceLocation]:
    """Return the file and the line of each owner, by its text in `PackageRow.owner`.

    An owner that the config does not contain any more has no place.
    """
    owners = {row.owner for target in targets for row in target.packages}
    kinds = {owner.partition(" ")[0] for owner in owners}
    return {
        name: SourceLocation(found.file, found.line)
        for found in objects.values()
        if found.key.kind in kinds and (name := str(found.key)) in owners
    }
