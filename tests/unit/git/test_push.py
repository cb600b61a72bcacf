"""Pushes with a fake Git: the arguments of git, the lock, the tracking refs after a push, and the outcomes of failures."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import BinaryIO

import pytest

from reconciler.git.command import GitCommand, GitResult
from reconciler.git.errors import (
    AccessDeniedError,
    GitError,
    GitFailedError,
    RateLimitedError,
    SymbolicRefError,
    UnreachableError,
)
from reconciler.git.options import GitOptions
from reconciler.git.push import RefPusher
from reconciler.git.push_outcomes import (
    RATE_LIMIT_MESSAGE,
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushStale,
    PushUnit,
    RefUpdate,
)
from reconciler.git.rate_limit import PushRateLimiter
from reconciler.git.url import parse_url

OLD, NEW, OTHER = "1" * 40, "2" * 40, "3" * 40
URL = "https://host.example/fleet.git"
REVIEW = "refs/for/main"
HEADS = "refs/heads/"
TRACKING = "refs/remotes/origin/"
STAGING = "refs/out/"
LOCK_DESCRIPTOR = 7
NO_OPTIONS = "fatal: the receiving end does not support push options"
NO_ATOMIC = "fatal: the receiving end does not support --atomic push"
REFUSED_OPTIONS = PushRefused("the host does not support push options, and a request for a review needs push options")


class FakeGit(GitCommand):
    """Runs the Git commands of a push on the refs of a remote and of a mirror. The mirror has fetched all branches.

    Attributes:
        remote: The refs of the remote.
        symbolic_refs: The symbolic refs of the remote with their targets.
        mirror: The tracking refs and the staged refs of the mirror.
        pushes: The arguments of each `git push`.
        find_failure: Returns the result of a push of the given refs if the push fails.
        before_command: Is called before each command. It can change the refs, or raise the error of the command.
    """

    def __init__(self, branches: Mapping[str, str]) -> None:
        super().__init__(Path("mirror"), parse_url(URL), GitOptions())
        self.symbolic_refs: dict[str, str] = {}
        self.remote = {HEADS + branch: commit for branch, commit in branches.items()}
        self.mirror = {f"{TRACKING}heads/{branch}": commit for branch, commit in branches.items()}
        self.pushes: list[tuple[str, ...]] = []
        self.find_failure: Callable[[Collection[str]], GitResult | None] = lambda refs: None
        self.before_command: Callable[[tuple[str, ...]], None] = lambda arguments: None
        self._is_locked = False

    @contextmanager
    def lock(self) -> Iterator[int]:
        """Hold the lock of the mirror."""
        self._is_locked = True
        yield LOCK_DESCRIPTOR
        self._is_locked = False

    @property
    def pushed_refs(self) -> list[list[str]]:
        """The refspecs of each `git push`."""
        return [list(arguments[arguments.index("origin") + 1 :]) for arguments in self.pushes]

    @property
    def tracked_branches(self) -> dict[str, str]:
        """The branches in the mirror, without their prefix."""
        return {ref.removeprefix(f"{TRACKING}heads/"): commit for ref, commit in self.mirror.items()}

    def run(
        self,
        *arguments: str,
        stdin: bytes | BinaryIO = b"",
        lock_descriptor: int | None = None,
        accepted_exit_codes: tuple[int, ...] = (0,),
    ) -> GitResult:
        """Run one command on the dictionaries."""
        self.before_command(arguments)
        match arguments:
            case ("ls-remote", "--quiet", "--refs", "origin"):
                return succeed(f"{value}\t{ref}" for ref, value in self.remote.items())
            case ("ls-remote", "--quiet", "--symref", "--heads", "origin"):
                targets = [f"ref: {target}\t{ref}" for ref, target in self.symbolic_refs.items()]
                refs = [f"{value}\t{ref}" for ref, value in self.remote.items() if ref.startswith(HEADS)]
                return succeed([*targets, *refs])
            case ("for-each-ref", "--format=%(objectname) %(refname)", *folders):
                found = [ref for ref in self.mirror if ref.startswith(tuple(folders))]
                return succeed(f"{self.mirror[ref]} {ref}" for ref in found)
            case ("update-ref", "--stdin"):
                self._require_lock(lock_descriptor)
                assert isinstance(stdin, bytes)
                self._update_mirror(stdin.decode(errors="surrogateescape"))
                return succeed(())
        assert "push" in arguments
        self._require_lock(lock_descriptor)
        self.pushes.append(arguments)
        result = self._push(arguments)
        if result.exit_code not in accepted_exit_codes:
            raise self.build_error("push", result.stderr)
        return result

    def _require_lock(self, descriptor: int | None) -> None:
        assert self._is_locked
        assert descriptor == LOCK_DESCRIPTOR, "git must inherit the lock"

    def _update_mirror(self, text: str) -> None:
        for line in text.splitlines():
            match line.split(" "):
                case ("delete", ref):
                    del self.mirror[ref]
                case ("create", ref, value):
                    assert ref not in self.mirror
                    self.mirror[ref] = value
                case ("update", ref, value):
                    self.mirror[ref] = value
                case _:
                    raise AssertionError(line)

    def _push(self, arguments: tuple[str, ...]) -> GitResult:
        updates: dict[str, str | None] = {}
        for refspec in self.pushed_refs[-1]:
            source, _, ref = refspec.partition(":")
            if source == f"{STAGING}*":
                staged = {name: value for name, value in self.mirror.items() if name.startswith(STAGING)}
                updates |= {"refs/" + name.removeprefix(STAGING): value for name, value in staged.items()}
            else:
                updates[ref] = source or None
        if failure := self.find_failure(updates):
            return failure
        if REVIEW in updates:
            return succeed(())
        assert "--force-with-lease" in arguments
        stale = {ref for ref in updates if self.remote.get(ref) != self.mirror.get(get_tracking_ref(ref))}
        if stale:
            reasons = {ref: "stale info" if ref in stale else "atomic push failed" for ref in updates}
            return reject(reasons)
        for ref, value in updates.items():
            for refs, name in ((self.remote, ref), (self.mirror, get_tracking_ref(ref))):
                refs.pop(name, None)
                if value is not None:
                    refs[name] = value
        return succeed(())


def get_tracking_ref(ref: str) -> str:
    return TRACKING + ref.removeprefix("refs/")


def succeed(lines: Collection[str] | Iterator[str]) -> GitResult:
    return GitResult(0, "".join(f"{line}\n" for line in lines).encode(errors="surrogateescape"), "")


def fail(stderr: str, exit_code: int = 128) -> GitResult:
    return GitResult(exit_code, b"", stderr)


def reject(reasons: Mapping[str, str], stderr: str = "") -> GitResult:
    lines = [f"!\t{STAGING}x:{ref}\t[remote rejected] ({reason})" for ref, reason in reasons.items()]
    return GitResult(1, "".join(f"{line}\n" for line in lines).encode(), stderr)


def open_pusher(
    git: FakeGit, *, max_refs: int = 500, limiter: PushRateLimiter | None = None, **settings: bool
) -> RefPusher:
    options = GitOptions(max_refs_per_push=max_refs)
    return RefPusher(git, git.lock, options, limiter or PushRateLimiter(0), **settings)


def update(branch: str, new: str | None, expected: str | None) -> RefUpdate:
    return RefUpdate(HEADS + branch, new, expected)


def create(name: str, options: tuple[str, ...] = ()) -> PushUnit:
    return PushUnit(name, (update(name, NEW, None),), options)


def raise_for(error: Exception, *selected: str, skip: int = 0) -> Callable[[tuple[str, ...]], None]:
    """Return a `before_command` that raises `error` for commands with all `selected` arguments, after `skip` calls."""
    calls: list[tuple[str, ...]] = []

    def raise_error(arguments: tuple[str, ...]) -> None:
        if set(selected) <= set(arguments):
            calls.append(arguments)
            if len(calls) > skip:
                raise error

    return raise_error


def test_arguments_of_a_push() -> None:
    git = FakeGit({"b": OLD})

    report = open_pusher(git).push([PushUnit("a", (update("a", NEW, None), update("b", None, OLD)), ("x=1", "y"))], {})

    assert report.is_complete
    assert git.pushes == [
        (
            "-c", "remote.origin.fetch=+refs/*:refs/remotes/origin/*", "push", "--porcelain", "--atomic",
            "--force-with-lease", "--no-verify", "--no-progress", "--no-signed", "--recurse-submodules=no",
            "--push-option=x=1", "--push-option=y", "origin", "refs/out/*:refs/*", ":refs/heads/b",
        )
    ]  # fmt: skip
    assert git.remote == {"refs/heads/a": NEW}
    assert git.tracked_branches == {"a": NEW}


def test_arguments_of_a_push_for_review() -> None:
    git = FakeGit({})

    assert open_pusher(git).push_for_review(NEW, REVIEW, ["topic=x"]) == PushDone()
    assert git.pushes == [
        (
            "push", "--porcelain", "--no-verify", "--no-progress", "--no-signed", "--recurse-submodules=no",
            "--push-option=topic=x", "origin", f"{NEW}:{REVIEW}",
        )
    ]  # fmt: skip


@pytest.mark.parametrize(
    ("updates", "refspecs"),
    [
        pytest.param([update("a", None, OLD)], [":refs/heads/a"], id="deletion"),
        pytest.param([update("a", OLD, OLD)], ["refs/out/*:refs/*"], id="unchanged"),
        pytest.param([update("b", None, None), update("a", None, OLD)], [":refs/heads/a"], id="absent-and-deletion"),
        pytest.param([update("b", None, None)], None, id="absent"),
    ],
)
def test_refspecs_of_a_push(updates: list[RefUpdate], refspecs: list[str] | None) -> None:
    git = FakeGit({"a": OLD})

    report = open_pusher(git).push([PushUnit("x", tuple(updates))], {})

    assert report.is_complete
    assert git.pushed_refs == ([refspecs] if refspecs else [])


def test_only_the_last_fetch_is_checked_for_an_absent_ref() -> None:
    git = FakeGit({})
    git.remote[f"{HEADS}a"] = OTHER

    report = open_pusher(git).push([PushUnit("x", (update("a", None, None),))], {})

    assert report["x"] == PushDone()


def test_staged_refs_are_deleted_after_a_failed_push() -> None:
    git = FakeGit({})
    error = UnreachableError("no answer")
    git.before_command = raise_for(error, "push")

    report = open_pusher(git).push([create("a"), create("b")], {})

    assert report.outcomes == {"a": PushFailed(error), "b": PushFailed(error)}
    assert git.mirror == {}


def test_staged_refs_of_a_killed_process_are_not_pushed() -> None:
    git = FakeGit({})
    git.mirror |= {f"{STAGING}heads/x": OTHER, f"{STAGING}heads/\udcff": OTHER}

    report = open_pusher(git).push([create("a")], {})

    assert report["a"] == PushDone()
    assert git.remote == {"refs/heads/a": NEW}
    assert git.tracked_branches == {"a": NEW}


def test_a_unit_that_does_not_match_the_last_fetch_is_stale() -> None:
    git = FakeGit({"b": OLD})
    git.remote[f"{HEADS}b"] = OTHER

    report = open_pusher(git).push([create("a"), PushUnit("b", (update("b", NEW, OTHER),))], {})

    assert report.outcomes == {"a": PushDone(), "b": PushStale("refs/heads/b")}
    assert git.remote == {"refs/heads/a": NEW, "refs/heads/b": OTHER}
    assert len(git.pushes) == 1


def test_a_unit_without_updates_is_done() -> None:
    git = FakeGit({})
    git.before_command = raise_for(GitFailedError("the refs are only listed after an error"), "ls-remote", "--refs")

    report = open_pusher(git).push([PushUnit("a", ())], {})

    assert report.outcomes == {"a": PushDone()}
    assert git.pushes == []


STALE_UNIT = PushUnit("stale", (update("stale", NEW, OLD),))


@pytest.mark.parametrize(
    ("updates", "tracked"),
    [
        pytest.param([update("a", NEW, None)], {"b": OLD, "a": NEW}, id="created"),
        pytest.param([update("b", NEW, OLD)], {"b": NEW}, id="moved"),
        pytest.param([update("b", None, OLD)], {}, id="deleted"),
        pytest.param([update("b", OLD, OLD)], {"b": OLD}, id="unchanged"),
        pytest.param([update("a", NEW, None), update("b", None, OLD)], {"a": NEW}, id="two-refs"),
    ],
)
def test_tracking_refs_of_updates_that_another_replica_has_pushed(
    updates: list[RefUpdate], tracked: Mapping[str, str]
) -> None:
    git = FakeGit({"b": OLD, "stale": OLD})
    # Another replica has pushed the same updates.
    for ref, value in ((item.ref, item.new) for item in updates):
        git.remote.pop(ref, None)
        if value is not None:
            git.remote[ref] = value
    git.remote[f"{HEADS}stale"] = OTHER

    report = open_pusher(git).push([PushUnit("x", tuple(updates)), STALE_UNIT], {})

    assert report.outcomes == {"x": PushDone(), "stale": PushStale(f"{HEADS}stale")}
    assert git.tracked_branches == {**tracked, "stale": OLD}


def test_a_tracking_ref_that_a_fetch_has_moved_is_kept() -> None:
    git = FakeGit({"b": OLD})
    git.remote[f"{HEADS}b"] = NEW

    def fetch_after_list(arguments: tuple[str, ...]) -> None:
        if "for-each-ref" in arguments and git.pushes:
            git.mirror[f"{TRACKING}heads/b"] = OTHER

    git.before_command = fetch_after_list
    report = open_pusher(git).push([PushUnit("x", (update("b", NEW, OLD),))], {})

    assert report["x"] == PushDone()
    assert git.tracked_branches == {"b": OTHER}


def test_an_error_of_the_tracking_refs_is_ignored() -> None:
    git = FakeGit({"b": OLD})
    git.remote[f"{HEADS}b"] = NEW
    git.before_command = raise_for(GitFailedError("disk full"), "for-each-ref", skip=1)

    report = open_pusher(git).push([PushUnit("x", (update("b", NEW, OLD),))], {})

    assert report["x"] == PushDone()
    assert git.tracked_branches == {"b": OLD}


def test_tracking_refs_are_only_updated_after_an_error() -> None:
    git = FakeGit({"stale": OLD})
    git.remote[f"{HEADS}stale"] = OTHER
    pusher = open_pusher(git)

    for unit, outcome, reads in (
        (create("a"), PushDone(), 1),
        (STALE_UNIT, PushStale(f"{HEADS}stale"), 2),
        (create("b"), PushDone(), 1),
    ):
        git.before_command = raise_for(AssertionError("too many reads"), "for-each-ref", skip=reads)
        assert pusher.push([unit], {})[unit.name] == outcome


def test_without_the_branches_of_the_remote_nothing_is_pushed() -> None:
    git = FakeGit({})
    error = UnreachableError("no answer")
    git.before_command = raise_for(error, "ls-remote", "--heads")

    report = open_pusher(git).push([create("a"), create("b")], {})

    assert report.outcomes == {"a": PushFailed(error), "b": PushFailed(error)}
    assert git.pushes == []


def test_branches_that_cannot_be_read_after_the_push() -> None:
    git = FakeGit({"b": OLD})
    error = UnreachableError("no answer")
    git.before_command = raise_for(error, "ls-remote", "--heads", skip=1)

    report = open_pusher(git).push([create("a"), PushUnit("b", (update("b", NEW, OLD),))], {})

    # Only a new ref can be symbolic.
    assert report.outcomes == {"a": PushFailed(error), "b": PushDone()}


def test_symbolic_refs_and_conflicting_refs_are_not_pushed() -> None:
    git = FakeGit({"link": OLD, "target": OLD, "folder": OLD})
    git.symbolic_refs = {"refs/heads/link": "refs/heads/target"}
    units = [create("a"), PushUnit("b", (update("b", NEW, None), update("link", NEW, OLD))), create("folder/x")]

    report = open_pusher(git).push(units, git.remote)

    assert isinstance(report["b"], PushFailed)
    assert isinstance(report["b"].error, SymbolicRefError)
    assert report["b"].error.message == (
        "refs/heads/link is a symbolic ref to refs/heads/target at the remote. Nothing was pushed, because a push "
        "would move refs/heads/target without a review. Next step: delete the symbolic ref on the host with "
        "`git symbolic-ref --delete refs/heads/link`"
    )
    assert report["a"] == PushDone()
    assert report["folder/x"] == PushRefused("refs/heads/folder/x cannot be created while refs/heads/folder exists")
    assert git.remote == {f"{HEADS}{name}": OLD for name in ("link", "target", "folder")} | {f"{HEADS}a": NEW}


@pytest.mark.parametrize(
    "units",
    [
        pytest.param([create("a"), PushUnit("b", create("a").updates)], id="ref"),
        pytest.param([create("a"), PushUnit("a", create("b").updates)], id="unit"),
    ],
)
def test_a_push_contains_each_name_once(units: list[PushUnit]) -> None:
    with pytest.raises(ValueError, match=r"^a push must not contain a push unit or a ref twice$"):
        open_pusher(FakeGit({})).push(units, {})


def test_a_branch_that_the_push_has_also_moved() -> None:
    git = FakeGit({})

    def move_target(arguments: tuple[str, ...]) -> None:
        if "--heads" in arguments and git.pushes:
            git.remote[f"{HEADS}target"] = NEW

    git.before_command = move_target
    report = open_pusher(git).push([create("a"), PushUnit("b", (update("b", OTHER, None),))], {})

    assert isinstance(report["a"], PushFailed)
    assert isinstance(report["a"].error, SymbolicRefError)
    assert report["b"] == PushDone()


def test_an_accepted_ref_of_a_failed_unit_was_not_moved_by_another_unit() -> None:
    git = FakeGit({})

    def accept_half(arguments: tuple[str, ...]) -> None:
        if "--heads" in arguments and git.pushes:
            git.remote[f"{HEADS}half"] = NEW

    git.before_command = accept_half
    git.find_failure = lambda refs: fail("remote: refused", 1) if "refs/state/half" in refs else None
    failed = PushUnit("half", (update("half", NEW, None), RefUpdate("refs/state/half", OTHER, None)))
    report = open_pusher(git).push([create("a"), failed], {})

    assert report["a"] == PushDone()
    assert isinstance(report["half"], PushFailed)


@pytest.mark.parametrize("exit_code", [1, 128, 255])
@pytest.mark.parametrize(
    ("stderr", "error"),
    [
        pytest.param("fatal: Authentication failed", AccessDeniedError, id="credentials"),
        pytest.param("error: 429 too many requests", RateLimitedError, id="limit"),
        pytest.param("fatal: the remote end hung up", UnreachableError, id="connection"),
    ],
)
def test_a_specific_error_applies_to_all_units(exit_code: int, stderr: str, error: type[GitError]) -> None:
    git = FakeGit({})
    git.find_failure = lambda refs: fail(stderr, exit_code)

    report = open_pusher(git).push([create("a"), create("b")], {})

    for name in "ab":
        outcome = report[name]
        assert isinstance(outcome, PushFailed)
        assert type(outcome.error) is error
        assert outcome.error.message == f"git push of {URL} failed: {stderr}"
    assert len(git.pushes) == 1


@pytest.mark.parametrize("exit_code", [1, 128, 255])
@pytest.mark.parametrize("stderr", ["fatal: unknown", "remote: repository not found"])
def test_a_vague_error_applies_to_the_unit_that_causes_it(exit_code: int, stderr: str) -> None:
    git = FakeGit({})
    git.find_failure = lambda refs: fail(stderr, exit_code) if f"{HEADS}b" in refs else None

    report = open_pusher(git).push([create("a"), create("b"), create("c")], {})

    assert (report["a"], report["c"]) == (PushDone(), PushDone())
    assert isinstance(report["b"], PushFailed)
    assert report["b"].error.message.startswith("pushing b failed: no reason given")


def test_a_rejected_ref_is_the_reason_of_its_unit() -> None:
    git = FakeGit({})
    # The message of a hook must not be read as an error of the connection.
    git.find_failure = lambda refs: (
        reject({f"{HEADS}b": "hook declined"}, "remote: permission denied\n") if f"{HEADS}b" in refs else None
    )

    report = open_pusher(git).push([create("a"), create("b")], {})

    assert report.outcomes == {
        "a": PushDone(),
        "b": PushRefused("refs/heads/b: hook declined; permission denied"),
    }


def test_a_host_without_atomic_pushes_and_options() -> None:
    git = FakeGit({})
    pusher = open_pusher(git)

    def refuse_features(refs: Collection[str]) -> GitResult | None:
        if "--atomic" in git.pushes[-1]:
            return fail(NO_ATOMIC)
        return fail(NO_OPTIONS) if "--push-option=x" in git.pushes[-1] else None

    git.find_failure = refuse_features
    first = pusher.push([PushUnit("a", (update("a", NEW, None), update("b", NEW, None)), ("x",))], {})
    second = pusher.push([create("c", ("x",))], {})

    assert first.is_complete
    assert second.is_complete
    assert pusher.can_use_push_options is False
    features = [[item for item in push if item.startswith(("--atomic", "--push-option"))] for push in git.pushes]
    assert features == [["--atomic", "--push-option=x"], ["--push-option=x"], [], [], []]


def create_with_state(name: str, commit: str = NEW) -> PushUnit:
    return PushUnit(name, (update(name, commit, None), RefUpdate(f"refs/state/{name}", commit, None)))


def test_a_unit_without_atomic_pushes_is_completed_regardless_of_the_rate_limit() -> None:
    git = FakeGit({})
    pusher = open_pusher(git, limiter=PushRateLimiter(1, lambda: 0.0, max_wait_seconds=10), atomic=False)

    assert pusher.push([create_with_state("a")], {}).is_complete
    assert git.remote == {"refs/heads/a": NEW, "refs/state/a": NEW}
    assert len(git.pushes) == 2


@pytest.mark.parametrize(
    ("ref", "pushed"),
    [
        pytest.param("refs/heads/b", {"refs/heads/a", "refs/state/a"}, id="first-update"),
        pytest.param("refs/state/b", {"refs/heads/a", "refs/heads/b", "refs/state/a"}, id="last-update"),
    ],
)
def test_a_refused_unit_without_atomic_pushes(ref: str, pushed: set[str]) -> None:
    git = FakeGit({})
    git.find_failure = lambda refs: reject({ref: "hook declined"}) if ref in refs else None

    report = open_pusher(git, atomic=False).push([create_with_state("a"), create_with_state("b", OTHER)], {})

    assert report.outcomes == {"a": PushDone(), "b": PushRefused(f"{ref}: hook declined")}
    assert set(git.remote) == pushed
    assert not any("--atomic" in push for push in git.pushes)


def test_a_review_at_a_host_without_push_options_is_pushed_once() -> None:
    git = FakeGit({})
    git.find_failure = lambda refs: fail(NO_OPTIONS)
    pusher = open_pusher(git)
    usable = [pusher.can_use_push_options]

    outcomes = [pusher.push_for_review(NEW, REVIEW, ["topic=x"]) for _ in range(2)]

    assert outcomes == [REFUSED_OPTIONS, REFUSED_OPTIONS]
    assert [*usable, pusher.can_use_push_options] == [True, False]
    assert len(git.pushes) == 1


@pytest.mark.parametrize(
    ("result", "outcome"),
    [
        pytest.param(reject({REVIEW: "no topic"}), PushRefused("no topic"), id="refused"),
        pytest.param(
            reject({REVIEW: "failed to lock"}), f"pushing {REVIEW} failed: failed to lock", id="temporary-reason"
        ),
        pytest.param(fail("fatal: unknown"), f"git push of {URL} failed: fatal: unknown", id="vague-error"),
        pytest.param(
            fail("fatal: Authentication failed"),
            f"git push of {URL} failed: fatal: Authentication failed",
            id="specific-error",
        ),
    ],
)
def test_failures_of_a_review(result: GitResult, outcome: PushOutcome | str) -> None:
    git = FakeGit({})
    git.find_failure = lambda refs: result

    actual = open_pusher(git).push_for_review(NEW, REVIEW, [])

    assert (actual.error.message if isinstance(actual, PushFailed) else actual) == outcome


def test_a_review_whose_push_does_not_start() -> None:
    git = FakeGit({})
    error = UnreachableError("no answer")
    git.before_command = raise_for(error, "push")

    assert open_pusher(git).push_for_review(NEW, REVIEW, []) == PushFailed(error)


def test_a_review_waits_for_the_rate_limit() -> None:
    git = FakeGit({})
    pusher = open_pusher(git, limiter=PushRateLimiter(1, lambda: 0.0, max_wait_seconds=10))

    outcomes = [pusher.push_for_review(NEW, REVIEW, []) for _ in range(2)]

    assert outcomes == [PushDone(), PushPostponed(RATE_LIMIT_MESSAGE, 60)]
    assert len(git.pushes) == 1


def replace_by_folder(name: str) -> PushUnit:
    """Return a unit that deletes a branch and creates a branch below its name, which needs two pushes."""
    return PushUnit(name, (update(name, None, OLD), update(f"{name}/x", NEW, None)), ("y",))


def test_deletions_that_precede_other_updates_have_the_maximum_size() -> None:
    git = FakeGit({"a": OLD, "b": OLD})
    git.before_command = raise_for(GitFailedError("the refs are only listed after an error"), "ls-remote", "--refs")

    report = open_pusher(git, max_refs=1).push([replace_by_folder(name) for name in "ab"], git.remote)

    assert report.is_complete
    assert git.pushed_refs == [[":refs/heads/a"], [":refs/heads/b"], ["refs/out/*:refs/*"], ["refs/out/*:refs/*"]]
    assert ["--push-option=y" in push for push in git.pushes] == [False, False, True, True]
    assert git.remote == {"refs/heads/a/x": NEW, "refs/heads/b/x": NEW}


def test_a_unit_whose_deletion_fails_is_not_pushed() -> None:
    git = FakeGit({"a": OLD, "b": OLD})
    git.remote[f"{HEADS}a"] = OTHER

    report = open_pusher(git, max_refs=1).push([replace_by_folder(name) for name in "ab"], git.mirror)

    assert report.outcomes == {"a": PushStale("refs/heads/a"), "b": PushDone()}
    assert git.remote == {"refs/heads/a": OTHER, "refs/heads/b/x": NEW}


def test_deletions_wait_for_the_rate_limit() -> None:
    git = FakeGit({"a": OLD, "b": OLD, "c": OLD})
    now = 0.0
    pusher = open_pusher(git, max_refs=1, limiter=PushRateLimiter(2, lambda: now, max_wait_seconds=10))
    postponed = PushPostponed(RATE_LIMIT_MESSAGE, 60)

    first = pusher.push([replace_by_folder("b"), replace_by_folder("c")], {}, reserved_pushes=1)
    now += 60
    second = pusher.push([replace_by_folder("a"), replace_by_folder("c")], {}, reserved_pushes=1)

    # The unit that waits is first. After a deletion, the other updates are pushed regardless of the limit.
    assert first.outcomes == {"b": PushDone(), "c": postponed}
    assert second.outcomes == {"a": postponed, "c": PushDone()}
    assert git.remote == {"refs/heads/a": OLD, "refs/heads/b/x": NEW, "refs/heads/c/x": NEW}


def test_units_wait_until_they_are_pushed() -> None:
    git = FakeGit({})
    now = 0.0
    pusher = open_pusher(git, max_refs=1, limiter=PushRateLimiter(1, lambda: now, max_wait_seconds=10))
    postponed = PushPostponed(RATE_LIMIT_MESSAGE, 60)

    def push(*units: PushUnit) -> dict[str, PushOutcome]:
        return dict(pusher.push(units, {}).outcomes)

    assert push(create("b"), create("c")) == {"b": PushDone(), "c": postponed}
    now += 60
    assert push(create("a"), create("c")) == {"a": postponed, "c": PushDone()}
    now += 60
    # The unit "a" has waited, and "c" has not.
    assert push(create("a"), PushUnit("c", (update("c", OTHER, NEW),))) == {"a": PushDone(), "c": postponed}
    now += 60
    assert push(PushUnit("a", (update("a", OTHER, NEW),)), PushUnit("c", (update("c", OTHER, NEW),))) == {
        "a": postponed,
        "c": PushDone(),
    }
    now += 60
    # Both units have not waited, because the last call pushed "c". Their names determine the order.
    assert push(create("d"), PushUnit("c", (update("c", NEW, OTHER),))) == {"d": postponed, "c": PushDone()}


def test_reserved_pushes_are_left_to_later_calls() -> None:
    git = FakeGit({})
    pusher = open_pusher(git, max_refs=1, limiter=PushRateLimiter(2, lambda: 0.0, max_wait_seconds=10))

    first = pusher.push([create("a"), create("b")], {}, reserved_pushes=1)
    second = pusher.push([create("c")], {})

    assert first.outcomes == {"a": PushDone(), "b": PushPostponed(RATE_LIMIT_MESSAGE, 60)}
    assert second.is_complete
