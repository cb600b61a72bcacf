"""The union of several sources: the files of all sources become the files of one package."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import Finding, SourceLocation, downgrade_to_warning
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.functions.function import Item
from reconciler.packages.kptfile import KPTFILE, Kptfile, read_kptfile
from reconciler.packages.package import Package, PackageResource, join_path
from reconciler.packages.source_codes import SourceCodes
from reconciler.packages.write_back import write_back


@dataclass(frozen=True)
class SourceFiles:
    """The rendered files of one source.

    Attributes:
        directory: The folder of the package that receives the files. "" is the root folder.
        has_own_kptfile: Whether a Kptfile among the files comes from the source, and not from its render.
    """

    name: str
    files: FileTree
    directory: str = ""
    has_own_kptfile: bool = True

    def place(self, path: str) -> str:
        """Return the path in the package for a file of the source. The path of the Kptfile does not change."""
        return path if path == KPTFILE else join_path(self.directory, path)


@dataclass(frozen=True)
class SourceUnion:
    """The files of the package, and the findings. If a finding is an error, the files must not be used.

    Attributes:
        source_names: The name of the source of each file.
    """

    files: FileTree
    source_names: Mapping[str, str]
    findings: tuple[Finding, ...] = ()


def select_files(files: FileTree, paths: Iterable[str]) -> FileTree:
    """Return the files at the given paths. Paths that do not exist are omitted."""
    return FileTree({path: files[path] for path in paths if path in files})


def join_folders(folders: Mapping[str, FileTree]) -> FileTree:
    """Return one tree with the files of each folder."""
    return FileTree({join_path(name, path): file for name, files in folders.items() for path, file in files.items()})


def combine_sources(sources: Sequence[SourceFiles], *, last_wins: bool) -> SourceUnion:
    """Return the files of all sources as one package.

    Args:
        last_wins: Whether a resource of a later source replaces the same resource of an earlier source.
    """
    placed = [_place_files(source) for source in sources]
    placed, findings = _remove_repeated_resources(sources, placed, last_wins=last_wins)
    files: dict[str, File] = {}
    owners: dict[str, str] = {}
    for source, tree in zip(sources, placed, strict=True):
        for path, file in tree.items():
            if path in owners:
                findings.append(_create_file_finding(path, owners[path], source.name))
            files[path], owners[path] = file, source.name
    kptfile_source, kptfile_findings = _select_kptfile_source(sources)
    if kptfile_source:
        files[KPTFILE], owners[KPTFILE] = _move_config_paths(kptfile_source), kptfile_source.name
    return SourceUnion(FileTree(files), owners, (*findings, *kptfile_findings))


def _place_files(source: SourceFiles) -> FileTree:
    return FileTree({source.place(path): file for path, file in source.files.items() if path != KPTFILE})


def _select_kptfile_source(sources: Iterable[SourceFiles]) -> tuple[SourceFiles | None, list[Finding]]:
    """Return the only source that has its own Kptfile, or else the first source whose render created a Kptfile."""
    candidates = [source for source in sources if KPTFILE in source.files]
    own = [source for source in candidates if source.has_own_kptfile]
    findings = [_create_file_finding(KPTFILE, own[0].name, other.name) for other in own[1:]]
    return next(iter(own or candidates), None), findings


def _move_config_paths(source: SourceFiles) -> File:
    """Return the Kptfile of a source. Add the folder that receives the source to the `configPath` of each function."""
    file = source.files[KPTFILE]
    kptfile = read_kptfile(file.data)
    pipeline = kptfile.data.get("pipeline") if isinstance(kptfile, Kptfile) else None
    if not source.directory or not isinstance(kptfile, Kptfile) or not isinstance(pipeline, Mapping):
        # If the Kptfile cannot be read, return the file unchanged, because the render reports the error.
        return file
    moved = {name: _move_functions(source, functions) for name, functions in pipeline.items()}
    return replace(file, data=kptfile.with_data({**kptfile.data, "pipeline": moved}).to_bytes())


def _move_functions(source: SourceFiles, functions: Any) -> Any:
    if not isinstance(functions, Sequence) or isinstance(functions, str):
        return functions
    return [
        {**function, "configPath": source.place(function["configPath"])}
        if isinstance(function, Mapping) and isinstance(function.get("configPath"), str)
        else function
        for function in functions
    ]


def _remove_repeated_resources(
    sources: Sequence[SourceFiles], placed: Sequence[FileTree], *, last_wins: bool
) -> tuple[list[FileTree], list[Finding]]:
    """Return the files of all sources without the resources that later sources contain too, and the findings."""
    resources = [Package(files).resources for files in placed]
    last: dict[ObjectKey, tuple[str, PackageResource]] = {}
    removed: list[set[int]] = [set() for _ in sources]
    findings: list[Finding] = []
    for index in reversed(range(len(sources))):
        name = sources[index].name
        repeated = [(number, found) for number, found in enumerate(resources[index]) if found.key in last]
        findings += [
            _create_resource_finding(found, name, *last[found.key], last_wins=last_wins) for _, found in repeated
        ]
        removed[index].update(number for number, _ in repeated)
        for found in filter(_has_identity, resources[index]):
            last.setdefault(found.key, (name, found))
    files = [
        write_back(tree, found, _keep_items(found, numbers), prune=True) if numbers and last_wins else tree
        for tree, found, numbers in zip(placed, resources, removed, strict=True)
    ]
    return files, findings[::-1]


def _has_identity(resource: PackageResource) -> bool:
    return bool(resource.kind and resource.name)


def _keep_items(resources: Sequence[PackageResource], removed: set[int]) -> Iterator[Item]:
    for number, resource in enumerate(resources):
        if number not in removed:
            yield Item(
                resource.package, resource.path, resource.index, resource.data, number, resource.document
            )  # fmt: skip


def _create_resource_finding(
    resource: PackageResource, source: str, other_source: str, other: PackageResource, *, last_wins: bool
) -> Finding:
    places = f'in {resource.file} of source "{source}" and in {other.file} of source "{other_source}"'
    location = SourceLocation(other.file, other.document.line, other.key.reference)
    if last_wins:
        message = f'{other.key} is {places}. The resource of source "{other_source}" is used'
        return downgrade_to_warning(SourceCodes.RESOURCE_REPEATED.finding(message, location))
    message = (
        f"{other.key} is {places}. Next step: remove the resource from one of the sources. To use the resource of"
        f' source "{other_source}", set `onRepeatedResource: lastWins`'
    )
    return SourceCodes.RESOURCE_REPEATED.finding(message, location)


def _create_file_finding(path: str, source: str, other_source: str) -> Finding:
    hint = (
        "remove one of the two files, because only one source can have a Kptfile"
        if path == KPTFILE
        else "set the field directory of one of the two sources"
    )
    message = f'the sources "{source}" and "{other_source}" both contain the file "{path}". Next step: {hint}'
    return SourceCodes.FILE_REPEATED.finding(message, SourceLocation(path))
