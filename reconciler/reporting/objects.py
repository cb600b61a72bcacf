"""The status branch: one file per config object, and a summary (design 10.27).

Times are the only thing here that a pass brings with it: they are kept from the previous files wherever
what they belong to is unchanged, so that nothing is written when nothing but time changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.dates import rfc3339
from reconciler.krm.identity import ObjectKey
from reconciler.krm.yaml import YamlError, emit, parse
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.owners import ObjectStatus, owner_statuses
from reconciler.reporting.paths import object_path
from reconciler.reporting.summary import SUMMARY, summary_file

MAX_CHILDREN = 1000


def status_files(plan: FleetPlan, previous: Mapping[str, bytes], max_children: int = MAX_CHILDREN) -> dict[str, bytes]:
    """Return all files of the status branch by path; `previous` are those that stand there now.

    The healthy children of a set with more than `max_children` are counted in the set, not written.
    """
    statuses = owner_statuses(plan)
    counted = set(_counted(plan, statuses, max_children))
    now = rfc3339(plan.as_of)
    files = {path: previous[path] for path in map(object_path, plan.room.kept) if path in previous}
    for key, status in statuses.items():
        if key not in counted:
            path = object_path(key)
            files[path] = _object_file(status, previous.get(path, b""), now)
    return dict(sorted({**files, SUMMARY: summary_file(plan, statuses)}.items()))


def _counted(plan: FleetPlan, statuses: Mapping[ObjectKey, ObjectStatus], max_children: int) -> Iterator[ObjectKey]:
    for maker in plan.room.statuses:
        if len(maker.children) > max_children:
            yield from (child for child in maker.children if child in statuses and statuses[child].is_ready)


def _object_file(status: ObjectStatus, previous: bytes, now: str) -> bytes:
    before = _status_of(previous)
    document = {
        "apiVersion": status.api_version,
        "kind": status.key.kind,
        "metadata": _metadata(status),
        **({"spec": status.spec} if status.spec is not None else {}),
        "status": {"conditions": _conditions(status.conditions, before, now), **_fields(status.fields, before)},
    }
    return emit(document).encode()


def _metadata(status: ObjectStatus) -> dict[str, Any]:
    identity = {"name": status.key.name, **({"namespace": status.key.namespace} if status.key.namespace else {})}
    return {**identity, **status.metadata}


def _status_of(content: bytes) -> Mapping[str, Any]:
    # whatever people made of the file: what cannot be read counts as never written
    try:
        documents = parse(content).documents
    except YamlError:
        return {}
    status = documents[0].data.get("status") if documents and isinstance(documents[0].data, dict) else None
    return status if isinstance(status, dict) else {}


def _conditions(conditions: Iterable[Condition], before: Mapping[str, Any], now: str) -> list[dict[str, str]]:
    since = {
        (one.get("type"), one.get("status")): one.get("lastTransitionTime") for one in _items(before, "conditions")
    }
    return [
        {**one.as_data(), "lastTransitionTime": str(since.get((one.type, one.status)) or now)}
        for one in upsert(conditions)
    ]


def _fields(fields: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other fields; a target that was not rendered anew keeps its `renderStatus` (porch 10)."""
    known = {one.get("name"): one.get("renderStatus") for one in _items(before, "downstreamTargets")}
    return {
        name: [_kept(target, known) for target in value] if name == "downstreamTargets" else value
        for name, value in fields.items()
    }


def _kept(target: Mapping[str, Any], known: Mapping[Any, Any]) -> dict[str, Any]:
    old = known.get(target["name"])
    return {"name": target["name"], **({"renderStatus": old} if old else {}), **target}


def _items(status: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    items = status.get(name)
    return [item for item in items if isinstance(item, dict)] if isinstance(items, list) else []
