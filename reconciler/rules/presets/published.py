"""A Plugin as it stands on a branch, whatever people made of it; read once, however often it is asked for."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from reconciler.krm.identity import ObjectKey
from reconciler.rules.presets.model import GROUP, PRESET, PRESET_LABEL
from reconciler.rules.presets.plugin import string_map

SUSPEND = f"{GROUP}/suspend"


@dataclass(frozen=True, eq=False)
class Published:
    """What stands on a branch as a Plugin; `data` is {} where nothing does, or nothing that can be read."""

    data: Mapping[str, Any] = field(default_factory=dict)

    @cached_property
    def label(self) -> str:
        """The preset that its label names, "" for none."""
        return string_map(self.data, "labels").get(PRESET_LABEL, "")

    @cached_property
    def preset(self) -> ObjectKey:
        """The preset whose Plugin it says that it is."""
        # whoever has a label has metadata
        namespace = self.data["metadata"].get("namespace") if self.label else ""
        return ObjectKey(GROUP, PRESET, namespace if isinstance(namespace, str) else "", self.label)

    @cached_property
    def is_suspended(self) -> bool:
        """Whether it says that it is to be left as it is."""
        return SUSPEND in string_map(self.data, "annotations")
