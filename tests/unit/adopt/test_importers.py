"""The expected content of the option --rendered."""

from __future__ import annotations

import pytest

from reconciler.adopt.importers import select_rendered
from reconciler.adopt.requests import HelmRequest, PackageRequest, ReadRequests, RepositoryReference, UpstreamReference
from reconciler.catalog.files import File, FileTree

SERVICE = "apiVersion: v1\nkind: Service\nmetadata: {name: web, namespace: shop}\n"
NAMESPACE = "apiVersion: v1\nkind: Namespace\nmetadata: {name: shop}\n"
OTHER = NAMESPACE.replace("shop", "other")


@pytest.mark.parametrize(
    ("creates_namespace", "text", "added"),
    [
        pytest.param(True, SERVICE, ["namespace-shop.yaml"], id="created"),
        pytest.param(True, f"{SERVICE}---\n{OTHER}", ["namespace-shop.yaml"], id="another-namespace"),
        pytest.param(True, f"{SERVICE}---\n{NAMESPACE}", [], id="rendered"),
        pytest.param(True, "a: [", [], id="invalid"),
        pytest.param(False, SERVICE, [], id="not-created"),
    ],
)
def test_namespace_that_the_tool_creates(creates_namespace: bool, text: str, added: list[str]) -> None:
    upstream = UpstreamReference(RepositoryReference("helm", "https://charts.example.com"), "web", ())
    helm = HelmRequest("web", "shop", flags={"createNamespace": True} if creates_namespace else {})
    request = PackageRequest("web", "web", "berlin", "web", upstream, helm, "shop")
    rendered = FileTree({"berlin/web.yaml": File(text.encode())})

    files = select_rendered(ReadRequests((request,), {}, ()), rendered)["berlin", "web"]

    assert isinstance(files, FileTree)
    assert sorted(files) == sorted(["web.yaml", *added])
