"""A chart as a HelmRelease of Flux, instead of its rendered resources. Flux renders the chart on the cluster."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from reconciler.catalog.files import File, FileTree
from reconciler.krm.helm_paths import parse_option_name
from reconciler.krm.json_text import format_canonical_json
from reconciler.krm.objects import ObjectKey, split_api_version
from reconciler.krm.values_tree import PlaceError, ValuesTree, is_free
from reconciler.krm.yaml import emit
from reconciler.lazy_dataclasses import dataclass, replace
from reconciler.packages.artifacts import CHART_LAYER, ArtifactRepository, ArtifactVersion, VerifySpec
from reconciler.packages.charts.request import ChartRequest, HookPolicy
from reconciler.packages.file_names import assign_rendered_file_names
from reconciler.packages.package import Package

HELM_RELEASE_API_VERSION: Final = "helm.toolkit.fluxcd.io/v2"
HELM_RELEASE_KIND: Final = "HelmRelease"
_SOURCE_API_VERSION: Final = "source.toolkit.fluxcd.io/v1"
_INTERVAL: Final = "5m"
_FIELD_ORDER: Final = (
    "interval", "timeout", "maxHistory", "releaseName", "targetNamespace", "storageNamespace", "chart", "chartRef",
    "install", "upgrade", "driftDetection", "suspend", "kubeConfig", "dependsOn", "valuesFrom", "values",
)  # fmt: skip
_MAX_NAME_LENGTH: Final = 253
_MAX_TARGET_PATH_LENGTH: Final = 250
_TARGET_PATH = re.compile(r"([a-zA-Z0-9_\-.\\/]|\[[0-9]{1,5}\])+", re.ASCII)
_VALUES_KEY = re.compile(r"[-._a-zA-Z0-9]+", re.ASCII)


@dataclass(frozen=True)
class SecretValues:
    """Values from a Secret on the cluster. Flux reads the Secret.

    Attributes:
        target_path: Path in the values, in the syntax of `helm --set`. "" if the Secret contains a map of values.
    """

    name: str
    values_key: str = "values.yaml"
    target_path: str = ""
    is_optional: bool = False

    def as_data(self) -> dict[str, Any]:
        """Return the item of `valuesFrom` in a HelmRelease."""
        fields = {"valuesKey": self.values_key, "targetPath": self.target_path, "optional": self.is_optional}
        return {"kind": "Secret", "name": self.name, **{name: value for name, value in fields.items() if value}}


@dataclass(frozen=True)
class ReleasedChart:
    """A version of a chart that Flux downloads."""

    repository: ArtifactRepository
    name: str
    version: ArtifactVersion


@dataclass(frozen=True)
class ReleaseInputs:
    """The names and namespaces of a HelmRelease, and of the Helm release that Flux creates for it.

    Attributes:
        name: The name of the HelmRelease.
        namespace: The namespace of the HelmRelease.
        release_name: The name of the Helm release.
        target_namespace: The namespace of the Helm release and of its resources.
    """

    name: str
    namespace: str
    release_name: str
    target_namespace: str


def build_helm_release(
    inputs: ReleaseInputs, values: Mapping[str, Any], secrets: Sequence[SecretValues], options: Mapping[str, Any]
) -> dict[str, Any]:
    """Return a HelmRelease.

    PluginPresets and package variants with a chart use this function, so that equal inputs give equal HelmReleases.

    Args:
        options: Other fields of the spec, such as the reference to the chart. Empty fields are omitted.
    """
    fields = {
        "interval": _INTERVAL,
        "releaseName": inputs.release_name,
        "targetNamespace": inputs.target_namespace,
        "storageNamespace": inputs.target_namespace,
        "valuesFrom": [secret.as_data() for secret in secrets],
        "values": dict(values),
        **options,
    }
    spec = {name: fields[name] for name in sorted(fields, key=_FIELD_ORDER.index) if fields[name] not in ({}, [])}
    metadata = {"name": inputs.name, "namespace": inputs.namespace}
    return {"apiVersion": HELM_RELEASE_API_VERSION, "kind": HELM_RELEASE_KIND, "metadata": metadata, "spec": spec}


def build_release_files(
    chart: ReleasedChart, request: ChartRequest, values: Mapping[str, Any], secrets: Sequence[SecretValues]
) -> FileTree:
    """Return the files with the HelmRelease of a chart, and with the Flux source from which Flux downloads the chart.

    Both resources are in the namespace of the release. If `request.create_namespace` is True, the files also contain
    this Namespace.
    """
    metadata = {"name": request.release_name, "namespace": request.namespace}
    resources = [
        _build_registry_source(chart, metadata) if chart.repository.is_registry else _build_source(chart, metadata),
        _build_release(chart, request, metadata, values, secrets),
    ]
    if request.create_namespace:
        resources.append({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": request.namespace}})
    by_key = {_get_key(resource): resource for resource in resources}
    names = assign_rendered_file_names(by_key)
    return FileTree({names[key]: File(emit(resource).encode()) for key, resource in by_key.items()})


def find_release_specs(files: FileTree) -> dict[str, Mapping[str, Any]]:
    """Return the spec of each HelmRelease in the files of a package. The keys are `targetNamespace/releaseName`."""
    specs = (
        resource.data.get("spec")
        for resource in Package(files).resources
        if (resource.api_version, resource.kind) == (HELM_RELEASE_API_VERSION, HELM_RELEASE_KIND)
    )
    return {
        f"{spec.get('targetNamespace')}/{spec.get('releaseName')}": spec for spec in specs if isinstance(spec, Mapping)
    }


def build_preview_request(request: ChartRequest, spec: Mapping[str, Any]) -> ChartRequest:
    """Return the request for the resources that Flux creates for a HelmRelease.

    Args:
        request: The request of the package. It has the fields that a HelmRelease does not contain, such as the versions
            of the cluster.
        spec: The spec of a HelmRelease from `build_release_files`, which local changes and policies can have changed.
    """
    values, install = (field if isinstance(field := spec.get(name), Mapping) else {} for name in ("values", "install"))
    hooks: HookPolicy = "keep" if request.hooks == "drop" else request.hooks
    return replace(
        request.as_preview(),
        release_name=str(spec.get("releaseName")),
        namespace=str(spec.get("targetNamespace")),
        values=format_canonical_json(values),
        include_crds=install.get("crds") != "Skip",
        hooks="drop" if install.get("disableHooks") else hooks,
        skip_schema_validation=bool(install.get("disableSchemaValidation")),
    )


def find_shadowed_secrets(values: Mapping[str, Any], secrets: Sequence[SecretValues]) -> Iterator[SecretValues]:
    """Yield each Secret whose value has no effect, because the field `values` of the HelmRelease also sets its path.

    Flux merges `values` over the values from Secrets (`valuesFrom`).
    """
    for secret in secrets:
        if secret.target_path and not is_free(values, parse_option_name(secret.target_path)):
            yield secret


def check_reference(secret: SecretValues) -> Iterator[tuple[str, str, str]]:
    """Check the fields of a reference to a Secret against the schema of HelmReleases.

    Yield the name, the value and the requirement of each field that the schema rejects.
    """
    path = secret.target_path
    if len(path) > _MAX_TARGET_PATH_LENGTH:
        yield "targetPath", path, f"at most {_MAX_TARGET_PATH_LENGTH} characters, but has {len(path)}"
    if path and not _TARGET_PATH.fullmatch(path):
        yield "targetPath", path, "only ASCII letters, digits, -, _, ., / and \\, and up to 5 digits in brackets"
    for field_name, value in (("name", secret.name), ("valuesKey", secret.values_key)):
        if len(value) > _MAX_NAME_LENGTH:
            yield field_name, value, f"at most {_MAX_NAME_LENGTH} characters, but has {len(value)}"
    if not _VALUES_KEY.fullmatch(secret.values_key):
        yield "valuesKey", secret.values_key, 'only ASCII letters, digits, "-", "_" and "."'


def find_overlaps(secrets: Sequence[SecretValues]) -> Iterator[tuple[SecretValues, str]]:
    """Yield each Secret whose target path is below the target path of another Secret, and the reason.

    Flux rejects such target paths.
    """
    tree = ValuesTree()
    for secret in secrets:
        if secret.target_path:
            try:
                tree.place(parse_option_name(secret.target_path), f"Secret {secret.name}", "")
            except PlaceError as error:
                yield secret, error.message


def _get_key(resource: Mapping[str, Any]) -> ObjectKey:
    metadata = resource["metadata"]
    group = split_api_version(resource["apiVersion"])[0]
    return ObjectKey(group, resource["kind"], metadata.get("namespace", ""), metadata["name"])


def _build_release(
    chart: ReleasedChart,
    request: ChartRequest,
    metadata: Mapping[str, str],
    values: Mapping[str, Any],
    secrets: Sequence[SecretValues],
) -> dict[str, Any]:
    name = {"name": metadata["name"]}
    options: dict[str, Any] = {}
    if request.hooks == "drop":
        options["disableHooks"] = True
    if request.skip_schema_validation:
        options["disableSchemaValidation"] = True
    install_crds, upgrade_crds = ("Create", "CreateReplace") if request.include_crds else ("Skip", "Skip")
    chart_spec = {
        "chart": chart.name,
        "version": chart.version.version,
        "sourceRef": {"kind": "HelmRepository", **name},
    }
    is_registry = chart.repository.is_registry
    inputs = ReleaseInputs(metadata["name"], metadata["namespace"], request.release_name, request.namespace)
    return build_helm_release(
        inputs,
        values,
        secrets,
        {
            **({"chartRef": {"kind": "OCIRepository", **name}} if is_registry else {"chart": {"spec": chart_spec}}),
            "install": {"crds": install_crds, **options},
            "upgrade": {"crds": upgrade_crds, **options},
        },
    )


def _build_registry_source(chart: ReleasedChart, metadata: Mapping[str, str]) -> dict[str, Any]:
    repository = chart.repository
    spec = {
        "interval": _INTERVAL,
        "url": f"{repository.url.rstrip('/')}/{chart.name}",
        # The digest alone selects the chart. Write the tag too, so that people can see the version.
        "ref": {"tag": chart.version.version.replace("+", "_"), "digest": chart.version.digest},
        "layerSelector": {"mediaType": CHART_LAYER, "operation": "copy"},
        **({"insecure": True} if repository.insecure else {}),
        **_build_references(repository),
        **({"verify": _build_verification(repository.verify)} if repository.verify else {}),
    }
    return {"apiVersion": _SOURCE_API_VERSION, "kind": "OCIRepository", "metadata": dict(metadata), "spec": spec}


def _build_source(chart: ReleasedChart, metadata: Mapping[str, str]) -> dict[str, Any]:
    repository = chart.repository
    spec = {
        "interval": _INTERVAL,
        "url": repository.url,
        **({"passCredentials": True} if repository.pass_credentials else {}),
        **_build_references(repository),
    }
    return {"apiVersion": _SOURCE_API_VERSION, "kind": "HelmRepository", "metadata": dict(metadata), "spec": spec}


def _build_references(repository: ArtifactRepository) -> dict[str, Any]:
    """Return the fields with references to Secrets on the cluster, from which Flux reads credentials and certificates.

    These Secrets must have the same names as the folders from which the reconciler reads credentials and certificates.
    """
    names = {"secretRef": repository.secret_name, "certSecretRef": repository.cert_secret_name}
    return {field: {"name": name} for field, name in names.items() if name}


def _build_verification(verify: VerifySpec) -> dict[str, Any]:
    identities = [{"issuer": identity.issuer, "subject": identity.subject} for identity in verify.identities]
    return {
        "provider": verify.provider,
        **({"secretRef": {"name": verify.secret_name}} if verify.secret_name else {}),
        **({"matchOIDCIdentity": identities} if identities else {}),
    }
