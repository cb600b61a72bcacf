"""Passes with the setting `signing.verify_inputs`: the config and the upstreams need signatures by allowed signers."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from reconciler.git.errors import UnverifiedCommitError
from reconciler.git.mirror import Mirror
from reconciler.krm.findings import Severity
from tests.scenarios.test_rewritten_tags import ConfigWorld
from tests.support.git_repositories import git, make_bare, read_refs
from tests.support.signing_keys import build_signing_options, create_ssh_key, write_allowed_signers
from tests.support.world import PassResult, catalog, package, repository, variant


class SignedWorld(ConfigWorld):
    """A fleet with a config repository. Each commit of the config and of the catalog can be signed."""

    key: Path

    def sign(self, repository: Path, ref: str, key: Path | None = None) -> str:
        """Replace the commit of a ref by a signed commit with the same content and parents."""
        commit = git(repository, "rev-parse", ref)
        parents = git(repository, "log", "-1", "--format=%P", commit).split()
        arguments = [argument for parent in parents for argument in ("-p", parent)]
        environment = {**os.environ, "GIT_COMMITTER_DATE": "1200000000 +0000", "GIT_AUTHOR_DATE": "1200000000 +0000"}
        signed = subprocess.run(
            ["git", *build_signing_options(key or self.key), "commit-tree", "-S", *arguments, "-m", "signed", f"{commit}^{{tree}}"],
            cwd=repository, env=environment, check=True, capture_output=True, text=True,
        ).stdout.strip()  # fmt: skip
        git(repository, "update-ref", ref, signed)
        return signed

    def write_config(self, *, is_signed: bool = True, **files: str) -> str:
        self.commit_config({f"{name}.yaml": text for name, text in files.items()})
        ref = "refs/heads/main"
        return self.sign(self.repo, ref) if is_signed else git(self.repo, "rev-parse", ref)

    def release_signed(self, version: str, *, is_signed: bool = True) -> str:
        self.release("gateway", version, package("gateway", image=version))
        ref = "refs/heads/main"
        commit = self.sign(self.catalog, ref) if is_signed else git(self.catalog, "rev-parse", ref)
        git(self.catalog, "update-ref", f"refs/tags/gateway/{version}", commit)
        return commit

    def image(self) -> str:
        """The version of the image in the draft of Berlin."""
        return self.text("drafts/berlin", "gateway/deployment.yaml").partition("gateway:")[2].split("\n")[0]


@pytest.fixture
def world(tmp_path: Path) -> SignedWorld:
    """A signed config that requests the head of a catalog with one signed commit."""
    key = create_ssh_key(tmp_path / "keys", "ed25519")
    signers = write_allowed_signers(tmp_path, key, "ada@example.com")
    settings = {"verify_inputs": "require", "allowed_signers_file": str(signers)}
    world = SignedWorld(tmp_path, config={"directory": "prod"}, signing=settings)
    world.key = key
    for name in ("catalog", "fleet", "config"):
        make_bare(tmp_path / f"{name}.git")
    world.release_signed("v1")
    gateway = variant("gw", "berlin", "gateway").replace("revision: v1", "revision: -1")
    world.write_config(catalog=catalog(), berlin=repository("berlin"), gw=gateway)
    return world


def with_mode(world: SignedWorld, mode: str) -> SignedWorld:
    return world.with_settings(signing={**world._settings["signing"], "verify_inputs": mode})  # type: ignore[dict-item]


def list_problems(result: PassResult) -> list[tuple[Severity, str]]:
    return [(finding.severity, finding.message) for finding in result.findings if finding.code == "UnverifiedCommit"]


def test_signed_inputs_have_no_finding(world: SignedWorld) -> None:
    result = world.sync()

    assert list_problems(result) == []
    assert result.outcomes["berlin/gateway"] == "draft"


def test_an_unsigned_config_head_changes_nothing(world: SignedWorld) -> None:
    world.release_signed("v2")
    world.sync()
    refs = read_refs(world.fleet)
    head = world.write_config(is_signed=False, gw=variant("gw", "berlin", "gateway"))

    result = world.sync()

    ((severity, message),) = list_problems(result)
    assert severity is Severity.ERROR
    assert f"commit {head[:12]} of main in " in message
    assert "has no signature" in message
    assert read_refs(world.fleet).keys() == refs.keys()
    assert world.head("drafts/berlin") == refs["refs/heads/drafts/berlin"]
    world.sign(world.repo, "refs/heads/main")
    assert list_problems(world.sync()) == []
    assert world.image() == "v1"


def test_an_unsigned_upstream_commit_is_not_used(world: SignedWorld) -> None:
    world.sync()
    old = git(world.catalog, "rev-parse", "main")
    new = world.release_signed("v2", is_signed=False)

    result = world.sync()

    ((severity, message),) = list_problems(result)
    assert severity is Severity.ERROR
    assert f"commit {new[:12]} of main in " in message
    assert f" has no signature; commit {old[:12]} stays in use" in message
    assert world.image() == "v1"
    assert list_problems(world.sync()) == [(severity, message)]
    world.sign(world.catalog, "refs/heads/main")
    assert list_problems(world.sync()) == []
    assert world.image() == "v2"


def test_a_signer_that_is_not_allowed_is_named(world: SignedWorld, tmp_path: Path) -> None:
    world.sync()
    world.release_signed("v2", is_signed=False)
    other = create_ssh_key(tmp_path / "other", "ed25519")
    world.sign(world.catalog, "refs/heads/main", other)

    ((_, message),) = list_problems(world.sync())
    assert "is signed by the ED25519 key SHA256:" in message
    signers = tmp_path / "allowed_signers"
    signers.write_text(signers.read_text() + f"bob {other.with_suffix('.pub').read_text()}")

    assert list_problems(world.sync()) == []
    assert world.image() == "v2"


def test_a_package_without_a_verified_upstream_is_blocked_and_not_deleted(world: SignedWorld) -> None:
    world.sync()
    world.run_review_action("approve", "berlin", should_approve_unproposed=True)
    world.sync_until_unchanged()
    refs = read_refs(world.fleet)
    world.release_signed("v2", is_signed=False)
    shutil.rmtree(world.folder / "cache")

    result = world.sync()

    assert world.reason("gw", "Stalled") == "UnverifiedCommit"
    assert "there is no earlier verified commit" in list_problems(result)[0][1]
    assert read_refs(world.fleet)["refs/heads/clusters/berlin"] == refs["refs/heads/clusters/berlin"]
    assert "refs/heads/removals/berlin" not in read_refs(world.fleet)


def test_an_unsigned_config_without_a_verified_commit_ends_the_pass(world: SignedWorld) -> None:
    world.write_config(is_signed=False, note="")
    refs = read_refs(world.fleet)

    with pytest.raises(UnverifiedCommitError, match=r"the config: .* has no signature"):
        world.sync()

    assert read_refs(world.fleet) == refs


def test_a_warning_changes_nothing_else(world: SignedWorld) -> None:
    world.release_signed("v2", is_signed=False)
    world.write_config(is_signed=False, note="")

    result = with_mode(world, "warn").sync()

    assert {severity for severity, _ in list_problems(result)} == {Severity.WARNING}
    assert len(list_problems(result)) == 2
    assert world.image() == "v2"


def test_a_service_reports_an_unsigned_head_and_then_skips_passes(
    world: SignedWorld, monkeypatch: pytest.MonkeyPatch
) -> None:
    service = world.service()
    calls: list[str] = []
    verify = Mirror.verify_signature

    def record(self: Mirror, command: object, object_id: str, settings: object) -> str | None:
        calls.append(object_id)
        return verify(self, command, object_id, settings)  # type: ignore[arg-type]

    monkeypatch.setattr(Mirror, "verify_signature", record)
    for _ in range(3):
        service.run()
    assert service.summary.is_skipped
    head = world.write_config(is_signed=False, note="")

    service.run()

    assert not service.summary.is_skipped
    assert [finding.code for finding in service.summary.findings] == ["UnverifiedCommit"]
    for _ in range(3):
        service.run()
    assert service.summary.is_skipped
    assert len(calls) == len({*calls})
    assert head in calls
