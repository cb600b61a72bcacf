"""Tests of removed API versions, compared with the schemas that Kubernetes publishes for each release."""

from __future__ import annotations

from itertools import pairwise

import pytest

from reconciler.krm.schema.kubernetes_apis import (
    KubernetesRelease,
    find_api_removal,
    format_kubernetes_release,
    parse_kubernetes_release,
)
from reconciler.krm.schema.validation import list_installed_releases, load_kubernetes_schemas

RELEASES = list_installed_releases()
# These kinds are no resources that users write.
_OF_REQUESTS = {"DeleteOptions", "WatchEvent", "SelfSubjectReview"}


def list_served_kinds(release: KubernetesRelease) -> set[tuple[str, str, str]]:
    schemas = load_kubernetes_schemas(strict=True, release=release)
    assert schemas
    return {kind for kind in schemas.kinds if not (kind[2].endswith("List") or kind[2] in _OF_REQUESTS)}


@pytest.mark.skipif(len(RELEASES) < 2, reason="the extra k8s-schemas is not installed")
def test_every_removed_kind_is_in_the_table() -> None:
    for before, release in pairwise(RELEASES):
        deleted = list_served_kinds(before) - list_served_kinds(release)
        for group, version, kind in (item for item in deleted if "alpha" not in item[1]):
            api_removal = find_api_removal(f"{group}/{version}", kind)
            assert api_removal is not None, f"{group}/{version} {kind} went with {format_kubernetes_release(release)}"
            assert api_removal.removed_in == release, f"{group}/{version} {kind}"


@pytest.mark.skipif(not RELEASES, reason="the extra k8s-schemas is not installed")
def test_kinds_in_the_table_are_not_served_after_their_removal() -> None:
    for release in RELEASES:
        for group, version, kind in list_served_kinds(release):
            api_removal = find_api_removal(f"{group}/{version}" if group else version, kind)
            assert api_removal is None or api_removal.removed_in > release, (
                f"{group}/{version} {kind} {format_kubernetes_release(release)}"
            )


@pytest.mark.parametrize(
    ("api_version", "kind", "deleted"),
    [
        pytest.param("extensions/v1beta1", "Ingress", (1, 22), id="an-ingress-of-extensions"),
        pytest.param("policy/v1beta1", "PodSecurityPolicy", (1, 25), id="a-pod-security-policy"),
        pytest.param("apps/v1beta1", "Deployment", (1, 16), id="an-old-deployment"),
        pytest.param("apps/v1", "Deployment", None, id="what-stays"),
        pytest.param("policy/v1beta1", "Eviction", None, id="another-kind-of-a-version"),
    ],
)
def test_find_api_removal(api_version: str, kind: str, deleted: KubernetesRelease | None) -> None:
    api_removal = find_api_removal(api_version, kind)

    assert (api_removal.removed_in if api_removal else None) == deleted
    assert api_removal is None or api_removal.deprecated_in < api_removal.removed_in


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("1.31", (1, 31), id="a-release"),
        pytest.param("v1.31.4", (1, 31), id="a-version"),
        pytest.param("v1.30.2-eks-1552ad0", (1, 30), id="of-a-cloud"),
        pytest.param("1.9", (1, 9), id="an-old-one"),
        pytest.param("1", None, id="half"),
        pytest.param("new", None, id="a-word"),
        pytest.param("1.x", None, id="no-number"),
        pytest.param("1.99999", None, id="too-long"),
        pytest.param("", None, id="nothing"),
    ],
)
def test_parse_kubernetes_release(text: str, expected: KubernetesRelease | None) -> None:
    assert parse_kubernetes_release(text) == expected
