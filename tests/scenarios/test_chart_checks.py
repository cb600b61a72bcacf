"""Tests of charts whose output depends on a clock, on randomness or on values, in a fleet of several clusters."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.scenarios.test_charts import DEPLOYMENT, chart, create_world, request
from tests.support.charts import read_source
from tests.support.programs import chart_folder, find_program
from tests.support.world import World, repository

pytestmark = pytest.mark.second_pass


def build_request(options: str = "", cluster: str = "berlin") -> str:
    return request(extra=f"helm:\n  namespace: shop\n{options}", name=f"web-{cluster}", cluster=cluster)


def create_chart_world(tmp_path: Path, files: dict[str, str], options: str = "") -> World:
    world = create_world(tmp_path, find_program("helm"))
    world.release("charts/web", "v1", files)
    world.write({"web.yaml": build_request(options)})
    return world


def read_chart(name: str) -> dict[str, str]:
    folder = chart_folder(name)
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


def list_messages(world: World, code: str) -> list[str]:
    return [finding.message for finding in world.sync().findings if finding.code == code]


@pytest.mark.slow
def test_date_is_refused_and_then_fixed(tmp_path: Path) -> None:
    world = create_chart_world(tmp_path, read_source("date"))

    (refused,) = list_messages(world, "NondeterministicChart")

    assert "/metadata/annotations/rendered of ConfigMap/stamp depends on now (templates/stamp.yaml:6)" in refused
    assert not world.paths(world.fleet, "drafts/berlin", "web")
    world.write({"web.yaml": build_request("  onNondeterminism: fixed\n")})
    assert world.sync().outcomes["berlin/web"] == "draft"
    assert 'rendered: "2000-01-01 00:00:00 +0000 UTC"' in world.text("drafts/berlin", "web/configmap-stamp.yaml")
    world.now += 86_400
    assert world.sync().is_unchanged
    # Without the cache, the package is not rendered again, and a new render has the same files.
    assert (
        world.with_settings(cache=str(tmp_path / "empty"), sources={"helm": {"program": find_program("helm")}})
        .sync()
        .is_unchanged
    )


@pytest.mark.slow
def test_random_text_in_a_value_is_refused(tmp_path: Path) -> None:
    options = "  values: {text: 'x {{ randAlphaNum 5 }}'}\n"
    world = create_chart_world(tmp_path, read_source("template-in-values"), options)

    (message,) = list_messages(world, "NondeterministicChart")

    assert "/data/text of ConfigMap/text depends on randAlphaNum (values/text)" in message


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("name", "options", "codes"),
    [
        pytest.param("podinfo", "", {"HookLeftOut"}, id="podinfo"),
        pytest.param("podinfo", "  skipTests: false\n", {"NondeterministicChart"}, id="podinfo-with-tests"),
        pytest.param("metrics-server", "", {"LookupReturnsNothing"}, id="metrics-server"),
        pytest.param(
            "metrics-server", "  values: {tls: {type: helm}}\n", {"NondeterministicChart"}, id="generated-certificate"
        ),
    ],
)
def test_real_charts(tmp_path: Path, name: str, options: str, codes: set[str]) -> None:
    world = create_chart_world(tmp_path, read_chart(name), options)

    result = world.sync()

    is_refused = "NondeterministicChart" in codes
    assert result.codes == codes
    assert result.outcomes["berlin/web"] == ("NondeterministicChart" if is_refused else "draft")
    assert bool(world.paths(world.fleet, "drafts/berlin", "web")) is not is_refused


def test_random_text_in_a_test_of_a_real_chart_is_named(tmp_path: Path) -> None:
    world = create_chart_world(tmp_path, read_chart("podinfo"), "  skipTests: false\n")

    messages = list_messages(world, "NondeterministicChart")

    assert any("depends on randAlphaNum (templates/tests/jwt.yaml:" in message for message in messages), messages


@pytest.mark.slow
def test_template_error_for_the_values_of_one_cluster(tmp_path: Path) -> None:
    image = "{{ .Values.image.name }}"
    world = create_chart_world(tmp_path, chart("1.0.0"), "  values: {image: null}\n")
    world.write({"clusters/paris.yaml": repository("paris")})
    values = {"paris": "{image: {name: a}}", "lisbon": "{image: {name: b}}"}
    world.write({f"{cluster}.yaml": build_request(f"  values: {text}\n", cluster) for cluster, text in values.items()})
    world.sync()
    for cluster in ("berlin", *values):
        world.merge(cluster, delete=True)
    world.sync_until_unchanged()
    published = world.files(world.fleet, "clusters/berlin", "web")
    world.release(
        "charts/web", "v1", chart("1.1.0", deployment=DEPLOYMENT.replace("web:{{ .Chart.AppVersion }}", image))
    )

    result = world.sync()

    clusters = ("berlin", *values)
    assert {cluster: result.outcomes[f"{cluster}/web"] for cluster in clusters} == {
        "berlin": "ChartRenderFailed", "paris": "draft", "lisbon": "draft",
    }  # fmt: skip
    (message,) = (finding.message for finding in result.findings if finding.code == "ChartRenderFailed")
    assert "templates/deployment.yaml:11:40" in message
    assert world.files(world.fleet, "clusters/berlin", "web") == published
    assert "example.com/b" in world.text("drafts/lisbon", "web/deployment-web.yaml")
