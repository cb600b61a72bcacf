"""Tests of the files of placed resources: the bytes of the document, and a unique name."""

from __future__ import annotations

import pytest

from reconciler.controllers.placement.resources import build_resource_file
from reconciler.krm.objects import ObjectKey
from reconciler.packages.file_names import assign_file_names
from tests.unit.controllers.placement.controller_world import build_catalog


def build_key(text: str) -> ObjectKey:
    group, kind, name = text.split(" ")
    return ObjectKey("" if group == "core" else group, kind, "ferry", name)


@pytest.mark.parametrize(
    ("keys", "names"),
    [
        pytest.param(["apps Deployment web"], ["deployment-web.yaml"], id="kind-and-name"),
        pytest.param(["core Secret web.v1_A-b"], ["secret-web.v1_A-b.yaml"], id="characters-that-a-name-can-contain"),
        pytest.param(
            ["rbac Role system:a/b%c"], ["role-system%3Aa%2Fb%25c.yaml"], id="characters-that-a-path-cannot-contain"
        ),
        pytest.param(["core Secret é"], ["secret-%C3%A9.yaml"], id="bytes-of-letters"),
        pytest.param(["core ../Foo x"], ["%2E%2E%2Ffoo-x.yaml"], id="no-kind-leads-elsewhere"),
        pytest.param(
            ["core Service a", "knative Service a", "other.dev Service a"],
            ["service-a.yaml", "service.knative-a.yaml", "service.other.dev-a.yaml"],
            id="shared-names-carry-their-groups",
        ),
        pytest.param(
            ["core Service a", "knative Service b"],
            ["service-a.yaml", "service-b.yaml"],
            id="others-do-not",
        ),
    ],
)
def test_file_names(keys: list[str], names: list[str]) -> None:
    assert list(assign_file_names(map(build_key, keys)).values()) == names


@pytest.mark.parametrize(
    ("path", "text", "expected"),
    [
        pytest.param(
            "a.yaml",
            "# licence\n\nkind: 'A'   # as ever\napiVersion: v1\nmetadata: {name: a}\n",
            "# licence\n\nkind: 'A'   # as ever\napiVersion: v1\nmetadata: {name: a}\n",
            id="as-it-stands",
        ),
        pytest.param(
            "a.yml",
            "x: 1\n---\n# mine\napiVersion: v1\nkind: A\nmetadata: {name: a}\n\n---\ny: 1\n",
            "# mine\napiVersion: v1\nkind: A\nmetadata: {name: a}\n",
            id="alone",
        ),
        pytest.param(
            "a.yaml",
            "apiVersion: v1\nkind: A\nmetadata: &m {name: a}\nspec: {template: {metadata: *m}}",
            "apiVersion: v1\nkind: A\nmetadata: &m {name: a}\nspec: {template: {metadata: *m}}\n",
            id="with-its-anchors",
        ),
        pytest.param(
            "a.json",
            '{"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}, "n": [1, "1", "yes"]}',
            'kind: A\napiVersion: v1\nmetadata:\n  name: a\n"n":\n- 1\n- "1"\n- "yes"\n',
            id="json-becomes-yaml",
        ),
        pytest.param(
            "a.yaml",
            '{"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}\n',
            '{"kind": "A", "apiVersion": "v1", "metadata": {"name": "a"}}\n',
            id="json-in-a-yaml-file-is-yaml",
        ),
    ],
)
def test_file_content(path: str, text: str, expected: str) -> None:
    (config_object,) = build_catalog({path: text}).objects.values()

    assert build_resource_file(config_object).data.decode() == expected
