"""Tests of Secrets in charts: they are refused or allowed, and no output contains their values."""

import base64
import os
from pathlib import Path

import pytest

from tests.scenarios.test_charts import chart, create_world, request
from tests.support.charts import read_source
from tests.support.command_line import run_in
from tests.support.git_repositories import git
from tests.support.programs import find_program
from tests.support.sops import SECRET, SECRET_FIELDS, make_sops_key
from tests.support.world import World

pytestmark = pytest.mark.second_pass

PASSWORD, NEW_PASSWORD = "passphrase-of-the-database-4711", "passphrase-of-the-database-0815"
TEMPLATE = read_source("secret")["templates/secret.yaml"]
ALLOWED = "metadata:\n  annotations: {reconciler.dev/allow-plaintext-secrets: Secret/db}\n"


@pytest.fixture
def world(tmp_path: Path) -> World:
    world = create_world(tmp_path, find_program("helm"))
    world.release("charts/web", "v1", chart("1.0.0", secret=TEMPLATE.replace("PASSWORD", PASSWORD)))
    return world


def contains_password(text: str) -> bool:
    passwords = (PASSWORD, NEW_PASSWORD)
    encoded = (base64.b64encode(password.encode()).decode() for password in passwords)
    return any(form in text for form in (*passwords, *encoded))


def run_commands(world: World) -> list[str]:
    """Return the output of the commands that show a package."""
    place = ("--config", world.source)
    commands = (
        ("plan", world.source, "-o", "json"),
        *(("show", "berlin/web", *place, "-o", output) for output in ("text", "markdown", "json")),
        ("report", world.source),
        ("validate", world.source, "--rendered"),
        *(("explain", "berlin/web", *target, *place) for target in TARGETS),
        ("why", "berlin/web", "Secret/db", "/stringData/password", *place),
    )
    return [run_command(world, *command) for command in commands]


TARGETS = ((), ("Secret/db",), ("Secret/db", "/stringData/password"), ("Secret/db", "/data"))


def run_command(world: World, *arguments: str) -> str:
    options = ("--fleet", str(world.fleet), "--cache", str(world.folder / "cache"))
    environment = {
        "PATH": os.environ["PATH"],
        "HOME": "/nonexistent",
        "RECONCILER_SOURCES__HELM__PROGRAM": find_program("helm"),
    }
    result = run_in(world.folder, environment, *arguments, *options)
    return result.stdout + result.stderr


def read_branches(world: World) -> str:
    """Return the messages and files of all refs of the fleet, without the file of the Secret."""
    texts = []
    for ref in git(world.fleet, "for-each-ref", "--format=%(refname)").splitlines():
        paths = git(world.fleet, "ls-tree", "-r", "--name-only", ref).splitlines()
        texts += [git(world.fleet, "show", f"{ref}:{path}") for path in paths if "secret-db" not in path]
        texts.append(git(world.fleet, "log", "--format=%B", ref))
    return "\n".join(texts)


def read_render_cache(world: World) -> str:
    return "\n".join(path.read_text() for path in (world.folder / "cache" / "renders").rglob("*") if path.is_file())


@pytest.mark.slow
def test_plaintext_secret_is_refused_and_not_stored(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    result = world.sync()

    assert result.outcomes["berlin/web"] == "PlaintextSecret"
    [finding] = [finding for finding in result.findings if finding.code == "PlaintextSecret"]
    assert "/data/encoded" in finding.message
    assert "templates/secret.yaml" in finding.message
    assert "allow-plaintext-secrets: Secret/db" in finding.message
    assert not world.paths(world.fleet, "drafts/berlin", "web")
    assert not contains_password(read_branches(world) + read_render_cache(world))
    assert not contains_password(run_command(world, "plan", world.source))
    assert not contains_password(run_command(world, "explain", "berlin/web", "--config", world.source))
    assert not contains_password("".join(capfd.readouterr()))


@pytest.mark.slow
def test_allowed_secret_is_written_and_hidden(world: World, capfd: pytest.CaptureFixture[str]) -> None:
    world.write({"web.yaml": request().replace("metadata:\n", ALLOWED)})

    result = world.sync()

    assert (result.outcomes["berlin/web"], result.codes) == ("draft", {"SecretInBranch"})
    assert contains_password(world.text("drafts/berlin", "web/secret-db.yaml"))
    world.merge("berlin", delete=True)
    world.sync_until_unchanged()
    world.release("charts/web", "v2", chart("2.0.0", secret=TEMPLATE.replace("PASSWORD", NEW_PASSWORD)))
    world.write({"web.yaml": request("v2").replace("metadata:\n", ALLOWED)})
    plan = run_command(world, "plan", world.source)
    world.edit("clusters/berlin", "web/secret-db.yaml", f"password: {PASSWORD}", f"password: {PASSWORD}-local")
    world.sync()
    outputs = run_commands(world)

    assert "***** (changed)" in plan
    assert [conflict["pointer"] for conflict in world.package_status("drafts/berlin", "web")["conflicts"]] == [
        "/stringData/password"
    ]
    assert not [text for text in (plan, *outputs, read_branches(world)) if contains_password(text)]
    assert not contains_password("".join(capfd.readouterr()))


def test_encrypted_secret_of_a_chart_passes_unchanged(world: World, tmp_path: Path) -> None:
    folder = tmp_path / "sops"
    folder.mkdir()
    key = make_sops_key(folder)
    encrypted = key.encrypt(SECRET, *SECRET_FIELDS)
    world.release("charts/web", "v1", chart("1.0.0", secret=encrypted))

    result = world.sync()

    assert (result.outcomes["berlin/web"], result.codes) == ("draft", set())
    assert world.text("drafts/berlin", "web/secret-db.yaml") == encrypted
    assert "hunter2-hunter2" in key.decrypt(encrypted)

    without_namespace = key.encrypt(SECRET.replace("  namespace: shop\n", ""), *SECRET_FIELDS)
    world.release("charts/web", "v2", chart("2.0.0", secret=without_namespace))
    world.write({"web.yaml": request("v2")})
    assert world.sync().outcomes["berlin/web"] == "SopsMacBroken"
