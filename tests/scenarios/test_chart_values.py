"""Tests of the values of charts: layers from config objects and files, values per cluster, and their errors."""

from __future__ import annotations

import json
import shutil
import textwrap
from pathlib import Path
from typing import Any

import pytest

from reconciler.krm.yaml import parse_yaml
from tests.support.charts import FakeHelm, read_source
from tests.support.git_repositories import git
from tests.support.programs import chart_folder, find_program
from tests.support.world import World, repository, small_world, variant

pytestmark = pytest.mark.second_pass

# Print the values as a ConfigMap, so that tests can read the values that the program received.
PRINT_VALUES = """
values = pathlib.Path("values.json").read_text()
print(json.dumps({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web"}, "data": {"values": values}}))
"""
DEFAULTS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: web-defaults}
data:
  values.yaml: |
    replicas: 2
    region: none
"""
SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: web}
spec:
  upstream: {repo: catalog, package: charts/web, revision: v1}
  targets:
    - repositorySelector: {matchExpressions: [{key: tier, operator: Exists}]}
      template:
        downstream: {package: web}
        helm:
"""


@pytest.fixture
def helm(tmp_path: Path) -> FakeHelm:
    helm = FakeHelm(tmp_path / "program")
    helm.behave(code=PRINT_VALUES)
    return helm


@pytest.fixture
def world(tmp_path: Path, helm: FakeHelm) -> World:
    world = small_world(tmp_path, sources={"helm": {"program": str(helm.path)}})
    world.release("charts/web", "v1", read_source("values-files"))
    world.write({"maps.yaml": DEFAULTS})
    return world


def request(helm: str, name: str = "web", cluster: str = "berlin") -> str:
    return variant(
        name, cluster, "web", upstream="charts/web", extra=f"helm:\n  namespace: shop\n{textwrap.indent(helm, '  ')}"
    )


def request_set(helm: str) -> str:
    return SET + textwrap.indent(f"namespace: shop\n{helm}", " " * 10)


def read_values(world: World, branch: str = "drafts/berlin") -> Any:
    (document,) = parse_yaml(world.text(branch, "web/configmap-web.yaml")).documents
    return json.loads(document.data["data"]["values"])


LAYERS = """\
valuesFiles: [prod.yaml, $config/values/berlin.yaml]
valuesFrom: [{kind: ConfigMap, name: web-defaults}]
values: {region: north, list: [1]}
parameters: [{name: 'list[1]', value: {a: null}}]
"""


def test_layers_have_the_order_of_helm(world: World) -> None:
    """The chart gets one document with all layers: files, objects, values and parameters."""
    world.write({"web.yaml": request(LAYERS), "values/berlin.yaml": "replicas: 3\nfile: true\n"})

    world.sync()

    assert read_values(world) == {
        "prod": True, "file": True, "replicas": 2, "region": "north", "list": [1, {"a": None}]
    }  # fmt: skip
    assert world.sync_until_unchanged().report.render_count == 0


def test_status_contains_the_layers_and_objects(world: World) -> None:
    """The status file contains the layers of each value, and the objects that contain values with their digests."""
    world.write({"web.yaml": request(LAYERS), "values/berlin.yaml": "replicas: 3\nfile: true\n"})

    world.sync()

    status = world.package_status("drafts/berlin", "web")
    layers = {layer["option"]: layer for layer in status["layers"]}
    assert layers["replicas"] == {
        "pointer": "/replicas",
        "option": "replicas",
        "steps": [
            {"layer": "values-file", "by": "prod.yaml", "file": "prod.yaml", "op": "added", "after": 9},
            {
                "layer": "values-file", "by": "$config/values/berlin.yaml", "file": "values/berlin.yaml",
                "op": "replaced", "before": 9, "after": 3,
            },
            {
                "layer": "values-from", "by": "ConfigMap/_cluster/web-defaults", "file": "maps.yaml",
                "where": "data.values.yaml", "op": "replaced", "before": 3, "after": 2,
            },
        ],
    }  # fmt: skip
    assert [step["layer"] for step in layers["list"]["steps"]] == ["values", "parameter"]
    (values_object,) = status["inputs"]["objects"]
    assert {name: values_object[name] for name in ("kind", "name", "file")} == {
        "kind": "ConfigMap", "name": "web-defaults", "file": "maps.yaml"
    }  # fmt: skip


@pytest.mark.slow
def test_changed_object_renders_only_the_packages_that_use_it(world: World, helm: FakeHelm) -> None:
    """A changed ConfigMap renders the packages that read it, and a new line above it renders nothing."""
    world.write({
        "web.yaml": request("valuesFrom: [{kind: ConfigMap, name: web-defaults}]"),
        "other.yaml": request("values: {a: 1}", "other", "lisbon"),
    })  # fmt: skip
    world.sync_until_unchanged()
    calls = len(helm.calls())

    world.write({"maps.yaml": f"# a comment\n{DEFAULTS}"})
    assert world.sync().report.render_count == 0
    world.write({"maps.yaml": DEFAULTS.replace("replicas: 2", "replicas: 4")})
    result = world.sync()

    assert (result.outcomes["berlin/web"], result.outcomes["lisbon/web"]) == ("draft", "drafted")
    assert len(helm.calls()) == calls + 1
    assert read_values(world)["replicas"] == 4
    message = git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")
    assert "ConfigMap/default/web-defaults changed" in message


@pytest.mark.quick_cases(every=6)
@pytest.mark.parametrize(
    ("options", "code", "place"),
    [
        pytest.param("valuesFrom: [{kind: ConfigMap, name: none}]", "ValuesNotFound", "web.yaml:10", id="object"),
        pytest.param("valuesFiles: [$config/none.yaml]", "ValuesNotFound", "web.yaml:10", id="config-file"),
        pytest.param("valuesFiles: [none.yaml]", "ValuesNotFound", "web.yaml:10", id="chart-file"),
        pytest.param("valuesFiles: [$other/a.yaml]", "ValuesNotFound", "web.yaml:10", id="unknown-source"),
        pytest.param("valuesFrom: [{kind: Secret, name: db}]", "SecretValuesRefused", "web.yaml:10", id="secret"),
        pytest.param(
            "values: {a: 1}\nparameters: [{name: a.b, value: 1}]", "ValuesInvalid", "web.yaml:11", id="parameter"
        ),
    ],
)
def test_values_that_cannot_be_used_block_the_package(world: World, options: str, code: str, place: str) -> None:
    """The error blocks only the package of the values. The published package stays."""
    world.write({"web.yaml": request("values: {a: 1}")})
    world.sync()
    world.merge("berlin", delete=True)
    published = world.head("clusters/berlin")
    world.write({"web.yaml": request(options), "other.yaml": request("values: {b: 1}", "other", "lisbon")})

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == code)
    assert f"{finding.location.file}:{finding.location.line}" == place
    assert result.outcomes["lisbon/web"] == "draft"
    assert world.head("clusters/berlin") == published
    assert world.reason("web") == code


def test_missing_optional_values_are_an_info(world: World) -> None:
    """Optional values that do not exist are reported, and the package is rendered when they appear."""
    world.write({"web.yaml": request("valuesFrom: [{kind: ConfigMap, name: later, optional: true}]")})
    result = world.sync()
    assert "ValuesNotFound" in result.codes
    assert read_values(world) == {}

    world.write({"later.yaml": DEFAULTS.replace("web-defaults", "later")})
    world.sync()

    assert read_values(world) == {"replicas": 2, "region": "none"}


def test_invalid_value_has_the_line_of_its_layer(world: World, helm: FakeHelm) -> None:
    """The pointer in an error of Helm leads to the file and line of the ConfigMap that contains the value."""
    schema = "values don't meet the specifications of the schema(s) in the following chart(s)"
    helm.behave(stderr=f"Error: {schema}:\nweb:\n- at '/region': got string, want integer\n", exit_code=1)
    world.write({"web.yaml": request("valuesFrom: [{kind: ConfigMap, name: web-defaults}]")})

    result = world.sync()

    (finding,) = (finding for finding in result.findings if finding.code == "ValuesInvalid")
    assert finding.message.endswith("(set by ConfigMap/_cluster/web-defaults data.values.yaml, maps.yaml:7)")
    assert (finding.location.file, finding.location.line) == ("maps.yaml", 7)


def write_fleet(world: World, names: list[str], tiers: list[str]) -> None:
    clusters = {
        f"clusters/{name}.yaml": repository(name).replace("region: north", f"region: north, tier: {tier}")
        for name, tier in zip(names, tiers, strict=True)
    }
    removed = ("gateway.yaml", "metrics.yaml", "clusters/berlin.yaml", "clusters/lisbon.yaml")
    existing = [path for path in removed if (world.config / path).exists()]
    world.write({**dict.fromkeys(existing), **clusters})


TIERS = [f"t{number % 5}" for number in range(10)]
NAMES = [f"c{number}" for number in range(10)]


@pytest.mark.slow
@pytest.mark.parametrize(
    "options",
    [
        pytest.param("parameterExprs: [{name: replicas, valueExpr: \"repository.labels['tier']\"}]", id="parameters"),
        pytest.param(
            "valuesFilesExprs: [\"'$config/values/' + repository.labels['tier'] + '.yaml'\"]", id="values-files"
        ),
        pytest.param(
            "valuesFrom: [{kind: ConfigMap, nameExpr: \"'web-' + repository.labels['tier']\"}]", id="values-from"
        ),
    ],
)
def test_distinct_values_of_a_set_are_rendered_once(world: World, helm: FakeHelm, options: str) -> None:
    """Ten clusters with five distinct values need five renders, and a changed label needs one render and one draft."""
    write_fleet(world, NAMES, TIERS)
    world.write({
        "web.yaml": request_set(options),
        **{f"values/t{number}.yaml": f"replicas: {number}\n" for number in range(5)},
        **{f"t{number}.yaml": DEFAULTS.replace("web-defaults", f"web-t{number}").replace("2", str(number)) for number in range(5)},
    })  # fmt: skip

    result = world.sync()

    assert [result.outcomes[f"{name}/web"] for name in NAMES] == ["draft"] * 10
    assert len(helm.calls()) == 5
    assert world.sync_until_unchanged().report.render_count == 0

    write_fleet(world, NAMES, ["t9", *TIERS[1:]])
    world.write(
        {"values/t9.yaml": "replicas: 9\n", "t9.yaml": DEFAULTS.replace("web-defaults", "web-t9").replace("2", "9")}
    )
    result = world.sync()

    assert [name for name in NAMES if result.outcomes[f"{name}/web"] == "draft"] == ["c0"]
    assert len(helm.calls()) == 6


@pytest.mark.slow
@pytest.mark.parametrize(
    ("clusters", "distinct"),
    [
        pytest.param(50, 1, id="equal-values"),
        # The pass writes 200 branches.
        pytest.param(200, 5, id="distinct-values", marks=pytest.mark.slow),
    ],
)
def test_clusters_need_one_render_per_distinct_values(
    world: World, helm: FakeHelm, clusters: int, distinct: int
) -> None:
    """The number of renders is the number of distinct values, also after a restart, and without a cache."""
    names = [f"c{number}" for number in range(clusters)]
    write_fleet(world, names, [f"t{number % distinct}" for number in range(clusters)])
    expression = "parameterExprs: [{name: replicas, valueExpr: \"repository.labels['tier']\"}]"
    world.write({"web.yaml": request_set(expression)})

    result = world.sync()

    assert sum(outcome == "draft" for outcome in result.outcomes.values()) == clusters
    assert len(helm.calls()) == distinct
    world.sync_until_unchanged()
    shutil.rmtree(world.folder / "cache")
    world.sync()
    assert len(helm.calls()) == distinct


def test_failed_expression_blocks_its_target(world: World) -> None:
    """An expression that fails follows the error policy of the set."""
    write_fleet(world, NAMES[:2], ["t1", "t2"])
    expression = (
        "parameterExprs: [{name: a, valueExpr: \"repository.labels['tier'] == 't1' ? 1 : repository.labels['x']\"}]"
    )
    world.write({"web.yaml": request_set(expression) + "\n  errorPolicy: skipTarget\n"})

    result = world.sync()

    assert result.outcomes.get("c0/web") == "draft"
    assert "c1/web" not in result.outcomes
    (finding,) = (finding for finding in result.findings if finding.code == "RenderError")
    assert "template.helm.parameterExprs[0].valueExpr" in finding.message


@pytest.mark.slow
def test_service_uses_changed_values_of_a_set(world: World, helm: FakeHelm) -> None:
    """A pass with the caches of the last pass uses changed objects, files and annotations of clusters."""
    write_fleet(world, NAMES[:2], ["t0", "t1"])
    options = "valuesFiles: [$config/values/all.yaml]\nvaluesFrom: [{kind: ConfigMap, name: web-defaults}]"
    world.write({"web.yaml": request_set(options), "values/all.yaml": "file: 1\n"})
    with_service = world.service()
    with_service.run()
    assert read_values(world, "drafts/c0") == {"file": 1, "replicas": 2, "region": "none"}

    world.write({"values/all.yaml": "file: 2\n"})
    with_service.run()
    assert read_values(world, "drafts/c0")["file"] == 2
    world.write({"maps.yaml": DEFAULTS.replace("replicas: 2", "replicas: 5")})
    with_service.run()
    assert read_values(world, "drafts/c1")["replicas"] == 5
    version = 'annotations: {reconciler.dev/kubernetes-version: "1.33.0"}\n  labels:'
    world.write({"clusters/c1.yaml": (world.config / "clusters/c1.yaml").read_text().replace("labels:", version)})
    with_service.run()
    assert "1.33.0" in helm.calls()[-1]


SECRET = """\
apiVersion: v1
kind: Secret
metadata: {name: db}
stringData:
  values.yaml: |
    password: correct-horse-battery
"""


def test_values_of_a_secret_are_written_nowhere(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    """No byte of a value in a Secret is in a ref, the cache, the output or a finding."""
    reference = "valuesFrom: [{kind: Secret, name: db}, {kind: ConfigMap, name: web-defaults}]"
    world.write({"db.yaml": SECRET, "web.yaml": request(reference)})

    result = world.sync()

    assert "SecretValuesRefused" in result.codes
    objects = git(world.fleet, "cat-file", "--batch-all-objects", "--batch-check=%(objectname) %(objecttype)")
    names = [line.split()[0] for line in objects.splitlines() if line.split()[1] != "tree"]
    contents = [git(world.fleet, "cat-file", "-p", name) for name in names]
    cached_files = [path.read_bytes() for path in (world.folder / "cache").rglob("*") if path.is_file()]
    output = capfd.readouterr()
    texts = [*contents, *map(repr, cached_files), *(finding.message for finding in result.findings), *output]
    assert contents
    assert not [text for text in texts if "correct-horse" in text]


@pytest.mark.slow
def test_values_that_the_schema_of_a_chart_refuses(tmp_path: Path) -> None:
    """The chart external-dns needs a valid policy. The error has the file and line of the value in the ConfigMap."""
    chart = chart_folder("external-dns")
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}})
    files = {path.relative_to(chart).as_posix(): path.read_text() for path in chart.rglob("*") if path.is_file()}
    world.release("charts/web", "v1", files)
    world.write({"web.yaml": request("values: {region: x}")})
    messages = [finding.message for finding in world.sync().findings if finding.code == "ValuesInvalid"]
    assert any(
        "do not match the schema of the chart at /policy." in message and "set by" not in message
        for message in messages
    ), messages

    reference = "valuesFrom: [{kind: ConfigMap, name: web-defaults}]"
    world.write({"maps.yaml": DEFAULTS.replace("replicas: 2", "policy: 7"), "web.yaml": request(reference)})

    (finding,) = (
        finding for finding in world.sync().findings if finding.code == "ValuesInvalid" and "/policy" in finding.message
    )
    assert (finding.location.file, finding.location.line) == ("maps.yaml", 6)
    assert "set by ConfigMap/_cluster/web-defaults data.values.yaml, maps.yaml:6" in finding.message

    world.write({"maps.yaml": DEFAULTS.replace("replicas: 2", "policy: sync").replace("    region: none\n", "")})
    assert world.sync().outcomes["berlin/web"] == "draft"
