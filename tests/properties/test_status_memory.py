"""A service with a status cache writes the same bytes as a service without one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Literal

from hypothesis import given
from hypothesis import strategies as st

from reconciler.controllers.results import ConfigStatus, ControllerResult, PackageOwner, StalledVariant, Variant
from reconciler.krm.findings import Finding
from reconciler.krm.objects import Condition, ObjectKey
from reconciler.output.status.status_branch import StatusCache, build_status_files
from reconciler.planning.decide.fleet_plan import TargetPlan
from reconciler.planning.model.outcomes import PackageOutcome
from tests.unit.output.builders import (
    build_blocked,
    build_draft,
    build_fleet_plan,
    build_key,
    build_removal,
    build_target_plan,
    build_unchanged,
    build_variant,
)

SET = build_key("PackageVariantSet", "edge")
CLUSTERS = ("eu-1", "eu-2", "eu-3")
READY = Condition("Ready", "True", "Reconciled", "all is well")
API_VERSION = "config.porch.kpt.dev/v1alpha1"
OWNERS = ("one", "two", "three", "wide")


def _wanted(name: str, cluster: str) -> Variant:
    result = build_variant(name, cluster, f"gw-{name}")
    return replace(result, is_per_cluster=name == "wide")


def _outcome(name: str, cluster: str, end: str) -> PackageOutcome:
    desired_variant = _wanted(name, cluster)
    match end:
        case "drafted now":
            return build_draft({}, {"a": "x"}, desired_variant=desired_variant)
        case "blocked":
            return build_blocked(desired_variant)
        case _:
            return build_unchanged(desired_variant, end)


ENDS = ("drafted now", "drafted", "published", "blocked")


@dataclass(frozen=True)
class Planned:
    """Result of a pass for one target, in simple values: the outcome of each owner, and findings of the target."""

    ends: tuple[tuple[str, str], ...]
    is_gone: bool
    leaves: bool

    def plan(self, cluster: str) -> TargetPlan:
        """Return the result as a plan."""
        outcomes = [_outcome(name, cluster, end) for name, end in self.ends]
        findings = (Finding("DestinationMissing", "it is gone"),) if self.is_gone else ()
        return build_target_plan(
            *outcomes, name=cluster, findings=findings, leaving=(build_removal(),) if self.leaves else ()
        )


@dataclass(frozen=True)
class GeneratedObjects:
    """Controller result in simple values: children of a set, stalled owners, and other objects."""

    made: tuple[tuple[str, str], ...]
    stalled: tuple[str, ...]
    of_destination: bool
    files: Literal["stay", "none", "one"]
    keeps: bool

    def build(self) -> ControllerResult:
        """Return the controller result."""
        of_set = ConfigStatus(SET, API_VERSION, (READY,), children=tuple(_key(name) for name, _ in self.made))
        files = {"stay": None, "none": {}, "one": {"crd.yaml": b"x"}}[self.files]
        own = ConfigStatus(build_key("ComponentType", "web"), API_VERSION, (READY,), folder="types", files=files)
        odd = [ConfigStatus(build_key("Repository", "eu-1"), API_VERSION, (READY,))] if self.of_destination else []
        no = (Condition("Ready", "False", "Error", "no"),)
        return ControllerResult(
            tuple(_wanted(name, cluster) for cluster in CLUSTERS for name in OWNERS),
            tuple(StalledVariant(PackageOwner(_key(name), API_VERSION), no, ()) for name in self.stalled),
            (of_set, *(_made(name, words) for name, words in self.made), own, *odd),
            kept_owners=frozenset({SET} if self.keeps else ()),
        )


@dataclass(frozen=True)
class Pass:
    """One pass: changed plans, a changed controller result, and the later change of the status branch."""

    plans: Mapping[str, Planned]
    generated: GeneratedObjects | None
    complete: bool
    awaits: tuple[str, ...]
    end: Literal["pushed", "lost", "read again", "edited"]


def _key(name: str) -> ObjectKey:
    return build_key("PackageVariant", name)


def _made(name: str, words: str) -> ConfigStatus:
    owned = {"ownerReferences": [{"kind": "PackageVariantSet", "name": "edge"}]}
    condition = Condition("Valid", "True", "Valid", words)
    return ConfigStatus(_key(name), API_VERSION, (condition,), spec={"of": words}, metadata=owned)


def _each_with(words: st.SearchStrategy[str]) -> st.SearchStrategy[tuple[tuple[str, str], ...]]:
    rows = st.lists(st.tuples(st.sampled_from(OWNERS), words), unique_by=lambda value: value[0])
    return rows.map(tuple)


seldom = st.sampled_from([False, False, False, True])
planned = st.builds(Planned, _each_with(st.sampled_from(ENDS)), seldom, seldom)
generated_objects = st.builds(
    GeneratedObjects, _each_with(st.sampled_from(["plain", "other"])), st.sampled_from([(), (), ("one",), ("wide",)]),
    st.booleans(), st.sampled_from(["stay", "none", "one"]), seldom,
)  # fmt: skip
passes = st.builds(
    Pass, st.dictionaries(st.sampled_from(CLUSTERS), planned, max_size=2), st.none() | generated_objects,
    st.sampled_from([True, True, True, False]), st.sampled_from([(), (), (), ("one",)]),
    st.sampled_from(["pushed", "pushed", "pushed", "lost", "read again", "edited"]),
)  # fmt: skip
FIRST = Pass({}, None, True, (), "pushed")


@given(
    st.fixed_dictionaries(dict.fromkeys(CLUSTERS, planned)), generated_objects, st.lists(passes, max_size=6),
    st.sampled_from([1, 2, 1000]),
)  # fmt: skip
def test_status_files_do_not_depend_on_the_cache(
    began: dict[str, Planned], first: GeneratedObjects, more: list[Pass], limit: int
) -> None:
    memory = StatusCache()
    standing: Mapping[str, bytes] = {}
    plans, controller_result = {name: item.plan(name) for name, item in began.items()}, first.build()
    for number, pass_result in enumerate([FIRST, *more]):
        plans |= {name: moved.plan(name) for name, moved in pass_result.plans.items()}
        controller_result = pass_result.generated.build() if pass_result.generated else controller_result
        as_of = 1_700_000_000 + number
        whole = build_fleet_plan(*plans.values(), controller_result=controller_result, as_of=as_of)
        plan = replace(
            whole,
            uncertain_tenants=frozenset() if pass_result.complete else frozenset({""}),
            awaited_owners=frozenset(map(_key, pass_result.awaits)),
        )

        status_files = build_status_files(plan, standing, limit, memory)

        assert status_files == build_status_files(plan, standing, limit)
        standing = _left(standing, status_files, pass_result.end)


def _left(before: Mapping[str, bytes], mapping: Mapping[str, bytes], end: str) -> Mapping[str, bytes]:
    """Return the content of the status branch afterwards."""
    match end:
        case "lost":
            return before
        case "read again":
            return dict(mapping)
        case "edited":
            return {path: data.replace(b"2023", b"2021") for path, data in mapping.items()}
        case _:
            return mapping
