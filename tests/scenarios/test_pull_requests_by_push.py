"""Tests of pull requests without a token: GitLab with push options, Gitea and Forgejo with pushes for review (AGit)."""

from __future__ import annotations

import base64
from pathlib import Path

import pytest

from tests.support.git_repositories import git, write_hook
from tests.support.world import World, catalog, package, repository, variant

pytestmark = pytest.mark.real_git

AGIT = Path(__file__).parents[1] / "support" / "agit_hook.py"
# The hook writes one line for each push with options.
NOTE = """
n=0; options=""
while [ "$n" -lt "${GIT_PUSH_OPTION_COUNT:-0}" ]; do options="$options[$(printenv GIT_PUSH_OPTION_$n)]"; n=$((n + 1)); done
[ -z "$options" ] || printf '%s\\n' "$options $(cut -d' ' -f3 | grep heads)" >> pushes
"""


def make_world(folder: Path, kind: str) -> World:
    world = World.create(folder, forge={"hosts": [{"url": str(folder), "kind": kind}], "labels": ["fleet"]})
    git(world.fleet, "config", "receive.advertisePushOptions", "true")
    world.write({"catalog.yaml": catalog(), "lisbon.yaml": repository("lisbon")})
    world.write({"web.yaml": variant("web", "lisbon", "web")})
    world.release("web", "v1", package("web"))
    return world


@pytest.mark.slow
def test_gitlab_opens_a_merge_request_with_the_push_of_a_draft(tmp_path: Path) -> None:
    world = make_world(tmp_path, "gitlab-push-options")
    write_hook(world.fleet, "pre-receive", NOTE)
    world.sync_until_unchanged()
    (line,) = (world.fleet / "pushes").read_text().splitlines()
    assert line.startswith(
        "[merge_request.create][merge_request.target=clusters/lisbon]"
        "[merge_request.title=install web v1][merge_request.description="
    )
    assert "[merge_request.draft][merge_request.label=fleet] " in line
    assert line.endswith(" refs/heads/drafts/lisbon")
    world.release("web", "v2", package("web", replicas=3))
    world.write({"web.yaml": variant("web", "lisbon", "web", "v2")})
    world.sync_until_unchanged()
    assert "=web v1 → v2: replicas]" in (world.fleet / "pushes").read_text().splitlines()[1]


@pytest.mark.slow
def test_each_draft_head_requests_one_review(tmp_path: Path) -> None:
    world = make_world(tmp_path, "agit")
    git(world.fleet, "config", "receive.procReceiveRefs", "refs/for")
    write_hook(world.fleet, "proc-receive", f"exec python3 {AGIT} ok")
    world.sync_until_unchanged()
    commit, ref, options = (world.fleet / "reviews").read_text().strip().split(" ", 2)
    assert (commit, ref) == (world.head("drafts/lisbon"), "refs/for/clusters/lisbon")
    assert options.startswith("[topic=drafts/lisbon][title=WIP: lisbon/web: install v1][description={base64}")
    body = base64.b64decode(options.partition("{base64}")[2].partition("]")[0]).decode()
    assert "to publish this draft" in body
    world.edit("drafts/lisbon", "web/deployment.yaml", "replicas: 2", "replicas: 5")
    world.sync_until_unchanged()
    assert len((world.fleet / "reviews").read_text().splitlines()) == 2


@pytest.mark.slow
@pytest.mark.parametrize("answer", ["topic-branch is not set"])
def test_a_refused_review_is_reported_and_retried(answer: str, tmp_path: Path) -> None:
    world = make_world(tmp_path, "agit")
    git(world.fleet, "config", "receive.procReceiveRefs", "refs/for")
    write_hook(world.fleet, "proc-receive", f"exec python3 {AGIT} '{answer}'")
    pass_result = world.sync()
    assert "PullRequestRefused" in pass_result.codes
    assert pass_result.report.due_at is not None
    write_hook(world.fleet, "proc-receive", f"exec python3 {AGIT} ok")
    assert "PullRequestRefused" not in world.sync().codes
    assert world.sync_until_unchanged().is_unchanged


@pytest.mark.emits("push_options_unsupported")
def test_drafts_are_pushed_to_a_host_without_push_options(tmp_path: Path) -> None:
    world = make_world(tmp_path, "gitlab-push-options")
    git(world.fleet, "config", "receive.advertisePushOptions", "false")

    world.sync()

    assert world.head("drafts/lisbon") != ""
