"""Tests of the renders of a component change: only affected packages are rendered, for any number of components."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Set
from copy import copy
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.controllers.components.compilation import CompilationResult, compile_component_type
from reconciler.controllers.components.component_plan import ComponentPlan
from reconciler.controllers.components.component_renderer import RenderedComponent, render_component
from reconciler.controllers.components.component_types import build_type_files
from reconciler.controllers.components.model import Component, ComponentType, EnvBinding
from reconciler.controllers.deletion_guards import PackageLocation
from tests.support.components import (
    SHOP,
    binding,
    build,
    component,
    component_type,
    environment,
    fence,
    platform_addon,
    service,
    traces,
)
from tests.support.decided_fleet import DecidedFleet, component_controller
from tests.support.policies import greenhouse_cluster

ENVIRONMENTS = ("dev", "staging", "production")
SHOPS = tuple(f"shop-{number:03}" for number in range(12))
TRACED = SHOPS[:4]
DESKS = tuple(f"desk-{number:03}" for number in range(8))
ALL_COMPONENTS = (*SHOPS, *DESKS)
FENCE, TRACES, LABELS, QUOTA = (f"catalogue/{item}.yaml" for item in ("fence", "traces", "labels", "quota"))
FILE, BUILD, STAGED = "shop/{}.yaml", "shop/{}-build.yaml", "environments/staging.yaml"
NOTHING = "    - {op: remove, path: /metadata/labels/none}\n"


def label_addon(value: str = "x", name: str = "team-label") -> str:
    """Return an addon for platforms and developers that sets a label."""
    return f"""\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {{name: {name}, labels: {{allowedFor: both}}}}
spec:
  patches:
  - target: {{resourceType: Deployment}}
    patch: {{op: add, path: /metadata/labels/{name}, value: {value}}}
"""


def build_component_config() -> dict[str, str]:
    """Return 20 components in three environments with one cluster each, and two types with four addons."""
    platform = [platform_addon("fence"), platform_addon("quota")]
    return {
        **{f"clusters/{item}.yaml": greenhouse_cluster(f"{item}-1") for item in ENVIRONMENTS},
        **{f"environments/{item}.yaml": environment(item, f"{item}-1") for item in ENVIRONMENTS},
        "catalogue/service.yaml": service(),
        FENCE: fence(),
        TRACES: traces(),
        LABELS: label_addon(),
        QUOTA: label_addon(name="quota"),
        "catalogue/backend.yaml": component_type("backend", "service", platform, ["trace-agent", "team-label"]),
        "catalogue/desk.yaml": component_type("desk", "service", [platform_addon("quota")], ["team-label"]),
        **{FILE.format(item): build_shop(item) for item in ALL_COMPONENTS},
        **{BUILD.format(item): build(item, f"{item}:1") for item in ALL_COMPONENTS},
    }


def build_shop(name: str, replicas: int = 2) -> str:
    """Return a component with its bindings. `replicas` is the number of replicas in production."""
    kind, agent = ("Backend", {"traceAgent": {}} if name in TRACED else {}) if name in SHOPS else ("Desk", {})
    bound = [binding(name, item) for item in ENVIRONMENTS[:2]]
    bound.append(binding(name, "production", overrides={"replicas": replicas}))
    return "---\n".join([component(name, kind, **agent), *bound])


def find_packages(names: Iterable[str], environments: Iterable[str] = ENVIRONMENTS) -> set[PackageLocation]:
    return {(f"{where}-1", f"components/{where}/{SHOP}/{name}") for where in environments for name in names}


@dataclass(frozen=True)
class ConfigChange:
    """A change of the config, with the packages that it renders and the types that it compiles."""

    name: str
    files: Mapping[str, str]
    rendered: set[PackageLocation] = field(default_factory=set)
    compiled: Set[str] = frozenset()
    has_no_effect: bool = False


def build_changes() -> list[ConfigChange]:
    """Return changes that the test applies one after the other."""
    shop_name, both = SHOPS[7], {"backend", "desk"}
    new = {FILE.format("new"): component("new", "Desk") + "---\n" + binding("new", "dev")}
    context = {STAGED: environment("staging", "staging-1", context={"zone": "b"})}
    return [
        ConfigChange("nothing", {}),
        ConfigChange("an addon", {FENCE: fence(444)}, find_packages(SHOPS), {"backend"}),
        ConfigChange("an addon of two types", {QUOTA: label_addon("y", "quota")}, find_packages(ALL_COMPONENTS), both),
        ConfigChange("an optional addon", {TRACES: traces("1.1")}, find_packages(TRACED), {"backend"}),
        ConfigChange("an unused addon", {LABELS: label_addon("y")}, set(), both),
        ConfigChange(
            "an addon without effect", {TRACES: traces("1.1", NOTHING)}, find_packages(TRACED), {"backend"}, True
        ),
        ConfigChange(
            "an override",
            {FILE.format(shop_name): build_shop(shop_name, replicas=5)},
            find_packages([shop_name], ["production"]),
        ),
        ConfigChange("a build", {BUILD.format(shop_name): build(shop_name, "new")}, find_packages([shop_name])),
        ConfigChange("another type", {"catalogue/other.yaml": component_type("other", "service")}, set(), {"other"}),
        ConfigChange("an unused context", context, find_packages(ALL_COMPONENTS, ["staging"]), has_no_effect=True),
        ConfigChange("a new component", new, find_packages(["new"], ["dev"])),
        ConfigChange("nothing again", {}),
    ]


class WorkRecorder:
    """Records the rendered components, the compiled types, and the types whose files are written."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rendered: set[PackageLocation] = set()
        self.compiled: set[str] = set()
        self.emitted: set[str] = set()

        def record_render(
            plan: ComponentPlan, component: Component, binding: EnvBinding | None, *rest: Any
        ) -> RenderedComponent:
            if binding:
                self.rendered |= find_packages([component.key.name], [binding.environment])
            return render_component(plan, component, binding, *rest)

        def record_compilation(read: ComponentType, *rest: Any) -> CompilationResult:
            self.compiled.add(read.manifest.key.name)
            return compile_component_type(read, *rest)

        def record_type_files(plan: ComponentPlan, group: str) -> Mapping[str, bytes]:
            self.emitted.add(plan.manifest.key.name)
            return build_type_files(plan, group)

        monkeypatch.setattr("reconciler.controllers.components.controller.render_component", record_render)
        monkeypatch.setattr(
            "reconciler.controllers.components.component_types.compile_component_type", record_compilation
        )
        monkeypatch.setattr("reconciler.controllers.components.component_types.build_type_files", record_type_files)

    def take_records(self) -> WorkRecorder:
        """Return the records since the last call."""
        result = copy(self)
        self.rendered, self.compiled, self.emitted = set(), set(), set()
        return result


@pytest.mark.slow
def test_change_renders_the_affected_packages_only(monkeypatch: pytest.MonkeyPatch) -> None:
    """One test makes all changes, because the first pass takes longer than all of them."""
    work, fleet = WorkRecorder(monkeypatch), DecidedFleet(build_component_config(), component_controller())
    assert fleet.run_pass().drafted == find_packages(ALL_COMPONENTS)
    assert work.take_records().rendered == find_packages(ALL_COMPONENTS)

    for change in build_changes():
        after, final_work = fleet.run_pass(change.files), work.take_records()

        drafted = set() if change.has_no_effect else change.rendered
        assert (after.rendered, after.drafted) == (change.rendered, drafted), change.name
        assert (final_work.rendered, final_work.compiled, final_work.emitted) == (
            change.rendered,
            change.compiled,
            change.compiled,
        ), change.name


def test_change_without_effect_renders_nothing() -> None:
    fleet = DecidedFleet(build_component_config(), component_controller())
    fleet.run_pass()

    for files in (
        {FENCE: "# for all of us\n" + fence()},
        {FENCE: "", "moved/fence.yaml": fence()},
        {FILE.format("desk-002"): "# mine\n" + build_shop("desk-002")},
    ):
        after = fleet.run_pass(files)

        assert (after.rendered, after.drafted) == (set(), set())
