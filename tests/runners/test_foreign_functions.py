"""Functions of other projects and in other languages are compatible with the wire format."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.api.kpt import FunctionSpec
from reconciler.packages.functions.registry import BUILTIN_FUNCTIONS
from reconciler.packages.pipeline import RenderResult, render_pipelines
from tests.runners.programs import call, command, editing, functions, program
from tests.unit.packages.builders import build_tree, format_items, list_messages, read_texts

KYAML = "sigs.k8s.io/kustomize/kyaml"
KYAML_VERSION = "v0.17.2"
DEPLOYMENT = """\
# a web server
apiVersion: apps/v1
kind: Deployment # of the first day
metadata:
    name: web
spec:
    # enough for a small site
    replicas: 2 # two
    ports:
    - "80" # plain
    - '443'
"""


@pytest.fixture(scope="session")
def kyaml_example(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The example function of kyaml's framework: adds an annotation to everything, and a ServiceAccount."""
    if not shutil.which("go"):
        pytest.skip("Go is not installed")
    folder = tmp_path_factory.mktemp("kyaml")
    package, built = f"{KYAML}/fn/framework/example", folder / "example"
    for words in (
        ["mod", "init", "example"],
        ["get", f"{package}@{KYAML_VERSION}"],
        ["build", "-o", str(built), package],
    ):
        try:
            process = subprocess.run(
                ["go", *words], cwd=folder, capture_output=True, text=True, timeout=300, check=False
            )
        except subprocess.TimeoutExpired:
            pytest.skip(f"go {words[0]} takes too long here")
        if process.returncode:
            pytest.skip(f"kyaml cannot be built here: {process.stderr.strip().splitlines()[-1:]}")
    return built


def rendered(pipeline: str, function: Path, **files: str) -> RenderResult:
    """Render a package with one Deployment through a pipeline."""
    kptfile = f"apiVersion: kpt.dev/v1\nkind: Kptfile\nmetadata:\n  name: app\npipeline:\n  mutators:\n{pipeline}"
    more = {name.replace("_", "."): text for name, text in files.items()}
    return render_pipelines(
        build_tree({"Kptfile": kptfile, "web.yaml": DEPLOYMENT, **more}), functions((str(function),))
    )


@pytest.mark.slow
def test_a_function_of_kustomizes_framework(kyaml_example: Path) -> None:
    config = "apiVersion: example.com/v1\nkind: Example\nmetadata:\n  name: x\nvalue: hello\n"
    pipeline = f"  - exec: {kyaml_example}\n    configPath: config.yaml\n"

    result = rendered(pipeline, kyaml_example, config_yaml=config)

    assert result.failure is None
    output = read_texts(result.files)
    annotated = DEPLOYMENT.replace("name: web\n", "name: web\n    annotations:\n        value: hello\n")
    assert output["web.yaml"] == annotated, "comments, order, quotes and indentation are those of the file"
    assert output["config.yaml"] == config.replace("name: x\n", "name: x\n  annotations:\n    value: hello\n")
    account = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: hello\n  annotations:\n    value: hello\n"
    assert output["serviceaccount_hello.yaml"] == account
    assert [*result.function_identities] == [f"function exec {kyaml_example}"]


@pytest.mark.slow
def test_a_second_render_adds_nothing(kyaml_example: Path) -> None:
    pipeline = f"  - exec: {kyaml_example} --value hello\n    selectors: [{{kind: Deployment}}]\n"
    first = rendered(pipeline, kyaml_example)

    render_result = render_pipelines(
        first.files.without_files("serviceaccount_hello.yaml"), functions((str(kyaml_example),))
    )

    assert read_texts(render_result.files) == read_texts(first.files)


def test_its_failure_has_a_reason(kyaml_example: Path) -> None:
    result = rendered(f"  - exec: {kyaml_example} --no-such-flag\n", kyaml_example)

    assert result.failure is not None
    assert result.failure.kind == "failed"
    assert "the function ended with exit code 1: " in result.failure.message
    assert "unknown flag: --no-such-flag" in result.failure.message


PERL = r"""
local $/;
my $list = <STDIN>;
$list =~ s/replicas: \d+/replicas: $ARGV[0]/g;
print $list;
print "results:\n- message: scaled\n  severity: warning\n  field: {path: spec.replicas, proposedValue: $ARGV[0]}\n";
"""
NODE = r"""
const lines = require('fs').readFileSync(0, 'utf8').split('\n');
const web = lines.some(line => line.includes('name: web'));
const item = {apiVersion: 'v1', kind: 'ConfigMap', metadata: {name: 'made'}, data: {web: String(web)}};
const list = {apiVersion: 'config.kubernetes.io/v1', kind: 'ResourceList', items: [item],
  results: {items: [{message: 'caf\u00e9 \ud83d\ude00'}]}};
console.log(JSON.stringify(list, null, '\t'));
"""


def test_a_function_in_perl(tmp_path: Path) -> None:
    perl = shutil.which("perl")
    if not perl:
        pytest.skip("perl is not installed")
    scale = program(tmp_path / "scale", PERL, perl)

    output = call(functions((str(scale),)).find(command(scale, "5")), DEPLOYMENT)

    assert format_items(output.items) == DEPLOYMENT.replace("replicas: 2", "replicas: 5")
    assert list_messages(output) == [("warning", "scaled")]
    assert output.results[0].proposed == 5


def test_a_function_in_javascript(tmp_path: Path) -> None:
    node = shutil.which("node")
    if not node:
        pytest.skip("node is not installed")
    make = program(tmp_path / "make", NODE, node)

    output = call(functions((str(make),)).find(command(make)), DEPLOYMENT)

    assert [(item.id, item.name, item.data["data"]) for item in output.items] == [(None, "made", {"web": "true"})]
    assert list_messages(output) == [("info", "café 😀")]


def test_ours_and_others_come_to_the_same(tmp_path: Path) -> None:
    annotate = "    item['metadata'].setdefault('annotations', {})['team'] = 'a'"
    path = program(tmp_path / "annotate", editing(f"for item in rl['items']:\n{annotate}"))
    config: dict[str, object] = {"apiVersion": "fn.kpt.dev/v1alpha1", "kind": "StarlarkRun", "metadata": {"name": "x"}}
    config["source"] = f"for item in ctx.resource_list['items']:\n{annotate}\n"

    theirs = call(functions((str(path),)).find(command(path)), DEPLOYMENT)
    ours = call(BUILTIN_FUNCTIONS.find(FunctionSpec(image="starlark:v0.5")), DEPLOYMENT, config)

    assert format_items(theirs.items) == format_items(ours.items)
