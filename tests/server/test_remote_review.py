"""`approve`, `propose` and `reject` with `--server`: a service applies the action as the owner of the token."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import click
import pytest
from click.testing import CliRunner
from structlog.testing import capture_logs

from reconciler.cli import approve, propose, reject
from reconciler.krm.selectors import LabelSelector
from reconciler.output.review.action_results import ReviewActionResult
from reconciler.review.permissions import Permissions, RoleRule
from reconciler.server import remote_review
from reconciler.server.api_client import ApiClient
from reconciler.server.console.people import Session
from reconciler.server.health_client import NoResponseError
from reconciler.server.http_server import HttpServer
from reconciler.server.limits import ServerLimits
from reconciler.server.remote_review import RemoteReview, apply_remote_action
from tests.support.console import ADA, ConsoleClient, open_console
from tests.support.git_repositories import git, read_refs
from tests.support.prepared_worlds import begin, drafted, published

TOKEN = "rcr_token-of-a-program"
SOUTH = LabelSelector((("region", "south"),))
REVIEWER = Permissions((RoleRule("reviewer", groups=("g",)),))


class TokenSession:
    """Identifies a program by its token."""

    def __init__(self, permissions: Permissions) -> None:
        self._permissions = permissions

    def authenticate(self, request: Any, *, extends_session: bool = True) -> Session | None:
        is_known = request.headers.get("authorization") == f"Bearer {TOKEN}"
        return Session(ADA, self._permissions, mode="token") if is_known else None


class Service:
    """A running service."""

    def __init__(self, console: ConsoleClient, folder: Path) -> None:
        self.console = console
        self.token_file = folder / "token"
        self.token_file.write_text(f"{TOKEN}\n")
        self.url = ""

    @property
    def client(self) -> ApiClient:
        return ApiClient(self.url, TOKEN)

    def work(self, _seconds: float) -> None:
        """Apply the waiting jobs, and run a pass if a job has requested it."""
        self.console.context.jobs.apply_waiting()
        if self.console.requested_passes:
            self.console.requested_passes = 0
            self.console.world.sync()
            self.console.update()

    def apply(self, review: RemoteReview) -> dict[str, str]:
        """Return the outcome of each package."""
        return {name: describe(result) for name, result in self.apply_all(review).items()}

    def apply_all(self, review: RemoteReview) -> dict[str, ReviewActionResult]:
        results = apply_remote_action(self.client, review, self.work)
        return {f"{result.repository}/{','.join(result.packages)}": result for result in results}

    def run(self, command: click.Command, *arguments: str) -> tuple[int | str, str]:
        """Return the exit status or the error of a command, and its output."""
        options = ["--server", self.url, "--token-file", str(self.token_file)]
        result = CliRunner().invoke(command, [*arguments, *options], standalone_mode=False)
        return (str(result.exception) if result.exception else result.return_value), result.output


def describe(result: ReviewActionResult) -> str:
    return " ".join([result.outcome, *(reason.reason for reason in result.reasons)])


def serve(folder: Path, make: Callable[[Path], Any], permissions: Permissions = REVIEWER) -> Iterator[Service]:
    console = open_console(begin(folder / "world", make))
    console.update()
    console.context = replace(console.context, authenticator=TokenSession(permissions))
    service = Service(console, folder)
    with capture_logs(), HttpServer(console.app, ServerLimits()) as server:
        server.listen("127.0.0.1:0")
        service.url = f"http://127.0.0.1:{server.port}"
        yield service


@pytest.fixture
def service(tmp_path: Path) -> Iterator[Service]:
    """A service whose packages are all drafted."""
    yield from serve(tmp_path, drafted)


ALL = {"berlin/gateway", "berlin/metrics", "lisbon/gateway"}


@pytest.mark.quick_cases(every=7)
@pytest.mark.parametrize(
    ("review", "expected"),
    [
        pytest.param(RemoteReview("approve", includes_unproposed=True), dict.fromkeys(ALL, "done"), id="all"),
        pytest.param(
            RemoteReview("approve", selector="region=south", includes_unproposed=True), {"lisbon/gateway": "done"},
            id="selector",
        ),
        pytest.param(
            RemoteReview("approve", frozenset({("berlin", "metrics"), ("porto", "")}), includes_unproposed=True),
            {"berlin/metrics": "done", "porto/": "unchanged"}, id="package-and-unknown-target",
        ),
        pytest.param(
            RemoteReview("approve", frozenset({("lisbon", "")})), {"lisbon/gateway": "refused NotProposed"},
            id="not-proposed",
        ),
        pytest.param(RemoteReview("propose", frozenset({("lisbon", "")})), {"lisbon/gateway": "done"}, id="propose"),
        pytest.param(
            RemoteReview("reject", frozenset({("lisbon", "")})), {"lisbon/gateway": "refused ReasonRequired"},
            id="reject-without-a-reason",
        ),
        pytest.param(
            RemoteReview("reject", frozenset({("lisbon", "")}), reason="too early"), {"lisbon/gateway": "done"},
            id="reject",
        ),
    ],
)  # fmt: skip
def test_outcomes(review: RemoteReview, expected: dict[str, str], service: Service) -> None:
    assert service.apply(review) == expected


@pytest.mark.slow
def test_the_owner_of_the_token_is_the_author(service: Service) -> None:
    service.apply(RemoteReview("approve", frozenset({("lisbon", "")}), reason="ready", includes_unproposed=True))
    world = service.console.world
    message = git(world.fleet, "log", "-1", "--format=%an%n%B", "clusters/lisbon")

    assert message.startswith("Ada Example\n")
    assert "Reconciler-Approved-Via: console" in message
    assert world.paths(world.fleet, "clusters/berlin") == []


@pytest.mark.slow
def test_a_draft_that_moved_after_the_last_pass_is_refused(service: Service) -> None:
    service.console.world.edit("drafts/lisbon", "gateway/deployment.yaml", "replicas: 2", "replicas: 5")

    assert service.apply(RemoteReview("approve", selector="region=south", includes_unproposed=True)) == {
        "lisbon/gateway": "refused DraftMoved"
    }


@pytest.mark.slow
def test_a_rejected_draft_must_be_named(service: Service) -> None:
    service.apply(RemoteReview("reject", frozenset({("lisbon", "")}), reason="too early"))
    service.console.update()
    approval = RemoteReview("approve", selector="region=south", includes_unproposed=True)

    assert service.apply(approval) == {"lisbon/gateway": "refused Rejected"}
    assert service.apply(replace(approval, references=frozenset({("lisbon", "gateway")}))) == {"lisbon/gateway": "done"}


def test_a_person_without_the_role_changes_nothing(tmp_path: Path) -> None:
    for service in serve(tmp_path, drafted, Permissions((RoleRule("viewer", groups=("g",)),))):
        before = read_refs(service.console.world.fleet)
        outcomes = service.apply(RemoteReview("approve", includes_unproposed=True))

        assert set(outcomes.values()) == {"refused NotPermitted"}
        assert read_refs(service.console.world.fleet) == before


@pytest.mark.slow
def test_a_removal_must_be_selected(tmp_path: Path) -> None:
    for service in serve(tmp_path, published, Permissions((RoleRule("admin", groups=("g",)),))):
        world = service.console.world
        world.write({"metrics.yaml": None})
        world.sync_until_unchanged()
        service.console.update()
        approval = RemoteReview("approve", includes_unproposed=True, reason="obsolete")

        assert service.apply(approval) == {"berlin/metrics": "unchanged"}
        assert service.apply(replace(approval, includes_removals=True)) == {"berlin/metrics": "done"}


def test_a_job_that_does_not_complete_is_an_error(service: Service, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(remote_review, "MAX_SECONDS", 3)
    with pytest.raises(NoResponseError, match="is not complete"):
        apply_remote_action(service.client, RemoteReview("approve", includes_unproposed=True), lambda _: None)


@pytest.mark.slow
def test_the_output_of_the_command(service: Service) -> None:
    service.console.context.jobs.start()
    proposed = service.run(propose.command, "lisbon")
    service.console.update()
    status, text = service.run(approve.command, "lisbon", "-m", "ready", "-o", "json")
    service.console.context.jobs.close()

    assert proposed[0] == status == 0
    assert proposed[1].splitlines()[0].startswith("proposed   lisbon: drafts/lisbon (gateway)")
    assert json.loads(text)["items"][0]["outcome"] == "done"


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("command", "arguments", "message"),
    [
        pytest.param(approve.command, ["lisbon", "--author", "A <a@b>"], "cannot be used with --author", id="author"),
        pytest.param(approve.command, [], "select drafts in exactly one way", id="no-selection"),
        pytest.param(reject.command, ["lisbon", "--drop"], "cannot be used with --drop", id="drop"),
        pytest.param(propose.command, ["-l", "region in ("], "region in (", id="selector"),
    ],
)
def test_wrong_options(command: click.Command, arguments: list[str], message: str, service: Service) -> None:
    assert message in str(service.run(command, *arguments)[0])


def test_the_token_requires_a_server_and_must_be_valid(service: Service) -> None:
    arguments = ["lisbon", "--token-file", str(service.token_file)]
    without_server = CliRunner().invoke(approve.command, arguments, standalone_mode=False)
    service.token_file.write_text("rcr_other\n")

    assert "--token-file requires --server" in str(without_server.exception)
    assert "the request has no valid token" in str(service.run(approve.command, "lisbon")[0])
