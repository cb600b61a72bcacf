"""`reconciler adopt`: the render of the new config equals the existing content, and the old branches do not change."""

from __future__ import annotations

import json
import random
from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.daemon import ENVIRONMENT
from tests.support.git_repositories import commit_files, git, list_paths, make_bare, read_file

REGIONS = {
    "eu": ("oslo", "berlin", "bonn", "lyon", "paris", "rome"),
    "us": ("boise", "iowa", "ohio", "reno", "texas", "utah"),
}
LAYOUT = ("--layout", "{region}/{cluster}/{package}")
WORKLOAD = """\
# The workload of the package.
apiVersion: apps/v1
kind: Deployment
metadata:
  name: {package}
  namespace: shop
spec:
    replicas: {replicas}   # per zone
    template:
      spec:
        containers:
        - {{name: app, image: "{registry}/{package}:1.0"}}
---
apiVersion: v1
kind: Service
metadata: {{name: {package}, namespace: shop}}
spec: {{ports: [{{port: 80}}]}}
"""
CONFIG_MAP = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: extra, namespace: shop}\ndata: {a: b}\n"
SECRET = "apiVersion: v1\nkind: Secret\nmetadata: {name: key, namespace: shop}\nstringData: {key: hunter22}\n"


def build_files(clusters_per_region: int = 6) -> dict[str, str]:
    """Return clusters with 3 packages. Regions differ in two values, and oslo and boise differ from their regions."""
    files = {}
    for region, clusters in REGIONS.items():
        for cluster in clusters[:clusters_per_region]:
            for package in ("web", "db", "cache"):
                replicas = 7 if (cluster, package) == ("oslo", "web") else 3 if region == "us" else 2
                files[f"{region}/{cluster}/{package}/app.yaml"] = WORKLOAD.format(
                    package=package, replicas=replicas, registry=f"{region}.example.com"
                )
    return {**files, "us/boise/db/extra.yaml": CONFIG_MAP}


def write_fleet(folder: Path, files: Mapping[str, str]) -> list[str]:
    """Write the source, and a fleet repository with the same content on branches. Return the names of the clusters."""
    write(folder / "source", files)
    repository = make_bare(folder / "fleet.git")
    starts = sorted({path.rpartition("/")[0].rpartition("/")[0] + "/" for path in files})
    for start in starts:
        content = {path.removeprefix(start): text.encode() for path, text in files.items() if path.startswith(start)}
        commit_files(repository, f"refs/heads/clusters/{start.split('/')[1]}", content)
    return [start.split("/")[1] for start in starts]


def write(folder: Path, files: Mapping[str, str]) -> None:
    for path, text in files.items():
        (folder / path).parent.mkdir(parents=True, exist_ok=True)
        (folder / path).write_text(text)


def run(folder: Path, *arguments: str) -> CommandResult:
    return run_in(folder, ENVIRONMENT, *arguments)


def adopt(folder: Path, *arguments: str) -> CommandResult:
    return run(folder, "adopt", *arguments)


@pytest.fixture
def fleet(tmp_path: Path) -> Path:
    """Return a folder with a source of 6 clusters, and with a fleet repository that has the same content."""
    write_fleet(tmp_path, build_files(3))
    return tmp_path


def list_changes(repository: Path, cluster: str, branch: str = "") -> list[str]:
    """Return the status and path of each file that the draft of a cluster changes."""
    branches = (branch or f"clusters/{cluster}", f"drafts/{cluster}")
    return git(repository, "diff", "--name-status", *branches).splitlines()


@pytest.mark.parametrize("clusters_per_region", [2, pytest.param(6, marks=pytest.mark.slow)])
def test_packages_become_sets_and_the_sync_changes_no_resource_file(tmp_path: Path, clusters_per_region: int) -> None:
    clusters = write_fleet(tmp_path, build_files(clusters_per_region))
    count = len(clusters)

    result = adopt(tmp_path, "source", "--output", "platform", *LAYOUT, "--fleet", "fleet.git", "--explain")

    assert result.returncode == 0, result.stderr
    assert f"{3 * count} packages on {count} clusters: {3 * count} Equal, 0 Different, 0 NotVerified" in result.stdout
    assert "the clusters with the label region=" in result.stdout
    assert "only these clusters have this value: oslo" in result.stdout
    config = tmp_path / "platform/config"
    texts = [path.read_text() for path in sorted((config / "packages").iterdir())]
    assert [text.count("kind: PackageVariantSet\n") for text in texts] == [1, 0, 1, 1]
    assert sum(text.count("kind: PackageVariant\n") for text in texts) == 1

    synced = run(tmp_path / "platform", "sync")

    assert synced.returncode == 0, synced.stdout
    for cluster in clusters:
        changes = list_changes(tmp_path / "fleet.git", cluster)
        assert {change.partition("\t")[0] for change in changes} == {"A"}
        assert {change.rpartition("/")[2].partition("\t")[0] for change in changes if ".reconciler/" not in change} == {
            "Kptfile", "package-context.yaml",
        }  # fmt: skip
    assert "PolicyNoEffect" not in synced.stdout
    assert "no changes" in run(tmp_path / "platform", "sync").stdout


@pytest.mark.slow
def test_the_packages_stay_in_the_folders_of_the_source_repository(tmp_path: Path) -> None:
    source = make_bare(tmp_path / "source.git")
    files = {f"fleet/{path}": text.encode() for path, text in build_files().items()}
    commit_files(source, "refs/heads/main", files)

    result = adopt(tmp_path, "source.git#main", "-O", "platform", "--path", "fleet", *LAYOUT)

    assert result.returncode == 0, result.stderr
    assert run(tmp_path / "platform", "sync").returncode == 0
    changes = list_changes(source, "oslo", "main")
    assert {change[0] for change in changes} == {"A"}
    assert "A\tfleet/eu/oslo/web/Kptfile" in changes


@pytest.mark.slow
def test_the_values_of_policies_are_no_local_changes(tmp_path: Path) -> None:
    write_fleet(tmp_path, {path: text.replace("# per zone", "# own text") if "oslo" in path else text
                           for path, text in build_files(2).items()})  # fmt: skip
    assert adopt(tmp_path, "source", "-O", "platform", *LAYOUT, "--fleet", "fleet.git").returncode == 0
    assert run(tmp_path / "platform", "sync").returncode == 0
    assert run(tmp_path / "platform", "approve", "--all", "--propose").returncode == 0
    policy = tmp_path / "platform/config/packages/web.yaml"
    policy.write_text(policy.read_text().replace("value: 7", "value: 9"))
    assert run(tmp_path / "platform", "sync").returncode == 0

    changed = read_file(tmp_path / "fleet.git", "refs/heads/drafts/oslo", "web/app.yaml")
    assert "    replicas: 9   # own text\n" in changed

    policy.write_text(policy.read_text().partition("---\n")[0])
    assert run(tmp_path / "platform", "sync").returncode == 0
    restored = read_file(tmp_path / "fleet.git", "refs/heads/drafts/oslo", "web/app.yaml")
    base = read_file(tmp_path / "platform/catalog.git", "refs/heads/main", "web/app.yaml")
    assert restored == base.replace("# per zone", "# own text")


@pytest.mark.slow
def test_equal_input_gives_equal_output(fleet: Path) -> None:
    outputs = []
    for name in ("first", "second"):
        assert adopt(fleet, "source", "-O", name, *LAYOUT, "--fleet", "fleet.git").returncode == 0
        paths = [
            path for path in sorted((fleet / name).rglob("*")) if path.is_file() and "catalog.git" not in str(path)
        ]
        tree = git(fleet / name / "catalog.git", "rev-parse", "main")
        outputs.append((tree, {str(path.relative_to(fleet / name)): path.read_text() for path in paths}))

    assert outputs[0] == outputs[1]


@pytest.mark.parametrize("seed", range(3))
def test_any_fleet_of_plain_manifests_is_equal(tmp_path: Path, seed: int) -> None:
    choose = random.Random(seed)
    files = {}
    for region, clusters in REGIONS.items():
        for cluster in clusters:
            data = {f"k{n}": choose.choice(["a", region, cluster, "${cluster.name}", "1"]) for n in range(5)}
            data = {key: value for key, value in data.items() if choose.random() < 0.8}
            items = [{"name": f"i{n}", "size": choose.choice([1, 2])} for n in range(choose.choice([2, 2, 3]))]
            resource = {
                "apiVersion": choose.choice(["example.com/v1", "example.com/v2"]),
                "kind": "Widget",
                "metadata": {"name": "w", "labels": {"a/b": choose.choice("xy")}},
                "spec": {"data": data, "items": items, "nested": {"on": choose.choice([True, False, 1, None, "yes"])}},
            }
            files[f"{region}/{cluster}/web/w.yaml"] = json.dumps(resource, indent=choose.choice([None, 2]))
            if choose.random() < 0.2:
                files[f"{region}/{cluster}/web/extra.yaml"] = CONFIG_MAP
    write(tmp_path / "source", files)

    result = adopt(tmp_path, "source", "-O", "out", *LAYOUT, "--fleet", "fleet.git")

    assert result.returncode == 0, result.stdout
    assert "12 Equal" in result.stdout


def test_a_secret_is_copied_nowhere_and_its_package_is_not_verified(fleet: Path) -> None:
    write(fleet / "source", {"eu/bonn/web/key.yaml": SECRET})

    result = adopt(fleet, "source", "-O", "out", *LAYOUT, "--fleet", "fleet.git", "-o", "json")

    assert result.returncode == 2
    data = json.loads(result.stdout)
    assert data["summary"]["equal"] == 17
    assert data["summary"]["notVerified"] == data["summary"]["notImported"] == 1
    (entry,) = [item for item in data["items"] if item["type"] == "notImported"]
    assert (entry["file"], entry["line"], entry["field"]) == ("eu/bonn/web/key.yaml", 1, "data")
    written = [path.read_bytes() for path in (fleet / "out").rglob("*") if path.is_file()]
    assert not [content for content in (*written, result.stdout.encode()) if b"hunter22" in content]
    assert "eu/bonn/web/key.yaml:1" in (fleet / "out/ADOPT.md").read_text()
    catalog = list_paths(fleet / "out/catalog.git", "refs/heads/main")
    assert not [path for path in catalog if path.endswith("key.yaml")]


@pytest.mark.slow
def test_only_equal_leaves_other_packages_to_the_old_tool(fleet: Path) -> None:
    write(fleet / "source", {"eu/bonn/web/key.yaml": SECRET})

    result = adopt(fleet, "source", "-O", "out", *LAYOUT, "--fleet", "fleet.git", "--only-equal", "-o", "json")

    units = [item for item in json.loads(result.stdout)["items"] if item["type"] == "unit"]
    assert [(unit["cluster"], unit["package"]) for unit in units if not unit.get("isWritten")] == [("bonn", "web")]
    text = (fleet / "out/config/packages/web.yaml").read_text()
    assert "name: berlin" in text
    assert "name: bonn" not in text


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("source", "-O", "out"), "SOURCE is a plain folder"),
        (("source", "-O", "source", "--fleet", "fleet.git"), "source must not exist, or must be an empty folder"),
        (("missing", "-O", "out", "--fleet", "fleet.git"), "it does not exist"),
        (("source", "-O", "out", "--fleet", "https://secret@example.com/f.git"), "CredentialInUrl"),
        (("source", "-O", "out", "--fleet", "fleet.git", "--layout", "{cluster}"), "must contain {package}"),
        (("source", "-O", "out", "--fleet", "fleet.git", "--ignore", "metadata"), "--ignore: a JSON pointer"),
        (("fleet.git#clusters/oslo", "-O", "out", "--layout", "{package}/{cluster}"), "give --fleet"),
        (("source", "-O", "out", "--fleet", "fleet.git", "--from", "flux"), "contains nothing to import as flux"),
        (("source", "-O", "out", "--fleet", "fleet.git", "--path", "eu/x"), "must contain files in the folder 'eu/x'"),
    ],
)
def test_an_invalid_call_writes_nothing(fleet: Path, arguments: tuple[str, ...], message: str) -> None:
    write(fleet / "source", {"web/oslo/app.yaml": CONFIG_MAP})
    commit_files(fleet / "fleet.git", "refs/heads/clusters/oslo", {"web/oslo/app.yaml": CONFIG_MAP.encode()})
    result = adopt(fleet, *arguments)

    assert result.returncode == 3
    assert message in result.stderr
    assert "secret" not in result.stderr
    assert not (fleet / "out").exists()


def test_a_source_without_a_package_writes_nothing(tmp_path: Path) -> None:
    write(tmp_path, {"source/berlin/web/Chart.yaml": "name: web\n", "source/a.yaml": CONFIG_MAP})

    result = adopt(tmp_path, "source", "-O", "out", "--fleet", "fleet.git")

    assert result.returncode == 2
    assert "not imported: berlin/web/Chart.yaml: the folder berlin/web is a Helm chart" in result.stdout
    assert "Nothing was written" in result.stdout
    assert not (tmp_path / "out").exists()
