"""A set becomes exactly the variants that its targets ask for, or none and a reason (porch 11.2 to 11.6)."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.cel import ExpressionLimits
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.model import UpstreamSpec
from reconciler.controllers.package_variants.package_variant_set import (
    SetDeletions,
    find_name_conflict,
    guard_deletions,
)
from reconciler.controllers.package_variants.read_package_variant_set import read_package_variant_set
from reconciler.controllers.package_variants.set_expansion import (
    PackageVariantSet,
    SetExpansion,
    SetFailure,
    SkippedTarget,
    expand_set,
)
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.package_variants.upstream_resolution import UnresolvedUpstream
from reconciler.krm.objects import ObjectKey

PORCH = "config.porch.kpt.dev"
SITE = ("fleet.example/v1", "Site")


@dataclass(frozen=True)
class Thing:
    key: ObjectKey
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def repository(name: str, **labels: str) -> Thing:
    return Thing(ObjectKey(PORCH, "Repository", "default", name), labels)


def site(name: str, **labels: str) -> Thing:
    return Thing(ObjectKey("fleet.example", "Site", "", name), labels)


@dataclass(frozen=True)
class World:
    """Repositories, sites and one catalog, in memory."""

    repositories: Sequence[Thing] = ()
    sites: Sequence[Thing] = ()
    missing: frozenset[str] = frozenset()
    revision_sets: Mapping[str, Any] = field(default_factory=dict)

    def has_kind(self, api_version: str, kind: str) -> bool:
        return kind in ("Repository", "Site")

    def list_objects(self, api_version: str, kind: str) -> Sequence[Thing]:
        return self.repositories if kind == "Repository" else self.sites

    def find_repository(self, name: str) -> Thing | None:
        return next((thing for thing in self.repositories if thing.key.name == name), None)

    def describe_upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        if upstream.package in self.missing:
            return UnresolvedUpstream("UpstreamNotFound", f"no {upstream.package}")
        name = f"catalog.{upstream.package}.v1"
        return {"name": name, "namespace": "default", "labels": {"tier": "base"}, "annotations": {}}

    def find_revision_set(self, name: str) -> Mapping[str, Any] | None:
        return self.revision_sets.get(name)


WORLD = World(
    [repository("eu", zone="e"), repository("us", zone="u"), repository("ap")],
    [site("nyc", cluster="us", tier="edge"), site("ber", cluster="eu", tier="edge"), site("lab", tier="test")],
)


def wanted(*targets: Any, name: str = "s", **mapping: Any) -> PackageVariantSet:
    spec = {"upstream": {"repo": "catalog", "package": "p", "revision": "v1"}, "targets": list(targets), **mapping}
    spec = {field: value for field, value in spec.items() if value is not None}
    data = {"apiVersion": f"{PORCH}/v1alpha2", "kind": "PackageVariantSet", "metadata": {"name": name}, "spec": spec}
    read = read_package_variant_set(data, ExpressionLimits())
    assert read.spec is not None, read.errors
    return PackageVariantSet(ObjectKey(PORCH, "PackageVariantSet", "default", name), "uid-1", read.spec)


def expand(*targets: Any, world: World = WORLD, **mapping: Any) -> SetExpansion:
    expansion = expand_set(wanted(*targets, **mapping), world, ExpressionLimits())
    assert isinstance(expansion, SetExpansion), expansion
    return expansion


def fail(*targets: Any, world: World = WORLD, **mapping: Any) -> SetFailure:
    failure = expand_set(wanted(*targets, **mapping), world, ExpressionLimits())
    assert isinstance(failure, SetFailure)
    return failure


def listed(*names: str, packages: Sequence[str] = (), **template: Any) -> dict[str, Any]:
    entries = [{"name": name, "packageNames": list(packages)} if packages else {"name": name} for name in names]
    return {"repositories": entries, "template": template}


def sites(packages: Sequence[str] = (), labels: Mapping[str, str] | None = None, /, **template: Any) -> dict[str, Any]:
    selector: dict[str, Any] = {"apiVersion": SITE[0], "kind": SITE[1], "matchLabels": dict(labels or {})}
    return {"objectSelector": {**selector, "packageNames": list(packages)}, "template": template}


def keys(expansion: SetExpansion) -> list[str]:
    return [str(variant.key) for variant in expansion.variants]


EDGE = {"downstream": {"repoExpr": "target.labels['cluster']"}}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        pytest.param([listed("eu", "us")], ["eu/p", "us/p"], id="the-upstreams-package-name"),
        pytest.param(
            [listed("eu"), listed("us", packages=["b", "a"])], ["eu/p", "us/a", "us/b"], id="package-names-of-a-list"
        ),
        pytest.param([{"repositorySelector": {}}], ["ap/p", "eu/p", "us/p"], id="empty-selector-selects-all"),
        pytest.param([{"repositorySelector": {"matchLabels": {"zone": "e"}}}], ["eu/p"], id="selector"),
        pytest.param(
            [
                {
                    "repositorySelector": {
                        "matchExpressions": [{"key": "zone", "operator": "Exists"}],
                        "packageNames": ["x", "y"],
                    }
                }
            ],
            ["eu/x", "eu/y", "us/x", "us/y"],
            id="package-names-of-a-selector",
        ),
        pytest.param([sites(["a", "b"], {"tier": "edge"}, **EDGE)], ["eu/a", "eu/b", "us/a", "us/b"], id="objects"),
        pytest.param(
            [{"objectSelector": {"apiVersion": SITE[0], "kind": "Site", "name": "ber"}, "template": EDGE}],
            ["eu/p"],
            id="object-by-name",
        ),
        pytest.param([{"repositorySelector": {"matchLabels": {"zone": "none"}}}], [], id="no-match-is-no-failure"),
        pytest.param(
            [
                sites(
                    (), {"tier": "edge"}, downstream={"repo": "ap", "packageExpr": "packageDefault + '-' + target.name"}
                )
            ],
            ["ap/p-ber", "ap/p-nyc"],
            id="one-repository-for-all",
        ),
        pytest.param([listed("eu"), listed("eu")], ["eu/p"], id="equal-twice-is-once"),
        pytest.param(
            [listed("eu", downstream={"repo": "us", "package": "q"})], ["us/q"], id="fixed-downstream-beats-the-default"
        ),
    ],
)
def test_what_targets_ask_for(targets: list[Any], expected: list[str]) -> None:
    expansion = expand(*targets)

    assert keys(expansion) == expected


def test_the_order_of_targets_and_objects_changes_nothing() -> None:
    targets = [listed("eu"), sites(["a"], {"tier": "edge"}, **EDGE), listed("us", packages=["b"])]
    backwards = World(list(reversed(WORLD.repositories)), list(reversed(WORLD.sites)))

    first = [(generated_variant.name, generated_variant.as_data()) for generated_variant in expand(*targets).variants]
    second = [
        (generated_variant.name, generated_variant.as_data())
        for generated_variant in expand(*reversed(targets), world=backwards).variants
    ]

    assert first == second


def rendered(**template: Any) -> dict[str, Any]:
    (variant,) = expand(sites(["a"], {"cluster": "eu"}, **EDGE, **template)).variants
    return variant.spec.as_data()


@pytest.mark.parametrize(
    ("template", "path", "expected"),
    [
        pytest.param({}, ["upstream"], {"repo": "catalog", "package": "p", "revision": "v1"}, id="upstream"),
        pytest.param({"adoptionPolicy": "adoptExisting"}, ["adoptionPolicy"], "adoptExisting", id="adoption"),
        pytest.param({"deletionPolicy": "orphan"}, ["deletionPolicy"], "orphan", id="deletion"),
        pytest.param(
            {"labels": {"a": "1", "b": "2"}, "labelExprs": [{"key": "b", "valueExpr": "target.name"}]},
            ["labels"],
            {"a": "1", "b": "ber"},
            id="expression-beats-static",
        ),
        pytest.param(
            {"labelExprs": [{"key": "a", "value": "x"}, {"keyExpr": "'a'", "value": "y"}]},
            ["labels"],
            {"a": "y"},
            id="later-entry-wins",
        ),
        pytest.param(
            {"annotationExprs": [{"key": "a", "valueExpr": "upstream.labels['tier']"}]},
            ["annotations"],
            {"a": "base"},
            id="annotations-of-the-upstream",
        ),
        pytest.param(
            {"packageContext": {"removeKeys": ["z", "b"], "removeKeyExprs": ["'b'", "repository.labels['zone']"]}},
            ["packageContext", "removeKeys"],
            ["b", "e", "z"],
            id="remove-keys-united-and-sorted",
        ),
        pytest.param(
            {"packageContext": {"dataExprs": [{"key": "zone", "valueExpr": "repository.labels['zone']"}]}},
            ["packageContext", "data"],
            {"zone": "e"},
            id="context-data",
        ),
        pytest.param(
            {"injectors": [{"group": "", "nameExpr": "repoDefault"}, {"kind": "A", "name": "b"}]},
            ["injectors"],
            [{"group": "", "name": "ber"}, {"kind": "A", "name": "b"}],
            id="injectors",
        ),
        pytest.param(
            {
                "pipeline": {
                    "mutators": [
                        {
                            "image": "i",
                            "configMap": {"a": "1", "b": "2"},
                            "configMapExprs": [{"key": "b", "valueExpr": "packageDefault"}],
                        }
                    ]
                }
            },
            ["pipeline"],
            {"mutators": [{"image": "i", "configMap": {"a": "1", "b": "a"}}]},
            id="function-config",
        ),
        pytest.param({"updateStrategy": "copy-merge"}, ["updateStrategy"], "copy-merge", id="update-strategy"),
        pytest.param({"conflictPolicy": "local"}, ["conflictPolicy"], "local", id="conflict-policy"),
    ],
)
def test_templates(template: dict[str, Any], path: list[str], expected: Any) -> None:
    value: Any = rendered(**template)
    for step in path:
        value = value[step]

    assert value == expected


def test_nothing_empty_is_written() -> None:
    assert set(rendered()) == {"upstream", "downstream", "adoptionPolicy", "deletionPolicy"}


@pytest.mark.parametrize(
    ("target", "reason", "message"),
    [
        pytest.param(
            sites(labelExprs=[{"key": "a", "valueExpr": "target.labels['cluster']"}], downstream={"repo": "eu"}),
            "RenderError",
            "spec.targets[0] (lab/p): template.labelExprs[0].valueExpr: no such key: cluster",
            id="missing-label",
        ),
        pytest.param(
            listed("mars"),
            "RenderError",
            'spec.targets[0] (mars/p): repository "mars" could not be loaded',
            id="missing",
        ),
        pytest.param(
            listed("eu", packages=["Upper"]),
            "ValidationError",
            'spec.targets[0] (eu/Upper): spec.downstream.package is not a valid package path: "Upper" must be '
            'lower-case letters, digits and "-", and start and end with a letter or digit',
            id="invalid-variant",
        ),
        pytest.param(
            {"objectSelector": {"apiVersion": "a/v1", "kind": "Moon"}},
            "NoMatchingTargets",
            'spec.targets[0]: no object or definition of kind "Moon" in "a/v1"',
            id="unknown-kind",
        ),
    ],
)
def test_failures(target: Any, reason: str, message: str) -> None:
    failure = fail(target)

    assert failure.reason == reason
    assert message in failure.message


def test_an_expression_must_give_a_string() -> None:
    failure = fail(listed("eu", labelExprs=[{"key": "a", "valueExpr": "target"}]))

    assert "template.labelExprs[0].valueExpr" in failure.message
    assert "non-string value" in failure.message


def test_two_different_variants_of_one_package() -> None:
    failure = fail(listed("eu", labels={"a": "1"}), listed("us"), listed("eu", labels={"a": "2"}))

    assert failure.reason == "DuplicateTarget"
    assert failure.message == "eu/p is requested with different specs by spec.targets[0], spec.targets[2]"


def test_a_missing_upstream() -> None:
    assert fail(listed("eu"), world=World(missing=frozenset({"p"}))) == SetFailure("UpstreamNotFound", "no p")


def test_skipping_the_failing_target_only() -> None:
    broken = {"labelExprs": [{"key": "a", "valueExpr": "repository.labels['zone']"}]}
    expansion = expand(listed("ap", "eu", **broken), errorPolicy="skipTarget")

    assert keys(expansion) == ["eu/p"]
    (skipped,) = expansion.skipped
    assert (skipped.index, skipped.key, skipped.reason) == (0, DownstreamKey("ap", "p"), "RenderError")


def test_a_skipped_target_whose_downstream_is_unknown_has_no_key() -> None:
    expansion = expand(sites(**EDGE), errorPolicy="skipTarget")

    assert keys(expansion) == ["eu/p", "us/p"]
    assert [skipped.key for skipped in expansion.skipped] == [None]


def test_a_generated_variant_is_a_whole_object() -> None:
    (variant,) = expand(listed("eu")).variants
    data = variant.as_data()

    assert data["apiVersion"] == f"{PORCH}/v1alpha1"
    assert data["metadata"] == {
        "name": "s-eu-p",
        "namespace": "default",
        "labels": {"config.porch.kpt.dev/packagevariantset": "uid-1"},
        "ownerReferences": [
            {
                "apiVersion": f"{PORCH}/v1alpha2",
                "kind": "PackageVariantSet",
                "name": "s",
                "uid": "uid-1",
                "controller": True,
                "blockOwnerDeletion": True,
            }
        ],
        "finalizers": ["config.porch.kpt.dev/packagevariants"],
    }
    assert pickle.loads(pickle.dumps(variant)) == variant


UPSTREAMS = [{"repo": "catalog", "package": name, "revision": "v1"} for name in ("p", "q")]
SHARED = {
    "apiVersion": "reconciler.dev/v1alpha1",
    "kind": "PackageRevisionSet",
    "metadata": {"name": "shared"},
    "spec": {"upstreams": [{"repo": "catalog", "package": "r", "tag": "stable"}]},
}


def test_several_upstreams_go_to_each_target() -> None:
    world = World(WORLD.repositories, revision_sets={"shared": SHARED})
    expansion = expand(listed("eu", "us"), world=world, upstream=None, upstreams=UPSTREAMS, upstreamSets=["shared"])

    assert keys(expansion) == ["eu/p", "eu/q", "eu/r", "us/p", "us/q", "us/r"]
    assert expansion.variants[2].spec.upstream.package == "r"


def test_a_set_of_upstreams_that_is_invalid_itself() -> None:
    world = World(WORLD.repositories, revision_sets={"shared": {**SHARED, "spec": {}}})

    assert fail(listed("eu"), world=world, upstream=None, upstreamSets=["shared"]) == SetFailure(
        "ValidationError",
        'PackageRevisionSet "shared": must specify at least one item in spec.upstreams',
    )


@pytest.mark.parametrize(
    ("target", "mapping", "reason", "message"),
    [
        pytest.param(
            listed("eu", packages=["x"]),
            {"upstreams": UPSTREAMS},
            "ValidationError",
            "spec.targets[0]: packageNames cannot be used with more than one upstream",
            id="one-name-for-two-upstreams",
        ),
        pytest.param(
            {"repositorySelector": {}, "packageNames": ["x"]},
            {"upstreams": UPSTREAMS},
            "ValidationError",
            "spec.targets[0]: packageNames cannot be used with more than one upstream",
            id="one-name-beside-a-selector",
        ),
        pytest.param(
            listed("eu"),
            {"upstreamSets": ["none"]},
            "UpstreamNotFound",
            'could not find PackageRevisionSet "none"',
            id="no-such-revision-set",
        ),
        pytest.param(
            listed("eu", downstream={"package": "x"}),
            {"upstreams": UPSTREAMS},
            "DuplicateTarget",
            "eu/x is requested with different specs by spec.targets[0]",
            id="two-upstreams-one-package",
        ),
    ],
)
def test_failures_of_several_upstreams(target: Any, mapping: dict[str, Any], reason: str, message: str) -> None:
    assert fail(target, upstream=None, **mapping) == SetFailure(reason, message)


def expansion_of(names: Sequence[str], skipped: Sequence[SkippedTarget] = ()) -> SetExpansion:
    variants = expand(listed("eu", packages=names)).variants if names else ()
    return SetExpansion(variants, tuple(skipped))


def eu(*names: str) -> list[DownstreamKey]:
    return [DownstreamKey("eu", name) for name in names]


TEN = [f"p{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("remaining", "existing", "annotations", "reason"),
    [
        pytest.param(TEN, TEN, {}, None, id="nothing-to-delete"),
        pytest.param(TEN[:7], TEN, {}, None, id="thirty-percent-go"),
        pytest.param(TEN[:6], TEN, {}, "DeletionHeld", id="more-is-held"),
        pytest.param(["p0"], ["p0", "p1"], {}, "DeletionHeld", id="one-of-two-is-half"),
        pytest.param(["p9"], ["p0"], {}, "DeletionHeld", id="but-not-the-only-one"),
        pytest.param([], TEN, {}, "NoTargets", id="all-for-lack-of-targets"),
        pytest.param([], [], {}, None, id="nothing-wanted-nothing-there"),
        pytest.param([], TEN, {"reconciler.dev/allow-empty": "true"}, None, id="empty-is-allowed"),
        pytest.param([], TEN, {"reconciler.dev/allow-empty": "yes"}, "NoTargets", id="only-true-allows"),
        pytest.param(
            TEN[:6], TEN, {"reconciler.dev/ack-deletions": compute_deletion_hash(eu(*TEN[6:]))}, None, id="acknowledged"
        ),
        pytest.param(
            TEN[:5], TEN, {"reconciler.dev/ack-deletions": compute_deletion_hash(eu(*TEN[6:]))}, "DeletionHeld",
            id="another-list-was-acknowledged",
        ),
    ],
)  # fmt: skip
def test_guards(remaining: list[str], existing: list[str], annotations: dict[str, str], reason: str | None) -> None:
    deletions = guard_deletions(expansion_of(remaining), eu(*existing), annotations)

    downstream_keys = tuple(sorted(set(eu(*existing)) - set(eu(*remaining))))
    assert (deletions.allowed, deletions.blocked) == (((), downstream_keys) if reason else (downstream_keys, ()))
    assert (deletions.failure.reason if deletions.failure else None) == reason


def test_a_held_deletion_says_how_to_confirm_it() -> None:
    deletions = guard_deletions(expansion_of(TEN[:5]), eu(*TEN), {})
    assert deletions.failure is not None
    set_deletions = guard_deletions(
        expansion_of(TEN[:5]), eu(*TEN), {"reconciler.dev/ack-deletions": deletions.failure.message.split('"')[-2]}
    )

    assert set_deletions.allowed == deletions.blocked


@pytest.mark.parametrize(
    ("remaining", "held", "reason"),
    [
        pytest.param(["p2"], {"p0": 1}, "DeletionHeld", id="the-only-one-there-was"),
        pytest.param(["p3", "p4"], {"p0": 3, "p1": 3}, "DeletionHeld", id="two-of-three"),
        pytest.param(TEN[1:], {"p0": 3}, "DeletionHeld", id="one-of-three"),
        pytest.param(TEN[1:], {"p5": 1}, None, id="what-is-wanted-again-does-not-count"),
    ],
)
def test_what_was_held_is_counted_as_it_was(remaining: list[str], held: dict[str, int], reason: str | None) -> None:
    counts = dict(zip(eu(*held), held.values(), strict=True))

    deletions = guard_deletions(expansion_of(remaining), eu(*remaining, *held), {}, blocked_counts=counts)

    assert (deletions.failure.reason if deletions.failure else None) == reason


def test_what_a_skipped_target_may_stand_for_is_not_deleted() -> None:
    known = SkippedTarget(0, "RenderError", "", DownstreamKey("eu", "p1"))

    there = eu("p0", "p1", "p2", "p3")

    assert guard_deletions(expansion_of(["p0", "p3"], [known]), there, {}).allowed == tuple(eu("p2"))
    unknown = SkippedTarget(0, "RenderError", "")
    assert guard_deletions(expansion_of(["p0"], [unknown]), eu("p0", "p1", "p2"), {}) == SetDeletions()


def test_a_name_that_is_somebody_elses() -> None:
    expansion = expand(listed("eu", "us"))

    assert find_name_conflict(expansion, {"other"}) is None
    failure = find_name_conflict(expansion, {"s-us-p"})
    assert failure is not None
    assert (failure.reason, '"s-us-p"' in failure.message) == ("NameConflict", True)
