"""Push options with real repositories whose hook records the options."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId
from reconciler.git.errors import GitFailedError, RepositoryMissingError
from reconciler.git.mirror import Mirror
from reconciler.git.names import check_push_option
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushDone, PushFailed, PushRefused, PushUnit, RefUpdate
from tests.support.git_repositories import git, make_bare, read_refs, write_hook

pytestmark = pytest.mark.usefixtures("each_git")

# one line for each push: its options, then its refs
NOTE = """
refs=$(cut -d' ' -f3 | tr '\\n' ' ')
n=0; options=""
while [ "$n" -lt "${GIT_PUSH_OPTION_COUNT:-0}" ]; do
  options="$options[$(printenv GIT_PUSH_OPTION_$n)]"; n=$((n + 1))
done
echo "$options $refs" >> pushes
"""
CREATE = ("merge_request.create", "merge_request.title=api: größer, better")
FOR = "refs/for/main"


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    folder = make_bare(tmp_path / "remote.git", receive__advertisePushOptions="true")
    write_hook(folder, "pre-receive", NOTE)
    return folder


@pytest.fixture
def deaf(tmp_path: Path) -> Path:
    folder = make_bare(tmp_path / "deaf.git", receive__advertisePushOptions="false")
    write_hook(folder, "pre-receive", NOTE)
    return folder


def open_mirror(tmp_path: Path, remote: Path) -> Mirror:
    mirror = Mirror.open(tmp_path / "cache", str(remote), GitOptions())
    mirror.fetch("target")
    return mirror


def write(mirror: Mirror, *texts: str) -> list[CommitId]:
    return mirror.write_commits(
        [NewCommit((), (PutFile("text", text.encode()),), text, 1, has_empty_base=True) for text in texts]
    )


def unit(name: str, commit: CommitId, options: tuple[str, ...] = ()) -> PushUnit:
    return PushUnit(name, (RefUpdate(f"refs/heads/drafts/{name}", commit, None),), options)


def pushes(remote: Path) -> list[str]:
    return [line.strip() for line in (remote / "pushes").read_text("utf-8").splitlines()]


def test_a_unit_with_options_is_a_push_of_its_own(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    names = ("c1", "c2", "c3", "c4")
    mapping = {"c2": CREATE, "c4": ("ci.skip",)}
    commits = write(mirror, *names)
    units = [unit(name, commit, mapping.get(name, ())) for name, commit in zip(names, commits, strict=True)]

    report = mirror.push(units)

    assert report.is_complete
    assert pushes(remote) == [
        "refs/heads/drafts/c1 refs/heads/drafts/c3",
        "[merge_request.create][merge_request.title=api: größer, better] refs/heads/drafts/c2",
        "[ci.skip] refs/heads/drafts/c4",
    ]
    assert mirror.can_use_push_options
    assert mirror.push(units).is_complete
    assert len(pushes(remote)) == 3


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize("atomic", ["true", "false"])
def test_a_host_without_push_options_gets_the_unit_all_the_same(tmp_path: Path, deaf: Path, atomic: str) -> None:
    git(deaf, "config", "receive.advertiseAtomic", atomic)
    mirror = open_mirror(tmp_path, deaf)
    first, second = write(mirror, "one", "two")

    report = mirror.push([unit("c1", first, CREATE)])

    assert report["c1"] == PushDone()
    assert not mirror.can_use_push_options
    assert mirror.push([unit("c2", second, CREATE)]).is_complete
    assert pushes(deaf) == ["refs/heads/drafts/c1", "refs/heads/drafts/c2"]
    assert mirror.refs() == read_refs(deaf)


def test_deletions_ahead_of_a_unit_are_pushed_without_its_options(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    first, second = write(mirror, "one", "two")
    mirror.push([unit("c1", first)])
    updates = (RefUpdate("refs/heads/drafts/c1", None, first), RefUpdate("refs/heads/drafts/c1/api", second, None))

    report = mirror.push([PushUnit("c1", updates, CREATE[:1])])

    assert report.is_complete
    assert pushes(remote)[1:] == ["refs/heads/drafts/c1", "[merge_request.create] refs/heads/drafts/c1/api"]


def test_a_refusal_is_reported_as_for_any_other_push(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    write_hook(remote, "pre-receive", 'echo "no title" >&2; exit 1')

    report = mirror.push([unit("c1", write(mirror, "one")[0], CREATE)])

    assert report["c1"] == PushRefused("pre-receive hook declined; no title")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("option", "ok"),
    [
        pytest.param("merge_request.title=two words", True, id="one-line"),
        pytest.param("", True, id="empty"),
        pytest.param("x" * 65_516, True, id="as-long-as-a-packet"),
        pytest.param("x" * 65_517, False, id="longer-than-a-packet"),
        pytest.param("title=a\nb", False, id="line-break"),
        pytest.param("title=a\0b", False, id="nul"),
    ],
)
def test_an_option_is_one_line_that_fits(tmp_path: Path, remote: Path, option: str, ok: bool) -> None:
    mirror = open_mirror(tmp_path, remote)
    [commit] = write(mirror, "one")

    if ok:
        assert check_push_option(option) == option
        assert mirror.push([unit("c1", commit, (option,))]).is_complete
    else:
        with pytest.raises(ValueError, match=r"one line of at most 65516 bytes"):
            mirror.push([unit("c1", commit, (option,))])
        with pytest.raises(ValueError, match=r"one line"):
            mirror.push_for_review(commit, FOR, [option])


def speak_agit(remote: Path, answer: str = "ok") -> None:
    # like a forge: proc-receive accepts refs/for/ and creates no ref of that name
    git(remote, "config", "receive.procReceiveRefs", "refs/for")
    hook = Path(__file__).parents[1] / "support" / "agit_hook.py"
    write_hook(remote, "proc-receive", f"exec python3 {hook} '{answer}'")


def test_a_commit_for_review_makes_no_ref(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    speak_agit(remote)
    [commit] = write(mirror, "one")

    outcome = mirror.push_for_review(commit, FOR, ["topic=drafts/c1", "force-push=true"])

    assert outcome == PushDone()
    assert (remote / "reviews").read_text() == f"{commit} {FOR} [topic=drafts/c1][force-push=true]\n"
    assert read_refs(remote) == mirror.refs() == {}
    assert not git(mirror.folder, "for-each-ref")


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        pytest.param("new commit is same with old commit", PushDone(), id="already-applied"),
        pytest.param("topic-branch is not set", PushRefused("topic-branch is not set"), id="refused"),
    ],
)
def test_a_review_that_the_host_does_not_take(tmp_path: Path, remote: Path, answer: str, expected: object) -> None:
    mirror = open_mirror(tmp_path, remote)
    speak_agit(remote, answer)

    outcome = mirror.push_for_review(write(mirror, "one")[0], FOR, [])

    assert outcome == expected


def test_a_review_needs_push_options(tmp_path: Path, deaf: Path) -> None:
    mirror = open_mirror(tmp_path, deaf)
    [commit] = write(mirror, "one")

    outcomes = [mirror.push_for_review(commit, FOR, ["topic=x"]) for _ in range(2)]

    refused = PushRefused("the host does not support push options, and a request for a review needs push options")
    assert outcomes == [refused, refused]
    assert read_refs(deaf) == {}


def test_a_review_that_does_not_get_through_may_be_tried_again(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    [commit] = write(mirror, "one")
    remote.rename(tmp_path / "elsewhere.git")

    outcome = mirror.push_for_review(commit, FOR, [])

    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, RepositoryMissingError)
    (tmp_path / "elsewhere.git").rename(remote)
    # a commit that the mirror does not have
    missing = mirror.push_for_review(CommitId("1" * 40), FOR, [])
    assert isinstance(missing, PushFailed)
    assert isinstance(missing.error, GitFailedError)


@pytest.mark.parametrize("ref", ["refs/heads/main", "refs/for", "refs/for/../x"])
def test_a_review_goes_below_refs_for(tmp_path: Path, remote: Path, ref: str) -> None:
    mirror = open_mirror(tmp_path, remote)

    with pytest.raises(ValueError, match=r"refs/for|usable"):
        mirror.push_for_review(write(mirror, "one")[0], ref, [])
