"""The summary of the fleet on the status branch: totals, what is not well, and every finding with its place."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import emit
from reconciler.planning.fleet import FleetPlan
from reconciler.reporting.findings import findings_data
from reconciler.reporting.leaving import waiting_data
from reconciler.reporting.sections import items, section
from reconciler.reporting.status_file import told
from reconciler.reporting.tally import ENDS

SUMMARY = "summary.yaml"
_FOLDERS = ("objects/", "types/")
_MOST_LISTED = 1000

StatusDocument = Mapping[str, Any]


def is_status(paths: Collection[str]) -> bool:
    """Return whether the files of a branch are those of a status, and not those of a config or a cluster."""
    return SUMMARY in paths or all(path.startswith(_FOLDERS) for path in paths)


@dataclass(frozen=True)
class Entries:
    """What the summary lists of one object, by its name."""

    name: str
    not_ready: tuple[dict[str, Any], ...]
    gated: tuple[dict[str, Any], ...]
    is_well: bool


def entries_of(document: StatusDocument) -> Entries:
    """Return what the summary lists of an object of the status branch.

    It is well when it is ready, with nothing between its drafts and their approval.
    """
    ready = any((one.get("type"), one.get("status")) == ("Ready", "True") for one in _conditions(document))
    gated = tuple(_gated(document))
    return Entries(_name(document), tuple(_not_ready(document)), gated, ready and not gated)


def summary_file(plan: FleetPlan, objects: Iterable[Entries], tallies: Sequence[Mapping[str, int]]) -> bytes:
    """Return `summary.yaml`: `totals`, and up to 1,000 each of `notReady`, `gated`, `held`, `leaving` and `findings`.

    `objects` are those of the status branch as they will stand there, `tallies` those of the destinations. A list
    that is longer ends at 1,000; its whole length stands in `totals`.
    """
    known = sorted((one for one in objects if one.not_ready or one.gated), key=lambda one: one.name)
    going = [one for one in plan.destinations if one.leaving]
    lists: dict[str, list[dict[str, Any]]] = {
        "notReady": [entry for one in known for entry in one.not_ready],
        "gated": [entry for one in known for entry in one.gated],
        "held": list(_held(plan)),
        "leaving": [dict(one) for destination in going for one in waiting_data(destination)],
        "findings": findings_data(plan.all_findings()),
    }
    totals = {**_totals(plan, tallies), **{name: len(listed) for name, listed in lists.items()}}
    document = {"totals": totals, **{name: listed[:_MOST_LISTED] for name, listed in lists.items() if listed}}
    return emit(document).encode()


def _totals(plan: FleetPlan, tallies: Sequence[Mapping[str, int]]) -> dict[str, int]:
    ends = {end: sum(one[end] for one in tallies) for end in ENDS}
    more = {"awaited": len(plan.awaited)} if plan.awaited else {}
    counts = {"packages": sum(ends.values()), **ends, "stalled": len(plan.room.stalled), **more}
    return {"destinations": len(plan.destinations), **counts}


def _name(document: StatusDocument) -> str:
    metadata = section(document, "metadata")
    return f"{document['kind']}/{metadata.get('namespace') or '_cluster'}/{metadata['name']}"


def _conditions(document: StatusDocument) -> list[Mapping[str, Any]]:
    return items(section(document, "status"), "conditions")


def _not_ready(document: StatusDocument) -> Iterator[dict[str, Any]]:
    for one in _conditions(document):
        if one["type"] == "Ready" and one["status"] != "True":
            yield told({"object": _name(document), "reason": one["reason"], "message": one["message"]})


def _gated(document: StatusDocument) -> Iterator[dict[str, Any]]:
    for target in items(section(document, "status"), "downstreamTargets"):
        render = section(target, "renderStatus")
        if render.get("status") == "False" or render.get("unmetGates"):
            fields = {name: render.get(name) for name in ("reason", "message", "unmetGates")}
            yield told({"object": _name(document), "target": target["name"], **fields})


def _held(plan: FleetPlan) -> Iterator[dict[str, Any]]:
    for destination in plan.destinations:
        for one in destination.held:
            place = f"{destination.destination.name}/{one.package}"
            yield told({"package": place, "reason": one.finding.code, "message": one.finding.message})
