"""Tests of grouped findings: an error on many clusters is short in all output for people."""

from __future__ import annotations

from pathlib import Path

from reconciler.output.findings.formats import format_findings
from tests.support.world import World, catalog, package, repository

CLUSTERS = [f"cluster-{number:02}" for number in range(12)]
SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata:
  name: web
spec:
  upstream: {repo: catalog, package: web, revision: v1}
  targets:
    - repositorySelector: {matchLabels: {region: north}}
      template:
        packageContext:
          dataExprs:
            - {key: zone, valueExpr: "repository.labels['zone']"}
"""


def create_fleet(folder: Path, **files: str) -> World:
    world = World.create(folder)
    world.release("web", "v1", package("web"))
    world.write({"catalog.yaml": catalog().replace("region: north", "region: none")})
    world.write({f"clusters/{name}.yaml": repository(name) for name in CLUSTERS})
    world.write({f"{name}.yaml": content for name, content in files.items()})
    return world


def test_error_of_a_set_on_many_clusters_has_five_examples(tmp_path: Path) -> None:
    pass_result = create_fleet(tmp_path, web=SET).plan()

    (finding,) = [finding for finding in pass_result.findings if finding.code == "RenderError"]
    assert finding.message.count("no such key: zone") == 5
    assert finding.message.endswith("; … and 7 more")


def test_equal_warning_on_many_clusters_is_one_line_with_five_examples(tmp_path: Path) -> None:
    pass_result = create_fleet(tmp_path, secret=placed_secret()).plan()

    assert len([finding for finding in pass_result.findings if finding.code == "SecretInBranch"]) == 12
    (line,) = [finding for finding in format_findings(pass_result.findings) if "SecretInBranch" in finding]
    assert "the same finding at 12 locations: cluster-00/" in line
    assert line.endswith(" and 7 more")


def placed_secret() -> str:
    """Return a Secret that is placed on all clusters."""
    on = ",".join(CLUSTERS)
    return (
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: key\n  namespace: edge\n"
        f'  annotations: {{reconciler.dev/clusters: "{on}"}}\ndata: {{password: aGVsbG8=}}\n'
    )
