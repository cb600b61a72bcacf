"""Tests of the controller's cache: results are the same with and without it, and an unchanged set is not expanded
again.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import pytest
from hypothesis import given as for_all
from hypothesis import settings
from hypothesis import strategies as st

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.package_variants import package_variant_set as set_results
from reconciler.controllers.package_variants.controller import (
    PackageVariantCache,
    PackageVariantInputs,
    generate_package_variants,
)
from reconciler.controllers.package_variants.set_expansion import PackageVariantSet
from reconciler.controllers.package_variants.set_targets import DownstreamKey
from reconciler.controllers.repositories import read_repositories
from reconciler.controllers.results import ControllerResult
from reconciler.krm.objects import ObjectKey
from tests.support.examples import examples
from tests.unit.controllers.package_variants.controller_world import (
    REPOSITORIES,
    FakeUpstreams,
    build_variant,
    build_variant_set,
)

CITY = "{{apiVersion: example.com/v1, kind: City, metadata: {{name: {name}, labels: {{size: {size}}}}}}}\n"
BY_LABELS = build_variant_set("by-labels", "[{repositorySelector: {matchLabels: {region: north}}}]")
BY_OBJECTS = build_variant_set(
    "by-objects",
    "[{objectSelector: {apiVersion: example.com/v1, kind: City, matchLabels: {size: big}},"
    " template: {downstream: {repo: berlin, packageExpr: target.name}}}]",
)
BY_NAMES = build_variant_set(
    "by-names",
    "[{repositories: [{name: lisbon, packageNames: [a, b]}], template: {packageContext: {data: {k: v}}}}]",
    upstream="repo: catalog, package: gateway, tag: stable, tagPolicy: {settle: 10s}",
)
BASE_FILES: Mapping[str, str] = {
    "repositories.yaml": REPOSITORIES,
    "labels.yaml": BY_LABELS,
    "objects.yaml": BY_OBJECTS,
    "names.yaml": BY_NAMES,
    "written.yaml": build_variant("written"),
    "cities.yaml": "---\n".join(CITY.format(name=name, size="big") for name in ("rome", "oslo")),
}
CHANGES: Mapping[str, Mapping[str, str]] = {
    "a-repository-is-relabelled": {"repositories.yaml": REPOSITORIES.replace("south", "north")},
    "a-repository-moves": {"repositories.yaml": REPOSITORIES.replace("git.example/fleet", "git.example/other")},
    "an-upstream-moves": {"repositories.yaml": REPOSITORIES.replace("git.example/catalog", "git.example/pool")},
    "a-repository-is-no-cluster": {"repositories.yaml": REPOSITORIES.replace("deployment: true, ", "")},
    "a-repository-is-gone": {"repositories.yaml": REPOSITORIES.rpartition("---\n")[0]},
    "an-object-is-gone": {"cities.yaml": CITY.format(name="rome", size="big")},
    "an-object-is-relabelled": {"cities.yaml": CITY.format(name="rome", size="small")},
    "a-set-changes": {"labels.yaml": BY_LABELS.replace("revision: v1", "revision: v2")},
    "a-set-is-gone": {"names.yaml": ""},
    "a-name-is-taken": {"written.yaml": build_variant("by-names-lisbon-a")},
    "nothing-that-is-looked-at": {"more.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n"},
}
SET = ObjectKey("config.porch.kpt.dev", "PackageVariantSet", "default", "by-objects")


@dataclass
class Passes:
    """Passes over a sequence of configs. With a cache, each pass reuses the results of the previous pass."""

    catalog: Catalog | None = None
    cache: PackageVariantCache | None = None

    def run(self, changes: Sequence[str], now: int = 0, children: int = 0) -> ControllerResult:
        """Run a pass on the base config with these changes."""
        files = dict(BASE_FILES)
        for change in changes:
            files |= CHANGES[change]
        tree = FileTree({path: File(text.encode()) for path, text in files.items() if text})
        catalog = read_catalog(tree, previous=self.catalog)
        if self.cache:
            self.catalog = catalog
        owned = {SET: [DownstreamKey("berlin", f"city-{number}") for number in range(children)]}
        inputs = PackageVariantInputs(read_repositories(catalog)[0], FakeUpstreams(), owned, now_seconds=now)
        return generate_package_variants(catalog, inputs, self.cache)


STEPS = st.tuples(
    st.lists(st.sampled_from(sorted(CHANGES)), max_size=3), st.sampled_from([0, 1_000_000_005, 2_000_000_000]),
    st.integers(0, 3),
)  # fmt: skip


@settings(max_examples=examples(40), deadline=None)
@for_all(st.lists(STEPS, min_size=2, max_size=4))
def test_pass_with_a_cache_has_the_same_result(steps: list[tuple[list[str], int, int]]) -> None:
    cached_passes = Passes(cache=PackageVariantCache())

    for changes, now, children in steps:
        assert cached_passes.run(changes, now, children) == Passes().run(changes, now, children)


@pytest.mark.parametrize(
    ("change", "expanded"),
    [
        pytest.param("nothing-that-is-looked-at", [], id="nothing"),
        pytest.param("a-name-is-taken", [], id="a-name"),
        pytest.param("an-object-is-gone", ["by-objects"], id="an-object"),
        pytest.param("a-set-changes", ["by-labels"], id="a-set"),
        pytest.param("a-repository-moves", ["by-labels", "by-names", "by-objects"], id="a-repository"),
    ],
)
def test_only_changed_sets_are_expanded(change: str, expanded: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    passes, result = Passes(cache=PackageVariantCache()), list[str]()
    passes.run([])
    expand = set_results.expand_set

    def record_expansion(package_variant_set: PackageVariantSet, *more: object) -> object:
        result.append(package_variant_set.key.name)
        return expand(package_variant_set, *more)  # type: ignore[arg-type]

    monkeypatch.setattr(set_results, "expand_set", record_expansion)

    passes.run([change])

    assert sorted(result) == expanded


def test_unchanged_variants_are_the_same_objects() -> None:
    passes = Passes(cache=PackageVariantCache())

    first, second = passes.run([]), passes.run(["nothing-that-is-looked-at"])

    variants = [item for item in second.variants if item.owner.parent]
    assert len(variants) == 5
    assert all(any(item is previous for previous in first.variants) for item in variants)
    assert replace(first, variants=()) == replace(second, variants=())
