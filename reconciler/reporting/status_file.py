"""Status files: what stands beside a package on its branch and says what made it (design 3, 10.28).

The order of the fields is fixed; what is empty or unknown is left out, so that every line says something.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from reconciler.krm.findings import Finding, Severity
from reconciler.krm.secrets import MASK
from reconciler.krm.yaml import emit
from reconciler.planning.conflicts import conflict_data
from reconciler.planning.destination import Destination
from reconciler.planning.outcome import Draft, Rendered
from reconciler.reporting.inputs import inputs_data
from reconciler.reporting.kptfile_changes import kptfile_lock
from reconciler.reporting.templates import children_data

API_VERSION = "reconciler.dev/v1alpha1"
KIND = "PackageStatus"
_ANNOTATIONS = {"config.kubernetes.io/local-config": "true", "argocd.argoproj.io/hook": "Skip"}


def status_file(draft: Draft, destination: Destination, config: str) -> bytes:
    """Return the PackageStatus of a draft; `config` is the config commit, or `tree:<id>`.

    Equal drafts give equal bytes: there is no time in it, and nothing of the engine.
    """
    package = draft.variant.place.package
    document = {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "metadata": {"name": package.replace("/", "."), "annotations": _ANNOTATIONS},
        "status": _with_draft_metadata(draft, told(_status(draft, destination, config))),
    }
    return emit(document).encode()


def told(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that say something: without None, empty texts, lists and mappings."""
    return {name: value for name, value in fields.items() if value not in (None, "", (), [], {})}


def _status(draft: Draft, destination: Destination, config: str) -> dict[str, Any]:
    rendered, templates = draft.rendered, draft.rendered.templates
    return {
        "repository": destination.name,
        "package": draft.variant.place.package,
        "owner": draft.variant.owner.as_data(),
        "task": draft.task,
        "upstream": told({"from": _from(draft), "to": draft.variant.source.as_data()}),
        "trees": {"base": draft.base, "merged": draft.merged, "rendered": rendered.files.id},
        "inputs": told(inputs_data(draft.variant, rendered, draft.record.trace, config)),
        "conditions": [told(condition.as_data()) for condition in rendered.conditions],
        "readinessGates": _gates(rendered),
        "injected": injected_data(rendered),
        "conflicts": [conflict_data(one) for one in rendered.conflicts],
        "appliedOverrides": provenance.applied() if (provenance := draft.variant.provenance) else [],
        "layers": [*(provenance.layers() if provenance else ()), *(templates.as_data() if templates else ())],
        "overrides": [dict(one) for one in rendered.overrides],
        "templates": children_data(templates.effects if templates else ()),
        "results": [dict(result) for result in rendered.results],
        "warnings": list(_warnings(rendered.findings)),
    }


def _with_draft_metadata(draft: Draft, status: dict[str, Any]) -> dict[str, Any]:
    """Return the status with the labels and annotations that the draft was created with, after its task.

    Empty ones are written for a package with an upstream: a file without them is one of an earlier version, of which
    these are unknown.
    """
    metadata = {"labels": dict(draft.labels), "annotations": dict(draft.annotations)}
    if draft.variant.upstream is None:
        metadata = told(metadata)
    return {
        name: value
        for field, found in status.items()
        for name, value in ({field: found, **metadata} if field == "task" else {field: found}).items()
    }


def _from(draft: Draft) -> dict[str, Any]:
    """Return the lock of what the draft replaces, with the tree that it names where that is ours to know."""
    lock = kptfile_lock(draft.before)
    known = {name: lock[name] for name in ("repo", "directory", "ref", "commit") if name in lock}
    offers = [offer for offer in (draft.record.put, draft.record.ours) if offer and offer.rendered == draft.before.id]
    # a person may have changed the lock of what is not as we offered it
    return told({**known, "tree": offers[0].base if offers and known else ""})


def injected_data(rendered: Rendered) -> list[dict[str, str]]:
    """Return `injected`: each injection that happened, of a Secret without its hash."""
    return [_injected(one.as_data()) for one in rendered.injected]


def _injected(data: dict[str, str]) -> dict[str, str]:
    return told({**data, "hash": MASK} if data["object"].startswith("Secret/") else data)


def _gates(rendered: Rendered) -> list[dict[str, Any]]:
    unmet = rendered.unmet_gates
    return [{"conditionType": gate, "met": gate not in unmet} for gate in rendered.gates]


def _warnings(findings: Iterable[Finding]) -> Iterable[dict[str, Any]]:
    for finding in findings:
        if finding.severity is not Severity.ERROR:
            where = finding.where
            yield told({
                "code": finding.code, "severity": finding.severity.value, "message": finding.message,
                "object": where.object, "file": where.file, "pointer": where.pointer,
            })  # fmt: skip
