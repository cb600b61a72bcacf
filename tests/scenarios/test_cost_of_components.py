"""What an edit costs: as many renders as there are packages that can feel it, however many components there are."""

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
SHOPS = tuple(f"shop-{number:03}" for number in range(120))
TRACED = SHOPS[:40]
DESKS = tuple(f"desk-{number:03}" for number in range(80))
EVERYBODY = (*SHOPS, *DESKS)
FENCE, TRACES, LABELS, QUOTA = (f"catalogue/{item}.yaml" for item in ("fence", "traces", "labels", "quota"))
FILE, BUILD, STAGED = "shop/{}.yaml", "shop/{}-build.yaml", "environments/staging.yaml"
NOTHING = "    - {op: remove, path: /metadata/labels/none}\n"


def label(value: str = "x", name: str = "team-label") -> str:
    """Return an addon that sets a label, for both sides."""
    return f"""\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {{name: {name}, labels: {{allowedFor: both}}}}
spec:
  patches:
  - target: {{resourceType: Deployment}}
    patch: {{op: add, path: /metadata/labels/{name}, value: {value}}}
"""


def components() -> dict[str, str]:
    """Return 200 components in three environments, one cluster each, of two types that draw on four addons."""
    platform = [platform_addon("fence"), platform_addon("quota")]
    return {
        **{f"clusters/{item}.yaml": greenhouse_cluster(f"{item}-1") for item in ENVIRONMENTS},
        **{f"environments/{item}.yaml": environment(item, f"{item}-1") for item in ENVIRONMENTS},
        "catalogue/service.yaml": service(),
        FENCE: fence(),
        TRACES: traces(),
        LABELS: label(),
        QUOTA: label(name="quota"),
        "catalogue/backend.yaml": component_type("backend", "service", platform, ["trace-agent", "team-label"]),
        "catalogue/desk.yaml": component_type("desk", "service", [platform_addon("quota")], ["team-label"]),
        **{FILE.format(item): shop(item) for item in EVERYBODY},
        **{BUILD.format(item): build(item, f"{item}:1") for item in EVERYBODY},
    }


def shop(name: str, replicas: int = 2) -> str:
    """Return a component with its bindings; `replicas` are how many it has in production."""
    kind, agent = ("Backend", {"traceAgent": {}} if name in TRACED else {}) if name in SHOPS else ("Desk", {})
    bound = [binding(name, item) for item in ENVIRONMENTS[:2]]
    bound.append(binding(name, "production", overrides={"replicas": replicas}))
    return "---\n".join([component(name, kind, **agent), *bound])


def packages(names: Iterable[str], environments: Iterable[str] = ENVIRONMENTS) -> set[PackageLocation]:
    return {(f"{where}-1", f"components/{where}/{SHOP}/{name}") for where in environments for name in names}


@dataclass(frozen=True)
class Edit:
    """An edit: what it renders, which types it compiles; what is in vain drafts nothing."""

    what: str
    files: Mapping[str, str]
    rendered: set[PackageLocation] = field(default_factory=set)
    compiled: Set[str] = frozenset()
    is_in_vain: bool = False


def edits() -> list[Edit]:
    """Return edits, to be made one after the other."""
    seventh, both = SHOPS[7], {"backend", "desk"}
    new = {FILE.format("new"): component("new", "Desk") + "---\n" + binding("new", "dev")}
    context = {STAGED: environment("staging", "staging-1", context={"zone": "b"})}
    return [
        Edit("nothing", {}),
        Edit("an addon", {FENCE: fence(444)}, packages(SHOPS), {"backend"}),
        Edit("an addon of two types", {QUOTA: label("y", "quota")}, packages(EVERYBODY), both),
        Edit("an addon of those who opted in", {TRACES: traces("1.1")}, packages(TRACED), {"backend"}),
        Edit("an addon that nobody opted into", {LABELS: label("y")}, set(), both),
        Edit("an addon without effect", {TRACES: traces("1.1", NOTHING)}, packages(TRACED), {"backend"}, True),
        Edit("an override", {FILE.format(seventh): shop(seventh, replicas=5)}, packages([seventh], ["production"])),
        Edit("a build", {BUILD.format(seventh): build(seventh, "new")}, packages([seventh])),
        Edit("another type", {"catalogue/other.yaml": component_type("other", "service")}, set(), {"other"}),
        Edit("a context that nobody reads", context, packages(EVERYBODY, ["staging"]), is_in_vain=True),
        Edit("a new component", new, packages(["new"], ["dev"])),
        Edit("nothing again", {}),
    ]


class Work:
    """What the room does in a pass: the components that it renders, the types that it compiles, the files it emits."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rendered: set[PackageLocation] = set()
        self.compiled: set[str] = set()
        self.emitted: set[str] = set()

        def rendering(
            plan: ComponentPlan, component: Component, binding: EnvBinding | None, *rest: Any
        ) -> RenderedComponent:
            if binding:
                self.rendered |= packages([component.key.name], [binding.environment])
            return render_component(plan, component, binding, *rest)

        def compiling(read: ComponentType, *rest: Any) -> CompilationResult:
            self.compiled.add(read.manifest.key.name)
            return compile_component_type(read, *rest)

        def emitting(plan: ComponentPlan, group: str) -> Mapping[str, bytes]:
            self.emitted.add(plan.manifest.key.name)
            return build_type_files(plan, group)

        monkeypatch.setattr("reconciler.controllers.components.controller.render_component", rendering)
        monkeypatch.setattr("reconciler.controllers.components.component_types.compile_component_type", compiling)
        monkeypatch.setattr("reconciler.controllers.components.component_types.build_type_files", emitting)

    def done(self) -> Work:
        """Return what was done since this was asked last."""
        result = copy(self)
        self.rendered, self.compiled, self.emitted = set(), set(), set()
        return result


def test_an_edit_renders_the_packages_that_can_feel_it_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    """In one test, because what is there to begin with takes longer than all of the edits."""
    work, fleet = Work(monkeypatch), DecidedFleet(components(), component_controller())
    assert fleet.run_pass().drafted == packages(EVERYBODY)
    assert work.done().rendered == packages(EVERYBODY)

    for edit in edits():
        after, final_work = fleet.run_pass(edit.files), work.done()

        drafted = set() if edit.is_in_vain else edit.rendered
        assert (after.rendered, after.drafted) == (edit.rendered, drafted), edit.what
        assert (final_work.rendered, final_work.compiled, final_work.emitted) == (
            edit.rendered,
            edit.compiled,
            edit.compiled,
        ), edit.what


def test_an_edit_that_says_the_same_renders_nothing() -> None:
    fleet = DecidedFleet(components(), component_controller())
    fleet.run_pass()

    for files in (
        {FENCE: "# for all of us\n" + fence()},
        {FENCE: "", "moved/fence.yaml": fence()},
        {FILE.format("desk-002"): "# mine\n" + shop("desk-002")},
    ):
        after = fleet.run_pass(files)

        assert (after.rendered, after.drafted) == (set(), set())
