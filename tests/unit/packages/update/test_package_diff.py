"""Tests of the package diff: what counts as a local change."""

from __future__ import annotations

import pytest

from reconciler.catalog.files import File, FileTree
from reconciler.packages.update.package_diff import is_minimal_kptfile, list_changed_files
from tests.unit.packages.update.builders import format_kptfile, format_resource

A = format_resource("a", "1")
NOTED = "metadata:\n  annotations:\n    {}: x\n"


@pytest.mark.parametrize(
    ("path", "old", "new", "differs"),
    [
        pytest.param("r.yaml", A, A, False, id="equal"),
        pytest.param("r.yaml", A, format_resource("a", "2"), True, id="a-value"),
        pytest.param("r.yaml", A, "# x\n" + A, True, id="a-comment"),
        pytest.param("r.yaml", A, A.replace("metadata:", "metadata: # kpt-merge: /a"), False, id="merge-comment"),
        pytest.param(
            "r.yaml", A, A.replace("metadata:", "metadata: # kpt-merge: /b"), True, id="another-merge-comment"
        ),
        pytest.param(
            "r.yaml",
            A,
            A.replace("metadata:\n", NOTED.format("cnrm.cloud.google.com/blueprint")),
            False,
            id="blueprint",
        ),
        pytest.param("r.yaml", A, A.replace("metadata:\n", NOTED.format("mine")), True, id="annotation"),
        pytest.param(
            "r.yaml",
            A,
            A.replace(
                "metadata:\n  name: a\n",
                "metadata: # kpt-merge: /a\n  name: a\n  annotations:\n"
                "    internal.kpt.dev/upstream-identifier: '|ConfigMap|default|a'\n",
            ),
            False,
            id="upstream-identifier",
        ),
        pytest.param("r.yaml", "a: [", "b: [", True, id="broken"),
        pytest.param("n.txt", "a", "b", True, id="opaque"),
        pytest.param(
            "Kptfile", format_kptfile("app"), format_kptfile("site", "r d v1", "c"), False, id="name-and-upstream"
        ),
        pytest.param("Kptfile", format_kptfile("app"), format_kptfile("app") + "info:\n  site: x\n", True, id="info"),
        pytest.param(
            "Kptfile",
            format_kptfile("app"),
            format_kptfile("app") + "status:\n  renderStatus: {}\n",
            False,
            id="render-status",
        ),
        pytest.param("Kptfile", "a: [", "b: [", True, id="broken-kptfile"),
    ],
)
def test_package_diff(path: str, old: str, new: str, differs: bool) -> None:
    trees = [FileTree({path: File(text.encode())}) for text in (old, new)]

    assert list_changed_files(*trees) == ((path,) if differs else ())


def test_missing_files_and_modes_are_differences() -> None:
    old = FileTree({"a": File(b"x"), "b": File(b"x"), "c": File(b"x")})
    new = FileTree({"b": File(b"x", executable=True), "c": File(b"x"), "d": File(b"x")})

    assert list_changed_files(old, new) == ("a", "b", "d")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param(format_kptfile("app", "r d v1", "c"), True, id="made-by-a-tool"),
        pytest.param(format_kptfile("app") + "pipeline:\n  mutators: []\n", False, id="with-a-pipeline"),
        pytest.param("a: [", False, id="broken"),
    ],
)
def test_is_minimal_kptfile(text: str, expected: bool) -> None:
    assert is_minimal_kptfile(text.encode()) is expected
