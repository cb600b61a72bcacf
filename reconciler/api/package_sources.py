"""Sources of packages besides Git: chart repositories and OCI registries, in the field names of Helm and Flux."""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, StrictBool

from reconciler.api.base import ApiModel, FieldIssue, issue
from reconciler.api.field_types import NonEmptyText, check_text
from reconciler.krm.field_text import quote_value
from reconciler.krm.json_text import DIGEST_PATTERN
from reconciler.krm.names import validate_dns_subdomain
from reconciler.redaction import has_credentials, redact_url

SourceKind = Literal["kpt", "helm", "kustomize", "manifests"]
"""How the files of a source become a package."""
RepositoryType = Literal["git", "helm", "oci"]

_CHART_NAME = re.compile(r"[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?")
_REGISTRY = re.compile(r"[A-Za-z0-9]([A-Za-z0-9.-]*[A-Za-z0-9])?(:[0-9]{1,5})?(/[a-z0-9]+([._-]+[a-z0-9]+)*)*")


def _check_digest(value: str) -> str:
    if not DIGEST_PATTERN.fullmatch(value):
        raise issue(f'{{path}} must be "sha256:" and 64 lowercase hexadecimal digits, but is {quote_value(value)}')
    return value


def _check_chart_name(value: str) -> str | None:
    return None if _CHART_NAME.fullmatch(value) else f"{quote_value(value)} is not the name of a chart"


def _check_version_type(value: object) -> object:
    if isinstance(value, int | float) and not isinstance(value, bool):
        # Reject numbers, because YAML reads 1.10 without quotes as the number 1.1.
        raise issue(f'{{path}}: must be a string; quote it: "{value}"')
    return value


Digest = Annotated[
    str, AfterValidator(_check_digest), Field(json_schema_extra={"pattern": f"^{DIGEST_PATTERN.pattern}$"})
]
ChartName = Annotated[str, check_text(_check_chart_name, "{path} is invalid")]
ChartVersion = Annotated[str, Field(min_length=1), BeforeValidator(_check_version_type)]
ObjectName = Annotated[NonEmptyText, check_text(validate_dns_subdomain, "{path} is invalid")]


def check_url_without_credentials(url: str) -> str:
    """Return the URL. Raise an issue if it contains credentials."""
    if has_credentials(url):
        advice = "put the credentials into a file, and refer to the file in the setting `sources.credentials_file`"
        text = f'must not contain a user name, password or token. Write "{redact_url(url)}"; {advice}'
        raise issue(f"{{path}} {text}", "CredentialInUrl")
    return url


def _check_chart_repository_url(url: str) -> str:
    check_url_without_credentials(url)
    scheme, _, rest = url.partition("://")
    if scheme not in ("https", "http", "oci") or not rest.strip("/") or "?" in rest or "#" in rest:
        raise issue(
            f"{{path}} must be an http:// or https:// URL of a folder with index.yaml, or an oci:// URL of a registry, "
            f"but is {quote_value(url)}"
        )
    return url


def _check_registry(registry: str) -> str:
    # Accept the prefix `oci://`, because Flux requires it in the URL of a registry.
    location = check_url_without_credentials(registry).removeprefix("oci://").rstrip("/")
    if not _REGISTRY.fullmatch(location):
        raise issue(f"{{path}} must have the form host[:port]/path, but is {quote_value(registry)}")
    return location


class SecretReference(ApiModel):
    """A folder with the keys of a Kubernetes Secret as files."""

    name: ObjectName = Field(description="Name of the folder below `<sources.secrets_directory>/<namespace>/`.")


class OidcIdentity(ApiModel):
    """The identity of a signer in a keyless signature. Both fields are regular expressions."""

    issuer: NonEmptyText = Field(description="Regular expression for the issuer of the identity token.")
    subject: NonEmptyText = Field(description="Regular expression for the subject of the identity token.")


class SourceVerification(ApiModel):
    """Required signatures of artifacts, in the field names of Flux."""

    provider: Literal["cosign", "provenance"] = Field(
        description="cosign: signatures in the registry. provenance: `.prov` files of a chart repository."
    )
    secret_ref: SecretReference | None = Field(None, description="Folder with the public keys.")
    match_oidc_identity: tuple[OidcIdentity, ...] = Field(
        (), alias="matchOIDCIdentity", description="Signers whose keyless signatures are accepted."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if no field defines the accepted signers.

        Also yield an issue if matchOIDCIdentity is set for the provider `provenance`.
        """
        if not data.get("secretRef") and not data.get("matchOIDCIdentity"):
            yield FieldIssue("{path} must specify secretRef or matchOIDCIdentity")
        if data.get("provider") == "provenance" and data.get("matchOIDCIdentity"):
            yield FieldIssue('{path} requires provider "cosign"', ("matchOIDCIdentity",))


class ArtifactRepositoryFields(ApiModel):
    """Fields that chart repositories and OCI registries share."""

    insecure: StrictBool = Field(
        False,
        description="Whether to use plain HTTP. The host must be a loopback address or in the setting"
        " `sources.insecure_hosts`.",
    )
    verify: SourceVerification | None = None
    secret_ref: SecretReference | None = Field(None, description="Folder with the credentials.")
    cert_secret_ref: SecretReference | None = Field(None, description="Folder with certificates for TLS.")


class HelmRepository(ArtifactRepositoryFields):
    """A chart repository."""

    url: Annotated[NonEmptyText, AfterValidator(_check_chart_repository_url)] = Field(
        description="https:// or http:// URL of a folder that contains index.yaml, or oci://host[:port]/path.",
        examples=["https://charts.example.com/stable", "oci://registry.example.com/charts"],
    )
    pass_credentials: StrictBool = Field(
        False,
        description="Whether to send the credentials also to other hosts that index.yaml names, and the credentials"
        " of the "
        "settings also to URLs outside of the folder of index.yaml.",
    )


class LayerSelector(ApiModel):
    """The layer of an artifact that contains the files of the package."""

    media_type: str = Field(
        "", description="Media type of the layer. The default is the first layer that is a tar+gzip archive."
    )
    operation: Literal["extract"] = Field("extract", description="Only extract is supported.")


class OciRepository(ArtifactRepositoryFields):
    """A part of an OCI registry. The package p is at `<registry>/p`."""

    registry: Annotated[NonEmptyText, AfterValidator(_check_registry)] = Field(
        description="Host, port and path, without a scheme.", examples=["registry.example.com/platform/packages"]
    )
    layer_selector: LayerSelector = LayerSelector()
    ignore: str = Field("", description="Files to leave out, in the syntax of .gitignore.")

    @classmethod
    def convert(cls, data: dict[str, Any], notify: Callable[[str, str], None]) -> dict[str, Any]:
        """Read the field `url` of Flux as `registry`."""
        if "url" not in data or "registry" in data:
            return data
        notify("url", "{path} is read as {parent}registry")
        return {"registry": data["url"], **{name: value for name, value in data.items() if name != "url"}}
