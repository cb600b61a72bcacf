"""Real packages with changes of upstream and local changes, as files and as documents."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from benchmarks.beside.programs import SkippedError
from benchmarks.scale.world import PACKAGES_FOLDER
from reconciler.krm.yaml import Document, parse_yaml
from tests.real.line_edits import applied, generate_edits
from tests.real.packages import package_files

Files = Mapping[str, str]


@dataclass(frozen=True)
class EditedPackage:
    """The files of a package: the merge base, the new upstream version, and the local version."""

    name: str
    origin: Files
    updated: Files
    local: Files


def list_edited_packages() -> list[EditedPackage]:
    """Return all packages with a Kptfile. The edits of each side are the same in each run.

    Raises:
        SkippedError: The packages are not on this machine.
    """
    folders = sorted({file.parent for file in PACKAGES_FOLDER.rglob("Kptfile")})
    if not folders:
        raise SkippedError(f"the packages are read from {PACKAGES_FOLDER}, which does not exist")
    packages = []
    for folder in folders:
        name = folder.relative_to(PACKAGES_FOLDER).as_posix()
        origin = {path: data.decode() for path, data in package_files(folder).items()}
        edits = generate_edits(origin, f"{name}#beside")
        packages.append(EditedPackage(name, origin, applied(origin, edits.second), applied(origin, edits.people)))
    return packages


def list_documents(package: EditedPackage) -> Iterator[tuple[Document, Document, Document]]:
    """Yield the documents that both sides changed: base, upstream and local."""
    for path, text in package.origin.items():
        sides = (text, package.updated.get(path, ""), package.local.get(path, ""))
        if path.endswith(".yaml") and all(sides):
            documents = zip(*(parse_yaml(side.encode()).documents for side in sides), strict=False)
            yield from (versions for versions in documents if len({item.text for item in versions}) == len(sides))
