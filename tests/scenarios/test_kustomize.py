"""Tests of Kustomize overlays as upstreams: the package contains the built resources, and URLs are refused."""

import socket
import subprocess
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.charts import FakeKustomize
from tests.support.programs import find_program
from tests.support.world import World, small_world, variant

pytestmark = pytest.mark.second_pass

BASE = {
    "base/kustomization.yaml": "resources: [deployment.yaml, service.yaml]\n",
    "base/deployment.yaml": """apiVersion: apps/v1
kind: Deployment
metadata:
  name: web
spec:
  replicas: 1
  template:
    spec:
      containers:
        - name: web
          image: example.com/web:1.0.0
""",
    "base/service.yaml": "apiVersion: v1\nkind: Service\nmetadata:\n  name: web\nspec:\n  type: ClusterIP\n",
}
OVERLAYS = {
    f"overlays/{city}/kustomization.yaml": (
        f"namespace: {city}\nresources: [../../base]\nreplicas: [{{name: web, count: {count}}}]\n"
        "configMapGenerator:\n  - {name: settings, literals: [city=" + city + "]}\n"
    )
    for city, count in (("berlin", 2), ("lisbon", 3))
}
BUILT = """apiVersion: v1
kind: Service
metadata:
  name: web
"""


def request(extra: str = "kustomize: {path: overlays/berlin}") -> str:
    return variant("web", "berlin", "web", upstream="apps/web", extra=extra)


def request_overlays(revision: str) -> dict[str, str]:
    """Return one PackageVariant per overlay."""
    return {
        f"{name}.yaml": variant(
            name, city, "web", revision, upstream="apps/web", extra=f"kustomize: {{path: overlays/{city}}}"
        )
        for name, city in (("web", "berlin"), ("lisbon", "lisbon"))
    }


def create_world(tmp_path: Path, program: str, files: dict[str, str] | None = None) -> World:
    world = small_world(tmp_path, sources={"kustomize": {"program": program}})
    world.release("apps/web", "v1", files or {**BASE, **OVERLAYS})
    world.write({"web.yaml": request()})
    return world


@pytest.fixture(params=["kustomize", "kubectl"])
def world(request: pytest.FixtureRequest, tmp_path: Path) -> World:
    return create_world(tmp_path, find_program(request.param))


@pytest.fixture
def fake(tmp_path: Path) -> FakeKustomize:
    program = FakeKustomize(tmp_path / "bin")
    program.behave(output=BUILT)
    return program


def build(program: str, tmp_path: Path, files: dict[str, str], path: str) -> list[object]:
    for name, text in files.items():
        file = tmp_path / "expected" / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    command = [
        program,
        *(["kustomize"] if program.endswith("kubectl") else ["build"]),
        str(tmp_path / "expected" / path),
    ]
    output = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60).stdout
    return [document.data for document in parse_yaml(output).documents]


def read_resources(world: World, branch: str, folder: str = "web") -> list[object]:
    """Return the resources of a package except its Kptfile and package context."""
    files = world.files(world.fleet, branch, folder)
    return [
        parse_yaml(text).documents[0].data
        for name, text in files.items()
        if name not in ("Kptfile", "package-context.yaml")
    ]


@pytest.mark.quick_cases(every=2)
def test_set_builds_one_overlay_per_cluster(world: World, tmp_path: Path) -> None:
    world.write(
        {
            "web.yaml": """apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: web}
spec:
  upstream: {repo: catalog, package: apps/web, revision: v1}
  targets:
    - repositories: [{name: berlin, packageNames: [web]}, {name: lisbon, packageNames: [web]}]
      template:
        kustomize: {pathExpr: "'overlays/' + repository.name"}
"""
        }
    )

    result = world.sync()

    assert {name: result.outcomes[name] for name in ("berlin/web", "lisbon/web")} == {
        "berlin/web": "draft",
        "lisbon/web": "draft",
    }
    program = find_program("kubectl")
    for city in ("berlin", "lisbon"):
        expected = build(program, tmp_path, {**BASE, **OVERLAYS}, f"overlays/{city}")
        built = read_resources(world, f"drafts/{city}")
        assert sorted(map(repr, built)) == sorted(map(repr, expected))
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.quick_cases(every=2)
def test_change_of_the_base_updates_each_overlay_and_keeps_local_changes(world: World) -> None:
    world.write(request_overlays("v1"))
    world.sync()
    for city in ("berlin", "lisbon"):
        world.merge(city, delete=True)
    world.sync()
    world.edit("clusters/berlin", "web/deployment-web.yaml", "replicas: 2", "replicas: 7")
    changed = BASE["base/deployment.yaml"].replace("web:1.0.0", "web:2.0.0")
    world.release("apps/web", "v2", {**BASE, **OVERLAYS, "base/deployment.yaml": changed})
    world.write(request_overlays("v2"))

    world.sync()

    texts = {city: world.text(f"drafts/{city}", "web/deployment-web.yaml") for city in ("berlin", "lisbon")}
    assert all("image: example.com/web:2.0.0" in text for text in texts.values())
    assert "replicas: 7" in texts["berlin"]
    assert "replicas: 3" in texts["lisbon"]
    assert world.sync_until_unchanged().report.render_count == 0


def test_options_are_applied_to_the_built_resources(world: World) -> None:
    options = """kustomize:
  path: overlays/berlin
  namePrefix: shop-
  namespace: shop
  images: [{name: example.com/web, newTag: 3.0.0}]
  replicas: [{name: web, count: 0}]
  commonAnnotations: {team: shop}
  components: [../../labels]
  patches:
    - target: {kind: Service}
      patch: '[{"op": "replace", "path": "/spec/type", "value": "NodePort"}]'
"""
    component = "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\nlabels: [{pairs: {tier: edge}}]\n"
    world.release("apps/web", "v1", {**BASE, **OVERLAYS, "labels/kustomization.yaml": component})
    world.write({"web.yaml": request(options)})

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings
    deployment = world.text("drafts/berlin", "web/deployment-shop-web.yaml")
    for text in ("image: example.com/web:3.0.0", "replicas: 0", "team: shop", "tier: edge", "namespace: shop"):
        assert text in deployment
    assert "type: NodePort" in world.text("drafts/berlin", "web/service-shop-web.yaml")


def test_kptfile_names_the_overlay(world: World) -> None:
    world.sync()

    kptfile = parse_yaml(world.text("drafts/berlin", "web/Kptfile")).documents[0].data
    lock = kptfile["upstreamLock"]
    assert lock["type"] == "generic"
    assert lock["generic"]["storeID"] == "kustomize"
    assert lock["generic"]["resourceID"].endswith("/catalog.git/apps/web/overlays/berlin")
    assert "upstream" not in kptfile


def test_package_with_a_kustomization_is_built_without_options(world: World) -> None:
    world.release("apps/web", "v1", {"kustomization.yaml": "resources: [service.yaml]\n", "service.yaml": BUILT})
    world.write({"web.yaml": request(extra="")})

    world.sync()

    assert world.paths(world.fleet, "drafts/berlin", "web") == ["Kptfile", "package-context.yaml", "service-web.yaml"]
    assert "/catalog.git/apps/web\n" in world.text("drafts/berlin", "web/Kptfile")


def test_url_is_refused_without_a_connection(world: World) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        url = f"http://127.0.0.1:{server.getsockname()[1]}/base.yaml"
        world.release("apps/web", "v1", {"overlays/berlin/kustomization.yaml": f"Resources:\n  - {url}\n"})

        result = world.sync()

        server.settimeout(0)
        with pytest.raises(BlockingIOError):
            server.accept()
    assert result.outcomes["berlin/web"] == "RemoteBaseRefused"
    (finding,) = (finding for finding in result.findings if finding.code == "RemoteBaseRefused")
    assert finding.message.startswith(f'overlays/berlin/kustomization.yaml:2: Resources[0] refers to the URL "{url}".')
    assert world.sync_until_unchanged().report.render_count == 0


def test_secret_of_a_generator_is_refused_unless_it_is_allowed(world: World) -> None:
    secret = "generatorOptions: {disableNameSuffixHash: true}\nsecretGenerator: [{name: db, literals: [password=hunter22]}]\n"
    world.release("apps/web", "v1", {"kustomization.yaml": secret})
    world.write({"web.yaml": request("kustomize: {path: .}")})

    result = world.sync()

    assert result.outcomes["berlin/web"] == "PlaintextSecret"
    (finding,) = (finding for finding in result.findings if finding.code == "PlaintextSecret")
    assert "Secret/db in built resources contains a plaintext secret at /data/password" in finding.message
    assert "hunter22" not in str(result.findings)
    annotations = "annotations: {reconciler.dev/allow-plaintext-secrets: Secret/db}"
    world.write({"web.yaml": request(f"kustomize: {{path: .}}\n{annotations}")})
    assert world.sync().outcomes["berlin/web"] == "draft"


SOPS_SECRET = """# Encrypted by hand.
apiVersion: v1
kind: Secret
metadata:
    name: db
stringData:
    user: ENC[AES256_GCM,data:YQ==,iv:YQ==,tag:YQ==,type:str]
    password: ENC[AES256_GCM,data:Yg==,iv:YQ==,tag:YQ==,type:str]
sops:
    lastmodified: "2026-01-01T00:00:00Z"
    mac: ENC[AES256_GCM,data:Yw==,iv:YQ==,tag:YQ==,type:str]
    encrypted_regex: ^(data|stringData)$
    version: 3.11.0
"""


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("fields", "outcome"),
    [
        pytest.param("", "draft", id="unchanged"),
        pytest.param("namespace: shop\n", "SopsMacBroken", id="namespace"),
        pytest.param("namePrefix: shop-\n", "SopsMacBroken", id="name"),
    ],
)
def test_sops_document_keeps_its_bytes_or_is_refused(world: World, fields: str, outcome: str) -> None:
    files = {"kustomization.yaml": f"{fields}resources: [db.yaml]\n", "db.yaml": SOPS_SECRET}
    world.release("apps/web", "v1", files)
    world.write({"web.yaml": request("kustomize: {path: .}")})

    result = world.sync()

    assert result.outcomes["berlin/web"] == outcome
    if outcome == "draft":
        assert world.text("drafts/berlin", "web/secret-db.yaml") == SOPS_SECRET


def test_failed_build_blocks_only_its_package(world: World) -> None:
    patch = (
        "patches: [{target: {kind: Absent}, patch: '- {op: remove, path: /x}'}]\nreplacements: [{path: absent.yaml}]\n"
    )
    world.release("apps/web", "v1", {"kustomization.yaml": patch})
    world.write({"web.yaml": request("kustomize: {path: .}")})

    result = world.sync()

    assert result.outcomes["berlin/metrics"] == "draft"
    assert result.outcomes["berlin/web"] == "KustomizeFailed"
    (finding,) = (finding for finding in result.findings if finding.code == "KustomizeFailed")
    assert "absent.yaml" in finding.message
    assert "/work" not in finding.message
    assert world.sync_until_unchanged().report.render_count == 0


def test_missing_program_blocks_only_overlays(tmp_path: Path) -> None:
    fake = FakeKustomize(tmp_path / "bin")
    world = create_world(tmp_path, str(fake.path))
    fake.path.unlink()

    result = world.sync()

    assert result.outcomes["berlin/metrics"] == "draft"
    assert result.outcomes["berlin/web"] == "KustomizeUnavailable"
    (finding,) = (finding for finding in result.findings if finding.code == "KustomizeUnavailable")
    assert "go install sigs.k8s.io/kustomize/kustomize/v5" in finding.message
    fake.install()
    fake.behave(output=BUILT)
    assert world.sync().outcomes["berlin/web"] == "draft"


def test_equal_requests_of_clusters_start_one_program(tmp_path: Path, fake: FakeKustomize) -> None:
    world = create_world(tmp_path, str(fake.path))
    lisbon = variant("lisbon", "lisbon", "web", "v1", upstream="apps/web", extra="kustomize: {path: overlays/berlin}")
    world.write({"lisbon.yaml": lisbon})

    world.sync()

    assert fake.calls() == [["build", "source/overlays/berlin"]]
    world.sync_until_unchanged()
    assert len(fake.calls()) == 1


@pytest.mark.parametrize(
    ("extra", "code", "message"),
    [
        pytest.param(
            "kustomize: {path: ../other}", "PathInvalid",
            'spec.kustomize.path must be a relative path below the upstream package, such as "overlays/prod", but is '
            '"../other"',
            id="path-outside",
        ),
        pytest.param(
            "kustomize: {path: overlays/paris}", "KustomizeFailed",
            'folder "overlays/paris" of the upstream package has no kustomization.yaml; folders with this file: base, '
            "overlays/berlin, overlays/lisbon",
            id="no-overlay",
        ),
        pytest.param(
            "", "SourceKindAmbiguous",
            "has no package at its top level, but contains base/kustomization.yaml in a subfolder",
            id="no-options",
        ),
    ],
)  # fmt: skip
def test_wrong_path_is_an_error(tmp_path: Path, fake: FakeKustomize, extra: str, code: str, message: str) -> None:
    world = create_world(tmp_path, str(fake.path))
    world.write({"web.yaml": request(extra)})

    result = world.sync()

    assert any(message in finding.message for finding in result.findings if finding.code == code), result.findings
    assert not fake.calls()
