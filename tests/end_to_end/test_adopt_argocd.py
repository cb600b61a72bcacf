"""`reconciler adopt --from argocd`: ApplicationSets of a repository, compared with rendered manifests."""

from __future__ import annotations

import json
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
    assert "`sets/plain.yaml:11` `spec.generators[1].plugin`: the generator plugin needs another service" in page
    assert [path.name for path in (folder / "out/config/packages").iterdir()] == ["plain.yaml"]
    assert "region: us" in (folder / "out/config/clusters.yaml").read_text()
    written = [path.read_text() for path in (folder / "out").rglob("*") if path.is_file()]
    assert not [text for text in (*written, result.stdout) if "hunter22" in text]


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
    assert "a render of the original objects by the same engine, which is a weaker check" in result.stdout


def test_a_missing_manifest_is_not_verified(folder: Path) -> None:
    (folder / "rendered/ohio/db.yaml").unlink()

    result = adopt(folder, "--rendered", "rendered")

    assert "NotVerified: ohio/db: the folder of --rendered does not contain ohio/db.yaml" in result.stdout


def test_the_source_can_be_a_plain_folder(tmp_path: Path) -> None:
    for path, text in build_files().items():
        (tmp_path / "apps.git" / path).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / "apps.git" / path).write_text(text)

    assert "8 Equal" in adopt(tmp_path).stdout


def test_the_fleet_repository_is_required(folder: Path) -> None:
    result = run_in(folder, ENVIRONMENT, "adopt", "apps.git", "-O", "out", "--repo-url", URL)

    assert result.returncode == 3
    assert "--fleet must name the repository for the branches of the clusters" in result.stderr


def test_a_chart_of_an_application_is_rendered_with_its_values(tmp_path: Path) -> None:
    program = find_program("helm")
    files = {
        "charts/ksm/Chart.yaml": "apiVersion: v2\nname: ksm\nversion: 1.0.0\n",
        "charts/ksm/values.yaml": "size: 1\nzone: none\n",
        "charts/ksm/templates/map.yaml": (
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
            "data: {size: {{ .Values.size | quote }}, zone: {{ .Values.zone | quote }}}\n"
        ),
        "app.yaml": (
            "apiVersion: argoproj.io/v1alpha1\nkind: Application\nmetadata: {name: ksm}\nspec:\n"
            f"  source:\n    repoURL: {URL}\n    path: charts/ksm\n"
            "    helm: {valuesObject: {zone: b}, parameters: [{name: size, value: '3'}]}\n"
            "  destination: {name: berlin, namespace: shop}\n"
        ),
    }
    write_repository(tmp_path, files)
    manifest = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: ksm, namespace: shop}\ndata: {size: '3', zone: b}\n"
    write_rendered(tmp_path, {"berlin/ksm.yaml": manifest})
    (tmp_path / "settings.yaml").write_text(f"sources: {{helm: {{program: {program}}}}}\n")

    result = adopt(tmp_path, "--rendered", "rendered", "--settings", "settings.yaml")

    assert result.returncode == 0, result.stdout
    assert "1 Equal" in result.stdout
