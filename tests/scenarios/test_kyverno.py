"""Tests of the published chart kyverno in Git: its dependencies, which are missing, and its hooks."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.scenarios.test_chart_checks import build_request, list_messages, read_chart
from tests.support.archives import pack_chart
from tests.support.artifact_servers import ArtifactServer, compute_digest, serve
from tests.support.programs import find_program
from tests.support.world import World, small_world

pytestmark = pytest.mark.second_pass

# The locked versions of the dependencies that the chart does not contain, and their chart repositories.
DEPENDENCIES = {
    "kyverno-api": ("0.0.1-alpha.4", "https://kyverno.github.io/api"),
    "openreports": ("0.1.0", "https://openreports.github.io/reports-api"),
    "reports-server": ("0.1.6", "https://kyverno.github.io/reports-server/"),
}
DELETE_HOOKS = {"job-web-kyverno-rm-webhooks.yaml", "job-web-kyverno-scale-to-zero.yaml"}


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    """Return a chart repository with a stub for each dependency, in place of the published chart repositories."""
    with serve(ArtifactServer()) as running:
        for name, (version, _) in DEPENDENCIES.items():
            running.add_chart(name, version, pack_chart(name, version))
        yield running


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer) -> World:
    mirrors = [{"prefix": url.rstrip("/"), "url": f"{server.url}/charts"} for _, url in DEPENDENCIES.values()]
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}, "mirrors": mirrors})
    world.release("charts/web", "v1", read_chart("kyverno"))
    world.write({"web.yaml": build_request()})
    return world


def add_repositories(world: World) -> None:
    """Add the Repositories that the findings about missing dependencies contain."""
    messages = list_messages(world, "DependencyRepositoryMissing")
    manifests = [message.partition("add this Repository to the config: ")[2] for message in messages]
    world.write({f"charts-{number}.yaml": f"{text}\n" for number, text in enumerate(manifests)})


def test_each_missing_repository_is_a_finding_with_its_manifest(world: World, server: ArtifactServer) -> None:
    messages = list_messages(world, "DependencyRepositoryMissing")

    assert len(messages) == len(DEPENDENCIES)
    for message, (name, (version, url)) in zip(messages, DEPENDENCIES.items(), strict=True):
        assert (
            f'chart kyverno 3.9.1 requires version "{version}" of the chart "{name}", but its folder `charts` does not contain'
            in message
        )
        manifest = parse_yaml(message.partition("add this Repository to the config: ")[2]).documents[0].data
        assert (manifest["kind"], manifest["spec"]) == ("Repository", {"type": "helm", "helm": {"url": url}})
    assert server.paths == []


@pytest.mark.slow
def test_chart_is_rendered_with_its_dependencies(world: World) -> None:
    add_repositories(world)

    result = world.sync()

    assert result.outcomes["berlin/web"] == "draft", result.findings
    dependencies = world.package_status("drafts/berlin", "web")["upstream"]["to"]["dependencies"]
    assert dependencies == [
        {"name": name, "version": version, "digest": compute_digest(pack_chart(name, version))}
        for name, (version, _) in DEPENDENCIES.items()
    ]
    assert world.sync_until_unchanged().report.render_count == 0


@pytest.mark.slow
def test_delete_hooks_are_written_only_for_argocd(world: World) -> None:
    add_repositories(world)

    left_out = [message for message in list_messages(world, "HookLeftOut") if "(pre-delete" in message]

    assert len(left_out) == len(DELETE_HOOKS)
    assert DELETE_HOOKS.isdisjoint(world.paths(world.fleet, "drafts/berlin", "web"))
    world.write({"web.yaml": build_request("  hooks: argocd\n")})
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert set(world.paths(world.fleet, "drafts/berlin", "web")) >= DELETE_HOOKS
