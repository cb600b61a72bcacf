"""The status branch: one file per config object, and a summary (design 10.27).

Times are the only thing here that a pass brings with it: they are kept from the previous files wherever
what they belong to is unchanged, so that nothing is written when nothing but time changed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from reconciler.krm.conditions import Condition, upsert
from reconciler.krm.dates import rfc3339
from reconciler.krm.yaml import YamlError, emit, parse
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.owners import ObjectStatus, owner_statuses
from reconciler.reporting.paths import object_path
from reconciler.reporting.sections import items, section
from reconciler.reporting.summary import SUMMARY, is_well, summary_file

MAX_CHILDREN = 1000


def status_files(plan: FleetPlan, previous: Mapping[str, bytes], max_children: int = MAX_CHILDREN) -> dict[str, bytes]:
    """Return all files of the status branch by path; `previous` are those that stand there now.

    The healthy children of a set with more than `max_children` are counted in the set, not written. The
    variants of a set that failed stay as they are.
    """
    now, statuses = rfc3339(plan.as_of), owner_statuses(plan)
    found = {object_path(key): _document(status, _read(previous.get(object_path(key), b"")), now)
             for key, status in statuses.items()}  # fmt: skip
    counted = {path for path in _children(plan, max_children) if path in found and is_well(found[path])}
    files = {path: emit(document).encode() for path, document in found.items() if path not in counted}
    files |= {path: previous[path] for path in _left_alone(plan, previous) if path not in found}
    return dict(sorted({**files, SUMMARY: summary_file(plan, found.values())}.items()))


def _children(plan: FleetPlan, max_children: int) -> Iterator[str]:
    for maker in plan.room.statuses:
        if len(maker.children) > max_children:
            yield from map(object_path, maker.children)


def _left_alone(plan: FleetPlan, previous: Mapping[str, bytes]) -> Iterator[str]:
    """Yield the files of variants whose set says nothing of them in this pass (RoomResult.kept)."""
    kept = {(key.kind, key.namespace, key.name) for key in plan.room.kept}
    for path, content in previous.items() if kept else ():
        if path.startswith("objects/") and "/PackageVariant/" in path:
            metadata = section(_read(content), "metadata")
            owners = {
                (one.get("kind"), metadata.get("namespace"), one.get("name"))
                for one in items(metadata, "ownerReferences")
            }
            if owners & kept:
                yield path


def _document(status: ObjectStatus, before: Mapping[str, Any], now: str) -> dict[str, Any]:
    known = section(before, "status")
    return {
        "apiVersion": status.api_version,
        "kind": status.key.kind,
        "metadata": _metadata(status),
        **({"spec": status.spec} if status.spec is not None else {}),
        "status": {"conditions": _conditions(status.conditions, known, now), **_fields(status.fields, known)},
    }


def _metadata(status: ObjectStatus) -> dict[str, Any]:
    identity = {"name": status.key.name, **({"namespace": status.key.namespace} if status.key.namespace else {})}
    return {**identity, **status.metadata}


def _read(content: bytes) -> Mapping[str, Any]:
    # whatever people made of the file: what cannot be read counts as never written
    try:
        documents = parse(content).documents
    except YamlError:
        return {}
    return documents[0].data if documents and isinstance(documents[0].data, dict) else {}


def _conditions(conditions: Iterable[Condition], before: Mapping[str, Any], now: str) -> list[dict[str, str]]:
    since = {(one.get("type"), one.get("status")): one.get("lastTransitionTime") for one in items(before, "conditions")}
    return [
        {**one.as_data(), "lastTransitionTime": str(since.get((one.type, one.status)) or now)}
        for one in upsert(conditions)
    ]


def _fields(fields: Mapping[str, Any], before: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other fields; a target that was not rendered anew keeps its `renderStatus` (porch 10)."""
    known = {one.get("name"): one.get("renderStatus") for one in items(before, "downstreamTargets")}
    return {
        name: [_kept(target, known) for target in value] if name == "downstreamTargets" else value
        for name, value in fields.items()
    }


def _kept(target: Mapping[str, Any], known: Mapping[Any, Any]) -> dict[str, Any]:
    old = known.get(target["name"])
    return {"name": target["name"], **({"renderStatus": old} if old else {}), **target}
