"""One file of the status branch: what it says of an object, with the times that it has kept (design 3, 10.27)."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from reconciler.krm.codes import INTERNAL_ERROR
from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.dates import rfc3339
from reconciler.krm.identity import ObjectKey
from reconciler.krm.isolation import InternalFailure
from reconciler.krm.yaml import YamlError, emit, parse
from reconciler.reporting.destination_statuses import ObjectStatus
from reconciler.reporting.paths import object_path
from reconciler.reporting.sections import items, section
from reconciler.reporting.summary import Entries, entries_of
from reconciler.snapshot.objects import UNDATED_SECONDS

# The first line of a condition, or its time. A condition has no time where no commit that was read has a date.
_CONDITION_OR_TIME = re.compile(rb'^(?:  - type: |    lastTransitionTime: "([^"\n]*)"$)', re.MULTILINE)
# Earlier versions wrote this date for an unknown one. It is not a time, and is not kept.
_UNKNOWN_TIME = rfc3339(UNDATED_SECONDS)


@dataclass(frozen=True, eq=False)
class ObjectFile:
    """A file as it is to stand: whose it is and where, what the summary lists of it, and what stands there now.

    `document` is what it is to say; None when that is what stands there.
    """

    status: ObjectStatus
    path: str
    entries: Entries
    previous: bytes
    document: dict[str, Any] | None = None

    @cached_property
    def written(self) -> bytes:
        """Its bytes."""
        return self.previous if self.document is None else emit(self.document).encode()

    def with_bytes(self) -> ObjectFile:
        """Return the file, with its bytes made."""
        _ = self.written
        return self

    @property
    def key(self) -> ObjectKey:
        """The object that it tells of."""
        return self.status.key

    @property
    def is_well(self) -> bool:
        """Whether the object is ready, with nothing between its drafts and their approval."""
        return self.entries.is_well

    def stands(self, previous: Mapping[str, bytes], large: Collection[ObjectKey]) -> bool:
        """Return whether this is what stands there, or that nothing does because all is well with one of many."""
        there = previous.get(self.path)
        return there == self.written if there is not None else self.key in large and self.is_well


def object_file(status: ObjectStatus, previous: Mapping[str, bytes], now: str) -> ObjectFile:
    """Return the file of an object; times are kept from the one among `previous`, where what they belong to is.

    `now` is the time of conditions that are new, "" where it is unknown: then they have no time.
    """
    path = object_path(status.key)
    content = previous.get(path, b"")
    if unchanged := _unchanged(status, content):
        return ObjectFile(status, path, entries_of(unchanged), content)
    known = read_document(content)
    document = _document(status, known, now)
    return ObjectFile(status, path, entries_of(document), content, None if document == known else document)


def failed_object_file(status: ObjectStatus, previous: Mapping[str, bytes], failure: InternalFailure) -> ObjectFile:
    """Return the file of an object whose status cannot be written: its identity, and the failure as a condition."""
    path, condition = object_path(status.key), Condition("Ready", "False", INTERNAL_ERROR.name, failure.message)
    plain = ObjectStatus(status.key, status.api_version, (condition,))
    document = _whole(plain, [condition.as_data()], {})
    return ObjectFile(plain, path, entries_of(document), previous.get(path, b""), document)


def read_document(content: bytes) -> Mapping[str, Any]:
    """Return what a file says; what cannot be read, whatever people made of it, counts as never written."""
    try:
        documents = parse(content).documents
    except YamlError:
        return {}
    return documents[0].data if documents and isinstance(documents[0].data, dict) else {}


def _unchanged(status: ObjectStatus, content: bytes) -> dict[str, Any] | None:
    """Return the document when its file says it already, at whatever times; None also when that is not easy to see."""
    # writing a text and comparing it takes a fraction of reading one
    times = _times(content)
    conditions = upsert(status.conditions)
    if len(times) != len(conditions) or _UNKNOWN_TIME in times:
        return None
    timed = [_timed(one, time) for one, time in zip(conditions, times, strict=True)]
    document = _whole(status, timed, status.fields)
    return document if emit(document).encode() == content else None


def _times(content: bytes) -> list[str]:
    """Return the time of each condition in a file, "" where it has none."""
    times: list[str] = []
    for found in _CONDITION_OR_TIME.finditer(content):
        if found[1] is None:
            times.append("")
        elif times:
            times[-1] = found[1].decode(errors="replace")
    return times


def _timed(condition: Condition, time: str) -> dict[str, str]:
    return {**condition.as_data(), **({"lastTransitionTime": time} if time else {})}


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


def _conditions(conditions: Iterable[Condition], before: Mapping[str, Any], now: str) -> list[dict[str, str]]:
    times = {
        (str(one.get("type")), str(one.get("status"))): str(one.get("lastTransitionTime") or "")
        for one in items(before, "conditions")
    }
    known = {name: "" if time == _UNKNOWN_TIME else time for name, time in times.items()}
    return [_timed(one, known.get((one.type, one.status), now)) for one in upsert(conditions)]


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
