"""The label that says which team owns a preset; asked only where the config has teams (greenhouse 10)."""

from __future__ import annotations

from reconciler.krm.conditions import Condition
from reconciler.krm.findings import Code, Finding
from reconciler.krm.identity import ObjectKey
from reconciler.rules.presets.codes import (
    OWNER_LABEL_MISSING,
    OWNER_LABEL_NOT_EXISTING_TEAM,
    OWNER_LABEL_NOT_SUPPORT_GROUP,
)
from reconciler.rules.presets.injected import OWNED_BY
from reconciler.rules.presets.model import GROUP, TEAM
from reconciler.rules.presets.status import OWNER_LABEL
from reconciler.snapshot.catalog import Catalog, ConfigObject

SUPPORT_GROUP = f"{GROUP}/support-group"


def check_owner_label(one: ConfigObject, catalog: Catalog) -> tuple[Condition | None, tuple[Finding, ...]]:
    """Return the condition of an object's owner label, and a warning where it names no support group."""
    if not catalog.of_kind(GROUP, TEAM):
        return None, ()
    fault = _fault(one, catalog)
    if fault is None:
        return Condition(OWNER_LABEL, "True", "OwnerLabelSet", ""), ()
    code, why = fault
    message = f"metadata.labels.{OWNED_BY} {why}"
    finding = code.finding(message, one.where_at(("metadata", "labels", OWNED_BY)))
    return Condition(OWNER_LABEL, "False", code.name, message), (finding,)


def _fault(one: ConfigObject, catalog: Catalog) -> tuple[Code, str] | None:
    name = one.labels.get(OWNED_BY, "")
    if not name:
        return OWNER_LABEL_MISSING, "must name the team that owns this"
    team = catalog.get(ObjectKey(GROUP, TEAM, one.key.namespace, name))
    if team is None:
        return OWNER_LABEL_NOT_EXISTING_TEAM, f'must name a Team of {one.key.namespace}, and "{name}" is none'
    if team.labels.get(SUPPORT_GROUP) != "true":
        return (
            OWNER_LABEL_NOT_SUPPORT_GROUP,
            f'must name a support group, and the Team "{name}" does not say that it is one',
        )
    return None
