"""`reconciler adopt --from flux`: Kustomizations and HelmReleases of two clusters."""

from __future__ import annotations

from pathlib import Path

from tests.support.command_line import run_in
from tests.support.daemon import ENVIRONMENT
from tests.support.git_repositories import commit_files, make_bare
from tests.support.programs import find_program

URL = "https://git.example.com/fleet.git"
SYNC = f"""\
apiVersion: source.toolkit.fluxcd.io/v1
kind: GitRepository
metadata: {{name: flux-system, namespace: flux-system}}
spec: {{url: {URL}, ref: {{branch: main}}}}
---
apiVersion: kustomize.toolkit.fluxcd.io/v1
kind: Kustomization
metadata: {{name: web, namespace: flux-system}}
spec: {{path: ./apps/web, sourceRef: {{kind: GitRepository, name: flux-system}}, dependsOn: [{{name: crds}}]}}
"""
RELEASE = """\
apiVersion: helm.toolkit.fluxcd.io/v2
kind: HelmRelease
metadata: {{name: ksm, namespace: shop}}
spec:
  chart:
    spec:
      chart: ./charts/ksm
      sourceRef: {{kind: GitRepository, name: flux-system, namespace: flux-system}}
  values: {{size: {size}}}
"""
MANIFEST = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: web, namespace: shop}\ndata: {zone: a}  # text\n"
CHART = {
    "charts/ksm/Chart.yaml": "apiVersion: v2\nname: ksm\nversion: 1.0.0\n",
    "charts/ksm/templates/map.yaml": (
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: {{ .Release.Name }}}\n"
        "data: {size: {{ .Values.size | quote }}}\n"
    ),
}


def test_kustomizations_and_releases_become_sets(tmp_path: Path) -> None:
    program = find_program("helm")
    files = {"apps/web/app.yaml": MANIFEST, **CHART}
    for cluster, size in (("berlin", 2), ("ohio", 3)):
        files |= {f"clusters/{cluster}/sync.yaml": SYNC, f"clusters/{cluster}/ksm.yaml": RELEASE.format(size=size)}
        rendered = tmp_path / "rendered" / cluster
        rendered.mkdir(parents=True)
        (rendered / "web.yaml").write_text(MANIFEST)
        text = f"apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: ksm, namespace: shop}}\ndata: {{size: '{size}'}}\n"
        (rendered / "ksm.yaml").write_text(text)
    repository = make_bare(tmp_path / "fleet.git")
    commit_files(repository, "refs/heads/main", {path: text.encode() for path, text in files.items()})
    (tmp_path / "settings.yaml").write_text(f"sources: {{helm: {{program: {program}}}}}\n")

    options = (
        "-O",
        "out",
        "--repo-url",
        URL,
        "--fleet",
        "new.git",
        "--rendered",
        "rendered",
        "--settings",
        "settings.yaml",
    )
    result = run_in(tmp_path, ENVIRONMENT, "adopt", "fleet.git", *options)

    assert "4 packages on 2 clusters: 4 Equal, 0 Different, 0 NotVerified; 2 not imported" in result.stdout, (
        result.stderr
    )
    assert result.returncode == 2
    assert "clusters/ohio/sync.yaml:9: spec.dependsOn" in result.stdout
    assert sorted(path.name for path in (tmp_path / "out/config/packages").iterdir()) == ["ksm.yaml", "web.yaml"]
