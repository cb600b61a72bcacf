"""The query for a value in the files of a package."""

from __future__ import annotations

from typing import Any

from reconciler.api.greenhouse import GROUP
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.nested_values import get_value
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.memory import cached
from reconciler.output.explain.builder import (
    format_closest_names,
    list_leaf_paths,
    list_provenance_entries,
    parse_data_path,
)
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.redaction import MASK, contains_secret, hide_ciphertexts, is_ciphertext, is_secret_value

_OPTIONS = ("spec", "optionValues")
_CACHE_SIZE = 512


@dataclass(frozen=True)
class FoundValue:
    """The result of a query for a value in a package.

    Attributes:
        value: The value. ABSENT if no resource matches the query, or if the resource has no such value.
        file, resource: The file and the resource that contain the value. "" if no resource matches the query.
        is_hidden: Whether the value can be a secret.
    """

    value: Any = ABSENT
    file: str = ""
    resource: str = ""
    pointer: str = ""
    is_hidden: bool = False

    def is_same_value(self, other: FoundValue) -> bool:
        """Return whether this value equals the other value. Two absent values are equal."""
        return is_equal_data(self.value, other.value)

    @property
    def visible_value(self) -> Any:
        """The value. A value that can be a secret is masked, and a ciphertext of SOPS is replaced by `ENC[…]`."""
        if self.is_hidden and self.value is not ABSENT and not is_ciphertext(self.value):
            return MASK
        return hide_ciphertexts(self.value)


def reveal_value(value: FoundValue, package: ReRenderedPackage) -> FoundValue:
    """Set `is_hidden` to False if the provenance of a Plugin shows that the option with this value is not a secret."""
    entries = list_provenance_entries(package.variant)
    last_steps = [
        entry["steps"][-1]
        for entry in entries
        if entry["resource"] == value.resource and f"{value.pointer}/".startswith(f"{entry['pointer']}/")
    ]
    is_public = any(step.get("after", MASK) != MASK for step in last_steps)
    return replace(value, is_hidden=False) if is_public else value


@dataclass(frozen=True)
class ValueQuery:
    """The resource and the location of a value in a package.

    Attributes:
        resource: `Kind/name` or `Kind/namespace/name`. "" selects the only resource with a value at the location.
        location: A JSON pointer, or the name of an option of a Plugin.
    """

    resource: str
    location: str

    def find_in_package(self, files: FileTree, file: str = "") -> FoundValue:
        """Return the value in a package that matches the query.

        Args:
            file: The file to search first. If it contains the value, the other files are not searched.

        Raises:
            ValueNotFoundError: Several resources match the query.
        """
        if file in files and (value := self.find_in_file(file, files[file])):
            return value
        matching = [match for path in files if (match := self.find_in_file(path, files[path]))]
        with_value = [match for match in matching if match.value is not ABSENT]
        if len({match.resource for match in with_value}) > 1:
            names = ", ".join(sorted({match.resource for match in with_value}))
            error = (
                f"{self.resource} matches several resources"
                if self.resource
                else f"several resources have a value at {self.location}"
            )
            raise ValueNotFoundError(f"{error}; add one of these names to the command: {names}")
        without_value = matching if self.resource else ()
        return next(iter((*with_value, *without_value)), FoundValue())

    def find_in_file(self, path: str, file: File) -> FoundValue | None:
        """Return the value in a file, or None if no resource in the file matches the query."""
        return _find_in_file(self, path, file)

    def read_from_resource(self, resource: PackageResource) -> FoundValue:
        """Return the value in a resource. The value is ABSENT if the resource does not contain the location."""
        pointer = self.resolve_pointer(resource.data)
        if pointer is None:
            return FoundValue(ABSENT, resource.file, resource.key.reference)
        path = parse_data_path(pointer, resource.data)
        value = get_value(resource.data, path)
        # Hide all option values of Plugins, because the pointer of an option does not show whether the option is a
        # secret.
        has_options = resource.group == GROUP and path[:2] == _OPTIONS[: len(path)]
        is_hidden = has_options or is_secret_value(resource.data, path) or contains_secret(value)
        return FoundValue(value, resource.file, resource.key.reference, pointer, is_hidden)

    def resolve_pointer(self, data: Any) -> str | None:
        """Return the JSON pointer of the location in a resource. Return None if the named option does not exist."""
        if not self.location or self.location.startswith("/"):
            return self.location
        options = get_value(data, _OPTIONS)
        names = [get_value(option, ("name",)) for option in (options if isinstance(options, list) else ())]
        return format_pointer((*_OPTIONS, names.index(self.location), "value")) if self.location in names else None

    def matches(self, resource: PackageResource) -> bool:
        """Return whether the resource matches the query."""
        short_name = f"{resource.kind}/{resource.name}"
        return self.resource in (resource.key.reference, short_name) if self.resource else True


def parse_value_query(resource: str, location: str) -> ValueQuery:
    """Return the query for two command arguments. An argument that starts with "/" is a JSON pointer.

    Raises:
        ValueNotFoundError: The JSON pointer is invalid.
    """
    if resource.startswith("/") and not location:
        resource, location = "", resource
    if location.startswith("/"):
        try:
            parse_pointer(location)
        except PointerError as error:
            raise ValueNotFoundError(str(error)) from error
    return ValueQuery(resource, location)


@cached(_CACHE_SIZE)
def _find_in_file(query: ValueQuery, path: str, file: File) -> FoundValue | None:
    values = [
        query.read_from_resource(resource)
        for resource in Package(FileTree({path: file})).resources
        if resource.name and query.matches(resource)
    ]
    if not query.resource:
        values = [value for value in values if value.value is not ABSENT]
    return values[0] if values else None


def format_value_not_found(target: str, query: ValueQuery, files: FileTree) -> str:
    """Return the message for a value that no commit contains. The message lists the existing resources or values."""
    resources = [resource for resource in Package(files).resources if resource.name]
    matching = [resource for resource in resources if query.matches(resource)]
    if query.resource and not matching:
        names = format_closest_names(query.resource, [resource.key.reference for resource in resources])
        return (
            f"{target} has no resource {query.resource}, and no earlier commit contains this resource;"
            f" existing resources, closest match first: {names}"
        )
    pointers = [format_pointer(path) for resource in matching for path in list_leaf_paths(resource.data)]
    return (
        f"{target} has no value at {query.location}, and no earlier commit contains a value there;"
        f" existing values, closest match first: {format_closest_names(query.location, pointers)}"
    )
