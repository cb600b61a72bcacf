"""Reading environments and builds, the kinds of our own that composition draws on (design 3, 10.22, 10.32)."""

from __future__ import annotations

from reconciler.krm.findings import Finding
from reconciler.krm.selectors import LabelSelector, read_label_selector
from reconciler.rules.codes import SELECTOR_INVALID
from reconciler.rules.composition.codes import BUILD_INVALID, ENVIRONMENT_INVALID
from reconciler.rules.composition.model import GLUE_API_VERSION, Build, Environment
from reconciler.rules.composition.reading import Spec, check_namespace, opened
from reconciler.snapshot.catalog import ConfigObject

_FIELDS = ("clusters", "clusterSelector", "context")


def read_environment(one: ConfigObject) -> tuple[Environment | None, tuple[Finding, ...]]:
    """Return an environment, None where it cannot be read, and what is wrong with it."""
    spec, told = opened(one, ENVIRONMENT_INVALID, GLUE_API_VERSION, _FIELDS)
    names, selector = spec.texts("clusters"), _selector(spec)
    read = Environment(one, names, selector, spec.values("context"))
    return (None if told.findings else read), told.all


def _selector(spec: Spec) -> LabelSelector | None:
    if not spec.has("clusterSelector"):
        return None
    selector, faults = read_label_selector(spec.data["clusterSelector"])
    for fault in faults:
        spec.fault("clusterSelector", fault, SELECTOR_INVALID)
    return selector


def read_build(one: ConfigObject) -> tuple[Build | None, tuple[Finding, ...]]:
    """Return a build, None where it cannot be read, and what is wrong with it; its fields are whatever people like."""
    spec, told = opened(one, BUILD_INVALID, GLUE_API_VERSION, None)
    check_namespace(one, told)
    if spec.has("workload"):
        spec.mapping("workload", None)
    return (None if told.findings else Build(one, spec.data)), told.all
