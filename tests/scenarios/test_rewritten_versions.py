"""Tests of the tag mode `rewrite` for charts and artifacts: new versions are proposed as changes of the config."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.inspect.validate import validate
from reconciler.settings import Settings
from tests.scenarios.test_artifacts import OUTPUT, describe_repository, pack_web
from tests.scenarios.test_rewritten_tags import DRAFT, ConfigWorld, list_config_codes
from tests.support.archives import pack_files
from tests.support.artifact_servers import Answer, ArtifactServer, RegistryServer, serve
from tests.support.charts import FakeHelm
from tests.support.git_repositories import git, make_bare
from tests.support.world import package, repository

pytestmark = pytest.mark.second_pass

WEB = """\
# the web server of Berlin
apiVersion: config.porch.kpt.dev/v1alpha1
kind: PackageVariant
metadata:
  name: web
spec:
  upstream:
    repo: 'charts'
    chart: web
    version: "~1.0"   # patches
    tagMode: rewrite
  downstream: {repo: berlin, package: web}
  helm: {namespace: shop}
"""
PINNED = WEB.replace('"~1.0" ', '"1.0.0" ').replace("rewrite\n", 'rewrite\n    tagPolicy: {range: "1.x"}\n')

CHART_SET = """\
apiVersion: config.porch.kpt.dev/v1alpha2
kind: PackageVariantSet
metadata: {name: web}
spec:
  upstream: {repo: charts, chart: web, version: "~1.0", tagMode: rewrite} # flow
  targets:
    - repositories: [{name: berlin}]
      template: {helm: {namespace: shop}}
"""


@pytest.fixture
def server() -> Iterator[ArtifactServer]:
    with serve(ArtifactServer()) as running:
        running.add_chart("web", "1.0.0", pack_web("1.0.0"), created="2017-07-01T00:00:00Z")
        yield running


@pytest.fixture
def registry() -> Iterator[RegistryServer]:
    with serve(RegistryServer()) as running:
        yield running


@pytest.fixture
def world(tmp_path: Path, server: ArtifactServer) -> ConfigWorld:
    """The chart web has one version. A variant requests a range."""
    world = create_world(tmp_path)
    world.commit_config(
        {
            "charts.yaml": describe_repository("helm", f"{{url: {server.url}/charts}}"),
            "berlin.yaml": repository("berlin"),
            "web.yaml": WEB,
        }
    )
    return world


def create_world(folder: Path) -> ConfigWorld:
    helm = FakeHelm(folder / "bin")
    helm.behave(output=OUTPUT)
    sources = {"poll_seconds": 0, "helm": {"program": str(helm.path)}}
    world = ConfigWorld(folder, config={"directory": "prod"}, sources=sources)
    for name in ("catalog", "fleet", "config"):
        make_bare(folder / f"{name}.git")
    return world


def write_package(world: ConfigWorld, registry: RegistryServer, upstream: str) -> str:
    """Write a variant with a package from a registry. Return the text of its file."""
    text = WEB.replace("    chart: web\n", "    package: web\n").replace("  helm: {namespace: shop}\n", "")
    text = text.replace('    version: "~1.0"   # patches\n', upstream)
    world.commit_config(
        {
            "charts.yaml": describe_repository("oci", f"{{registry: {registry.host}/team, insecure: true}}"),
            "berlin.yaml": repository("berlin"),
            "web.yaml": text,
        }
    )
    return text


def push(registry: RegistryServer, tag: str, image: str) -> str:
    """Push a package with a tag. Return the digest of its manifest."""
    return registry.push("team/web", tag, pack_files(package("web", image=image)))


def test_range_is_replaced_by_the_exact_version(world: ConfigWorld, server: ArtifactServer) -> None:
    server.add_chart("web", "1.0.10", pack_web("1.0.10"))
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))
    after = world.sync()

    assert world.read_proposed_file("web.yaml") == WEB.replace('"~1.0" ', '"1.0.10" ')
    subject = git(world.repo, "log", "-1", "--format=%s", DRAFT)
    assert subject == "rewrite(config): charts/web ~1.0 → 1.0.10 (range ~1.0)"
    assert "Tags or version ranges select new revisions." in git(world.repo, "log", "-1", "--format=%b", DRAFT)
    assert sorted(list_config_codes(after)) == ["RevisionPending", "RevisionProposed"]
    (message,) = (finding.message for finding in after.findings if finding.code == "RevisionProposed")
    assert message == (
        'version range "~1.0" of charts/web selects 1.0.10, but spec.upstream.version is ~1.0. The change is proposed on '
        'branch "drafts/config". Next step: to get later versions of the range after the merge, set '
        '`tagPolicy.range: "~1.0"`'
    )
    assert world.reason("web", "Stalled") == "RevisionPending"
    assert world.sync().is_unchanged


def test_merged_version_is_drafted_and_stays_fixed(world: ConfigWorld, server: ArtifactServer) -> None:
    world.sync()
    world.merge_proposal(delete=False)
    after = world.sync()

    assert world.proposal_head == ""
    assert list_config_codes(after) == []
    assert world.package_status("drafts/berlin", "web")["upstream"]["to"]["version"] == "1.0.0"
    server.add_chart("web", "1.0.1", pack_web("1.0.1"))
    world.sync_until_unchanged()
    assert world.proposal_head == ""


@pytest.mark.slow
def test_range_of_the_policy_is_followed_after_a_merge(world: ConfigWorld, server: ArtifactServer) -> None:
    world.commit_config({"web.yaml": PINNED})
    before = world.sync()
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))
    after = world.sync()
    proposed = world.read_proposed_file("web.yaml")
    world.merge_proposal()
    world.sync()
    server.add_chart("web", "1.2.0", pack_web("1.2.0"))
    world.sync()

    assert (list_config_codes(before), list_config_codes(after)) == ([], ["RevisionProposed"])
    assert not [finding for finding in after.findings if "tagPolicy.range" in finding.message]
    assert proposed == PINNED.replace('"1.0.0" ', '"1.1.0" ')
    assert world.package_status("drafts/berlin", "web")["upstream"]["to"]["version"] == "1.1.0"
    assert world.read_proposed_file("web.yaml") == PINNED.replace('"1.0.0" ', '"1.2.0" ')


def test_withdrawn_version_ends_the_proposal(world: ConfigWorld, server: ArtifactServer) -> None:
    world.commit_config({"web.yaml": PINNED})
    world.sync()
    index = server.files["/charts/index.yaml"]
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))
    world.sync()
    proposed = world.proposal_head
    server.files["/charts/index.yaml"] = index
    world.sync()

    assert proposed
    assert world.proposal_head == ""
    assert world.sync().is_unchanged


def test_deleted_proposal_is_declined_until_a_new_version(world: ConfigWorld, server: ArtifactServer) -> None:
    world.commit_config({"web.yaml": PINNED})
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))
    world.sync()
    world.delete_proposal()
    declined = world.sync()
    head = world.proposal_head
    server.add_chart("web", "1.1.1", pack_web("1.1.1"))
    world.sync()

    assert (head, list_config_codes(declined)) == ("", ["RevisionDeclined"])
    assert world.read_proposed_file("web.yaml") == PINNED.replace('"1.0.0" ', '"1.1.1" ')


def test_reverted_version_is_declined(world: ConfigWorld) -> None:
    world.sync()
    world.merge_proposal()
    world.sync()
    world.commit_config({"web.yaml": WEB})
    after = world.sync()

    assert (world.proposal_head, sorted(list_config_codes(after))) == ("", ["RevisionDeclined", "RevisionPending"])


@pytest.mark.slow
def test_new_version_settles_before_its_proposal(world: ConfigWorld, server: ArtifactServer) -> None:
    settling = PINNED.replace('{range: "1.x"}', '{range: "1.x", settle: 1h}')
    world.commit_config({"web.yaml": settling})
    # The fake clock of the world is at 2017-07-14T02:40:00Z.
    server.add_chart("web", "1.1.0", pack_web("1.1.0"), created="2017-07-14T02:30:00Z")
    waiting = world.sync()
    head = world.proposal_head
    world.now += 3_600
    world.sync()

    assert (head, list_config_codes(waiting)) == ("", ["UpstreamSettling"])
    assert world.read_proposed_file("web.yaml") == settling.replace('"1.0.0" ', '"1.1.0" ')


def test_lower_version_is_a_downgrade(world: ConfigWorld, server: ArtifactServer) -> None:
    server.add_chart("web", "2.0.0", pack_web("2.0.0"))
    world.commit_config({"web.yaml": PINNED.replace('"1.0.0" ', '"2.0.0" ')})
    world.sync()

    subject = git(world.repo, "log", "-1", "--format=%s", DRAFT)
    assert subject == "rewrite(config): charts/web downgrade 2.0.0 → 1.0.0 (range 1.x)"


def test_unreachable_repository_keeps_the_proposal(world: ConfigWorld, server: ArtifactServer) -> None:
    world.commit_config({"web.yaml": PINNED})
    server.add_chart("web", "1.1.0", pack_web("1.1.0"))
    world.sync()
    head = world.proposal_head
    server.overrides["/charts/index.yaml"] = Answer(500)
    after = world.sync()

    assert world.proposal_head == head
    assert [finding.code for finding in after.findings].count("SourceUnreachable") == 1


def test_line_of_a_set_and_entries_of_several_sources_are_changed(world: ConfigWorld, server: ArtifactServer) -> None:
    several = WEB.replace("name: web\n", "name: api\n").replace("package: web}", "package: api}")
    start, end = several.index("  upstream:"), several.index("  downstream:")
    several = (
        several[:start]
        + "  sources:\n    - {name: first, repo: charts, chart: web, version: 1.0.0}\n"
        + "    - name: second\n      repo: charts\n      chart: web\n      version: 1.0.x\n      tagMode: rewrite\n"
        + several[end:]
    )
    world.commit_config({"web.yaml": CHART_SET, "api.yaml": several})
    world.sync()

    assert world.read_proposed_file("web.yaml") == CHART_SET.replace('"~1.0"', '"1.0.0"')
    assert world.read_proposed_file("api.yaml") == several.replace("version: 1.0.x", "version: 1.0.0")


def test_version_that_reads_as_a_number_is_quoted(tmp_path: Path, registry: RegistryServer) -> None:
    world = create_world(tmp_path)
    push(registry, "1.9", image="9")
    push(registry, "1.10", image="10")
    text = write_package(world, registry, "    version: 1.x\n")
    world.sync()
    proposed = world.read_proposed_file("web.yaml")
    world.merge_proposal()
    after = world.sync()

    assert proposed == text.replace("version: 1.x", 'version: "1.10"')
    assert list_config_codes(after) == []
    assert "image: example.com/web:10" in world.text("drafts/berlin", "web/deployment.yaml")
    push(registry, "1.11", image="11")
    world.sync_until_unchanged()
    assert world.proposal_head == ""


def test_tag_of_an_artifact_is_proposed_as_a_digest(tmp_path: Path, registry: RegistryServer) -> None:
    world = create_world(tmp_path)
    first = push(registry, "stable", image="1")
    text = write_package(world, registry, "    tag: stable   # what is followed\n")
    after = world.sync()
    proposed = world.read_proposed_file("web.yaml")
    subject = git(world.repo, "log", "-1", "--format=%s", DRAFT)
    world.merge_proposal()
    world.sync()
    second = push(registry, "stable", image="2")
    world.sync()

    assert sorted(list_config_codes(after)) == ["RevisionPending", "RevisionProposed"]
    assert proposed == text.replace("    tag:", f"    digest: {first}\n    tag:")
    assert subject == f"rewrite(config): charts/web at {first[:19]} (tag stable)"
    assert world.read_proposed_file("web.yaml") == proposed.replace(first, second)
    # The package has the content of the digest, although the tag has moved.
    assert "image: example.com/web:1" in world.text("drafts/berlin", "web/deployment.yaml")
    assert world.sync().is_unchanged


def test_tag_that_moves_back_to_the_digest_ends_the_proposal(tmp_path: Path, registry: RegistryServer) -> None:
    world = create_world(tmp_path)
    first = push(registry, "stable", image="1")
    write_package(world, registry, f"    digest: {first}\n    tag: stable\n")
    push(registry, "stable", image="2")
    world.sync()
    head = world.proposal_head
    push(registry, "stable", image="1")
    world.sync()

    assert head
    assert world.proposal_head == ""


@pytest.mark.parametrize("is_set", [pytest.param(False, id="variant"), pytest.param(True, id="set")])
def test_published_package_stays_until_its_first_version_is_merged(world: ConfigWorld, is_set: bool) -> None:
    text = CHART_SET if is_set else WEB
    world.commit_config({"web.yaml": text.replace("    tagMode: rewrite\n", "").replace(", tagMode: rewrite", "")})
    world.sync()
    world.merge("berlin", delete=True)
    world.sync()
    before = world.head("clusters/berlin")
    world.commit_config({"web.yaml": text})
    pending = world.sync()
    drafts = world.list_open_drafts("berlin")
    world.merge_proposal()
    world.sync_until_unchanged()

    assert "RevisionPending" in pending.codes
    assert drafts == []
    assert world.head("clusters/berlin") == before
    assert world.package_status("clusters/berlin", "web")["upstream"]["to"]["version"] == "1.0.0"


def test_validate_reports_the_new_version(world: ConfigWorld) -> None:
    settings = Settings.model_validate({"cache": str(world.folder / "cache"), "config": {"directory": "prod"}})
    services = build_services(settings, world.source)
    with services.remotes as remotes:
        findings = validate(services.source, remotes, services.pass_services).findings

    codes = [(finding.code, finding.location.line) for finding in findings]
    assert ("RevisionProposed", 10) in codes
