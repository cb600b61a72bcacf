"""Objects of the config that look as if they were read, and that nothing reads: unknown kinds, and unplaced Kafkas.

An object that is placed on clusters, that a package variant may inject, or that a set selects is used, of any
kind. An object in a folder with a Kptfile belongs to a package that is kept beside the config.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain
from posixpath import dirname
from typing import Any

from reconciler.krm.findings import Finding
from reconciler.krm.identity import split_api_version
from reconciler.rules.codes import KAFKA_NOT_PLACED
from reconciler.rules.placement.marks import CLUSTERS_ANNOTATION, is_marked
from reconciler.snapshot.catalog import PORCH_GROUP, Catalog, ConfigObject
from reconciler.snapshot.codes import UNKNOWN_KIND
from reconciler.snapshot.known_kinds import KNOWN_KINDS, group_read_for, kind_suggestion

_KAFKA_GROUP = "kafka.strimzi.io"
_COMPONENTS_GROUP = "platform"
_MAX_EXAMPLES = 5
_IsUsed = Callable[[ConfigObject], bool]


def unused_findings(catalog: Catalog) -> Iterator[Finding]:
    """Yield a warning for each unknown kind, and for each Kafka and KafkaNodePool that is placed nowhere.

    Nothing is reported while a file of the config cannot be read: it may contain what uses the object.
    """
    if not catalog.is_whole:
        return
    is_used = _used_in(catalog)
    for group, kind in catalog.kinds:
        objects = catalog.of_kind(group, kind)
        if group == _KAFKA_GROUP and kind in KNOWN_KINDS[_KAFKA_GROUP]:
            yield from (_not_placed(one) for one in objects if not is_used(one))
        elif _is_unknown(group, kind) and (unused := [one for one in objects if not is_used(one)]):
            yield _unknown_kind(group, kind, unused)


def _is_unknown(group: str, kind: str) -> bool:
    if group == _COMPONENTS_GROUP or not (read := group_read_for(group)):
        return False
    return read != group or kind not in KNOWN_KINDS[group]


def _unknown_kind(group: str, kind: str, objects: Sequence[ConfigObject]) -> Finding:
    read = group_read_for(group)
    suggestion = kind_suggestion(kind, read)
    hint = f"; did you mean {suggestion}?" if suggestion else ""
    known = f"; kinds of {read} that are read are {', '.join(KNOWN_KINDS[read])}"
    first, *others = objects
    examples = [f"{one.file}:{one.document.line}" for one in others[: _MAX_EXAMPLES - 1]]
    more = f" and {len(others) - len(examples)} more" if len(others) > len(examples) else ""
    same = f"; the same at {', '.join(examples)}{more}" if others else ""
    message = f"kind {kind} of {group} is not read, and nothing places or injects {first.key}{hint}{known}{same}"
    return UNKNOWN_KIND.finding(message, first.where_at(("kind",)))


def _not_placed(one: ConfigObject) -> Finding:
    message = (
        f"{one.key} is placed on no cluster; name clusters in metadata.annotations.{CLUSTERS_ANNOTATION}, or a"
        " propagation policy in a label"
    )
    return KAFKA_NOT_PLACED.finding(message, one.where)


def _used_in(catalog: Catalog) -> _IsUsed:
    """Return the test whether anything in the config uses an object that no controller reads."""
    specs = [spec for kind in ("PackageVariant", "PackageVariantSet") for spec in _specs(catalog, kind)]
    injectors = [one for spec in specs for one in _injectors(spec)]
    selected = {one for spec in specs for one in _selected_kinds(spec)}

    def is_used(one: ConfigObject) -> bool:
        return (
            is_marked(one)
            or (one.key.group, one.key.kind) in selected
            or any(_admits(injector, one) for injector in injectors)
            or _is_in_package(one.file, catalog.package_folders)
        )

    return is_used


def _is_in_package(file: str, folders: frozenset[str]) -> bool:
    folder = dirname(file)
    while folder:
        if folder in folders:
            return True
        folder = dirname(folder)
    return "" in folders


def _specs(catalog: Catalog, kind: str) -> Iterator[Mapping[str, Any]]:
    copies = [same for key, same in catalog.copies.items() if (key.group, key.kind) == (PORCH_GROUP, kind)]
    for one in (*catalog.of_kind(PORCH_GROUP, kind), *chain.from_iterable(copies)):
        yield _mapping(one.data.get("spec"))


def _injectors(spec: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield the injectors of a variant or of the templates of a set, whether or not the rest of it is valid."""
    templates = (_mapping(target.get("template")) for target in _mappings(spec.get("targets")))
    for one in (spec, *templates):
        yield from _mappings(one.get("injectors"))


def _selected_kinds(spec: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    for target in _mappings(spec.get("targets")):
        selector = _mapping(target.get("objectSelector"))
        yield split_api_version(str(selector.get("apiVersion", "")))[0], str(selector.get("kind", ""))


def _admits(injector: Mapping[str, Any], one: ConfigObject) -> bool:
    """Return whether an injector may take an object; an expression for the name may give any name."""
    wanted = ((injector.get("group"), one.key.group), (injector.get("kind"), one.key.kind))
    is_named = "nameExpr" in injector or injector.get("name") == one.key.name
    return is_named and all(written in (None, "", found) for written, found in wanted)


def _mapping(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _mappings(value: object) -> list[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []
