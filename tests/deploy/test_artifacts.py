"""The systemd unit, the compose file and the definition of the container image."""

from __future__ import annotations

import json
import re
import shlex
import sys
import tomllib
from pathlib import Path
from typing import Any

import pytest
import yaml
from jsonschema_rs import Draft7Validator

from reconciler.settings import Settings, load_settings
from tests.support.programs import Program

PROJECT = Path(__file__).resolve().parents[2]
UNIT = PROJECT / "deploy/systemd/reconciler.service"
COMPOSE = PROJECT / "deploy/compose/compose.yaml"
DOCKERFILE = PROJECT / "Dockerfile"
INSTALLED_PROGRAM = "/opt/reconciler/bin/reconciler"
MAX_EXPOSURE = 2.0


def read_unit() -> dict[str, list[str]]:
    """Return the values of each directive of the unit."""
    values: dict[str, list[str]] = {}
    for name, value in re.findall(r"^(\w+)=(.*)$", UNIT.read_text(), re.MULTILINE):
        values.setdefault(name, []).append(value)
    return values


def read_instructions(stage: int = -1) -> list[tuple[str, str]]:
    """Return the instructions of a stage of the Dockerfile, with their continued lines joined."""
    text = re.sub(r"^#.*\n", "", DOCKERFILE.read_text(), flags=re.MULTILINE).replace("\\\n", " ")
    lines = re.split(r"^(?=FROM )", text, flags=re.MULTILINE)[stage].splitlines()
    return [(name, value.strip()) for name, _, value in (line.partition(" ") for line in lines if line.strip())]


def read_environment() -> dict[str, str]:
    pairs = [shlex.split(value) for name, value in read_instructions() if name == "ENV"]
    return dict(pair.split("=", 1) for words in pairs for pair in words)


def test_the_unit_is_valid(systemd_analyze: Program, tmp_path: Path) -> None:
    unit = tmp_path / UNIT.name
    unit.write_text(UNIT.read_text().replace(INSTALLED_PROGRAM, sys.executable))

    process = systemd_analyze("verify", unit)

    assert (process.returncode, process.stderr) == (0, "")


def test_the_exposure_of_the_unit_is_low(systemd_analyze: Program) -> None:
    process = systemd_analyze("security", "--offline=true", f"--threshold={MAX_EXPOSURE * 10:.0f}", UNIT)
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", process.stdout)

    assert process.returncode == 0, process.stdout
    assert exposure is not None
    assert float(exposure[1]) <= MAX_EXPOSURE


def test_the_unit_stops_the_daemon_after_a_push() -> None:
    unit = read_unit()

    assert unit["Type"] == ["notify"]
    assert unit["ExecReload"] == ["/bin/kill -HUP $MAINPID"]
    assert int(unit["TimeoutStopSec"][0]) > Settings().git.timeout_seconds
    # Each secret is a credential, so that the user of the service can read it and no other user can.
    assert all(value.partition(":")[2].startswith("/etc/reconciler/secrets/") for value in unit["LoadCredential"])


def test_the_compose_file_is_valid() -> None:
    package = pytest.importorskip("check_jsonschema", reason="the extra `lint` is not installed")
    (schema,) = Path(package.__file__).parent.rglob("vendor/compose-spec.json")
    validator = Draft7Validator(json.loads(schema.read_text()))
    content = yaml.safe_load(COMPOSE.read_text())

    assert [*validator.iter_errors(content)] == []
    assert [*validator.iter_errors({**content, "sevices": {}})] != []


def test_the_compose_file_limits_the_container() -> None:
    (service,) = yaml.safe_load(COMPOSE.read_text())["services"].values()

    assert (service["read_only"], service["cap_drop"], service["security_opt"]) == (
        True, ["ALL"], ["no-new-privileges:true"],
    )  # fmt: skip
    assert service["image"].startswith("${RECONCILER_IMAGE:?")
    assert int(service["stop_grace_period"].removesuffix("s")) > Settings().git.timeout_seconds
    # Only this machine can connect to the port.
    assert [port.startswith("127.0.0.1:") for port in service["ports"]] == [True]


def test_the_settings_of_the_compose_file_name_its_secrets() -> None:
    compose = yaml.safe_load(COMPOSE.read_text())
    data: dict[str, Any] = yaml.safe_load((COMPOSE.parent / "reconciler.yaml").read_text())
    settings = Settings.model_validate(data)

    (credential,) = settings.git.credentials
    assert credential.read is not None
    files = {credential.read.credentials_file, settings.webhooks.secret_file}
    assert files == {f"/run/secrets/{name}" for name in compose["services"]["reconciler"]["secrets"]}
    assert compose["secrets"].keys() == {*compose["services"]["reconciler"]["secrets"]}


def test_the_dockerfile_has_no_findings(hadolint: Program) -> None:
    process = hadolint(DOCKERFILE)

    assert (process.returncode, process.stdout) == (0, "")


def test_settings_in_the_image_are_valid(tmp_path: Path) -> None:
    settings = load_settings(None, read_environment(), tmp_path)

    assert settings.cache in [value for name, value in read_instructions() if name == "VOLUME"]
    assert settings.server.listen == "0.0.0.0:8080"


def test_the_image_runs_as_an_ordinary_user_with_a_health_check() -> None:
    instructions = read_instructions()

    assert ("USER", "10001") in instructions
    assert ("STOPSIGNAL", "SIGTERM") in instructions
    assert ("EXPOSE", "8080") in instructions
    (check,) = (value for name, value in instructions if name == "HEALTHCHECK")
    assert check.endswith('CMD ["reconciler", "health"]')
    (installation,) = (value for name, value in instructions if name == "RUN")
    assert {"git", "openssh-client", "gnupg", "ca-certificates"} <= {*installation.split()}


def test_the_image_contains_the_tested_helm_and_kustomize() -> None:
    (build,) = (value for name, value in read_instructions(1) if name == "RUN")
    modules = re.findall(r"\S+@v[\d.]+", build)
    installer = (PROJECT / "scripts/install_test_programs.sh").read_text()

    # Tests of keyless signatures also use cosign, which is not part of the image.
    tested = re.findall(r"build_go_program (\S+)$", installer, re.MULTILINE)
    assert modules == [module for module in reversed(tested) if "/cosign@" not in module]
    assert build.count("CGO_ENABLED=0") == len(modules) == 2
    copies = [value for name, value in read_instructions() if name == "COPY"]
    assert "--from=tools /tools/helm /tools/kustomize /usr/local/bin/" in copies


def test_the_image_has_the_labels_of_the_oci() -> None:
    (text,) = (value for name, value in read_instructions() if name == "LABEL")
    labels = dict(pair.split("=", 1) for pair in shlex.split(text))
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text())["project"]
    names = {"title", "description", "licenses", "source", "version", "revision", "created"}

    assert labels.keys() == {f"org.opencontainers.image.{name}" for name in names}
    assert labels["org.opencontainers.image.description"] == project["description"]
    assert labels["org.opencontainers.image.licenses"] == project["license"]


def test_the_image_contains_the_license_and_the_bill_of_materials() -> None:
    copies = [value for name, value in read_instructions() if name == "COPY"]
    ignored = (PROJECT / ".dockerignore").read_text().splitlines()

    assert "LICENSE NOTICE sbom.cdx.json /usr/share/doc/reconciler/" in copies
    assert {"!LICENSE", "!NOTICE", "!sbom.cdx.json"} <= {*ignored}
