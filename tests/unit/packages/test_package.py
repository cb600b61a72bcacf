"""Tests of packages: which package owns a file, .krmignore, and which documents are resources."""

from __future__ import annotations

import pytest

from reconciler.packages.package import Package
from tests.unit.packages.builders import KPTFILE, build_tree

NESTED = {
    "Kptfile": KPTFILE,
    "a.yaml": "apiVersion: v1\nkind: A\nmetadata: {name: a}\n",
    "docs/readme.md": "text",
    "docs/x.yaml": "apiVersion: v1\nkind: X\nmetadata: {name: x}\n",
    "db/Kptfile": KPTFILE,
    "db/deep/b.yaml": "apiVersion: v1\nkind: B\nmetadata: {name: b}\n",
    "db/deep/cache/Kptfile": KPTFILE,
}


def test_subpackages_and_owners() -> None:
    package = Package(build_tree(NESTED))

    assert package.subpackages == ("db", "db/deep/cache")
    owners = {
        path: package.find_owning_package(path)
        for path in ("a.yaml", "docs/x.yaml", "db/deep/b.yaml", "db/deep/cache/Kptfile")
    }
    assert owners == {"a.yaml": "", "docs/x.yaml": "", "db/deep/b.yaml": "db", "db/deep/cache/Kptfile": "db/deep/cache"}


@pytest.mark.parametrize(
    ("ignores", "hidden"),
    [
        pytest.param({".krmignore": "*.yaml\n"}, ["a.yaml", "docs/x.yaml"], id="not-inside-subpackages"),
        pytest.param({".krmignore": "docs/\n"}, ["docs/x.yaml"], id="a-folder"),
        pytest.param({".krmignore": "db\n"}, [], id="cannot-hide-a-subpackage"),
        pytest.param({"docs/.krmignore": "x.yaml\n"}, ["docs/x.yaml"], id="in-a-folder-of-the-package"),
        pytest.param({".krmignore": "*.yaml\n", "docs/.krmignore": "!x.yaml\n"}, ["a.yaml"], id="the-inner-file-wins"),
        pytest.param({"db/.krmignore": "deep/*.yaml\n"}, ["db/deep/b.yaml"], id="of-a-subpackage"),
        pytest.param({".krmignore": "/x.yaml\n# a.yaml\n"}, [], id="anchored-and-commented"),
    ],
)
def test_krmignore(ignores: dict[str, str], hidden: list[str]) -> None:
    package = Package(build_tree({**NESTED, **ignores}))

    assert [path for path in package.files if path.endswith(".yaml") and package.is_ignored(path)] == sorted(hidden)
    assert not set(hidden) & set(package.iterate_krm_paths())
    assert set(hidden) <= package.files.keys() - set(package.iterate_krm_paths())


def test_resources_have_package_path_and_index() -> None:
    package = Package(
        build_tree({**NESTED, "db/two.yaml": "---\n# nothing\n---\na: 1\n---\nb: 2\n", "c.json": '{"kind": "C"}'})
    )

    places = [(r.package, r.path, r.index) for r in package.resources if r.path not in ("Kptfile", "a.yaml")]
    assert places == [
        ("", "c.json", 0),
        ("db", "deep/b.yaml", 0),
        ("db", "two.yaml", 0),
        ("db", "two.yaml", 1),
        ("", "docs/x.yaml", 0),
    ]


@pytest.mark.parametrize(
    ("path", "text", "line"),
    [
        pytest.param("bad.yaml", "a: 1\nb: [\n", 3, id="yaml"),
        pytest.param("bad.json", '{"a": 1,\n "b": }\n', 2, id="json"),
        pytest.param("nan.json", '{"a": NaN}', 0, id="json-constant"),
        pytest.param("half.json", '{"a": "\\ud800"}', 0, id="json-with-half-a-character"),
    ],
)
def test_invalid_file_is_a_finding(path: str, text: str, line: int) -> None:
    resources, findings = Package(build_tree({"Kptfile": KPTFILE, path: text})).parse_result

    assert [(finding.location.file, finding.code) for finding in findings] == [(path, "YamlSyntax")]
    assert line == 0 or abs(findings[0].location.line - line) <= 1
    assert [resource.path for resource in resources] == ["Kptfile"]


@pytest.mark.parametrize(
    ("text", "missing"),
    [
        pytest.param("apiVersion: v1\nkind: A\nmetadata: {name: a}\n", "", id="complete"),
        pytest.param("kind: A\nmetadata: {name: a}\n", "apiVersion", id="no-apiVersion"),
        pytest.param("apiVersion: v1\nmetadata: {name: a}\n", "kind", id="no-kind"),
        pytest.param("apiVersion: v1\nkind: A\n", "metadata.name", id="no-name"),
        pytest.param("kind: Kustomization\n", "", id="kustomization-without-apiVersion"),
        pytest.param("apiVersion: kustomize.config.k8s.io/v1beta1\n", "", id="kustomize-group"),
        pytest.param("[1, 2]\n", "apiVersion", id="a-list"),
    ],
)
def test_missing_krm_field(text: str, missing: str) -> None:
    resource = Package(build_tree({"Kptfile": KPTFILE, "a.yaml": text})).resources[1]

    assert resource.missing_krm_field == missing


@pytest.mark.parametrize(
    ("annotation", "expected"),
    [
        pytest.param('"true"', True, id="true"),
        pytest.param('"yes"', True, id="any-text"),
        pytest.param('"false"', False, id="false"),
        pytest.param('""', False, id="empty"),
    ],
)
def test_local_config(annotation: str, expected: bool) -> None:
    text = f"kind: A\nmetadata:\n  annotations:\n    config.kubernetes.io/local-config: {annotation}\n"

    assert Package(build_tree({"Kptfile": KPTFILE, "a.yaml": text})).resources[1].is_local_config is expected
