"""Expected values of the showcase, derived by hand from its files: more than a hundred.

A change of a file in `fixtures/showcase` requires new values in the rows of its controller. `layer`, `by` and
`file` are those of the step that wins. `given` is who gave what a template read, and where.
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
    """A value of a resource in a package on the draft of a cluster, and the step that wins there."""

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
        """Where it is, in short."""
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
    """Return a row of a gateway."""
    return Row(cluster, GATEWAY, resource, pointer, value, layer, by, file)


IN_DEPLOYMENT, IN_KPTFILE = "gateway/deployment.yaml", "gateway/Kptfile"
VARIANTS = [
    # as the catalog has it
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
    # the region's own
    gateway("chicago", ENDPOINTS, "/data/api", "https://api.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("chicago", ENDPOINTS, "/data/auth", "https://auth.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("boston", ENDPOINTS, "/data/api", "https://api.us-east.example.com", "injection", US, "regions.yaml"),
    gateway("lisbon", ENDPOINTS, "/data/api", "https://api.eu-west.example.com", "injection", EU, "regions.yaml"),
    gateway("berlin", ENDPOINTS, "/data/auth", "https://auth.eu-west.example.com", "injection", EU, "regions.yaml"),
    gateway(
        "lisbon", ENDPOINTS, "/metadata/annotations/kpt.dev~1injected-resource-name", "endpoints-eu-west", "injection",
        EU, "regions.yaml",
    ),
    # the set's context, and what comes of it
    gateway("chicago", CONTEXT, "/data/cluster", "chicago", "context", GATEWAYS, "gateway.yaml"),
    gateway("berlin", CONTEXT, "/data/cluster", "berlin", "context", GATEWAYS, "gateway.yaml"),
    gateway("chicago", CONTEXT, "/data/name", "gateway", "context", "the reconciler, for the package name"),
    gateway("chicago", CLUSTER, "/data/name", "chicago", "function", REPLACE, IN_KPTFILE),
    gateway("boston", CLUSTER, "/data/name", "boston", "function", REPLACE, IN_KPTFILE),
    gateway("lisbon", CLUSTER, "/data/name", "lisbon", "function", REPLACE, IN_KPTFILE),
    # a function of the set, and one of the package
    gateway("chicago", DEPLOYMENT, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("lisbon", SERVICE, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("berlin", CLUSTER, "/metadata/namespace", "edge", "function", SET_NAMESPACE, "gateway.yaml"),
    gateway("chicago", DEPLOYMENT, f"/metadata/labels/{OUR_LABEL}", "gateway", "function", SET_LABELS, IN_KPTFILE),
    gateway(
        "chicago", DEPLOYMENT, f"/spec/template/metadata/labels/{OUR_LABEL}", "gateway", "function", SET_LABELS,
        IN_KPTFILE,
    ),
    gateway("boston", SERVICE, f"/spec/selector/{OUR_LABEL}", "gateway", "function", SET_LABELS, IN_KPTFILE),
    # its Kptfile
    gateway(
        "chicago", KPTFILE, "/upstream/git/ref", "gateway/v1", "clone", "the reconciler, for the upstream of the package"
    ),
    gateway("chicago", KPTFILE, "/pipeline/mutators/0/image", SET_NAMESPACE, "pipeline", GATEWAYS, "gateway.yaml"),
    gateway("chicago", KPTFILE, "/pipeline/mutators/1/image", REPLACE, "upstream", file=IN_KPTFILE),
    # somebody was there
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
    # the mirror's policy has had its turn
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
    """Return a row of an option of the watchman; options stand in the order of their names."""
    package, watchman = WATCHMAN[cluster]
    return Row(cluster, package, watchman, f"/spec/optionValues/{number}", {"name": name, **value}, layer, by, file)


def plugin(cluster: Cluster, pointer: str, value: Any) -> Row:
    """Return a row of a field of the watchman that is no option."""
    package, name = WATCHMAN[cluster]
    return Row(cluster, package, name, pointer, value, "generated", PRESET, "plugins.yaml")


def is_(value: Any) -> dict[str, Any]:
    """Return the value of an option as it stands in a Plugin."""
    return {"value": value}


TOKEN = {"valueFrom": {"secret": {"name": "watchman", "key": "token"}}}
ORGANIZATION = "Organization/_cluster/shops"
PRESETS = [
    # what only Chicago has
    option("chicago", 3, "interval", is_(10), "preset-cluster"),
    option("chicago", 4, "keep.days", is_(30), "override-cluster-definition", "PluginOverride/shops/history"),
    option("chicago", 6, "sampling", is_("half"), "cluster", "Cluster/shops/chicago"),
    # what is left of the layers elsewhere
    option("boston", 3, "interval", is_(30), "preset"),
    option("boston", 4, "keep.days", is_(14), "organization", ORGANIZATION),
    option("boston", 6, "sampling", is_("all"), "definition-default", DEFINED),
    # what both have
    *(
        row
        for city in ("boston", "chicago")
        for row in (
            option(city, 5, "quiet", is_(True), "default-generic", "PluginOverride/shops/quiet"),
            option(city, 7, "store.token", TOKEN, "preset"),
            option(city, 8, "store.url", is_("https://store.us-east.example.com"), "preset"),
        )
    ),
    # what nobody says, and every Plugin has
    option("chicago", 0, "global.greenhouse.clusterName", is_("chicago"), "injected"),
    option("boston", 0, "global.greenhouse.clusterName", is_("boston"), "injected"),
    option("chicago", 1, "global.greenhouse.metadata.region", is_("us-east"), "injected", "Cluster/shops/chicago"),
    option("chicago", 2, "global.greenhouse.organizationName", is_("shops"), "injected"),
    plugin("chicago", "/metadata/name", "watchman-chicago"),
    plugin("chicago", "/spec/clusterName", "chicago"),
    plugin("chicago", "/spec/displayName", "Watchman"),
    plugin("chicago", "/spec/releaseName", "watchman"),
    plugin("boston", "/spec/releaseNamespace", "watch"),
    plugin("boston", "/spec/pluginDefinitionRef/kind", "ClusterPluginDefinition"),
]


def made(cluster: Cluster, resource: str, pointer: str, value: Any, layer: str, by: str, text: str = "") -> Row:
    """Return a row of the component: whose template has it, and who gave what the template read."""
    return Row(cluster, FAIR if cluster == "lisbon" else MARKET, resource, pointer, value, layer, by, "apps.yaml", text)


OF_APP = f"{APP} apps.yaml"
COMPOSITION = [
    # environments say how many, and builds which image
    made("lisbon", NUMBERS, "/spec/replicas", 2, "definition", WEB_APP, "EnvBinding/edge/numbers-fair apps.yaml"),
    made("chicago", NUMBERS, "/spec/replicas", 4, "definition", WEB_APP, "EnvBinding/edge/numbers-market market.yaml"),
    made(
        "lisbon", NUMBERS, f"{MAIN}/image", "registry.example.com/numbers:1.0", "definition", WEB_APP,
        "Build/edge/numbers apps.yaml",
    ),
    made(
        "chicago", NUMBERS, f"{MAIN}/image", "registry.example.com/numbers-market:0.9", "definition", WEB_APP,
        "Build/edge/numbers.market market.yaml",
    ),
    # the addon has a default, and Chicago another gateway
    made("lisbon", FENCE, ALLOWED, "gateway", "addon", FENCING, f"{FENCING} apps.yaml"),
    made("chicago", FENCE, ALLOWED, "night-gateway", "addon", FENCING, "EnvBinding/edge/numbers-market market.yaml"),
    # the rest is the same in both
    *(
        row
        for city in ("lisbon", "chicago")
        for row in (
            made(city, NUMBERS, "/kind", "Deployment", "definition", WEB_APP),
            made(city, NUMBERS, "/metadata/name", "numbers", "definition", WEB_APP, OF_APP),
            made(city, NUMBERS, "/metadata/namespace", "edge", "definition", WEB_APP, OF_APP),
            made(city, NUMBERS, "/spec/selector/matchLabels/app", "numbers", "definition", WEB_APP, OF_APP),
            made(city, NUMBERS, f"{MAIN}/name", "app", "definition", WEB_APP),
            made(city, NUMBERS, f"{MAIN}/ports/0/containerPort", 8080, "definition", WEB_APP, OF_APP),
            made(city, NUMBERS, "/spec/template/metadata/labels/fenced", "yes", "addon", FENCING),
            made(city, FENCE, "/metadata/name", "numbers-fence", "addon", FENCING, OF_APP),
            made(city, FENCE, "/spec/podSelector/matchLabels/app", "numbers", "addon", FENCING, OF_APP),
            made(city, FENCE, "/spec/policyTypes/0", "Ingress", "addon", FENCING),
        )
    ),
]  # fmt: skip


def stream(cluster: Cluster, resource: str, pointer: str, value: Any, layer: str, by: str = "", text: str = "") -> Row:
    """Return a row of the Kafka and its pools; what they say themselves is told by themselves."""
    return Row(cluster, STREAMS, resource, pointer, value, layer, by or resource, "streams.yaml", text)


POD, CONTAINER, CLAIM = (f"/spec/template/{item}" for item in ("pod", "kafkaContainer", "persistentVolumeClaim"))
TEMPLATES = [
    # Chicago's policy changes the Kafka, and so what its pools have
    *(
        stream(city, pool, f"{POD}/priorityClassName", value, "template", KAFKA, item)
        for city, value, item in (
            ("boston", "like-others", ""),
            ("chicago", "before-all-others", f"{SALES} policies.yaml"),
        )
        for pool in (CONTROLLERS, BROKERS)
    ),
    # all that the Kafka says of pods
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
            # the brokers have clocks of their own, and no backup
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

ROOMS: dict[str, list[Row]] = {
    "variants": VARIANTS,
    "policies": POLICIES,
    "presets": PRESETS,
    "composition": COMPOSITION,
    "templates": TEMPLATES,
    "placement": PLACEMENT,
}
