"""Layouts: patterns such as `{region}/{cluster}/{package}` that divide a folder into the packages of clusters."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from reconciler.adopt.resources import YAML_SUFFIXES
from reconciler.adopt.units import AdoptionError, Cluster, Fleet, NotImported, Unit
from reconciler.catalog.files import File, FileTree
from reconciler.krm.names import validate_dns_label, validate_dns_subdomain, validate_label_key, validate_label_value
from reconciler.lazy_dataclasses import dataclass

DEFAULT_LAYOUT = "{cluster}/{package}"
FLUX_LAYOUT = "clusters/{cluster}"
_CLUSTER, _PACKAGE = "cluster", "package"
_FIELD = re.compile(r"\{([A-Za-z0-9_./-]+)\}")


@dataclass(frozen=True)
class Layout:
    """A parsed pattern. Each segment is a literal text or the name of a field in braces."""

    segments: tuple[str, ...]

    @property
    def fields(self) -> tuple[str, ...]:
        """The names of the fields, in the order of the segments."""
        return tuple(match[1] for segment in self.segments if (match := _FIELD.fullmatch(segment)))

    def match(self, path: Sequence[str]) -> dict[str, str] | None:
        """Return the fields of a folder. Return None if the path does not match."""
        values: dict[str, str] = {}
        if len(path) != len(self.segments):
            return None
        for segment, name in zip(self.segments, path, strict=True):
            field = _FIELD.fullmatch(segment)
            if field:
                values[field[1]] = name
            elif segment != name:
                return None
        return values

    def find_directory(self, path: Sequence[str]) -> str:
        """Return the parent folder of the package at `path`.

        Return "" if `{package}` is not the last segment of the layout.
        """
        is_last = self.segments[-1] == f"{{{_PACKAGE}}}"
        return "/".join(path[:-1]) if is_last else ""


def parse_layout(text: str, required: Sequence[str] = ("cluster", "package")) -> Layout:
    """Parse a pattern. Each segment is a literal or one field in braces.

    Raises:
        AdoptionError: A segment is invalid, a field occurs twice, or a required field is missing.
    """
    segments = tuple(text.strip("/").split("/"))
    for segment in segments:
        if not segment or (("{" in segment or "}" in segment) and not _FIELD.fullmatch(segment)):
            raise AdoptionError(
                f"--layout: each segment of {text!r} must be a literal or one field in braces, but is {segment!r}"
            )
    layout = Layout(segments)
    for name in required:
        if name not in layout.fields:
            raise AdoptionError(f"--layout: {text!r} must contain {{{name}}}")
    if len(set(layout.fields)) < len(layout.fields):
        raise AdoptionError(f"--layout: each field of {text!r} must occur once")
    for label in layout.fields:
        if reason := validate_label_key(label):
            raise AdoptionError(f"--layout: the field {{{label}}} becomes a label, and {reason}")
    return layout


def read_fleet(files: FileTree, layout: Layout, labels: Mapping[str, Mapping[str, str]]) -> Fleet:
    """Divide the imported files into units. A unit is one package on one cluster.

    Args:
        labels: Maps cluster names to additional labels. Labels that the layout defines take precedence.
    """
    folders: dict[tuple[str, ...], dict[str, File]] = {}
    not_imported: list[NotImported] = []
    depth = len(layout.segments)
    for path, file in files.items():
        *folder, _ = path.split("/")
        # Skip hidden folders, such as the folder of status files, which do not belong to a package.
        if any(name.startswith(".") for name in folder):
            continue
        if len(folder) >= depth and layout.match(folder[:depth]) is not None:
            inner = "/".join(path.split("/")[depth:])
            folders.setdefault(tuple(folder[:depth]), {})[inner] = file
        elif path.endswith(YAML_SUFFIXES):
            not_imported.append(_create_outside(path, layout))
    clusters: dict[str, Cluster] = {}
    units: list[Unit] = []
    for segments, content in sorted(folders.items()):
        values = layout.match(segments) or {}
        found = Cluster(
            values[_CLUSTER],
            {**labels.get(values[_CLUSTER], {}), **{key: value for key, value in values.items() if key not in _FIXED}},
            layout.find_directory(segments),
        )
        known = clusters.get(found.name, found)
        problem = next(_validate(values, known, found), "")
        if problem:
            not_imported.append(NotImported("/".join(segments), problem, "Rename the folder, or change --layout."))
            continue
        clusters[found.name] = known
        units.append(Unit(found.name, values[_PACKAGE], "/".join(segments), FileTree(content)))
    return Fleet(tuple(clusters[name] for name in sorted(clusters)), tuple(units), tuple(not_imported))


_FIXED = (_CLUSTER, _PACKAGE)


def _validate(values: Mapping[str, str], known: Cluster, found: Cluster) -> Iterator[str]:
    if reason := validate_dns_label(values[_CLUSTER]):
        yield f"the name of the cluster is invalid: {reason}"
    if reason := validate_dns_subdomain(values[_PACKAGE]):
        yield f"the name of the package is invalid: {reason}"
    for key, value in found.labels.items():
        if reason := validate_label_value(value):
            yield f'the label "{key}" is invalid: {reason}'
    if known.labels != found.labels:
        yield (
            f'the cluster "{found.name}" must have the same labels in all folders, but has {_format(known.labels)} and'
            f" {_format(found.labels)}"
        )
    elif known.directory != found.directory:
        yield f'the cluster "{found.name}" has packages in two folders: "{known.directory}" and "{found.directory}"'


def _format(labels: Mapping[str, str]) -> str:
    return ",".join(f"{key}={value}" for key, value in sorted(labels.items())) or "no labels"


def _create_outside(path: str, layout: Layout) -> NotImported:
    pattern = "/".join(layout.segments)
    return NotImported(path, f'the file is not in a folder that matches the layout "{pattern}"', "Change --layout.")
