"""Tests of the PackageVariantSet reader: all errors are reported together, in the order and with the texts of Porch."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.base import ReadResult
from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant_set import (
    ObjectSelection,
    PackageVariantSet,
    PackageVariantSetSpec,
    RepositoryEntry,
    RepositoryList,
)
from reconciler.api.porch.upstream import UpstreamSpec
from reconciler.api.reconciler import PackageRevisionSet
from reconciler.cel import ExpressionLimits
from reconciler.controllers.package_variants.read_set import read_package_variant_set
from reconciler.krm.names import validate_package_path
from reconciler.krm.selectors import LabelSelector

UPSTREAM = {"repo": "catalog", "package": "p", "revision": "v1"}
T0 = "spec.targets[0]"
TEMPLATE = f"{T0}.template"
OPERATOR = 'matchExpressions[0].operator must be one of "In", "NotIn", "Exists", "DoesNotExist", but is "Is"'
ONE_SELECTION = "must specify one of `repositories`, `repositorySelector`, or `objectSelector`"


def build_variant_set(spec: Any, version: str = "v1alpha2") -> dict[str, Any]:
    return {
        "apiVersion": f"config.porch.kpt.dev/{version}",
        "kind": "PackageVariantSet",
        "metadata": {"name": "s"},
        "spec": spec,
    }


def read_set(spec: Any) -> ReadResult[PackageVariantSet]:
    return read_package_variant_set(build_variant_set(spec), ExpressionLimits())


def build_spec_with_targets(*entries: Any, **mapping: Any) -> dict[str, Any]:
    return {"upstream": UPSTREAM, "targets": list(entries), **mapping}


def build_spec_with_template(**fields: Any) -> dict[str, Any]:
    return build_spec_with_targets({"repositories": [{"name": "r"}], "template": fields})


def build_spec_with_upstream(**fields: Any) -> dict[str, Any]:
    return build_spec_with_targets({"repositories": [{"name": "r"}]}, upstream=fields)


def remove_allowed_fields(error: str) -> str:
    """Return an error without the list of allowed fields."""
    return error.partition(" (allowed: ")[0]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {},
            ["spec.upstream is a required field", "must specify at least one item in spec.targets"],
            id="empty",
        ),
        pytest.param(
            build_spec_with_upstream(),
            [
                "spec.upstream.repo is a required field",
                "spec.upstream.package is a required field",
                "either spec.upstream.revision or spec.upstream.workspaceName or spec.upstream.tag must be specified",
            ],
            id="empty-upstream",
        ),
        pytest.param(
            build_spec_with_upstream(repo="a", package="p", revision=1, tag="x"),
            ["spec.upstream must specify only one of revision, workspaceName and tag"],
            id="two-references",
        ),
        pytest.param(
            build_spec_with_upstream(repo="a", package="p", revision=2.0),
            ["spec.upstream.revision must be a string or an integer, but is 2.0; put the value in quotes"],
            id="float-revision",
        ),
        pytest.param(
            build_spec_with_upstream(repo="a", package="p/", revision=1),
            [f"spec.upstream.package is not a valid package path: {validate_package_path('p/')}"],
            id="package-path",
        ),
        pytest.param(build_spec_with_targets({}), [f"{T0} {ONE_SELECTION}"], id="target-without-selection"),
        pytest.param(
            build_spec_with_targets({"repositories": [{"name": "r"}], "repositorySelector": {}}),
            [f"{T0} {ONE_SELECTION}"],
            id="two-selections",
        ),
        pytest.param(
            build_spec_with_targets({"repositories": []}),
            [f"{T0}.repositories must not be an empty list if specified"],
            id="empty-list",
        ),
        pytest.param(
            build_spec_with_targets({"repositories": [{"name": ""}, {"name": "r", "packageNames": ["a", ""]}]}),
            [f"{T0}.repositories[0].name cannot be empty", f"{T0}.repositories[1].packageNames[1] cannot be empty"],
            id="empty-names",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {"matchExpressions": [{"key": "a", "operator": "Is"}]}}),
            [f"{T0}.repositorySelector.{OPERATOR}"],
            id="bad-operator",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {"packageNames": [""]}}),
            [f"{T0}.repositorySelector.packageNames[0] cannot be empty"],
            id="empty-package-name-in-a-selector",
        ),
        pytest.param(
            build_spec_with_targets({"objectSelector": {}}),
            [f"{T0}.objectselector.apiVersion cannot be empty", f"{T0}.objectselector.kind cannot be empty"],
            id="object-selector-without-type",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {"packageNames": ["a"]}, "packageNames": ["b"]}),
            [f"{T0}: packageNames of the target and of its selector must not differ"],
            id="package-names-twice",
        ),
        pytest.param(
            build_spec_with_targets({"repositories": [{"name": "r"}], "packageNames": ["b"]}),
            [f"{T0}.packageNames requires a selector in the same target"],
            id="package-names-beside-a-list",
        ),
        pytest.param(
            build_spec_with_template(adoptionPolicy="x", deletionPolicy="y"),
            [
                f'{TEMPLATE}.adoptionPolicy can only be "adoptNone" or "adoptExisting"',
                f'{TEMPLATE}.deletionPolicy can only be "orphan" or "delete"',
            ],
            id="policies",
        ),
        pytest.param(
            build_spec_with_template(
                downstream={"repo": "a", "repoExpr": "repoDefault", "package": "b", "packageExpr": "repoDefault"}
            ),
            [
                f"{TEMPLATE} may specify only one of `downstream.repo` and `downstream.repoExpr`",
                f"{TEMPLATE} may specify only one of `downstream.package` and `downstream.packageExpr`",
            ],
            id="downstream-twice",
        ),
        pytest.param(
            build_spec_with_template(
                labelExprs=[{"key": "a", "keyExpr": "repoDefault", "value": "b", "valueExpr": "repoDefault"}]
            ),
            [
                f"{TEMPLATE}.labelExprs[0] may specify only one of `key` and `keyExpr`",
                f"{TEMPLATE}.labelExprs[0] may specify only one of `value` and `valueExpr`",
            ],
            id="map-entry-twice",
        ),
        pytest.param(
            build_spec_with_template(annotationExprs=[{}]),
            [
                f"{TEMPLATE}.annotationExprs[0] must specify `key` or `keyExpr`",
                f"{TEMPLATE}.annotationExprs[0] must specify `value` or `valueExpr`",
            ],
            id="map-entry-empty",
        ),
        pytest.param(
            build_spec_with_template(labelExprs=[{"key": "a", "value": ""}]), [], id="an-empty-value-is-a-value"
        ),
        pytest.param(
            build_spec_with_template(injectors=[{"name": "a", "nameExpr": "repoDefault"}, {}]),
            [
                f"{TEMPLATE}.injectors[0] may specify only one of `name` and `nameExpr`",
                f"{TEMPLATE}.injectors[1] must specify either `name` or `nameExpr`",
            ],
            id="injector-names",
        ),
        pytest.param(
            build_spec_with_template(pipeline={"mutators": [{"name": "a.b"}], "validators": [{"image": ""}]}),
            [
                f"{TEMPLATE}.pipeline.mutators[0].image must not be empty",
                f"{TEMPLATE}.pipeline.mutators[0].name must not contain '.'",
                f"{TEMPLATE}.pipeline.validators[0].image must not be empty",
            ],
            id="functions",
        ),
        pytest.param(
            build_spec_with_template(
                pipeline={
                    "mutators": [{"image": "i", "configPath": "f", "configMapExprs": [{"key": "a", "value": "b"}]}]
                }
            ),
            [f"{TEMPLATE}.pipeline.mutators[0] may specify only one of configPath and configMap"],
            id="config-twice",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {}}, errorPolicy="goOn"),
            ['spec.errorPolicy must be "stopAll" or "skipTarget", but is "goOn"'],
            id="error-policy",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {}, "templates": {}}, upstreamz=[]),
            [f'unknown field "{T0}.templates"', 'unknown field "spec.upstreamz"'],
            id="unknown-fields",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {}}, upstreams=[UPSTREAM]),
            ["spec.upstream must not be specified together with spec.upstreams or spec.upstreamSets"],
            id="one-upstream-or-several",
        ),
        pytest.param(
            {"upstreams": [], "targets": [{"repositorySelector": {}}]},
            ["must specify at least one item in spec.upstreams or spec.upstreamSets"],
            id="no-upstreams",
        ),
    ],
)
def test_errors_are_reported(spec: Any, errors: list[str]) -> None:
    read = read_set(spec)

    assert [remove_allowed_fields(error) for error in read.error_texts] == errors
    assert (read.model is None) == bool(errors)


@pytest.mark.parametrize(
    ("fields", "path"),
    [
        pytest.param(
            {"downstream": {"repoExpr": "repository.name"}}, "downstream.repoExpr", id="repository-unknown-yet"
        ),
        pytest.param({"downstream": {"packageExpr": "pkg"}}, "downstream.packageExpr", id="undeclared"),
        pytest.param({"labelExprs": [{"key": "a", "valueExpr": "1 +"}]}, "labelExprs[0].valueExpr", id="syntax"),
        pytest.param(
            {"packageContext": {"removeKeyExprs": ["'a'", "nope"]}},
            "packageContext.removeKeyExprs[1]",
            id="remove-keys",
        ),
        pytest.param(
            {"packageContext": {"dataExprs": [{"keyExpr": "nope", "value": ""}]}},
            "packageContext.dataExprs[0].keyExpr",
            id="context",
        ),
        pytest.param({"injectors": [{"nameExpr": "nope"}]}, "injectors[0].nameExpr", id="injector"),
        pytest.param(
            {"pipeline": {"mutators": [{"image": "i", "configMapExprs": [{"key": "k", "valueExpr": "nope"}]}]}},
            "pipeline.mutators[0].configMapExprs[0].valueExpr",
            id="function-config",
        ),
    ],
)
def test_expressions_are_checked_without_targets(fields: dict[str, Any], path: str) -> None:
    (error,) = read_set(build_spec_with_template(**fields)).error_texts

    assert error.startswith(f"{TEMPLATE}.{path} is not a valid expression: ")


@pytest.mark.parametrize(
    "text", ["repoDefault", "packageDefault", "upstream.name", "target.package", "repository.name"]
)
def test_each_declared_variable_can_be_used(text: str) -> None:
    assert read_set(build_spec_with_template(downstream={"packageExpr": text})).errors == ()


def test_v1alpha1_api_is_refused() -> None:
    read = read_package_variant_set(build_variant_set({}, "v1alpha1"), ExpressionLimits())

    assert read.error_texts == ("unsupported PackageVariantSet apiVersion config.porch.kpt.dev/v1alpha1; use v1alpha2",)


@pytest.mark.parametrize(
    ("spec", "plain", "warnings"),
    [
        pytest.param(
            build_spec_with_template(labelExprs={"key": "a", "value": "b"}),
            build_spec_with_template(labelExprs=[{"key": "a", "value": "b"}]),
            [f"{TEMPLATE}.labelExprs is a mapping and is read as a list with one item"],
            id="mapping-as-a-list",
        ),
        pytest.param(
            build_spec_with_template(injectors=[{"name": "a"}], injectorExprs=[{"nameExpr": "repoDefault"}]),
            build_spec_with_template(injectors=[{"name": "a"}, {"nameExpr": "repoDefault"}]),
            [f"the items of {TEMPLATE}.injectorExprs are read as items of {TEMPLATE}.injectors"],
            id="injector-exprs",
        ),
        pytest.param(
            build_spec_with_targets({"repositorySelector": {}, "packageNames": ["a"]}),
            build_spec_with_targets({"repositorySelector": {"packageNames": ["a"]}}),
            [f"{T0}.packageNames is read as {T0}.repositorySelector.packageNames"],
            id="package-names-beside-the-selector",
        ),
    ],
)
def test_aliases_are_read_with_a_warning(spec: Any, plain: Any, warnings: list[str]) -> None:
    read, expected = read_set(spec), read_set(plain)

    assert list(read.warning_texts) == warnings
    assert read.errors == expected.errors == expected.warnings == ()
    assert read.model == expected.model


def read_spec(spec: Any) -> PackageVariantSetSpec:
    read = read_set(spec)
    assert read.model is not None, read.errors
    return read.model.spec


@pytest.mark.parametrize(
    ("target", "selection"),
    [
        pytest.param(
            {"repositories": [{"name": "a"}, {"name": "b", "packageNames": ["x", "y"]}]},
            RepositoryList((RepositoryEntry(name="a"), RepositoryEntry(name="b", package_names=("x", "y")))),
            id="repositories",
        ),
        pytest.param(
            {"repositorySelector": {"matchLabels": {"a": "b"}}},
            ObjectSelection("config.porch.kpt.dev/v1alpha1", "Repository", LabelSelector((("a", "b"),))),
            id="repository-selector-is-an-object-selector",
        ),
        pytest.param(
            {"objectSelector": {"apiVersion": "a/v1", "kind": "K", "name": "n", "packageNames": ["x"]}},
            ObjectSelection("a/v1", "K", LabelSelector(), "n", ("x",)),
            id="object-selector",
        ),
    ],
)
def test_selections_are_read(target: Any, selection: Any) -> None:
    assert read_spec(build_spec_with_targets(target)).targets[0].selection == selection


def test_several_upstreams_overlay_the_template() -> None:
    spec = read_spec(
        {
            "upstreams": [
                UPSTREAM,
                {**UPSTREAM, "package": "q", "template": {"labels": {"b": "3"}, "deletionPolicy": "orphan"}},
            ],
            "upstreamSets": ["shared"],
            "targets": [{"repositorySelector": {}, "template": {"labels": {"a": "1", "b": "2"}}}],
        }
    )
    (target,) = spec.targets

    assert [upstream_spec.package for upstream_spec in spec.upstreams] == ["p", "q"]
    assert spec.upstream_sets == ("shared",)
    merged = spec.get_template(0, 1)
    assert spec.get_template(0, 0) == target.template
    assert target.template.labels == {"a": "1", "b": "2"}
    assert merged.labels == {"a": "1", "b": "3"}
    assert (merged.deletion_policy, target.template.deletion_policy) == ("orphan", None)


def build_revision_set(*upstreams: Any) -> dict[str, Any]:
    metadata = {"name": "shared"}
    spec = {"upstreams": list(upstreams)}
    return {"apiVersion": "reconciler.dev/v1alpha1", "kind": "PackageRevisionSet", "metadata": metadata, "spec": spec}


def test_revision_set_is_read() -> None:
    data = build_revision_set(UPSTREAM, {"repo": "catalog", "package": "q", "tag": "stable"})
    revision_set = read_manifest(PackageRevisionSet, data).model

    assert revision_set is not None
    assert revision_set.spec.upstreams == (
        UpstreamSpec(repo="catalog", package="p", revision="v1"),
        UpstreamSpec(repo="catalog", package="q", tag="stable"),
    )


@pytest.mark.parametrize(
    ("data", "error"),
    [
        pytest.param(build_revision_set(), "must specify at least one item in spec.upstreams", id="empty"),
        pytest.param(
            build_revision_set({**UPSTREAM, "template": {}}),
            'unknown field "spec.upstreams[0].template"',
            id="no-template-here",
        ),
    ],
)
def test_revision_set_errors_are_reported(data: Any, error: str) -> None:
    assert [remove_allowed_fields(error) for error in read_manifest(PackageRevisionSet, data).error_texts] == [error]
