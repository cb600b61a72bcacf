"""The envs overrider: whole entries of a container's environment, by name (kubeadmiral 5.4)."""

from __future__ import annotations

from typing import Any

from reconciler.krm.yaml import Path
from reconciler.rules.edits import with_value
from reconciler.rules.notes import Note
from reconciler.rules.overrides.codes import KEY_EXISTS, POD_SPEC_MALFORMED
from reconciler.rules.overrides.command_args import find_container, with_items
from reconciler.rules.overrides.effect import Effect
from reconciler.rules.overrides.model import EnvItem
from reconciler.rules.overrides.pod_spec import Template


def apply_envs(data: Any, item: EnvItem, template: Template) -> Effect:
    """Return the resource with the environment of one container changed; entries keep place and unknown fields."""
    container = find_container(data, item.container, template)
    if isinstance(container, Note):
        return Effect(data, (container,))
    path, old = (*container.path, "env"), container.data.get("env")
    if old is not None and not (isinstance(old, list) and all(isinstance(one, dict) for one in old)):
        return Effect(data, (Note(POD_SPEC_MALFORMED, "env must be a list of mappings", path),))
    match item.operator:
        case "addIfAbsent":
            return _added(data, item, path, old or [])
        case "overwrite" | "set":
            # of two entries of one name in the policy the later wins, as everywhere
            entries = {entry["name"]: entry for entry in item.value}
            new: list[Any] = [entries.get(str(one.get("name")), one) for one in old or ()]
            if item.operator == "set":
                known = {one.get("name") for one in new}
                new += (entry for name, entry in entries.items() if name not in known)
            return Effect(data if new == (old or []) else with_value(data, path, new))
        case "delete":
            names = {entry["name"] for entry in item.value}
            kept = [one for one in old or () if one.get("name") not in names]
            return Effect(with_items(data, path, old or (), kept))


def _added(data: Any, item: EnvItem, path: Path, old: list[Any]) -> Effect:
    names = {one.get("name") for one in old}
    for entry in item.value:
        if entry["name"] in names:
            message = f"addIfAbsent needs an environment without {entry['name']}"
            return Effect(data, (Note(KEY_EXISTS, message, path),))
        names.add(entry["name"])
    return Effect(with_value(data, path, [*old, *item.value]))
