"""Tests of set-labels: which fields receive labels, and how results are counted."""

from __future__ import annotations

from typing import Any

import pytest

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionVersion, get_value_at
from reconciler.packages.functions.labels_and_annotations import set_labels
from tests.unit.packages.builders import build_config, list_messages, run_function

TIER = build_config("ConfigMap", {"tier": "web"})
WEB = {"tier": "web"}
HEAD, V1 = (0, 2, 4), (0, 1, 5)


def format_resource(api_version: str, kind: str, spec: str) -> str:
    return f"apiVersion: {api_version}\nkind: {kind}\nmetadata: {{name: a}}\nspec: {spec}\n"


TERMS = "requiredDuringSchedulingIgnoredDuringExecution: [{labelSelector: {matchLabels: {tier: x}}}]"
AFFINITY = f"{{template: {{spec: {{affinity: {{podAntiAffinity: {{{TERMS}}}}}}}}}}}"
AFFINITY_LABELS = (
    "template",
    "spec",
    "affinity",
    "podAntiAffinity",
    "requiredDuringSchedulingIgnoredDuringExecution",
    0,
    "labelSelector",
    "matchLabels",
)


@pytest.mark.parametrize(
    ("text", "path", "expected"),
    [
        pytest.param(format_resource("v1", "ConfigMap", "{}"), (), {}, id="only-metadata"),
        pytest.param(
            format_resource("v1", "Service", "{selector: {app: a}}"), ("selector",), {"app": "a", **WEB}, id="service"
        ),
        pytest.param(format_resource("v1", "Service", "{ports: []}"), ("selector",), None, id="headless-service"),
        pytest.param(
            format_resource("apps/v1", "Deployment", "{}"), ("selector", "matchLabels"), WEB, id="deployment-selector"
        ),
        pytest.param(format_resource("apps/v1", "Deployment", "{}"), ("template",), None, id="no-template-is-invented"),
        pytest.param(
            format_resource("apps/v1", "Deployment", "{template: {}}"),
            ("template", "metadata", "labels"),
            WEB,
            id="template",
        ),
        pytest.param(
            format_resource("batch/v1", "Job", "{selector: {matchLabels: {a: b}}}"),
            ("selector", "matchLabels"),
            {"a": "b"},
            id="job-selector-only-updates",
        ),
        pytest.param(
            format_resource("batch/v1", "Job", "{selector: {matchLabels: {tier: b}}}"),
            ("selector", "matchLabels"),
            WEB,
            id="job-selector-updated",
        ),
        pytest.param(
            format_resource("batch/v1", "CronJob", "{jobTemplate: {spec: {template: {}}}}"),
            ("jobTemplate", "spec", "template", "metadata", "labels"),
            WEB,
            id="cron-job",
        ),
        pytest.param(
            format_resource(
                "networking.k8s.io/v1",
                "NetworkPolicy",
                "{ingress: [{from: [{podSelector: {matchLabels: {tier: x}}}]}]}",
            ),
            ("ingress", 0, "from", 0, "podSelector", "matchLabels"),
            WEB,
            id="network-policy",
        ),
        pytest.param(
            format_resource("apps/v1", "StatefulSet", "{volumeClaimTemplates: [{metadata: {name: d}}]}"),
            ("volumeClaimTemplates", 0, "metadata", "labels"),
            WEB,
            id="volume-claims",
        ),
        pytest.param(format_resource("apps/v1", "Deployment", AFFINITY), AFFINITY_LABELS, WEB, id="affinity"),
    ],
)
def test_labelled_fields_in_safe(text: str, path: tuple[str | int, ...], expected: Any) -> None:
    output = run_function(set_labels, text, TIER)

    assert output.items[0].labels == WEB
    assert get_value_at(output.items[0].data["spec"], path) == expected


@pytest.mark.parametrize(
    ("profile", "version", "text", "path", "expected"),
    [
        pytest.param(
            "compat", HEAD, format_resource("v1", "Service", "{ports: []}"), ("selector",), WEB, id="selector-invented"
        ),
        pytest.param(
            "compat",
            HEAD,
            format_resource("apps/v1", "Deployment", AFFINITY),
            AFFINITY_LABELS,
            {"tier": "x"},
            id="affinity-never-reached",
        ),
        pytest.param(
            "compat", V1, format_resource("apps/v1", "Deployment", AFFINITY), AFFINITY_LABELS, WEB, id="v0.1-affinity"
        ),
        pytest.param(
            "compat",
            V1,
            format_resource("apps/v1", "DaemonSet", AFFINITY),
            AFFINITY_LABELS,
            {"tier": "x"},
            id="v0.1-affinity-of-two-kinds",
        ),
        pytest.param(
            "safe",
            V1,
            format_resource("apps/v1", "DaemonSet", AFFINITY),
            AFFINITY_LABELS,
            WEB,
            id="safe-affinity-of-all",
        ),
        pytest.param(
            "compat",
            V1,
            format_resource("v1", "Service", "{ports: []}"),
            ("selector",),
            WEB,
            id="v0.1-selector-invented",
        ),
        pytest.param(
            "safe",
            V1,
            format_resource("batch/v1", "Job", "{selector: {matchLabels: {a: b}}}"),
            ("selector", "matchLabels"),
            {"a": "b", **WEB},
            id="v0.1-adds-where-the-mapping-is",
        ),
    ],
)
def test_labelled_fields_of_each_version(
    profile: Profile, version: FunctionVersion, text: str, path: tuple[str | int, ...], expected: Any
) -> None:
    output = run_function(set_labels, text, TIER, profile, version)

    assert get_value_at(output.items[0].data["spec"], path) == expected


@pytest.mark.parametrize(
    ("version", "expected"), [pytest.param(HEAD, {}, id="head-skips"), pytest.param(V1, WEB, id="v0.1-includes")]
)
def test_local_config_resources(version: FunctionVersion, expected: dict[str, str]) -> None:
    text = "apiVersion: v1\nkind: A\nmetadata:\n  name: a\n  annotations: {config.kubernetes.io/local-config: 'true'}\n"

    assert run_function(set_labels, text, TIER, version=version).items[0].labels == expected


@pytest.mark.parametrize(
    ("configuration", "failed", "values"),
    [
        pytest.param(TIER, False, ("info", "set 1 labels in total"), id="count"),
        pytest.param(None, True, ("info", "`FunctionConfig` is not given"), id="none"),
        pytest.param(
            build_config("ConfigMap", {}), True, ("info", "`FunctionConfig` is not given"), id="empty-config-map"
        ),
        pytest.param(
            build_config("SetLabels", {}),
            False,
            ("warning", "no `labels` arguments are given in FunctionConfig"),
            id="no-labels",
        ),
        pytest.param(
            build_config("Bad", {}),
            True,
            ("error", "unknown FunctionConfig `Bad.fn.kpt.dev`, expect `SetLabels.fn.kpt.dev` or `ConfigMap.v1`"),
            id="kind",
        ),
    ],
)
def test_configuration(configuration: dict[str, Any] | None, failed: bool, values: tuple[str, str]) -> None:
    output = run_function(set_labels, format_resource("v1", "ConfigMap", "{}"), configuration)

    assert (output.has_failed, list_messages(output)) == (failed, [values])
