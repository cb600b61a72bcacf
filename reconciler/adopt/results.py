"""The entries of the result: compares each unit with its render."""

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
        packages: The files of each package by cluster and path, or the reason why the package was not rendered.
        errors: The error of each object that could not be processed, as `Kind/name`.
    """

    packages: Mapping[tuple[str, str], FileTree | str] = field(default_factory=dict)
    errors: Mapping[str, str] = field(default_factory=dict)

    def get(self, cluster: str, package: str, owner: str) -> FileTree | str:
        """Return the files of a package, or the reason why it was not rendered."""
        found = self.packages.get((cluster, package))
        return found if found is not None else self.errors.get(owner, "the config does not request it")


def list_rendered(generated: GeneratedConfig, rendered: Rendered) -> Mapping[tuple[str, str], FileTree | str]:
    """Return the files of each requested package by cluster and path, or the reason why it was not rendered."""
    return {
        (cluster, path): rendered.get(cluster, path, package.owner)
        for package in generated.packages
        for cluster in package.clusters
        for path in package.packages
    }


def verify_units(
    units: Iterable[Unit], generated: GeneratedConfig, rendered: Rendered, ignored: Sequence[Sequence[str]]
) -> Iterator[AdoptedUnit]:
    """Yield the result of each unit."""
    owners = {
        (cluster, path): package.owner
        for package in generated.packages
        for cluster in package.clusters
        for path in package.packages
    }
    for unit in units:
        owner = owners.get((unit.cluster, unit.package), "")
        entry = AdoptedUnit(
            type="unit",
            cluster=unit.cluster,
            package=unit.package,
            owner=owner,
            result="NotVerified",
            is_written=True,
        )
        yield entry.model_copy(update=_verify(unit, rendered.get(unit.cluster, unit.package, owner), ignored))


def _verify(unit: Unit, rendered: FileTree | str, ignored: Sequence[Sequence[str]]) -> Mapping[str, object]:
    if isinstance(rendered, str):
        return {"reason": f"the package was not rendered: {rendered}"}
    if unit.unverified_reason:
        return {"reason": unit.unverified_reason}
    differences = compare_packages(unit.files, rendered, ignored, unit.namespace)
    if isinstance(differences, str):
        return {"reason": differences}
    if not differences:
        return {"result": "Equal"}
    return {"result": "Different", "differences": tuple(differences[:MAX_DIFFERENCES])}


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
