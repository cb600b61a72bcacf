"""Kustomize overlays: their build root, and the options of other tools."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.adopt.overlays import OverlayError, OverlaySource, find_build_root
from reconciler.catalog.files import File, FileTree
from reconciler.krm.yaml import parse_yaml

SECRET_PATCH = "[{op: add, path: /data/a, value: hunter22}]"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: s}\nstringData: {password: hunter22}\n"
FILES = FileTree(
    {
        path: File(text.encode())
        for path, text in {
            "web/base/kustomization.yaml": "resources: [app.yaml]\n", "web/base/app.yaml": "a: 1\n",
            "web/overlays/prod/kustomization.yaml": "resources: [../../base]\n",
            "web/overlays/alone/kustomization.yaml": "resources: [app.yaml, https://example.com/x.yaml]\n",
            "web/overlays/alone/app.yaml": "a: 1\n",
            "web/overlays/files/kustomization.yaml": "configMapGenerator: [{name: c, files: [a=../../base/app.yaml]}]\n",
            "wide/kustomization.yml": "components: [../web/base]\n",
            "loop/a/kustomization.yaml": "resources: [../b]\n", "loop/b/kustomization.yaml": "resources: [../a]\n",
            "broken/kustomization.yaml": "a: [\n",
            "web/components/tls/kustomization.yaml": "kind: Component\n", "web/base/patch.yaml": "p: 1\n",
            "web/base/secret.yaml": SECRET,
            "web/own/kustomization.yaml": (
                "namePrefix: own-\nimages: [{name: web, newTag: '1'}, {name: db, newTag: '1'}]\n"
                "commonAnnotations: {a: own, c: own}\npatches: [{patch: own}]\n"
            ),
        }.items()
    }
)  # fmt: skip


@pytest.mark.parametrize(
    ("folder", "root"),
    [
        ("web/overlays/prod", "web"),
        ("web/overlays/alone", "web/overlays/alone"),
        ("web/overlays/files", "web"),
        ("wide", ""),
        ("loop/a", "loop"),
        ("broken", "broken"),
        ("missing", "missing"),
    ],
)
def test_the_build_root_contains_all_bases(folder: str, root: str) -> None:
    assert find_build_root(FILES, folder) == root


CHANGE = "apiVersion: v1\nkind: Service\nmetadata: {name: web}\n"


@pytest.mark.parametrize(
    ("options", "fields"),
    [
        ({}, {}),
        ({"namespace": "shop", "namePrefix": "a-", "nameSuffix": ""}, {"namespace": "shop", "namePrefix": "a-"}),
        ({"images": ["web:2"]}, {"images": [{"name": "web", "newTag": "2"}]}),
        (
            {"images": ["web=example.com:5000/web@sha256:0"]},
            {"images": [{"name": "web", "newName": "example.com:5000/web", "digest": "sha256:0"}]},
        ),
        ({"images": [{"name": "web", "newTag": 2}]}, {"images": [{"name": "web", "newTag": "2"}]}),
        ({"replicas": [{"name": "web", "count": "3"}]}, {"replicas": [{"name": "web", "count": 3}]}),
        ({"commonAnnotations": {"a": "b"}}, {"commonAnnotations": {"a": "b"}}),
        ({"patches": [{"patch": CHANGE, "target": {"kind": "Service"}}]},
         {"patches": [{"patch": CHANGE, "target": {"kind": "Service"}}]}),
        ({"patches": [{"path": "../../base/patch.yaml", "options": {"allowNameChange": True}}]},
         {"patches": [{"patch": "p: 1\n", "options": {"allowNameChange": True}}]}),
        ({"components": ["../../components/tls"]}, {"components": ["../../components/tls"]}),
        ({"components": ["../absent", "../../components/tls"], "ignoreMissingComponents": True},
         {"components": ["../../components/tls"]}),
    ],
)  # fmt: skip
def test_options_are_converted(options: dict[str, Any], fields: dict[str, Any]) -> None:
    converted = OverlaySource(FILES, "web/overlays/prod", options).convert()

    assert converted.package == "web"
    assert (converted.request.path, converted.request.fields) == ("overlays/prod", fields)
    assert (converted.request.original is None) == (not fields)


def test_the_overlay_can_be_the_package_itself() -> None:
    converted = OverlaySource(FILES, "web/overlays/alone", {}).convert()

    assert (converted.package, converted.request.path) == ("web/overlays/alone", "")


def test_the_build_root_contains_the_components() -> None:
    converted = OverlaySource(FILES, "web/overlays/alone", {"components": ["../../components/tls"]}).convert()

    assert (converted.package, converted.request.path) == ("web", "overlays/alone")


def test_the_original_has_the_options_in_the_overlay() -> None:
    options = {
        "namePrefix": "a-", "images": ["web:2", "proxy:3"], "replicas": [{"name": "web", "count": 2}],
        "commonAnnotations": {"a": "b"}, "patches": [{"path": "../base/patch.yaml"}], "components": ["../components/tls"],
    }  # fmt: skip
    request = OverlaySource(FILES, "web/own", options).convert().request

    assert request.original is not None
    assert "base/patch.yaml" in request.original
    (document,) = parse_yaml(request.original["own/kustomization.yaml"].data).documents
    assert document.data == {
        "namePrefix": "a-",
        "images": [{"name": "db", "newTag": "1"}, {"name": "web", "newTag": "2"}, {"name": "proxy", "newTag": "3"}],
        "commonAnnotations": {"a": "b", "c": "own"},
        "patches": [{"patch": "own"}, {"patch": "p: 1\n"}],
        "replicas": [{"name": "web", "count": 2}],
        "components": ["../components/tls"],
    }


@pytest.mark.parametrize(
    ("options", "field"),
    [
        ({"commonLabels": {"a": "b"}}, "commonLabels"),
        ({"patches": [{"path": "absent.yaml"}]}, "patches"),
        ({"patches": ["text"]}, "patches"),
        ({"patches": {"patch": CHANGE}}, "patches"),
        ({"components": "../../components/tls"}, "components"),
        ({"namePrefix": ["a"]}, "namePrefix"),
        ({"commonAnnotations": ["a"]}, "commonAnnotations"),
        ({"patches": [{"target": {"kind": "Service"}}]}, "patches"),
        ({"patches": [{"patch": CHANGE, "target": {"unknown": "x"}}]}, "patches"),
        ({"patches": [{"patch": SECRET}]}, "patches"),
        ({"patches": [{"path": "../../base/secret.yaml"}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH, "target": {"kind": "Secret"}}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH, "target": {"kind": "Sec.*"}}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH, "target": {"kind": "SealedSecret|Secret"}}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH, "target": {"kind": "["}}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH, "target": {"name": "db"}}]}, "patches"),
        ({"patches": [{"patch": SECRET_PATCH.replace("/data/a", "''"), "target": {"name": "db"}}]}, "patches"),
        ({"patches": [{"patch": "stringData: {a: hunter22}", "target": {"name": "db"}}]}, "patches"),
        ({"components": ["https://example.com/x"]}, "components"),
        ({"components": ["../absent"]}, "components"),
        ({"images": ["web"]}, "images"),
        ({"namespace": "Not A Name"}, "namespace"),
        ({"replicas": [{"name": "web", "count": "many"}]}, "replicas"),
    ],
)
def test_options_without_an_equivalent(options: dict[str, Any], field: str) -> None:
    with pytest.raises(OverlayError) as refused:
        OverlaySource(FILES, "web/overlays/prod", options).convert()

    assert refused.value.field == field
    assert "hunter22" not in str(refused.value)


@pytest.mark.parametrize(
    "patch",
    [
        {"patch": SECRET_PATCH, "target": {"kind": "SealedSecret"}},
        {"patch": SECRET_PATCH, "target": {"kind": "ConfigMap"}},
        {"patch": "[{op: add, path: /metadata/labels/a, value: x}]", "target": {"name": "db"}},
        {"patch": "metadata: {labels: {a: x}}", "target": {"kind": ".*"}},
    ],
)
def test_patches_without_values_of_secrets_are_imported(patch: dict[str, Any]) -> None:
    request = OverlaySource(FILES, "web/overlays/prod", {"patches": [patch]}).convert().request

    assert request.original is not None


@pytest.mark.parametrize("options", [{"components": ["x"]}, {"patches": [{"path": "x.yaml"}]}])
def test_the_files_of_an_artifact_are_unknown(options: dict[str, Any]) -> None:
    assert OverlaySource(None, "prod", {"namePrefix": "a-"}).convert().request.original is None
    with pytest.raises(OverlayError, match="names files in an artifact, but the import reads only files in Git"):
        OverlaySource(None, "prod", options).convert()
