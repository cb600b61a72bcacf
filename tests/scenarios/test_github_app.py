"""A fleet on GitHub with one App: passes fetch, push and open pull requests with tokens for each use."""

from __future__ import annotations

from pathlib import Path

import pytest
from cryptography.hazmat.primitives.asymmetric import rsa

from tests.forge.test_app_token import APP, private_pem, public_pem
from tests.support.fake_forge.core import FakeForge
from tests.support.fake_forge.github import FakeApp, GitHubWire
from tests.support.fake_forge.server import serve as serve_forge
from tests.support.git_http import GitHost, serve
from tests.support.git_repositories import git, read_refs
from tests.support.world import World, catalog, make_bare, package, repository, variant

pytestmark = pytest.mark.real_git


def test_one_app_reads_pushes_and_opens_pull_requests(tmp_path: Path) -> None:
    key = rsa.generate_private_key(65537, 2048)
    (tmp_path / "key.pem").write_bytes(private_pem(key))
    app = FakeApp(APP, public_pem(key))
    forge = FakeForge(tmp_path, lambda: world.now)
    fleet = forge.create_repository("acme/fleet")
    git(fleet.bare, "config", "http.receivepack", "true")
    host = GitHost(tmp_path)

    def accept_tokens() -> None:
        """Let the Git host accept each token of the App, with the permission that GitHub has granted."""
        for number, limits in enumerate(app.limits, 1):
            host.permissions[f"x-access-token:ghs_secret{number}"] = limits["permissions"]["contents"]

    host.observe = accept_tokens
    host.permissions["nobody:"] = "read"
    with serve_forge(GitHubWire(forge, app=app)) as api, serve(host):
        source = {"github_app": {"app_id": APP, "key_file": str(tmp_path / "key.pem")}}
        entry = {"url": f"127.0.0.1:{host.port}/acme/*", "read": source, "write": source, "api": source}
        world = World(
            tmp_path,
            fleet={"url": f"{host.url}/acme/fleet.git"},
            git={"credentials": [entry], "allowed_urls": [host.url, f"{tmp_path}/**"]},
            forge={"hosts": [{"url": f"{host.url}/acme", "kind": "github", "api": api}]},
        )
        world.fleet = fleet.bare
        world.config.mkdir()
        make_bare(world.catalog)
        world.write({
            "catalog.yaml": catalog(),
            "berlin.yaml": repository("berlin", f"{host.url}/acme/fleet.git"),
            "web.yaml": variant("web", "berlin", "web"),
        })  # fmt: skip
        world.release("web", "v1", package("web"))
        result = world.sync()

    assert [finding for finding in result.findings if finding.severity == "error"] == []
    assert "refs/heads/drafts/berlin" in read_refs(fleet.bare)
    assert [request.head for request in fleet.requests()] == ["drafts/berlin"]
    granted = {(str(sorted(limits["permissions"])), limits["permissions"]["contents"]) for limits in app.limits}
    assert granted == {
        ("['contents']", "read"), ("['contents']", "write"), ("['contents', 'pull_requests', 'statuses']", "write"),
    }  # fmt: skip
    uses = {(service, app.limits[int(login[-1]) - 1]["permissions"]["contents"]) for service, login in host.uses}
    assert uses == {("git-upload-pack", "read"), ("git-receive-pack", "write")}
