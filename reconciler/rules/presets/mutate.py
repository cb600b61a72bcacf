"""The one step of a Plugin's package: its spec is ours, labels and annotations are people's, too (greenhouse 11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from reconciler.krm.yaml import parse
from reconciler.krm.yaml.same import same
from reconciler.rules.variant import Earlier, Mutated
from reconciler.snapshot.files import FileTree
from reconciler.snapshot.trace import View

PLUGIN_FILE, VALUES_FILE, RELEASE_FILE = "plugin.yaml", "values.yaml", "helmrelease.yaml"


@dataclass(frozen=True)
class Own:
    """An object of a Plugin's package: its file, its kind, and the spec that it is to have."""

    file: str
    kind: str
    spec: Mapping[str, Any]
    without_labels: frozenset[str] = frozenset()
    without_annotations: frozenset[str] = frozenset()


@dataclass(frozen=True)
class RestorePlugin:
    """Gives the objects of a Plugin their specs, takes labels and annotations away that they are not to have.

    People's other labels and annotations stay, and nothing else of theirs: manual edits of a spec are overwritten.
    `values` is a file that is the room's as a whole, None where there is none.
    """

    name: str
    objects: tuple[Own, ...]
    values: bytes | None = None

    def __call__(self, files: FileTree, view: View, earlier: Earlier | None = None) -> Mutated:
        """Return the package with what is the room's put right, wherever in its files people have moved it."""
        restored = {one.file: _restored(files[one.file].data, one, self.name) for one in self.objects}
        if self.values is not None:
            restored[VALUES_FILE] = self.values
        changed = {path: data for path, data in restored.items() if files[path].data != data}
        return Mutated(files.with_files(changed) if changed else files)


def _restored(content: bytes, own: Own, name: str) -> bytes:
    source = parse(content)
    number = next(number for number, one in enumerate(source.documents) if _is_it(one.data, own.kind, name))
    document = source.documents[number]
    data = {**document.data, "metadata": _metadata(document.data["metadata"], own), "spec": dict(own.spec)}
    return content if same(data, document.data) else source.replace(number, document.with_data(data)).to_bytes()


def _is_it(data: Any, kind: str, name: str) -> bool:
    # the room's own file is given back before, so that it is there and can be read
    return isinstance(data, dict) and data.get("kind") == kind and data["metadata"].get("name") == name


def _metadata(metadata: Mapping[str, Any], own: Own) -> dict[str, Any]:
    kept = dict(metadata)
    for name, without in (("labels", own.without_labels), ("annotations", own.without_annotations)):
        left = _without(kept.pop(name, None), without)
        if left:
            kept[name] = left
    return {name: kept[name] for name in metadata if name in kept}


def _without(entries: Any, keys: Collection[str]) -> Any:
    return {key: value for key, value in entries.items() if key not in keys} if isinstance(entries, dict) else entries
