"""The command `doctor`: checks of remotes and forges, the exit status, and no secrets in the output."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.support.command_line import CommandResult, run_in
from tests.support.fake_forge.core import FakeForge
from tests.support.fake_forge.gitea import GiteaWire
from tests.support.fake_forge.server import serve as serve_forge
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.signing_keys import create_hardware_key, create_ssh_key, gpg_key, write_allowed_signers
from tests.support.world import World, catalog, package, repository, variant

pytestmark = pytest.mark.real_git

READ, WRITE = "read-token-canary-1", "write-token-canary-2"


class Scene:
    """A Git host with a fleet, a catalog and a read-only repository, and a settings file with credentials for them."""

    def __init__(self, folder: Path, host: GitHost) -> None:
        self.folder = folder
        self.host = host
        self.world = World.create(folder / "world")
        git(self.world.fleet, "config", "http.receivepack", "true")
        make_bare(self.world.folder / "locked.git", http__receivepack="true")
        self.world.release("web", "v1", package("web"))
        self.world.write({
            "catalog.yaml": catalog().replace("./catalog.git", f"{host.url}/world/catalog.git"),
            "berlin.yaml": repository("berlin", f"{host.url}/world/fleet.git"),
            "web.yaml": variant("web", "berlin", "web"),
        })  # fmt: skip
        (folder / "read").write_text(READ)
        (folder / "write").write_text(WRITE)
        self.entries: list[dict[str, Any]] = [
            {"url": f"127.0.0.1:{host.port}/world/locked", "read": {"token_file": str(folder / "read")}},
            {
                "url": f"127.0.0.1:{host.port}",
                "read": {"token_file": str(folder / "read")},
                "write": {"token_file": str(folder / "write")},
            },
        ]
        self.more_settings: dict[str, Any] = {}

    def run(self, *arguments: str) -> CommandResult:
        settings = {
            "cache": "cache",
            "fleet": {"url": f"{self.host.url}/world/fleet.git"},
            "git": {"credentials": self.entries, "allowed_urls": [self.host.url, f"{self.folder}/**"]},
            **self.more_settings,
        }
        (self.folder / "reconciler.yaml").write_text(json.dumps(settings))
        return run_in(self.folder, {}, "doctor", str(self.world.config), *arguments)

    def read_items(self) -> dict[str, dict[str, Any]]:
        result = self.run("-o", "json")
        assert result.stdout, result.stderr
        data = json.loads(result.stdout)
        return {item["url"].rpartition("/")[2]: item for item in data["items"]} | {"summary": data["summary"]}


@pytest.fixture
def scene(tmp_path: Path) -> Iterator[Scene]:
    permissions = {f"x-access-token:{READ}": "read", f"x-access-token:{WRITE}": "write"}
    with serve(GitHost(tmp_path, permissions=permissions)) as host:
        yield Scene(tmp_path, host)


def test_text_lists_the_checks_of_each_remote(scene: Scene) -> None:
    before = read_refs(scene.world.fleet)

    result = scene.run()

    text = re.sub(r"127\.0\.0\.1:\d+", "git.example.com", result.stdout)
    assert re.sub(r"[+-]\d s", "+0 s", text) == (
        "http://git.example.com/world/fleet.git (fleet.url, target)\n"
        "  credentials   git.credentials[1] (url git.example.com)\n"
        "  read          ok\n"
        "  write         ok\n"
        "  atomic push   yes\n"
        "  push options  no\n"
        "  clock         +0 s\n"
        "\n"
        "http://git.example.com/world/catalog.git (upstream)\n"
        "  credentials   git.credentials[1] (url git.example.com)\n"
        "  read          ok\n"
        "  write         not required\n"
        "  clock         +0 s\n"
        "\n"
        "2 remotes: none failed\n"
    )
    assert (result.returncode, result.stderr) == (0, "")
    assert read_refs(scene.world.fleet) == before
    assert {service for service, login in scene.host.uses if WRITE in login} == {"git-receive-pack"}


@pytest.mark.parametrize(
    ("token", "use", "expected"),
    [
        pytest.param("read", "read", "failed", id="read"),
        pytest.param("write", "write", "failed", id="write"),
    ],
)
def test_refused_token_fails_its_check(scene: Scene, token: str, use: str, expected: str) -> None:
    (scene.folder / token).write_text("another-token-canary")

    result = scene.run()
    item = scene.read_items()["fleet.git"]

    assert item[use]["status"] == expected
    assert "check the credentials and their permissions" in item[use]["message"]
    assert item["write" if use == "read" else "read"]["status"] == "ok"
    assert result.returncode == 1
    assert "canary" not in result.stdout + result.stderr


def test_write_token_without_permission_fails_the_dry_run(scene: Scene) -> None:
    (scene.folder / "write").write_text(READ)

    item = scene.read_items()["fleet.git"]

    assert (item["read"]["status"], item["write"]["status"]) == ("ok", "failed")


def test_read_only_target_and_wrong_clock_are_reported(scene: Scene) -> None:
    scene.world.write({"locked.yaml": repository("locked", f"{scene.host.url}/world/locked.git")})
    scene.host.seconds_ahead = 90

    items = scene.read_items()
    result = scene.run()

    assert items["locked.git"]["write"] == {"status": "readOnly", "message": "add `write` to the entry"}
    assert items["locked.git"]["setting"] == "git.credentials[0]"
    assert items["summary"] == {"remotes": 3, "failed": 1, "warnings": 3}
    assert 88 <= items["fleet.git"]["clockSeconds"] <= 91
    assert result.returncode == 1
    assert "s (more than 30 s: check the time of both machines)" in result.stdout


def test_push_features_of_the_host_are_determined(scene: Scene) -> None:
    git(scene.world.fleet, "config", "receive.advertisePushOptions", "true")
    git(scene.world.fleet, "config", "receive.advertiseAtomic", "false")

    items = scene.read_items()

    assert (items["fleet.git"]["canPushAtomically"], items["fleet.git"]["canUsePushOptions"]) == (False, True)
    assert items["summary"]["warnings"] == 1


def test_deprecated_settings_and_an_unreadable_config_are_reported(scene: Scene) -> None:
    settings = json.dumps({
        "cache": "cache", "fleet": {"url": f"{scene.host.url}/world/fleet.git"},
        "git": {"credentials_file": "lost", "allowed_urls": [scene.host.url]},
    })  # fmt: skip
    (scene.folder / "reconciler.yaml").write_text(settings)
    result = run_in(scene.folder, {}, "doctor", f"{scene.host.url}/world/none.git")

    assert result.returncode == 1
    assert "warning SettingDeprecated: `git.credentials_file` is deprecated; use an entry" in result.stdout
    assert "cannot read the credentials file lost" in result.stdout
    assert "the remotes of the config are not checked, because the config cannot be read" in result.stdout


def test_forge_of_a_target_is_checked(scene: Scene) -> None:
    forge = FakeForge(scene.folder / "forge", lambda: 0)
    forge.create_repository("world/fleet")
    (scene.folder / "api").write_text("unknown-api-token-canary")
    with serve_forge(GiteaWire(forge)) as url:
        scene.more_settings = {
            "forge": {"hosts": [{"url": f"{scene.host.url}/world", "kind": "gitea", "api": f"{url}/api/v1"}]}
        }
        scene.entries[1]["api"] = {"token_file": str(scene.folder / "api")}
        refused = scene.read_items()["fleet.git"]["forge"]
        (scene.folder / "api").write_text(forge.token)
        accepted = scene.read_items()["fleet.git"]["forge"]

    assert refused["check"]["status"] == "failed"
    assert "canary" not in str(refused)
    assert accepted["kind"] == "gitea"
    assert accepted["check"] == {"status": "ok"}


def check_key(scene: Scene, **signing: Any) -> tuple[int, dict[str, Any]]:
    """Return the exit status of the command, and its result for these settings of signatures."""
    scene.more_settings = {"signing": signing}
    check: dict[str, Any] = scene.read_items()["summary"]["signing"]
    return scene.run().returncode, check


@pytest.mark.slow
def test_a_signing_key_that_is_an_allowed_signer_has_no_finding(scene: Scene) -> None:
    key = create_ssh_key(scene.folder / "keys", "ed25519")
    allowed = write_allowed_signers(scene.folder, key, "robot@example.com")
    before = read_refs(scene.world.fleet)

    status, check = check_key(
        scene, format="ssh", key_file=str(key), sign=["tags"], verify_inputs="warn", allowed_signers_file=str(allowed)
    )

    assert (status, check) == (0, {
        "key": str(key), "keyType": "ssh-ed25519", "isDeterministic": True, "sign": {"status": "ok"},
        "trust": {"status": "ok"},
    })  # fmt: skip
    assert read_refs(scene.world.fleet) == before


@pytest.mark.slow
def test_a_signing_key_that_is_no_allowed_signer_is_a_warning(scene: Scene) -> None:
    key = create_ssh_key(scene.folder / "keys", "rsa")
    other = create_ssh_key(scene.folder / "other", "ed25519")
    allowed = write_allowed_signers(scene.folder, other, "ada@example.com")

    status, check = check_key(
        scene, format="ssh", key_file=str(key), verify_inputs="warn", allowed_signers_file=str(allowed)
    )

    assert (status, check["sign"]) == (0, {"status": "ok"})
    assert check["trust"]["message"].startswith("a commit with this key is signed by the RSA key SHA256:")


@pytest.mark.parametrize(
    ("content", "message"),
    [
        pytest.param(None, "cannot be read: No such file", id="absent"),
        pytest.param("key-canary", "must be an SSH private key", id="another-file"),
    ],
)
def test_an_unreadable_signing_key_fails(scene: Scene, content: str | None, message: str) -> None:
    key = scene.folder / "key"
    if content:
        key.write_text(content)

    status, check = check_key(scene, format="ssh", key_file=str(key))

    assert (status, check["sign"]["status"], "keyType" in check) == (1, "failed", False)
    assert message in check["sign"]["message"]
    assert "canary" not in str(check)


def test_a_hardware_key_without_its_device_fails(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    key, _ = create_hardware_key(scene.folder / "keys", is_touched=True)
    monkeypatch.setenv("SSH_SK_PROVIDER", "/absent/provider.so")

    status, check = check_key(scene, format="ssh", key_file=str(key))

    assert (status, check["keyType"], check["isDeterministic"]) == (1, "sk-ssh-ed25519@openssh.com", False)
    assert "ssh-keygen could not sign" in check["sign"]["message"]


@pytest.mark.slow
def test_an_openpgp_key_is_checked_with_its_keyring(scene: Scene) -> None:
    with gpg_key() as (home, key_id):
        signing = {"format": "openpgp", "gnupg_home": str(home), "verify_inputs": "warn"}
        accepted = check_key(scene, key_id=key_id, **signing)
        missing = check_key(scene, key_id="nobody@example.com", **signing)

    assert (accepted[0], accepted[1]["sign"], accepted[1]["trust"]) == (0, {"status": "ok"}, {"status": "ok"})
    assert (missing[0], missing[1]["trust"]) == (1, {"status": "notRequired"})
    assert "nobody@example.com" in missing[1]["sign"]["message"]
