"""The daemon starts with the arguments, settings and folders of the chart and of the systemd unit, and becomes ready.

The tests replace only the paths, the address and the URLs of the repositories.
"""

from __future__ import annotations

import json
import re
import shlex
import signal
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from reconciler.cli.run import command as run_command_line
from tests.support.daemon import run_daemon
from tests.support.git_repositories import read_refs
from tests.support.page_commands import run_command
from tests.support.programs import Program

PROJECT = Path(__file__).resolve().parents[2]
CHART = PROJECT / "deploy/helm/reconciler"
UNIT = PROJECT / "deploy/systemd/reconciler.service"
COMPOSE = PROJECT / "deploy/compose/compose.yaml"
ADDRESS = "0.0.0.0:8080"
# A volume in Kubernetes with the group of fsGroup: each user of the group can write to it.
VOLUME_MODE = 0o2777


@pytest.fixture
def demo(tmp_path: Path) -> Path:
    run_command("reconciler demo", tmp_path)
    return tmp_path / "demo"


def render(helm: Program, folder: Path, *values: str) -> list[dict[str, Any]]:
    """Return the manifests of the chart for a fleet in a folder."""
    urls = (f"settings.config.url={folder / 'config'}", f"settings.fleet.url={folder / 'fleet.git'}")
    options = [option for value in (*urls, *values) for option in ("--set", value)]
    process = helm("template", "reconciler", CHART, "--kube-version", "1.32.0", *options)
    assert process.returncode == 0, process.stderr
    return [*yaml.safe_load_all(process.stdout)]


def list_commands(manifests: Sequence[Mapping[str, Any]], folder: Path) -> list[list[str]]:
    """Write the settings and the volumes of the pods to a folder, and return the arguments of each shard."""
    (text,) = (each["data"]["reconciler.yaml"] for each in manifests if each["kind"] == "ConfigMap")
    sets = [each for kind in ("StatefulSet", "Deployment") for each in manifests if each["kind"] == kind]
    pods = [each["spec"]["template"]["spec"] for each in sets]
    paths = {mount["mountPath"]: mount["name"] for mount in pods[0]["containers"][0]["volumeMounts"]}
    for path, name in paths.items():
        (folder / name).mkdir()
        (folder / name).chmod(VOLUME_MODE)
        text = text.replace(path, str(folder / name))
    (folder / "settings/reconciler.yaml").write_text(text.replace(ADDRESS, "127.0.0.1:0"))
    return [
        [
            argument.replace("/etc/reconciler/settings", str(folder / "settings"))
            for argument in pod["containers"][0]["args"]
        ]
        for pod in pods
    ]


def read_health_arguments(manifests: Sequence[Mapping[str, Any]], url: str) -> list[str]:
    """Return the arguments of the pod of `helm test`, with the URL of a daemon."""
    (pod,) = (each for each in manifests if each["kind"] == "Pod")
    return [url if argument.startswith("http://") else argument for argument in pod["spec"]["containers"][0]["args"]]


def test_the_arguments_of_the_chart_are_valid(helm: Program, tmp_path: Path) -> None:
    commands = list_commands(render(helm, tmp_path, "shards=2", "readOnlyReplicas=1"), tmp_path)
    contexts = [run_command_line.make_context("run", arguments[1:]) for arguments in commands]

    assert {arguments[0] for arguments in commands} == {"run"}
    assert {context.params["settings_file"] for context in contexts} == {str(tmp_path / "settings/reconciler.yaml")}
    assert [(context.params["shard"], context.params["is_read_only"]) for context in contexts] == [
        ("1/2", False), ("2/2", False), (None, True),
    ]  # fmt: skip


@pytest.mark.slow
def test_a_pod_of_the_chart_becomes_ready_and_stops(helm: Program, demo: Path, tmp_path: Path) -> None:
    manifests = render(helm, demo, "existingSecret.webhooks.name=hooks", "existingSecret.credentials.name=git")
    (arguments,) = list_commands(manifests, tmp_path)
    (tmp_path / "secret-webhooks/webhook-secrets").write_text("secret\n")
    (tmp_path / "secret-credentials/git-credentials").write_text("https://user:token@git.example.com\n")
    (pod,) = (each["spec"]["template"]["spec"] for each in manifests if each["kind"] == "StatefulSet")
    probes = [pod["containers"][0][f"{name}Probe"]["httpGet"]["path"] for name in ("startup", "liveness", "readiness")]

    with run_daemon(arguments, tmp_path) as daemon:
        daemon.wait_for_notification("READY=1")
        responses = {path: daemon.get(path)[0] for path in probes}
        health = run_command(f"reconciler {shlex.join(read_health_arguments(manifests, daemon.url))}", tmp_path)

    assert responses == {"/readyz": 200, "/healthz": 200}
    assert health.returncode == 0, health.stdout + health.stderr
    assert daemon.process.returncode == 0


@pytest.mark.slow
def test_the_shards_of_the_chart_process_all_targets(helm: Program, demo: Path, tmp_path: Path) -> None:
    run_command(
        "git -C fleet.git for-each-ref --format='delete %(refname)' | git -C fleet.git update-ref --stdin", demo
    )
    for arguments in list_commands(render(helm, demo, "shards=2"), tmp_path):
        with run_daemon(arguments, tmp_path) as daemon:
            daemon.wait_for("pass_completed")

    refs = run_command("git -C fleet.git for-each-ref --format='%(refname:short)' refs/heads/drafts", demo).stdout
    assert refs.split() == ["drafts/berlin", "drafts/boston", "drafts/chicago", "drafts/lisbon"]


@pytest.mark.slow
def test_a_read_only_pod_becomes_ready_and_changes_nothing(helm: Program, demo: Path, tmp_path: Path) -> None:
    run_command("sed -i 's/auth[.]eu-west/login.eu-west/' config/regions.yaml", demo)
    before = read_refs(demo / "fleet.git")
    (demo / "token").write_text("token")
    # No process listens on port 1, so a call of the forge would fail.
    forge = {"url": str(demo), "kind": "gitea", "api": "http://127.0.0.1:1", "token_file": str(demo / "token")}
    options = [f"settings.forge.hosts[0].{key}={value}" for key, value in forge.items()]
    _, arguments = list_commands(render(helm, demo, "readOnlyReplicas=1", *options), tmp_path)

    with run_daemon(arguments, tmp_path) as daemon:
        end = daemon.wait_for("pass_completed")
        daemon.wait_for_notification("READY=1")
        details = json.loads(daemon.get("/readyz?verbose")[1])

    assert (end["result"], end["drafts"]["updated"], end["findings"]["warning"]) == ("success", 2, 0)
    assert (details["mode"], details["status"]) == ("read-only", "ready")
    assert read_refs(demo / "fleet.git") == before
    assert daemon.process.returncode == 0


def read_unit(name: str) -> list[str]:
    return re.findall(rf"^{name}=(.*)$", UNIT.read_text(), re.MULTILINE)


@pytest.mark.slow
def test_the_unit_reports_readiness_and_reloads(demo: Path, tmp_path: Path) -> None:
    settings, cache = tmp_path / "reconciler.yaml", tmp_path / "cache"
    text = (
        f"config: {{url: {demo / 'config'}}}\nfleet: {{url: {demo / 'fleet.git'}}}\nserver: {{listen: '127.0.0.1:0'}}\n"
    )
    settings.write_text(text)
    (start,) = read_unit("ExecStart")
    arguments = [
        argument.replace("/etc/reconciler/reconciler.yaml", str(settings)) for argument in shlex.split(start)[1:]
    ]
    variables = dict(variable.split("=", 1) for line in read_unit("Environment") for variable in shlex.split(line))
    assert variables.pop("RECONCILER_CACHE") == "/var/cache/reconciler"
    (watchdog,) = read_unit("WatchdogSec")
    variables |= {"RECONCILER_CACHE": str(cache), "WATCHDOG_USEC": str(int(watchdog) * 1_000_000)}

    with run_daemon(arguments, tmp_path, variables) as daemon:
        daemon.wait_for_notification("READY=1")
        daemon.process.send_signal(signal.SIGHUP)
        daemon.wait_for_notification("RELOADING=1")
        daemon.wait_for_notification("READY=1")

    assert daemon.process.returncode == 0


def test_the_compose_file_starts_the_program_with_valid_arguments() -> None:
    (service,) = yaml.safe_load(COMPOSE.read_text())["services"].values()

    context = run_command_line.make_context("run", service["command"][1:])

    assert service["command"][0] == "run"
    mounted = {volume["target"] for volume in service["volumes"] if isinstance(volume, dict)}
    assert context.params["settings_file"] in mounted
