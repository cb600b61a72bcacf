"""The one step of a Plugin's package: its spec is ours, labels and annotations are people's, too (greenhouse 11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import parse
from reconciler.krm.yaml.same import same
from reconciler.rules.presets.model import PLUGIN
from reconciler.rules.variant import Earlier, Mutated
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

PLUGIN_FILE = "plugin.yaml"


@dataclass(frozen=True)
class RestorePlugin:
    """Gives a Plugin the spec that it is to have, and takes labels and annotations away that it is not to have.

    People's other labels and annotations stay, and nothing else of theirs: manual edits of a spec are overwritten.
    """

    name: str
    spec: Mapping[str, Any]
    without_labels: frozenset[str] = frozenset()
    without_annotations: frozenset[str] = frozenset()

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the package with its Plugin put right, wherever in its file people have moved it."""
        source = parse(files[PLUGIN_FILE].data)
        number = next(number for number, one in enumerate(source.documents) if self._is_plugin(one.data))
        document = source.documents[number]
        data = {**document.data, "metadata": self._metadata(document.data["metadata"]), "spec": dict(self.spec)}
        if same(data, document.data):
            return Mutated(files)
        written = source.replace(number, document.with_data(data)).to_bytes()
        return Mutated(files.with_files({PLUGIN_FILE: written}))

    def _is_plugin(self, data: Any) -> bool:
        # the room's own file is given back before, so that it is there and can be read
        return isinstance(data, dict) and data.get("kind") == PLUGIN and data["metadata"].get("name") == self.name

    def _metadata(self, metadata: Mapping[str, Any]) -> dict[str, Any]:
        kept = dict(metadata)
        for name, without in (("labels", self.without_labels), ("annotations", self.without_annotations)):
            left = _without(kept.pop(name, None), without)
            if left:
                kept[name] = left
        return {name: kept[name] for name in metadata if name in kept}


def _without(entries: Any, keys: Collection[str]) -> Any:
    return {key: value for key, value in entries.items() if key not in keys} if isinstance(entries, dict) else entries
