"""The request to render a chart for one PackageVariant, from its field `spec.helm` and from the target cluster."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.helm_options import HelmOptions
from reconciler.api.manifest import KUBERNETES_VERSION_ANNOTATION
from reconciler.api.package_sources import RepositoryType
from reconciler.api.porch import PackageVariantSpec
from reconciler.controllers.repositories import Repository
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.charts.request import ChartRequest, HookPolicy
from reconciler.packages.charts.value_sources import ChartValues
from reconciler.packages.source_kinds import CHART_FILE

API_VERSIONS_ANNOTATION = "reconciler.dev/api-versions"
ALLOWED_SECRETS_ANNOTATION = "reconciler.dev/allow-plaintext-secrets"
CLUSTER_ANNOTATIONS = (KUBERNETES_VERSION_ANNOTATION, API_VERSIONS_ANNOTATION)
"""The annotations of clusters that affect the render of charts."""


@dataclass(frozen=True)
class ChartDefaults:
    """Values of the settings for options that neither the PackageVariant nor the cluster defines.

    Attributes:
        kube_version: The Kubernetes version, e.g. "1.34.0".
        hooks: Which hooks are written.
    """

    kube_version: str = "1.34.0"
    hooks: HookPolicy = "keep"


def build_chart_request(
    spec: PackageVariantSpec,
    helm: HelmOptions,
    values: ChartValues,
    target: Repository,
    annotations: Mapping[str, str],
    identity: str,
    defaults: ChartDefaults,
) -> ChartRequest:
    """Return the request to render the chart of a PackageVariant.

    Args:
        values: The values that the options request.
        target: The Repository of the cluster.
        annotations: The annotations of the object that requests the package.
        identity: A text that identifies the package, for fixed values instead of random values.
    """
    cluster_version = target.annotations.get(KUBERNETES_VERSION_ANNOTATION, "")
    return ChartRequest(
        release_name=helm.release_name or spec.downstream.package.rpartition("/")[2],
        namespace=helm.namespace,
        kube_version=helm.kube_version or cluster_version or defaults.kube_version,
        values=values.config_text,
        api_versions=helm.api_versions or _split(target.annotations.get(API_VERSIONS_ANNOTATION, "")),
        set_namespace=helm.set_namespace,
        create_namespace=helm.create_namespace,
        include_crds=helm.include_crds,
        skip_tests=helm.skip_tests,
        hooks=helm.hooks or defaults.hooks,
        skip_schema_validation=helm.skip_schema_validation,
        on_nondeterminism=helm.on_nondeterminism,
        identity=identity,
        allowed_secrets=read_allowed_secrets(spec, annotations),
    )


def read_allowed_secrets(spec: PackageVariantSpec, annotations: Mapping[str, str]) -> tuple[str, ...]:
    """Return the Secrets with values that an annotation allows, as "Kind/name".

    Args:
        annotations: The annotations of the object that requests the package.
    """
    text = spec.annotations.get(ALLOWED_SECRETS_ANNOTATION) or annotations.get(ALLOWED_SECRETS_ANNOTATION)
    return _split(text or "")


def find_option_error(spec: PackageVariantSpec, kind: str, repository_type: RepositoryType) -> str:
    """Return the error about the options `helm` and `kustomize` for a source. Return "" if there is none."""
    if kind == "helm" and spec.helm is None:
        return "spec.helm.namespace must be set, because the upstream is a Helm chart"
    if kind != "helm" and spec.helm is not None:
        return f"spec.helm is not allowed, because the upstream has no {CHART_FILE}"
    if kind != "kustomize" and spec.kustomize is not None:
        return f"spec.kustomize is not allowed, because spec.upstream.kind is {kind}"
    if spec.helm and spec.helm.output == "helmRelease" and repository_type == "git":
        return (
            "spec.helm.output helmRelease requires an upstream Repository of type helm or oci, because Flux downloads "
            f"the chart; Repository {spec.main_upstream.repo} has type git"
        )
    return ""


def _split(text: str) -> tuple[str, ...]:
    return tuple(filter(None, (part.strip() for part in text.split(","))))
