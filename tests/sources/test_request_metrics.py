"""Metrics of requests to chart repositories and registries."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from reconciler.telemetry.metrics import REGISTRY
from tests.sources.conftest import World
from tests.support.archives import pack_chart
from tests.support.artifact_servers import Answer, ArtifactServer, helm_repository
from tests.support.metric_samples import read_metric


@pytest.fixture(autouse=True)
def _export() -> Iterator[None]:
    with REGISTRY.export():
        yield


@pytest.mark.parametrize(
    ("answer", "status_class"),
    [
        pytest.param(None, "2xx", id="success"),
        pytest.param(Answer(404), "4xx", id="missing"),
        pytest.param(Answer(503), "5xx", id="unavailable"),
        pytest.param(Answer(body=b"entries: {}", behavior="stop"), "error", id="truncated"),
    ],
)
def test_requests_are_counted(answer: Answer | None, status_class: str, world: World, charts: ArtifactServer) -> None:
    charts.add_chart("web", "1.0.0", pack_chart("web", "1.0.0"))
    if answer:
        charts.overrides["index.yaml"] = answer
    world.artifacts.list_versions(helm_repository(charts), "web")

    assert read_metric("reconciler_source_requests_total") == {f'{{host="127.0.0.1",status_class="{status_class}"}}': 1}
