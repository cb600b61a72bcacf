"""The common behavior of all drivers, tested with each product."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import get_args

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
from reconciler.forge.port import Forge, MergeMethod, PullRequest, Verdict
from reconciler.forge.rate_limits import RateLimiter
from tests.support.fake_forge.github import GitHubWire
from tests.support.fake_forge.scene import BASE, HEAD, NEW, Product, Scene, open_scene
from tests.support.fake_forge.server import Answer
from tests.support.git_repositories import git, read_file

PASSED = Verdict(passed=True, summary="all gates are open")


@pytest.fixture(params=get_args(Product))
def scene(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Scene]:
    with open_scene(request.param, tmp_path) as opened:
        yield opened


def test_a_draft_from_its_opening_to_its_merge(scene: Scene) -> None:
    driver, head = scene.driver, scene.commit(HEAD)
    pull_request = driver.create(NEW)

    assert (pull_request.title, pull_request.body, pull_request.head, pull_request.base) == (
        NEW.title,
        NEW.body,
        HEAD,
        BASE,
    )
    assert (pull_request.number, pull_request.commit, pull_request.state, pull_request.draft, pull_request.hold) == (
        1,
        head,
        "open",
        True,
        "",
    )
    assert pull_request.created == scene.clock.now
    assert pull_request.url.startswith(f"{scene.forge.url}/acme/fleet/")
    assert driver.find(HEAD, BASE) == pull_request == driver.get_request(1)
    assert list(driver.list_open_requests()) == [pull_request]

    updated = driver.update(pull_request, "east: api 1.3", "Another change.")
    assert updated == replace(pull_request, title="east: api 1.3", body="Another change.")
    assert driver.get_request(1) == updated

    with pytest.raises(ForgeRefusedError):
        driver.merge(updated, "merge", "too early")
    driver.set_draft(updated, draft=False)
    driver.set_check(pull_request.commit, PASSED)
    ready = driver.get_request(1)
    assert ready == replace(updated, draft=False)

    pushed = scene.push(data=b"1.3")
    with pytest.raises(HeadMovedError):
        driver.merge(ready, "merge", "a head that was")
    now = driver.get_request(1)
    assert now == replace(ready, commit=pushed)
    driver.merge(now, "merge", "east: api 1.3\n\nReviewed-by: Ada")

    assert driver.get_request(1) == replace(now, state="merged")
    assert driver.find(HEAD, BASE) == replace(now, state="merged")
    assert list(driver.list_open_requests()) == []
    assert read_file(scene.repository.bare, BASE, "api.yaml") == "1.3"
    assert git(scene.repository.bare, "log", "-1", "--format=%B", BASE) == "east: api 1.3\n\nReviewed-by: Ada"
    assert scene.commit(HEAD) == pushed


def test_everything_a_second_time_is_silent_or_refused(scene: Scene) -> None:
    driver = scene.driver
    pull_request = driver.create(NEW)

    with pytest.raises(ForgeRefusedError, match="already exists"):
        driver.create(NEW)
    for _ in range(2):
        driver.update(pull_request, NEW.title, NEW.body)
        driver.set_check(pull_request.commit, PASSED)
        driver.set_draft(pull_request, draft=True)
    assert driver.get_request(1) == pull_request
    for _ in range(2):
        driver.set_draft(pull_request, draft=False)
    ready = driver.get_request(1)
    assert ready == replace(pull_request, draft=False)
    for _ in range(2):
        driver.close(ready)
    closed = driver.get_request(1)
    assert closed == replace(ready, state="closed")
    with pytest.raises(ForgeRefusedError):
        driver.merge(closed, "merge", "closed")


def test_what_was_closed_may_be_opened_anew(scene: Scene) -> None:
    driver = scene.driver
    first = driver.create(NEW)
    driver.close(first)

    second = driver.create(replace(NEW, draft=False))

    assert (second.number, second.draft) == (2, False)
    assert driver.find(HEAD, BASE) == second
    assert list(driver.list_open_requests()) == [second]
    driver.close(second)
    driver.update(first, "old", "older")
    assert driver.find(HEAD, BASE) == replace(second, state="closed")


def test_only_both_branches_together_are_found(scene: Scene) -> None:
    driver = scene.driver
    other = replace(NEW, head="drafts/west", base="clusters/west")
    git(scene.repository.bare, "update-ref", "refs/heads/clusters/west", f"refs/heads/{BASE}")
    scene.push("drafts/west")
    driver.create(other)
    driver.create(replace(NEW, base="clusters/west"))

    assert driver.find(HEAD, BASE) is None
    pull_request = driver.find(HEAD, "clusters/west")
    assert pull_request is not None
    assert pull_request.number == 2


def test_a_branch_of_another_repository_is_ignored(scene: Scene) -> None:
    scene.repository.open(HEAD, BASE, "mine", "", draft=False, from_fork="eve/fleet")

    assert scene.driver.find(HEAD, BASE) is None
    assert list(scene.driver.list_open_requests()) == []


def test_a_request_whose_branch_is_gone_is_closed(scene: Scene) -> None:
    pull_request = scene.driver.create(NEW)

    git(scene.repository.bare, "update-ref", "-d", f"refs/heads/{HEAD}")

    assert scene.driver.get_request(1) == replace(pull_request, state="closed") == scene.driver.find(HEAD, BASE)


@pytest.mark.quick_cases(every=3)
def test_more_than_a_page(scene: Scene) -> None:
    if isinstance(scene.wire, GitHubWire):
        numbers = range(1, 102)
    else:
        numbers, scene.wire.most = range(1, 8), 3  # type: ignore[attr-defined]
    names = [f"drafts/{number}" for number in numbers]
    refs = "".join(f"create refs/heads/{name} {scene.commit(HEAD)}\n" for name in names)
    git(scene.repository.bare, "update-ref", "--stdin", stdin=refs.encode())
    for name in names:
        scene.repository.open(name, BASE, name, "", draft=True)

    first = scene.driver.find("drafts/1", BASE)

    assert [request.number for request in scene.driver.list_open_requests()] == list(numbers)
    assert first is not None
    assert first.number == 1


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("method", get_args(MergeMethod))
def test_ways_to_merge(scene: Scene, method: MergeMethod) -> None:
    pull_request = scene.driver.create(replace(NEW, draft=False))
    scene.push(BASE, path="other", data=b"of somebody")

    if (scene.product, method) == ("gitlab", "rebase"):
        with pytest.raises(ForgeRefusedError, match="must be merge or squash"):
            scene.driver.merge(pull_request, method, "words")
    else:
        scene.driver.merge(pull_request, method, "words")
        parents = git(scene.repository.bare, "log", "-1", "--format=%P", BASE).split()
        subject = git(scene.repository.bare, "log", "-1", "--format=%s", BASE)
        assert (len(parents), subject) == (2 if method == "merge" else 1, "change" if method == "rebase" else "words")
        assert scene.driver.get_request(1).state == "merged"


def test_a_conflict_is_refused(scene: Scene) -> None:
    pull_request = scene.driver.create(replace(NEW, draft=False))
    scene.push(BASE, data=b"another")

    with pytest.raises(ForgeRefusedError) as error:
        scene.driver.merge(pull_request, "merge", "words")

    assert not isinstance(error.value, HeadMovedError)
    assert scene.driver.get_request(1) == pull_request


def test_an_approval_holds(scene: Scene) -> None:
    driver = scene.driver
    pull_request = driver.create(NEW)
    scene.repository.review(1, "ada", "APPROVED")
    assert driver.get_request(1).hold == ""  # a draft

    driver.set_draft(pull_request, draft=False)
    assert driver.get_request(1).hold == "approved"
    assert [request.hold for request in driver.list_open_requests()] == ["approved"]
    assert [request.hold for request in driver.list_open_requests()] == ["approved"]
    scene.repository.review(1, "ada", "DISMISSED")
    assert [request.hold for request in driver.list_open_requests()] == [""]


def test_reviews_are_asked_for_once_where_nothing_can_come_any_more(scene: Scene) -> None:
    scene.driver.create(replace(NEW, draft=False))

    # The date is the current second, because a review can occur in the same second.
    values = [len(scene.calls_of(scene.driver.list_open_requests)) for _ in range(2)]
    scene.clock.now += 61
    values += [len(scene.calls_of(scene.driver.list_open_requests)) for _ in range(2)]
    scene.repository.review(1, "ada", "COMMENTED")
    scene.clock.now += 61
    values += [len(scene.calls_of(scene.driver.list_open_requests)) for _ in range(2)]
    assert values == [2, 2, 2, 1, 2, 1]


def test_a_request_that_will_merge_by_itself(scene: Scene) -> None:
    scene.driver.create(replace(NEW, draft=False))
    scene.repository.request(1).auto_merge = True

    # Gitea does not return it.
    assert scene.driver.get_request(1).hold == ("" if scene.product == "gitea" else "auto-merge")


def test_the_check_of_a_commit(scene: Scene) -> None:
    pull_request, failed = scene.driver.create(NEW), Verdict(passed=False, summary="waits for\nwest" + "!" * 300)

    scene.driver.set_check(pull_request.commit, failed)
    before = scene.repository.status(pull_request.commit, "reconciler")
    scene.driver.set_check(pull_request.commit, PASSED)
    after = scene.repository.status(pull_request.commit, "reconciler")

    assert before is not None
    assert after is not None
    assert before.state == ("failed" if scene.product == "gitlab" else "failure")
    assert before.description.startswith("waits for west!!!")
    assert (after.state, after.description) == ("success", "all gates are open")


def test_labels_are_read_and_removed(scene: Scene) -> None:
    driver = scene.driver
    pull_request = driver.create(NEW)
    for name in ("ready to go/now", "api"):
        scene.repository.set_label(1, name)

    listed = driver.get_request(1)
    assert listed.labels == ("api", "ready to go/now")
    assert driver.list_open_requests()[0].labels == listed.labels
    for _ in range(2):
        driver.remove_label(listed, "ready to go/now")
    driver.remove_label(pull_request, "nobody set it")

    assert driver.get_request(1) == replace(pull_request, labels=("api",))


def test_labels_that_are_there(scene: Scene) -> None:
    scene.repository.label("api")
    scene.repository.label("fleet")

    scene.driver.create(replace(NEW, labels=("fleet", "api")))

    assert sorted(scene.repository.request(1).labels) == ["api", "fleet"]


def test_branches_that_are_not_there(scene: Scene) -> None:
    # Gitea reports only that a resource is missing.
    refused = ForgeMissingError if scene.product == "gitea" else ForgeRefusedError

    for new in (replace(NEW, head="absent"), replace(NEW, base="absent")):
        with pytest.raises(refused):
            scene.driver.create(new)

    assert list(scene.driver.list_open_requests()) == []


def failures_of(driver: Forge, pull_request: PullRequest, other: PullRequest) -> list[ForgeError | None]:
    calls: Sequence[Callable[[], object]] = [
        driver.list_open_requests,
        lambda: driver.get_request(pull_request.number),
        lambda: driver.find(HEAD, BASE),
        lambda: driver.create(replace(NEW, head="drafts/third")),
        lambda: driver.update(pull_request, "t", "b"),
        lambda: driver.set_draft(pull_request, not pull_request.draft),
        lambda: driver.set_draft(pull_request, pull_request.draft),
        lambda: driver.close(other),
        lambda: driver.set_check(pull_request.commit, PASSED),
        lambda: driver.merge(pull_request, "merge", "m"),
    ]
    return [failure_of(call) for call in calls]


def failure_of(call: Callable[[], object]) -> ForgeError | None:
    try:
        call()
    except ForgeError as error:
        return error
    return None


def open_two(scene: Scene) -> tuple[PullRequest, PullRequest]:
    scene.push("drafts/other")
    scene.push("drafts/third")
    return scene.driver.create(replace(NEW, draft=False)), scene.driver.create(replace(NEW, head="drafts/other"))


def spoil_token(scene: Scene) -> None:
    scene.token_file.write_text("another-planted-t0ken")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("trouble", "kind"),
    [
        pytest.param(lambda scene: scene.forge.busy_for(90), ForgeBusyError, id="busy"),
        pytest.param(lambda scene: scene.forge.limit_until(scene.clock.now + 90), ForgeBusyError, id="spent"),
        pytest.param(lambda scene: scene.forge.break_down(), ForgeUnreachableError, id="down"),
        pytest.param(spoil_token, ForgeCredentialsError, id="another-token"),
        pytest.param(lambda scene: scene.token_file.unlink(), ForgeCredentialsError, id="no-token"),
    ],
)
def test_a_trouble_has_one_name_in_every_call(
    scene: Scene, trouble: Callable[[Scene], object], kind: type[ForgeError]
) -> None:
    pull_request, other = open_two(scene)
    trouble(scene)

    failures = failures_of(scene.driver, pull_request, other)

    assert {type(failure) for failure in failures} == {kind}
    for forge_error in failures:
        assert forge_error is not None
        assert scene.forge.token not in f"{forge_error!r} {forge_error.__cause__!r} {forge_error.__context__!r}"
        assert "planted" not in f"{forge_error!r}"
        assert getattr(forge_error, "until", scene.clock.now + 90) == scene.clock.now + 90
    scene.forge.recover()
    scene.token_file.write_text(scene.forge.token)
    scene.clock.now += 91
    assert failures_of(scene.driver, pull_request, other) == [None] * 10


@pytest.mark.quick_cases(every=3)
def test_what_is_forbidden_is_refused_in_the_forge_s_words(scene: Scene) -> None:
    pull_request, other = open_two(scene)
    scene.forge.forbid("the branch is frozen")

    failures = failures_of(scene.driver, pull_request, other)

    # It is not a draft any more, and the GitHub driver checks this first.
    refused = [forge_error for forge_error in failures[3:] if (scene.product, forge_error) != ("github", None)]
    assert failures[:3] == [None] * 3
    assert {type(forge_error) for forge_error in refused} == {ForgeRefusedError}
    assert all("the branch is frozen" in str(forge_error) for forge_error in refused)


def test_what_is_missing_has_a_name(scene: Scene) -> None:
    with pytest.raises(ForgeMissingError):
        scene.driver.get_request(7)
    absent = PullRequest(7, "", "t", "b", HEAD, BASE, CommitId("1" * 40))
    for act in (scene.driver.close, lambda value: scene.driver.merge(value, "merge", "m")):
        with pytest.raises(ForgeMissingError):
            act(absent)


def test_a_response_of_another_product_is_an_error(scene: Scene, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scene.wire, "answer", lambda value: Answer(200, {"number": "one"}))

    for call in (
        scene.driver.list_open_requests,
        lambda: scene.driver.get_request(1),
        lambda: scene.driver.create(NEW),
    ):
        with pytest.raises(ForgeAnswerError):
            call()


@pytest.mark.parametrize("product", get_args(Product))
def test_new_requests_have_a_budget(product: Product, tmp_path: Path) -> None:
    # The clock of a scene does not advance.
    budget = RateLimiter(writes_per_minute=0, new_per_hour=1, clock=lambda: 0.0)
    with open_scene(product, tmp_path, budget) as scene:
        scene.push("drafts/other")
        pull_request = scene.driver.create(NEW)

        with pytest.raises(ForgeBusyError):
            scene.driver.create(replace(NEW, head="drafts/other"))

        scene.driver.update(pull_request, "another", "body")
        assert len(scene.repository.requests()) == 1
