"""Tests of schema folders: a schema is found by release, group and kind, and never outside of the folder."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.schema_folder import SchemasError, build_schemas
from reconciler.krm.schema.kubernetes_apis import KubernetesRelease


def write_schema(folder: Path, path: str, required: str) -> None:
    """Write a schema with one required field."""
    (folder / path).parent.mkdir(parents=True, exist_ok=True)
    content = {"$schema": "http://json-schema.org/schema#", "type": "object", "required": [required]}
    (folder / path).write_text(json.dumps(content))


def find_required_fields(
    folder: Path, release: KubernetesRelease | None, api_version: str, kind: str
) -> tuple[str, ...] | None:
    """Return the required field of the schema of a kind, or None without a schema."""
    violations = build_schemas(str(folder)).find_violations(release, {"apiVersion": api_version, "kind": kind})
    return None if violations is None else tuple(name for violation in violations for name in violation.names)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    write_schema(tmp_path, "v1.24.1-standalone/deployment-apps-v1.json", "old")
    write_schema(tmp_path, "v1.24.3-standalone/deployment-apps-v1.json", "loose")
    write_schema(tmp_path, "v1.24.3-standalone-strict/deployment-apps-v1.json", "strict")
    write_schema(tmp_path, "v1.24.3-standalone-strict/service-v1.json", "core")
    write_schema(tmp_path, "v1.24.1-standalone/ingress-networking-v1.json", "first-of-the-group")
    write_schema(tmp_path, "v1.99.0-standalone/service-v1.json", "newest")
    write_schema(tmp_path, "example.org/site_v1.json", "custom")
    write_schema(tmp_path.parent, "outside.json", "outside")
    return tmp_path


@pytest.mark.parametrize(
    ("release", "api_version", "kind", "expected"),
    [
        pytest.param((1, 24), "apps/v1", "Deployment", ("strict",), id="strict-ones-first"),
        pytest.param((1, 24), "v1", "Service", ("core",), id="of-the-core-group"),
        pytest.param((1, 24), "networking.k8s.io/v1", "Ingress", ("first-of-the-group",), id="the-group-shortened"),
        pytest.param((1, 24), "example.org/v1", "Site", ("custom",), id="a-custom-kind"),
        pytest.param(None, "v1", "Service", ("newest",), id="no-release-is-the-newest"),
        pytest.param((1, 23), "apps/v1", "Deployment", None, id="another-release"),
        pytest.param((1, 24), "apps/v1", "Site", None, id="another-kind"),
        pytest.param((1, 24), "../x/v1", "../../outside", None, id="a-name-that-leads-elsewhere"),
        pytest.param((1, 24), "..", "outside", None, id="a-group-that-leads-elsewhere"),
    ],
)  # fmt: skip
def test_schema_of_a_kind(
    release: KubernetesRelease | None, api_version: str, kind: str, expected: tuple[str, ...] | None, folder: Path
) -> None:
    assert find_required_fields(folder, release, api_version, kind) == expected


@pytest.mark.parametrize(
    ("content", "why"),
    [
        pytest.param("{", "a schema must be JSON", id="no-json"),
        pytest.param("[]", "a schema must be a JSON object", id="a-list"),
        pytest.param('{"type": "text"}', "site_v1.json: ", id="no-schema"),
        pytest.param('{"$ref": "https://example.org/x.json"}', "site_v1.json: ", id="one-that-would-be-fetched"),
    ],
)
def test_invalid_schema_is_named(content: str, why: str, folder: Path) -> None:
    (folder / "example.org/site_v1.json").write_text(content)

    with pytest.raises(SchemasError, match=why):
        find_required_fields(folder, None, "example.org/v1", "Site")


def test_missing_folder_is_refused(tmp_path: Path) -> None:
    with pytest.raises(SchemasError, match="--schemas must name a folder"):
        build_schemas(str(tmp_path / "nowhere"))


def test_installed_schemas_are_used_without_a_folder() -> None:
    violations: Any = build_schemas(None).find_violations(None, {"apiVersion": "example.org/v1", "kind": "Nobody"})

    assert violations is None
