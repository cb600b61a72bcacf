"""Tests of the chart engine with the real program helm and with real charts. They are skipped if these are absent."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

import pytest

from reconciler.catalog.files import FileTree
from reconciler.krm.yaml import parse_yaml
from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.request import RenderedSource
from tests.sources.test_subcharts import build_archive
from tests.support.charts import LIMITS, REQUEST, RULES, build_chart, build_engine, format_config_map, read_folder
from tests.support.programs import chart_folder, find_program

CHARTS = ("cert-manager", "descheduler", "flagger", "grafana", "kyverno-policies", "metrics-server", "sealed-secrets")


def render(tmp_path: Path, chart: Any, **options: Any) -> RenderedSource:
    limits, rules = replace(LIMITS, output_bytes=1 << 26), replace(RULES, max_resources=5_000)
    engine = build_engine(find_program("helm"), tmp_path, limits, rules=rules)
    return engine.render(chart, replace(REQUEST, **options))


def list_errors(source: RenderedSource) -> list[tuple[str, str]]:
    return [(finding.code, finding.message) for finding in source.findings if finding.severity == "error"]


def index_resources(text: str) -> dict[tuple[str, ...], Any]:
    resources = [document.data for document in parse_yaml(text).documents]
    return {
        (data["apiVersion"], data["kind"], data["metadata"].get("namespace", ""), data["metadata"]["name"]): data
        for data in resources
    }


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize("name", CHARTS)
def test_files_equal_the_output_of_helm(tmp_path: Path, name: str) -> None:
    folder = chart_folder(name)
    command = [find_program("helm"), "template", "--namespace", "shop", "--kube-version", "1.34.0", "--include-crds"]
    output = subprocess.run([*command, "web", str(folder)], capture_output=True, text=True, check=True, timeout=60)

    source = render(tmp_path, read_folder(folder), set_namespace="none")

    assert list_errors(source) == []
    rendered = index_resources("---\n".join(file.data.decode() for file in source.files.values()))
    assert rendered == index_resources(output.stdout)
    assert len(source.files) == len(rendered)


def test_metrics_server_has_one_file_per_resource(tmp_path: Path) -> None:
    source = render(tmp_path, read_folder(chart_folder("metrics-server")))

    assert len(source.files) == 9
    assert source.templates["service-web-metrics-server.yaml"] == "templates/service.yaml"


def test_values_schema(tmp_path: Path) -> None:
    chart = read_folder(chart_folder("external-dns"))

    source = render(tmp_path, chart, values='{"policy":7}')

    assert [(finding.code, finding.location.pointer) for finding in source.findings] == [("ValuesInvalid", "/policy")]
    assert list_errors(render(tmp_path, chart, values='{"policy":7}', skip_schema_validation=True)) == []


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("template", "message"),
    [
        pytest.param("a: {{ .Values.x.y }}", "templates/a.yaml:1:13", id="nil-pointer"),
        pytest.param("a: {{ fail .Release.Name }}", "(templates/a.yaml:1:6): web", id="fail"),
        pytest.param("a: b: c", "YAML parse error on templates/a.yaml", id="yaml"),
        pytest.param(
            '{{ define "f" }}{{ include "f" . }}{{ end }}{{ include "f" . }}', "templates/a.yaml", id="endless"
        ),
    ],
)
def test_template_errors(tmp_path: Path, template: str, message: str) -> None:
    ((code, text),) = list_errors(render(tmp_path, build_chart({"a.yaml": template})))

    assert code == "ChartRenderFailed"
    assert message in text
    assert len(text) < 1_500


def test_capabilities_and_release(tmp_path: Path) -> None:
    template = format_config_map("a", '"{{ .Capabilities.KubeVersion }} {{ .Capabilities.APIVersions.Has "x.io/v1" }}'
                                 ' {{ .Release.Namespace }} {{ .Release.IsInstall }} {{ .Release.IsUpgrade }}'
                                 ' {{ .Release.Revision }} {{ .Values.n }}"')  # fmt: skip

    source = render(tmp_path, build_chart({"a.yaml": template}), api_versions=("x.io/v1",), values='{"n":5}')

    assert b'key: "v1.34.0 true shop true false 1 5"' in source.files["configmap-a.yaml"].data


def test_only_rendered_resources_are_files(tmp_path: Path) -> None:
    """The package has no notes, no values, no README and no files that `.helmignore` excludes."""
    resource = format_config_map("a", "x")
    templates = {
        "a.yaml": resource,
        "NOTES.txt": "Thank you\n",
        "_part.yaml": "{{ fail }}",
        "ignored.yaml": "{{ fail }}",
    }
    chart = build_chart(templates).with_files(
        {".helmignore": b"templates/ignored.yaml\n", "README.md": b"# web\n", "values.yaml": b"a: 1\n"}
    )

    source = render(tmp_path, chart)

    assert (list_errors(source), sorted(source.files)) == ([], ["configmap-a.yaml"])


def test_local_dependency_is_rendered(tmp_path: Path) -> None:
    """Helm requires the subchart in the folder `charts`, and the dependency names another folder of the chart."""
    dependency = b"dependencies: [{name: db, version: 1.x, repository: 'file://parts/db'}]\n"
    chart = build_chart({})
    chart = chart.with_files(
        {
            "Chart.yaml": chart["Chart.yaml"].data + dependency,
            "parts/db/Chart.yaml": b"apiVersion: v2\nname: db\nversion: 1.4.0\n",
            "parts/db/templates/a.yaml": format_config_map("db", "{{ .Values.size }}").encode(),
            "parts/db/values.yaml": b"size: small\n",
        }
    )

    source = render(tmp_path, chart)

    assert list_errors(source) == []
    assert b"key: small" in source.files["configmap-db.yaml"].data


REFERENCES = (
    "vault:secret/data/db#password", "vault+kvv2:///secret/db#password", "ref+awsssm://db/password", "<path:db#password>"
)  # fmt: skip


def test_references_of_secret_resolvers_are_texts(tmp_path: Path) -> None:
    """A resolver on the cluster replaces such a text. The render passes it through, and contacts nothing."""
    values = json.dumps({"references": REFERENCES})
    template = format_config_map("a", "{{ .Values.references | toJson | quote }}")

    source = render(tmp_path, build_chart({"a.yaml": template}), values=values)

    text = parse_yaml(source.files["configmap-a.yaml"].data).documents[0].data["data"]["key"]
    assert (list_errors(source), json.loads(text)) == ([], [*REFERENCES])


def test_chart_cannot_read_other_files_or_the_network(tmp_path: Path) -> None:
    template = format_config_map(
        "a", '"{{ .Files.Get "../values.json" }}|{{ lookup "v1" "Pod" "" "" }}|{{ getHostByName "example.com" }}"'
    )

    source = render(tmp_path, build_chart({"a.yaml": template}))

    assert b'key: "|map[]|"' in source.files["configmap-a.yaml"].data


def build_kyverno() -> FileTree:
    """Return the chart kyverno with charts that have the names and versions of its missing dependencies."""
    stubs = {"kyverno-api": "0.0.1-alpha.4", "openreports": "0.1.0", "reports-server": "0.1.6"}
    return read_folder(chart_folder("kyverno")).with_files(
        {
            f"charts/{name}/Chart.yaml": f"apiVersion: v2\nname: {name}\nversion: {version}\n".encode()
            for name, version in stubs.items()
        }
    )


def test_missing_dependencies(tmp_path: Path) -> None:
    errors = list_errors(render(tmp_path, read_folder(chart_folder("kyverno"))))

    assert [code for code, _ in errors] == ["DependencyRepositoryMissing"] * 3
    for (_, message), url in zip(
        errors,
        ("kyverno.github.io/api", "openreports.github.io/reports-api", "kyverno.github.io/reports-server/"),
        strict=True,
    ):
        assert f'spec: {{type: helm, helm: {{url: "https://{url}"}}}}}}' in message


def find_delete_hooks(source: RenderedSource) -> set[str]:
    pattern = re.compile(rb"^ +helm.sh/hook: \"?(pre|post)-delete", re.MULTILINE)
    return {path for path, file in source.files.items() if pattern.search(file.data)}


@pytest.mark.slow
def test_hooks_of_kyverno(tmp_path: Path) -> None:
    kept, written = (render(tmp_path, build_kyverno(), hooks=policy) for policy in ("keep", "argocd"))

    assert list_errors(kept) == list_errors(written) == []
    deleted = {finding.location.object for finding in kept.findings if finding.message.endswith("hook (pre-delete)")}
    assert deleted == {"Job/shop/web-kyverno-rm-webhooks", "Job/shop/web-kyverno-scale-to-zero"}
    assert find_delete_hooks(kept) == set()
    assert find_delete_hooks(written) == {"job-web-kyverno-rm-webhooks.yaml", "job-web-kyverno-scale-to-zero.yaml"}
    assert {*written.files} - {*kept.files} == find_delete_hooks(written)


@pytest.mark.parametrize("include_crds", [True, False])
def test_crds(tmp_path: Path, include_crds: bool) -> None:
    source = render(tmp_path, read_folder(chart_folder("sealed-secrets")), include_crds=include_crds)

    crds = [path for path in source.files if path.startswith("crds/")]
    assert crds == (["crds/customresourcedefinition-sealedsecrets.bitnami.com.yaml"] if include_crds else [])


def test_tokens_in_a_packed_subchart_are_found(tmp_path: Path) -> None:
    template = b"apiVersion: v1\nkind: ConfigMap\nmetadata: {name: a}\ndata: {a: {{ randAlphaNum 5 }}}\n"
    archive = build_archive(
        {"sub/Chart.yaml": b"apiVersion: v2\nname: sub\nversion: 1.0.0\n", "sub/templates/a.yaml": template}
    )

    ((code, message),) = list_errors(render(tmp_path, build_chart().with_files({"charts/sub-1.0.0.tgz": archive})))

    assert code == "NondeterministicChart"
    assert "randAlphaNum (charts/sub-1.0.0/templates/a.yaml:4)" in message
