"""The files beside the Plugin's own that the settings ask for: its values, and its HelmRelease (greenhouse 11)."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from reconciler.krm.digest import digest
from reconciler.krm.findings import Finding
from reconciler.krm.yaml import emit
from reconciler.rules.presets.helm_release import KIND, helm_release, release_findings
from reconciler.rules.presets.helm_values import nested
from reconciler.rules.presets.model import Definition
from reconciler.rules.presets.mutate import RELEASE_FILE, VALUES_FILE, Own
from reconciler.rules.presets.option_paths import conflict_findings, given_values, secrets_of
from reconciler.rules.presets.outcome import Wish
from reconciler.rules.presets.plugin import Release
from reconciler.rules.presets.resolved import ResolvedOption
from reconciler.snapshot.catalog import ConfigObject

VALUES: Final = "values"
HELM_RELEASE: Final = "helmrelease"


@dataclass(frozen=True, eq=False)
class Outputs:
    """The files of a Plugin besides `plugin.yaml`, the objects in them, and what is wrong with them.

    `made_of` is what they depend on that the Plugin itself does not, by the object that says it.
    """

    files: Mapping[str, bytes] = field(default_factory=dict)
    objects: tuple[Own, ...] = ()
    made_of: Mapping[ConfigObject, str] = field(default_factory=dict)
    findings: tuple[Finding, ...] = ()

    @property
    def values(self) -> bytes | None:
        """The file of values, where there is one."""
        return self.files.get(VALUES_FILE)


def outputs_of(
    wish: Wish, definition: Definition, release: Release, options: Collection[ResolvedOption], wanted: Collection[str]
) -> Outputs:
    """Return the files that are wanted of a Plugin; a definition without a chart has no HelmRelease."""
    has_release = HELM_RELEASE in wanted and bool(definition.chart)
    if VALUES not in wanted and not has_release:
        return Outputs()
    made = nested(given_values(options))
    files = {VALUES_FILE: emit(made.values).encode()} if VALUES in wanted else {}
    outputs = Outputs(files, findings=tuple(conflict_findings(options, made.faults)))
    return _with_release(outputs, wish, definition, release, options, made.values) if has_release else outputs


def _with_release(
    outputs: Outputs, wish: Wish, definition: Definition, release: Release,
    options: Collection[ResolvedOption], values: Mapping[str, Any],
) -> Outputs:  # fmt: skip
    secrets = secrets_of(options, values)
    data = helm_release(wish, definition, release, values, secrets)
    return Outputs(
        {**outputs.files, RELEASE_FILE: emit(data).encode()},
        (Own(RELEASE_FILE, KIND, data["spec"]),),
        {definition.one: digest(data["spec"]["chartRef"])},
        (*outputs.findings, *release_findings(wish, data["spec"], options, secrets)),
    )
