"""Tests of real charts and of killed processes: the same files from each source, and the same refs after any kill."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.scenarios.test_artifacts import describe_repository, pack_web, request
from tests.support.archives import pack_files
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, serve
from tests.support.git_repositories import delete_ref, read_refs
from tests.support.programs import PROJECT, chart_folder, find_program
from tests.support.world import World, small_world

KILLS = 50
ENVIRONMENT = {**os.environ, "PYTHONPATH": str(PROJECT)}


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        yield running


def read_chart(name: str) -> dict[str, str]:
    folder = chart_folder(name)
    return {str(path.relative_to(folder)): path.read_text() for path in sorted(folder.rglob("*")) if path.is_file()}


@pytest.mark.slow
def test_chart_has_the_same_files_from_git_http_and_a_registry(tmp_path: Path, server: ArtifactServer) -> None:
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}})
    files = read_chart("metrics-server")
    archive = pack_files({f"metrics-server/{path}": text for path, text in files.items()})
    registry = RegistryServer()
    with serve(registry):
        world.release("metrics-server", "v1", files)
        server.add_chart("metrics-server", "3.13.1", archive)
        registry.push("team/metrics-server", "3.13.1", archive, CHART_LAYER)
        upstreams = {
            "git": "repo: catalog, package: metrics-server, revision: v1",
            "http": 'repo: http-charts, chart: metrics-server, version: "3.13.1"',
            "oci": 'repo: oci-charts, chart: metrics-server, version: "3.13.1"',
        }
        oci = f'{{url: "oci://{registry.host}/team", insecure: true}}'
        world.write(
            {
                "http-charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}", "http-charts"),
                "oci-charts.yaml": describe_repository("helm", oci, "oci-charts"),
                **{
                    f"{name}.yaml": request("")
                    .replace("repo: charts, ", upstream)
                    .replace("web-berlin", name)
                    .replace("package: web}", f"package: {name}}}")
                    .replace("namespace: shop", "namespace: shop, releaseName: ms")
                    for name, upstream in upstreams.items()
                },
            }
        )

        result = world.sync()

    assert {result.outcomes[f"berlin/{name}"] for name in upstreams} == {"draft"}
    packages = [world.files(world.fleet, "drafts/berlin", name) for name in upstreams]
    resources = [
        {path: text for path, text in package.items() if path not in ("Kptfile", "package-context.yaml")}
        for package in packages
    ]
    assert len(resources[0]) == 9
    assert resources[0] == resources[1] == resources[2]


def build_fleet(folder: Path, server: ArtifactServer) -> World:
    world = small_world(folder)
    world.write(
        {
            "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
            **{
                f"{name}.yaml": request('chart: web, version: "1.0.0"', name).replace(
                    "{namespace: shop}", f"{{namespace: {name}}}"
                )
                for name in ("berlin", "lisbon")
            },
        }
    )
    settings = {
        "cache": str(folder / "cache"), "fleet": {"url": str(world.fleet)},
        "sources": {"helm": {"program": find_program("helm")}},
    }  # fmt: skip
    (folder / "settings.yaml").write_text(json.dumps(settings))
    return world


def run_sync(folder: Path, kill_after: float | None = None) -> bool:
    """Run one sync, and kill the process and its children after some seconds. Return whether the process ended."""
    command = [sys.executable, "-m", "reconciler", "sync", "config", "--settings", "settings.yaml"]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, start_new_session=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        try:
            _, errors = process.communicate(timeout=kill_after)
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, signal.SIGKILL)
            process.communicate()
            return False
        assert process.returncode == 0, errors.decode()
        return True


def discard_result(world: World) -> None:
    """Delete the cache and all branches, so that the next sync downloads, renders and pushes again."""
    shutil.rmtree(world.folder / "cache")
    for name in read_refs(world.fleet):
        delete_ref(world.fleet, name)


@pytest.mark.slow
def test_killed_processes_leave_the_refs_of_an_undisturbed_run(tmp_path: Path, server: ArtifactServer) -> None:
    server.add_chart("web", "1.0.0", pack_web("1.0.0"))
    killed, undisturbed = (tmp_path / name for name in ("killed", "undisturbed"))
    world, other = (build_fleet(folder, server) for folder in (killed, undisturbed))
    start = time.monotonic()
    run_sync(undisturbed)
    duration = time.monotonic() - start
    run_sync(undisturbed)
    generator = random.Random(20261126)
    killed_count = 0
    for _ in range(KILLS):
        if run_sync(killed, generator.uniform(0.3, duration)):
            discard_result(world)
            continue
        killed_count += 1
        for file in (killed / "cache/sources/sha256").glob("*"):
            # Each complete file has its digest as its name. A process that was killed can leave a temporary file.
            assert file.suffix == ".part" or file.name == hashlib.sha256(file.read_bytes()).hexdigest()
    run_sync(killed)
    run_sync(killed)

    assert killed_count > KILLS / 4
    assert any(len(file.name) == 64 for file in (killed / "cache/sources/sha256").iterdir())
    drafts = ["refs/heads/drafts/berlin", "refs/heads/drafts/lisbon"]
    assert [read_refs(world.fleet)[name] for name in drafts] == [read_refs(other.fleet)[name] for name in drafts]
    assert read_refs(world.fleet).keys() == read_refs(other.fleet).keys()
