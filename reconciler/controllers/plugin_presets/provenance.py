"""Provenance of the options of a Plugin: the layer of each value, and the values of lower layers that were replaced."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from reconciler.api.greenhouse_options import LiteralValue, OptionExpression, SecretKeyReference, ValueSource
from reconciler.catalog.catalog import ConfigObject
from reconciler.controllers.plugin_presets.option_layers import (
    DEFAULTS_LAYER,
    NON_OVERRIDE_LAYERS,
    OptionAssignment,
    OptionResolution,
    ResolvedOption,
)
from reconciler.controllers.provenance import describe_objects
from reconciler.krm.json_text import encode_canonical_json
from reconciler.krm.merge3.rules import ABSENT
from reconciler.krm.objects import ObjectKey
from reconciler.lazy_dataclasses import dataclass
from reconciler.redaction import MASK, contains_secret

_MAX_SHOWN_BYTES = 1024


@dataclass(frozen=True, eq=False)
class PluginProvenance:
    """The origin of every option of one Plugin, as status files and explanations show it.

    `dependencies` contains a digest for each config object. The digest is computed from the values that the Plugin
    uses.
    """

    file: str
    resource: str
    resolution: OptionResolution
    dependencies: Mapping[ConfigObject, str]

    def list_layers(self) -> list[dict[str, Any]]:
        """Return the field `layers` of a status file: the values of each option in all layers, lowest layer first."""
        return [
            {
                "file": self.file,
                "resource": self.resource,
                "pointer": f"/spec/optionValues/{index}",
                "option": option.name,
                "steps": list(_iterate_steps(option)),
            }
            for index, option in enumerate(self.resolution.options)
        ]

    def list_applied_overrides(self) -> list[dict[str, str]]:
        """Return the field `appliedOverrides` of a status file: objects that override options, lowest layer first."""
        return [
            {"layer": layer.layer, "kind": layer.manifest.key.kind, "name": layer.manifest.key.name}
            for layer in self.resolution.applied_layers
            if layer.layer not in NON_OVERRIDE_LAYERS and layer.assignments
        ]

    def list_objects(self) -> list[dict[str, str]]:
        """Return the config objects that the Plugin was built from. A hash that would reveal a secret is masked."""
        secret_keys = self._secret_object_keys
        digests = {
            manifest: MASK if manifest.key in secret_keys else digest for manifest, digest in self.dependencies.items()
        }
        return describe_objects(digests)

    @property
    def _secret_object_keys(self) -> frozenset[ObjectKey]:
        """The identities of the objects that contain the literal value of a secret option.

        The hashes of these objects are masked, because the value could be guessed from a hash. Definitions are not
        included, because their default values are never secret.
        """
        return frozenset(
            option.winner.object_key
            for option in self.resolution.options
            if option.is_secret and isinstance(option.source, LiteralValue) and option.winner.layer != DEFAULTS_LAYER
        )


def _iterate_steps(option: ResolvedOption) -> Iterator[dict[str, Any]]:
    before: Any = ABSENT
    for index, assignment in enumerate(option.assignments):
        is_last = index == len(option.assignments) - 1
        after = redact_source(option.source if is_last else assignment.source, hides=option.is_secret)
        step = {
            "layer": assignment.layer, "by": assignment.object_key.reference,
            "file": assignment.manifest.file, "where": assignment.field,
            "op": "added" if before is ABSENT else "replaced", "before": before, "after": after,
            "expression": _redact_expression(assignment, hides=option.is_secret),
        }  # fmt: skip
        yield {name: value for name, value in step.items() if value is not ABSENT and value != ""}
        before = after


def _redact_expression(assignment: OptionAssignment, *, hides: bool) -> Any:
    if not isinstance(assignment.source, OptionExpression):
        return ABSENT
    return MASK if hides else assignment.source.text


def redact_source(source: ValueSource, *, hides: bool) -> Any:
    """Return the value of an option for output. Secrets are masked, and long values are shortened."""
    match source:
        case SecretKeyReference():
            return {"secretRef": source.as_data()}
        case OptionExpression(text=text):
            return MASK if hides else {"expression": text}
        case LiteralValue(value=value):
            return MASK if hides or contains_secret(value) else _shorten(value)


def _shorten(value: Any) -> Any:
    text = encode_canonical_json(value)
    if len(text) <= _MAX_SHOWN_BYTES:
        return value
    start = (value if isinstance(value, str) else text.decode(errors="replace"))[: _MAX_SHOWN_BYTES // 4]
    return f"{start}… ({len(text)} bytes)"
