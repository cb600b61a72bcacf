"""What templates see of a component in an environment (openchoreo 5.4, design 10.22)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from reconciler.rules.composition.model import Build, Component, EnvBinding, Environment, Values


@dataclass(frozen=True, eq=False)
class Facts:
    """What is injected, and nobody's to interpret: the environment, the build, the workload."""

    env: Values = field(default_factory=dict)
    build: Values = field(default_factory=dict)
    workload: Values = field(default_factory=dict)

    @property
    def bindings(self) -> dict[str, Any]:
        """The variables by which templates see them; what expressions give is a copy."""
        return {"env": self.env, "build": self.build, "workload": self.workload}


def facts_of(binding: EnvBinding, environment: Environment, build: Build | None) -> Facts:
    """Return what is injected for a component in an environment; its name and its endpoints are the binding's."""
    endpoints = {"endpoints": list(binding.endpoints)} if binding.endpoints else {}
    env = {**environment.context, "name": binding.environment, **endpoints}
    return Facts(env, build.context, build.workload) if build else Facts(env)


def metadata_of(component: Component) -> dict[str, Any]:
    """Return the variable `metadata`: the component's, never that of an object that is patched."""
    one = component.one
    return {
        "name": one.key.name, "namespace": one.key.namespace,
        "labels": dict(one.labels), "annotations": dict(one.annotations),
    }  # fmt: skip


def find_build(builds: Mapping[tuple[str, str], Build], component: Component, environment: str) -> Build | None:
    """Return the build of a component for an environment, else that for all of them (design 10.22)."""
    namespace, name = component.key.namespace, component.key.name
    return builds.get((namespace, f"{name}.{environment}")) or builds.get((namespace, name))
