"""Tests of the fields of an upstream that depend on the type of its Repository."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.package_sources import RepositoryType
from reconciler.api.porch.upstream import TagPolicy, UpstreamSpec
from reconciler.controllers.package_variants.upstream_fields import list_type_errors
from reconciler.controllers.repositories import Repository
from reconciler.krm.findings import SourceLocation
from reconciler.krm.objects import ObjectKey

DIGEST = "sha256:" + "5d" * 32


def build_repository(repository_type: RepositoryType) -> Repository:
    key = ObjectKey("config.porch.kpt.dev", "Repository", "default", "catalog")
    return Repository(key, "https://example.com", "", "", False, "", SourceLocation(), type=repository_type)


@pytest.mark.parametrize(
    ("repository_type", "fields", "errors"),
    [
        pytest.param("git", {"package": "web", "revision": "v1"}, [], id="git"),
        pytest.param("helm", {"chart": "web", "version": "1.2.3", "digest": DIGEST}, [], id="helm"),
        pytest.param("oci", {"package": "web", "tag": "v1"}, [], id="oci-tag-like-a-revision"),
        pytest.param("oci", {"package": "web", "digest": DIGEST}, [], id="oci-digest"),
        pytest.param(
            "git",
            {"chart": "web", "version": "1.2.3"},
            [
                'spec.upstream.chart: Repository "catalog" has the type "git"; use spec.upstream.package',
                'spec.upstream.version: Repository "catalog" has the type "git"; use spec.upstream.revision',
            ],
            id="chart-in-git",
        ),
        pytest.param(
            "git",
            {"package": "web", "revision": "v1", "digest": DIGEST},
            ['spec.upstream.digest: Repository "catalog" has the type "git"; use spec.upstream.revision'],
            id="digest-in-git",
        ),
        pytest.param(
            "oci",
            {"chart": "web", "version": "1.2.3"},
            ['spec.upstream.chart: Repository "catalog" has the type "oci"; use spec.upstream.package'],
            id="chart-in-a-registry",
        ),
        pytest.param(
            "helm",
            {"chart": "web", "revision": "v1"},
            [
                'spec.upstream.revision: Repository "catalog" has the type "helm"; use spec.upstream.version',
                "spec.upstream.version must be set, because the upstream is a chart",
            ],
            id="revision-of-a-chart",
        ),
        pytest.param(
            "oci",
            {"package": "web", "version": "1.0.0", "tag_mode": "rewrite", "tag_policy": TagPolicy(range=">>1")},
            ['spec.upstream.tagPolicy.range: ">>1": not a SemVer version or range'],
            id="followed-range-without-syntax",
        ),
        pytest.param(
            "git",
            {"package": "web", "tag": "v12"},
            ['spec.upstream.tag must not be "v12", because this is the name of a revision; use spec.upstream.revision'],
            id="tag-like-a-revision",
        ),
    ],
)
def test_fields_of_another_type_are_refused(
    repository_type: RepositoryType, fields: dict[str, Any], errors: list[str]
) -> None:
    upstream = UpstreamSpec(repo="catalog", **fields)

    assert list(list_type_errors(upstream, build_repository(repository_type)).values()) == errors
