"""Tests of a review by two people: the commands and outputs of each step are compared with a transcript.

`fixtures/review/*.md` are the transcripts. `--rewrite-expected` writes them again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.output.review.action_results import build_review_result, format_review_text
from reconciler.output.review.formats import format_draft_list_text, format_draft_text
from reconciler.output.review.open_drafts import build_draft_entry, build_draft_list_result
from tests.support.forge_world import ForgeWorld, github_world
from tests.support.git_repositories import git
from tests.support.world import package, variant

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "review"
GRACE = ("Grace", "grace@example.com")


class Transcript:
    """The steps and outputs of a review, as Markdown."""

    def __init__(self, world: ForgeWorld, title: str) -> None:
        self._world = world
        self._parts = [f"# {title}\n"]

    @property
    def text(self) -> str:
        """Return the whole transcript, without the parts that differ between machines."""
        return (
            "\n".join(self._parts).replace(self._world.forge.url, "https://forge").replace(str(self._world.folder), "")
        )

    def start_step(self, title: str) -> None:
        """Add a heading."""
        self._parts.append(f"## {title}\n")

    def record_output(self, title: str, text: str) -> None:
        """Add an output with its title."""
        self._parts.append(f"{title}:\n\n~~~\n{text.rstrip()}\n~~~\n")

    def record_pass(self) -> None:
        """Run passes until nothing changes, and add the outcomes of the first pass."""
        first = self._world.sync()
        values = [f"{package_path}: {outcome}" for package_path, outcome in sorted(first.outcomes.items())]
        self.record_output(
            "The pass", "\n".join([*values, *(f"{finding.code}: {finding.message}" for finding in first.findings)])
        )
        self._world.sync_until_unchanged()

    def record_package(self, package_path: str) -> None:
        """Add the output of `show` about one package."""
        all_details = self._world.list_open_drafts(package_path, whole=True)
        outputs = [format_draft_text(build_draft_entry(details, 40), self._world.now) for details in all_details]
        self.record_output(f"`reconciler show {package_path}`", "\n".join(outputs) or "no draft is open")

    def record_open_drafts(self) -> None:
        """Add the open drafts and the open pull requests."""
        result = build_draft_list_result(self._world.list_open_drafts(), "")
        self.record_output("`reconciler drafts`", format_draft_list_text(result, self._world.now))
        pull_requests = sorted(self._world.open_requests.items())
        lines = [
            f"#{pull_request.number} {head} → {pull_request.base}{' (draft)' * pull_request.draft}: {pull_request.title}"
            for head, pull_request in pull_requests
        ]
        self.record_output("Pull requests", "\n".join(lines) or "none")

    def record_target_branch(self, cluster: str) -> None:
        """Add the log of the target branch."""
        log = git(self._world.fleet, "log", "--first-parent", "--format=%an: %s", f"clusters/{cluster}")
        self.record_output(f"`git log --first-parent clusters/{cluster}`", log)


@contextmanager
def compare_transcript(world: ForgeWorld, name: str, title: str, rewrite: bool) -> Iterator[Transcript]:
    """Yield a transcript, and compare it with the expected file."""
    transcript = Transcript(world, title)
    yield transcript
    file = FOLDER / f"{name}.md"
    if rewrite:
        file.parent.mkdir(exist_ok=True)
        file.write_text(transcript.text)
    assert transcript.text == file.read_text()


@pytest.fixture
def rewrite(request: pytest.FixtureRequest) -> bool:
    return bool(request.config.getoption("--rewrite-expected"))


def test_two_people_review_one_cluster(tmp_path: Path, rewrite: bool) -> None:
    with (
        github_world(tmp_path, ("lisbon",), {"git": {"revision_tags": "all"}}, labels=["fleet"]) as world,
        compare_transcript(world, "two-people", "Two people review lisbon", rewrite) as transcript,
    ):
        step: Callable[[str], None] = transcript.start_step
        step("Two packages are drafted")
        world.release("api", "v1", package("api", replicas=1))
        world.write({"api-lisbon.yaml": variant("api-lisbon", "lisbon", "api")})
        transcript.record_pass()
        transcript.record_open_drafts()
        transcript.record_output("The pull request says", world.open_requests["drafts/lisbon"].body)

        step("Ada commits to the draft, and gives the reason in a comment")
        world.edit("drafts/lisbon", "web/deployment.yaml", "replicas: 2 #", "replicas: 4 # Black Friday\n#")
        transcript.record_pass()

        step("Upstream releases a conflicting version")
        world.release("web", "v2", package("web", replicas=3, image="2.0"))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        transcript.record_pass()
        transcript.record_package("lisbon/web")

        step("Grace approves only api, and Ada squashes the remaining draft on the forge")
        results = world.run_review_action(
            "approve", "lisbon/api", should_approve_unproposed=True, message="small enough"
        )
        text = format_review_text(build_review_result(results, "approve", "", GRACE))
        transcript.record_output("`reconciler approve lisbon/api --propose`", text)
        transcript.record_pass()
        transcript.record_open_drafts()
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.draft = False
        world.on_forge.merge(pull_request.number, "squash", f"{pull_request.title} (#{pull_request.number})")
        transcript.record_pass()
        transcript.record_target_branch("lisbon")

        step("The next update starts from the published packages")
        world.release("web", "v3", package("web", replicas=3, image="3.0"))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v3")})
        transcript.record_pass()
        transcript.record_package("lisbon/web")

        step("A person closes the pull request")
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        transcript.record_pass()
        transcript.record_open_drafts()
        tags = git(world.fleet, "tag", "--list", "--format=%(refname:short): %(contents:subject)")
        transcript.record_output("`git tag`", tags or "none")
        assert world.sync_until_unchanged().is_unchanged
