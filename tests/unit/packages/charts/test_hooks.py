"""Tests of Helm hooks: which resources are part of the package for each policy."""

from __future__ import annotations

import pytest

from reconciler.krm.yaml import Document
from reconciler.packages.charts.documents import OutputText, RenderedResource
from reconciler.packages.charts.hooks import is_left_out, read_hooks
from reconciler.packages.charts.request import HookPolicy

POLICIES: tuple[HookPolicy, ...] = ("keep", "drop", "argocd")


@pytest.mark.parametrize(
    ("hook", "skip_tests", "written_with"),
    [
        pytest.param("test", True, "", id="test"),
        pytest.param("test-success", True, "", id="test-success"),
        pytest.param("test", False, "keep", id="included-test"),
        pytest.param("test-failure", False, "keep", id="included-test-failure"),
        pytest.param("pre-install", True, "keep argocd", id="pre-install"),
        pytest.param("post-install", True, "keep argocd", id="post-install"),
        pytest.param("pre-upgrade", True, "keep argocd", id="pre-upgrade"),
        pytest.param("post-upgrade", True, "keep argocd", id="post-upgrade"),
        pytest.param("pre-delete", True, "argocd", id="pre-delete"),
        pytest.param("post-delete", True, "argocd", id="post-delete"),
        pytest.param("pre-rollback", True, "", id="pre-rollback"),
        pytest.param("post-rollback", True, "", id="post-rollback"),
        pytest.param("crd-install", True, "keep drop argocd", id="crd-install"),
        pytest.param("Pre-Delete , post-install", True, "keep argocd", id="one-of-two-is-enough"),
        pytest.param("test,pre-install", True, "", id="test-and-install-is-a-test"),
        pytest.param("pre-delete,post-rollback", True, "argocd", id="delete-and-rollback"),
        pytest.param("unknown", True, "", id="unknown-hook"),
        pytest.param("", True, "keep drop argocd", id="empty-annotation"),
    ],
)
def test_hooks(hook: str, skip_tests: bool, written_with: str) -> None:
    document = Document.from_data({"kind": "Job", "metadata": {"annotations": {"helm.sh/hook": hook}}})
    hooks = read_hooks(RenderedResource(OutputText("t.yaml", 1, ""), document))

    written = [policy for policy in POLICIES if not is_left_out(hooks, policy, skip_tests=skip_tests)]
    assert written == written_with.split()
