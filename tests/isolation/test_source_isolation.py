"""An unexpected exception in the reader of artifacts or in a renderer of sources blocks only its package."""

from __future__ import annotations

import pkgutil
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from tests.scenarios.test_artifacts import describe_repository
from tests.support.archives import pack_files
from tests.support.artifact_servers import RegistryServer
from tests.support.world import World, package, small_world

PACKAGES = {"db": "berlin", "web": "lisbon"}
LIST_VERSIONS = "reconciler.sources.artifacts.Artifacts.list_versions"


def release(registry: RegistryServer, version: str) -> None:
    for name in PACKAGES:
        registry.push(f"team/{name}", version, pack_files(package(name, image=version)))


@pytest.fixture
def world(tmp_path: Path, registry: RegistryServer) -> World:
    world = small_world(tmp_path, sources={"poll_seconds": 0})
    release(registry, "1.0.0")
    world.write(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            **{
                f"{name}.yaml": "apiVersion: config.porch.kpt.dev/v1alpha1\nkind: PackageVariant\n"
                f'metadata: {{name: {name}}}\nspec:\n  upstream: {{repo: charts, package: {name}, version: "1.x"}}\n'
                f"  downstream: {{repo: {cluster}, package: {name}}}\n"
                for name, cluster in PACKAGES.items()
            },
        }
    )
    world.sync()
    for cluster in PACKAGES.values():
        world.merge(cluster, delete=True)
    world.sync_until_unchanged()
    return world


def fail_for_db(monkeypatch: pytest.MonkeyPatch, function: str, position: int, error: type[Exception]) -> None:
    """Let each call of a function fail whose argument at a position is the package db or its name."""
    original = pkgutil.resolve_name(function)

    def replacement(*arguments: Any) -> Any:
        if getattr(arguments[position], "package", arguments[position]) == "db":
            raise error("injected")
        return original(*arguments)

    monkeypatch.setattr(function, replacement)


@pytest.mark.quick_cases(every=5)
@pytest.mark.parametrize(
    ("function", "position", "error"),
    [
        pytest.param(LIST_VERSIONS, 2, MemoryError, id="versions"),
        pytest.param("reconciler.sources.artifacts.Artifacts.find_tag", 2, RecursionError, id="tag"),
        pytest.param("reconciler.sources.artifacts.Artifacts.read", 2, ValueError, id="archive"),
        pytest.param("reconciler.sources.package_sources.PackageSources.read_artifact", 1, OSError, id="lock"),
        pytest.param("reconciler.sources.package_sources.PackageSources.render", 1, ValueError, id="render"),
    ],
)
def test_exception_in_a_source_blocks_only_its_package(
    world: World, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch, function: str, position: int,
    error: type[Exception],
) -> None:  # fmt: skip
    published = world.files(world.fleet, "clusters/berlin", "db")
    release(registry, "1.0.1")
    with monkeypatch.context() as context:
        fail_for_db(context, function, position, error)
        result = world.sync()

    assert result.outcomes.get("berlin/db", "InternalError") == "InternalError"
    assert result.outcomes["lisbon/web"] == "draft"
    assert "InternalError" in result.codes
    assert world.files(world.fleet, "clusters/berlin", "db") == published
    assert world.sync().outcomes["berlin/db"] == "draft"


@pytest.mark.slow
def test_exception_in_a_repeated_request_starts_a_pass(
    world: World, registry: RegistryServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = world.service()
    while not service.summary.is_skipped:
        service.run()
    release(registry, "1.0.1")
    fail_for_db(monkeypatch, LIST_VERSIONS, 2, ValueError)

    with capture_logs() as events:
        service.run()

    assert service.summary.changes.update == 1
    assert any(event["event"] == "internal_error" for event in events)
    assert {finding.code for finding in service.summary.findings} == {"InternalError"}
