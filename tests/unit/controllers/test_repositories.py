"""Tests of the Repository reader: defaults, and errors with their lines."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest

from reconciler.catalog.catalog import read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.repositories import (
    Repositories,
    Repository,
    explain_missing_repository,
    format_kptfile_url,
    read_repositories,
)
from reconciler.krm.findings import Finding
from reconciler.krm.names import validate_ref_name
from reconciler.krm.objects import ObjectKey
from reconciler.krm.yaml import emit

URL = "https://git.example/fleet"


def read(*specs: Any, version: str = "v1alpha1", **metadata: Any) -> tuple[Repositories, tuple[Finding, ...]]:
    files = {}
    for index, spec in enumerate(specs):
        named = {"name": f"r{index}", **metadata}
        data = {
            "apiVersion": f"config.porch.kpt.dev/{version}", "kind": "Repository", "metadata": named, "spec": spec
        }  # fmt: skip
        files[f"{index}.yaml"] = File(emit(data).encode())
    return read_repositories(read_catalog(FileTree(files)))


def read_only_repository(spec: Any, **metadata: Any) -> Repository:
    repositories, findings = read(spec, **metadata)
    assert findings == ()
    (repository,) = repositories.values()
    return repository


@pytest.mark.parametrize(
    ("git", "deployment", "branch", "directory", "tag_prefix"),
    [
        pytest.param({}, False, "main", "", "", id="a-catalog"),
        pytest.param({}, True, "clusters/r0", "", "r0/", id="a-cluster"),
        pytest.param({"branch": "prod"}, True, "prod", "", "r0/", id="a-branch"),
        pytest.param({"branch": ""}, True, "clusters/r0", "", "r0/", id="an-empty-branch-is-none"),
        pytest.param({"directory": "/a/b/"}, False, "main", "a/b", "", id="slashes-around-a-directory-are-ignored"),
        pytest.param({"directory": "/"}, False, "main", "", "", id="the-root"),
        pytest.param({"tagPrefix": "rel/"}, True, "clusters/r0", "", "rel/", id="a-prefix"),
        pytest.param({"tagPrefix": ""}, True, "clusters/r0", "", "", id="an-empty-prefix-is-kept"),
        pytest.param({"branch": None, "tagPrefix": None}, False, "main", "", "", id="nothing-is-written"),
        pytest.param({"secretRef": {"name": "s"}}, False, "main", "", "", id="unknown-fields-are-left-alone"),
    ],
)
def test_defaults_are_set(git: dict[str, Any], deployment: bool, branch: str, directory: str, tag_prefix: str) -> None:
    repository = read_only_repository({"type": "git", "deployment": deployment, "git": {"repo": URL, **git}})

    assert (repository.url, repository.deployment) == (URL, deployment)
    assert (repository.branch, repository.directory, repository.tag_prefix) == (branch, directory, tag_prefix)


def test_metadata_is_read() -> None:
    repository = read_only_repository(
        {"git": {"repo": URL}}, namespace="edge", labels={"a": "b", "n": 1}, annotations={"c": "d"}
    )

    assert repository.key == ObjectKey("config.porch.kpt.dev", "Repository", "edge", "r0")
    assert (repository.labels, repository.annotations) == ({"a": "b"}, {"c": "d"})
    assert (repository.location.file, repository.location.line) == ("0.yaml", 1)


@pytest.mark.parametrize(
    ("spec", "line", "code", "message"),
    [
        pytest.param(
            {"git": {}},
            6,
            "RepositoryInvalid",
            "spec.git.repo is required and must be the URL of a Git repository",
            id="no-url",
        ),
        pytest.param({"git": "x"}, 6, "RepositoryInvalid", 'spec.git must be a mapping, but is "x"', id="no-git"),
        pytest.param("x", 5, "RepositoryInvalid", 'spec must be a mapping, but is "x"', id="no-spec"),
        pytest.param(
            {"git": {"repo": 1}},
            7,
            "RepositoryInvalid",
            "spec.git.repo must be a string, but is 1; put the value in quotes",
            id="url-of-a-type",
        ),
        pytest.param(
            {"git": {"repo": URL, "branch": 1.1}},
            8,
            "RepositoryInvalid",
            "spec.git.branch must be a string, but is 1.1; put the value in quotes",
            id="branch-like-a-number",
        ),
        pytest.param(
            {"git": {"repo": URL, "tagPrefix": ["v"]}},
            8,
            "RepositoryInvalid",
            "spec.git.tagPrefix must be a string, but is a list",
            id="prefix-of-a-type",
        ),
        pytest.param(
            {"git": {"repo": URL, "branch": "a..b"}},
            8,
            "NameNotUsable",
            f"spec.git.branch is invalid: {validate_ref_name('a..b')}",
            id="branch-that-git-refuses",
        ),
        pytest.param(
            {"git": {"repo": URL, "tagPrefix": "a//"}},
            8,
            "NameNotUsable",
            f'spec.git.tagPrefix "a//" is invalid: {validate_ref_name("a//x")}',
            id="prefix-that-git-refuses",
        ),
        pytest.param(
            {"git": {"repo": URL, "directory": "a/../.."}},
            8,
            "RepositoryInvalid",
            'spec.git.directory must not contain "..", but is "a/../.."',
            id="a-way-out",
        ),
        pytest.param(
            {"type": "oci", "git": {"repo": URL}},
            7,
            "RepositoryInvalid",
            'spec.git is not allowed, because spec.type is "oci"; use spec.oci',
            id="block-of-another-type",
        ),
        pytest.param(
            {"type": "svn", "git": {"repo": URL}},
            6,
            "RepositoryInvalid",
            'spec.type must be one of "git", "helm", "oci", but is "svn"',
            id="type",
        ),
        pytest.param(
            {"type": "oci", "oci": {"registry": "https://registry.example.com/a"}},
            8,
            "RepositoryInvalid",
            'spec.oci.registry must have the form host[:port]/path, but is "https://registry.example.com/a"',
            id="scheme-of-a-registry",
        ),
        pytest.param(
            {"type": "helm", "helm": {"url": "ftp://charts.example.com"}},
            8,
            "RepositoryInvalid",
            'spec.helm.url must be an http:// or https:// URL of a folder with index.yaml, or an oci:// URL of a registry, but is "ftp://charts.example.com"',
            id="scheme-of-a-chart-repository",
        ),
        pytest.param(
            {"type": "oci", "oci": {"registry": "registry.example.com/a", "layerSelector": {"operation": "copy"}}},
            10,
            "RepositoryInvalid",
            'spec.oci.layerSelector.operation must be "extract", but is "copy"',
            id="operation-of-a-layer",
        ),
        pytest.param(
            {"type": "oci", "oci": {"registry": "registry.example.com/a", "repo": "x"}},
            9,
            "RepositoryInvalid",
            "spec.oci.repo is an unknown field; allowed fields: insecure, verify, secretRef, certSecretRef, registry, layerSelector,"
            " ignore",
            id="unknown-field-of-a-registry",
        ),
        pytest.param(
            {"type": "helm", "helm": {"url": "https://charts.example.com", "repo": "x"}},
            9,
            "RepositoryInvalid",
            "spec.helm.repo is an unknown field; allowed fields: insecure, verify, secretRef, certSecretRef, url, passCredentials",
            id="unknown-field-of-a-chart-repository",
        ),
        pytest.param(
            {"type": "helm", "deployment": True, "helm": {"url": "https://charts.example.com"}},
            7,
            "RepositoryInvalid",
            "spec.deployment can be true only if spec.type is git",
            id="deployment-in-a-chart-repository",
        ),
        pytest.param({"type": "helm"}, 5, "RepositoryInvalid", "spec.helm must be set", id="no-block-of-the-type"),
        pytest.param(
            {"type": "helm", "helm": {"url": "https://user:hunter2@charts.example.com"}},
            8,
            "CredentialInUrl",
            'spec.helm.url must not contain a user name, password or token. Write "https://charts.example.com"; put the'
            " credentials into a file, and refer to the file in the setting `sources.credentials_file`",
            id="password-in-the-url-of-a-chart-repository",
        ),
        pytest.param(
            {"deployment": "yes", "git": {"repo": URL}},
            6,
            "RepositoryInvalid",
            'spec.deployment must be true or false, but is "yes"',
            id="deployment",
        ),
    ],
)
def test_errors_are_reported(spec: Any, line: int, code: str, message: str) -> None:
    repositories, (finding,) = read(spec)

    assert repositories == {}
    assert (finding.code, finding.message) == (code, message)
    assert (finding.location.file, finding.location.line) == ("0.yaml", line)


@pytest.mark.parametrize(
    "block", [{"registry": "registry.example.com/a"}, {"url": "oci://registry.example.com/a"}], ids=["porch", "flux"]
)
def test_registry_has_the_fields_of_porch_or_flux(block: dict[str, Any]) -> None:
    assert read_only_repository({"type": "oci", "oci": block}).url == "oci://registry.example.com/a"


def test_other_api_version_is_refused() -> None:
    _, (finding,) = read({"git": {"repo": URL}}, version="v1alpha2")

    assert finding.message == (
        'apiVersion must be "config.porch.kpt.dev/v1alpha1", but is "config.porch.kpt.dev/v1alpha2"'
    )
    assert finding.location.pointer == "/apiVersion"


def test_all_errors_are_reported_and_valid_repositories_are_read() -> None:
    repositories, findings = read(
        {"type": "svn", "deployment": 1.5, "git": {"branch": 1}}, {"git": {"repo": URL}}, {"git": {}}
    )

    assert [finding.location.pointer for finding in findings] == [
        "/spec/type", "/spec/deployment", "/spec/git/repo", "/spec/git/branch", "/spec/git/repo",
    ]  # fmt: skip
    assert set(repositories) == {("default", "r1")}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("https://git.example/a", "https://git.example/a.git", id="gets-its-ending"),
        pytest.param("https://git.example/a.git", "https://git.example/a.git", id="has-it"),
        pytest.param("https://git.example/a/", "https://git.example/a.git", id="slash-at-the-end"),
        pytest.param("https://me:secret@git.example/a", "https://git.example/a.git", id="credentials"),
        pytest.param("https://token@git.example/a", "https://git.example/a.git", id="a-token"),
        pytest.param("git@git.example:a/b", "git@git.example:a/b.git", id="the-user-of-ssh-is-an-address"),
        pytest.param("../catalog", "../catalog.git", id="a-path"),
        pytest.param("https://git.example/a@b", "https://git.example/a@b.git", id="at-in-a-path"),
    ],
)
def test_url_is_formatted_for_a_kptfile(text: str, expected: str) -> None:
    assert format_kptfile_url(text) == expected


@pytest.mark.parametrize(
    ("values", "hint"),
    [
        pytest.param([], "", id="there-are-none"),
        pytest.param(
            [("edge", "b"), ("edge", "a"), ("far", "c")],
            '; existing Repositories: "a", "b"',
            id="those-of-the-namespace",
        ),
        pytest.param(
            [("far", "x"), ("edge", "a"), ("away", "x")],
            '; a Repository with this name exists in other namespaces: "away", "far"',
            id="elsewhere",
        ),
        pytest.param([("edge", str(n)) for n in range(9)], "", id="too-many-to-be-of-help"),
    ],
)
def test_missing_repository_is_reported_with_a_hint(values: Sequence[tuple[str, str]], hint: str) -> None:
    repository = read_only_repository({"git": {"repo": URL}})

    result = explain_missing_repository(dict.fromkeys(values, repository), "edge", "x")

    assert result == f'could not find Repository "x" in namespace "edge"{hint}'
