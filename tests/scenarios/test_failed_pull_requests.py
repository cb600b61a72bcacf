"""Tests of pull requests with forge failures and races: other drafts continue, and no draft is declined."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from copy import copy
from math import inf
from pathlib import Path
from shutil import copytree
from typing import NoReturn
from unittest.mock import patch

import pytest

from reconciler.forge.errors import ForgeRefusedError, ForgeUnreachableError
from reconciler.forge.github import GitHub
from reconciler.forge.port import NewRequest
from reconciler.git.errors import TooLargeError, UnreachableError
from reconciler.git.mirror import Mirror
from reconciler.git.object_reader import ObjectReader
from reconciler.git.push_outcomes import PushOutcome
from reconciler.reconcile import reconcile_pass, snapshot
from reconciler.reconcile.commits import WrittenPlan
from reconciler.reconcile.pull_requests import open_requests
from reconciler.reconcile.pull_requests import synchronizer as request_notes
from reconciler.reconcile.pull_requests import tasks as request_tasks
from reconciler.reconcile.remotes.repository import Remote
from tests.support.fake_forge.core import FakePullRequest, FakeRepository
from tests.support.fake_forge.scene import Product
from tests.support.fake_forge.server import Answer, ApiRequest
from tests.support.forge_world import ForgeWorld, forge_world, github_world
from tests.support.git_repositories import git
from tests.support.world import config_map, package, repository, variant

HOUR = 3_600
LONGEST_BODY = 65_536


def request_version(world: ForgeWorld, version: str = "v2", replicas: int = 3, cluster: str = "lisbon") -> None:
    """Release a version of web, and request it on a cluster."""
    world.release("web", version, package("web", replicas=replicas))
    world.write({f"web-{cluster}.yaml": variant(f"web-{cluster}", cluster, "web", version)})


def merge_pull_request(world: ForgeWorld, pull_request: FakePullRequest) -> None:
    """Mark a pull request as ready, and merge it."""
    pull_request.draft = False
    world.on_forge.merge(pull_request.number, "squash", "merged")


def list_pull_request_states(world: ForgeWorld) -> list[tuple[int, str]]:
    """Return the numbers and states of all pull requests."""
    return [(pull_request.number, pull_request.state) for pull_request in reversed(world.draft_requests())]


def list_repository_files(world: ForgeWorld) -> list[tuple[str, Path]]:
    """Return the config files that name repositories."""
    return [(file.name, file) for file in world.config.iterdir() if "repo: ./" in file.read_text()]


@contextmanager
def override_answer(world: ForgeWorld, method: str, ending: str, answer: Answer) -> Iterator[None]:
    """Replace the answer of the forge to one kind of calls."""
    original_answer = world.wire.answer

    def answer_request(requests: ApiRequest) -> Answer:
        return answer if requests.method == method and requests.path.endswith(ending) else original_answer(requests)

    with patch.object(world.wire, "answer", answer_request):
        yield


def test_a_deleted_pull_request_is_opened_again(tmp_path: Path) -> None:
    with forge_world("gitlab", tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        world.on_forge.delete(world.open_requests["drafts/lisbon"])
        world.sync_until_unchanged()
        assert list(world.open_requests) == ["drafts/lisbon"]


def test_a_pull_request_with_another_head_does_not_affect_the_draft(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        other_request = world.open_requests["drafts/lisbon"]
        git(world.fleet, "update-ref", "refs/heads/topic", "drafts/lisbon")
        other_request.head, other_request.draft, other_request.body = "topic", False, "theirs"
        world.on_forge.review(other_request.number, "grace", "APPROVED")
        request_version(world)
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].title == "lisbon/web: update v1 → v2"
        assert (other_request.title, other_request.draft) == ("lisbon/web: install v1", False)


def test_after_a_merge_into_another_branch_a_new_pull_request_is_opened(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        git(world.fleet, "update-ref", "refs/heads/topic", "clusters/lisbon")
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.base = "topic"
        assert world.sync_until_unchanged().outcomes == {"lisbon/web": "drafted"}
        assert list_pull_request_states(world) == [(1, "open")], "people may change the base branch"
        merge_pull_request(world, pull_request)
        world.sync_until_unchanged()
        assert world.open_requests["drafts/lisbon"].base == "clusters/lisbon"


@pytest.mark.quick_cases(every=2)
@pytest.mark.parametrize(("kind", "method"), [("gitlab", "PUT"), ("gitea", "PATCH")])
@pytest.mark.emits("pull_request_closed", "pull_request_failed")
def test_a_pull_request_that_cannot_be_closed_does_not_delay_others(kind: Product, method: str, tmp_path: Path) -> None:
    with forge_world(kind, tmp_path) as world, patch.object(FakeRepository, "_follow", lambda *_: None):
        world.sync_until_unchanged()
        open_request = world.open_requests["drafts/berlin"]
        world.run_review_action("approve", "berlin", should_approve_unproposed=True)
        request_version(world)
        with override_answer(world, method, f"/{open_request.number}", Answer(403, {"message": "locked"})):
            assert "PullRequestsUnreachable" not in world.sync().codes
        assert "v1 → v2" in world.open_requests["drafts/lisbon"].title
        world.sync_until_unchanged()
        assert open_request.state == "closed"


def test_a_pull_request_of_a_branch_newer_than_the_fetch_is_not_closed(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        newer = copy(world)
        newer.folder, newer.config = tmp_path / "newer", tmp_path / "newer/config"
        copytree(world.config, newer.config)
        newer.write({"porto.yaml": repository("porto", "./acme/fleet.git"), "web.yaml": variant("web", "porto", "web")})
        newer.write({name: text.read_text().replace("./", "../") for name, text in list_repository_files(newer)})
        refresh, pending = snapshot.refresh_pull_requests, [newer.sync]

        def sync_newer_first(*args: object) -> None:
            while pending:
                pending.pop()()
            refresh(*args)  # type: ignore[arg-type]

        with patch.object(snapshot, "refresh_pull_requests", sync_newer_first):
            world.sync()
        assert list_pull_request_states(world) == [(1, "open"), (2, "open")], (
            "closing the pull request would decline the draft"
        )


def test_a_draft_with_an_unreadable_file_is_reported_and_others_get_pull_requests(tmp_path: Path) -> None:
    with github_world(tmp_path) as world:
        world.forge.break_down()
        world.sync_until_unchanged()
        world.edit("drafts/berlin", "web/deployment.yaml", "replicas: 2", "replicas: 2000000")
        world.forge.recover()
        large = git(world.fleet, "rev-parse", "drafts/berlin:web/deployment.yaml")
        read = ObjectReader.read_blobs

        def read_limited(reader: ObjectReader, blobs: list[str]) -> object:
            expected = list(blobs)
            if large in expected:
                raise TooLargeError(f"blob {large} has 100000000 bytes, more than 67108864")
            return read(reader, expected)  # type: ignore[arg-type]

        with patch.object(ObjectReader, "read_blobs", read_limited):
            pass_result = world.sync()
        (message,) = (finding.message for finding in pass_result.findings if finding.code == "PullRequestRefused")
        assert message.startswith(
            'Repository berlin: the text of the pull request of branch "drafts/berlin" cannot be written, because '
        )
        assert list(world.open_requests) == ["drafts/lisbon"]


def test_a_file_name_without_utf_8_is_escaped_in_the_pull_request(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        ref = "refs/heads/drafts/lisbon"
        commit = f"commit {ref}\ncommitter Ada <ada@example.com> 1100000000 +0000\ndata 0\nfrom {ref}^0\n"
        git(
            world.fleet, "fast-import", "--quiet", stdin=commit.encode() + b"M 644 inline web/na\xefve.txt\ndata 1\nx\n"
        )
        world.sync_until_unchanged()
        assert "na\\udcefve.txt: added" in world.open_requests["drafts/lisbon"].body


def test_a_repository_name_that_github_does_not_allow_does_not_fail_the_pass(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.write({"odd.yaml": repository("odd", "./acme/fl+eet.git")})
        world.write({"web-odd.yaml": variant("web-odd", "odd", "web")})
        assert "RepositoryUnreachable" in world.sync().codes
        assert list(world.open_requests) == ["drafts/lisbon"]


@pytest.mark.slow
def test_a_pull_request_closed_during_a_push_is_replaced_by_a_new_one(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        service = world.service()
        service.run()
        service.run()
        request_version(world)
        pull_request = world.open_requests["drafts/lisbon"]
        push = service._publisher.publish

        def close_and_push(remote: Remote, written: Sequence[WrittenPlan]) -> Mapping[str, PushOutcome]:
            world.on_forge.close(pull_request)
            return push(remote, written)

        with patch.object(service._publisher, "publish", close_and_push):
            service.run()
        service.run()
        assert list_pull_request_states(world) == [(1, "closed"), (2, "open")]
        service.run()
        service.run()
        assert service.summary.is_skipped


def test_an_outdated_list_opens_no_second_pull_request_and_hides_no_closing(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        service = world.service()
        with patch.object(GitHub, "list_open_requests", lambda _: ()):
            for _ in range(3):
                service.run()
            assert list_pull_request_states(world) == [(1, "open")]
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        service.run()
        assert world.head("drafts/lisbon") == ""


@pytest.mark.slow
def test_a_full_body_is_reported_and_the_check_is_still_set(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.body += "x" * (LONGEST_BODY - len(pull_request.body))
        world.release("web", "v2", package("web", more=config_map("more", a="b")))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        assert "PullRequestRefused" in world.sync().codes
        assert world.on_forge.status(world.head("drafts/lisbon"), "reconciler")
        world.run_review_action("propose", "lisbon")
        world.sync()
        assert pull_request.draft is False
        pull_request.body = pull_request.body.rstrip("x")
        world.sync_until_unchanged()
        assert pull_request.title == "lisbon/web: update v1 → v2"


def test_a_pull_request_that_fails_does_not_delay_the_others(tmp_path: Path) -> None:
    with github_world(tmp_path, ("berlin", "lisbon", "porto")) as world:
        original_answer = world.wire.answer

        def answer_request(requests: ApiRequest) -> Answer:
            return (
                Answer(502)
                if requests.method == "POST" and b"drafts/berlin" in requests.body
                else original_answer(requests)
            )

        with patch.object(world.wire, "answer", answer_request):
            pass_result = world.sync()
        assert sorted(world.open_requests) == ["drafts/lisbon", "drafts/porto"]
        assert "PullRequestsUnreachable" not in pass_result.codes
        assert pass_result.report.due_at is not None
        world.sync_until_unchanged()
        assert len(world.open_requests) == 3


@pytest.mark.emits("pull_request_record_failed")
def test_pull_requests_that_were_not_recorded_are_recorded_soon(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        service = world.service()
        with patch.object(request_notes, "_push_states", side_effect=UnreachableError("push: cut off")):
            service.run()
        assert service.seconds_until_due == reconcile_pass.PROPOSAL_RETRY_SECONDS
        world.now += reconcile_pass.PROPOSAL_RETRY_SECONDS
        service.run()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        service.run()
        assert list_pull_request_states(world) == [(1, "closed")], "no second pull request is open"


@pytest.mark.slow
def test_pull_requests_above_the_hourly_limit_open_in_later_passes(tmp_path: Path) -> None:
    clusters = tuple(f"c{number}" for number in range(5))
    with (
        github_world(tmp_path, clusters, new_per_hour=2) as world,
        patch.object(request_tasks, "_MAX_WAITING_TEXTS", 1),
    ):
        service = world.service()
        opened = []
        for seconds in (0, HOUR, reconcile_pass.PROPOSAL_RETRY_SECONDS, reconcile_pass.PROPOSAL_RETRY_SECONDS, HOUR):
            world.now += seconds
            service.run()
            opened.append(len(world.open_requests))
        assert opened == [2, 3, 4, 4, 5]
        for _ in range(3):
            service.run()
        assert service.summary.is_skipped
        assert service.seconds_until_due == inf


@pytest.mark.emits("pull_request_found")
def test_a_pull_request_that_an_earlier_call_opened_is_used(tmp_path: Path) -> None:
    create = GitHub.create

    def create_and_lose_the_response(forge: GitHub, request: NewRequest) -> NoReturn:
        create(forge, request)
        raise ForgeRefusedError("a pull request already exists")

    with github_world(tmp_path, ("lisbon",)) as world:
        with patch.object(GitHub, "create", create_and_lose_the_response):
            world.sync()
        world.sync_until_unchanged()
        assert list_pull_request_states(world) == [(1, "open")]


@pytest.mark.emits("pull_request_read_failed")
def test_a_pull_request_that_cannot_be_read_declines_no_draft(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world:
        world.sync_until_unchanged()
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        with patch.object(open_requests.PullRequestCache, "find_request", side_effect=ForgeUnreachableError("down")):
            world.sync()
        assert world.head("drafts/lisbon") != ""
        world.sync_until_unchanged()
        assert world.head("drafts/lisbon") == ""


@pytest.mark.emits("pull_request_cleanup_failed")
def test_pull_requests_stay_open_if_the_branches_cannot_be_read(tmp_path: Path) -> None:
    with github_world(tmp_path, ("lisbon",)) as world, patch.object(FakeRepository, "_follow", lambda *_: None):
        world.sync_until_unchanged()
        world.run_review_action("approve", "lisbon", should_approve_unproposed=True)
        with patch.object(Mirror, "list_remote_branches", side_effect=UnreachableError("cut off")):
            world.sync()
        assert list_pull_request_states(world) == [(1, "open")]
