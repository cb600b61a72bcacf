"""Traces: the dependencies of a render on the catalog, with a fingerprint (digest) of each dependency.

The absence of an object is a dependency too. A trace also contains facts: values that are not in the catalog. A
package is rendered again only if a fingerprint or a fact changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.krm.findings import SourceLocation
from reconciler.krm.json_text import compute_digest
from reconciler.lazy_dataclasses import dataclass, field

ABSENT_FINGERPRINT = "absent"
PRESENT_FINGERPRINT = "present"

Trace = Mapping[str, str]


_CATALOG_DEPENDENCIES = ("type", "object", "kind")


@dataclass(frozen=True)
class DependencyReader:
    """Computes the current fingerprints of dependencies.

    Attributes:
        extra: For dependencies outside of the catalog: maps the first word of a dependency to the function that
            computes its fingerprint. The function receives the remaining words, and returns "" if they are invalid.
    """

    catalog: Catalog
    extra: Mapping[str, Callable[[Sequence[str]], str]] = field(default_factory=dict)

    def is_dependency(self, name: str) -> bool:
        """Return whether a key of a trace is a dependency with a fingerprint. The other keys of a trace are facts."""
        first, blank, _ = name.partition(" ")
        return name == "whole" or (bool(blank) and (first in _CATALOG_DEPENDENCIES or first in self.extra))

    def read_fingerprint(self, dependency: str) -> str:
        """Return the current fingerprint of a recorded dependency. Return "" if the dependency is invalid."""
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
                # Do not raise an error, because the trace is read from a Git branch to which other programs can write.
                return ""


class CatalogView:
    """Read access to the catalog for one render. Each access is recorded in `trace` as a dependency.

    Attributes:
        prefix: Words at the start of each recorded dependency. `DependencyReader` receives the dependency without them.
        trace: The recorded dependencies with their fingerprints.
        files: Maps (kind, namespace, name) of each found object to the path of its file.
        locations: Maps the identity of each found object to its location.
    """

    def __init__(self, reader: DependencyReader, prefix: tuple[str, ...] = ()) -> None:
        self._reader = reader
        self.prefix = prefix
        self.trace: dict[str, str] = {}
        self.files: dict[tuple[str, str, str], str] = {}
        self.locations: dict[str, SourceLocation] = {}

    def has_type(self, api_version: str, kind: str, namespace: str) -> bool:
        """Return whether `namespace` contains an object with this apiVersion and kind."""
        return self.record("type", api_version, kind, namespace) == PRESENT_FINGERPRINT

    def find_object(self, api_version: str, kind: str, namespace: str, name: str) -> ConfigObject | None:
        """Return the object with this apiVersion, kind, namespace and name. Return None if it is absent."""
        self.record("object", api_version, kind, namespace, name)
        config_object = self._reader.catalog.objects_by_name.get((api_version, kind, namespace, name))
        if config_object:
            self.files[kind, namespace, name] = config_object.file
            self.locations[config_object.key.reference] = config_object.location
        return config_object

    def objects_of_kind(self, group: str, kind: str) -> tuple[ConfigObject, ...]:
        """Return all objects of one kind in any namespace."""
        self.record("kind", group, kind)
        return self._reader.catalog.objects_of_kind(group, kind)

    def is_complete(self) -> bool:
        """Return whether the identity of every object in the config is known.

        If this is false, an object that the catalog does not contain may be in an unreadable file.
        """
        return self.record("whole") == PRESENT_FINGERPRINT

    def record(self, *parts: str) -> str:
        """Record a dependency, and return its current fingerprint.

        `parts` contains the type and the arguments of the dependency.
        """
        fingerprint = self._reader.read_fingerprint(format_dependency(*parts))
        self.trace[format_dependency(*self.prefix, *parts)] = fingerprint
        return fingerprint


def format_dependency(*parts: str) -> str:
    """Return a dependency in the notation of traces: the parts with spaces between them."""
    # Escape spaces in each part, because spaces separate the parts of a dependency.
    return " ".join(part.replace("%", "%25").replace(" ", "%20") for part in parts)


def find_changed_dependencies(trace: Trace, facts: Trace, reader: DependencyReader) -> tuple[str, ...]:
    """Return the names of the dependencies and facts that changed since the last render.

    A fact also counts as changed if it was added or removed. If the result is empty, a new render would give the same
    package.

    Args:
        trace: The recorded trace of the last render.
        facts: The current facts: values that are not in the catalog, such as the variant and the upstream.
    """
    other_facts = {name for name in trace if not reader.is_dependency(name)}
    changed = [name for name in sorted({*facts, *other_facts}) if facts.get(name) != trace.get(name)]
    changed += [
        name for name in sorted(trace) if reader.is_dependency(name) and reader.read_fingerprint(name) != trace[name]
    ]
    return tuple(changed)
