"""Labels and annotations that a preset passes on to its Plugins, and what it passed on before (greenhouse 11)."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field

from reconciler.rules.presets.model import GROUP

PROPAGATE_LABELS = f"{GROUP}/propagate-labels"
PROPAGATE_ANNOTATIONS = f"{GROUP}/propagate-annotations"
MEMORY = f"{GROUP}/last-applied-propagator"
_WILDCARD = "/*"
# how a preset is propagated is its own business, and never a Plugin's
_NEVER = (PROPAGATE_LABELS, PROPAGATE_ANNOTATIONS, MEMORY)


@dataclass(frozen=True)
class Propagated:
    """What is passed on, by key in order."""

    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)

    @property
    def memory(self) -> dict[str, str]:
        """The annotation that remembers it; none where nothing is passed on."""
        if not self.labels and not self.annotations:
            return {}
        keys = {"labelKeys": sorted(self.labels), "annotationKeys": sorted(self.annotations)}
        return {MEMORY: json.dumps(keys, separators=(",", ":"))}


@dataclass(frozen=True)
class Remembered:
    """The keys that a Plugin got from its preset once."""

    labels: frozenset[str] = frozenset()
    annotations: frozenset[str] = frozenset()


def propagated_from(labels: Mapping[str, str], annotations: Mapping[str, str]) -> Propagated:
    """Return what a preset with these labels and annotations passes on to its Plugins."""
    wanted = tuple(_listed(annotations.get(PROPAGATE_LABELS, "")))
    exact = frozenset(_listed(annotations.get(PROPAGATE_ANNOTATIONS, ""))) - frozenset(_NEVER)
    return Propagated(
        {key: labels[key] for key in sorted(labels) if _is_wanted(key, wanted)},
        {key: annotations[key] for key in sorted(annotations) if key in exact},
    )


def read_memory(annotations: Mapping[str, str]) -> Remembered:
    """Return what a Plugin remembers; nothing where people have made something else of it."""
    if MEMORY not in annotations:
        return Remembered()
    try:
        data = json.loads(annotations[MEMORY])
    except ValueError:
        return Remembered()
    return Remembered(_keys(data, "labelKeys"), _keys(data, "annotationKeys"))


def _keys(data: object, name: str) -> frozenset[str]:
    found = data.get(name) if isinstance(data, dict) else None
    return frozenset(key for key in found if isinstance(key, str)) if isinstance(found, list) else frozenset()


def _listed(text: str) -> Iterator[str]:
    return (stripped for part in text.split(",") if (stripped := part.strip()))


def _is_wanted(key: str, wanted: Iterable[str]) -> bool:
    return any(key == one or (one.endswith(_WILDCARD) and key.startswith(one.removesuffix("*"))) for one in wanted)
