"""The Strimzi kinds Kafka and KafkaNodePool. The reconciler reads only the templates in these objects."""

from collections.abc import Mapping
from typing import Annotated, Any, ClassVar

from pydantic import Field

from reconciler.api.base import ApiModel
from reconciler.api.manifest import Manifest

_STRIMZI_VERSIONS = ("kafka.strimzi.io/v1", "kafka.strimzi.io/v1beta2")
CLUSTERS_ANNOTATION_SCHEMA: Mapping[str, Mapping[str, Any]] = {
    "reconciler.dev/clusters": {
        "examples": ["berlin, lisbon", "*"],
        "description": "Comma-separated names of the target clusters. * selects all clusters.",
    }
}
_Property = Annotated[dict[str, Any] | None, Field(json_schema_extra={"properties": {}})]


def _describe_shared(text: str) -> Any:
    return Field(
        None,
        description=(
            f"{text} In a KafkaNodePool, the value null inherits the property of the Kafka, and the value {{}} "
            "inherits nothing."
        ),
    )


def _describe_parent_only(text: str) -> Any:
    return Field(None, description=f"{text} A KafkaNodePool cannot contain this property.")


class KafkaPoolTemplate(ApiModel):
    """Template for the resources that the operator creates."""

    is_open: ClassVar = True

    pod_set: _Property = _describe_shared("Template of the pod set.")
    pod: _Property = _describe_shared("Template of pods.")
    per_pod_service: _Property = _describe_shared("Template of the services of single brokers.")
    per_pod_route: _Property = _describe_shared("Template of the routes of single brokers.")
    per_pod_ingress: _Property = _describe_shared("Template of the ingresses of single brokers.")
    persistent_volume_claim: _Property = _describe_shared("Template of volume claims.")
    kafka_container: _Property = _describe_shared("Template of the broker's container.")
    init_container: _Property = _describe_shared("Template of the init container.")


class KafkaTemplate(KafkaPoolTemplate):
    """Template for the resources that the operator creates."""

    bootstrap_service: _Property = _describe_parent_only("Template of the bootstrap service.")
    brokers_service: _Property = _describe_parent_only("Template of the brokers' service.")
    external_bootstrap_service: _Property = _describe_parent_only("Template of the external bootstrap service.")
    external_bootstrap_route: _Property = _describe_parent_only("Template of the external bootstrap route.")
    external_bootstrap_ingress: _Property = _describe_parent_only("Template of the external bootstrap ingress.")
    pod_disruption_budget: _Property = _describe_parent_only("Template of the disruption budget.")
    cluster_ca_cert: _Property = _describe_parent_only("Template of the CA's secret.")
    cluster_role_binding: _Property = _describe_parent_only("Template of the role binding.")
    service_account: _Property = _describe_parent_only("Template of the service account.")
    jmx_secret: _Property = _describe_parent_only("Template of the secret for JMX.")


class KafkaBrokers(ApiModel):
    """The brokers of the Kafka cluster."""

    is_open: ClassVar = True

    template: KafkaTemplate = KafkaTemplate()


class KafkaSpec(ApiModel):
    """The spec that Strimzi defines. The reconciler reads only the template."""

    is_open: ClassVar = True

    kafka: KafkaBrokers = KafkaBrokers()


class Kafka(Manifest):
    """A Kafka cluster. Its pools inherit the template in spec.kafka."""

    api_versions: ClassVar = _STRIMZI_VERSIONS
    is_open: ClassVar = True
    is_spec_optional: ClassVar = True
    annotation_schemas: ClassVar = CLUSTERS_ANNOTATION_SCHEMA

    spec: KafkaSpec = KafkaSpec()


class KafkaNodePoolSpec(ApiModel):
    """The spec that Strimzi defines. The reconciler reads only the template."""

    is_open: ClassVar = True

    replicas: Any = Field(None, description="Number of nodes.")
    roles: Any = Field(None, description="Roles of the nodes.")
    template: KafkaPoolTemplate = KafkaPoolTemplate()


class KafkaNodePool(Manifest):
    """A node pool of the Kafka that the label strimzi.io/cluster names."""

    api_versions: ClassVar = _STRIMZI_VERSIONS
    is_open: ClassVar = True
    is_spec_optional: ClassVar = True
    label_schemas: ClassVar = {
        "strimzi.io/cluster": {
            "type": ["string", "null"],
            "description": "Name of the Kafka in the same namespace.",
        }
    }
    annotation_schemas: ClassVar = {
        **CLUSTERS_ANNOTATION_SCHEMA,
        "reconciler.dev/template-mode": {
            "examples": ["report"],
            "description": (
                "materialise: the effective template is written into the KafkaNodePool. report: the "
                "effective template is only shown in the status file."
            ),
        },
    }

    spec: KafkaNodePoolSpec = KafkaNodePoolSpec()
