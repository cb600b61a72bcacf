"""Kallithea, a real forge: pushes and pull requests of passes, and the reactions of users.

Kallithea requires Python 3.8 or 3.9, and therefore its own virtual environment. These commands create it; `.ci/run`
also runs them:

    python3.9 -m venv .venv-forge
    .venv-forge/bin/pip install 'pip<24' 'setuptools<58' wheel
    .venv-forge/bin/pip install kallithea==0.7.0
    RECONCILER_KALLITHEA=$PWD/.venv-forge/bin/python .venv-test/bin/python -m pytest -q tests/real/test_kallithea.py
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from reconciler.bootstrap.services import build_services
from reconciler.forge.errors import ForgeRefusedError, ForgeUnreachableError
from reconciler.forge.port import Forge, NewRequest, PullRequest, Verdict
from reconciler.reconcile.pull_requests.open_requests import ForgeLookup, PullRequestCache
from reconciler.reconcile.pull_requests.request_updates import PullRequestOptions
from reconciler.reconcile.pull_requests.synchronizer import PullRequests
from reconciler.reconcile.reconcile_pass import PassReport, run_pass
from reconciler.reconcile.remotes.scheduling import Backoff
from reconciler.reconcile.services import PlanPublisher
from tests.support.git_repositories import assert_sound, git, make_bare
from tests.support.kallithea import PYTHON, Account, Kallithea, KallitheaForge, serve
from tests.support.world import Files, PassResult, World, catalog, package, repository, variant

pytestmark = pytest.mark.skipif(
    not PYTHON,
    reason="RECONCILER_KALLITHEA names no Python that has kallithea: the docstring of this module lists the commands",
)

FLEET = "fleet"
CLUSTERS = ("berlin", "lisbon", "oslo", "rome", "vienna")
FILE = "web/deployment.yaml"


class KallitheaWorld(World):
    """A fleet on Kallithea. The daemon uses the account `robot`, users use `grace`. Both connect only by HTTP."""

    def __init__(self, folder: Path, server: Kallithea, robot: Account, grace: Account) -> None:
        self.credentials = folder / "credentials"
        git_settings = {"credentials_file": str(self.credentials), "allowed_urls": [f"{server.url}/*", f"{folder}/**"]}
        super().__init__(folder, git=git_settings, fleet={"url": str(folder / "status.git")})
        self.server, self.robot, self.grace = server, robot, grace
        self.fleet = server.create_repository(FLEET, robot, grace)
        self.forge: Forge = KallitheaForge(server.url, FLEET, robot)
        self.login(robot.password)

    def login(self, password: str) -> None:
        """Write the robot's credentials file."""
        self.credentials.write_text(self.server.address("", Account(self.robot.name, password, "")) + "\n")

    def _pass(self, publisher: PlanPublisher) -> PassReport:
        parts = build_services(self.read_settings(), self.source, clock=lambda: self.now)
        url = f"{self.server.url}/{FLEET}"
        forges = ForgeLookup(lambda text: self.forge if text == url else None, lambda text: None)
        options = PullRequestOptions(should_report_check=False)
        requests = PullRequests(PullRequestCache(forges, _rests()), options, _rests(), lambda repo, commit: "")
        with parts.remotes as remotes:
            return run_pass(parts.source, remotes, replace(parts.pass_services, pull_requests=requests), publisher)

    def _clone(self) -> Path:
        clone = self.folder / "clone"
        if not clone.exists():
            git(self.folder, "clone", "--quiet", "--no-checkout", self.server.address(FLEET, self.grace), "clone")
        git(clone, "fetch", "--quiet", "--prune", "origin")
        return clone

    def push(self, *refs: str) -> None:
        """Push Grace's local refs in one atomic push."""
        git(self._clone(), "push", "--quiet", "--atomic", "origin", *refs)

    def commit(self, branch: str, files: Files, message: str = "by hand") -> str:
        clone = self._clone()
        git(clone, "checkout", "--quiet", "--force", "-B", branch, f"origin/{branch}")
        for path, content in files.items():
            assert content is not None
            (clone / path).write_text(content)
        git(clone, "commit", "--quiet", "--all", "--message", message)
        self.push(branch)
        return self.head(branch)

    def squash(self, draft: str) -> str:
        """Squash a draft onto its cluster branch in Grace's clone. Return the branch."""
        clone, branch = self._clone(), f"clusters/{draft.partition('/')[2]}"
        git(clone, "checkout", "--quiet", "--force", "-B", branch, f"origin/{branch}")
        git(clone, "merge", "--quiet", "--squash", f"origin/{draft}")
        git(clone, "commit", "--quiet", "--message", "Take the draft")
        return branch

    def want(self, **versions: str) -> None:
        """Write one variant of package `web` for each of these clusters, and none for the others."""
        self.write({f"web-{name}.yaml": None for name in CLUSTERS if (self.config / f"web-{name}.yaml").exists()})
        self.write(
            {f"web-{name}.yaml": variant(f"web-{name}", name, "web", version) for name, version in versions.items()}
        )

    def open_requests(self) -> dict[str, PullRequest]:
        """Return the open pull requests by branch. Two pull requests of one branch are an error."""
        pull_requests = self.forge.list_open_requests()
        assert len({pull_request.head for pull_request in pull_requests}) == len(pull_requests), pull_requests
        return {pull_request.head: pull_request for pull_request in pull_requests}


class AnswersAreLost(KallitheaForge):
    """Forge client whose connection breaks after each creation."""

    def create(self, new: NewRequest) -> PullRequest:
        super().create(new)
        raise ForgeUnreachableError("the connection broke")


@dataclass(frozen=True)
class ScenarioStep:
    """A pass, the pull requests that are open after it, and the files of package `web` on drafts."""

    did: PassResult
    open: Mapping[str, PullRequest]
    drafts: Mapping[str, str]


@dataclass(frozen=True)
class Scenario:
    """The steps in order. Each pass runs with new services.

    `locked_out`: wrong password. `lost`: the response to the first creation is lost. `opened`: all requests are open.
    `moved`: users approve Oslo's request, close Lisbon's, and merge Rome's by a push. Rome's package is to be deleted;
    all clusters except Lisbon are to have v2. Grace edits Berlin's draft while the daemon pushes.
    `ended`: users merge Oslo's request and Rome's removal by a push, and close Vienna's. Lisbon is to have v2, too.
    """

    world: KallitheaWorld
    locked_out: ScenarioStep
    lost: ScenarioStep
    opened: ScenarioStep
    moved: ScenarioStep
    ended: ScenarioStep


@pytest.fixture(scope="module")
def scenario(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Scenario]:
    with serve(tmp_path_factory.mktemp("kallithea")) as server:
        world = _make_world(server, tmp_path_factory.mktemp("world"))
        world.login("wrong-password")
        locked_out = _read(world, world.sync())
        world.login(world.robot.password)
        world.forge, healthy = AnswersAreLost(server.url, FLEET, world.robot), world.forge
        lost = _read(world, world.sync())
        world.forge = healthy
        opened = _read(world, world.sync())
        moved = _read(world, _review(world, opened.open))
        yield Scenario(world, locked_out, lost, opened, moved, _read(world, _end(world, moved.open)))


def _make_world(server: Kallithea, folder: Path) -> KallitheaWorld:
    world = KallitheaWorld(folder, server, server.create_account("robot"), server.create_account("grace"))
    world.config.mkdir()
    make_bare(world.catalog)
    make_bare(folder / "status.git")
    world.write({"catalog.yaml": catalog()})
    world.write({f"{name}.yaml": repository(name, f"{server.url}/{FLEET}") for name in CLUSTERS})
    world.release("web", "v1", package("web"))
    world.release("web", "v2", package("web", replicas=3))
    world.want(**dict.fromkeys(CLUSTERS, "v1"))
    return world


def _review(world: KallitheaWorld, mapping: Mapping[str, PullRequest]) -> PassResult:
    numbers = {name: mapping[f"drafts/{name}"].number for name in CLUSTERS}
    for name in ("oslo", "vienna"):
        world.server.call("edit_reviewers", pull_request_id=numbers[name], add=[world.grace.name])
    world.server.review(numbers["oslo"], world.grace, "approved")
    world.server.review(numbers["lisbon"], world.server.admin, close=True)
    world.push(world.squash("drafts/rome"))
    world.want(berlin="v2", lisbon="v1", oslo="v2", vienna="v2")
    world.sync_while(lambda: world.edit("drafts/berlin", FILE, "web:1.0", "web:7"))
    return world.sync_until_unchanged()


def _end(world: KallitheaWorld, mapping: Mapping[str, PullRequest]) -> PassResult:
    world.server.review(mapping["drafts/vienna"].number, world.grace, "rejected")
    world.server.review(mapping["drafts/vienna"].number, world.server.admin, close=True)
    world.push(world.squash("drafts/oslo"), world.squash("removals/rome"))
    world.want(berlin="v2", lisbon="v2", oslo="v1", vienna="v2")
    return world.sync_until_unchanged()


def _read(world: KallitheaWorld, did: PassResult) -> ScenarioStep:
    branches = (f"drafts/{name}" for name in CLUSTERS)
    drafts = {branch: world.text(branch, FILE) for branch in branches if world.head(branch)}
    return ScenarioStep(did, world.open_requests(), drafts)


def _rests() -> Backoff:
    return Backoff(5.0, 5.0, lambda: 0.0)


def test_a_wrong_password_is_reported_and_writes_nothing(scenario: Scenario) -> None:
    pass_result = scenario.locked_out.did
    assert pass_result.after == {}
    assert set(pass_result.outcomes.values()) == {"PushFailed"}
    assert "Authentication failed" in pass_result.findings[0].message
    assert "(next step: check the credentials and their permissions)" in pass_result.findings[0].message
    assert not any("wrong-password" in finding.message for finding in pass_result.findings)


def test_each_draft_gets_one_request_though_an_answer_was_lost(scenario: Scenario) -> None:
    assert scenario.lost.did.codes >= {"PullRequestsUnreachable"}
    assert len(scenario.lost.open) == 3, "a forge that fails for three requests gets no more calls"
    opened = scenario.opened
    assert list(opened.open) == [f"drafts/{name}" for name in CLUSTERS]
    assert opened.open.items() >= scenario.lost.open.items()
    for name, pull_request in opened.open.items():
        assert (pull_request.commit, pull_request.draft) == (opened.did.after[f"refs/heads/{name}"], True)
        assert pull_request.title.endswith("/web: install v1")
    assert opened.did.report.is_clean


def test_an_approved_request_is_unchanged_until_it_is_merged(scenario: Scenario) -> None:
    approved = scenario.moved.open["drafts/oslo"]
    assert approved.hold == "approved"
    assert approved.commit == scenario.moved.did.after["refs/heads/drafts/oslo"]
    assert scenario.moved.did.outcomes["oslo/web"] == "DownstreamProposed"
    assert scenario.world.record("oslo", "web")["revision"] == 1
    assert "drafts/oslo" not in scenario.ended.open, "Kallithea does not notice that it was merged"


def test_what_was_closed_is_declined_until_it_would_be_another(scenario: Scenario) -> None:
    assert scenario.moved.did.outcomes["lisbon/web"] == "declined"
    assert "refs/heads/drafts/lisbon" not in scenario.moved.did.after
    assert scenario.ended.open["drafts/lisbon"].title == "lisbon/web: install v2"


@pytest.mark.parametrize("name", ["berlin", "vienna"])
def test_a_head_that_moves_makes_another_request(name: str, scenario: Scenario) -> None:
    first, second = scenario.opened.open[f"drafts/{name}"], scenario.moved.open[f"drafts/{name}"]
    assert second.number > first.number
    assert second.commit == scenario.moved.did.after[f"refs/heads/drafts/{name}"] != first.commit
    assert second.title.startswith(f"{name}/web: update v1 → v2")
    assert scenario.world.forge.get_request(first.number).state == "closed"


def test_closing_what_it_became_declines(scenario: Scenario) -> None:
    assert scenario.ended.did.outcomes["vienna/web"] == "declined"
    assert list(scenario.ended.open) == ["drafts/berlin", "drafts/lisbon"]


def test_an_edit_that_comes_while_many_refs_are_pushed_is_kept(scenario: Scenario) -> None:
    assert "example.com/web:7" in scenario.moved.drafts["drafts/berlin"]
    assert "replicas: 3" in scenario.moved.drafts["drafts/berlin"]
    assert_sound(scenario.world.fleet)


def test_merged_is_published_and_removed_though_kallithea_never_notices(scenario: Scenario) -> None:
    assert "drafts/rome" not in scenario.moved.open
    assert scenario.moved.open["removals/rome"].title == "rome/web: remove the package"
    assert scenario.world.paths(scenario.world.fleet, "clusters/rome", "web") == []


def test_what_it_cannot_do_is_refused(scenario: Scenario) -> None:
    forge, request = scenario.world.forge, scenario.ended.open["drafts/lisbon"]
    with pytest.raises(ForgeRefusedError, match="no checks"):
        forge.set_check(request.commit, Verdict(True, "fine"))
    with pytest.raises(ForgeRefusedError, match="merges nothing"):
        forge.merge(request, "merge", "")
    with pytest.raises(ForgeRefusedError, match="no labels"):
        forge.create(NewRequest("drafts/lisbon", "clusters/lisbon", "Again", "", labels=("ours",)))
