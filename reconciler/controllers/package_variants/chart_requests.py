"""The options of the render of one PackageVariant, from `spec.helm`, `spec.kustomize` and the target cluster."""

from __future__ import annotations

from collections.abc import Mapping

from reconciler.api.helm_options import HelmOptions
from reconciler.api.kustomize_options import KustomizeOptions
from reconciler.api.manifest import KUBERNETES_VERSION_ANNOTATION
from reconciler.api.package_sources import RepositoryType
from reconciler.api.porch.package_variant import PackageVariantSpec
from reconciler.controllers.package_variants.chart_values import CollectedValues
from reconciler.controllers.package_variants.kustomize_requests import build_kustomize_request
from reconciler.controllers.repositories import Repository
from reconciler.controllers.results import PackageTarget, UpstreamPackage
from reconciler.krm.field_text import split_list
from reconciler.lazy_dataclasses import dataclass, replace
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


@dataclass(frozen=True)
class RequestedChart:
    """The options of a chart, and its collected values."""

    options: HelmOptions
    collected: CollectedValues


@dataclass(frozen=True)
class RenderOptions:
    """Adds the options of the render to the upstream packages of one PackageVariant.

    Attributes:
        annotations: The annotations of the object that requests the package.
        target: The Repository of the cluster.
        package_target: The location of the package. A render replaces random values with fixed values that depend on
            this location.
    """

    spec: PackageVariantSpec
    annotations: Mapping[str, str]
    target: Repository
    package_target: PackageTarget
    defaults: ChartDefaults

    def add(
        self, package: UpstreamPackage, kustomize: KustomizeOptions | None, chart: RequestedChart | None
    ) -> UpstreamPackage:
        """Return the upstream package with the request to render its chart or to build its overlay."""
        secrets = self._read_allowed_secrets()
        package = replace(package, allowed_secrets=secrets)
        if package.kind == "kustomize":
            charts = self._build_overlay_charts(secrets)
            package = replace(package, overlay=build_kustomize_request(kustomize, charts))
        if chart:
            release = chart.collected.secrets if chart.options.output == "helmRelease" else None
            request = self._build_chart_request(chart.options, chart.collected.values, secrets)
            package = replace(package, chart=request, values=chart.collected.values, release=release)
        return package

    @property
    def _kube_version(self) -> str:
        return self.target.annotations.get(KUBERNETES_VERSION_ANNOTATION) or self.defaults.kube_version

    @property
    def _api_versions(self) -> tuple[str, ...]:
        return split_list(self.target.annotations.get(API_VERSIONS_ANNOTATION, ""))

    def _read_allowed_secrets(self) -> tuple[str, ...]:
        """Return the Secrets that may contain values according to an annotation, as "Kind/name"."""
        name = ALLOWED_SECRETS_ANNOTATION
        return split_list(self.spec.annotations.get(name) or self.annotations.get(name) or "")

    def _build_overlay_charts(self, secrets: tuple[str, ...]) -> ChartRequest:
        """Return the options for rendering the charts in an overlay.

        The overlay contains the release name, the namespace and the values of each chart. Therefore, the options do not
        contain them.
        """
        return ChartRequest(
            release_name="",
            namespace="",
            kube_version=self._kube_version,
            api_versions=self._api_versions,
            set_namespace="none",
            hooks=self.defaults.hooks,
            allowed_secrets=secrets,
        )

    def _build_chart_request(self, helm: HelmOptions, values: ChartValues, secrets: tuple[str, ...]) -> ChartRequest:
        return ChartRequest(
            release_name=helm.release_name or self.package_target.package.rpartition("/")[2],
            namespace=helm.namespace,
            kube_version=helm.kube_version or self._kube_version,
            values=values.config_text,
            api_versions=helm.api_versions or self._api_versions,
            set_namespace=helm.set_namespace,
            create_namespace=helm.create_namespace,
            include_crds=helm.include_crds,
            skip_tests=helm.skip_tests,
            hooks=helm.hooks or self.defaults.hooks,
            skip_schema_validation=helm.skip_schema_validation,
            on_nondeterminism=helm.on_nondeterminism,
            identity=str(self.package_target),
            allowed_secrets=secrets,
        )


def find_option_error(spec: PackageVariantSpec, kind: str, repository_type: RepositoryType) -> str:
    """Return the error about the options `helm` and `kustomize` for a source. Return "" if there is none."""
    if kind == "helm" and spec.helm is None:
        return "spec.helm.namespace must be set, because the upstream is a Helm chart"
    if kind != "helm" and spec.helm is not None:
        return f"spec.helm is not allowed, because the upstream has no {CHART_FILE}"
    if kind != "kustomize" and spec.kustomize is not None:
        return f'spec.kustomize is not allowed, because spec.upstream.kind is "{kind}"'
    if spec.helm and spec.helm.output == "helmRelease" and repository_type == "git":
        return (
            'spec.helm.output "helmRelease" requires an upstream Repository of the type "helm" or "oci",'
            " because Flux downloads "
            f'the chart; Repository "{spec.main_upstream.repo}" has the type "git"'
        )
    return ""
