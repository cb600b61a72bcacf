"""Generators return the parameters of each Application."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.argocd.clusters import IN_CLUSTER_SERVER, SECRET_TYPE_LABEL, ArgoCluster
from reconciler.adopt.argocd.generators import GeneratorContext, GeneratorError, expand_generator, flatten
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import parse_yaml

SECRET = {SECRET_TYPE_LABEL: "cluster"}
CLUSTERS = (
    ArgoCluster("berlin", "https://berlin", {**SECRET, "region": "eu"}),
    ArgoCluster("in-cluster", IN_CLUSTER_SERVER),
    ArgoCluster("ohio", "https://ohio", {**SECRET, "region": "us"}, {"note": "x"}),
)
FILES = FileTree(
    {
        path: File(text.encode())
        for path, text in {
            "apps/web/a.yaml": "a: 1\n", "apps/db/a.yaml": "a: 1\n", "apps/db/sub/b.yaml": "a: 1\n", "apps/old/a.yaml": "",
            "apps/.hidden/a.yaml": "a: 1\n", "conf/eu/berlin.json": '{"cluster": {"name": "berlin"}, "size": 2}',
            "conf/list.yaml": "- {name: x}\n- {name: y}\n", "conf/broken.yaml": "a: [\n",
        }.items()
    }
)  # fmt: skip


MATRIX = """
matrix:
  generators:
  - clusters: {selector: {matchLabels: {region: eu}}}
  - git: {repoURL: repo, files: [{path: 'conf/{{.metadata.labels.region}}/*.json'}]}
"""
MERGE = """
merge:
  mergeKeys: [n]
  generators:
  - list: {elements: [{n: 1, v: {x: a, y: b}}, {n: 2, v: {x: a}}]}
  - list: {elements: [{n: 2, v.x: c}, {n: 3, v.x: d}]}
"""


def read_repository(url: str, revision: str) -> FileTree | str:
    return FILES if url == "repo" else "no such repository"


def expand(text: str, *, is_go_template: bool = True) -> list[dict[str, Any]]:
    context = GeneratorContext(CLUSTERS, read_repository, is_go_template)
    return expand_generator(parse_yaml(text).documents[0].data, context)


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("list: {elements: [{a: 1}, {a: 2}]}", "a", ["1", "2"]),
        ("clusters: {}", "name", ["berlin", "in-cluster", "ohio"]),
        ("clusters: {selector: {matchLabels: {region: us}}}", "server", ["https://ohio"]),
        (
            "clusters: {selector: {matchExpressions: [{key: region, operator: NotIn, values: [us]}]}}",
            "name",
            ["berlin"],
        ),
        ("clusters: {values: {zone: '{{.metadata.labels.region}}-1'}, selector: {matchLabels: {region: eu}}}",
         "values.zone", ["eu-1"]),
        ("git: {repoURL: repo, directories: [{path: apps/*}, {path: apps/old, exclude: true}]}",
         "path.path", ["apps/db", "apps/web"]),
        ("git: {repoURL: repo, files: [{path: 'conf/**/*.json'}]}", "cluster.name", ["berlin"]),
        ("git: {repoURL: repo, files: [{path: 'conf/**/berlin.json'}]}", "path.filename", ["berlin.json"]),
        ("git: {repoURL: repo, files: [{path: conf/list.yaml}]}", "name", ["x", "y"]),
        ("git: {repoURL: repo, pathParamPrefix: app, directories: [{path: apps/web}]}", "app.path.basename", ["web"]),
        ("matrix: {generators: [{list: {elements: [{a: 1}, {a: 2}]}}, {list: {elements: [{b: 'x{{.a}}'}]}}]}",
         "b", ["x1", "x2"]),
        (MATRIX, "size", ["2"]),
        (MERGE, "v.x", ["a", "c"]),
        ("{list: {elements: [{a: 1}, {a: 2}]}, selector: {matchLabels: {a: '2'}}}", "a", ["2"]),
    ],
    ids=["list", "clusters", "cluster-labels", "cluster-expressions", "cluster-values", "directories", "files",
         "file-name", "file-with-a-list", "prefix", "matrix", "matrix-of-clusters-and-files", "merge", "selector"],
)  # fmt: skip
def test_a_generator_returns_parameters(text: str, name: str, expected: list[str]) -> None:
    assert [flatten(parameters)[name] for parameters in expand(text)] == expected


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        ("clusters: {selector: {matchLabels: {region: us}}}", "metadata.annotations.note", ["x"]),
        ("git: {repoURL: repo, directories: [{path: apps/web}]}", "path", ["apps/web"]),
        ("git: {repoURL: repo, directories: [{path: apps/web}]}", "path[1]", ["web"]),
        ("git: {repoURL: repo, files: [{path: 'conf/**/*.json'}]}", "cluster.name", ["berlin"]),
        ("list: {elements: [{a: 1, values: {b: true}}]}", "values.b", ["true"]),
    ],
)
def test_parameters_without_go_templates_are_flat(text: str, name: str, expected: list[str]) -> None:
    assert [parameters[name] for parameters in expand(text, is_go_template=False)] == expected


@pytest.mark.parametrize(
    ("text", "message", "path"),
    [
        ("plugin: {configMapRef: {name: x}}", "but contains plugin; the import", ("plugin",)),
        ("scmProvider: {}", "but contains scmProvider; the import", ("scmProvider",)),
        ("list: {elementsYaml: '{{ x }}'}", "does not evaluate elementsYaml", ("list", "elementsYaml")),
        ("clusters: {flatList: true}", "does not support flatList", ("clusters", "flatList")),
        ("git: {repoURL: other, files: []}", "other cannot be read: no such repository", ("git", "repoURL")),
        ("git: {repoURL: repo, files: [{path: conf/broken.yaml}]}", "conf/broken.yaml cannot be parsed", ("git", "files")),
        ("matrix: {generators: [{list: {}}]}", "a matrix must have two generators", ("matrix", "generators")),
        ("merge: {generators: [{list: {}}, {list: {}}]}", "a merge must have mergeKeys", ("merge",)),
        ("clusters: {selector: {matchExpressions: [{key: a, operator: Gt}]}}", "unknown operator 'Gt'", ()),
        ("matrix: {generators: [{list: {elements: [{a: 1}]}}, {git: {repoURL: '{{ printf .a }}'}}]}",
         "contains unsupported template code", ("git",)),
    ],
)  # fmt: skip
def test_a_generator_that_cannot_be_imported(text: str, message: str, path: tuple[str, ...]) -> None:
    with pytest.raises(GeneratorError, match=message) as refused:
        expand(text)

    assert refused.value.path == path


def test_a_matrix_has_a_limit() -> None:
    elements = ", ".join("{a: 1}" for _ in range(300))
    generator = f"{{list: {{elements: [{elements}]}}}}"

    with pytest.raises(GeneratorError, match="more than 50,000 combinations"):
        expand(f"matrix: {{generators: [{generator}, {generator}]}}")
