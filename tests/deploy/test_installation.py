"""The pages about the installation: their commands, settings and values."""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from reconciler.settings import Settings
from tests.support.programs import Program

PROJECT = Path(__file__).resolve().parents[2]
VM = PROJECT / "docs/how-to/install-on-a-vm.md"
KUBERNETES = PROJECT / "docs/how-to/install-on-kubernetes.md"
UNIT = PROJECT / "deploy/systemd/reconciler.service"
# Folders of the machine, which the test replaces by folders of its own.
_FOLDERS = re.compile(r"(?<![\w/])/etc/(?=reconciler|systemd)")
_SECRET = re.compile(r"/run/credentials/reconciler\.service/([\w-]+)")


def list_blocks(page: Path, language: str) -> Iterator[str]:
    """Yield the texts of all blocks of a page in one language, without their indentation."""
    pattern = rf"^(?P<indent> *)```{language}\n(?P<text>.*?)^ *```$"
    for match in re.finditer(pattern, page.read_text(), re.DOTALL | re.MULTILINE):
        yield re.sub(f"^{match['indent']}", "", match["text"], flags=re.MULTILINE)


def write_program(folder: Path, name: str, script: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / name).write_text(f"#!/bin/sh\n{script}\n")
    (folder / name).chmod(0o755)


@pytest.fixture
def machine(tmp_path: Path) -> Path:
    """A folder with the files that the commands for a VM write. `sudo` and `systemctl` change nothing on this machine."""
    write_program(tmp_path / "bin", "sudo", 'exec "$@"')
    write_program(tmp_path / "bin", "systemctl", 'echo "systemctl $*"')
    (tmp_path / "etc/systemd/system").mkdir(parents=True)
    for block in list_blocks(VM, "sh"):
        if "/etc/" not in block:
            continue
        process = subprocess.run(
            ["bash", "-euo", "pipefail", "-c", _FOLDERS.sub(f"{tmp_path}/etc/", block)],
            cwd=PROJECT, env={"PATH": f"{tmp_path / 'bin'}:{os.environ['PATH']}"},
            text=True, capture_output=True, check=False,
        )  # fmt: skip
        assert process.returncode == 0, block + process.stderr
    return tmp_path / "etc"


def test_the_commands_for_a_vm_write_valid_settings(machine: Path) -> None:
    settings = Settings.model_validate(yaml.safe_load((machine / "reconciler/reconciler.yaml").read_text()))

    assert settings.config.url == "https://git.example.com/platform/config.git"


def test_the_commands_for_a_vm_write_the_secrets_of_the_unit(machine: Path) -> None:
    settings = (machine / "reconciler/reconciler.yaml").read_text()
    unit = (machine / "systemd/system/reconciler.service").read_text()
    loaded = dict(re.findall(r"^LoadCredential=([\w-]+):/etc/(\S+)$", unit, re.MULTILINE))

    assert {*_SECRET.findall(settings)} == loaded.keys()
    for path in loaded.values():
        assert (machine / path).stat().st_mode & 0o777 == 0o600
        assert (machine / path).read_text().strip()


def test_the_commands_for_a_vm_install_the_unit(machine: Path) -> None:
    assert (machine / "systemd/system/reconciler.service").read_text() == UNIT.read_text()


def test_directives_for_more_services_are_valid(systemd_analyze: Program, tmp_path: Path) -> None:
    blocks = [*list_blocks(VM, "ini")]
    assert len(blocks) == 2
    unit = tmp_path / "reconciler.service"
    unit.write_text(UNIT.read_text().replace("/opt/reconciler/bin/reconciler", "/bin/true"))
    for index, block in enumerate(blocks):
        (tmp_path / f"{unit.name}.d").mkdir(exist_ok=True)
        (tmp_path / f"{unit.name}.d/{index}.conf").write_text(block)

    process = systemd_analyze("verify", unit)

    assert (process.returncode, process.stderr) == (0, "")


def test_the_values_for_kubernetes_are_valid(helm: Program, tmp_path: Path) -> None:
    (values,) = list_blocks(KUBERNETES, "yaml")
    (tmp_path / "values.yaml").write_text(values)
    chart = PROJECT / "deploy/helm/reconciler"

    process = helm("template", "reconciler", chart, "--kube-version", "1.32.0", "--values", tmp_path / "values.yaml")

    assert process.returncode == 0, process.stderr
    manifests = {(each["kind"], each["metadata"]["name"]): each for each in yaml.safe_load_all(process.stdout)}
    settings = yaml.safe_load(manifests["ConfigMap", "reconciler-settings"]["data"]["reconciler.yaml"])
    Settings.model_validate(settings)
    names = set(re.findall(r"statefulset/([\w-]+)", KUBERNETES.read_text()))
    assert {("StatefulSet", name) for name in names} <= manifests.keys()
    created = set(re.findall(r"create secret generic ([\w-]+)", KUBERNETES.read_text()))
    volumes = manifests["StatefulSet", "reconciler-1"]["spec"]["template"]["spec"]["volumes"]
    assert {volume["secret"]["secretName"] for volume in volumes if "secret" in volume} == created


@pytest.mark.parametrize("page", [VM, KUBERNETES], ids=lambda page: page.stem)
def test_files_in_the_commands_exist(page: Path) -> None:
    paths = {
        path
        for block in list_blocks(page, "sh")
        for path in re.findall(r"(?<![\w/])(?:deploy|scripts)/[\w./-]+", block)
    }

    assert paths
    assert [path for path in sorted(paths) if not (PROJECT / path).exists()] == []
