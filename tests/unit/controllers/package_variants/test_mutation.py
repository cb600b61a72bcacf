"""Tests of the mutation of a variant: package context, pipeline and injection. A second mutation changes nothing."""

from __future__ import annotations

import pickle
from typing import Any

import pytest

from reconciler.api.base import read_model
from reconciler.api.porch.messages import PORCH_TEMPLATES
from reconciler.api.porch.package_variant import PackageVariantSpec
from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.catalog.trace import CatalogView, DependencyReader
from reconciler.controllers.package_variants.mutation import build_mutation
from reconciler.controllers.results import PreviousRender
from reconciler.krm.yaml import parse_yaml
from reconciler.packages.parsing import masked_names

KPTFILE = """\
apiVersion: kpt.dev/v1
kind: Kptfile
metadata:
  name: p
pipeline:
  mutators:
  - image: set-annotations:v0.1.4
    name: PackageVariant.front.legacy.0
    configMap:
      a: left-over
  # the reviewers' verdict comes last
  - image: set-annotations:v0.1.4 # pinned
    configMap:
      review: done
"""
CONTEXT = """\
apiVersion: v1
kind: ConfigMap
metadata:
  name: kptfile.kpt.dev
  annotations:
    config.kubernetes.io/local-config: "true"
data:
  name: p
  # the catalog team answers the pager
  owner: catalog-team
  tier: gold
  trace: verbose
"""


def build_spec(**fields: Any) -> PackageVariantSpec:
    data = {
        "upstream": {"repo": "catalog", "package": "p", "revision": "v1"},
        "downstream": {"repo": "edge", "package": "a/b"},
        **fields,
    }
    read = read_model(PackageVariantSpec, data, PORCH_TEMPLATES)
    assert read.model is not None, read.errors
    return read.model


def build_tree(context: str | None = CONTEXT, kptfile: str = KPTFILE) -> FileTree:
    files = {"Kptfile": kptfile, **({"package-context.yaml": context} if context is not None else {})}
    return FileTree({path: File(text.encode()) for path, text in files.items()})


def build_view() -> CatalogView:
    return CatalogView(DependencyReader(read_catalog(FileTree())))


def mutate_package(
    files: FileTree, package_variant_spec: PackageVariantSpec, earlier: PreviousRender | None = None
) -> FileTree:
    mutate = pickle.loads(pickle.dumps(build_mutation(package_variant_spec, "front", "default")))
    result = mutate(files, build_view(), earlier)
    assert result.findings == ()
    assert mutate(result.files, build_view(), earlier).files == result.files
    files_after: FileTree = result.files
    return files_after


def read_context(files: FileTree) -> dict[str, str]:
    data: dict[str, str] = parse_yaml(files["package-context.yaml"].data).documents[0].data["data"]
    return data


@pytest.mark.parametrize(
    ("changes", "expected"),
    [
        pytest.param(
            {"data": {"region": "west", "area": "x"}},
            {"name": "p", "owner": "catalog-team", "tier": "gold", "trace": "verbose", "area": "x", "region": "west"},
            id="added-sorted",
        ),
        pytest.param(
            {"data": {"tier": "silver"}},
            {"name": "p", "owner": "catalog-team", "tier": "silver", "trace": "verbose"},
            id="overwritten",
        ),
        pytest.param(
            {"removeKeys": ["trace", "never-there"]},
            {"name": "p", "owner": "catalog-team", "tier": "gold"},
            id="removed",
        ),
        pytest.param(
            {"data": {"tier": "silver", "region": "west"}, "removeKeys": ["trace"]},
            {"name": "p", "owner": "catalog-team", "tier": "silver", "region": "west"},
            id="all-three",
        ),
    ],
)
def test_package_context_is_changed(changes: dict[str, Any], expected: dict[str, str]) -> None:
    files = mutate_package(build_tree(), build_spec(packageContext=changes))

    assert list(read_context(files).items()) == list(expected.items())
    assert "# the catalog team answers the pager" in files["package-context.yaml"].data.decode()


@pytest.mark.parametrize(
    ("context", "message"),
    [
        pytest.param(None, '"package-context.yaml" not found in edge/a/b', id="missing"),
        pytest.param(
            CONTEXT.replace("ConfigMap", "Secret"),
            '"package-context.yaml" must contain a v1 ConfigMap with the name "kptfile.kpt.dev"',
            id="wrong-kind",
        ),
        pytest.param(CONTEXT.partition("\ndata:")[0], "PackageContext no data field found", id="no-data"),
    ],
)
def test_invalid_package_context_blocks_the_draft(context: str | None, message: str) -> None:
    mutate = build_mutation(build_spec(packageContext={"data": {"a": "b"}}), "front", "default")
    result = mutate(build_tree(context), build_view())

    assert [finding.message for finding in result.findings] == [message]


def test_package_context_is_optional_without_changes() -> None:
    assert "package-context.yaml" not in mutate_package(build_tree(None), build_spec())


STAMP = {"image": "set-labels:v0.2.0", "name": "stamp", "configMap": {"region": "eu"}}


def read_functions(files: FileTree, kind: str = "mutators") -> list[Any]:
    pipeline = parse_yaml(files["Kptfile"].data).documents[0].data.get("pipeline") or {}
    return pipeline.get(kind) or []


def test_functions_are_added_first_and_comments_stay() -> None:
    files = mutate_package(
        build_tree(), build_spec(pipeline={"mutators": [STAMP, {"image": "b"}], "validators": [{"image": "c"}]})
    )

    assert read_functions(files) == [
        {"image": "set-labels:v0.2.0", "name": "PackageVariant.front.stamp.0", "configMap": {"region": "eu"}},
        {"image": "b", "name": "PackageVariant.front..1"},
        {"image": "set-annotations:v0.1.4", "configMap": {"review": "done"}},
    ]
    assert read_functions(files, "validators") == [{"image": "c", "name": "PackageVariant.front..0"}]
    text = files["Kptfile"].data.decode()
    assert "  # the reviewers' verdict comes last\n  - image: set-annotations:v0.1.4 # pinned\n" in text


def test_empty_pipeline_is_removed() -> None:
    only_ours = KPTFILE.partition("  # the reviewers'")[0]
    files = mutate_package(build_tree(kptfile=only_ours), build_spec())

    assert files["Kptfile"].data.decode() == KPTFILE.partition("pipeline:")[0]


OWN = "{image: a, name: PackageVariant.front..0}"
FOREIGN = "{image: b}"


@pytest.mark.parametrize("mutators", [[], [OWN], [OWN, FOREIGN], [FOREIGN, OWN], [FOREIGN]])
@pytest.mark.parametrize("validators", [[], [OWN], [OWN, OWN], [FOREIGN, OWN], [FOREIGN]])
def test_earlier_functions_of_the_variant_are_removed_from_both_lists(
    mutators: list[str], validators: list[str]
) -> None:
    lists = {"mutators": mutators, "validators": validators}
    pipeline = "".join(f"  {kind}: [{', '.join(entries)}]\n" for kind, entries in lists.items() if entries)
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: p\npipeline:\n{pipeline or '  {}'}\n"

    files = mutate_package(build_tree(kptfile=kptfile), build_spec())

    assert read_functions(files, "mutators") == [{"image": "b"}] * mutators.count(FOREIGN)
    assert read_functions(files, "validators") == [{"image": "b"}] * validators.count(FOREIGN)


def test_invalid_kptfile_is_reported_for_functions() -> None:
    functions = {"mutators": [{"image": "i"}]}

    result = build_mutation(build_spec(pipeline=functions), "front", "default")(
        build_tree(kptfile="kind: [\n"), build_view(), None
    )

    assert [finding.code for finding in result.findings] == ["KptfileSyntax", "InjectionPointInvalid"]


def test_spec_without_mutations_changes_nothing() -> None:
    plain = build_tree(kptfile=KPTFILE.replace("PackageVariant.front", "PackageVariant.back"))

    assert mutate_package(plain, build_spec()) == plain


def test_mutation_without_changes_returns_the_same_tree_to_clusters_with_shared_edits() -> None:
    plain = build_tree()

    with masked_names("lisbon", "gateway"):
        assert build_mutation(build_spec(), "gateway", "default")(plain, build_view()).files is plain


def test_context_values_of_the_previous_render_stay() -> None:
    base = build_tree()
    earlier = PreviousRender(
        mutate_package(base, build_spec(packageContext={"data": {"region": "west", "tier": "silver"}})), base
    )
    files = mutate_package(build_tree(CONTEXT.replace("verbose", "quiet")), build_spec(), earlier)

    assert read_context(files) == {
        "name": "p",
        "owner": "catalog-team",
        "tier": "silver",
        "trace": "quiet",
        "region": "west",
    }


def test_context_value_that_upstream_changes_later_is_used() -> None:
    base = build_tree()
    earlier = PreviousRender(mutate_package(base, build_spec(packageContext={"data": {"tier": "silver"}})), base)
    files = mutate_package(build_tree(CONTEXT.replace("gold", "platinum")), build_spec(), earlier)

    assert read_context(files)["tier"] == "platinum"


def test_context_value_of_the_previous_render_can_be_removed() -> None:
    base = build_tree()
    earlier = PreviousRender(mutate_package(base, build_spec(packageContext={"data": {"region": "west"}})), base)
    files = mutate_package(base, build_spec(packageContext={"removeKeys": ["region"]}), earlier)

    assert "region" not in read_context(files)


def test_errors_of_all_steps_are_reported() -> None:
    bad = "apiVersion: a/v1\nkind: A\nmetadata: {name: a, annotations: {kpt.dev/config-injection: maybe}}\n"
    files = build_tree(None).with_files({"a.yaml": bad.encode()})
    result = build_mutation(build_spec(packageContext={"data": {"a": "b"}}), "front", "default")(files, build_view())

    assert len(result.findings) == 2
