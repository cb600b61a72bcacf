"""Tests of the findings about unused objects: unknown kinds, and Kafka objects without a placement."""

from __future__ import annotations

import pytest

from reconciler.catalog.catalog import Catalog, read_catalog
from reconciler.catalog.files import File, FileTree
from reconciler.controllers.catalog_checks import find_unused_objects
from tests.support.world import injected_set, variant


def build_catalog(files: dict[str, str]) -> Catalog:
    return read_catalog(FileTree({path: File(text.encode()) for path, text in files.items()}))


def build_object(api_version: str, kind: str, name: str = "a", more: str = "") -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: {name}{more}}}\n"


def list_findings(files: dict[str, str]) -> list[tuple[str, str, int]]:
    return [
        (finding.code, finding.location.file, finding.location.line)
        for finding in find_unused_objects(build_catalog(files))
    ]


@pytest.mark.parametrize(
    ("api_version", "kind", "hint"),
    [
        pytest.param("greenhouse.sap/v1alpha1", "TeamRoleBinding", "", id="greenhouse"),
        pytest.param("greenhouse.sap/v1alpha1", "PluginPresets", "PluginPreset of greenhouse.sap", id="a-plural"),
        pytest.param("openchoreo.dev/v1alpha1", "Component", "Component of platform", id="openchoreo"),
        pytest.param("openchoreo.dev/v1alpha1", "Organization", "Organization of greenhouse.sap", id="another-group"),
        pytest.param("openchoreo.dev/v1alpha1", "DataPlane", "", id="openchoreo-unknown"),
        pytest.param(
            "config.porch.kpt.dev/v1alpha1", "PackageVarient", "PackageVariant of config.porch.kpt.dev", id="slip"
        ),
        pytest.param(
            "config.porch.kpt.dev/v1alpha2", "packageVariantSet", "PackageVariantSet of config.porch.kpt.dev", id="case"
        ),
        pytest.param(
            "config.porch.kpt.dev/v1alpha1", "PackageRevisionSet", "PackageRevisionSet of reconciler.dev", id="moved"
        ),
        pytest.param("core.kubeadmiral.io/v1alpha1", "FederatedTypeConfig", "", id="kubeadmiral"),
        pytest.param("kafka.strimzi.io/v1", "KafkaTopic", "", id="strimzi"),
        pytest.param("reconciler.dev/v1alpha1", "Enviroment", "Environment of reconciler.dev", id="ours"),
        pytest.param("greenhouse.spa/v1alpha1", "Plugin", "Plugin of greenhouse.sap", id="misspelt-group"),
    ],
)
def test_unknown_kind_of_a_known_group_is_reported(api_version: str, kind: str, hint: str) -> None:
    (finding,) = find_unused_objects(build_catalog({"a.yaml": build_object(api_version, kind)}))

    assert (finding.code, finding.severity.value, finding.location.file, finding.location.line) == (
        "UnknownKind",
        "warning",
        "a.yaml",
        2,
    )
    assert (f"did you mean {hint}?" in finding.message) == bool(hint)
    assert "kinds of " in finding.message


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(build_object("apps/v1", "Deployment"), id="kubernetes"),
        pytest.param(build_object("example.org/v1", "Catalog"), id="another-group"),
        pytest.param(build_object("greenhouse.sap/v1alpha1", "Team"), id="known"),
        pytest.param(build_object("platform/v1alpha1", "PublicApi"), id="kinds-of-component-types"),
        pytest.param(
            build_object(
                "greenhouse.sap/v1alpha1", "Catalog", more=", annotations: {config.kubernetes.io/local-config: 'true'}"
            ),
            id="local-config",
        ),
    ],
)
def test_kind_is_not_reported_as_unknown(text: str) -> None:
    assert list_findings({"a.yaml": text}) == []


ANNOTATED = ", annotations: {reconciler.dev/clusters: berlin}"
LABELLED = ", labels: {kubeadmiral.io/cluster-propagation-policy-name: all}"
INJECTOR = "injectors:\n  - {kind: %s, name: %s}"
SELECTING = (
    "apiVersion: config.porch.kpt.dev/v1alpha2\nkind: PackageVariantSet\nmetadata: {name: s}\n"
    "spec: {targets: [{objectSelector: {apiVersion: %s, kind: %s}}]}\n"
)


@pytest.mark.parametrize(
    ("api_version", "kind"),
    [
        pytest.param("kafka.strimzi.io/v1", "Kafka", id="kafka"),
        pytest.param("kafka.strimzi.io/v1", "KafkaNodePool", id="pool"),
        pytest.param("kafka.strimzi.io/v1", "KafkaTopic", id="unknown-kind"),
        pytest.param("greenhouse.sap/v1alpha1", "Catalog", id="unknown-kind-of-greenhouse"),
    ],
)
@pytest.mark.parametrize(
    "use",
    [
        pytest.param(lambda api, kind: {"a.yaml": build_object(api, kind, more=ANNOTATED)}, id="placed-by-annotation"),
        pytest.param(lambda api, kind: {"a.yaml": build_object(api, kind, more=LABELLED)}, id="placed-by-policy"),
        pytest.param(
            lambda api, kind: {
                "a.yaml": build_object(api, kind),
                "v.yaml": variant("v", "b", "p", extra=INJECTOR % (kind, "a")),
            },
            id="injected-by-a-variant",
        ),
        pytest.param(
            lambda api, kind: {
                "a.yaml": build_object(api, kind),
                "s.yaml": injected_set("p", ["b"]).replace("kind: ConfigMap", f"kind: {kind}"),
            },
            id="injected-by-a-set",
        ),
        pytest.param(
            lambda api, kind: {"a.yaml": build_object(api, kind), "s.yaml": SELECTING % (api, kind)},
            id="selected-by-a-set",
        ),
        pytest.param(lambda api, kind: {"p/x/a.yaml": build_object(api, kind), "p/Kptfile": ""}, id="in-a-package"),
        pytest.param(
            lambda api, kind: {"a.yaml": build_object(api, kind), "broken.yaml": "a: ["}, id="a-file-is-unreadable"
        ),
    ],
)
def test_a_used_object_is_not_reported(api_version: str, kind: str, use) -> None:  # type: ignore[no-untyped-def]
    assert list_findings(use(api_version, kind)) == []


@pytest.mark.parametrize("kind", ["Kafka", "KafkaNodePool"])
def test_kafka_object_without_placement_is_reported(kind: str) -> None:
    files = {
        "a.yaml": build_object("kafka.strimzi.io/v1", kind),
        "v.yaml": variant("v", "b", "p", extra=INJECTOR % (kind, "other")),
    }
    (finding,) = find_unused_objects(build_catalog(files))

    assert (finding.code, finding.severity.value, finding.location.file) == ("KafkaNotPlaced", "warning", "a.yaml")
    assert "reconciler.dev/clusters" in finding.message


def test_many_objects_of_an_unknown_kind_are_one_finding() -> None:
    files = {f"{n}.yaml": build_object("greenhouse.sap/v1alpha1", "TeamRoleBinding", f"c{n}") for n in range(1, 8)}
    (finding,) = find_unused_objects(build_catalog(files))

    assert finding.message.endswith(" are at 2.yaml:1, 3.yaml:1, 4.yaml:1, 5.yaml:1 and 2 more")
