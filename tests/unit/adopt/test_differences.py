"""Different leaves of two documents, and the comparison of packages."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.comparison import compare_packages
from reconciler.adopt.differences import find_differences
from reconciler.catalog.files import File, FileTree
from reconciler.krm.json_pointer import format_pointer


@pytest.mark.parametrize(
    ("first", "second", "expected"),
    [
        ({"a": 1, "b": {"c": 2}}, {"b": {"c": 2}, "a": 1}, []),
        ({"a": {"b": 1}}, {"a": {"b": 2}}, ["/a/b"]),
        ({"a": {"b": 1}}, {}, ["/a"]),
        ({}, {"a": None}, ["/a"]),
        ({"a": [{"b": 1}, 2]}, {"a": [{"b": 3}, 2]}, ["/a/0/b"]),
        ({"a": [1, 2]}, {"a": [1]}, ["/a"]),
        ({"a": [1]}, {"a": [1.0, 2]}, ["/a"]),
        ({"a": [True]}, {"a": [1, 2]}, ["/a"]),
        ({"a": [{}]}, {"a": [{}, {}]}, ["/a"]),
        ({"a": {}}, {"a": []}, ["/a"]),
        ({"a": []}, {"a": {"b": 1}}, ["/a"]),
        ({"a": {}}, {"a": ""}, ["/a"]),
        ({"a": 1}, {"a": True}, ["/a"]),
        ({"a": [0]}, {"a": [False]}, ["/a/0"]),
        ({"a": 1}, {"a": 1.0}, []),
        ({"a": "1"}, {"a": 1}, ["/a"]),
        ({"a/b": 1}, {"a/b": 2}, ["/a~1b"]),
    ],
)
def test_leaves_that_differ(first: Any, second: Any, expected: list[str]) -> None:
    assert [format_pointer(path) for path in find_differences(first, second)] == expected


def package(*documents: str) -> FileTree:
    return FileTree({f"{n}.yaml": File(text.encode()) for n, text in enumerate(documents)})


def config_map(text: str, name: str = "web") -> str:
    return f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}}}\n{text}\n"


def as_list(text: str) -> str:
    item = config_map(text).replace("\n", "\n  ").rstrip()
    return f"apiVersion: v1\nkind: List\nitems:\n- {item}\n"


TRACKED = config_map("").replace("name: web", "name: web, annotations: {argocd.argoproj.io/tracking-id: x}")
LOCAL = (
    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c, annotations: {config.kubernetes.io/local-config: 'true'}}\n"
)


@pytest.mark.parametrize(
    ("expected", "rendered", "differences"),
    [
        ([config_map("data: {a: b}")], [config_map("# other\ndata:\n  a: 'b'")], []),
        ([config_map("data: {a: b}")], [config_map("data: {a: c}")], ["ConfigMap/web /data/a"]),
        ([config_map("status: {a: b}")], [config_map("")], []),
        ([config_map("")], [], ["ConfigMap/web is missing in the render"]),
        ([], [config_map("")], ["ConfigMap/web is only in the render"]),
        ([config_map("")], [LOCAL, config_map("")], []),
        ([], [LOCAL], "neither the expected content nor the render contains a resource"),
        ([as_list("data: {a: b}")], [config_map("data: {a: b}")], []),
        ([as_list("data: {a: b}")], [as_list("data: {a: c}")], ["ConfigMap/web /data/a"]),
        ([as_list("data: {a: b}"), config_map("")], [], "the expected content cannot be compared: ConfigMap/web occurs twice"),
        ([config_map(""), config_map("").replace("name: web", "name: web, namespace: shop")], [],
         "the expected content cannot be compared: ConfigMap/shop/web occurs twice, the second time in 1.yaml"),
        (["kind: A\nx: 1\n---\nkind: A\nx: 1\n"], ["x: 1\nkind: A\n---\nkind: A\nx: 1\n"], []),
        (["kind: A\nx: 1\n"], ["kind: A\nx: 2\n"],
         ["a document without a name in 0.yaml is missing in the render",
          "a document without a name in 0.yaml is only in the render"]),
        ([config_map("data: {x: b, y: {z: 1}}")], [config_map("data: {x: c, y: {z: 2}}")], ["ConfigMap/web /data/x"]),
        ([TRACKED], [config_map("")], []),
        ([config_map("")], [config_map("").replace("name: web", "name: web, namespace: shop")], []),
        ([config_map("").replace("name: web", "name: web, namespace: db")], [config_map("")],
         ["ConfigMap/web is only in the render", "ConfigMap/db/web is missing in the render"]),
        ([config_map("data: [")], [], "the expected content cannot be read: 0.yaml: the file cannot be parsed"),
        ([config_map(""), config_map("")], [], "the resource ConfigMap/web is also in 0.yaml"),
    ],
    ids=["comments", "field", "status", "missing", "added", "local-config", "no-resource", "list",
         "different-list", "repeated-in-a-list", "repeated-with-the-default-namespace", "equal-documents-without-a-name",
         "different-documents-without-a-name", "ignored-pointer", "tracking-id",
         "default-namespace", "other-namespace", "invalid", "repeated"],
)  # fmt: skip
def test_packages_are_compared_by_resource_and_field(
    expected: list[str], rendered: list[str], differences: list[str] | str
) -> None:
    actual = compare_packages(package(*expected), package(*rendered), [("data", "*", "z")], "shop")

    if isinstance(differences, str):
        assert isinstance(actual, str)
        assert differences in actual
    else:
        assert actual == differences
