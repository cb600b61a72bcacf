"""Validating: everything that is wrong with a config, or odd about it, whether or not a pass would stumble over it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from reconciler.daemon.reconcile import catalog_findings, gather, plan_proposal
from reconciler.daemon.remotes import Remotes
from reconciler.daemon.tools import ConfigSource, Tools
from reconciler.krm.findings import Finding
from reconciler.krm.identity import ObjectKey
from reconciler.planning.fleet import FleetPlan
from reconciler.planning.lint import told_once
from reconciler.snapshot.catalog import ConfigObject


@dataclass(frozen=True)
class Validated:
    """What was found about a config, and the objects of it, by which findings have their places."""

    findings: tuple[Finding, ...]
    objects: Mapping[ObjectKey, ConfigObject]


def validate(source: ConfigSource, remotes: Remotes, tools: Tools) -> Validated:
    """Return every finding about the config: files, objects, references, and what rooms make of them."""
    found = gather(source, remotes, tools)
    room = tools.rooms(found.catalog, remotes, {}, found.now)
    proposal = plan_proposal(found, room, tools, ())
    made = (finding for variant in room.variants for finding in variant.findings)
    told = (*catalog_findings(found.catalog), *proposal.findings, *made)
    findings = FleetPlan(found.snapshot.id, 0, room, (), told, objects=found.catalog.objects).all_findings()
    odd = told_once(findings, tools.lint(found.catalog, remotes, room, found.now))
    return Validated((*findings, *odd), found.catalog.objects)
