"""A test of one chart from a Git folder, a chart repository and an OCI registry, which helm renders in each case."""

from __future__ import annotations

from pathlib import Path

from tests.scenarios.test_artifacts import describe_repository, request
from tests.scenarios.test_charts import chart
from tests.support.archives import pack_files
from tests.support.artifact_servers import CHART_LAYER, ArtifactServer, RegistryServer, serve
from tests.support.programs import find_program
from tests.support.world import small_world, variant

HELM = "helm: {namespace: shop, releaseName: web}"
IGNORED = {"Kptfile", "package-context.yaml"}


def test_same_chart_from_three_sources(tmp_path: Path) -> None:
    world = small_world(tmp_path, sources={"poll_seconds": 0, "helm": {"program": find_program("helm")}})
    files = chart("1.0.0")
    archive = pack_files({f"web/{path}": text for path, text in files.items()})
    server, registry = ArtifactServer(), RegistryServer()
    with serve(server), serve(registry):
        server.add_chart("web", "1.0.0", archive)
        registry.push(
            "charts/web", "1.0.0", pack_files({f"web/{path}": text for path, text in files.items()}, 9), CHART_LAYER
        )
        world.release("charts/web", "v1", files)
        http = request('chart: web, version: "1.0.0"', helm=HELM)
        world.write(
            {
                "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
                "oci.yaml": describe_repository(
                    "helm", f"{{url: 'oci://{registry.host}/charts', insecure: true}}", "oci"
                ),
                "http.yaml": http,
                "registry.yaml": http.replace("web-berlin", "oci-berlin")
                .replace("repo: charts", "repo: oci")
                .replace("package: web", "package: oci"),
                "git.yaml": variant("git", "berlin", "git", "v1", upstream="charts/web", extra=HELM),
            }
        )
        result = world.sync()
        assert world.sync().is_unchanged

    assert {result.outcomes[f"berlin/{package}"] for package in ("web", "oci", "git")} == {"draft"}
    contents = [
        {
            path: world.text("drafts/berlin", f"{package}/{path}")
            for path in world.paths(world.fleet, "drafts/berlin", package)
            if path not in IGNORED
        }
        for package in ("web", "oci", "git")
    ]
    assert contents[0] == contents[1] == contents[2]
    assert set(contents[0]) == {"deployment-web.yaml", "service-web.yaml"}
