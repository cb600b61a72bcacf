"""Injection points: where a package asks for configuration from outside (porch 8.3, steps 1 to 3)."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.caching import cached
from reconciler.krm.identity import split_api_version
from reconciler.packages.package import Package, documents_of
from reconciler.packages.parsing import Unparsable
from reconciler.snapshot.files import FileTree

INJECTION = "kpt.dev/config-injection"
# the seed names the first, Porch writes the second and published packages read it: both are written, either is read
INJECTED = ("kpt.dev/injected-resource-name", "kpt.dev/injected-resource")
CONDITION_PREFIX = "config.injection."
_CHOICES = ("required", "optional")
# the files of the packages in flight, of which nearly all have no point
_REMEMBERED_FILES = 4096


@dataclass(frozen=True)
class InjectionPoint:
    """A resource of the package that takes its `data` or `spec` from a context object."""

    file: str
    index: int
    api_version: str
    kind: str
    name: str
    required: bool
    injected: str
    resource: Mapping[str, Any]

    @property
    def condition_type(self) -> str:
        """The type of its condition and gate; group, version and namespace do not tell points apart."""
        return f"{CONDITION_PREFIX}{self.kind}.{self.name}"

    @property
    def group_version(self) -> tuple[str, str]:
        """The API group and version."""
        return split_api_version(self.api_version)

    @property
    def field(self) -> str:
        """What is replaced as a whole: `data` of a core ConfigMap, `spec` of anything else."""
        return "data" if (self.group_version[0], self.kind) == ("", "ConfigMap") else "spec"


@dataclass(frozen=True)
class Points:
    """The points of a package in the order of its files, and the error that keeps it from being injected."""

    points: tuple[InjectionPoint, ...] = ()
    error: str = ""


def find_points(files: FileTree) -> Points:
    """Return the injection points of a package, subdirectories included, or the error text of the spec.

    What a .krmignore hides, such as the templates of a chart, is no YAML of the package (kpt.md 1.6).
    """
    points: list[InjectionPoint] = []
    invalid: list[str] = []
    for path in Package(files).krm_files():
        found = _points_of(path, files[path].data)
        if isinstance(found, Unparsable):
            return Points(error=f"{path}: {found.message}")
        points += (one for one in found if isinstance(one, InjectionPoint))
        invalid += (one for one in found if isinstance(one, str))
    invalid += _duplicates(points)
    return Points(error=f"errors in injection points: {', '.join(invalid)}") if invalid else Points(tuple(points))


@cached(_REMEMBERED_FILES)
def _points_of(path: str, content: bytes) -> tuple[InjectionPoint | str, ...] | Unparsable:
    """Return the points of one file, or what is wrong with them, or why it does not parse."""
    documents = documents_of(path, content)
    if isinstance(documents, Unparsable):
        return documents
    found = (_read_point(path, index, document.data) for index, document in enumerate(documents))
    return tuple(one for one in found if one is not None)


def _read_point(file: str, index: int, data: object) -> InjectionPoint | str | None:
    if not isinstance(data, Mapping):
        return None
    api_version, kind, metadata = data.get("apiVersion"), data.get("kind"), data.get("metadata")
    if not isinstance(api_version, str) or not isinstance(kind, str) or not isinstance(metadata, Mapping):
        return None
    annotations = metadata.get("annotations")
    if not isinstance(annotations, Mapping) or INJECTION not in annotations:
        return None
    name, wanted = str(metadata.get("name", "")), annotations[INJECTION]
    if wanted not in _CHOICES:
        return f'{file}: {kind}/{name} has invalid "{INJECTION}" annotation value of "{wanted}"'
    injected = next((str(annotations[key]) for key in INJECTED if annotations.get(key)), "")
    return InjectionPoint(file, index, api_version, kind, name, wanted == "required", injected, data)


def _duplicates(points: Sequence[InjectionPoint]) -> Iterator[str]:
    seen: dict[str, str] = {}
    for point in points:
        if point.condition_type not in seen:
            seen[point.condition_type] = point.file
            continue
        files = f"{seen[point.condition_type]} and {point.file}"
        # a third one is paired with the second, as Porch does
        seen[point.condition_type] = point.file
        yield f'duplicate injection conditionType "{point.condition_type}" ({files})'
