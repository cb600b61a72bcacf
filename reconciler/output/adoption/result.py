"""The result of `reconciler adopt` as models."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from typing import Literal

from pydantic import Field

from reconciler.output.envelope import CommandResult, OutputModel, create_cli_metadata

SourceFormat = Literal["folders", "argocd", "flux"]
Verification = Literal["Equal", "Different", "NotVerified"]
MAX_DIFFERENCES = 20


class AdoptedUnit(OutputModel):
    """One package on one cluster, and whether its content is equal to the expected content."""

    type: Literal["unit"]
    cluster: str
    package: str
    owner: str = Field(default="", description="The object that requests the package, as `Kind/name`.")
    result: Verification
    reason: str = Field(default="", description="The reason for `NotVerified`.")
    differences: tuple[str, ...] = Field(
        default=(), description="The first differences: the resource and the JSON pointer of the field."
    )
    is_written: bool = Field(default=False, description="Whether the written config requests the package.")


class NotImportedEntry(OutputModel):
    """A part of the imported source that has no equivalent in a config of the reconciler."""

    type: Literal["notImported"]
    file: str
    line: int = 0
    field: str = ""
    reason: str
    suggestion: str


class ChoiceEntry(OutputModel):
    """A decision of the import, with its reason. Only `--explain` lists decisions."""

    type: Literal["choice"]
    package: str
    subject: str
    reason: str


class WrittenPath(OutputModel):
    """A file or repository that the command wrote, relative to the output folder."""

    type: Literal["file"]
    path: str


AdoptionItem = AdoptedUnit | NotImportedEntry | ChoiceEntry | WrittenPath


class AdoptionSummary(OutputModel):
    """The numbers of the import. `equal`, `different` and `not_verified` count a package once for each cluster."""

    format: SourceFormat
    folder: str
    clusters: int
    packages: int = Field(description="The number of PackageVariantSets and PackageVariants.")
    equal: int
    different: int
    not_verified: int
    not_imported: int = Field(description="The number of parts of the source that were not imported.")
    basis: Literal["files", "rendered", "original"] = Field(
        description=(
            "The expected content: the `files` of the source, the `rendered` manifests of --rendered, or a render of "
            "the `original` objects by the same engine (a weaker check)."
        )
    )


class AdoptionResult(CommandResult):
    """The result of `reconciler adopt`: the packages of the clusters, and the parts that were not imported."""

    kind: Literal["Adoption"] = "Adoption"
    items: tuple[AdoptionItem, ...]
    summary: AdoptionSummary

    @property
    def units(self) -> tuple[AdoptedUnit, ...]:
        """The packages of the clusters."""
        return tuple(item for item in self.items if isinstance(item, AdoptedUnit))

    @property
    def not_imported(self) -> tuple[NotImportedEntry, ...]:
        """The parts of the imported source that have no equivalent in a config of the reconciler."""
        return tuple(item for item in self.items if isinstance(item, NotImportedEntry))

    @property
    def is_complete(self) -> bool:
        """Whether all parts of the source were imported, and all packages are equal to the expected content."""
        return all(unit.result == "Equal" for unit in self.units) and not self.not_imported


def build_adoption_result(
    items: Iterable[AdoptionItem],
    *,
    source_format: SourceFormat,
    folder: str,
    clusters: int,
    packages: int,
    basis: Literal["files", "rendered", "original"],
) -> AdoptionResult:
    """Return the result with these items, and count the items in its summary."""
    listed = tuple(items)
    units = [item for item in listed if isinstance(item, AdoptedUnit)]
    counts = Counter(unit.result for unit in units)
    summary = AdoptionSummary(
        format=source_format,
        folder=folder,
        clusters=clusters,
        packages=packages,
        equal=counts["Equal"],
        different=counts["Different"],
        not_verified=counts["NotVerified"],
        not_imported=sum(isinstance(item, NotImportedEntry) for item in listed),
        basis=basis,
    )
    return AdoptionResult(metadata=create_cli_metadata(), items=listed, summary=summary)
