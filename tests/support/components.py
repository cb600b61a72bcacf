"""Test fleets with components: component types with addons, and environments that run components on clusters."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from reconciler.krm.yaml import parse_yaml
from tests.support.policies import format_object, greenhouse_cluster, publish
from tests.support.world import World, repository

PLATFORM, OURS = "platform/v1alpha1", "reconciler.dev/v1alpha1"
SHOP = "shop"
STAGED, LIVE = ("berlin",), ("lisbon", "oslo")
CLUSTERS = (*STAGED, *LIVE)
STAGING, PRODUCTION = "staging", "production"
FENCE, TRACES, SERVICE, BACKEND = (f"catalogue/{item}.yaml" for item in ("fence", "traces", "service", "backend"))
CART, CART_BUILD, CART_STAGING = "shop/cart.yaml", "shop/cart-build.yaml", "shop/cart-staging.yaml"
CART_PRODUCTION, PRODUCED = "shop/cart-production.yaml", "environments/production.yaml"
Spec = Mapping[str, Any]


def service(port: int = 8080, fields: str = "", label: str = "") -> str:
    """Return the definition of a Deployment and a Service; `fields` are more parameters, in flow style."""
    return f"""\
apiVersion: platform/v1alpha1
kind: ComponentDefinition
metadata: {{name: service}}
spec:
  schema:
    parameters: {{port: integer | default={port}{fields}}}
    envOverrides: {{replicas: integer | default=1 minimum=1}}
  resources:
  - id: deployment
    template:
      apiVersion: apps/v1
      kind: Deployment
      metadata:
        name: ${{metadata.name}}
        labels: {{app: "${{metadata.name}}"{label}}}
      spec:
        replicas: ${{spec.replicas}}
        template:
          spec:
            containers:
            - name: main
              image: '${{has(build.image) ? build.image : "none"}}'
  - id: door
    template:
      apiVersion: v1
      kind: Service
      metadata: {{name: "${{metadata.name}}"}}
      spec:
        ports:
        - port: ${{spec.port}}
"""


def batch() -> str:
    """Return the definition of a CronJob."""
    return """\
apiVersion: platform/v1alpha1
kind: ComponentDefinition
metadata: {name: batch}
spec:
  schema:
    parameters: {schedule: string | default="0 3 * * *"}
  resources:
  - id: job
    template:
      apiVersion: batch/v1
      kind: CronJob
      metadata: {name: "${metadata.name}"}
      spec: {schedule: "${spec.schedule}"}
"""


def fence(port: int = 443, more: str = "") -> str:
    """Return the addon that creates a NetworkPolicy. `more` contains additional lines of its spec."""
    return f"""\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {{name: fence}}
spec:
  schema:
    envOverrides: {{from: '[]string | default=[]'}}
  creates:
  - id: fence
    template:
      apiVersion: networking.k8s.io/v1
      kind: NetworkPolicy
      metadata: {{name: "${{metadata.name}}-fence"}}
      spec: {{from: "${{spec.from}}", port: {port}, environment: "${{env.name}}"}}
{more}"""


def traces(image: str = "1.0", more: str = "") -> str:
    """Return the addon that adds a sidecar container. `more` contains additional lines of its patches."""
    return f"""\
apiVersion: platform/v1alpha1
kind: Addon
metadata: {{name: trace-agent, labels: {{allowedFor: developer}}}}
spec:
  schema:
    envOverrides: {{rate: integer | default=10}}
  patches:
  - target: {{resourceType: Deployment}}
    operations:
    - {{op: add, path: /spec/template/spec/containers/-, value: {{name: agent, image: "agent:{image}"}}}}
    - {{op: add, path: /metadata/labels/rate, value: "r${{spec.rate}}"}}
{more}"""


def component_type(name: str, definition: str, platform: Sequence[Spec] = (), developers: Sequence[str] = ()) -> str:
    """Return a component type with its platform addons and the addons that components may add."""
    spec = {
        "componentDefinitionRef": {"name": definition},
        "platformAddons": list(platform),
        "developerAddons": {"allowed": [{"name": developer} for developer in developers]},
    }
    return format_object("ComponentType", name, spec, api=PLATFORM)


def platform_addon(addon: str, **config: object) -> Spec:
    """Return an addon as an entry of a component type."""
    return {"name": addon, "instanceId": "main", "config": config}


def component(name: str, kind: str = "Backend", **values: object) -> str:
    """Return a component of the project `shop`."""
    return format_object(kind, name, values, SHOP, PLATFORM)


def binding(name: str, environment: str, marks: Mapping[str, str] | None = None, of: str = "", **more: object) -> str:
    """Return an EnvBinding. `marks` are annotations; `of` names another environment."""
    spec = {"owner": {"componentName": name}, "environment": of or environment, **more}
    return format_object("EnvBinding", f"{name}-{environment}", spec, SHOP, PLATFORM, annotations=marks or {})


def environment(name: str, *clusters: str, **more: object) -> str:
    """Return an environment and its clusters."""
    spec = {**({"clusters": list(clusters)} if clusters else {}), **more}
    return format_object("Environment", name, spec, api=OURS)


def build(name: str, image: str, **more: object) -> str:
    """Return a Build of a component, for all environments or, with the suffix `.ENVIRONMENT`, for one."""
    return format_object("Build", name, {"image": image, **more}, SHOP, OURS)


def component_world(folder: Path, **settings: object) -> World:
    """Return a fleet of three clusters. Oslo has no Repository; Berlin is staging, the others are production.

    The type of `cart` and `till` contains the fence addon, `cart` also has an agent, and `feed` is a plain job.
    """
    world = World.create(folder, **settings)
    world.write(
        {
            **{f"clusters/{cluster}.yaml": repository(cluster) for cluster in CLUSTERS[:2]},
            "clusters/oslo.yaml": greenhouse_cluster("oslo", region="north"),
            "environments/staging.yaml": environment(STAGING, "berlin"),
            "environments/production.yaml": environment(PRODUCTION, "lisbon", "oslo"),
            "catalogue/service.yaml": service(),
            "catalogue/batch.yaml": batch(),
            "catalogue/fence.yaml": fence(),
            "catalogue/traces.yaml": traces(),
            "catalogue/backend.yaml": component_type("backend", "service", [platform_addon("fence")], ["trace-agent"]),
            "catalogue/job.yaml": component_type("night-job", "batch"),
            "shop/cart.yaml": component("cart", replicas=2, traceAgent={}),
            "shop/till.yaml": component("till"),
            "shop/feed.yaml": component("feed", "NightJob"),
            **{f"shop/{name}-build.yaml": build(name, f"{name}:1") for name in ("cart", "till")},
            **{
                f"shop/{name}-{item}.yaml": binding(name, item)
                for name in ("cart", "till")
                for item in (STAGING, PRODUCTION)
            },
            "shop/feed-production.yaml": binding("feed", PRODUCTION),
        }
    )
    return world


def components_drafted(folder: Path) -> World:
    """Return the fleet with a draft for each package. Nothing is published."""
    world = component_world(folder)
    world.sync()
    return world


def components_published(folder: Path) -> World:
    """Return the fleet with all packages published."""
    world = components_drafted(folder)
    publish(world, *CLUSTERS)
    return world


def package_of(name: str, environment: str = PRODUCTION) -> str:
    """Return the path of the package of a component."""
    return f"components/{environment}/{SHOP}/{name}"


def package_target(cluster: str, name: str) -> str:
    """Return the target of a component's package on a cluster, in the format of outcomes."""
    return f"{cluster}/{package_of(name, environment_of(cluster))}"


def environment_of(cluster: str) -> str:
    """Return the environment of a cluster."""
    return STAGING if cluster in STAGED else PRODUCTION


def object_on(world: World, branch: str, name: str = "cart", kind: str = "deployment") -> Any:
    """Return an object of a component on a branch."""
    return parse_yaml(world.text(branch, path_on(branch, name, kind))).documents[0].data


def path_on(branch: str, name: str = "cart", kind: str = "deployment") -> str:
    """Return the path of an object of a component on a branch. The kind `fence` is the NetworkPolicy of that addon."""
    file = f"networkpolicy-{name}-fence.yaml" if kind == "fence" else f"{kind}-{name}.yaml"
    return f"{package_of(name, environment_of(branch.partition('/')[2]))}/{file}"


def components_on(world: World, branch: str) -> list[str]:
    """Return the components on a branch, with their environments."""
    paths = (path.split("/") for path in world.paths(world.fleet, branch, "components"))
    return list(dict.fromkeys(f"{environment}/{name}" for environment, _, name, _ in paths))


def status_of(world: World, path: str) -> Any:
    """Return the status of an object on the status branch."""
    return parse_yaml(world.text("reconciler/status", f"objects/{path}.yaml")).documents[0].data["status"]


def condition_of(world: World, path: str, expected: str = "Ready") -> tuple[str, str, str]:
    """Return status, reason and message of a condition of an object."""
    value = {condition["type"]: condition for condition in status_of(world, path)["conditions"]}[expected]
    return value["status"], value["reason"], value["message"]


def conflicts_on(world: World, branch: str, name: str) -> list[tuple[str, str]]:
    """Return file and pointer of each conflict in the status file of a component."""
    result = world.package_status(branch, package_of(name, environment_of(branch.partition("/")[2])))
    return [(conflict["file"], conflict.get("pointer", "")) for conflict in result.get("conflicts", ())]
