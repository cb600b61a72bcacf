"""`reconciler adopt --from argocd`: ApplicationSets of a repository, compared with rendered manifests."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import ENVIRONMENT
from tests.support.git_repositories import commit_files, make_bare
from tests.support.programs import find_program

REGIONS = {"berlin": "eu", "lyon": "eu", "ohio": "us", "utah": "us"}
URL = "https://git.example.com/apps.git"
CLUSTER = """\
apiVersion: v1
kind: Secret
metadata:
  name: {name}
  labels: {{argocd.argoproj.io/secret-type: cluster, region: {region}}}
stringData: {{name: {name}, server: "https://{name}.example.com", config: '{{"bearerToken": "hunter22"}}'}}
"""
MANIFEST = """\
apiVersion: v1
kind: ConfigMap
metadata: {{name: {name}, namespace: shop}}
data: {{size: "1"}}  # per zone
"""
PLAIN_SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: plain}
spec:
  goTemplate: true
  generators:
  - matrix:
      generators:
      - clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}
      - git: {repoURL: APPS, revision: HEAD, directories: [{path: plain/*}]}
  - plugin: {configMapRef: {name: numbers}}
  template:
    metadata: {name: '{{.path.basename}}-{{.name}}'}
    spec:
      source: {repoURL: APPS, targetRevision: HEAD, path: '{{.path.path}}'}
      destination: {server: '{{.server}}', namespace: shop}
"""


def build_files() -> dict[str, str]:
    clusters = {f"clusters/{name}.yaml": CLUSTER.format(name=name, region=region) for name, region in REGIONS.items()}
    packages = {f"plain/{name}/app.yaml": MANIFEST.format(name=name) for name in ("web", "db")}
    return {**clusters, **packages, "sets/plain.yaml": PLAIN_SET.replace("APPS", URL)}


def write_repository(folder: Path, files: Mapping[str, str]) -> None:
    repository = make_bare(folder / "apps.git")
    commit_files(repository, "refs/heads/main", {path: text.encode() for path, text in files.items()})


def write_rendered(folder: Path, manifests: Mapping[str, str]) -> None:
    for path, text in manifests.items():
        (folder / "rendered" / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / "rendered" / path).write_text(text)


def adopt(folder: Path, *arguments: str) -> CommandResult:
    options = ("apps.git", "-O", "out", "--repo-url", URL, "--fleet", "fleet.git", *arguments)
    return run_in(folder, ENVIRONMENT, "adopt", *options)


def list_units(result: CommandResult) -> list[dict[str, Any]]:
    return [item for item in json.loads(result.stdout)["items"] if item["type"] == "unit"]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Return a folder with a repository of ApplicationSets, and with the rendered manifests of all Applications."""
    write_repository(tmp_path, build_files())
    manifests = {
        f"{cluster}/{package}.yaml": MANIFEST.format(name=package).replace("  # per zone", "")
        for cluster in REGIONS
        for package in ("web", "db")
    }
    write_rendered(tmp_path, manifests)
    return tmp_path


def test_an_application_set_becomes_one_set_and_a_plugin_is_reported(folder: Path) -> None:
    result = adopt(folder, "--rendered", "rendered")

    assert result.returncode == 2, result.stderr
    assert "8 packages on 4 clusters: 8 Equal, 0 Different, 0 NotVerified; 1 not imported" in result.stdout
    assert "Expected content: the manifests of --rendered." in result.stdout
    page = (folder / "out/ADOPT.md").read_text()
    assert (
        "`sets/plain.yaml:11` `spec.generators[1].plugin`: an entry must contain exactly one of the generators " in page
    )
    assert [path.name for path in (folder / "out/config/packages").iterdir()] == ["plain.yaml"]
    assert "region: us" in (folder / "out/config/clusters.yaml").read_text()
    written = [path.read_text() for path in (folder / "out").rglob("*") if path.is_file()]
    assert not [text for text in (*written, result.stdout) if "hunter22" in text]


@pytest.mark.slow
def test_a_different_field_is_reported_and_can_be_left_out_or_ignored(folder: Path) -> None:
    changed = MANIFEST.format(name="web").replace('"1"', '"2"')
    write_rendered(folder, {"ohio/web.yaml": changed})

    different = [
        unit for unit in list_units(adopt(folder, "--rendered", "rendered", "-o", "json")) if unit["result"] != "Equal"
    ]
    assert [(unit["cluster"], unit["package"], unit["result"], unit["differences"]) for unit in different] == [
        ("ohio", "web", "Different", ["ConfigMap/shop/web /data/size"])
    ]

    (folder / "out").rename(folder / "all")
    units = list_units(adopt(folder, "--rendered", "rendered", "--only-equal", "-o", "json"))
    assert [(unit["cluster"], unit["package"]) for unit in units if "isWritten" not in unit] == [("ohio", "web")]
    texts = "".join(path.read_text() for path in (folder / "out/config/packages").iterdir())
    assert "name: utah" in texts

    (folder / "out").rename(folder / "only-equal")
    ignored = adopt(folder, "--rendered", "rendered", "--ignore", "/data/*", "-o", "json")
    assert {unit["result"] for unit in list_units(ignored)} == {"Equal"}


def test_without_rendered_manifests_the_original_objects_are_rendered(folder: Path) -> None:
    result = adopt(folder)

    assert "8 Equal" in result.stdout
    assert "a render of the original objects by the same engine (a weaker check" in result.stdout


def test_a_missing_manifest_is_not_verified(folder: Path) -> None:
    (folder / "rendered/ohio/db.yaml").unlink()

    result = adopt(folder, "--rendered", "rendered")

    assert "NotVerified: ohio/db: the folder of --rendered does not contain ohio/db.yaml" in result.stdout


def test_head_is_the_default_branch_of_a_repository(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "apps.git")
    (repository / "HEAD").write_text("ref: refs/heads/trunk\n")
    files = {path: text.encode() for path, text in build_files().items()}
    commit_files(repository, "refs/heads/trunk", files)

    assert "8 Equal" in adopt(tmp_path).stdout
    assert "branch: trunk" in (tmp_path / "out/config/repositories.yaml").read_text()


def test_the_source_can_be_a_plain_folder(tmp_path: Path) -> None:
    for path, text in build_files().items():
        (tmp_path / "apps.git" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "apps.git" / path).write_text(text)

    assert "8 Equal" in adopt(tmp_path).stdout


def test_the_fleet_repository_is_required(folder: Path) -> None:
    result = run_in(folder, ENVIRONMENT, "adopt", "apps.git", "-O", "out", "--repo-url", URL)

    assert result.returncode == 3
    assert "--fleet must name the repository for the branches of the clusters" in result.stderr


APPLICATION = """\
apiVersion: argoproj.io/v1alpha1
kind: Application
metadata: {name: web}
spec:
  source: {repoURL: APPS, targetRevision: v1.2.0, path: plain/web}
  destination: {name: berlin, namespace: shop}
"""


def test_a_tag_of_the_repository_is_imported_if_the_package_has_the_same_tag(tmp_path: Path) -> None:
    repository = make_bare(tmp_path / "apps.git")
    old = {"plain/web/app.yaml": MANIFEST.format(name="old").encode()}
    commit_files(repository, "refs/tags/v1.2.0", old)
    files = {"app.yaml": APPLICATION.replace("APPS", URL), "plain/web/app.yaml": MANIFEST.format(name="new")}
    commit_files(repository, "refs/heads/main", {path: text.encode() for path, text in files.items()})

    result = adopt(tmp_path)
    assert "Create the tag plain/web/v1.2.0 on the same commit, and run the command again." in result.stdout

    commit_files(repository, "refs/tags/plain/web/v1.2.0", old)
    write_rendered(tmp_path, {"berlin/web.yaml": MANIFEST.format(name="old")})
    result = adopt(tmp_path, "--rendered", "rendered")
    assert "1 Equal, 0 Different, 0 NotVerified; 0 not imported" in result.stdout, result.stderr
    assert "revision: v1.2.0" in (tmp_path / "out/config/packages/web.yaml").read_text()


OVERLAY_SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: overlays}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}}]
  template:
    metadata: {name: 'site-{{.name}}'}
    spec:
      source: {repoURL: APPS, path: 'site/overlays/{{.name}}', kustomize: {commonAnnotations: {team: web}}}
      destination: {server: '{{.server}}'}
"""


def test_overlays_of_a_set_are_built(tmp_path: Path) -> None:
    program = find_program("kustomize")
    files = {
        **build_files(), "sets/overlays.yaml": OVERLAY_SET.replace("APPS", URL),
        "site/base/kustomization.yaml": "resources: [app.yaml]\n", "site/base/app.yaml": MANIFEST.format(name="site"),
    }  # fmt: skip
    for cluster in REGIONS:
        files[f"site/overlays/{cluster}/kustomization.yaml"] = f"resources: [../../base]\nnameSuffix: -{cluster}\n"
        manifest = MANIFEST.format(name=f"site-{cluster}")
        annotated = manifest.replace("namespace: shop", "namespace: shop, annotations: {team: web}")
        write_rendered(tmp_path, {f"{cluster}/site.yaml": annotated})
        write_rendered(tmp_path, {f"{cluster}/{name}.yaml": MANIFEST.format(name=name) for name in ("web", "db")})
    write_repository(tmp_path, files)
    (tmp_path / "settings.yaml").write_text(f"sources: {{kustomize: {{program: {program}}}}}\n")

    result = adopt(tmp_path, "--rendered", "rendered", "--settings", "settings.yaml")

    assert "12 packages on 4 clusters: 12 Equal, 0 Different, 0 NotVerified; 1 not imported" in result.stdout
    text = (tmp_path / "out/config/packages/overlays.yaml").read_text()
    assert "pathExpr: \"'overlays/' + repository.name\"" in text


OPTIONS = "components: [../../tls], patches: [{path: ../../size.yaml}], images: ['web:2'], namePrefix: a-"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("overlay", "expected"),
    [("", "1 Equal, 0 Different"), ("namePrefix: own-\n", "ConfigMap/shop/a-web is missing in the render")],
    ids=["equal", "argo-cd-replaces-the-prefix-of-the-overlay"],
)
def test_options_of_an_overlay_are_compared_with_the_edited_overlay(
    tmp_path: Path, overlay: str, expected: str
) -> None:
    (tmp_path / "settings.yaml").write_text(f"sources: {{kustomize: {{program: {find_program('kustomize')}}}}}\n")
    source = f"path: site/overlays/prod, kustomize: {{{OPTIONS}}}"
    application = APPLICATION.replace("targetRevision: v1.2.0, path: plain/web", source).replace("APPS", URL)
    files = {
        "app.yaml": application,
        "site/base/kustomization.yaml": "resources: [app.yaml]\n",
        "site/base/app.yaml": MANIFEST.format(name="web"),
        "site/overlays/prod/kustomization.yaml": f"resources: [../../base]\n{overlay}",
        "site/size.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {size: '9'}\n",
        "site/tls/kustomization.yaml": (
            "apiVersion: kustomize.config.k8s.io/v1alpha1\nkind: Component\ncommonAnnotations: {tls: 'on'}\n"
        ),
    }
    write_repository(tmp_path, files)

    result = adopt(tmp_path, "--settings", "settings.yaml")

    assert expected in result.stdout, result.stderr
    text = (tmp_path / "out/config/packages/web.yaml").read_text()
    assert "package: site\n" in text
    assert "- ../../tls\n" in text
    assert "size: '9'" in text


CHART = {
    "charts/ksm/Chart.yaml": "apiVersion: v2\nname: ksm\nversion: 1.0.0\n",
    "charts/ksm/values.yaml": "size: 1\nzone: none\nlevel: info\nhost: none\nlimits: {cpu: 1, memory: 2}\n",
    "charts/ksm/prod.yaml": "level: warn\n",
    "charts/ksm/templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
        "data: {values: {{ .Values | toJson | quote }}}\n"
    ),
}
CHART_SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: charts}
spec:
  goTemplate: true
  generators:
  - matrix:
      generators:
      - clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}
      - git: {repoURL: APPS, revision: HEAD, directories: [{path: charts/*}]}
  template:
    metadata: {name: '{{.path.basename}}-{{.name}}'}
    spec:
      sources:
      - repoURL: APPS
        path: '{{.path.path}}'
        helm:
          releaseName: '{{.path.basename}}'
          valueFiles: [prod.yaml, '$values/values/{{.name}}.yaml']
          valuesObject: {zone: '{{.metadata.labels.region}}-1', limits: {memory: null}}
          parameters: [{name: host, value: '{{.name}}.example.com'}]
      - {repoURL: APPS, targetRevision: HEAD, ref: values}
      destination: {server: '{{.server}}', namespace: shop}
"""


@pytest.mark.slow
def test_charts_of_a_set_equal_the_output_of_helm(tmp_path: Path) -> None:
    program = find_program("helm")
    sizes = {"berlin": 2, "lyon": 2, "ohio": 3, "utah": 5}
    values = {f"values/{cluster}.yaml": f"size: {size}\n" for cluster, size in sizes.items()}
    files = {**build_files(), **CHART, **values, "sets/charts.yaml": CHART_SET.replace("APPS", URL)}
    write_repository(tmp_path, files)
    for path, text in {**CHART, **values}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for cluster, region in REGIONS.items():
        options = (
            "-f", "charts/ksm/prod.yaml", "-f", f"values/{cluster}.yaml", "--set", f"zone={region}-1",
            "--set", "limits.memory=null", "--set", f"host={cluster}.example.com",
        )  # fmt: skip
        command = [program, "template", "ksm", "charts/ksm", "--namespace", "shop", *options]
        output = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True).stdout
        write_rendered(tmp_path, {f"{cluster}/ksm.yaml": output})
        write_rendered(tmp_path, {f"{cluster}/{name}.yaml": MANIFEST.format(name=name) for name in ("web", "db")})
    (tmp_path / "settings.yaml").write_text(f"sources: {{helm: {{program: {program}}}}}\n")

    result = adopt(tmp_path, "--rendered", "rendered", "--settings", "settings.yaml", "--explain")

    assert "12 packages on 4 clusters: 12 Equal, 0 Different, 0 NotVerified; 1 not imported" in result.stdout
    assert result.returncode == 2
    text = (tmp_path / "out/config/packages/charts.yaml").read_text()
    assert "- \"'$config/values/apps/values/' + repository.name + '.yaml'\"" in text
    assert "valueExpr: repository.name + '.example.com'" in text
    assert "name: charts-region-eu" in text
    assert (tmp_path / "out/config/values/apps/values/utah.yaml").read_text() == "size: 5\n"


def test_value_that_looks_like_a_secret_is_copied_nowhere(tmp_path: Path) -> None:
    objects = CHART_SET.replace("APPS", URL).replace("limits: {memory: null}", "auth: {password: hunter22}")
    secrets = {f"values/{cluster}.yaml": "db: {rootPassword: hunter22}\n" for cluster in REGIONS}
    write_repository(tmp_path, {**build_files(), **CHART, **secrets, "sets/charts.yaml": objects})

    result = adopt(tmp_path)

    assert result.returncode == 2
    page = (tmp_path / "out/ADOPT.md").read_text()
    assert "ksm: the value auth.password looks like a secret, and is not copied" in page
    assert "ksm: the value db.rootPassword in values/apps/values/ohio.yaml looks like a secret" in page
    assert "8 Equal, 0 Different, 4 NotVerified; 6 not imported" in result.stdout
    catalog = tmp_path / "out/catalog.git"
    written = [
        path.read_text() for path in (tmp_path / "out").rglob("*") if path.is_file() and catalog not in path.parents
    ]
    assert not [text for text in (*written, result.stdout, result.stderr) if "hunter22" in text]


SEVERAL_SET = """\
apiVersion: argoproj.io/v1alpha1
kind: ApplicationSet
metadata: {name: several}
spec:
  goTemplate: true
  generators: [{clusters: {selector: {matchLabels: {argocd.argoproj.io/secret-type: cluster}}}}]
  template:
    metadata: {name: 'shop-{{.name}}'}
    spec:
      sources:
      - repoURL: APPS
        path: charts/ksm
        helm: {releaseName: shop, valueFiles: ['$values/values/{{.name}}.yaml'], valuesObject: {host: '{{.name}}'}}
      - {repoURL: APPS, ref: values}
      - {repoURL: APPS, path: plain/web}
      - {repoURL: APPS, path: site, kustomize: {nameSuffix: -b}}
      destination: {server: '{{.server}}', namespace: shop}
"""


@pytest.mark.slow
def test_several_sources_of_a_set_equal_the_manifests(tmp_path: Path) -> None:
    programs = {name: find_program(name) for name in ("helm", "kustomize")}
    sizes = {"berlin": 2, "lyon": 2, "ohio": 3, "utah": 5}
    values = {f"values/{cluster}.yaml": f"size: {size}\n" for cluster, size in sizes.items()}
    site = {"site/kustomization.yaml": "resources: [app.yaml]\n", "site/app.yaml": MANIFEST.format(name="site")}
    files = {**build_files(), **CHART, **values, **site, "sets/plain.yaml": SEVERAL_SET.replace("APPS", URL)}
    write_repository(tmp_path, files)
    for path, text in {**CHART, **values}.items():
        (tmp_path / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / path).write_text(text)
    for cluster in REGIONS:
        command = [
            programs["helm"], "template", "shop", "charts/ksm", "--namespace", "shop", "-f", f"values/{cluster}.yaml",
            "--set", f"host={cluster}",
        ]  # fmt: skip
        output = subprocess.run(command, cwd=tmp_path, text=True, capture_output=True, check=True).stdout
        manifests = [output, MANIFEST.format(name="web"), MANIFEST.format(name="site-b")]
        write_rendered(tmp_path, {f"{cluster}/shop.yaml": "---\n".join(manifests)})
    settings = "".join(f"  {name}: {{program: {program}}}\n" for name, program in programs.items())
    (tmp_path / "settings.yaml").write_text(f"sources:\n{settings}")

    result = adopt(tmp_path, "--rendered", "rendered", "--settings", "settings.yaml")

    assert "4 packages on 4 clusters: 4 Equal, 0 Different, 0 NotVerified; 0 not imported" in result.stdout
    text = (tmp_path / "out/config/packages/several.yaml").read_text()
    assert text.count("kind: PackageVariantSet") == 1
    assert "- \"'$values/values/' + repository.name + '.yaml'\"" in text
    (tmp_path / "out").rename(tmp_path / "first")
    assert (
        "4 Equal, 0 Different, 0 NotVerified; 0 not imported" in adopt(tmp_path, "--settings", "settings.yaml").stdout
    )
