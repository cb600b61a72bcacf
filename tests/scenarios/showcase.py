"""Expected values of the showcase.

The values were derived by hand from the files of the showcase. A change of a file in `fixtures/showcase` requires new
values in the rows of its controller. `layer`, `by` and `file` belong to the provenance step that sets the final value.
`given` is the source of a value that a template reads.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Literal

Cluster = Literal["berlin", "boston", "chicago", "lisbon"]

GATEWAY = "gateway"
IN_CATALOG = "catalog/gateway gateway/v1"
SET_NAMESPACE, SET_LABELS, REPLACE = "set-namespace:v0.4.1", "set-labels:v0.2.0", "apply-replacements:v0.1.1"
DEPLOYMENT, SERVICE = "Deployment/edge/gateway", "Service/edge/gateway"
ENDPOINTS, CLUSTER = "ConfigMap/edge/endpoints", "ConfigMap/edge/cluster"
CONTEXT, KPTFILE = "ConfigMap/_cluster/kptfile.kpt.dev", "Kptfile/_cluster/gateway"
OUR_LABEL = "app.kubernetes.io~1name"
MAIN = "/spec/template/spec/containers/0"
GATEWAYS, MIRROR = "PackageVariantSet/default/gateway", "ClusterOverridePolicy/us-mirror"
NIGHT, SALES = "OverridePolicy/edge/night-market", "OverridePolicy/streams/night-sales"
US, EU = "ConfigMap/default/endpoints-us-east", "ConfigMap/default/endpoints-eu-west"

WATCHMAN = {city: (f"plugins/watchman-{city}", f"Plugin/shops/watchman-{city}") for city in ("boston", "chicago")}
PRESET, DEFINED = "PluginPreset/shops/watchman", "ClusterPluginDefinition/_cluster/watchman"

FAIR, MARKET = "components/fair/edge/numbers", "components/market/edge/numbers"
NUMBERS, FENCE = "Deployment/edge/numbers", "NetworkPolicy/edge/numbers-fence"
WEB_APP, FENCING, APP = "ComponentDefinition/_cluster/web-app", "Addon/_cluster/fence", "ShopApp/edge/numbers"
ALLOWED = "/spec/ingress/0/from/0/podSelector/matchLabels/app"

STREAMS = "resources/streams"
KAFKA = "Kafka/streams/sales"
CONTROLLERS, BROKERS = "KafkaNodePool/streams/controllers", "KafkaNodePool/streams/brokers"


@dataclass(frozen=True)
class Row:
    """The expected value of a resource field on the draft of a cluster, and the provenance step that sets it."""

    cluster: Cluster
    package: str
    resource: str
    pointer: str
    value: Any
    layer: str
    by: str = ""
    file: str = ""
    given: str = ""

    @property
    def id(self) -> str:
        """The short location of the value."""
        name = self.resource.rpartition("/")[2]
        return f"{self.cluster}-{self.resource.partition('/')[0]}-{name}{self.pointer}".replace("~1", ":")


PACKAGES: dict[Cluster, list[str]] = {
    "berlin": ["gateway", "monitoring", "resources/_cluster", "resources/edge"],
    "boston": ["gateway", "plugins/watchman-boston", "resources/_cluster", "resources/streams"],
    "chicago": [
        "components/market/edge/numbers", "gateway", "plugins/watchman-chicago", "resources/_cluster",
        "resources/streams",
    ],
    "lisbon": ["components/fair/edge/numbers", "gateway", "resources/_cluster", "resources/edge"],
}  # fmt: skip
"""The packages that each cluster is to have, and no other."""


def gateway(
    cluster: Cluster, resource: str, pointer: str, value: Any, layer: str, by: str = IN_CATALOG, file: str = ""
) -> Row:
    """Return a row for the gateway package."""
    return Row(cluster, GATEWAY, resource, pointer, value, layer, by, file)


IN_DEPLOYMENT, IN_KPTFILE = "gateway/deployment.yaml", "gateway/Kptfile"
VARIANTS = [
    # These values come from the catalog.
    gateway("chicago", DEPLOYMENT, "/kind", "Deployment", "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", DEPLOYMENT, "/metadata/name", "gateway", "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", DEPLOYMENT, "/spec/selector/matchLabels/app", "gateway", "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", DEPLOYMENT, f"{MAIN}/name", "gateway", "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", DEPLOYMENT, f"{MAIN}/ports/0/containerPort", 8443, "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", DEPLOYMENT, f"{MAIN}/envFrom/0/configMapRef/name", "endpoints", "upstream", file=IN_DEPLOYMENT),
    gateway("chicago", SERVICE, "/spec/ports/0/targetPort", 8443, "upstream", file="gateway/service.yaml"),
    gateway("chicago", SERVICE, "/spec/selector/app", "gateway", "upstream", file="gateway/service.yaml"),
    gateway("lisbon", DEPLOYMENT, "/spec/replicas", 2, "upstream", file=IN_DEPLOYMENT),
    gateway("boston", DEPLOYMENT, "/spec/replicas", 2, "upstream", file=IN_DEPLOYMENT),
    gateway(
        "lisbon", DEPLOYMENT, f"{MAIN}/image", "gateway.example.com/gateway:1.4.0", "upstream", file=IN_DEPLOYMENT
    ),
    gateway(
        "berlin", DEPLOYMENT, f"{MAIN}/image", "gateway.example.com/gateway:1.4.0", "upstream", file=IN_DEPLOYMENT
    ),
    gateway(
        "chicago", ENDPOINTS, "/metadata/annotations/kpt.dev~1config-injection", "required", "upstream",
        file="gateway/endpoints.yaml",
    ),
    # These values come from the objects of the region.
    gateway("chicago", ENDPOINTS, "/data/api", "https://api.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("chicago", ENDPOINTS, "/data/auth", "https://auth.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("boston", ENDPOINTS, "/data/api", "https://api.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("lisbon", ENDPOINTS, "/data/api", "https://api.eu-west.example.com", "injection", EU, "regions.yaml"),
    gateway("berlin", ENDPOINTS, "/data/auth", "https://auth.eu-west.example.com", "injection", EU, "regions.yaml"),
    gateway(
        "lisbon", ENDPOINTS, "/metadata/annotations/kpt.dev~1injected-resource-name", "endpoints-eu-west", "injection",
        EU, "regions.yaml",
    ),
    # These values come from the package context of the set.
    gateway("chicago", CONTEXT, "/data/cluster", "chicago", "context", GATEWAYS, "gateway.yaml"),
    gateway("berlin", CONTEXT, "/data/cluster", "berlin", "context", GATEWAYS, "gateway.yaml"),
    gateway("chicago", CONTEXT, "/data/name", "gateway", "context", "the reconciler, for the package name"),
    gateway("chicago", CLUSTER, "/data/name", "chicago", "function", REPLACE, IN_KPTFILE),
    gateway("boston", CLUSTER, "/data/name", "boston", "function", REPLACE, IN_KPTFILE),
    gateway("lisbon", CLUSTER, "/data/name", "lisbon", "function", REPLACE, IN_KPTFILE),
    # A function of the set and functions of the package set these values.
    gateway("chicago", DEPLOYMENT, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("lisbon", SERVICE, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("berlin", CLUSTER, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("chicago", DEPLOYMENT, f"/metadata/labels/{OUR_LABEL}", "gateway", "function", SET_LABELS, IN_KPTFILE),
    gateway(
        "chicago", DEPLOYMENT, f"/spec/template/metadata/labels/{OUR_LABEL}", "gateway", "function", SET_LABELS,
        IN_KPTFILE,
    ),
    gateway("boston", SERVICE, f"/spec/selector/{OUR_LABEL}", "gateway", "function", SET_LABELS, IN_KPTFILE),
    # These are fields of the Kptfile of the package.
    gateway(
        "chicago", KPTFILE, "/upstream/git/ref", "gateway/v1", "clone", "the reconciler, for the upstream of the package"
    ),
    gateway("chicago", KPTFILE, "/pipeline/mutators/0/image", SET_NAMESPACE, "pipeline", GATEWAYS, "gateway.yaml"),
    gateway("chicago", KPTFILE, "/pipeline/mutators/1/image", REPLACE, "upstream", file=IN_KPTFILE),
    # These values come from local changes.
    Row("chicago", GATEWAY, SERVICE, "/spec/ports/0/port", 8443, "draft", "a person, on the draft branch",
        "gateway/service.yaml"),
    Row("berlin", "monitoring", "DaemonSet/_cluster/collector", f"{MAIN}/args/0", "--interval=10s", "edit",
        "a person, on the target branch", "monitoring/collector.yaml"),
    Row("berlin", "monitoring", "DaemonSet/_cluster/collector", f"{MAIN}/image",
        "collector.example.com/collector:0.9.2", "upstream", "catalog/monitoring monitoring/v1",
        "monitoring/collector.yaml"),
    Row("berlin", "monitoring", "DaemonSet/_cluster/collector", "/metadata/annotations/example.com~1owner",
        "observability", "function", "set-annotations:v0.1.4", "monitoring.yaml"),
]  # fmt: skip

POLICIES = [
    gateway(
        "boston", DEPLOYMENT, f"{MAIN}/image", "mirror.us-east.example.com/gateway:1.4.0", "policy", MIRROR,
        "policies.yaml",
    ),
    # This policy applies after the policy for the mirror.
    gateway(
        "chicago", DEPLOYMENT, f"{MAIN}/image", "mirror.us-east.example.com/night/gateway:1.4.0", "policy", NIGHT,
        "policies.yaml",
    ),
    gateway("chicago", DEPLOYMENT, "/spec/replicas", 6, "policy", NIGHT, "policies.yaml"),
    gateway("chicago", DEPLOYMENT, f"{MAIN}/env/0/name", "SHIFT", "policy", NIGHT, "policies.yaml"),
    gateway("chicago", DEPLOYMENT, f"{MAIN}/env/0/value", "night", "policy", NIGHT, "policies.yaml"),
    gateway(
        "chicago", DEPLOYMENT, "/metadata/annotations/example.com~1market", "chicago", "policy", NIGHT, "policies.yaml"
    ),
    *(
        Row(city, "resources/edge", "ConfigMap/edge/site", "/data/title", f"our shop in {city}", "policy",
            "ClusterOverridePolicy/site-name", "policies.yaml")
        for city in ("berlin", "lisbon")
    ),
    Row("chicago", STREAMS, KAFKA, "/spec/kafka/template/pod/priorityClassName", "before-all-others", "policy", SALES,
        "policies.yaml"),
]  # fmt: skip


def option(
    cluster: Cluster, number: int, name: str, value: Any, layer: str, by: str = PRESET, file: str = "plugins.yaml"
) -> Row:
    """Return a row for an option of the watchman. The options are sorted by name."""
    package, watchman = WATCHMAN[cluster]
    return Row(cluster, package, watchman, f"/spec/optionValues/{number}", {"name": name, **value}, layer, by, file)


def plugin(cluster: Cluster, pointer: str, value: Any) -> Row:
    """Return a row for a watchman field that is not an option."""
    package, name = WATCHMAN[cluster]
    return Row(cluster, package, name, pointer, value, "generated", PRESET, "plugins.yaml")


def wrap_value(value: Any) -> dict[str, Any]:
    """Return the value of an option in the form of a Plugin."""
    return {"value": value}


TOKEN = {"valueFrom": {"secret": {"name": "watchman", "key": "token"}}}
ORGANIZATION = "Organization/_cluster/shops"
PRESETS = [
    # Only Chicago has these layers.
    option("chicago", 3, "interval", wrap_value(10), "preset-cluster"),
    option("chicago", 4, "keep.days", wrap_value(30), "override-cluster-definition", "PluginOverride/shops/history"),
    option("chicago", 6, "sampling", wrap_value("half"), "cluster", "Cluster/shops/chicago"),
    # Without these layers, the values come from lower layers.
    option("boston", 3, "interval", wrap_value(30), "preset"),
    option("boston", 4, "keep.days", wrap_value(14), "organization", ORGANIZATION),
    option("boston", 6, "sampling", wrap_value("all"), "definition-default", DEFINED),
    # Both clusters have these values.
    *(
        row
        for city in ("boston", "chicago")
        for row in (
            option(city, 5, "quiet", wrap_value(True), "default-generic", "PluginOverride/shops/quiet"),
            option(city, 7, "store.token", TOKEN, "preset"),
            option(city, 8, "store.url", wrap_value("https://store.us-east.example.com"), "preset"),
        )
    ),
    # The daemon injects these values, or generates them for all Plugins.
    option("chicago", 0, "global.greenhouse.clusterName", wrap_value("chicago"), "injected"),
    option("boston", 0, "global.greenhouse.clusterName", wrap_value("boston"), "injected"),
    option(
        "chicago", 1, "global.greenhouse.metadata.region", wrap_value("us-east"), "injected", "Cluster/shops/chicago"
    ),
    option("chicago", 2, "global.greenhouse.organizationName", wrap_value("shops"), "injected"),
    plugin("chicago", "/metadata/name", "watchman-chicago"),
    plugin("chicago", "/spec/clusterName", "chicago"),
    plugin("chicago", "/spec/displayName", "Watchman"),
    plugin("chicago", "/spec/releaseName", "watchman"),
    plugin("boston", "/spec/releaseNamespace", "watch"),
    plugin("boston", "/spec/pluginDefinitionRef/kind", "ClusterPluginDefinition"),
]


def build_component_row(
    cluster: Cluster, resource: str, pointer: str, value: Any, layer: str, by: str, text: str = ""
) -> Row:
    """Return a row for the component: the template that contains the value, and the source of the values that it
    reads.
    """
    return Row(cluster, FAIR if cluster == "lisbon" else MARKET, resource, pointer, value, layer, by, "apps.yaml", text)


OF_APP = f"{APP} apps.yaml"
COMPOSITION = [
    # Environments set the number of replicas, and Builds set the image.
    build_component_row("lisbon", NUMBERS, "/spec/replicas", 2, "definition", WEB_APP, "EnvBinding/edge/numbers-fair apps.yaml"),
    build_component_row("chicago", NUMBERS, "/spec/replicas", 4, "definition", WEB_APP, "EnvBinding/edge/numbers-market market.yaml"),
    build_component_row(
        "lisbon", NUMBERS, f"{MAIN}/image", "registry.example.com/numbers:1.0", "definition", WEB_APP,
        "Build/edge/numbers apps.yaml",
    ),
    build_component_row(
        "chicago", NUMBERS, f"{MAIN}/image", "registry.example.com/numbers-market:0.9", "definition", WEB_APP,
        "Build/edge/numbers.market market.yaml",
    ),
    # The addon has a default, and Chicago has another gateway.
    build_component_row("lisbon", FENCE, ALLOWED, "gateway", "addon", FENCING, f"{FENCING} apps.yaml"),
    build_component_row("chicago", FENCE, ALLOWED, "night-gateway", "addon", FENCING, "EnvBinding/edge/numbers-market market.yaml"),
    # These values are the same on both clusters.
    *(
        row
        for city in ("lisbon", "chicago")
        for row in (
            build_component_row(city, NUMBERS, "/kind", "Deployment", "definition", WEB_APP),
            build_component_row(city, NUMBERS, "/metadata/name", "numbers", "definition", WEB_APP, OF_APP),
            build_component_row(city, NUMBERS, "/metadata/namespace", "edge", "definition", WEB_APP, OF_APP),
            build_component_row(city, NUMBERS, "/spec/selector/matchLabels/app", "numbers", "definition", WEB_APP, OF_APP),
            build_component_row(city, NUMBERS, f"{MAIN}/name", "app", "definition", WEB_APP),
            build_component_row(city, NUMBERS, f"{MAIN}/ports/0/containerPort", 8080, "definition", WEB_APP, OF_APP),
            build_component_row(city, NUMBERS, "/spec/template/metadata/labels/fenced", "yes", "addon", FENCING),
            build_component_row(city, FENCE, "/metadata/name", "numbers-fence", "addon", FENCING, OF_APP),
            build_component_row(city, FENCE, "/spec/podSelector/matchLabels/app", "numbers", "addon", FENCING, OF_APP),
            build_component_row(city, FENCE, "/spec/policyTypes/0", "Ingress", "addon", FENCING),
        )
    ),
]  # fmt: skip


def stream(cluster: Cluster, resource: str, pointer: str, value: Any, layer: str, by: str = "", text: str = "") -> Row:
    """Return a row for the Kafka or one of its pools. The resource itself is the default for `by`."""
    return Row(cluster, STREAMS, resource, pointer, value, layer, by or resource, "streams.yaml", text)


POD, CONTAINER, CLAIM = (f"/spec/template/{item}" for item in ("pod", "kafkaContainer", "persistentVolumeClaim"))
TEMPLATES = [
    # The policy for Chicago changes the Kafka, and its pools inherit the change.
    *(
        stream(city, pool, f"{POD}/priorityClassName", value, "template", KAFKA, item)
        for city, value, item in (
            ("boston", "like-others", ""),
            ("chicago", "before-all-others", f"{SALES} policies.yaml"),
        )
        for pool in (CONTROLLERS, BROKERS)
    ),
    # The pools inherit these pod settings from the Kafka.
    *(
        row
        for city in ("boston", "chicago")
        for row in (
            stream(city, CONTROLLERS, f"{POD}/metadata/labels/team", "sales", "template", KAFKA),
            stream(city, BROKERS, f"{POD}/terminationGracePeriodSeconds", 60, "template", KAFKA),
            stream(
                city, CONTROLLERS, f"{CLAIM}/metadata/annotations/example.com~1backup", "weekly", "template", KAFKA
            ),
            stream(city, CONTROLLERS, f"{CONTAINER}/env/0/value", "America/New_York", "template", KAFKA),
            # The brokers have their own time zone, and no backup.
            stream(city, BROKERS, f"{CONTAINER}/env/0/value", "UTC", "resource"),
            stream(city, BROKERS, CLAIM, {}, "resource"),
            stream(city, BROKERS, "/spec/storage/size", "200Gi", "resource"),
            stream(city, CONTROLLERS, "/spec/roles/0", "controller", "resource"),
        )
    ),
    Row("chicago", STREAMS, CONTROLLERS, "/metadata/annotations/reconciler.dev~1materialised-template", "true",
        "template", "TemplateMergeRule/_cluster/kafka-node-pool"),
    stream("boston", KAFKA, "/spec/kafka/template/pod/priorityClassName", "like-others", "resource"),
    stream("chicago", KAFKA, "/spec/kafka/template/podDisruptionBudget/maxUnavailable", 1, "resource"),
    stream("chicago", KAFKA, "/spec/kafka/listeners/0/port", 9092, "resource"),
]  # fmt: skip

PLACEMENT = [
    *(
        Row(city, "resources/_cluster", "Namespace/_cluster/edge", "/metadata/name", "edge", "resource",
            "Namespace/_cluster/edge", "edge.yaml")
        for city in ("berlin", "boston", "chicago", "lisbon")
    ),
    *(
        Row(city, "resources/_cluster", "Namespace/_cluster/streams", "/metadata/name", "streams", "resource",
            "Namespace/_cluster/streams", "streams.yaml")
        for city in ("boston", "chicago")
    ),
]  # fmt: skip

ROWS_BY_CONTROLLER: dict[str, list[Row]] = {
    "variants": VARIANTS,
    "policies": POLICIES,
    "presets": PRESETS,
    "composition": COMPOSITION,
    "templates": TEMPLATES,
    "placement": PLACEMENT,
}
