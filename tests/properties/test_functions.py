"""Functions return a result for any resources and configuration, and equal results for equal inputs."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from reconciler.api.profile import Profile
from reconciler.packages.functions.function import FunctionContext, FunctionOutput, Item
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.parsing import build_document
from tests.support.examples import examples

API_VERSIONS = (
    "v1",
    "apps/v1",
    "batch/v1",
    "kpt.dev/v1",
    "networking.k8s.io/v1",
    "rbac.authorization.k8s.io/v1",
    "apiextensions.k8s.io/v1",
    "apiregistration.k8s.io/v1",
    "blueprints.cloud.google.com/v1alpha1",
    "constraints.gatekeeper.sh/v1beta1",
    "storage.cnrm.cloud.google.com/v1",
)
KINDS = (
    "Pod",
    "Deployment",
    "StatefulSet",
    "CronJob",
    "Service",
    "ConfigMap",
    "Namespace",
    "Kptfile",
    "Ingress",
    "NetworkPolicy",
    "RoleBinding",
    "APIService",
    "CustomResourceDefinition",
    "ProjectServiceSet",
)
CONFIGS = (
    "ConfigMap",
    "ApplyReplacements",
    "EnsureNameSubstring",
    "List",
    "SetAnnotations",
    "SetImage",
    "SetLabels",
    "SetNamespace",
    "StarlarkRun",
)
FIELDS = [
    "spec",
    "template",
    "jobTemplate",
    "metadata",
    "annotations",
    "labels",
    "selector",
    "matchLabels",
    "containers",
    "volumes",
    "image",
    "name",
    "namespace",
    "subjects",
    "roleRef",
    "rules",
    "data",
    "services",
    "pipeline",
    "mutators",
    "configMap",
    "configPath",
    "enforcementAction",
    "path",
    "kind",
    "create",
    "replacements",
    "source",
    "sourceValue",
    "targets",
    "select",
    "reject",
    "fieldPaths",
    "options",
    "delimiter",
    "index",
    "substring",
    "append",
    "prefix",
    "annotationKeys",
    "newTag",
    "items",
    "additionalNameFields",
    "additionalImageFields",
    "fieldSpecs",
    "project-id",
    "config.kubernetes.io/local-config",
    "config.kubernetes.io/depends-on",
]
SCALARS = st.sampled_from(
    [None, True, 0, 1.5, "", "x", "nginx:1", "packagename-x", "a.b.c", "[", "(", "$", "deny", "/A/x"]
)
DATA = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from(FIELDS), inner, max_size=4),
    max_leaves=12,
)
METADATA = st.fixed_dictionaries(
    {"name": st.sampled_from(["x", "packagename"])}, optional={"annotations": DATA, "labels": DATA, "namespace": DATA}
)
RESOURCES = st.builds(
    lambda api_version, kind, metadata, fields: {
        **fields,
        "apiVersion": api_version,
        "kind": kind,
        "metadata": metadata,
    },
    st.sampled_from(API_VERSIONS),
    st.sampled_from(KINDS),
    METADATA,
    st.dictionaries(st.sampled_from(FIELDS), DATA, max_size=3),
)
CONFIGURATIONS = st.none() | st.builds(
    lambda kind, fields: {
        **fields,
        "apiVersion": "v1" if kind in ("ConfigMap", "List") else "fn.kpt.dev/v1alpha1",
        "kind": kind,
        "metadata": {"name": "c"},
    },
    st.sampled_from(CONFIGS),
    st.dictionaries(st.sampled_from(FIELDS), DATA, max_size=4),
)
VERSIONS = st.sampled_from([(0, 1, 0), (0, 1, 2), (0, 2, 0), (0, 3, 0), (0, 4, 1), (9, 9, 9)])


def items(resources: list[Any], path: str) -> list[Item]:
    documents = [build_document(resource) for resource in resources]
    return [Item("", path, number, document.data, number, document) for number, document in enumerate(documents)]


def comparable(output: FunctionOutput) -> tuple[Any, ...]:
    texts = [(item.path, item.index, item.id, item.document.text) for item in output.items]
    return texts, [result.as_data() for result in output.results], output.has_failed


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("name", sorted(BUILTIN_FUNCTIONS.releases))
@settings(max_examples=examples(40), deadline=None)
@given(
    resources=st.lists(RESOURCES, max_size=3),
    path=st.sampled_from(["r.yaml", "Kptfile"]),
    configuration=CONFIGURATIONS,
    profile=st.sampled_from(["safe", "compat"]),
    version=VERSIONS,
)
def test_functions_answer(
    name: str, resources: list[Any], path: str, configuration: Any, profile: Profile, version: tuple[int, int, int]
) -> None:
    function, context = BUILTIN_FUNCTIONS.releases[name][-1].function, FunctionContext(profile, version)

    assert comparable(function(items(resources, path), configuration, context)) == comparable(
        function(items(resources, path), configuration, context)
    )
