"""Tests of the summaries of a new chart version: resources in which only the version labels change are counted."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from reconciler.output.review.pull_request import build_pull_request_text
from tests.scenarios.test_charts import chart, request
from tests.support.command_line import run_in
from tests.support.git_repositories import git
from tests.support.programs import find_program
from tests.support.world import World, small_world

LABELS = """\
  labels:
    helm.sh/chart: {{ .Chart.Name }}-{{ .Chart.Version }}
    app.kubernetes.io/version: {{ .Chart.AppVersion | quote }}
"""
KINDS = ("ConfigMap", "Secret", "ServiceAccount", "Service")
COUNT = "4 objects: only the labels helm.sh/chart and app.kubernetes.io/version change"


def labeled_chart(version: str) -> dict[str, str]:
    """Return a chart with a Deployment whose image has the version, and with four other resources."""
    files = chart(version)
    deployment = files["templates/deployment.yaml"].replace("spec:\n  replicas", f"{LABELS}spec:\n  replicas")
    templates = {
        kind: f"apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {{{{ .Release.Name }}}}\n{LABELS}" for kind in KINDS
    }
    return {
        **files,
        "templates/deployment.yaml": deployment,
        **{f"templates/{kind.lower()}.yaml": text for kind, text in templates.items()},
    }


@pytest.fixture
def world(tmp_path: Path) -> World:
    """Version 1.0.0 of a chart is published, and version 1.1.0 is requested."""
    world = small_world(tmp_path, sources={"helm": {"program": find_program("helm")}})
    for tag, version in (("v1", "1.0.0"), ("v2", "1.1.0")):
        world.release("charts/web", tag, labeled_chart(version))
    world.write({"web.yaml": request()})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    world.write({"web.yaml": request("v2")})
    return world


def run_command(world: World, *arguments: str) -> str:
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "RECONCILER_SOURCES__HELM__PROGRAM": find_program("helm"),
    }
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    return run_in(world.folder, environment, *arguments, *options).stdout


def test_plan_commit_and_draft_count_the_resources(world: World) -> None:
    plan_text = run_command(world, "plan", str(world.config))
    plan_data = json.loads(run_command(world, "plan", str(world.config), "-o", "json"))
    world.sync()
    message = git(world.fleet, "log", "-1", "--format=%B", "drafts/berlin")
    shown = run_command(world, "show", "berlin", "--config", str(world.config))

    (details,) = world.list_open_drafts("berlin", whole=True)
    pull_request = "\n".join(build_pull_request_text(details, (), lambda repo, commit: "").sections)
    reported = "\n".join(line for change in world.report().changes for line in change.summary_lines)

    for text in (plan_text, message, shown, pull_request, reported):
        assert text.count(COUNT) == 1
        assert "ConfigMap web" not in text
    changed = [change for item in plan_data["items"] for change in item["changes"]["objects"]]
    assert {change["object"]["kind"] for change in changed} == {"Deployment", *KINDS}
    assert all(change["fields"] for change in changed)
    assert message.startswith("web v1 → v2: image, labels\n")
