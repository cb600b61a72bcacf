"""Passes over a Git host with separate credentials for reading and pushes, and targets without credentials for pushes."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.inspect.validate import validate
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import git, read_refs
from tests.support.world import World, catalog, make_bare, package, repository, variant

pytestmark = pytest.mark.real_git

READ, WRITE = "read-token-canary-1", "write-token-canary-2"


@pytest.fixture
def host(tmp_path: Path) -> Iterator[GitHost]:
    permissions = {f"x-access-token:{READ}": "read", f"x-access-token:{WRITE}": "write"}
    with serve(GitHost(tmp_path, permissions=permissions)) as running:
        yield running


def create_world(tmp_path: Path, host: GitHost, **git_settings: Any) -> World:
    """Return a world with the package `web` on Berlin and on Lisbon, whose repository `locked` is read-only."""
    (tmp_path / "read").write_text(READ)
    (tmp_path / "write").write_text(WRITE)
    read, write = {"token_file": str(tmp_path / "read")}, {"token_file": str(tmp_path / "write")}
    entries = (
        {"url": f"127.0.0.1:{host.port}/world/locked", "read": read},
        {"url": f"127.0.0.1:{host.port}", "read": read, "write": write},
    )
    world = World.create(
        tmp_path / "world",
        fleet={"url": f"{host.url}/world/fleet.git"},
        git={"credentials": entries, "allowed_urls": [host.url, f"{tmp_path}/**"], **git_settings},
    )
    git(world.fleet, "config", "http.receivepack", "true")
    locked = make_bare(world.folder / "locked.git", http__receivepack="true")
    assert read_refs(locked) == {}
    world.write({
        "catalog.yaml": catalog().replace("./catalog.git", f"{host.url}/world/catalog.git"),
        "berlin.yaml": repository("berlin", f"{host.url}/world/fleet.git"),
        "lisbon.yaml": repository("lisbon", f"{host.url}/world/locked.git"),
        "web-berlin.yaml": variant("web-berlin", "berlin", "web"),
        "web-lisbon.yaml": variant("web-lisbon", "lisbon", "web"),
    })  # fmt: skip
    world.release("web", "v1", package("web"))
    return world


@pytest.mark.slow
def test_target_without_credentials_for_pushes_is_reported_and_the_others_continue(
    tmp_path: Path, host: GitHost
) -> None:
    world = create_world(tmp_path, host)

    result = world.sync()
    second = world.sync()

    for findings in (result.findings, second.findings):
        (finding,) = (item for item in findings if item.code == "TargetReadOnly")
        assert finding.location.file == "lisbon.yaml"
        assert f"{host.url}/world/locked.git is read-only. Next step: add `write`" in finding.message
    assert "refs/heads/drafts/berlin" in read_refs(world.fleet)
    assert read_refs(world.folder / "locked.git") == {}
    assert second.before == second.after
    used = {(service, login.partition(":")[2]) for service, login in host.uses}
    assert used == {("git-upload-pack", READ), ("git-receive-pack", WRITE)}


def test_validate_reports_the_read_only_target_and_deprecated_settings(tmp_path: Path, host: GitHost) -> None:
    world = create_world(tmp_path, host, credentials_file=str(tmp_path / "old"))
    services = build_services(world.read_settings(), world.source)

    with services.remotes as remotes:
        findings = validate(services.source, remotes, services.pass_services).findings

    codes = {finding.code: finding for finding in findings}
    assert codes["TargetReadOnly"].location.file == "lisbon.yaml"
    assert codes["SettingDeprecated"].location.pointer == "git.credentials_file"


@pytest.mark.slow
@pytest.mark.emits("credential_reloaded")
def test_service_continues_after_a_rotation_of_all_tokens(tmp_path: Path, host: GitHost) -> None:
    world = create_world(tmp_path, host)
    runner = world.service()
    runner.run()
    host.permissions = {"x-access-token:rotated-read": "read", "x-access-token:rotated-write": "write"}
    (tmp_path / "read").write_text("rotated-read")
    (tmp_path / "write").write_text("rotated-write")
    host.uses.clear()
    world.release("web", "v2", package("web", replicas=5))
    world.write({"web-berlin.yaml": variant("web-berlin", "berlin", "web", "v2")})

    runner.run()

    assert "replicas: 5" in world.text("drafts/berlin", "web/deployment.yaml")
    used = {(service, login.partition(":")[2]) for service, login in host.uses}
    assert used == {("git-upload-pack", "rotated-read"), ("git-receive-pack", "rotated-write")}
