"""What a component type leaves on the status branch: CRD, schema, plan, and fields of its status (openchoreo 11.9)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from reconciler.krm.digest import digest
from reconciler.krm.yaml import WIDE_STYLE, emit
from reconciler.rules.composition.model import API_VERSION
from reconciler.rules.composition.plan import Plan, Use
from reconciler.rules.composition.schema import crd, json_schema

FOLDER = "types"
DEFINITION_FILE = "definition.yaml"


def type_files(plan: Plan, group: str) -> Mapping[str, bytes]:
    """Return the files of a type that is ready, by name."""
    schema = json.dumps(json_schema(plan.schema), indent=2, ensure_ascii=False) + "\n"
    return {
        "crd.yaml": emit(crd(plan.kind, group, plan.schema), WIDE_STYLE).encode(),
        "plan.yaml": emit(plan_data(plan), WIDE_STYLE).encode(),
        "schema.json": schema.encode(),
    }


def plan_data(plan: Plan) -> dict[str, Any]:
    """Return what components of a type are made of: its addons in their order, pinned by digest, and their values."""
    definition = plan.definition.one
    return {
        "componentType": plan.one.key.name,
        "kind": plan.kind,
        "definition": {
            "name": definition.key.name, "version": plan.definition.version,
            "digest": digest(definition.data["spec"]),
        },
        "platformAddons": [{**_platform(use), "config": use.values.data} for use in plan.platform],
        "developerAddons": [_developer(use) for use in plan.allowed.values()],
    }  # fmt: skip


def type_fields(plan: Plan) -> dict[str, Any]:
    """Return the fields of a ready type's status (openchoreo 11.9), without times."""
    return {
        "generatedCRD": {"apiVersion": API_VERSION, "kind": plan.kind},
        "appliedPlatformAddons": [_platform(use) for use in plan.platform],
        "developerAddons": [_developer(use) for use in plan.allowed.values()],
    }


def _platform(use: Use) -> dict[str, Any]:
    addon = use.addon
    return {"name": addon.name, "instanceId": use.instance.id, "version": addon.version, "digest": addon.digest}


def _developer(use: Use) -> dict[str, Any]:
    addon = use.addon
    return {"name": addon.name, "key": use.key, "version": addon.version, "digest": addon.digest}
