"""Findings that only say that something is not there, which nobody knows while a file cannot be read (design 10.5)."""

from __future__ import annotations

from typing import Final

from reconciler.rules.codes import UNKNOWN_CLUSTER
from reconciler.rules.overrides.codes import POLICY_UNUSED, RULE_MATCHES_NO_CLUSTER, WAVE_MATCHES_NO_CLUSTER
from reconciler.rules.placement.codes import PROPAGATION_POLICY_MATCHES_NO_CLUSTER, PROPAGATION_POLICY_UNUSED
from reconciler.rules.presets.codes import OVERRIDE_CLUSTER_UNKNOWN, OVERRIDE_DEFINITION_UNKNOWN
from reconciler.rules.variants.codes import NO_MATCH

ABSENCES: Final = frozenset(
    one.name
    for one in (
        UNKNOWN_CLUSTER,
        POLICY_UNUSED,
        RULE_MATCHES_NO_CLUSTER,
        WAVE_MATCHES_NO_CLUSTER,
        PROPAGATION_POLICY_MATCHES_NO_CLUSTER,
        PROPAGATION_POLICY_UNUSED,
        OVERRIDE_CLUSTER_UNKNOWN,
        OVERRIDE_DEFINITION_UNKNOWN,
        NO_MATCH,
    )
)
"""The names of their codes: warnings and infos, that withhold nothing."""
