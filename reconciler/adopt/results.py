"""Compares the content of each imported package with the render of the new config, and builds the result entries."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from reconciler.adopt.comparison import compare_packages
from reconciler.adopt.generated import GeneratedConfig
from reconciler.adopt.units import Choice, NotImported, Unit
from reconciler.catalog.files import FileTree
from reconciler.lazy_dataclasses import dataclass, field
from reconciler.output.adoption.result import (
    MAX_DIFFERENCES,
    AdoptedUnit,
    AdoptionItem,
    ChoiceEntry,
    NotImportedEntry,
    WrittenPath,
)


@dataclass(frozen=True)
class Rendered:
    """The render of a config.

    Attributes:
        packages: Maps the cluster and path of each package to its files, or to the reason why it was not rendered.
        errors: Maps each object that could not be processed, written as `Kind/name`, to its error.
    """

    packages: Mapping[tuple[str, str], FileTree | str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def get(self, cluster: str, package: str, owner: str) -> FileTree | str:
        """Return the files of a package, or the reason why it was not rendered."""
        found = self.packages.get((cluster, package))
        return found if found is not None else self.errors.get(owner, "the config does not request the package")


def list_rendered(generated: GeneratedConfig, rendered: Rendered) -> Mapping[tuple[str, str], FileTree | str]:
    """Map the cluster and path of each requested package to its files, or to the reason why the render failed."""
    return {(cluster, path): rendered.get(cluster, path, owner) for (cluster, path), owner in generated.owners.items()}


def verify_units(
    units: Iterable[Unit], generated: GeneratedConfig, rendered: Rendered, ignored: Sequence[Sequence[str]]
) -> Iterator[AdoptedUnit]:
    """Compare each unit (one package on one cluster) with its render, and yield the results."""
    owners = generated.owners
    for unit in units:
        owner = owners.get((unit.cluster, unit.package), "")
        compared = _compare(unit, rendered.get(unit.cluster, unit.package, owner), ignored)
        reason, differences = (compared, ()) if isinstance(compared, str) else ("", tuple(compared))
        yield AdoptedUnit(
            type="unit",
            cluster=unit.cluster,
            package=unit.package,
            owner=owner,
            result="NotVerified" if reason else "Different" if differences else "Equal",
            reason=reason,
            differences=differences[:MAX_DIFFERENCES],
            is_written=True,
        )


def _compare(unit: Unit, rendered: FileTree | str, ignored: Sequence[Sequence[str]]) -> Sequence[str] | str:
    """Return the differences between a unit and its render, or the reason why they cannot be compared."""
    if isinstance(rendered, str):
        return f"the package was not rendered: {rendered}"
    return unit.unverified_reason or compare_packages(unit.files, rendered, ignored, unit.namespace)


def build_items(
    units: Iterable[AdoptedUnit],
    not_imported: Iterable[NotImported],
    choices: Iterable[Choice],
    written: Iterable[str],
) -> tuple[AdoptionItem, ...]:
    """Return the items of the result in a fixed order."""
    ordered = sorted(units, key=lambda unit: (unit.cluster, unit.package))
    entries = sorted(
        (NotImportedEntry(type="notImported", **vars(entry)) for entry in set(not_imported)),
        key=lambda entry: (entry.file, entry.line, entry.field, entry.reason),
    )
    listed = (
        ChoiceEntry(type="choice", package=choice.package, subject=choice.subject, reason=choice.reason)
        for choice in choices
    )
    return (*ordered, *entries, *listed, *(WrittenPath(type="file", path=path) for path in written))
