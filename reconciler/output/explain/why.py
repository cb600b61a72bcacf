"""The result of the command `why` as text and JSON data: the commit that set a value, and the reason of this commit.

The module also contains the query for a value in a package. The module `inspect/why.py` searches the commits.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Literal

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.plugin_presets.model import GROUP
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.memory import cached
from reconciler.output.changes import fields
from reconciler.output.explain.builder import format_closest_names, list_provenance_entries
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.output.explain.verification import (
    CommitInfo,
    build_commit_data,
    find_first_changed_path,
    format_commit,
    get_value,
)
from reconciler.output.json_data import drop_empty, mask_secrets
from reconciler.output.status.package_status import list_object_dependencies
from reconciler.output.text import format_count, format_value, to_one_line
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.redaction import MASK

ChangeReasonKind = Literal["config", "upstream", "edit", "rollout", "templates", "removal", "other"]
_OPTIONS = ("spec", "optionValues")
_MAX_OBJECTS, _MAX_FIELDS = 10, 5
_CACHE_SIZE = 512


@dataclass(frozen=True)
class FoundValue:
    """A value in a package, with its file and resource. File and resource are "" if no resource matches the query.

    Attributes:
        value: The value. ABSENT if the resource has no such value.
        is_hidden: Whether the value can be a secret.
    """

    value: Any = ABSENT
    file: str = ""
    resource: str = ""
    pointer: str = ""
    is_hidden: bool = False

    def is_same_value(self, other: FoundValue) -> bool:
        """Return whether this value equals the other value. Two absent values are equal."""
        return (self.value is ABSENT) == (other.value is ABSENT) and (
            self.value is ABSENT or is_equal_data(self.value, other.value)
        )

    @property
    def visible_value(self) -> Any:
        """The value. A value that can be a secret is masked."""
        return MASK if self.is_hidden and self.value is not ABSENT else self.value


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
        """Return the value in a package.

        Args:
            files: The files of the package.
            file: The file to search first.

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
            return FoundValue(ABSENT, resource.file, str(resource.key))
        path = parse_pointer(pointer)
        value, masked = get_value(resource.data, path), get_value(mask_secrets(resource.data), path)
        # Hide all option values of Plugins, because the pointer of an option does not show whether the option is a
        # secret.
        has_options = resource.group == GROUP and path[:2] == _OPTIONS[: len(path)]
        is_hidden = has_options or (value is not ABSENT and not is_equal_data(value, masked))
        return FoundValue(value, resource.file, str(resource.key), pointer, is_hidden)

    def resolve_pointer(self, data: Any) -> str | None:
        """Return the JSON pointer of the location in a resource. Return None if the named option does not exist."""
        if not self.location or self.location.startswith("/"):
            return self.location
        options = get_value(data, _OPTIONS)
        names = [option.get("name") if isinstance(option, Mapping) else None for option in _get_items(options)]
        return format_pointer((*_OPTIONS, names.index(self.location), "value")) if self.location in names else None

    def matches(self, resource: PackageResource) -> bool:
        """Return whether the resource matches the query."""
        short_name = f"{resource.kind}/{resource.name}"
        return self.resource in (str(resource.key), short_name) if self.resource else True


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


def _get_items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def format_value_not_found(target: str, query: ValueQuery, files: FileTree) -> str:
    """Return the message that no commit contains a value. The message lists the existing resources or values."""
    resources = [resource for resource in Package(files).resources if resource.name]
    matching = [resource for resource in resources if query.matches(resource)]
    if query.resource and not matching:
        names = format_closest_names(query.resource, [str(resource.key) for resource in resources])
        return (
            f"{target} has no resource {query.resource}, and no commit had it;"
            f" existing resources, closest match first: {names}"
        )
    pointers = [format_pointer(path) for resource in matching for path in _list_leaf_paths(resource.data, ())]
    return (
        f"{target} has no value at {query.location}, and no commit had it;"
        f" existing values, closest match first: {format_closest_names(query.location, pointers)}"
    )


def _list_leaf_paths(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    items = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, value in items:
        yield from _list_leaf_paths(value, (*path, str(key)))
    if not items:
        yield path


@dataclass(frozen=True)
class ConfigObjectChange:
    """A config object that a commit changed, with its location and its changed fields."""

    object: str
    change_type: Literal["added", "changed", "removed"]
    file: str
    line: int
    fields: tuple[str, ...] = ()


def find_config_changes(
    old: Catalog, new: Catalog, package: ReRenderedPackage | None
) -> tuple[ConfigObjectChange, ...]:
    """Return the config objects that differ between two configs and are inputs of a package.

    If no input differs, return all differing config objects.
    """
    keys = sorted({*old.objects, *new.objects})
    changed = [key for key in keys if _get_digest(old.objects.get(key)) != _get_digest(new.objects.get(key))]
    inputs = [key for key in changed if package and _is_input(key, package)]
    return tuple(
        _build_object_change(old.objects.get(key), new.objects.get(key)) for key in (inputs or changed)[:_MAX_OBJECTS]
    )


def _get_digest(manifest: ConfigObject | None) -> str:
    return manifest.digest if manifest else ""


def _is_input(key: ObjectKey, package: ReRenderedPackage) -> bool:
    variant = package.variant
    if variant is None or key in (variant.owner.key, variant.owner.parent):
        return variant is not None
    names = {(entry.kind, entry.namespace, entry.name) for entry in list_object_dependencies(package.trace)}
    names |= {
        (entry["kind"], entry.get("namespace", ""), entry["name"])
        for entry in (variant.provenance.list_objects() if variant.provenance else ())
    }
    namespaces = (key.namespace,) if key.namespace else ("", "default")
    return any((key.kind, namespace, key.name) in names for namespace in namespaces)


def _build_object_change(old: ConfigObject | None, new: ConfigObject | None) -> ConfigObjectChange:
    manifest = new or old
    assert manifest, "a changed object must exist in at least one of the two configs"
    if old is None or new is None:
        line = manifest.location.line
        return ConfigObjectChange(str(manifest.key), "added" if new else "removed", manifest.file, line)
    before, after = mask_secrets(old.data), mask_secrets(new.data, old.data, should_mark_changes=True)
    is_hidden = new.key.group == GROUP
    changes = list(fields.find_field_changes(before, after))
    lines = tuple(change.path_text if is_hidden else change.format_line() for change in changes[:_MAX_FIELDS])
    path = _find_existing_path(new.data, find_first_changed_path(old.data, new.data) or ())
    return ConfigObjectChange(str(new.key), "changed", new.file, new.location_of(path).line, lines)


def _find_existing_path(data: Any, path: tuple[str, ...]) -> tuple[str | int, ...]:
    """Return the start of a path, up to the last key that exists in the data. Convert list indexes to integers."""
    existing: list[str | int] = []
    for key in path:
        if isinstance(data, list) and int(key) < len(data):
            existing.append(int(key))
            data = data[int(key)]
        elif isinstance(data, Mapping) and key in data:
            existing.append(key)
            data = data[key]
        else:
            break
    return tuple(existing)


@dataclass(frozen=True)
class BranchValueChange:
    """The last change of a value on a branch: the commit, and the value before and after the commit."""

    target: str
    branch: str
    query: ValueQuery
    before: FoundValue
    after: FoundValue
    commit: CommitInfo


@dataclass(frozen=True)
class ChangeReason:
    """The reason why a value changed.

    Attributes:
        commits: The commits of the config, of an upstream or of a person. There are several commits if the search
            cannot determine which of them changed the value.
        merges: The merge commits that contain `commits`.
        objects: The config objects that the commits changed.
        upstream: The upstream commit that the config selected.
        set_by: The object, function or person that sets the value.
        render_count: The number of re-renders of the search.
        commit_count: The number of searched commits.
    """

    kind: ChangeReasonKind
    message: str
    commits: tuple[CommitInfo, ...] = ()
    merges: tuple[CommitInfo, ...] = ()
    objects: tuple[ConfigObjectChange, ...] = ()
    upstream: CommitInfo | None = None
    set_by: str = ""
    render_count: int = 0
    commit_count: int = 0


@dataclass(frozen=True)
class WhyResult:
    """The last change of a value, and the reason of this change.

    Attributes:
        config_commits: The configs of the renders before and after the change.
    """

    change: BranchValueChange
    reason: ChangeReason
    config_commits: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()


def format_why_text(result: WhyResult) -> str:
    """Return the result as text."""
    return "\n".join(map(to_one_line, _list_lines(result))) + "\n"


def _list_lines(result: WhyResult) -> Iterator[str]:
    change, reason = result.change, result.reason
    resource = _get_changed_value(change).resource
    location = " ".join(filter(None, (resource, change.query.location)))
    yield f"{change.target} {location}: {_format_value(change.after)}, previously {_format_value(change.before)}"
    yield f"  on {change.branch} since {format_commit(change.commit)}"
    yield f"  {reason.message}"
    for commit in reason.commits:
        yield f"    {format_commit(commit)}"
    for merge in reason.merges:
        yield f"      merged by {format_commit(merge)}"
    for object_change in reason.objects:
        yield f"      {object_change.object} {object_change.change_type}  {object_change.file}:{object_change.line}"
        yield from (f"        {line}" for line in object_change.fields)
    if reason.upstream:
        yield f"    in the upstream: {format_commit(reason.upstream)}"
    if reason.set_by:
        yield f"  set by {reason.set_by}"
    yield from (f"  note: {note}" for note in result.notes)
    if reason.commit_count:
        commits, renders = format_count(reason.commit_count, "commit"), format_count(reason.render_count, "render")
        yield f"  searched {commits} with {renders}"


def _get_changed_value(change: BranchValueChange) -> FoundValue:
    return change.after if change.after.resource else change.before


def _format_value(value: FoundValue) -> str:
    return "not set" if value.value is ABSENT else format_value(value.visible_value)


def build_why_data(result: WhyResult) -> dict[str, Any]:
    """Return the result as JSON data, and omit empty fields."""
    change, reason = result.change, result.reason
    changed = _get_changed_value(change)
    values = {"before": change.before.visible_value, "value": change.after.visible_value}
    return drop_empty({
        "package": change.target, "branch": change.branch, "resource": changed.resource, "file": changed.file,
        "place": change.query.location, "pointer": changed.pointer, "commit": build_commit_data(change.commit),
    }) | {name: value for name, value in values.items() if value is not ABSENT} | drop_empty({
        "reason": reason.kind, "words": reason.message,
        "commits": [build_commit_data(commit) for commit in reason.commits],
        "through": [build_commit_data(merge) for merge in reason.merges],
        "objects": [_build_object_change_data(entry) for entry in reason.objects],
        "upstream": build_commit_data(reason.upstream) if reason.upstream else None, "by": reason.set_by,
        "configs": drop_empty(dict(zip(("from", "to"), result.config_commits, strict=True))), "notes": [*result.notes],
        "renders": reason.render_count, "among": reason.commit_count,
    })  # fmt: skip


def _build_object_change_data(change: ConfigObjectChange) -> dict[str, Any]:
    return drop_empty({
        "object": change.object, "how": change.change_type, "file": change.file, "line": change.line,
        "fields": [*change.fields],
    })  # fmt: skip
