"""The kind Tenant: a team, its folders of the config, and everything that these folders may use."""

from collections.abc import Iterator, Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from reconciler.api.base import ApiModel, FieldIssue
from reconciler.api.field_types import NOT_EMPTY, LabelSelectorFields, NonEmptyText
from reconciler.api.manifest import Manifest
from reconciler.api.reconciler import RECONCILER_API_VERSION
from reconciler.krm.names import validate_dns_label

_Globs = tuple[NonEmptyText, ...]


class TenantTargets(ApiModel):
    """The targets of a tenant."""

    selector: LabelSelectorFields = Field(
        description="The labels of the clusters and Repositories that the tenant may deploy to."
    )


class TenantFunctions(ApiModel):
    """The functions that packages of a tenant may run."""

    images: _Globs = Field(
        (),
        description="Patterns for the images of functions that packages may run.",
        examples=[["ghcr.io/kptdev/krm-functions-catalog/*"]],
    )
    exec: _Globs = Field((), description="Patterns for the programs that may run as functions of packages.")
    starlark: bool = Field(False, strict=True, description="Whether packages may run Starlark scripts.")
    network: bool = Field(
        False, strict=True, description="Must be false, because functions of tenants never have access to the network."
    )

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue if `network` is true, because functions of tenants never have access to the network."""
        if data.get("network") is True:
            yield FieldIssue("{path} must be false: functions of tenants have no access to the network", ("network",))


class TenantAllow(ApiModel):
    """Everything that a tenant may use. An empty list allows nothing.

    In a pattern, `*` matches any text without a slash, and `**` matches any text.
    """

    upstreams: _Globs = Field(
        (),
        description="Patterns for the upstream repositories, as host and path.",
        examples=[["git.example.com/payments/**"]],
    )
    targets: TenantTargets | None = Field(None, description="The targets that the tenant may deploy to.")
    kinds: _Globs = Field(
        (),
        description="Patterns for the kinds of the config objects that the tenant may define, as <kind>.<group>.",
        examples=[["PackageVariant.config.porch.kpt.dev", "ConfigMap"]],
    )
    packages: _Globs = Field(
        (), description="Patterns for the paths of the tenant's packages on a target.", examples=[["payments/**"]]
    )
    namespaces: _Globs = Field(
        (), description="Patterns for the namespaces of the tenant's config objects and rendered resources."
    )
    cluster_scoped_resources: _Globs = Field(
        (),
        description="Patterns for the kinds of rendered resources without a namespace, as <kind>.<group>.",
        examples=[["Namespace", "ClusterRole.rbac.authorization.k8s.io"]],
    )
    functions: TenantFunctions = TenantFunctions()
    reference: _Globs = Field(
        (),
        description="Patterns for the exported objects of other tenants that the tenant may use, as <tenant>.<name>.",
        examples=[["policies.shared"]],
    )


class TenantLimits(ApiModel):
    """Limits for the objects of a tenant."""

    packages: Annotated[int, Field(strict=True, ge=0)] | None = Field(
        None, description="The largest number of packages of the tenant on all targets. The default is no limit."
    )
    max_delete_percent: Annotated[int, Field(strict=True, ge=0, le=100)] | None = Field(
        None,
        description="The largest percentage of packages that one change may delete. A smaller value of the setting"
        " guards.max_delete_percent applies instead.",
    )
    cel_steps: Annotated[int, Field(strict=True, ge=1)] | None = Field(
        None,
        description="The largest number of steps of one expression. A smaller value of the setting limits.cel.steps"
        " applies instead.",
    )


class TenantSpec(ApiModel):
    """The folders and rights of a tenant."""

    directories: Annotated[_Globs, *NOT_EMPTY] = Field(
        description="Patterns for the config files of the tenant.", examples=[["teams/payments/**"]]
    )
    allow: TenantAllow = TenantAllow()
    limits: TenantLimits = TenantLimits()


class Tenant(Manifest):
    """A team with its folders of the config, and the repositories, targets, kinds and functions that it may use."""

    api_versions: ClassVar = (RECONCILER_API_VERSION,)
    scope: ClassVar = "cluster"

    spec: TenantSpec

    @classmethod
    def find_issues(cls, data: Mapping[str, Any]) -> Iterator[FieldIssue]:
        """Yield an issue for a name that is not a DNS label. A dot is not allowed in the name of a tenant."""
        yield from super().find_issues(data)
        metadata = data.get("metadata")
        name = metadata.get("name") if isinstance(metadata, Mapping) else None
        if isinstance(name, str) and (reason := validate_dns_label(name)):
            yield FieldIssue(f"{{path}} is not a valid tenant name: {reason}", ("metadata", "name"))
