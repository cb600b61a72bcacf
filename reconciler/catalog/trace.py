"""Traces: the catalog data that a render depends on, with a fingerprint of each dependency.

The absence of an object is a dependency too. A package is rendered again only if a fingerprint changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.krm.findings import SourceLocation
from reconciler.krm.json_text import compute_digest

ABSENT_FINGERPRINT = "absent"
PRESENT_FINGERPRINT = "present"

Trace = Mapping[str, str]


_CATALOG_DEPENDENCIES = ("type", "object", "kind")


@dataclass(frozen=True)
class DependencyReader:
    """Computes the current fingerprints of dependencies.

    `extra` contains functions for the dependencies of controllers, keyed by the first part of a dependency. Each
    receives the other parts. It returns "" for an invalid dependency.
    """

    catalog: Catalog
    extra: Mapping[str, Callable[[Sequence[str]], str]] = field(default_factory=dict)

    def is_dependency(self, name: str) -> bool:
        """Return whether a name in a trace is a dependency whose fingerprint can be computed."""
        first, blank, _ = name.partition(" ")
        return name == "whole" or (bool(blank) and (first in _CATALOG_DEPENDENCIES or first in self.extra))

    def read_fingerprint(self, dependency: str) -> str:
        """Return the current fingerprint of a recorded dependency; "" for an invalid one."""
        match [part.replace("%20", " ").replace("%25", "%") for part in dependency.split(" ")]:
            case ["type", api_version, kind, namespace]:
                has_type = (api_version, kind, namespace) in self.catalog.types
                return PRESENT_FINGERPRINT if has_type else ABSENT_FINGERPRINT
            case ["object", api_version, kind, namespace, name]:
                config_object = self.catalog.objects_by_name.get((api_version, kind, namespace, name))
                return config_object.digest if config_object else ABSENT_FINGERPRINT
            case ["kind", group, kind]:
                members = self.catalog.objects_of_kind(group, kind)
                return compute_digest([member.digest for member in members]) if members else ABSENT_FINGERPRINT
            case ["whole"]:
                return PRESENT_FINGERPRINT if self.catalog.is_complete else ABSENT_FINGERPRINT
            case [first, *arguments] if first in self.extra:
                return self.extra[first](arguments)
            case _:
                # The trace is read from a branch that other programs can write to.
                return ""


class CatalogView:
    """The catalog for one render. Every access is recorded as a dependency with its fingerprint.

    `files` contains the file of each object that was found, by kind, namespace and name. `locations` contains its
    location, by identity.
    """

    def __init__(self, reader: DependencyReader) -> None:
        self._reader = reader
        self.trace: dict[str, str] = {}
        self.files: dict[tuple[str, str, str], str] = {}
        self.locations: dict[str, SourceLocation] = {}

    def has_type(self, api_version: str, kind: str, namespace: str) -> bool:
        """Return whether an object of this type is visible from `namespace`."""
        return self.record("type", api_version, kind, namespace) == PRESENT_FINGERPRINT

    def find_object(self, api_version: str, kind: str, namespace: str, name: str) -> ConfigObject | None:
        """Return one object by type, namespace and name."""
        self.record("object", api_version, kind, namespace, name)
        config_object = self._reader.catalog.objects_by_name.get((api_version, kind, namespace, name))
        if config_object:
            self.files[kind, namespace, name] = config_object.file
            self.locations[str(config_object.key)] = config_object.location
        return config_object

    def objects_of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return all objects of one kind."""
        self.record("kind", group, kind)
        return self._reader.catalog.objects_of_kind(group, kind)

    def is_complete(self) -> bool:
        """Return whether an object that the catalog does not contain does not exist.

        Otherwise it may be in an unreadable file.
        """
        return self.record("whole") == PRESENT_FINGERPRINT

    def record(self, *parts: str) -> str:
        """Record the dependency with these parts, and return its fingerprint."""
        dependency = format_dependency(*parts)
        self.trace[dependency] = fingerprint = self._reader.read_fingerprint(dependency)
        return fingerprint


def format_dependency(*parts: str) -> str:
    """Return a dependency as traces contain it."""
    # User input may contain blanks, which separate the parts of a dependency.
    return " ".join(part.replace("%", "%25").replace(" ", "%20") for part in parts)


def find_changed_dependencies(trace: Trace, facts: Trace, reader: DependencyReader) -> tuple[str, ...]:
    """Return the dependencies of `trace` whose fingerprints changed, and facts that were added, changed or removed.

    If nothing changed, the output would be equal.

    Args:
        trace: The recorded trace.
        facts: Current values that are known without the catalog (variant, upstream, engine).
        reader: Computes current fingerprints.
    """
    other_facts = {name for name in trace if not reader.is_dependency(name)}
    changed = [name for name in sorted({*facts, *other_facts}) if facts.get(name) != trace.get(name)]
    changed += [
        name for name in sorted(trace) if reader.is_dependency(name) and reader.read_fingerprint(name) != trace[name]
    ]
    return tuple(changed)
