"""The Helm chart and the kustomize manifests: what they contain, and that Kubernetes and the program accept it."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft202012Validator, meta

from reconciler.settings import Settings
from tests.support.programs import Program

PROJECT = Path(__file__).resolve().parents[2]
DEPLOY = PROJECT / "deploy"
CHART = DEPLOY / "helm/reconciler"
KUBERNETES = "1.37.0"
DIGEST = f"sha256:{'ab' * 32}"
CONFIG = "settings.config.url=https://git.example.com/config.git"

Manifest = Mapping[str, Any]

MATRIX = [
    pytest.param([], id="defaults"),
    pytest.param([CONFIG, "image.tag=v1", "imagePullSecrets[0].name=registry"], id="image-tag"),
    pytest.param([CONFIG, f"image.digest={DIGEST}", "image.pullPolicy=Always"], id="image-digest"),
    pytest.param([CONFIG, "shards=3"], id="shards"),
    pytest.param([CONFIG, "readOnlyReplicas=2", "cache.type=pvc"], id="read-only"),
    pytest.param([CONFIG, "cache.type=pvc", "cache.size=10Gi", "cache.storageClass=fast"], id="persistent-cache"),
    pytest.param(
        [CONFIG, "existingSecret.credentials.name=git", "existingSecret.webhooks.name=hooks",
         "existingSecret.signing.name=key", "existingSecret.metrics.name=scrape"],
        id="secrets",
    ),
    pytest.param(
        [CONFIG, "ingress.enabled=true", "ingress.host=hooks.example.com", "ingress.tlsSecret=tls", "ingress.className=nginx",
         "ingress.annotations.a=b", "existingSecret.webhooks.name=hooks"],
        id="ingress",
    ),
    pytest.param([CONFIG, "service.type=NodePort", "service.port=80", "service.annotations.a=b"], id="service"),
    pytest.param([CONFIG, "networkPolicy.enabled=false", "podDisruptionBudget.enabled=false"], id="no-policies"),
    pytest.param(
        [CONFIG, "networkPolicy.egressCIDRs={10.0.0.0/8}", "networkPolicy.egressPorts={443,3000}",
         "networkPolicy.ingressFrom=null", "networkPolicy.metricsFrom=null"],
        id="network-policy",
    ),
    pytest.param(
        [CONFIG, "serviceMonitor.enabled=true", "serviceMonitor.labels.release=p", "prometheusRule.enabled=true",
         "existingSecret.metrics.name=scrape", "prometheusRule.labels.release=p", "dashboard.enabled=true"],
        id="monitoring",
    ),
    pytest.param(
        [CONFIG, "extraEnv[0].name=https_proxy", "extraEnv[0].value=http://proxy:3128", "extraVolumes[0].name=more",
         "extraVolumes[0].secret.secretName=more", "extraVolumeMounts[0].name=more",
         "extraVolumeMounts[0].mountPath=/etc/more", "nodeSelector.disk=ssd", "tolerations[0].operator=Exists",
         "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].weight=1",
         "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].key=a",
         "affinity.nodeAffinity.preferredDuringSchedulingIgnoredDuringExecution[0].preference.matchExpressions[0].operator=Exists",
         "priorityClassName=high", "terminationGracePeriodSeconds=300", "startupProbe.failureThreshold=240",
         "resources.limits.memory=8Gi"],
        id="pods",
    ),
]  # fmt: skip


def set_values(values: Sequence[str]) -> list[str]:
    return [argument for value in values for argument in ("--set", value)]


@pytest.fixture(scope="session")
def render(helm: Program) -> Callable[..., list[Manifest]]:
    def render_manifests(*values: str) -> list[Manifest]:
        process = helm("template", "reconciler", CHART, "--kube-version", KUBERNETES, *set_values(values))
        assert process.returncode == 0, process.stderr
        return [manifest for manifest in yaml.safe_load_all(process.stdout) if manifest]

    return render_manifests


def select(manifests: Sequence[Manifest], kind: str) -> list[Manifest]:
    return [manifest for manifest in manifests if manifest["kind"] == kind]


def read_settings(manifests: Sequence[Manifest]) -> dict[str, Any]:
    (config_map,) = (each for each in select(manifests, "ConfigMap") if "reconciler.yaml" in each["data"])
    settings: dict[str, Any] = yaml.safe_load(config_map["data"]["reconciler.yaml"])
    return settings


def list_pods(manifests: Sequence[Manifest]) -> list[Manifest]:
    pods = [manifest["spec"] for manifest in select(manifests, "Pod")]
    sets = [*select(manifests, "StatefulSet"), *select(manifests, "Deployment")]
    return [*pods, *(manifest["spec"]["template"]["spec"] for manifest in sets)]


def describe_object(optional: Mapping[str, Any] | None = None, **properties: Any) -> dict[str, Any]:
    """Return the JSON Schema of an object that has all `properties`, and can have those of `optional`."""
    return {
        "type": "object", "additionalProperties": False, "required": [*properties],
        "properties": {**properties, **(optional or {})},
    }  # fmt: skip


def describe_list(items: Any) -> dict[str, Any]:
    return {"type": "array", "minItems": 1, "items": items}


TEXT = {"type": "string", "minLength": 1}
TEXTS = {"type": "object", "additionalProperties": TEXT}
# The fields of the Prometheus operator that the chart uses. The operator ignores a field with another name.
OPERATOR_SPECS = {
    "ServiceMonitor": describe_object(
        jobLabel=TEXT,
        selector=describe_object(matchLabels=TEXTS),
        endpoints=describe_list(
            describe_object(
                optional={"authorization": describe_object(credentials=describe_object(name=TEXT, key=TEXT))},
                port=TEXT, path=TEXT, interval=TEXT,
                relabelings=describe_list(describe_object(sourceLabels=describe_list(TEXT), targetLabel=TEXT)),
            )
        ),
    ),
    "PrometheusRule": describe_object(groups=describe_list(describe_object(name=TEXT, rules={"type": "array"}))),
}  # fmt: skip


def validate(manifests: Sequence[Manifest]) -> None:
    import kubernetes_validate  # takes one second

    for manifest in manifests:
        if manifest["apiVersion"] == "monitoring.coreos.com/v1":
            Draft202012Validator(OPERATOR_SPECS[manifest["kind"]]).validate(manifest["spec"])
        else:
            kubernetes_validate.validate(manifest, KUBERNETES, strict=True)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("values", MATRIX)
def test_manifests_are_valid(values: list[str], helm: Program, render: Callable[..., list[Manifest]]) -> None:
    lint = helm("lint", "--strict", CHART, *set_values(values))
    assert lint.returncode == 0, lint.stdout + lint.stderr

    manifests = render(*values)

    validate(manifests)
    settings = read_settings(manifests)
    Settings.model_validate(settings)
    Draft202012Validator(json.loads((PROJECT / "config/schema.json").read_text())).validate(settings)
    check_restricted_standard(list_pods(manifests))


def check_restricted_standard(pods: Sequence[Manifest]) -> None:
    """Check the rules of the Pod Security Standard "restricted", and a root file system that is read-only."""
    assert pods
    for pod in pods:
        assert pod["automountServiceAccountToken"] is False
        assert pod["securityContext"]["runAsNonRoot"] is True
        assert pod["securityContext"]["runAsUser"] == 10001
        assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
        for container in pod["containers"]:
            assert container["securityContext"] == {
                "allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True, "capabilities": {"drop": ["ALL"]},
            }  # fmt: skip
            assert "memory" in container["resources"]["limits"]
        allowed = {"configMap", "emptyDir", "secret", "persistentVolumeClaim"}
        assert {key for volume in pod.get("volumes", ()) for key in volume if key != "name"} <= allowed


def test_a_misspelt_field_is_not_valid(render: Callable[..., list[Manifest]]) -> None:
    import kubernetes_validate

    (manifest,) = select(render(), "StatefulSet")
    spec = {**manifest["spec"], "serviceNam": "x"}

    with pytest.raises(kubernetes_validate.ValidationError):
        validate([{**manifest, "spec": spec}])


def test_each_shard_has_its_own_stateful_set(render: Callable[..., list[Manifest]]) -> None:
    sets = select(render("shards=3"), "StatefulSet")
    arguments = [each["spec"]["template"]["spec"]["containers"][0]["args"] for each in sets]

    assert [each["metadata"]["name"] for each in sets] == ["reconciler-1", "reconciler-2", "reconciler-3"]
    assert [each[each.index("--shard") + 1] for each in arguments] == ["1/3", "2/3", "3/3"]
    assert {each["spec"]["replicas"] for each in sets} == {1}
    selectors = [each["spec"]["selector"]["matchLabels"] for each in sets]
    assert len({json.dumps(selector, sort_keys=True) for selector in selectors}) == 3
    for each, selector in zip(sets, selectors, strict=True):
        assert selector.items() <= each["spec"]["template"]["metadata"]["labels"].items()


def test_read_only_pods_receive_no_webhooks_and_are_not_scraped(render: Callable[..., list[Manifest]]) -> None:
    manifests = render("readOnlyReplicas=2", "serviceMonitor.enabled=true")
    (pods,) = select(manifests, "Deployment")
    labels = pods["spec"]["template"]["metadata"]["labels"].items()
    services = {each["metadata"]["name"]: each["spec"]["selector"].items() for each in select(manifests, "Service")}
    scraped = [
        each["metadata"]["name"]
        for each in select(manifests, "Service")
        if "reconciler.dev/endpoint" in each["metadata"]["labels"]
    ]

    assert pods["spec"]["template"]["spec"]["containers"][0]["args"][-1] == "--read-only"
    assert [name for name, selector in services.items() if selector <= labels] == ["reconciler-read-only"]
    assert scraped == ["reconciler"]


def test_selectors_match_the_pods(render: Callable[..., list[Manifest]]) -> None:
    manifests = render("serviceMonitor.enabled=true")
    (pods,) = select(manifests, "StatefulSet")
    labels = pods["spec"]["template"]["metadata"]["labels"].items()
    services = select(manifests, "Service")

    assert [service["spec"]["selector"].items() <= labels for service in services] == [True, True]
    (policy,) = select(manifests, "NetworkPolicy")
    assert policy["spec"]["podSelector"]["matchLabels"].items() <= labels
    (budget,) = select(manifests, "PodDisruptionBudget")
    assert budget["spec"]["selector"]["matchLabels"].items() <= labels
    assert budget["spec"]["maxUnavailable"] == 1
    # Prometheus scrapes each pod through exactly one Service.
    (monitor,) = select(manifests, "ServiceMonitor")
    wanted = monitor["spec"]["selector"]["matchLabels"].items()
    assert [wanted <= service["metadata"]["labels"].items() for service in services] == [True, False]


def test_the_ingress_routes_webhooks_only(render: Callable[..., list[Manifest]]) -> None:
    (ingress,) = select(render("ingress.enabled=true", "ingress.host=hooks.example.com"), "Ingress")
    (rule,) = ingress["spec"]["rules"]

    assert [(path["path"], path["pathType"]) for path in rule["http"]["paths"]] == [("/hooks", "Exact")]


def test_changed_settings_restart_the_pods(render: Callable[..., list[Manifest]]) -> None:
    checksums = set()
    for seconds in (60, 30, 30):
        (each,) = select(render(f"settings.poll_seconds={seconds}"), "StatefulSet")
        checksums.add(each["spec"]["template"]["metadata"]["annotations"]["checksum/settings"])

    assert len(checksums) == 2


def test_secrets_are_mounted_as_folders_and_named_in_the_settings(render: Callable[..., list[Manifest]]) -> None:
    manifests = render(
        "existingSecret.credentials.name=git", "existingSecret.webhooks.name=hooks",
        "existingSecret.webhooks.key=key", "existingSecret.signing.name=signer", "existingSecret.metrics.name=scrape",
    )  # fmt: skip
    settings = read_settings(manifests)
    (pod,) = (pod for pod in list_pods(manifests) if pod["containers"][0]["name"] == "reconciler")
    mounts = {mount["mountPath"]: mount for mount in pod["containers"][0]["volumeMounts"]}
    files = {
        "credentials": "/etc/reconciler/secrets/credentials/git-credentials",
        "webhooks": "/etc/reconciler/secrets/webhooks/key",
        "signing": "/etc/reconciler/secrets/signing/signing-key",
        "metrics": "/etc/reconciler/secrets/metrics/metrics-tokens",
    }
    git = {"credentials_file": files["credentials"]}

    assert settings["git"] == {"credentials": [{"url": "*", "read": git, "write": git}]}
    assert settings["webhooks"] == {"secret_file": files["webhooks"]}
    assert settings["signing"] == {"format": "ssh", "key_file": files["signing"]}
    assert settings["metrics"] == {"token_file": files["metrics"]}
    # Kubernetes does not update a file that is mounted with subPath, so that a rotated secret would have no effect.
    assert [mount["mountPath"] for mount in mounts.values() if "subPath" in mount] == []
    assert {mounts[file.rpartition("/")[0]]["readOnly"] for file in files.values()} == {True}


@pytest.mark.parametrize(
    ("values", "expected"),
    [
        pytest.param([], None, id="no-secret"),
        pytest.param(["existingSecret.metrics.name=scrape"], {"name": "scrape", "key": "metrics-tokens"}, id="one-token"),
        pytest.param(
            ["existingSecret.metrics.name=scrape", "serviceMonitor.tokenKey=current"],
            {"name": "scrape", "key": "current"}, id="two-tokens",
        ),
    ],
)  # fmt: skip
def test_prometheus_sends_the_token_of_the_secret(
    values: list[str], expected: dict[str, str] | None, render: Callable[..., list[Manifest]]
) -> None:
    (monitor,) = select(render("serviceMonitor.enabled=true", *values), "ServiceMonitor")
    (endpoint,) = monitor["spec"]["endpoints"]

    assert endpoint.get("authorization", {}).get("credentials") == expected


def test_own_credentials_replace_those_of_the_chart(render: Callable[..., list[Manifest]]) -> None:
    manifests = render("existingSecret.credentials.name=git", "settings.git.credentials[0].url=github.com")

    assert read_settings(manifests)["git"] == {"credentials": [{"url": "github.com"}]}


def test_the_chart_never_creates_secrets_and_permissions() -> None:
    kinds = re.findall(r"^kind: (\w+)$", "\n".join(file.read_text() for file in CHART.rglob("*.yaml")), re.MULTILINE)

    assert "StatefulSet" in kinds
    assert {"Secret", "Role", "ClusterRole", "RoleBinding", "ClusterRoleBinding"}.isdisjoint(kinds)


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("value", "message"),
    [
        pytest.param("settings.shard=1/2", "set the value `shards`", id="shard"),
        pytest.param("settings.cache=/data", "set the values `cache.type` and `cache.size`", id="cache"),
        pytest.param("settings.functions.containers={a}", "the pods contain no container engine", id="containers"),
        pytest.param("ingress.enabled=true", "ingress.host: must contain the host name", id="ingress"),
        pytest.param("podDisruptionBudget.maxUnavailable=0", "maxUnavailable", id="budget"),
        pytest.param("shards=0", "shards", id="shards"),
        pytest.param("replicas=2", "'replicas' not allowed", id="unknown-value"),
        pytest.param("cache.tpye=pvc", "'tpye' not allowed", id="misspelt-value"),
        pytest.param("image.digest=sha256:1", "image/digest", id="digest"),
    ],
)
def test_unusable_values_are_refused(value: str, message: str, helm: Program) -> None:
    process = helm("template", "reconciler", CHART, "--kube-version", KUBERNETES, "--set", value)

    assert process.returncode != 0
    assert message in process.stderr


def test_every_value_has_a_default_and_a_description() -> None:
    schema = json.loads((CHART / "values.schema.json").read_text())
    meta.validate(schema)

    def check(node: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        assert node["additionalProperties"] is False
        assert defaults.keys() == node["properties"].keys() - {"global"}
        for name, child in node["properties"].items():
            assert child["description"].endswith("."), name
            if "properties" in child:
                check(child, defaults[name])

    check(schema, yaml.safe_load((CHART / "values.yaml").read_text()))


def test_versions_equal_the_version_of_the_program() -> None:
    chart = yaml.safe_load((CHART / "Chart.yaml").read_text())
    version = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]["version"]

    assert (str(chart["version"]), str(chart["appVersion"])) == (version, version)


def test_generated_files_equal_their_sources(helm: Program) -> None:
    assert helm("version").returncode == 0
    process = subprocess.run(
        [sys.executable, "scripts/make_deployment_files.py", "--check"],
        cwd=PROJECT, text=True, capture_output=True, check=False,
    )  # fmt: skip

    assert (process.returncode, process.stderr) == (0, "")


def test_rules_of_the_chart_are_valid(render: Callable[..., list[Manifest]], promtool: Program, tmp_path: Path) -> None:
    (rule,) = select(render("prometheusRule.enabled=true"), "PrometheusRule")
    (tmp_path / "rules.yaml").write_text(yaml.safe_dump(rule["spec"]))

    process = promtool("check", "rules", tmp_path / "rules.yaml")

    assert process.returncode == 0, process.stdout + process.stderr


def test_rules_of_the_chart_name_the_configured_runbooks(render: Callable[..., list[Manifest]]) -> None:
    base = "https://docs.example.com/runbooks"
    (rule,) = select(render("prometheusRule.enabled=true", f"prometheusRule.runbookBaseUrl={base}"), "PrometheusRule")
    source = yaml.safe_load((DEPLOY / "monitoring/rules.yaml").read_text())
    urls = [each["annotations"]["runbook_url"] for each in rule["spec"]["groups"][0]["rules"]]

    assert rule["spec"]["groups"][0]["rules"][0]["expr"] == source["groups"][0]["rules"][0]["expr"]
    assert len(urls) == len(source["groups"][0]["rules"])
    assert [url for url in urls if not url.startswith(f"{base}/")] == []


@pytest.mark.parametrize("overlay", ["base", "overlays/minimal", "overlays/sharded"])
def test_kustomize_manifests_are_valid(overlay: str, kubectl: Program) -> None:
    process = kubectl("kustomize", DEPLOY / "kustomize" / overlay)
    assert process.returncode == 0, process.stderr

    manifests = [*yaml.safe_load_all(process.stdout)]

    validate(manifests)
    Settings.model_validate(read_settings(manifests))
    assert [manifest for manifest in manifests if manifest["kind"] == "Pod"] == []


def test_the_sharded_overlay_equals_the_chart_with_two_shards(
    kubectl: Program, render: Callable[..., list[Manifest]]
) -> None:
    process = kubectl("kustomize", DEPLOY / "kustomize/overlays/sharded")
    overlay = select([*yaml.safe_load_all(process.stdout)], "StatefulSet")
    settings = yaml.safe_load((DEPLOY / "kustomize/overlays/sharded/reconciler.yaml").read_text())
    values = ["shards=2", "existingSecret.credentials.name=reconciler-credentials", f"image.digest=sha256:{'0' * 64}"]
    manifests = render(*values, *(f"settings.{key}.url={settings[key]['url']}" for key in ("config", "fleet")))

    def select_containers(sets: Sequence[Manifest]) -> list[Any]:
        containers = [each["spec"]["template"]["spec"]["containers"][0] for each in sets]
        for container in containers:
            container["volumeMounts"].sort(key=lambda mount: mount["name"])
        return containers

    assert select_containers(overlay) == select_containers(select(manifests, "StatefulSet"))
    assert settings == read_settings(manifests)
