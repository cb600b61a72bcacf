"""Why a value is what it is: the commit that made it so, in words and as data, and how values are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.catalog.catalog import Catalog, ConfigObject
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.plugin_presets.model import GROUP
from reconciler.krm.json_pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml.compare import is_equal_data
from reconciler.memory import cached
from reconciler.output.changes import fields
from reconciler.output.data import drop_empty, mask_secrets
from reconciler.output.explain.builder import format_closest_names
from reconciler.output.explain.model import ValueNotFoundError
from reconciler.output.explain.verification import (
    CommitInfo,
    build_commit_data,
    find_first_changed_path,
    format_commit,
    get_value,
)
from reconciler.output.status.package_status import list_object_dependencies
from reconciler.output.text import format_count, format_value, to_one_line
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.attribution.re_render import ReRenderedPackage
from reconciler.redaction import MASK

ChangeReasonKind = Literal["config", "upstream", "edit", "rollout", "templates", "removal", "other"]
_OPTIONS = ("spec", "optionValues")
_MOST_OBJECTS, _MOST_FIELDS = 10, 5
_REMEMBERED = 512


@dataclass(frozen=True)
class FoundValue:
    """A value in a package, ABSENT where the resource has none, with the resource and its file; both "" without it."""

    value: Any = ABSENT
    file: str = ""
    resource: str = ""
    pointer: str = ""
    is_hidden: bool = False

    def is_same_value(self, other: FoundValue) -> bool:
        """Return whether the value is the same."""
        return (self.value is ABSENT) == (other.value is ABSENT) and (
            self.value is ABSENT or is_equal_data(self.value, other.value)
        )

    @property
    def visible_value(self) -> Any:
        """The value as it may be seen."""
        return MASK if self.is_hidden and self.value is not ABSENT else self.value


def reveal_value(found: FoundValue, made: ReRenderedPackage) -> FoundValue:
    """Return a value as it may be seen where the layers of a Plugin tell that its option is no secret."""
    layers = made.variant.provenance.list_layers() if made.variant.provenance else []
    mine = (one for one in layers if one["resource"] == found.resource)
    steps = (one["steps"][-1] for one in mine if f"{found.pointer}/".startswith(f"{one['pointer']}/"))
    return replace(found, is_hidden=False) if any(one.get("after", MASK) != MASK for one in steps) else found


@dataclass(frozen=True)
class ValueQuery:
    """A place in a resource: `Kind/name` or `Kind/namespace/name`, and a pointer, or the name of an option of a Plugin.

    Without a resource it is the one that has something there.
    """

    resource: str
    location: str

    def find_in_package(self, files: FileTree, file: str = "") -> FoundValue:
        """Return the value in a package; it is looked for in one `file` first. Raises NothingToExplainError."""
        if file in files and (found := self.find_in_file(file, files[file])):
            return found
        having = [one for path in files if (one := self.find_in_file(path, files[path]))]
        with_value = [one for one in having if one.value is not ABSENT]
        if len({one.resource for one in with_value}) > 1:
            listed = ", ".join(sorted({one.resource for one in with_value}))
            what = f"{self.resource} is the name of several" if self.resource else f"{self.location} is in several"
            raise ValueNotFoundError(f"{what}: name one of {listed}")
        named = having if self.resource else ()
        return next(iter((*with_value, *named)), FoundValue())

    def find_in_file(self, path: str, file: File) -> FoundValue | None:
        """Return the value in a file, None where that has no such resource."""
        return _in_file(self, path, file)

    def read_from_resource(self, one: PackageResource) -> FoundValue:
        """Return the value in a resource."""
        pointer = self.resolve_pointer(one.data)
        if pointer is None:
            return FoundValue(ABSENT, one.file, str(one.key))
        path = parse_pointer(pointer)
        value, shown = get_value(one.data, path), get_value(mask_secrets(one.data), path)
        # what an option holds may be a secret, and its place does not tell
        has_options = one.group == GROUP and path[:2] == _OPTIONS[: len(path)]
        is_hidden = has_options or (value is not ABSENT and not is_equal_data(value, shown))
        return FoundValue(value, one.file, str(one.key), pointer, is_hidden)

    def resolve_pointer(self, data: Any) -> str | None:
        """Return the pointer of the place in a resource; None for an option that it does not have."""
        if not self.location or self.location.startswith("/"):
            return self.location
        options = get_value(data, _OPTIONS)
        names = [one.get("name") if isinstance(one, Mapping) else None for one in _items(options)]
        return format_pointer((*_OPTIONS, names.index(self.location), "value")) if self.location in names else None

    def matches(self, one: PackageResource) -> bool:
        """Return whether a resource is the one that is meant."""
        short = f"{one.kind}/{one.name}"
        return self.resource in (str(one.key), short) if self.resource else True


def parse_value_query(resource: str, place: str) -> ValueQuery:
    """Return what is asked for by people's words; one that begins with / is a pointer. Raises NothingToExplainError."""
    if resource.startswith("/") and not place:
        resource, place = "", resource
    if place.startswith("/"):
        try:
            parse_pointer(place)
        except PointerError as error:
            raise ValueNotFoundError(str(error)) from error
    return ValueQuery(resource, place)


@cached(_REMEMBERED)
def _in_file(asked: ValueQuery, path: str, file: File) -> FoundValue | None:
    found = [
        asked.read_from_resource(one)
        for one in Package(FileTree({path: file})).resources
        if one.name and asked.matches(one)
    ]
    if not asked.resource:
        found = [one for one in found if one.value is not ABSENT]
    return found[0] if found else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def format_value_not_found(place: str, asked: ValueQuery, files: FileTree) -> str:
    """Return that a package has, and had, no such value, and what it has."""
    resources = [one for one in Package(files).resources if one.name]
    mine = [one for one in resources if asked.matches(one)]
    if asked.resource and not mine:
        return f"{place} has no resource {asked.resource}, and never had; it has {_alike(asked.resource, resources)}"
    pointers = [format_pointer(path) for one in mine for path in _leaves(one.data, ())]
    return f"{place} has nothing at {asked.location}, and never had; it has {format_closest_names(asked.location, pointers)}"  # noqa: E501


def _alike(wanted: str, resources: Sequence[PackageResource]) -> str:
    return format_closest_names(wanted, [str(one.key) for one in resources])


def _leaves(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inside = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, value in inside:
        yield from _leaves(value, (*path, str(key)))
    if not inside:
        yield path


@dataclass(frozen=True)
class ConfigObjectChange:
    """An object of the config that a commit changed: where, and its fields with what they were and are."""

    object: str
    how: Literal["added", "changed", "removed"]
    file: str
    line: int
    fields: tuple[str, ...] = ()


def find_config_changes(old: Catalog, new: Catalog, made: ReRenderedPackage | None) -> tuple[ConfigObjectChange, ...]:
    """Return what differs between two configs: of the objects that a package was made of, where any of these do."""
    keys = sorted({*old.objects, *new.objects})
    moved = [key for key in keys if _digest(old.objects.get(key)) != _digest(new.objects.get(key))]
    mine = [key for key in moved if made and _is_used(key, made)]
    return tuple(_object_change(old.objects.get(key), new.objects.get(key)) for key in (mine or moved)[:_MOST_OBJECTS])


def _digest(one: ConfigObject | None) -> str:
    return one.digest if one else ""


def _is_used(key: ObjectKey, made: ReRenderedPackage) -> bool:
    variant = made.variant
    if key in (variant.owner.key, variant.owner.parent):
        return True
    names = {(one.kind, one.namespace, one.name) for one in list_object_dependencies(made.trace)}
    names |= {
        (one["kind"], one.get("namespace", ""), one["name"])
        for one in (variant.provenance.list_objects() if variant.provenance else ())
    }
    homes = (key.namespace, "default") if not key.namespace else (key.namespace,)
    return any((key.kind, home, key.name) in names for home in homes)


def _object_change(old: ConfigObject | None, new: ConfigObject | None) -> ConfigObjectChange:
    one = new or old
    assert one, "one of the two configs has it"
    if old is None or new is None:
        return ConfigObjectChange(str(one.key), "added" if new else "removed", one.file, one.location.line)
    before, after = mask_secrets(old.data), mask_secrets(new.data, old.data, compared=True)
    is_hidden = one.key.group == GROUP
    changes = list(fields.find_field_changes(before, after))
    words = tuple(each.path_text if is_hidden else each.format_line() for each in changes[:_MOST_FIELDS])
    path = _written(new.data, find_first_changed_path(old.data, new.data) or ())
    return ConfigObjectChange(str(one.key), "changed", new.file, new.location_of(path).line, words)


def _written(data: Any, path: tuple[str, ...]) -> tuple[str | int, ...]:
    """Return a path with numbers for the items of lists, as far as it leads in the data."""
    found: list[str | int] = []
    for step in path:
        if isinstance(data, list) and int(step) < len(data):
            found.append(int(step))
            data = data[int(step)]
        elif isinstance(data, Mapping) and step in data:
            found.append(step)
            data = data[step]
        else:
            break
    return tuple(found)


@dataclass(frozen=True)
class BranchValueChange:
    """A value with the commit of its branch since which it is what it is, and what it was before."""

    target: str
    branch: str
    query: ValueQuery
    before: FoundValue
    after: FoundValue
    commit: CommitInfo


@dataclass(frozen=True)
class ChangeReason:
    """What made a value what it is.

    `commits` are of the config, of an upstream, or of people who edited; several where they could not be told apart.
    `through` are merges that brought them, `objects` what they changed in the config, `upstream` the commit of an
    upstream that the config had moved to. `by` is the rule that sets the value, `renders` how often it was made again,
    among `among` commits.
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
    """The answer: since when, and why."""

    change: BranchValueChange
    reason: ChangeReason
    config_commits: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()


def format_why_text(result: WhyResult) -> str:
    """Return the answer as plain text."""
    return "\n".join(map(to_one_line, _text(result))) + "\n"


def _text(why: WhyResult) -> Iterator[str]:
    turned, reason = why.change, why.reason
    one = turned.after if turned.after.resource else turned.before
    where = " ".join(filter(None, (one.resource, turned.query.location)))
    yield f"{turned.target} {where}: {_value(turned.after)}, {_was(turned.before)}"
    yield f"  on {turned.branch} since {format_commit(turned.commit)}"
    yield f"  {reason.message}"
    for commit in reason.commits:
        yield f"    {format_commit(commit)}"
    for merge in reason.merges:
        yield f"      brought by {format_commit(merge)}"
    for change in reason.objects:
        yield f"      {change.object} {change.how}  {change.file}:{change.line}"
        yield from (f"        {words}" for words in change.fields)
    if reason.upstream:
        yield f"    and in the upstream: {format_commit(reason.upstream)}"
    if reason.set_by:
        yield f"  set by {reason.set_by}"
    yield from (f"  note: {note}" for note in why.notes)
    if reason.commit_count:
        yield f"  found among {format_count(reason.commit_count, 'commit')} by {format_count(reason.render_count, 'render')}"  # noqa: E501


def _value(one: FoundValue) -> str:
    return "has no value" if one.value is ABSENT else format_value(one.visible_value)


def _was(one: FoundValue) -> str:
    return "was not there before" if one.value is ABSENT else f"was {format_value(one.visible_value)}"


def build_why_data(result: WhyResult) -> dict[str, Any]:
    """Return the answer as JSON data; what is empty is left out."""
    turned, reason = result.change, result.reason
    one = turned.after if turned.after.resource else turned.before
    values = {name: found.visible_value for name, found in (("before", turned.before), ("value", turned.after))}
    return drop_empty({
        "package": turned.target, "branch": turned.branch, "resource": one.resource, "file": one.file,
        "place": turned.query.location, "pointer": one.pointer, "commit": build_commit_data(turned.commit),
    }) | {name: value for name, value in values.items() if value is not ABSENT} | drop_empty({
        "reason": reason.kind, "words": reason.message, "commits": [build_commit_data(each) for each in reason.commits],
        "through": [build_commit_data(each) for each in reason.merges],
        "objects": [drop_empty({**vars(each), "fields": [*each.fields]}) for each in reason.objects],
        "upstream": build_commit_data(reason.upstream) if reason.upstream else None, "by": reason.set_by,
        "configs": drop_empty(dict(zip(("from", "to"), result.config_commits, strict=True))), "notes": [*result.notes],
        "renders": reason.render_count, "among": reason.commit_count,
    })  # fmt: skip
