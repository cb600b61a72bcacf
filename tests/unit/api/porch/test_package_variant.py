"""Tests of the PackageVariant model: all errors are reported together, in the order and with the texts of Porch."""

from __future__ import annotations

import pickle
from typing import Any, get_args

import pytest

from reconciler.api.base import ReadResult
from reconciler.api.kpt import UpdateStrategy
from reconciler.api.manifest import read_manifest
from reconciler.api.porch.package_variant import PackageVariant, PackageVariantSpec
from reconciler.api.porch.upstream import (
    BranchHeadReference,
    RevisionReference,
    TagReference,
    UpstreamReference,
    WorkspaceReference,
)
from reconciler.krm.field_text import describe_choice

UPDATE_STRATEGIES = get_args(UpdateStrategy)

UPSTREAM = {"repo": "catalog", "package": "net/uplink", "revision": "v2"}
DOWNSTREAM = {"repo": "edge-1", "package": "uplink"}
ONE_OF = "spec.upstream must specify one of revision, workspaceName or tag"
ONLY_ONE_OF = "spec.upstream must specify only one of revision, workspaceName and tag"
REMOVE_KEYS = "spec.packageContext.removeKeys"
ADOPTION = 'spec.adoptionPolicy field can only be "adoptNone" or "adoptExisting"'
DELETION = 'spec.deletionPolicy can only be "orphan" or "delete"'


def read_variant(spec: Any, **mapping: Any) -> ReadResult[PackageVariant]:
    return read_manifest(PackageVariant, build_variant(spec, **mapping))


def read_spec(spec: Any) -> PackageVariantSpec:
    read = read_variant(spec)
    assert read.model is not None, read.errors
    return read.model.spec


def build_variant(spec: Any, **mapping: Any) -> dict[str, Any]:
    return {
        "apiVersion": "config.porch.kpt.dev/v1alpha1",
        "kind": "PackageVariant",
        "metadata": {"name": "uplink-1"},
        "spec": spec,
        **mapping,
    }


def build_valid_spec(**changes: Any) -> dict[str, Any]:
    return {"upstream": UPSTREAM, "downstream": DOWNSTREAM, **changes}


def build_spec_with_upstream(**changes: Any) -> dict[str, Any]:
    fields = {"repo": "catalog", "package": "net/uplink", **changes}
    return build_valid_spec(upstream={name: value for name, value in fields.items() if value is not None})


def build_spec_with_function(**fields: Any) -> dict[str, Any]:
    return build_valid_spec(pipeline={"mutators": [fields]})


def remove_allowed_fields(error: str) -> str:
    """Return an error without the list of allowed fields."""
    return error.partition(" (allowed: ")[0]


@pytest.mark.parametrize(
    ("spec", "errors"),
    [
        pytest.param(
            {}, ["missing required field spec.upstream", "missing required field spec.downstream"], id="empty"
        ),
        pytest.param(
            None, ["missing required field spec.upstream", "missing required field spec.downstream"], id="no-spec"
        ),
        pytest.param(
            [],
            ["spec must be a mapping, but is []"],
            id="spec-is-a-list",
        ),
        pytest.param(
            {"upstream": {"repo": "a", "revision": 1}, "downstream": {"repo": "b"}},
            ["missing required field spec.upstream.package", "missing required field spec.downstream.package"],
            id="package-names-missing",
        ),
        pytest.param(
            {"upstream": {"package": "p"}, "downstream": {"repo": "", "package": "q"}},
            ["missing required field spec.upstream.repo", ONE_OF, "missing required field spec.downstream.repo"],
            id="repositories-missing",
        ),
        pytest.param(
            build_valid_spec(adoptionPolicy="always", deletionPolicy="keep"), [ADOPTION, DELETION], id="policies"
        ),
        pytest.param(build_valid_spec(adoptionPolicy="", deletionPolicy=""), [], id="empty-policies-are-the-defaults"),
        pytest.param(build_valid_spec(adoptionPolicy=["adoptNone"]), [ADOPTION], id="policy-of-a-wrong-type"),
        pytest.param(
            build_valid_spec(packageContext={"data": {"name": "x", "a": "b"}, "removeKeys": ["package-path"]}),
            [
                'spec.packageContext.data: Invalid value: {"a":"b","name":"x"}: must not contain the key "name"',
                f'{REMOVE_KEYS}: Invalid value: ["package-path"]: must not contain the key "package-path"',
            ],
            id="reserved-keys",
        ),
        pytest.param(
            build_valid_spec(packageContext={"data": {"package-path": ""}, "removeKeys": ["name"]}),
            [
                'spec.packageContext.data: Invalid value: {"package-path":""}: must not contain the key "package-path"',
                'spec.packageContext.removeKeys: Invalid value: ["name"]: must not contain the key "name"',
            ],
            id="the-other-reserved-keys",
        ),
        pytest.param(
            build_valid_spec(packageContext={"data": {"k": "v"}, "removeKeys": ["k"]}),
            ['spec.packageContext: key "k" is in both data and removeKeys'],
            id="key-both-set-and-removed",
        ),
        pytest.param(
            build_valid_spec(packageContext={"data": {"k": 5}}),
            ["spec.packageContext.data.k must be a string, but is 5; put the value in quotes"],
            id="context-value-is-a-number",
        ),
        pytest.param(
            build_valid_spec(injectors=[{"name": "a"}, {"kind": "Site", "name": ""}]),
            ["spec.injectors[1].name must not be empty"],
            id="injector-without-name",
        ),
        pytest.param(
            build_valid_spec(labels={"kpt.dev/latest-revision": "true"}),
            ['spec.labels must not contain the key "kpt.dev/latest-revision"'],
            id="computed-label",
        ),
        pytest.param(
            build_valid_spec(downstream={"repo": "catalog", "package": "net/uplink"}),
            ["spec.downstream must differ from spec.upstream"],
            id="onto-itself",
        ),
        pytest.param(build_valid_spec(injector=[]), ['unknown field "spec.injector"'], id="unknown-field"),
        pytest.param(
            build_valid_spec(upstream={**UPSTREAM, "branch": "x"}, adoptionPolicy="no"),
            [ADOPTION, 'unknown field "spec.upstream.branch"'],
            id="unknown-fields-come-last",
        ),
        pytest.param(
            build_spec_with_function(name="x"), ["spec.pipeline.mutators[0].image must not be empty"], id="no-image"
        ),
        pytest.param(build_spec_with_function(exec="./fn"), [], id="exec-instead-of-an-image"),
        pytest.param(
            build_spec_with_function(image="i", exec="./fn"),
            ["spec.pipeline.mutators[0] may specify only one of image and exec"],
            id="image-and-exec",
        ),
        pytest.param(
            build_spec_with_function(image="i", name="a.b"),
            ["spec.pipeline.mutators[0].name must not contain '.'"],
            id="function-name-with-a-dot",
        ),
        pytest.param(
            build_spec_with_function(image="i", configPath="f.yaml", configMap={"a": "b"}),
            ["spec.pipeline.mutators[0] may specify only one of configPath and configMap"],
            id="two-configurations",
        ),
        pytest.param(
            build_valid_spec(pipeline={"validators": [{"image": ""}]}),
            ["spec.pipeline.validators[0].image must not be empty"],
            id="validators-too",
        ),
        pytest.param(
            build_spec_with_function(image="i", selectors=[{"kind": "A", "names": "x"}]),
            ['unknown field "spec.pipeline.mutators[0].selectors[0].names"'],
            id="unknown-field-in-a-selector",
        ),
        pytest.param(
            build_valid_spec(updateStrategy="merge", conflictPolicy="ours"),
            [
                f'spec.updateStrategy must be {describe_choice(UPDATE_STRATEGIES)}, but is "merge"; did you mean "copy-merge"?',
                'spec.conflictPolicy must be one of "upstream", "local", "block", but is "ours"',
            ],
            id="unknown-strategies",
        ),
        pytest.param(build_spec_with_upstream(revision="v1", workspaceName="main"), [ONLY_ONE_OF], id="two-references"),
        pytest.param(build_spec_with_upstream(), [ONE_OF], id="no-reference"),
        pytest.param(
            build_spec_with_upstream(tag="a", ref="b"),
            ["spec.upstream may specify only one of `tag` and `ref`"],
            id="a-tag-and-its-alias",
        ),
        pytest.param(
            build_spec_with_upstream(revision=0), ["spec.upstream.revision must not be 0 or empty"], id="revision-zero"
        ),
        pytest.param(
            build_spec_with_upstream(revision=""),
            ["spec.upstream.revision must not be 0 or empty"],
            id="revision-empty",
        ),
        pytest.param(
            build_spec_with_upstream(revision=1.4),
            ["spec.upstream.revision must be a string or an integer, but is 1.4; put the value in quotes"],
            id="revision-is-a-float",
        ),
        pytest.param(
            build_spec_with_upstream(revision=True),
            ["spec.upstream.revision must be a string or an integer, but is true; put the value in quotes"],
            id="revision-is-a-boolean",
        ),
        pytest.param(
            build_spec_with_upstream(version=1.4),
            ['spec.upstream.version: must be a string; quote it: "1.4"'],
            id="version-is-a-float",
        ),
        pytest.param(
            build_spec_with_upstream(version="1.4", digest="sha256:abc"),
            ['spec.upstream.digest must be "sha256:" and 64 lowercase hexadecimal digits, but is "sha256:abc"'],
            id="digest-is-too-short",
        ),
        pytest.param(
            build_spec_with_upstream(chart="web", version="1.4"),
            ["spec.upstream must specify only one of package and chart"],
            id="package-and-chart",
        ),
        pytest.param(
            build_spec_with_upstream(version="1.4", revision="v1"),
            ["spec.upstream must specify only one of revision, workspaceName, tag and version"],
            id="version-beside-a-revision",
        ),
        pytest.param(
            build_spec_with_upstream(tag="stable", tagMode="push", tagPolicy={"settle": "soon", "x": 1}),
            [
                'spec.upstream.tagMode must be "follow" or "rewrite", but is "push"',
                'spec.upstream.tagPolicy.settle must be a duration such as "10m" or "1h30m", but is "soon"',
                'unknown field "spec.upstream.tagPolicy.x"',
            ],
            id="tag-mode-and-settle",
        ),
        pytest.param(
            build_spec_with_upstream(tag="stable", tagPolicy={"settle": 10}),
            ["spec.upstream.tagPolicy.settle must be a string, but is 10; put the value in quotes"],
            id="settle-is-a-number",
        ),
        pytest.param(
            build_spec_with_upstream(revision="v1", tag="stable"),
            ["spec.upstream must specify only one of revision, workspaceName and tag"],
            id="a-tag-that-is-followed-beside-a-revision",
        ),
        pytest.param(
            build_spec_with_upstream(workspaceName="w", tag="stable", tagMode="rewrite"),
            ["spec.upstream must specify only one of revision, workspaceName and tag"],
            id="a-tag-that-is-rewritten-beside-a-workspace",
        ),
        pytest.param(
            build_spec_with_upstream(revision="v1", tagMode="rewrite"),
            ['spec.upstream.tagMode "rewrite" requires spec.upstream.tag or spec.upstream.version'],
            id="rewrite-without-a-tag",
        ),
        pytest.param(
            build_spec_with_upstream(version="1.0.0", tagPolicy={"range": "1.x"}),
            ["spec.upstream.tagPolicy.range requires spec.upstream.tagMode rewrite"],
            id="followed-range-without-rewrite",
        ),
        pytest.param(
            build_spec_with_upstream(tag="stable", tagMode="rewrite", tagPolicy={"range": "1.x"}),
            ["spec.upstream.tagPolicy.range requires spec.upstream.version"],
            id="followed-range-of-a-tag",
        ),
        pytest.param(
            build_spec_with_upstream(version="1.x", tagMode="rewrite", digest=f"sha256:{'a' * 64}"),
            ['spec.upstream.digest must be removed, because tagMode "rewrite" changes spec.upstream.version'],
            id="digest-of-a-rewritten-version",
        ),
    ],
)
def test_errors_are_reported(spec: Any, errors: list[str]) -> None:
    read = read_variant(spec)

    assert [remove_allowed_fields(error) for error in read.error_texts] == errors
    assert (read.model is None) == bool(errors)


@pytest.mark.parametrize(
    ("spec", "start"),
    [
        pytest.param(
            build_spec_with_upstream(workspaceName="a b"), "spec.upstream.workspaceName is invalid: ", id="workspace"
        ),
        pytest.param(build_spec_with_upstream(revision="a..b"), "spec.upstream.revision is invalid: ", id="revision"),
        pytest.param(build_spec_with_upstream(tag="-x"), "spec.upstream.tag is invalid: ", id="tag"),
        pytest.param(
            build_valid_spec(upstream={**UPSTREAM, "package": "/a"}),
            "spec.upstream.package is not a valid package path: ",
            id="upstream-path",
        ),
        pytest.param(
            build_valid_spec(downstream={"repo": "e", "package": "../a"}),
            "spec.downstream.package is not a valid package path: ",
            id="downstream-path",
        ),
        pytest.param(build_valid_spec(labels={"a b": "c"}), "spec.labels: ", id="label-key"),
        pytest.param(build_valid_spec(labels={"a": "c d"}), "spec.labels: ", id="label-value"),
        pytest.param(build_valid_spec(annotations={"a b": "c"}), "spec.annotations: ", id="annotation-key"),
    ],
)
def test_errors_with_a_reason_are_reported(spec: Any, start: str) -> None:
    (error,) = read_variant(spec).error_texts

    assert error.startswith(start)


@pytest.mark.parametrize(
    ("mapping", "error"),
    [
        pytest.param(
            {"apiVersion": "config.porch.kpt.dev/v1"},
            "unsupported PackageVariant apiVersion config.porch.kpt.dev/v1; use v1alpha1",
            id="another-version",
        ),
        pytest.param(
            {"sepc": {}},
            'unknown field "sepc" (allowed: apiVersion, kind, metadata, spec, status; did you mean "spec"?)',
            id="unknown-field-beside-spec",
        ),
    ],
)
def test_errors_outside_the_spec_are_reported(mapping: dict[str, Any], error: str) -> None:
    assert read_variant(build_valid_spec(), **mapping).error_texts == (error,)


def test_invalid_object_name_is_refused() -> None:
    (error,) = read_variant(build_valid_spec(), metadata={"name": "../up"}).error_texts

    assert error.startswith("metadata.name is invalid: ")


@pytest.mark.parametrize(
    ("written", "expected"),
    [
        pytest.param({"revision": "v4"}, RevisionReference("v4", 4), id="v-number"),
        pytest.param({"revision": "4"}, RevisionReference("v4", 4), id="digits"),
        pytest.param({"revision": 4}, RevisionReference("v4", 4), id="integer"),
        pytest.param({"revision": "v2.0.0"}, RevisionReference("v2.0.0", -1), id="suffix"),
        pytest.param({"revision": "1.4"}, RevisionReference("1.4", -1), id="quoted-decimal"),
        pytest.param({"revision": "v007"}, RevisionReference("v007", -1), id="leading-zeros-are-another-tag"),
        pytest.param({"revision": -1}, BranchHeadReference(), id="minus-one"),
        pytest.param({"revision": "-1"}, BranchHeadReference(), id="quoted-minus-one"),
        pytest.param({"revision": "release/1"}, RevisionReference("release/1", -1), id="maybe-a-branch"),
        pytest.param({"workspaceName": "v3.0.0-rc.1"}, WorkspaceReference("v3.0.0-rc.1"), id="workspace"),
        pytest.param({"tag": "stable"}, TagReference("stable"), id="floating-tag"),
        pytest.param({"tag": "latest"}, TagReference("latest"), id="latest"),
        pytest.param({"ref": "stable"}, TagReference("stable"), id="ref-is-an-alias-of-tag"),
    ],
)
def test_references_are_read(written: dict[str, Any], expected: UpstreamReference) -> None:
    spec = read_spec(build_spec_with_upstream(**written))

    assert spec.upstream.reference == expected
    assert read_spec(spec.as_data()) == spec


@pytest.mark.parametrize(
    ("spec", "warning", "same_as"),
    [
        pytest.param(
            build_valid_spec(adoptionPolicy="adopt"),
            'spec.adoptionPolicy "adopt" is read as "adoptExisting"',
            build_valid_spec(adoptionPolicy="adoptExisting"),
            id="adopt",
        ),
        pytest.param(
            build_valid_spec(injectors={"name": "x"}),
            "spec.injectors is a mapping and is read as a list with one item",
            build_valid_spec(injectors=[{"name": "x"}]),
            id="injectors-as-a-mapping",
        ),
        pytest.param(
            build_spec_with_upstream(ref="beta"),
            "spec.upstream.ref is read as spec.upstream.tag",
            build_spec_with_upstream(tag="beta"),
            id="ref",
        ),
    ],
)
def test_aliases_are_read_with_a_warning(spec: Any, warning: str, same_as: Any) -> None:
    read, plain = read_variant(spec), read_variant(same_as)

    assert read.warning_texts == (warning,)
    assert (read.model, read.errors) == (plain.model, ())
    assert plain.warnings == ()


EVERYTHING = build_valid_spec(
    upstream={"repo": "catalog", "package": "p", "tag": "stable", "tagMode": "follow", "tagPolicy": {"settle": "10m"}},
    adoptionPolicy="adoptExisting",
    deletionPolicy="orphan",
    labels={"a": "b"},
    annotations={"approval.nephio.org/policy": "initial"},
    packageContext={"data": {"k": "v"}, "removeKeys": ["z", "y"]},
    pipeline={
        "mutators": [{"image": "i:v1", "name": "n", "configMap": {"k": "v"}, "selectors": [{"kind": "A"}]}],
        "validators": [{"exec": "./check", "exclude": [{"labels": {"a": "b"}}]}],
    },
    injectors=[{"group": "", "name": "x"}, {"kind": "Site", "version": "v1", "name": "y"}],
    updateStrategy="copy-merge",
    conflictPolicy="block",
)


REWRITE = {"repo": "catalog", "package": "p", "tag": "stable", "tagMode": "rewrite", "tagPolicy": {"settle": "1h"}}


@pytest.mark.parametrize(
    "spec",
    [
        pytest.param(build_valid_spec(), id="least"),
        pytest.param(EVERYTHING, id="everything"),
        pytest.param(build_valid_spec(upstream=REWRITE), id="a-tag-that-waits-for-its-first-revision"),
        pytest.param(build_valid_spec(upstream={**REWRITE, "revision": "v3"}), id="a-tag-beside-its-revision"),
        pytest.param(
            build_valid_spec(
                upstream={
                    "repo": "charts",
                    "package": "p",
                    "version": "1.0.0",
                    "tagMode": "rewrite",
                    "tagPolicy": {"range": "1.x", "settle": "1h"},
                }
            ),
            id="a-version-with-its-range",
        ),
    ],
)
def test_serialized_spec_is_read_as_the_same_spec(spec: Any) -> None:
    model = read_spec(spec)
    again = read_spec(model.as_data())

    assert again == model
    assert again.as_data() == model.as_data()
    assert pickle.loads(pickle.dumps(model)) == model


def test_empty_group_is_the_core_group_and_absent_group_is_any() -> None:
    core, any_group = read_spec(EVERYTHING).injectors

    assert core.admits("", "v1", "ConfigMap")
    assert not core.admits("acme.example", "v1", "ConfigMap")
    assert any_group.admits("acme.example", "v1", "Site")
    assert not any_group.admits("acme.example", "v2", "Site")
