"""The status branch: one file per config object, own files of some, and a summary (design 3, 10.27).

Times are the only thing here that a pass brings with it: they are kept from the previous files wherever
what they belong to is unchanged, so that nothing is written when nothing but time changed.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Set
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.dates import rfc3339
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import YamlError, emit, parse
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.owners import ObjectStatus, OwnerMemory, owner_statuses
from reconciler.reporting.paths import files_folder, object_path
from reconciler.reporting.sections import items, section
from reconciler.reporting.summary import SUMMARY, Entries, SummaryMemory, entries_of, summary_file

MAX_CHILDREN = 1000
_TIMES = re.compile(rb'^    lastTransitionTime: "([^"\n]*)"$', re.MULTILINE)
# the files of a pass are read again by the next one; more of them are worth less than the memory
_REMEMBERED_FILES = 20_000


class StatusMemory:
    """What was told in the last pass, so that telling costs what has changed; an empty one comes to the same."""

    def __init__(self) -> None:
        self.owners = OwnerMemory()
        self.summary = SummaryMemory()
        self._standing: dict[ObjectKey, tuple[ObjectStatus, _Standing]] = {}

    def stand(
        self, statuses: Iterable[ObjectStatus], previous: Mapping[str, bytes], large: Set[str], now: str
    ) -> list[_Standing]:
        """Return how the file of each object is to stand; `previous` are the files that stand there now.

        Files in `large` are not written as long as all is well.
        """
        before, self._standing = self._standing, {}
        for status in statuses:
            was, known = before.get(status.key, (None, None))
            if known is None or (was is not status and was != status) or not known.stands(previous, large):
                known = _stand(status, previous, now)
            self._standing[status.key] = (status, known)
        return [standing for _, standing in self._standing.values()]


def status_files(
    plan: FleetPlan,
    previous: Mapping[str, bytes],
    max_children: int = MAX_CHILDREN,
    memory: StatusMemory | None = None,
) -> dict[str, bytes]:
    """Return all files of the status branch by path; `previous` are those that stand there now.

    The healthy children of a set with more than `max_children` are counted in the set, not written. The
    variants of a set that failed stay as they are, and so does what an unreadable file may still hold. What is told
    of owners that another shard has yet to decide on, and of who made them, stays as it is as well, or is not told yet.
    """
    memory = memory or StatusMemory()
    large = frozenset(_children_of_large_sets(plan, max_children))
    standing = memory.stand(owner_statuses(plan, memory.owners).values(), previous, large, rfc3339(plan.as_of))
    files = {one.path: one.written for one in standing if one.path not in large or not one.is_well}
    files |= _own_files(plan)
    if left := _left_alone(plan, previous):
        kept = left - {*files, *(one.path for one in standing)}
        files |= {path: previous[path] for path in kept}
    if awaited := set(_awaited(plan)):
        files = {path: content for path, content in files.items() if path not in awaited}
        files |= {path: previous[path] for path in awaited if path in previous}
    summary = summary_file(plan, [one.entries for one in standing], memory.summary)
    return dict(sorted({**files, SUMMARY: summary}.items()))


@dataclass(frozen=True)
class _Standing:
    """One file as it is to stand, with the document and the bytes that stand there now."""

    path: str
    document: dict[str, Any]
    known: Mapping[str, Any]
    previous: bytes

    @cached_property
    def written(self) -> bytes:
        """Its bytes; those that stand there say the same most of the time."""
        return self.previous if self.document == self.known else emit(self.document).encode()

    def stands(self, previous: Mapping[str, bytes], large: Set[str]) -> bool:
        """Return whether this is what stands there, or that nothing does because all is well with one of many."""
        there = previous.get(self.path)
        return there == self.written if there is not None else self.path in large and self.is_well

    @cached_property
    def entries(self) -> Entries:
        """What the summary lists of it."""
        return entries_of(self.document)

    @property
    def is_well(self) -> bool:
        """Whether the object is ready, with nothing between its drafts and their approval."""
        return self.entries.is_well


def _stand(status: ObjectStatus, previous: Mapping[str, bytes], now: str) -> _Standing:
    path = object_path(status.key)
    content = previous.get(path, b"")
    if unchanged := _unchanged(status, content):
        return _Standing(path, unchanged, unchanged, content)
    known = _read(content)
    return _Standing(path, _document(status, known, now), known, content)


def _unchanged(status: ObjectStatus, content: bytes) -> dict[str, Any] | None:
    """Return the document when its file says it already, at whatever times; None also when that is not easy to see."""
    # writing a text and comparing it takes a fraction of reading one
    times = [time.decode(errors="replace") for time in _TIMES.findall(content)]
    conditions = upsert(status.conditions)
    if len(times) != len(conditions):
        return None
    timed = [{**one.as_data(), "lastTransitionTime": time} for one, time in zip(conditions, times, strict=True)]
    document = _whole(status, timed, status.fields)
    return document if emit(document).encode() == content else None


def _children_of_large_sets(plan: FleetPlan, max_children: int) -> Iterator[str]:
    for maker in plan.room.statuses:
        if len(maker.children) > max_children:
            yield from map(object_path, maker.children)


def _awaited(plan: FleetPlan) -> Iterator[str]:
    makers = (one.key for one in plan.room.statuses if not plan.awaited.isdisjoint(one.children))
    yield from map(object_path, {*plan.awaited, *makers})


def _left_alone(plan: FleetPlan, previous: Mapping[str, bytes]) -> set[str]:
    """Return the files of variants whose set says nothing of them in this pass (RoomResult.kept), and the like.

    While a file of the config cannot be read, that is every object that the config does not show.
    """
    if not plan.complete:
        return {path for path in previous if path != SUMMARY}
    folders = tuple(files_folder(one.folder, one.key) for one in plan.room.statuses if one.folder and one.files is None)
    kept = {(key.kind, key.namespace, key.name) for key in plan.room.kept}
    if not (folders or kept):
        return set()
    own = {path for path in previous if path.startswith(folders)}
    variants = [path for path in previous if path.startswith("objects/") and "/PackageVariant/" in path]
    return own | {path for path in variants if kept and _makers(_read(previous[path])) & kept}


def _own_files(plan: FleetPlan) -> dict[str, bytes]:
    """Return the files that objects have beside their status: what became of component types (design 3)."""
    return {
        files_folder(one.folder, one.key) + name: content
        for one in plan.room.statuses
        if one.files
        for name, content in one.files.items()
    }


def _makers(document: Mapping[str, Any]) -> set[tuple[str, str, str]]:
    metadata = section(document, "metadata")
    namespace = str(metadata.get("namespace"))
    return {(str(one.get("kind")), namespace, str(one.get("name"))) for one in items(metadata, "ownerReferences")}


def _document(status: ObjectStatus, before: Mapping[str, Any], now: str) -> dict[str, Any]:
    known = section(before, "status")
    return _whole(status, _conditions(status.conditions, known, now), _fields(status.fields, known))


def _whole(status: ObjectStatus, conditions: list[dict[str, str]], fields: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "apiVersion": status.api_version,
        "kind": status.key.kind,
        "metadata": _metadata(status),
        **({"spec": status.spec} if status.spec is not None else {}),
        "status": {"conditions": conditions, **fields},
    }


def _metadata(status: ObjectStatus) -> dict[str, Any]:
    identity = {"name": status.key.name, **({"namespace": status.key.namespace} if status.key.namespace else {})}
    return {**identity, **status.metadata}


@lru_cache(maxsize=_REMEMBERED_FILES)
def _read(content: bytes) -> Mapping[str, Any]:
    # whatever people made of the file: what cannot be read counts as never written
    try:
        documents = parse(content).documents
    except YamlError:
        return {}
    return documents[0].data if documents and isinstance(documents[0].data, dict) else {}


def _conditions(conditions: Iterable[Condition], before: Mapping[str, Any], now: str) -> list[dict[str, str]]:
    since = {
        (str(one.get("type")), str(one.get("status"))): str(one.get("lastTransitionTime") or now)
        for one in items(before, "conditions")
    }
    return [
        {**one.as_data(), "lastTransitionTime": since.get((one.type, one.status), now)} for one in upsert(conditions)
    ]


def _fields(fields: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other fields; a target that was not rendered anew keeps its `renderStatus` (porch 10)."""
    known = {str(one.get("name")): one.get("renderStatus") for one in items(before, "downstreamTargets")}
    return {
        name: [_kept(target, known) for target in value] if name == "downstreamTargets" else value
        for name, value in fields.items()
    }


def _kept(target: Mapping[str, Any], known: Mapping[str, Any]) -> dict[str, Any]:
    old = known.get(target["name"])
    return {"name": target["name"], **({"renderStatus": old} if old else {}), **target}
