"""Why a value is what it is: the commit that made it so, in words and as data, and how values are asked for."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from reconciler.caching import cached
from reconciler.krm.conflicts import ABSENT
from reconciler.krm.identity import ObjectKey
from reconciler.krm.pointer import PointerError, format_pointer, parse_pointer
from reconciler.krm.secrets import MASK
from reconciler.krm.yaml.same import same
from reconciler.packages.package import Package, PackageResource
from reconciler.planning.remake import Remade
from reconciler.reporting import fields
from reconciler.reporting.differences import first_path, value_of
from reconciler.reporting.explain import alike_first
from reconciler.reporting.explanation import NothingToExplainError
from reconciler.reporting.inputs import objects_asked
from reconciler.reporting.secrets import mask
from reconciler.reporting.status_file import told
from reconciler.reporting.values import count, one_line, show
from reconciler.reporting.verify import Person, person_data, person_words
from reconciler.rules.presets.model import GROUP
from reconciler.snapshot.catalog import Catalog, ConfigObject
from reconciler.snapshot.files import File, FileTree

Kind = Literal["config", "upstream", "edit", "rollout", "templates", "removal", "other"]
_OPTIONS = ("spec", "optionValues")
_MOST_OBJECTS, _MOST_FIELDS = 10, 5
_REMEMBERED = 512


@dataclass(frozen=True)
class Found:
    """A value in a package, ABSENT where the resource has none, with the resource and its file; both "" without it."""

    value: Any = ABSENT
    file: str = ""
    resource: str = ""
    pointer: str = ""
    is_hidden: bool = False

    def is_like(self, other: Found) -> bool:
        """Return whether the value is the same."""
        return (self.value is ABSENT) == (other.value is ABSENT) and (
            self.value is ABSENT or same(self.value, other.value)
        )

    @property
    def shown(self) -> Any:
        """The value as it may be seen."""
        return MASK if self.is_hidden and self.value is not ABSENT else self.value


def revealed(found: Found, made: Remade) -> Found:
    """Return a value as it may be seen where the layers of a Plugin tell that its option is no secret."""
    layers = made.variant.provenance.layers() if made.variant.provenance else []
    mine = (one for one in layers if one["resource"] == found.resource)
    steps = (one["steps"][-1] for one in mine if f"{found.pointer}/".startswith(f"{one['pointer']}/"))
    return replace(found, is_hidden=False) if any(one.get("after", MASK) != MASK for one in steps) else found


@dataclass(frozen=True)
class Asked:
    """A place in a resource: `Kind/name` or `Kind/namespace/name`, and a pointer, or the name of an option of a Plugin.

    Without a resource it is the one that has something there.
    """

    resource: str
    place: str

    def in_package(self, files: FileTree, file: str = "") -> Found:
        """Return the value in a package; it is looked for in one `file` first. Raises NothingToExplainError."""
        if file in files and (found := self.in_file(file, files[file])):
            return found
        having = [one for path in files if (one := self.in_file(path, files[path]))]
        with_value = [one for one in having if one.value is not ABSENT]
        if len({one.resource for one in with_value}) > 1:
            listed = ", ".join(sorted({one.resource for one in with_value}))
            what = f"{self.resource} is the name of several" if self.resource else f"{self.place} is in several"
            raise NothingToExplainError(f"{what}: name one of {listed}")
        named = having if self.resource else ()
        return next(iter((*with_value, *named)), Found())

    def in_file(self, path: str, file: File) -> Found | None:
        """Return the value in a file, None where that has no such resource."""
        return _in_file(self, path, file)

    def found_in(self, one: PackageResource) -> Found:
        """Return the value in a resource."""
        pointer = self.pointer(one.data)
        if pointer is None:
            return Found(ABSENT, one.file, str(one.key))
        path = parse_pointer(pointer)
        value, shown = value_of(one.data, path), value_of(mask(one.data), path)
        # what an option holds may be a secret, and its place does not tell
        has_options = one.group == GROUP and path[:2] == _OPTIONS[: len(path)]
        is_hidden = has_options or (value is not ABSENT and not same(value, shown))
        return Found(value, one.file, str(one.key), pointer, is_hidden)

    def pointer(self, data: Any) -> str | None:
        """Return the pointer of the place in a resource; None for an option that it does not have."""
        if not self.place or self.place.startswith("/"):
            return self.place
        options = value_of(data, _OPTIONS)
        names = [one.get("name") if isinstance(one, Mapping) else None for one in _items(options)]
        return format_pointer((*_OPTIONS, names.index(self.place), "value")) if self.place in names else None

    def is_of(self, one: PackageResource) -> bool:
        """Return whether a resource is the one that is meant."""
        short = f"{one.kind}/{one.name}"
        return self.resource in (str(one.key), short) if self.resource else True


def asked_for(resource: str, place: str) -> Asked:
    """Return what is asked for by people's words; one that begins with / is a pointer. Raises NothingToExplainError."""
    if resource.startswith("/") and not place:
        resource, place = "", resource
    if place.startswith("/"):
        try:
            parse_pointer(place)
        except PointerError as error:
            raise NothingToExplainError(str(error)) from error
    return Asked(resource, place)


@cached(_REMEMBERED)
def _in_file(asked: Asked, path: str, file: File) -> Found | None:
    found = [asked.found_in(one) for one in Package(FileTree({path: file})).resources if one.name and asked.is_of(one)]
    if not asked.resource:
        found = [one for one in found if one.value is not ABSENT]
    return found[0] if found else None


def _items(value: Any) -> list[Any]:
    return value if isinstance(value, list) else []


def nothing_there(place: str, asked: Asked, files: FileTree) -> str:
    """Return that a package has, and had, no such value, and what it has."""
    resources = [one for one in Package(files).resources if one.name]
    mine = [one for one in resources if asked.is_of(one)]
    if asked.resource and not mine:
        return f"{place} has no resource {asked.resource}, and never had; it has {_alike(asked.resource, resources)}"
    pointers = [format_pointer(path) for one in mine for path in _leaves(one.data, ())]
    return f"{place} has nothing at {asked.place}, and never had; it has {alike_first(asked.place, pointers)}"


def _alike(wanted: str, resources: Sequence[PackageResource]) -> str:
    return alike_first(wanted, [str(one.key) for one in resources])


def _leaves(data: Any, path: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    inside = list(data.items() if isinstance(data, dict) else enumerate(data) if isinstance(data, list) else ())
    for key, value in inside:
        yield from _leaves(value, (*path, str(key)))
    if not inside:
        yield path


@dataclass(frozen=True)
class ObjectChange:
    """An object of the config that a commit changed: where, and its fields with what they were and are."""

    object: str
    how: Literal["added", "changed", "removed"]
    file: str
    line: int
    fields: tuple[str, ...] = ()


def config_changes(old: Catalog, new: Catalog, made: Remade | None) -> tuple[ObjectChange, ...]:
    """Return what differs between two configs: of the objects that a package was made of, where any of these do."""
    keys = sorted({*old.objects, *new.objects})
    moved = [key for key in keys if _digest(old.objects.get(key)) != _digest(new.objects.get(key))]
    mine = [key for key in moved if made and _is_used(key, made)]
    return tuple(_object_change(old.objects.get(key), new.objects.get(key)) for key in (mine or moved)[:_MOST_OBJECTS])


def _digest(one: ConfigObject | None) -> str:
    return one.digest if one else ""


def _is_used(key: ObjectKey, made: Remade) -> bool:
    variant = made.variant
    if key in (variant.owner.key, variant.owner.set):
        return True
    names = {(one.kind, one.namespace, one.name) for one in objects_asked(made.trace)}
    names |= {
        (one["kind"], one.get("namespace", ""), one["name"])
        for one in (variant.provenance.objects() if variant.provenance else ())
    }
    homes = (key.namespace, "default") if not key.namespace else (key.namespace,)
    return any((key.kind, home, key.name) in names for home in homes)


def _object_change(old: ConfigObject | None, new: ConfigObject | None) -> ObjectChange:
    one = new or old
    assert one, "one of the two configs has it"
    if old is None or new is None:
        return ObjectChange(str(one.key), "added" if new else "removed", one.file, one.where.line)
    before, after = mask(old.data), mask(new.data, old.data, compared=True)
    is_hidden = one.key.group == GROUP
    changes = list(fields.field_changes(before, after))
    words = tuple(each.where if is_hidden else each.words() for each in changes[:_MOST_FIELDS])
    path = _written(new.data, first_path(old.data, new.data) or ())
    return ObjectChange(str(one.key), "changed", new.file, new.where_at(path).line, words)


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
class Turned:
    """A value with the commit of its branch since which it is what it is, and what it was before."""

    place: str
    branch: str
    asked: Asked
    before: Found
    now: Found
    commit: Person


@dataclass(frozen=True)
class Reason:
    """What made a value what it is.

    `commits` are of the config, of an upstream, or of people who edited; several where they could not be told apart.
    `through` are merges that brought them, `objects` what they changed in the config, `upstream` the commit of an
    upstream that the config had moved to. `by` is the rule that sets the value, `renders` how often it was made again,
    among `among` commits.
    """

    kind: Kind
    words: str
    commits: tuple[Person, ...] = ()
    through: tuple[Person, ...] = ()
    objects: tuple[ObjectChange, ...] = ()
    upstream: Person | None = None
    by: str = ""
    renders: int = 0
    among: int = 0


@dataclass(frozen=True)
class Why:
    """The answer: since when, and why."""

    turned: Turned
    reason: Reason
    config: tuple[str, str] = ("", "")
    notes: tuple[str, ...] = ()


def why_text(why: Why) -> str:
    """Return the answer as plain text."""
    return "\n".join(map(one_line, _text(why))) + "\n"


def _text(why: Why) -> Iterator[str]:
    turned, reason = why.turned, why.reason
    one = turned.now if turned.now.resource else turned.before
    where = " ".join(filter(None, (one.resource, turned.asked.place)))
    yield f"{turned.place} {where}: {_value(turned.now)}, {_was(turned.before)}"
    yield f"  on {turned.branch} since {person_words(turned.commit)}"
    yield f"  {reason.words}"
    for commit in reason.commits:
        yield f"    {person_words(commit)}"
    for merge in reason.through:
        yield f"      brought by {person_words(merge)}"
    for change in reason.objects:
        yield f"      {change.object} {change.how}  {change.file}:{change.line}"
        yield from (f"        {words}" for words in change.fields)
    if reason.upstream:
        yield f"    and in the upstream: {person_words(reason.upstream)}"
    if reason.by:
        yield f"  set by {reason.by}"
    yield from (f"  note: {note}" for note in why.notes)
    if reason.among:
        yield f"  found among {count(reason.among, 'commit')} by {count(reason.renders, 'render')}"


def _value(one: Found) -> str:
    return "has no value" if one.value is ABSENT else show(one.shown)


def _was(one: Found) -> str:
    return "was not there before" if one.value is ABSENT else f"was {show(one.shown)}"


def why_data(why: Why) -> dict[str, Any]:
    """Return the answer as JSON data; what is empty is left out."""
    turned, reason = why.turned, why.reason
    one = turned.now if turned.now.resource else turned.before
    values = {name: found.shown for name, found in (("before", turned.before), ("value", turned.now))}
    return told({
        "package": turned.place, "branch": turned.branch, "resource": one.resource, "file": one.file,
        "place": turned.asked.place, "pointer": one.pointer, "commit": person_data(turned.commit),
    }) | {name: value for name, value in values.items() if value is not ABSENT} | told({
        "reason": reason.kind, "words": reason.words, "commits": [person_data(each) for each in reason.commits],
        "through": [person_data(each) for each in reason.through],
        "objects": [told({**vars(each), "fields": [*each.fields]}) for each in reason.objects],
        "upstream": person_data(reason.upstream) if reason.upstream else None, "by": reason.by,
        "configs": told(dict(zip(("from", "to"), why.config, strict=True))), "notes": [*why.notes],
        "renders": reason.renders, "among": reason.among,
    })  # fmt: skip
