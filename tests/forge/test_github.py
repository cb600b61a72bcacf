"""The GitHub driver with a fake GitHub, which uses a bare repository and returns the errors of GitHub."""

from __future__ import annotations

import traceback
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from reconciler.catalog.files import CommitId
from reconciler.forge.errors import (
    ForgeAnswerError,
    ForgeBusyError,
    ForgeCredentialsError,
    ForgeError,
    ForgeMissingError,
    ForgeRefusedError,
    ForgeUnreachableError,
    HeadMovedError,
)
from reconciler.forge.github import GitHub
from reconciler.forge.http_client import ForgeClient
from reconciler.forge.port import Forge, Hold, MergeMethod, NewRequest, PullRequest, Verdict
from reconciler.forge.rate_limits import RateLimiter
from tests.support.fake_forge.clock import Clock
from tests.support.fake_forge.core import FakeForge, ReviewState
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.server import serve
from tests.support.git_repositories import commit_files, git, make_bare, read_file

HEAD, BASE = "drafts/east", "clusters/east"
PLANTED = "ghp_" + "planted" * 3
NEW = NewRequest(HEAD, BASE, "east: nginx v2", "What changes:\n\n- nginx")


class World:
    """A GitHub with one repository: a cluster's branch, and a draft that is one commit ahead."""

    def __init__(self, folder: Path, like: Path) -> None:
        self.clock = Clock()
        self.forge = FakeForge(folder, self.clock)
        self.repository = self.forge.create_repository("acme/fleet", like)
        self.bare = self.repository.bare
        self.wire = GitHubWire(self.forge)
        self.budget = RateLimiter(0, 0, self.clock)
        self.clients: list[ForgeClient] = []
        self.url = ""

    def commit(self, branch: str, files: dict[str, bytes | None]) -> CommitId:
        return CommitId(commit_files(self.bare, f"refs/heads/{branch}", files))

    def branch(self, name: str, start: str = BASE) -> None:
        git(self.bare, "branch", "--force", name, start)

    def driver(self, token: str = "", url: str = "", name: str = "fleet") -> GitHub:
        authorize = {"Authorization": f"Bearer {token or self.forge.token}"}
        client = ForgeClient(url or self.url, lambda: authorize, self.budget, self.clock)
        self.clients.append(client)
        return GitHub(client, "acme", name)

    def list_requests(self, method: str = "GET") -> list[str]:
        return [path.removeprefix("/repos/acme/fleet") for item, path in self.forge.calls if item == method]


@pytest.fixture(scope="module")
def prepared_folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    bare = make_bare(tmp_path_factory.mktemp("prepared_folder") / "fleet.git")
    commit_files(bare, f"refs/heads/{BASE}", {"nginx/a.yaml": b"a: 1\n"})
    git(bare, "branch", HEAD, BASE)
    commit_files(bare, f"refs/heads/{HEAD}", {"nginx/a.yaml": b"a: 2\n"})
    return bare


@pytest.fixture
def world(tmp_path: Path, prepared_folder: Path) -> Iterator[World]:
    world = World(tmp_path, prepared_folder)
    with serve(world.wire) as url:
        world.url = url
        yield world
    for client in world.clients:
        client.close()


def test_it_is_a_forge(world: World) -> None:
    port: Forge = world.driver()

    assert port.list_open_requests() == ()


# the life of a pull request


def test_a_draft_is_opened_with_all_that_it_says(world: World) -> None:
    pull_request = world.driver().create(NEW)

    assert pull_request == PullRequest(
        number=1,
        url=f"{world.url}/acme/fleet/pull/1",
        title="east: nginx v2",
        body="What changes:\n\n- nginx",
        head=HEAD,
        base=BASE,
        commit=CommitId(git(world.bare, "rev-parse", HEAD)),
        state="open",
        draft=True,
        hold="",
        created=int(world.clock.now),
    )
    assert world.list_requests("POST") == ["/pulls"]


def test_a_pull_request_can_have_no_body_and_no_draft_mark(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NewRequest(HEAD, BASE, "t", "", draft=False))

    assert (pull_request.draft, pull_request.body) == (False, "")
    assert github.get_request(1) == pull_request


def test_labels_are_given_by_a_second_call(world: World) -> None:
    world.driver().create(NewRequest(HEAD, BASE, "t", "b", labels=("fleet", "draft")))

    assert world.repository.request(1).labels == ["fleet", "draft"]
    assert world.list_requests("POST") == ["/pulls", "/issues/1/labels"]


def test_refused_labels_keep_the_pull_request_and_the_error_reports_it(world: World) -> None:
    github = world.driver()
    with pytest.raises(ForgeRefusedError, match=r"the labels of the open pull request 1 could not be set: .* 422"):
        github.create(NewRequest(HEAD, BASE, "t", "b", labels=("",)))

    assert [pull_request.number for pull_request in github.list_open_requests()] == [1]


@pytest.mark.slow
def test_open_requests_are_listed_by_number_over_all_pages(world: World) -> None:
    github = world.driver()
    head = git(world.bare, "rev-parse", HEAD)
    for number in range(103):
        (world.bare / f"refs/heads/drafts/{number}").write_text(f"{head}\n")
        world.repository.open(f"drafts/{number}", BASE, f"number {number}", "", draft=True)
    world.repository.close(world.repository.request(7))

    assert [pull_request.number for pull_request in github.list_open_requests()] == [*range(1, 7), *range(8, 104)]
    assert world.list_requests() == ["/pulls", "/pulls"]


@pytest.mark.parametrize("fork", ["stranger/fleet", "acme/fleet-copy", "stranger/"])
def test_pull_requests_from_forks_are_ignored(world: World, fork: str) -> None:
    github = world.driver()
    github.create(NEW)
    world.clock.now += 5
    world.repository.open(HEAD, BASE, "mine!", "", draft=False, from_fork=fork)
    pull_request = github.find(HEAD, BASE)

    assert [request.number for request in github.list_open_requests()] == [1]
    assert pull_request is not None
    assert pull_request.number == 1


def test_the_pull_request_of_two_branches_that_was_opened_last_is_found(world: World) -> None:
    github = world.driver()
    assert github.find(HEAD, BASE) is None
    github.close(github.create(NEW))
    world.clock.now += 5
    github.create(NEW)
    world.branch("clusters/west")
    github.create(NewRequest(HEAD, "clusters/west", "other base", ""))
    pull_request = github.find(HEAD, BASE)

    assert pull_request is not None
    assert (pull_request.number, pull_request.state) == (2, "open")
    assert github.find("drafts/none", BASE) is None


def test_title_and_body_are_changed(world: World) -> None:
    github = world.driver()
    github.update(github.create(NEW), "another", "")
    changed = github.get_request(1)

    assert (changed.title, changed.body, changed.draft) == ("another", "", True)


def test_a_draft_becomes_ready_and_a_draft_again(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NEW)
    values = []
    for draft in (False, False, True, True):
        github.set_draft(pull_request, draft)
        values.append(github.get_request(1).draft)

    assert values == [False, False, True, True]
    assert [path for path in world.list_requests("POST") if path == "/graphql"] == ["/graphql"] * 2


def test_an_enterprise_server_has_graphql_beside_its_rest(tmp_path: Path, prepared_folder: Path) -> None:
    world = World(tmp_path, prepared_folder)
    with serve(GitHubWire(world.forge, prefix="/api/v3")) as url:
        github = world.driver(url=f"{url}/api/v3/")
        github.set_draft(github.create(NEW), False)
        world.clients[0].close()

    assert not world.repository.request(1).draft
    assert ("POST", "/api/graphql") in world.forge.calls


def test_a_closed_request_stays_closed(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NEW)
    github.close(pull_request)
    github.close(pull_request)

    assert github.get_request(1).state == "closed"
    assert github.list_open_requests() == ()


@pytest.mark.parametrize(("passed", "state"), [(True, "success"), (False, "failure")])
def test_a_verdict_is_a_commit_status(world: World, passed: bool, state: str) -> None:
    github = world.driver()
    commit = github.create(NEW).commit
    github.set_check(commit, Verdict(passed, "why\nnot"))
    status = world.repository.status(commit, "reconciler")

    assert status is not None
    assert (status.state, status.description) == (state, "why not")


def test_a_long_verdict_is_cut(world: World) -> None:
    github = world.driver()
    commit = github.create(NEW).commit
    github.set_check(commit, Verdict(True, "é" * 141))
    status = world.repository.status(commit, "reconciler")

    assert status is not None
    assert status.description == "é" * 139 + "…"


def test_the_branch_is_what_counts(world: World) -> None:
    github = world.driver()
    github.create(NEW)
    pushed = world.commit(HEAD, {"nginx/b.yaml": b"b: 1\n"})
    assert github.get_request(1).commit == pushed
    git(world.bare, "branch", "-D", HEAD)

    assert github.get_request(1).state == "closed"


def test_a_merge_by_hand_counts(world: World) -> None:
    github = world.driver()
    github.create(NEW)
    world.branch(BASE, HEAD)
    git(world.bare, "branch", "-D", HEAD)

    assert github.get_request(1).state == "merged"


# merging


@pytest.mark.parametrize(
    ("method", "subject", "parents"),
    [
        pytest.param("merge", "publish east", 2, id="merge"),
        pytest.param("squash", "publish east", 1, id="squash"),
        pytest.param("rebase", "change", 1, id="rebase"),
    ],
)
def test_a_merge_ends_on_the_base_branch(world: World, method: MergeMethod, subject: str, parents: int) -> None:
    github = world.driver()
    pull_request = github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    world.commit(BASE, {"other/b.yaml": b"b: 1\n"})
    github.merge(pull_request, method, "publish east\n\nwith words\n\nTrailer: yes\n")
    message = git(world.bare, "log", "-1", "--format=%B", BASE)

    assert github.get_request(1).state == "merged"
    assert read_file(world.bare, BASE, "nginx/a.yaml") == "a: 2"
    assert read_file(world.bare, BASE, "other/b.yaml") == "b: 1"
    assert len(git(world.bare, "log", "-1", "--format=%P", BASE).split()) == parents
    assert message.startswith(subject)
    assert message.rstrip().endswith("with words\n\nTrailer: yes") == (method != "rebase")


def test_a_head_that_moved_is_not_merged(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    world.commit(HEAD, {"nginx/b.yaml": b"b: 1\n"})
    before = git(world.bare, "rev-parse", BASE)
    with pytest.raises(HeadMovedError, match="409 Head branch was modified"):
        github.merge(pull_request, "merge", "m")

    assert git(world.bare, "rev-parse", BASE) == before
    assert github.get_request(1).state == "open"


def close_it(world: World, github: GitHub, pull_request: PullRequest) -> None:
    github.close(pull_request)


def make_it_conflict(world: World, github: GitHub, pull_request: PullRequest) -> None:
    world.commit(BASE, {"nginx/a.yaml": b"a: 3\n"})


def make_it_a_draft(world: World, github: GitHub, pull_request: PullRequest) -> None:
    github.set_draft(pull_request, True)


def allow_squashing_alone(world: World, github: GitHub, pull_request: PullRequest) -> None:
    world.wire.methods = {"squash"}


@pytest.mark.parametrize(
    ("happens", "words"),
    [
        (close_it, "405 Pull Request is not mergeable"),
        (make_it_conflict, "405 Pull Request is not mergeable"),
        (make_it_a_draft, "405 Pull Request is still a draft"),
        (allow_squashing_alone, "405 Merge merges are not allowed on this repository"),
    ],
)
@pytest.mark.parametrize("method", ["merge", "rebase"])
def test_a_refused_merge_has_the_message_of_github(
    world: World, happens: Callable[[World, GitHub, PullRequest], None], words: str, method: MergeMethod
) -> None:
    github = world.driver()
    pull_request = github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    happens(world, github, pull_request)
    with pytest.raises(
        ForgeRefusedError, match=words.replace("Merge merges", f"{method.capitalize()} merges")
    ) as exception_info:
        github.merge(pull_request, method, "m")

    assert not isinstance(exception_info.value, HeadMovedError)


# state of pull requests


def review(*values: tuple[str, ReviewState]) -> Callable[[World], None]:
    def submit_reviews(world: World) -> None:
        for user, state in values:
            world.repository.review(1, user, state)

    return submit_reviews


def approve_then_push(world: World) -> None:
    world.repository.review(1, "ada", "APPROVED")
    world.commit(HEAD, {"nginx/b.yaml": b"b: 1\n"})


def push_after_changes_were_asked_for(world: World) -> None:
    world.repository.review(1, "ada", "CHANGES_REQUESTED")
    world.commit(HEAD, {"nginx/b.yaml": b"b: 1\n"})
    world.repository.review(1, "bob", "APPROVED")


def set_auto_merge(world: World) -> None:
    world.repository.request(1).auto_merge = True


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("happens", "hold"),
    [
        pytest.param(review(), "", id="no-review"),
        pytest.param(review(("ada", "APPROVED")), "approved", id="approved"),
        pytest.param(review(("ada", "COMMENTED")), "", id="commented"),
        pytest.param(review(("ada", "APPROVED"), ("ada", "COMMENTED")), "approved", id="approved-then-commented"),
        pytest.param(
            review(("ada", "APPROVED"), ("bob", "CHANGES_REQUESTED")), "", id="another-reviewer-requests-changes"
        ),
        pytest.param(
            review(("ada", "CHANGES_REQUESTED"), ("ada", "APPROVED")), "approved", id="request-replaced-by-approval"
        ),
        pytest.param(review(("ada", "APPROVED"), ("ada", "CHANGES_REQUESTED")), "", id="approval-replaced-by-request"),
        pytest.param(review(("ada", "APPROVED"), ("ada", "DISMISSED")), "", id="dismissed"),
        pytest.param(review(("ada", "DISMISSED"), ("bob", "APPROVED")), "approved", id="other-was-dismissed"),
        pytest.param(approve_then_push, "", id="approved-what-was"),
        pytest.param(push_after_changes_were_asked_for, "", id="requested-changes-stay-after-a-push"),
        pytest.param(set_auto_merge, "auto-merge", id="auto-merge"),
    ],
)
def test_hold_reasons_of_a_pull_request(world: World, happens: Callable[[World], None], hold: Hold) -> None:
    github = world.driver()
    github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    happens(world)
    pull_request = github.find(HEAD, BASE)

    assert [request.hold for request in github.list_open_requests()] == [hold]
    assert pull_request == github.get_request(1)
    assert github.get_request(1).hold == hold


def test_a_draft_is_not_held_and_its_reviews_are_not_requested(world: World) -> None:
    github = world.driver()
    github.create(NEW)
    world.repository.review(1, "ada", "APPROVED")

    assert github.get_request(1).hold == ""
    assert world.list_requests() == ["/pulls/1"]


def test_a_closed_pull_request_is_not_held(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    world.repository.review(1, "ada", "APPROVED")
    github.close(pull_request)

    assert github.get_request(1).hold == ""


def test_reviews_are_requested_once_per_change(world: World) -> None:
    github = world.driver()
    github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    world.clock.now += 100
    holds = [github.list_open_requests()[0].hold for _ in range(3)]
    world.repository.review(1, "ada", "APPROVED")
    world.clock.now += 100
    holds += [github.list_open_requests()[0].hold for _ in range(3)]

    assert holds == ["", "", "", "approved", "approved", "approved"]
    assert world.list_requests().count("/pulls/1/reviews") == 2


def test_a_review_in_the_second_of_the_last_change_is_not_missed(world: World) -> None:
    github = world.driver()
    github.create(NewRequest(HEAD, BASE, "t", "b", draft=False))
    before = github.get_request(1).hold
    world.repository.review(1, "ada", "APPROVED")

    assert (before, github.get_request(1).hold) == ("", "approved")


def test_an_unchanged_resource_has_the_response_not_modified(world: World) -> None:
    sent: list[int] = []

    class Counting(httpx.HTTPTransport):
        def handle_request(self, request: httpx.Request) -> httpx.Response:
            response = super().handle_request(request)
            sent.append(response.status_code)
            return response

    client = ForgeClient(
        world.url, lambda: {"Authorization": f"Bearer {world.forge.token}"}, world.budget, world.clock, Counting()
    )
    github = GitHub(client, "acme", "fleet")
    world.repository.open(HEAD, BASE, "t", "b", draft=True)
    pull_requestses = [github.list_open_requests() for _ in range(2)]
    world.repository.close(world.repository.request(1))
    pull_requestses.append(github.list_open_requests())
    client.close()

    assert pull_requestses[0] == pull_requestses[1] != pull_requestses[2] == ()
    assert sent == [200, 304, 200]


# errors of GitHub


@pytest.mark.parametrize(
    ("new", "words"),
    [
        pytest.param(NEW, f"422 .*A pull request already exists for acme:{HEAD}", id="one-is-open"),
        pytest.param(NewRequest("drafts/none", BASE, "t", ""), "422 .*field head, code invalid", id="no-head"),
        pytest.param(NewRequest(HEAD, "clusters/none", "t", ""), "422 .*field base, code invalid", id="no-base"),
        pytest.param(NewRequest("same", BASE, "t", ""), f"422 .*No commits between {BASE} and same", id="no-commits"),
        pytest.param(NewRequest("other", BASE, " ", ""), "422 .*field title, code missing_field", id="no-title"),
        pytest.param(NewRequest("other", BASE, "t" * 257, ""), "422 .*title is too long", id="long-title"),
        pytest.param(NewRequest("other", BASE, "t", "b" * 65537), "422 .*body is too long", id="long-body"),
    ],
)
def test_a_refused_pull_request_has_the_message_of_github(world: World, new: NewRequest, words: str) -> None:
    github = world.driver()
    github.create(NEW)
    world.branch("same")
    world.branch("other", HEAD)
    with pytest.raises(ForgeRefusedError, match=words):
        github.create(new)

    assert len(github.list_open_requests()) == 1


def test_a_repository_without_drafts_is_an_error(world: World) -> None:
    world.wire.drafts = False
    with pytest.raises(ForgeRefusedError, match=r"422 .*Draft pull requests are not supported"):
        world.driver().create(NEW)


def test_a_closed_pull_request_becomes_no_draft(world: World) -> None:
    github = world.driver()
    pull_request = github.create(NEW)
    github.close(pull_request)
    with pytest.raises(ForgeRefusedError, match="markPullRequestReadyForReview: The pull request is closed"):
        github.set_draft(pull_request, False)


def test_a_status_of_a_commit_that_was_never_pushed_is_refused(world: World) -> None:
    with pytest.raises(ForgeRefusedError, match="422 No commit found for SHA: 1111"):
        world.driver().set_check(CommitId("1" * 40), Verdict(True, ""))


CALLS: list[tuple[str, Callable[[GitHub, PullRequest], object]]] = [
    ("open_requests", lambda github, _: github.list_open_requests()),
    ("request", lambda github, pull_request: github.get_request(pull_request.number)),
    ("find", lambda github, _: github.find(HEAD, BASE)),
    ("create", lambda github, _: github.create(NewRequest("drafts/west", BASE, "t", "b", labels=("x",)))),
    ("update", lambda github, pull_request: github.update(pull_request, "t", "b")),
    ("set_draft", lambda github, pull_request: github.set_draft(pull_request, False)),
    ("close", lambda github, pull_request: github.close(pull_request)),
    ("report", lambda github, pull_request: github.set_check(pull_request.commit, Verdict(False, "no"))),
    ("merge", lambda github, pull_request: github.merge(pull_request, "merge", "m")),
]
every_call = pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS])
every_write = pytest.mark.parametrize("call", [pytest.param(call, id=name) for name, call in CALLS[3:]])
Call = Callable[[GitHub, PullRequest], object]


@pytest.fixture
def made(world: World) -> PullRequest:
    world.branch("drafts/west", HEAD)
    return world.driver().create(NEW)


@pytest.mark.quick_cases(every=4)
@every_call
def test_no_thread_sends_requests_to_a_busy_forge(world: World, made: PullRequest, call: Call) -> None:
    github, calls = world.driver(), len(world.forge.calls)
    world.forge.busy_for(30)
    for _ in range(2):
        with pytest.raises(ForgeBusyError) as refused:
            call(github, made)
        assert refused.value.until == world.clock.now + 30

    assert len(world.forge.calls) == calls + 1


@pytest.mark.quick_cases(every=4)
@every_call
def test_a_quota_that_is_used_up_is_waited_for(world: World, made: PullRequest, call: Call) -> None:
    world.forge.limit_until(world.clock.now + 1200)
    with pytest.raises(ForgeBusyError, match="API rate limit exceeded") as refused:
        call(world.driver(), made)

    assert refused.value.until == world.clock.now + 1200


@pytest.mark.quick_cases(every=4)
@every_call
def test_a_forge_that_is_down_is_unreachable(world: World, made: PullRequest, call: Call) -> None:
    world.forge.break_down()
    with pytest.raises(ForgeUnreachableError, match=r"503 .*Unicorn"):
        call(world.driver(), made)


@pytest.mark.quick_cases(every=4)
@every_call
def test_a_wrong_token_is_refused_and_not_in_the_error(world: World, made: PullRequest, call: Call) -> None:
    with pytest.raises(ForgeCredentialsError, match="401 Bad credentials") as refused:
        call(world.driver(token=PLANTED), made)

    assert PLANTED not in "".join(traceback.format_exception(refused.value))


@pytest.mark.quick_cases(every=4)
@every_call
def test_a_repository_that_may_not_be_seen_is_missing(world: World, made: PullRequest, call: Call) -> None:
    with pytest.raises(ForgeMissingError, match="404 Not Found"):
        call(world.driver(name="none"), made)


@pytest.mark.quick_cases(every=6)
@every_write
def test_a_write_that_is_not_allowed_is_refused(world: World, made: PullRequest, call: Call) -> None:
    world.forge.forbid("Resource not accessible by personal access token")
    with pytest.raises(ForgeRefusedError, match="403 Resource not accessible by personal access token"):
        call(world.driver(), made)


@pytest.mark.quick_cases(every=6)
@every_write
def test_a_write_beyond_the_budget_is_not_sent(world: World, made: PullRequest, call: Call) -> None:
    world.budget = RateLimiter(1, 0, world.clock)
    github = world.driver()
    github.update(made, "t", "b")
    writes = sum(method != "GET" for method, _ in world.forge.calls)
    with pytest.raises(ForgeBusyError, match="1 writes per minute"):
        call(github, made)

    assert sum(method != "GET" for method, _ in world.forge.calls) == writes


# invalid responses


def answer_with(world: World, change: Callable[[dict[str, Any]], object]) -> GitHub:
    """Return a driver of a forge with changed fields in its pull requests."""
    shown = world.wire._pull(world.repository, world.repository.request(1))
    change(shown)
    transport = httpx.MockTransport(lambda _: httpx.Response(200, json=shown))
    return GitHub(ForgeClient("https://api.github.com", dict, world.budget, world.clock, transport), "acme", "fleet")


@pytest.mark.parametrize(
    ("change", "field"),
    [
        (lambda shown: shown.pop("number"), "number"),
        (lambda shown: shown.update(number=True), "number"),
        (lambda shown: shown.update(title=None), "title"),
        (lambda shown: shown.update(body=7), "body"),
        (lambda shown: shown.update(head=None), "head.ref"),
        (lambda shown: shown["head"].update(sha="../../x"), "head.sha"),
        (lambda shown: shown.update(base=[]), "base.ref"),
        (lambda shown: shown.update(draft="no"), "draft"),
        (lambda shown: shown.update(created_at="today"), "created_at"),
    ],
)
def test_a_field_that_is_missing_or_wrong_is_named(
    world: World, made: PullRequest, change: Callable[[dict[str, Any]], object], field: str
) -> None:
    with pytest.raises(ForgeAnswerError, match=f"GET /repos/acme/fleet/pulls/1: .*{field}"):
        answer_with(world, change).get_request(1)


@pytest.mark.parametrize("call", [lambda github: github.find(HEAD, BASE), lambda github: github.list_open_requests()])
def test_a_list_must_be_a_list(world: World, made: PullRequest, call: Callable[[GitHub], object]) -> None:
    with pytest.raises(ForgeAnswerError, match="must be a list"):
        call(answer_with(world, lambda _: None))


def graph_of(*answers: Any) -> GitHub:
    """Return a driver of a GitHub whose GraphQL gives these answers."""
    waiting = iter(answers)

    def answering(request: httpx.Request) -> httpx.Response:
        shown = {"draft": True, "node_id": "PR_1"}
        return httpx.Response(200, json=shown if request.method == "GET" else next(waiting))

    clock = Clock()
    client = ForgeClient(
        "https://api.github.com", dict, RateLimiter(0, 0, clock), clock, httpx.MockTransport(answering)
    )
    return GitHub(client, "acme", "fleet")


@pytest.mark.parametrize(
    ("answer", "kind", "words"),
    [
        pytest.param(
            {"errors": [{"type": "NOT_FOUND", "message": "no\nnode"}]}, ForgeMissingError, "no node", id="none"
        ),
        pytest.param({"errors": [{"type": "FORBIDDEN", "message": "no"}]}, ForgeRefusedError, ": no", id="forbidden"),
        pytest.param({"errors": [{"type": "RATE_LIMITED", "message": "x"}]}, ForgeBusyError, ": x", id="limited"),
        pytest.param({"errors": ["?"]}, ForgeRefusedError, "refused", id="no-words"),
        pytest.param({"errors": "?"}, ForgeRefusedError, "refused", id="no-list"),
        pytest.param({"data": None}, ForgeAnswerError, "isDraft", id="no-data"),
        pytest.param([], ForgeAnswerError, "must be an object", id="no-object"),
        pytest.param(
            {"data": {"markPullRequestReadyForReview": {"pullRequest": {"isDraft": True}}}},
            ForgeRefusedError,
            "GitHub did not change pull request 1",
            id="nothing-changed",
        ),
    ],
)
def test_graphql_refuses_in_its_own_way(made: PullRequest, answer: Any, kind: type[ForgeError], words: str) -> None:
    with pytest.raises(kind, match=words):
        graph_of(answer).set_draft(made, False)


def test_the_graphql_limit_starts_the_back_off(made: PullRequest) -> None:
    github = graph_of({"errors": [{"type": "RATE_LIMITED", "message": "x"}]})
    with pytest.raises(ForgeBusyError) as refused:
        github.set_draft(made, False)
    assert refused.value.until == Clock().now + 60
    with pytest.raises(ForgeBusyError, match="requested a pause"):
        github.get_request(1)


def test_a_base_that_moved_while_merging_is_tried_again(world: World, made: PullRequest) -> None:
    words = {"message": "Base branch was modified. Review and try the merge again."}
    transport = httpx.MockTransport(lambda _: httpx.Response(405, json=words))
    client = ForgeClient("https://api.github.com", dict, world.budget, world.clock, transport)
    with pytest.raises(ForgeUnreachableError, match="Base branch was modified"):
        GitHub(client, "acme", "fleet").merge(made, "merge", "m")


@pytest.mark.parametrize("name", ["", "..", "a/b", "a b", "a?x", "a%2fb", "é"])
def test_a_name_that_would_be_another_path_is_refused(world: World, name: str) -> None:
    client = ForgeClient("https://api.github.com", dict, world.budget, world.clock)
    with pytest.raises(ValueError, match="the owner and the name"):
        GitHub(client, "acme", name)
    with pytest.raises(ValueError, match="the owner and the name"):
        GitHub(client, name, "fleet")
    client.close()


# strictness of the fake


@pytest.mark.parametrize(
    ("header", "status"),
    [("authorization", 401), ("accept", 415), ("x-github-api-version", 400), ("user-agent", 403)],
)
def test_the_fake_wants_every_header(world: World, header: str, status: int) -> None:
    headers = {
        "authorization": f"Bearer {world.forge.token}",
        "accept": "application/vnd.github+json",
        "x-github-api-version": "2022-11-28",
        "user-agent": "test",
    }
    mapping = {name: value for name, value in headers.items() if name != header}
    with httpx.Client(headers={header: ""}) as client:
        assert client.get(f"{world.url}/repos/acme/fleet/pulls", headers=headers).status_code == 200
        assert client.get(f"{world.url}/repos/acme/fleet/pulls", headers=mapping).status_code == status


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("method", "path", "body", "status"),
    [
        ("GET", "/repos/acme/fleet/pulls?stat=open", None, 422),
        ("GET", "/repos/acme/fleet/pulls?state=all-of-them", None, 422),
        ("GET", "/repos/acme/fleet/none", None, 404),
        ("GET", "/repos/acme/fleet/pulls/9", None, 404),
        ("POST", "/repos/acme/fleet/pulls", {"title": "t", "head": HEAD}, 422),
        ("POST", "/repos/acme/fleet/pulls", {"title": "t", "head": HEAD, "base": BASE, "color": "red"}, 422),
        ("POST", "/repos/acme/fleet/pulls", {"title": 1, "head": HEAD, "base": BASE}, 422),
        ("PATCH", "/repos/acme/fleet/pulls/1", {"draft": False}, 422),
        ("PATCH", "/repos/acme/fleet/pulls/1", [], 400),
        ("PUT", "/repos/acme/fleet/pulls/1/merge", {"merge_method": "fast-forward"}, 422),
        ("POST", f"/repos/acme/fleet/statuses/{'1' * 40}", {"state": "fine"}, 422),
    ],
)
def test_the_fake_overlooks_nothing(
    world: World, made: PullRequest, method: str, path: str, body: object, status: int
) -> None:
    headers = {
        "authorization": f"Bearer {world.forge.token}",
        "accept": "application/vnd.github+json",
        "x-github-api-version": "2022-11-28",
    }
    with httpx.Client(headers=headers) as client:
        assert client.request(method, f"{world.url}{path}", json=body).status_code == status
