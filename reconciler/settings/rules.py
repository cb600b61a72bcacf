"""Settings of the controllers, and of the checks of rendered packages."""

from __future__ import annotations

from typing import Literal

from pydantic import field_validator

from reconciler.krm.json_pointer import PointerError, parse_pointer
from reconciler.krm.names import validate_dns_subdomain
from reconciler.settings.declaration import SettingsGroup, declare


class RuleSettings(SettingsGroup):
    """Behavior of the controllers, and of the checks of rendered packages."""

    on_missing_policy: Literal["fail", "ignore"] = declare(
        "fail",
        "The behavior if a resource of a package names an override policy that does not exist. `fail`: no draft is "
        "created, and the published package does not change. `ignore`: the package is rendered without the policy.",
    )
    secrets: Literal["warn", "block"] = declare(
        "warn",
        "The behavior if a package contains a Secret with values, which would stay in the Git history permanently. "
        "`warn`: the draft is created, with a warning. `block`: no draft is created.",
    )
    pod_spec_paths: dict[str, str] = declare(
        {},
        "For each custom kind, the JSON pointer of the pod spec in resources of this kind, for example "
        "{apps.example/CloneSet: /spec/template/spec}.",
    )
    strict: list[str] = declare(
        [],
        "The codes of warnings that the reconciler reports as errors, which block the package. Only codes about "
        "override policies and Kafka templates are allowed, for example [ReplaceCreatedMember, ReservedLabel,"
        " UnknownTemplateProperty].",
    )
    central_cluster: str = declare(
        "",
        "The name of the cluster for Plugins without a clusterName. If this setting is empty, such Plugins have no "
        "target.",
    )
    base_domain: str = declare(
        "",
        "The value of the Plugin option global.greenhouse.baseDomain. If this setting is empty, Plugins do not get "
        "this option.",
    )
    expressions: bool = declare(
        True,
        "Whether options of Plugins can contain expressions. If the value is false, an option with an expression "
        "blocks its Plugin.",
    )
    plugin_outputs: list[Literal["values", "helmrelease"]] = declare(
        [],
        "The additional files of each Plugin. `values`: the file values.yaml, which contains the Helm values except "
        "secrets. `helmrelease`: a Flux HelmRelease. Flux rejects a branch that contains values.yaml.",
    )
    runtime_composition: bool = declare(
        True,
        "Whether the config can contain objects of the kind Component. Such an object lists its addons itself. If "
        "the value is false, each component must be an object of a component type.",
    )
    template_mode: Literal["materialise", "report"] = declare(
        "materialise",
        "The handling of fields that a KafkaNodePool inherits from the templates of its Kafka. `materialise` copies "
        "these fields to the pool. `report` does not change the pool, and only reports these fields.",
    )
    crd_group: str = declare(
        "platform",
        "The API group of the CRDs that component types generate. If you install these CRDs on a cluster, the group "
        "must contain a dot.",
    )

    @field_validator("crd_group")
    @classmethod
    def _check_group(cls, value: str) -> str:
        if problem := validate_dns_subdomain(value):
            raise ValueError(f"must be an API group: {problem}")
        return value

    @field_validator("strict")
    @classmethod
    def _check_codes(cls, value: list[str]) -> list[str]:
        # Import here, so that commands that do not run controllers do not load the controllers.
        from reconciler.controllers.kafka_templates import codes as templates
        from reconciler.controllers.override_policies import codes as overrides

        allowed = overrides.WARNINGS | templates.WARNINGS
        if not allowed.issuperset(value):
            raise ValueError(
                f"must contain only warnings of override policies and templates: {', '.join(sorted(allowed))}"
            )
        return value

    @field_validator("pod_spec_paths")
    @classmethod
    def _check_pointers(cls, value: dict[str, str]) -> dict[str, str]:
        for kind, path in value.items():
            if not kind.rpartition("/")[2] or kind.count("/") > 1:
                raise ValueError("must have keys of the form group/Kind, for example apps.example/CloneSet")
            try:
                parse_pointer(path)
            except PointerError:
                raise ValueError("must have JSON pointers as values, for example /spec/template/spec") from None
        return value
