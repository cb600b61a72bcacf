"""Tests of the expansion of a set: it gives exactly the variants of its targets, or a failure with a reason."""

from __future__ import annotations

import pickle
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.cel import ExpressionLimits
from reconciler.controllers.deletion_guards import compute_deletion_hash
from reconciler.controllers.package_variants.package_variant_set import (
    SetDeletions,
    find_name_conflict,
    guard_deletions,
)
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.controllers.package_variants.set_expansion import (
    IdentifiedSet,
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
class FakeObject:
    key: ObjectKey
    labels: Mapping[str, str] = field(default_factory=dict)
    annotations: Mapping[str, str] = field(default_factory=dict)


def build_repository(name: str, **labels: str) -> FakeObject:
    return FakeObject(ObjectKey(PORCH, "Repository", "default", name), labels)


def build_site(name: str, **labels: str) -> FakeObject:
    return FakeObject(ObjectKey("fleet.example", "Site", "", name), labels)


@dataclass(frozen=True)
class FakeSnapshot:
    """Fake snapshot in memory: Repositories, sites and one catalog."""

    repositories: Sequence[FakeObject] = ()
    sites: Sequence[FakeObject] = ()
    missing: frozenset[str] = frozenset()
    revision_sets: Mapping[str, Any] = field(default_factory=dict)

    def has_kind(self, api_version: str, kind: str) -> bool:
        return kind in ("Repository", "Site")

    def list_objects(self, api_version: str, kind: str) -> Sequence[FakeObject]:
        return self.repositories if kind == "Repository" else self.sites

    def find_repository(self, name: str) -> FakeObject | None:
        return next((thing for thing in self.repositories if thing.key.name == name), None)

    def describe_upstream(self, upstream: UpstreamSpec) -> Mapping[str, Any] | UnresolvedUpstream:
        if upstream.package in self.missing:
            return UnresolvedUpstream("UpstreamNotFound", f"no {upstream.package}")
        name = f"catalog.{upstream.package}.v1"
        return {"name": name, "namespace": "default", "labels": {"tier": "base"}, "annotations": {}}

    def find_revision_set(self, name: str) -> Mapping[str, Any] | None:
        return self.revision_sets.get(name)


SNAPSHOT = FakeSnapshot(
    [build_repository("eu", zone="e"), build_repository("us", zone="u"), build_repository("ap")],
    [
        build_site("nyc", cluster="us", tier="edge"),
        build_site("ber", cluster="eu", tier="edge"),
        build_site("lab", tier="test"),
    ],
)


def build_set(*targets: Any, name: str = "s", **mapping: Any) -> IdentifiedSet:
    spec = {"upstream": {"repo": "catalog", "package": "p", "revision": "v1"}, "targets": list(targets), **mapping}
    spec = {field: value for field, value in spec.items() if value is not None}
    data = {"apiVersion": f"{PORCH}/v1alpha2", "kind": "PackageVariantSet", "metadata": {"name": name}, "spec": spec}
    read = read_package_variant_set(data, ExpressionLimits())
    assert read.model is not None, read.errors
    return IdentifiedSet(ObjectKey(PORCH, "PackageVariantSet", "default", name), "uid-1", read.model.spec)


def expand(*targets: Any, snapshot: FakeSnapshot = SNAPSHOT, **mapping: Any) -> SetExpansion:
    expansion = expand_set(build_set(*targets, **mapping), snapshot, ExpressionLimits())
    assert isinstance(expansion, SetExpansion), expansion
    return expansion


def expand_with_failure(*targets: Any, snapshot: FakeSnapshot = SNAPSHOT, **mapping: Any) -> SetFailure:
    failure = expand_set(build_set(*targets, **mapping), snapshot, ExpressionLimits())
    assert isinstance(failure, SetFailure)
    return failure


def build_repository_target(*names: str, packages: Sequence[str] = (), **template: Any) -> dict[str, Any]:
    entries = [{"name": name, "packageNames": list(packages)} if packages else {"name": name} for name in names]
    return {"repositories": entries, "template": template}


def build_site_target(
    packages: Sequence[str] = (), labels: Mapping[str, str] | None = None, /, **template: Any
) -> dict[str, Any]:
    selector: dict[str, Any] = {"apiVersion": SITE[0], "kind": SITE[1], "matchLabels": dict(labels or {})}
    return {"objectSelector": {**selector, "packageNames": list(packages)}, "template": template}


def list_targets(expansion: SetExpansion) -> list[str]:
    return [str(variant.key) for variant in expansion.variants]


def test_variants_of_a_set_share_equal_models_and_their_data() -> None:
    """Different specs share the models of equal fields. Without this, each package needs eight kilobytes."""
    template = {
        "packageContext": {"data": {"level": "1"}},
        "pipeline": {"mutators": [{"image": "set-labels:v0.2", "configMap": {"tier": "base"}}]},
    }
    targets = (build_repository_target("eu", **template), build_repository_target("us", labels={"a": "b"}, **template))
    specs = [variant.spec for variant in expand(*targets).variants]
    for name in ("upstream", "pipeline", "package_context"):
        assert getattr(specs[0], name) is getattr(specs[1], name)
    assert [(spec.downstream.repo, spec.labels) for spec in specs] == [("eu", {}), ("us", {"a": "b"})]
    assert [spec.shared_data for spec in specs] == [spec.as_data() for spec in specs]
    assert specs[0].shared_data["pipeline"] is specs[1].shared_data["pipeline"]


EDGE = {"downstream": {"repoExpr": "target.labels['cluster']"}}


@pytest.mark.parametrize(
    ("targets", "expected"),
    [
        pytest.param([build_repository_target("eu", "us")], ["eu/p", "us/p"], id="the-upstreams-package-name"),
        pytest.param(
            [build_repository_target("eu"), build_repository_target("us", packages=["b", "a"])],
            ["eu/p", "us/a", "us/b"],
            id="package-names-of-a-list",
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
        pytest.param(
            [build_site_target(["a", "b"], {"tier": "edge"}, **EDGE)], ["eu/a", "eu/b", "us/a", "us/b"], id="objects"
        ),
        pytest.param(
            [{"objectSelector": {"apiVersion": SITE[0], "kind": "Site", "name": "ber"}, "template": EDGE}],
            ["eu/p"],
            id="object-by-name",
        ),
        pytest.param([{"repositorySelector": {"matchLabels": {"zone": "none"}}}], [], id="no-match-is-no-failure"),
        pytest.param(
            [
                build_site_target(
                    (), {"tier": "edge"}, downstream={"repo": "ap", "packageExpr": "packageDefault + '-' + target.name"}
                )
            ],
            ["ap/p-ber", "ap/p-nyc"],
            id="one-repository-for-all",
        ),
        pytest.param(
            [build_repository_target("eu"), build_repository_target("eu")], ["eu/p"], id="equal-twice-is-once"
        ),
        pytest.param(
            [build_repository_target("eu", downstream={"repo": "us", "package": "q"})],
            ["us/q"],
            id="fixed-downstream-beats-the-default",
        ),
    ],
)
def test_targets_are_expanded(targets: list[Any], expected: list[str]) -> None:
    expansion = expand(*targets)

    assert list_targets(expansion) == expected


def test_order_of_targets_and_objects_does_not_matter() -> None:
    targets = [
        build_repository_target("eu"),
        build_site_target(["a"], {"tier": "edge"}, **EDGE),
        build_repository_target("us", packages=["b"]),
    ]
    backwards = FakeSnapshot(list(reversed(SNAPSHOT.repositories)), list(reversed(SNAPSHOT.sites)))

    first = [(generated_variant.name, generated_variant.as_data()) for generated_variant in expand(*targets).variants]
    second = [
        (generated_variant.name, generated_variant.as_data())
        for generated_variant in expand(*reversed(targets), snapshot=backwards).variants
    ]

    assert first == second


def expand_to_data(**template: Any) -> dict[str, Any]:
    (variant,) = expand(build_site_target(["a"], {"cluster": "eu"}, **EDGE, **template)).variants
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
def test_templates_are_evaluated(template: dict[str, Any], path: list[str], expected: Any) -> None:
    value: Any = expand_to_data(**template)
    for step in path:
        value = value[step]

    assert value == expected


def test_empty_fields_are_omitted() -> None:
    assert set(expand_to_data()) == {"upstream", "downstream", "adoptionPolicy", "deletionPolicy"}


@pytest.mark.parametrize(
    ("target", "reason", "message"),
    [
        pytest.param(
            build_site_target(
                labelExprs=[{"key": "a", "valueExpr": "target.labels['cluster']"}], downstream={"repo": "eu"}
            ),
            "RenderError",
            "spec.targets[0] (lab/p): template.labelExprs[0].valueExpr failed: no such key: cluster",
            id="missing-label",
        ),
        pytest.param(
            build_repository_target("mars"),
            "RenderError",
            'spec.targets[0] (mars/p): repository "mars" could not be loaded',
            id="missing",
        ),
        pytest.param(
            build_repository_target("eu", packages=["Upper"]),
            "ValidationError",
            'spec.targets[0] (eu/Upper): spec.downstream.package is not a valid package path: "Upper" must contain '
            'only lower-case letters, digits and "-", and must start and end with a letter or digit',
            id="invalid-variant",
        ),
        pytest.param(
            {"objectSelector": {"apiVersion": "a/v1", "kind": "Moon"}},
            "NoMatchingTargets",
            'spec.targets[0] selects the kind "Moon" in "a/v1", but the config contains no object and no definition of '
            "this kind",
            id="unknown-kind",
        ),
    ],
)
def test_failures_have_a_reason_and_a_message(target: Any, reason: str, message: str) -> None:
    failure = expand_with_failure(target)

    assert failure.reason == reason
    assert message in failure.message


def test_result_of_an_expression_must_be_a_string() -> None:
    failure = expand_with_failure(build_repository_target("eu", labelExprs=[{"key": "a", "valueExpr": "target"}]))

    assert "template.labelExprs[0].valueExpr" in failure.message
    assert "non-string value" in failure.message


def test_different_variants_of_one_target_are_a_failure() -> None:
    failure = expand_with_failure(
        build_repository_target("eu", labels={"a": "1"}),
        build_repository_target("us"),
        build_repository_target("eu", labels={"a": "2"}),
    )

    assert failure.reason == "DuplicateTarget"
    assert failure.message == "eu/p is requested with different specs by spec.targets[0], spec.targets[2]"


def test_missing_upstream_is_a_failure() -> None:
    assert expand_with_failure(
        build_repository_target("eu"), snapshot=FakeSnapshot(missing=frozenset({"p"}))
    ) == SetFailure("UpstreamNotFound", "no p", ("spec", "upstream"))


def test_only_the_failing_target_is_skipped() -> None:
    broken = {"labelExprs": [{"key": "a", "valueExpr": "repository.labels['zone']"}]}
    expansion = expand(build_repository_target("ap", "eu", **broken), errorPolicy="skipTarget")

    assert list_targets(expansion) == ["eu/p"]
    (skipped,) = expansion.skipped
    assert (skipped.index, skipped.key, skipped.reason) == (0, DownstreamKey("ap", "p"), "RenderError")


def test_a_skipped_target_whose_downstream_is_unknown_has_no_key() -> None:
    expansion = expand(build_site_target(**EDGE), errorPolicy="skipTarget")

    assert list_targets(expansion) == ["eu/p", "us/p"]
    assert [skipped.key for skipped in expansion.skipped] == [None]


def test_generated_variant_is_a_complete_object() -> None:
    (variant,) = expand(build_repository_target("eu")).variants
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


def test_each_target_receives_all_upstreams() -> None:
    snapshot = FakeSnapshot(SNAPSHOT.repositories, revision_sets={"shared": SHARED})
    expansion = expand(
        build_repository_target("eu", "us"),
        snapshot=snapshot,
        upstream=None,
        upstreams=UPSTREAMS,
        upstreamSets=["shared"],
    )

    assert list_targets(expansion) == ["eu/p", "eu/q", "eu/r", "us/p", "us/q", "us/r"]
    assert expansion.variants[2].spec.upstream.package == "r"


def test_invalid_revision_set_is_a_failure() -> None:
    snapshot = FakeSnapshot(SNAPSHOT.repositories, revision_sets={"shared": {**SHARED, "spec": {}}})

    assert expand_with_failure(
        build_repository_target("eu"), snapshot=snapshot, upstream=None, upstreamSets=["shared"]
    ) == SetFailure(
        "ValidationError",
        'PackageRevisionSet "shared": must specify at least one item in spec.upstreams',
    )


@pytest.mark.parametrize(
    ("target", "mapping", "reason", "message"),
    [
        pytest.param(
            build_repository_target("eu", packages=["x"]),
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
            build_repository_target("eu"),
            {"upstreamSets": ["none"]},
            "UpstreamNotFound",
            'could not find PackageRevisionSet "none"',
            id="no-such-revision-set",
        ),
        pytest.param(
            build_repository_target("eu", downstream={"package": "x"}),
            {"upstreams": UPSTREAMS},
            "DuplicateTarget",
            "eu/x is requested with different specs by spec.targets[0]",
            id="two-upstreams-one-package",
        ),
    ],
)
def test_failures_of_several_upstreams_have_a_reason(
    target: Any, mapping: dict[str, Any], reason: str, message: str
) -> None:
    failure = expand_with_failure(target, upstream=None, **mapping)

    assert (failure.reason, failure.message) == (reason, message)


def build_expansion(names: Sequence[str], skipped: Sequence[SkippedTarget] = ()) -> SetExpansion:
    variants = expand(build_repository_target("eu", packages=names)).variants if names else ()
    return SetExpansion(variants, tuple(skipped))


def build_eu_keys(*names: str) -> list[DownstreamKey]:
    return [DownstreamKey("eu", name) for name in names]


TEN = [f"p{number}" for number in range(10)]


@pytest.mark.parametrize(
    ("remaining", "existing", "annotations", "reason"),
    [
        pytest.param(TEN, TEN, {}, None, id="nothing-to-delete"),
        pytest.param(TEN[:7], TEN, {}, None, id="thirty-percent-are-deleted"),
        pytest.param(TEN[:6], TEN, {}, "DeletionHeld", id="more-is-held"),
        pytest.param(["p0"], ["p0", "p1"], {}, "DeletionHeld", id="one-of-two-is-half"),
        pytest.param(["p9"], ["p0"], {}, "DeletionHeld", id="but-not-the-only-one"),
        pytest.param([], TEN, {}, "NoTargets", id="all-for-lack-of-targets"),
        pytest.param([], [], {}, None, id="no-requested-and-no-published-package"),
        pytest.param([], TEN, {"reconciler.dev/allow-empty": "true"}, None, id="empty-is-allowed"),
        pytest.param([], TEN, {"reconciler.dev/allow-empty": "yes"}, "NoTargets", id="only-true-allows"),
        pytest.param(
            TEN[:6], TEN, {"reconciler.dev/ack-deletions": compute_deletion_hash(build_eu_keys(*TEN[6:]))}, None, id="acknowledged"
        ),
        pytest.param(
            TEN[:5], TEN, {"reconciler.dev/ack-deletions": compute_deletion_hash(build_eu_keys(*TEN[6:]))}, "DeletionHeld",
            id="another-list-was-acknowledged",
        ),
    ],
)  # fmt: skip
def test_deletions_are_guarded(
    remaining: list[str], existing: list[str], annotations: dict[str, str], reason: str | None
) -> None:
    deletions = guard_deletions(build_expansion(remaining), build_eu_keys(*existing), annotations)

    downstream_keys = tuple(sorted(set(build_eu_keys(*existing)) - set(build_eu_keys(*remaining))))
    assert (deletions.allowed, deletions.blocked) == (((), downstream_keys) if reason else (downstream_keys, ()))
    assert (deletions.failure.reason if deletions.failure else None) == reason


def test_message_of_a_blocked_deletion_contains_its_confirmation() -> None:
    deletions = guard_deletions(build_expansion(TEN[:5]), build_eu_keys(*TEN), {})
    assert deletions.failure is not None
    set_deletions = guard_deletions(
        build_expansion(TEN[:5]),
        build_eu_keys(*TEN),
        {"reconciler.dev/ack-deletions": deletions.failure.message.split('"')[-2]},
    )

    assert set_deletions.allowed == deletions.blocked


@pytest.mark.parametrize(
    ("remaining", "held", "reason"),
    [
        pytest.param(["p2"], {"p0": 1}, "DeletionHeld", id="the-only-one-there-was"),
        pytest.param(["p3", "p4"], {"p0": 3, "p1": 3}, "DeletionHeld", id="two-of-three"),
        pytest.param(TEN[1:], {"p0": 3}, "DeletionHeld", id="one-of-three"),
        pytest.param(TEN[1:], {"p5": 1}, None, id="a-package-that-is-requested-again-does-not-count"),
    ],
)
def test_blocked_deletion_keeps_its_original_package_count(
    remaining: list[str], held: dict[str, int], reason: str | None
) -> None:
    counts = dict(zip(build_eu_keys(*held), held.values(), strict=True))

    deletions = guard_deletions(build_expansion(remaining), build_eu_keys(*remaining, *held), {}, blocked_counts=counts)

    assert (deletions.failure.reason if deletions.failure else None) == reason


def test_possible_variants_of_a_skipped_target_are_not_deleted() -> None:
    known = SkippedTarget(0, "RenderError", "", DownstreamKey("eu", "p1"))

    there = build_eu_keys("p0", "p1", "p2", "p3")

    assert guard_deletions(build_expansion(["p0", "p3"], [known]), there, {}).allowed == tuple(build_eu_keys("p2"))
    unknown = SkippedTarget(0, "RenderError", "")
    assert guard_deletions(build_expansion(["p0"], [unknown]), build_eu_keys("p0", "p1", "p2"), {}) == SetDeletions()


def test_name_of_another_object_is_a_conflict() -> None:
    expansion = expand(build_repository_target("eu", "us"))

    assert find_name_conflict(expansion, {"other"}) is None
    failure = find_name_conflict(expansion, {"s-us-p"})
    assert failure is not None
    assert (failure.reason, '"s-us-p"' in failure.message) == ("NameConflict", True)
