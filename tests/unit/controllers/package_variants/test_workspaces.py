"""Tests of the workspace in a commit message: in a trailer of the reconciler, or in the line of Porch."""

import pytest

from reconciler.controllers.package_variants.upstream_resolution import parse_workspace


@pytest.mark.parametrize(
    ("message", "expected"),
    [
        pytest.param("t\n\nReconciler-Package: gw\nReconciler-Workspace: w-1\n", "w-1", id="ours"),
        pytest.param("t\n\nReconciler-Workspace: w-1\n", "", id="of-no-package"),
        pytest.param("t\n\nReconciler-Package: gw\n", "", id="without-one"),
        pytest.param("Reconciler-Package: gw\nReconciler-Workspace: w\n", "", id="a-subject-is-no-trailer"),
        pytest.param('kpt:{"package":"gw","workspaceName":"w"}', "w", id="porch"),
        pytest.param('a\n\nkpt:{"package":"base/gw","workspaceName":"w"}\n', "w", id="porch-below-a-directory"),
        pytest.param('kpt:{"package":"agw","workspaceName":"w"}', "", id="porch-another-package"),
        pytest.param(
            'kpt:{"package":"x","workspaceName":"a"}\nkpt:{"package":"gw","workspaceName":"b"}', "b", id="two"
        ),
        pytest.param('kpt:{"package":"gw","workspaceName":7}', "", id="porch-no-text"),
        pytest.param("kpt:[1]", "", id="porch-no-mapping"),
        pytest.param("kpt:{", "", id="porch-no-json"),
        pytest.param("", "", id="empty"),
    ],
)
def test_workspace_is_parsed(message: str, expected: str) -> None:
    assert parse_workspace(message, "gw") == expected
