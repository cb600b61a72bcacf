"""Merge keys of Kubernetes' own kinds, from data that scripts/make_schema_data.py writes, and of Kustomizations."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import resources
from typing import Any

from reconciler.krm.schema.known import Shapes
from reconciler.krm.shapes import ATOMIC, UNKNOWN, Shape

_BY_NAME = Shape(items=UNKNOWN, keys=("name",))
# kyaml's schema of a Kustomization (openapi/kustomizationapi) names these two lists and no other.
_KUSTOMIZATION = Shape({"configMapGenerator": _BY_NAME, "secretGenerator": _BY_NAME})


@cache
def builtin_shapes() -> Shapes:
    """Return the shapes of Kubernetes' own kinds and of kustomize's Kustomization; read once."""
    fields = _definitions()
    kinds = _data()["kinds"].items()
    known = {(version, kind): fields.shape(name) for version, names in kinds for kind, name in names.items()}
    return Shapes({**known, ("kustomize.config.k8s.io/v1beta1", "Kustomization"): _KUSTOMIZATION})


def definition(name: str) -> Shape | None:
    """Return the shape of one of Kubernetes' own types, such as core.v1.PodSpec; None if no list in it merges."""
    fields = _definitions()
    return fields.shape(name) if name in fields.fields else None


@cache
def _data() -> Any:
    return json.loads(resources.files(__package__).joinpath("shapes.json").read_bytes())


@cache
def _definitions() -> _Definitions:
    return _Definitions(_data()["fields"])


@dataclass(frozen=True)
class _Definitions:
    """Shapes by the name of their definition, each made once and shared."""

    fields: Mapping[str, Mapping[str, Any]]
    made: dict[str, Shape] = field(default_factory=dict)

    def shape(self, name: str) -> Shape:
        if name not in self.made:
            shapes = {key: self._field(shape) for key, shape in self.fields[name].items()}
            self.made[name] = Shape(shapes, closed=True)
        return self.made[name]

    def _field(self, shape: Any) -> Shape:
        if isinstance(shape, str):
            return self.shape(shape)
        items = self.shape(shape["items"]) if "items" in shape else ATOMIC
        return Shape(items=items, keys=tuple(shape["keys"]), defaults=shape.get("defaults", {}), closed=True)
