"""A review by two people, told word for word: what each of them did, and what they saw (porch 7, git.md 3).

`fixtures/review/*.md` are the transcripts; `--rewrite-expected` writes them anew.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from reconciler.output.review.action_results import format_action_results
from reconciler.output.review.open_drafts import format_draft_text, format_drafts_text
from tests.support.forge_world import ForgeWorld, github_world
from tests.support.git_repositories import git
from tests.support.world import package, variant

FOLDER = Path(__file__).resolve().parents[2] / "fixtures" / "review"
GRACE = ("Grace", "grace@example.com")


class Transcript:
    """What was done and seen, as Markdown."""

    def __init__(self, world: ForgeWorld, title: str) -> None:
        self._world = world
        self._parts = [f"# {title}\n"]

    @property
    def text(self) -> str:
        """Return all of it; what differs from machine to machine is left out."""
        return (
            "\n".join(self._parts).replace(self._world.forge.url, "https://forge").replace(str(self._world.folder), "")
        )

    def did(self, what: str) -> None:
        """Begin a step."""
        self._parts.append(f"## {what}\n")

    def saw(self, what: str, text: str) -> None:
        """Take down what somebody saw."""
        self._parts.append(f"{what}:\n\n~~~\n{text.rstrip()}\n~~~\n")

    def passed(self) -> None:
        """Let passes run until nothing moves, and take down what the first of them decided."""
        first = self._world.sync()
        values = [f"{place}: {outcome}" for place, outcome in sorted(first.outcomes.items())]
        self.saw(
            "The pass", "\n".join([*values, *(f"{finding.code}: {finding.message}" for finding in first.findings)])
        )
        self._world.sync_until_unchanged()

    def showed(self, place: str) -> None:
        """Take down what `show` tells of one package."""
        sheets = self._world.list_open_drafts(place, whole=True)
        shown = [format_draft_text(draft_details, self._world.now, 40) for draft_details in sheets]
        self.saw(f"`reconciler show {place}`", "\n".join(shown) or "no draft is open")

    def listed(self) -> None:
        """Take down what is open, with the commands and on the forge."""
        self.saw("`reconciler drafts`", format_drafts_text(self._world.list_open_drafts(), self._world.now))
        open_ones = sorted(self._world.open_requests.items())
        lines = [
            f"#{pull_request.number} {head} → {pull_request.base}{' (draft)' * pull_request.draft}: {pull_request.title}"
            for head, pull_request in open_ones
        ]
        self.saw("Pull requests", "\n".join(lines) or "none")

    def published(self, cluster: str) -> None:
        """Take down the cluster branch."""
        log = git(self._world.fleet, "log", "--first-parent", "--format=%an: %s", f"clusters/{cluster}")
        self.saw(f"`git log --first-parent clusters/{cluster}`", log)


@contextmanager
def told(world: ForgeWorld, name: str, title: str, rewrite: bool) -> Iterator[Transcript]:
    """Yield a transcript, and compare it with the one that is expected."""
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
        told(world, "two-people", "Two people review lisbon", rewrite) as transcript,
    ):
        step: Callable[[str], None] = transcript.did
        step("Two packages are drafted")
        world.release("api", "v1", package("api", replicas=1))
        world.write({"api-lisbon.yaml": variant("api-lisbon", "lisbon", "api")})
        transcript.passed()
        transcript.listed()
        transcript.saw("The pull request says", world.open_requests["drafts/lisbon"].body)

        step("Ada has an opinion: she commits to the draft, and says why in a comment")
        world.edit("drafts/lisbon", "web/deployment.yaml", "replicas: 2 #", "replicas: 4 # Black Friday\n#")
        transcript.passed()

        step("Upstream has another one")
        world.release("web", "v2", package("web", replicas=3, image="2.0"))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v2")})
        transcript.passed()
        transcript.showed("lisbon/web")

        step("Grace approves api alone, and Ada squashes the rest on the forge")
        acted = world.run_review_action("approve", "lisbon/api", should_approve_unproposed=True, message="small enough")
        transcript.saw("`reconciler approve lisbon/api --propose`", format_action_results(acted, GRACE))
        transcript.passed()
        transcript.listed()
        pull_request = world.open_requests["drafts/lisbon"]
        pull_request.draft = False
        world.on_forge.merge(pull_request.number, "squash", f"{pull_request.title} (#{pull_request.number})")
        transcript.passed()
        transcript.published("lisbon")

        step("The next update starts from what was published")
        world.release("web", "v3", package("web", replicas=3, image="3.0"))
        world.write({"web-lisbon.yaml": variant("web-lisbon", "lisbon", "web", "v3")})
        transcript.passed()
        transcript.showed("lisbon/web")

        step("Nobody wants it")
        world.on_forge.close(world.open_requests["drafts/lisbon"])
        transcript.passed()
        transcript.listed()
        tags = git(world.fleet, "tag", "--list", "--format=%(refname:short): %(contents:subject)")
        transcript.saw("`git tag`", tags or "none")
        assert world.sync_until_unchanged().is_unchanged
