"""Tests of the chart engine with a program that replaces helm: arguments, caches, shared renders and failures."""

from __future__ import annotations

import json
import os
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from reconciler.lazy_dataclasses import replace
from reconciler.packages.charts.request import RenderedSource
from reconciler.processes.process import ProcessLimits
from reconciler.sources.helm import HelmEngine
from tests.support.charts import (
    BACKOFF_SECONDS,
    LIMITS,
    REQUEST,
    Clock,
    FakeHelm,
    build_chart,
    build_engine,
    format_config_map,
)

CHART = build_chart({"a.yaml": "a"})
OUTPUT = f"---\n# Source: web/templates/a.yaml\n{format_config_map('a')}"


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    program = FakeHelm(tmp_path / "bin")
    program.behave(output=OUTPUT)
    return program


@pytest.fixture
def engine(tmp_path: Path, helm: FakeHelm) -> HelmEngine:
    return build_engine(helm.path, tmp_path / "renders")


def list_errors(source: RenderedSource) -> list[str]:
    return [finding.code for finding in source.findings if finding.severity == "error"]


def test_default_arguments(engine: HelmEngine, helm: FakeHelm) -> None:
    request = replace(REQUEST, values='{"a":[null]}')

    source = engine.render(CHART, request)

    assert list(source.files) == ["configmap-a.yaml"]
    assert helm.calls() == [
        ["template", "--namespace", "shop", "--values", "values.json", "--kube-version", "1.34.0", "--include-crds", "--",
         "web", "chart"]
    ]  # fmt: skip
    assert helm.inputs()["files"] == {
        "chart/Chart.yaml": CHART["Chart.yaml"].data.decode(),
        "chart/templates/a.yaml": "a",
        "values.json": '{"a":[null]}',
    }


def test_optional_arguments(engine: HelmEngine, helm: FakeHelm) -> None:
    request = replace(REQUEST, api_versions=("b/v1", "a/v1"), include_crds=False, skip_schema_validation=True)

    engine.render(CHART, request)

    assert helm.calls()[0][7:] == [
        "--api-versions", "a/v1", "--api-versions", "b/v1", "--skip-schema-validation", "--", "web", "chart",
    ]  # fmt: skip


def test_equal_inputs_start_one_process(tmp_path: Path, engine: HelmEngine, helm: FakeHelm) -> None:
    jobs = [(CHART, REQUEST), (CHART, replace(REQUEST, values='{"a":1}'))] * 25

    results = engine.render_all(jobs)

    assert len(helm.calls()) == 2
    assert results == results[:2] * 25
    assert results[0].files == results[1].files
    engine.render(CHART, replace(REQUEST, identity="another/package"))
    assert build_engine(helm.path, tmp_path / "renders").render(CHART, REQUEST) == results[0]
    assert len(helm.calls()) == 2
    assert len(helm.calls("version")) == 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    "changes",
    [
        {"release_name": "x"}, {"namespace": "x"}, {"kube_version": "1.33.0"}, {"values": '{"a":1}'},
        {"api_versions": ("a/v1",)}, {"set_namespace": "none"}, {"create_namespace": True}, {"include_crds": False},
        {"skip_tests": False}, {"hooks": "drop"}, {"skip_schema_validation": True}, {"on_nondeterminism": "fixed"},
        {"allowed_secrets": ("Secret/a",)},
    ],
    ids=str,
)  # fmt: skip
def test_every_option_is_part_of_the_key(engine: HelmEngine, helm: FakeHelm, changes: dict[str, str]) -> None:
    engine.render(CHART, REQUEST)
    engine.render(CHART, replace(REQUEST, **changes))

    assert len(helm.calls()) == 2


def test_changed_chart_or_program_is_rendered_again(engine: HelmEngine, helm: FakeHelm) -> None:
    engine.render(CHART, REQUEST)
    identity = engine.identity()
    engine.render(CHART.with_files({"templates/a.yaml": b"b"}), REQUEST)
    helm.path.write_text(helm.path.read_text() + "\n")
    engine.render(CHART, REQUEST)

    assert len(helm.calls()) == 3
    assert identity.startswith("helm/3.22 sha256:")
    assert engine.identity() != identity


def test_threads_share_a_render(engine: HelmEngine, helm: FakeHelm) -> None:
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(lambda _: engine.render(CHART, REQUEST), range(8)))

    assert len(helm.calls()) == 1
    assert all(result is results[0] for result in results)


def test_missing_program_and_later_installation(engine: HelmEngine, helm: FakeHelm) -> None:
    helm.path.unlink()

    source = engine.render(CHART, REQUEST)

    assert engine.identity() == ""
    assert [(finding.code, finding.message) for finding in source.findings] == [
        (
            "HelmUnavailable",
            (
                f"chart web 1.2.3 needs the program helm (>=3.14 <5), which is not at {helm.path}. Next step: install helm with"
                " `CGO_ENABLED=0 GOBIN=/usr/local/bin go install -ldflags '-s -w' helm.sh/helm/v3/cmd/helm@v3.22.0` or with"
                " a package manager, or set `sources.helm.program` to its path"
            ),
        )
    ]
    helm.install()
    assert list_errors(engine.render(CHART, REQUEST)) == []


@pytest.mark.parametrize(
    ("version", "found"),
    [
        pytest.param("v3.13.3", "is version 3.13", id="too-old"),
        pytest.param("v5.0.0", "is version 5.0", id="too-new"),
        pytest.param("Client: none", "does not print its version", id="another-program"),
    ],
)
def test_unsupported_program(engine: HelmEngine, helm: FakeHelm, version: str, found: str) -> None:
    helm.behave(version=version)

    source = engine.render(CHART, REQUEST)

    assert list_errors(source) == ["EngineUnsupported"]
    assert f"needs helm >=3.14 <5, but {helm.path} {found}. Next step: install" in source.findings[0].message
    assert (helm.calls(), engine.identity()) == ([], "")


def test_supported_versions(tmp_path: Path) -> None:
    for version in ("v3.14.0", "v3.22", "v4.3.1+g1"):
        helm = FakeHelm(tmp_path / version)
        helm.behave(version=version, output=OUTPUT)
        assert list_errors(build_engine(helm.path, tmp_path / "renders").render(CHART, REQUEST)) == []


@pytest.mark.parametrize(
    ("behavior", "code", "text"),
    [
        pytest.param(
            {"stderr": "Error: parse error at (web/templates/a.yaml:1): x", "exit_code": 1},
            "ChartRenderFailed",
            'chart web 1.2.3 cannot be rendered. Helm reports: "parse error at (templates/a.yaml:1): x"',
            id="error",
        ),
        pytest.param({"output": "---\na: \udcff"}, "RenderedOutputInvalid", "is not UTF-8 text", id="encoding"),
        pytest.param({"output": "x" * (LIMITS.output_bytes + 1)}, "SourceTooLarge", "output_bytes", id="output"),
        pytest.param({"output": "---\n- a"}, "RenderedOutputInvalid", "document 1", id="no-resource"),
    ],
)
def test_failure_is_not_repeated(
    tmp_path: Path, engine: HelmEngine, helm: FakeHelm, behavior: dict[str, object], code: str, text: str
) -> None:
    helm.behave(**behavior)

    first, second = engine.render(CHART, REQUEST), engine.render(CHART, REQUEST)

    assert list_errors(first) == [code]
    assert text in first.findings[0].message
    assert first is second
    assert len(helm.calls()) == 1
    assert not [path for path in (tmp_path / "renders").iterdir() if not path.name.startswith("version-")]


@pytest.mark.parametrize(
    ("behavior", "limits", "code"),
    [
        pytest.param({"code": "time.sleep(60)"}, replace(LIMITS, seconds=0.5), "RenderTimeout", id="time"),
        pytest.param({"code": "os.kill(os.getpid(), 9)"}, LIMITS, "RenderOutOfMemory", id="killed"),
        pytest.param(
            {"stderr": "fatal error: runtime: out of memory\n", "exit_code": 2},
            LIMITS,
            "RenderOutOfMemory",
            id="memory",
        ),
    ],
)
def test_interrupted_render_is_repeated_after_its_backoff(
    tmp_path: Path, helm: FakeHelm, behavior: dict[str, object], limits: ProcessLimits, code: str
) -> None:
    clock = Clock()
    engine = build_engine(helm.path, tmp_path / "renders", limits, clock)
    assert engine.identity()
    helm.behave(**behavior)

    assert list_errors(engine.render(CHART, REQUEST)) == [code]
    helm.behave(output=OUTPUT)
    assert list_errors(engine.render(CHART, REQUEST)) == [code]
    clock.seconds += BACKOFF_SECONDS
    assert list_errors(engine.render(CHART, REQUEST)) == []
    assert len(helm.calls()) == 2


def test_program_that_cannot_start(engine: HelmEngine, helm: FakeHelm) -> None:
    helm.path.write_text("#!/nonexistent/interpreter\n")
    assert list_errors(engine.render(CHART, REQUEST)) == ["EngineUnsupported"]

    helm.install()
    assert list_errors(engine.render(CHART, REQUEST)) == []


def test_required_sandbox_that_is_missing(
    tmp_path: Path, helm: FakeHelm, engine: HelmEngine, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("shutil.which", lambda name, path: None)
    isolated = build_engine(helm.path, tmp_path / "renders", sandbox="require")
    message = 'the setting `sources.sandbox` is "require", but `unshare --user --net` does not work on this machine'

    for reason in ("cannot be rendered with helm, because", f"cannot be rendered with {helm.path}. Reason:"):
        (finding,) = isolated.render(CHART, REQUEST).findings
        assert finding.code == "HelmUnavailable"
        assert f"{reason} {message}" in finding.message
        # The second render finds the version of the program in the cache.
        assert list_errors(engine.render(CHART, replace(REQUEST, values='{"a":1}'))) == []


def test_failed_request_for_the_version_is_repeated_after_its_backoff(tmp_path: Path, helm: FakeHelm) -> None:
    clock = Clock()
    engine = build_engine(helm.path, tmp_path / "renders", clock=clock)
    helm.behave(version="busy")
    assert [list_errors(engine.render(CHART, REQUEST)) for _ in range(2)] == [["EngineUnsupported"]] * 2

    helm.behave(output=OUTPUT)
    assert list_errors(engine.render(CHART, REQUEST)) == ["EngineUnsupported"]
    clock.seconds += BACKOFF_SECONDS
    assert list_errors(engine.render(CHART, REQUEST)) == []
    assert len(helm.calls("version")) == 2


def test_render_that_cannot_start_is_repeated(tmp_path: Path, helm: FakeHelm) -> None:
    clock = Clock()
    engine = build_engine(helm.path, tmp_path / "renders", clock=clock)
    helm.behave(stderr=f"{helm.path} cannot be started: Text file busy\n", exit_code=1)

    source = engine.render(CHART, REQUEST)

    assert list_errors(source) == ["HelmUnavailable"]
    assert "cannot be started: Text file busy" in source.findings[0].message
    helm.behave(output=OUTPUT)
    clock.seconds += BACKOFF_SECONDS
    assert list_errors(engine.render(CHART, REQUEST)) == []


def test_chart_without_metadata(engine: HelmEngine, helm: FakeHelm) -> None:
    assert list_errors(engine.render(CHART.without_files("Chart.yaml"), REQUEST)) == ["ChartRenderFailed"]
    assert helm.calls() == []


def test_values_are_not_stored(tmp_path: Path, engine: HelmEngine) -> None:
    engine.render(CHART, replace(REQUEST, values=json.dumps({"password": "hunter2hunter2"})))

    assert not [path for path in (tmp_path / "renders").iterdir() if b"hunter2" in path.read_bytes()]


SECRET = (
    "---\n# Source: web/templates/a.yaml\napiVersion: v1\nkind: Secret\nmetadata: {name: db}\ndata: {a: aHVudGVyMg==}\n"
)


def test_plaintext_secret_is_not_stored(tmp_path: Path, engine: HelmEngine, helm: FakeHelm) -> None:
    helm.behave(output=SECRET)

    refused, allowed = (engine.render(CHART, replace(REQUEST, allowed_secrets=names)) for names in ((), ("Secret/db",)))

    assert (list_errors(refused), list(refused.files)) == (["PlaintextSecret"], [])
    assert (list_errors(allowed), list(allowed.files)) == ([], ["secret-db.yaml"])
    assert "aHVudGVyMg" not in str(refused)
    stored = [path for path in (tmp_path / "renders").iterdir() if b"aHVudGVyMg" in path.read_bytes()]
    assert len(stored) == 1


@pytest.mark.parametrize(
    ("metadata", "codes"),
    [
        pytest.param("type: library\n", ["ChartNotInstallable"], id="library"),
        pytest.param("kubeVersion: '>=1.35'\n", ["ChartKubeVersion"], id="kubernetes-version"),
        pytest.param("dependencies: [{name: db, version: 1.x}]\n", ["ChartNotLocked"], id="not-locked"),
        pytest.param(
            "dependencies: [{name: a, version: 1.0.0}, {name: b, version: 1.0.0}]\n",
            ["DependencyRepositoryMissing"] * 2,
            id="dependencies",
        ),
    ],
)
def test_chart_that_helm_would_refuse(engine: HelmEngine, helm: FakeHelm, metadata: str, codes: list[str]) -> None:
    manifest = CHART["Chart.yaml"].data + metadata.encode()

    assert list_errors(engine.render(CHART.with_files({"Chart.yaml": manifest}), REQUEST)) == codes
    assert helm.calls() == []


def test_damaged_subchart(engine: HelmEngine) -> None:
    source = engine.render(CHART.with_files({"charts/db.tgz": b"x"}), REQUEST)

    assert list_errors(source) == ["ArchiveInvalid"]
    assert source.findings[0].message.startswith("chart web 1.2.3: ")


WAIT_FOR_ANOTHER_PROCESS = """
(folder / f"started-{os.getpid()}").touch()
deadline = time.monotonic() + 20
while len(list(folder.glob("started-*"))) < 2 and time.monotonic() < deadline:
    time.sleep(0.01)
if time.monotonic() >= deadline:
    sys.exit("no other process has started")
"""


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_charts_are_rendered_at_the_same_time(engine: HelmEngine, helm: FakeHelm) -> None:
    helm.behave(output=OUTPUT, code=WAIT_FOR_ANOTHER_PROCESS)

    results = engine.render_all([(CHART, REQUEST), (CHART, replace(REQUEST, values='{"a":1}'))])

    assert [list_errors(result) for result in results] == [[], []]


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_variants_of_a_chart_are_rendered_at_the_same_time(engine: HelmEngine, helm: FakeHelm) -> None:
    chart = CHART.with_files({"templates/a.yaml": b"{{ now }}"})
    is_variant = "if 'toDate' in pathlib.Path('chart/templates/a.yaml').read_text():\n"
    wait = "".join(f"    {line}\n" for line in WAIT_FOR_ANOTHER_PROCESS.splitlines())
    helm.behave(output=OUTPUT, code=is_variant + wait)

    assert list_errors(engine.render(chart, REQUEST)) == []
    assert len(helm.calls()) == 3
