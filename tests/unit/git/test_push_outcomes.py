"""Tests of push outcomes with a fake remote."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given
from hypothesis import strategies as st

from reconciler.git.errors import AccessDeniedError, GitError, GitFailedError, UnreachableError
from reconciler.git.push_outcomes import (
    RATE_LIMIT_MESSAGE,
    PushAttempt,
    PushDone,
    PushFailed,
    PushOutcome,
    PushPostponed,
    PushRefused,
    PushStale,
    PushUnit,
    RefUpdate,
    _split_remaining,
    determine_outcome,
    determine_unlisted_outcome,
    find_ref_name_conflict,
    group_units,
    has_stale_reason,
    list_parent_folders,
    push_in_two_steps,
    push_until_settled,
    read_porcelain,
)

OLD, NEW, OTHER = "0" * 40, "1" * 40, "2" * 40


@dataclass
class FakeRemote:
    """A remote with atomic pushes, which names the refused refs if configured, and counts pushes."""

    refs: dict[str, str] = field(default_factory=dict)
    poisoned: frozenset[str] = frozenset()
    names: bool = True
    reason: str = "pre-receive hook declined"
    pushes: int = 0

    def push(self, updates: Sequence[RefUpdate]) -> PushAttempt:
        self.pushes += 1
        stale = {u.ref: "stale info" for u in updates if self.refs.get(u.ref) not in {u.expected, u.new}}
        if stale:
            return PushAttempt(is_accepted=False, reasons={u.ref: "atomic push failed" for u in updates} | stale)
        if guilty := [u.ref for u in updates if u.ref in self.poisoned]:
            fromkeys = dict.fromkeys(guilty, "hook declined") if self.names else {}
            innocent = "atomic push failure" if self.names else self.reason
            return PushAttempt(is_accepted=False, reasons={u.ref: innocent for u in updates} | fromkeys)
        for update in updates:
            self.refs.pop(update.ref, None)
            if update.new is not None:
                self.refs[update.ref] = update.new
        return PushAttempt(is_accepted=True)

    def look(self) -> Mapping[str, str]:
        return dict(self.refs)


def build_unit(name: str, expected: str | None = None, new: str | None = NEW) -> PushUnit:
    refs = (f"refs/heads/{name}", f"refs/state/{name}")
    return PushUnit(name, tuple(RefUpdate(ref, new, expected) for ref in refs))


@pytest.mark.parametrize("names", [pytest.param(True, id="named"), pytest.param(False, id="unnamed")])
@given(
    size=st.integers(1, 40),
    poisoned=st.sets(st.integers(0, 39), max_size=4),
    stale=st.sets(st.integers(0, 39), max_size=4),
    there=st.sets(st.integers(0, 39), max_size=4),
)
def test_every_unit_receives_its_own_outcome(
    names: bool, size: int, poisoned: set[int], stale: set[int], there: set[int]
) -> None:
    refs = {update.ref: NEW for n in there for update in build_unit(str(n)).updates}
    refs |= {f"refs/heads/{n}": OTHER for n in stale - there}
    host = FakeRemote(refs, frozenset(f"refs/state/{n}" for n in poisoned), names)

    outcomes = push_until_settled([build_unit(str(n)) for n in range(size)], host.push, host.look)

    for n in range(size):
        kind = PushDone if n in there else PushStale if n in stale else PushRefused if n in poisoned else PushDone
        assert type(outcomes[str(n)]) is kind
        assert (host.refs.get(f"refs/state/{n}") == NEW) == (kind is PushDone)
    assert host.pushes <= 2 + 2 * max(1, len(poisoned)) * size.bit_length()


def test_one_unnamed_refusal_among_512_units_takes_19_pushes() -> None:
    host = FakeRemote(poisoned=frozenset({"refs/heads/200"}), names=False)

    outcomes = push_until_settled([build_unit(str(n)) for n in range(512)], host.push, host.look)

    assert [name for name, outcome in outcomes.items() if outcome != PushDone()] == ["200"]
    assert host.pushes <= 19  # This is the measured number of pushes for 512 units.


A, B, C = (build_unit(name) for name in "abc")
REST_OF_B = PushUnit("b", B.updates[1:])


@pytest.mark.parametrize(
    ("group", "remaining", "groups"),
    [
        pytest.param([A, B], [], [], id="nothing-remains"),
        pytest.param([A, B, C], [A, C], [[A, C]], id="fewer-units"),
        pytest.param([A, B], [A, REST_OF_B], [[A, REST_OF_B]], id="fewer-refs"),
        pytest.param([A], [A], [[A]], id="one-unit"),
        pytest.param([A, B, C], [A, B, C], [[A], [B, C]], id="halves"),
    ],
)
def test_a_group_is_divided_only_if_nothing_has_changed(
    group: list[PushUnit], remaining: list[PushUnit], groups: list[list[PushUnit]]
) -> None:
    assert _split_remaining(group, remaining) == groups


def test_locked_remote_ref_is_a_failure_and_no_refusal() -> None:
    host = FakeRemote(poisoned=frozenset({"refs/heads/a"}), names=False, reason="atomic transaction failed")

    [outcome] = push_until_settled([build_unit("a")], host.push, host.look).values()

    assert isinstance(outcome, PushFailed)
    assert outcome.error.next_step == "retry"


@pytest.mark.parametrize(
    ("reasons", "message"),
    [
        pytest.param({}, "no reason given", id="no-reason"),
        pytest.param({"heads": "failed to lock"}, "failed to lock", id="one-reason"),
        pytest.param(
            {"heads": "unpacker error", "state": "failed to lock"}, "failed to lock, unpacker error", id="two-reasons"
        ),
    ],
)
def test_message_of_a_failure_contains_the_unit_and_all_reasons(reasons: Mapping[str, str], message: str) -> None:
    attempt = PushAttempt(is_accepted=False, reasons={f"refs/{part}/a": reason for part, reason in reasons.items()})

    [outcome] = push_until_settled([build_unit("a")], lambda _: attempt, dict).values()

    assert isinstance(outcome, PushFailed)
    assert isinstance(outcome.error, GitFailedError)
    assert str(outcome.error) == f"pushing a failed: {message}"


HEADS, STATE = "refs/heads/a", "refs/state/a"


@pytest.mark.parametrize(
    ("remote", "reasons", "expected"),
    [
        pytest.param({HEADS: NEW, STATE: NEW}, {HEADS: "stale info"}, PushDone(), id="all-refs-have-the-new-values"),
        pytest.param({HEADS: OLD, STATE: OLD}, {}, None, id="no-reason"),
        pytest.param({HEADS: OLD, STATE: OLD}, {HEADS: "atomic push failed"}, None, id="an-unspecific-reason"),
        pytest.param(
            {HEADS: OLD, STATE: OLD},
            {HEADS: "hook declined"},
            PushRefused("refs/heads/a: hook declined"),
            id="a-specific-reason",
        ),
        pytest.param({HEADS: OLD, STATE: OTHER}, {}, PushStale(STATE), id="a-moved-ref"),
        pytest.param({HEADS: OLD, STATE: OLD}, {STATE: "fetch first"}, PushStale(STATE), id="a-stale-reason"),
        pytest.param({HEADS: OLD, STATE: OTHER}, {HEADS: "stale info"}, PushStale(STATE), id="the-moved-ref-is-named"),
        pytest.param({HEADS: NEW, STATE: OLD}, {HEADS: "stale info"}, None, id="a-reason-of-a-ref-with-the-new-value"),
    ],
)
def test_outcome_of_a_unit_after_a_failed_push(
    remote: Mapping[str, str], reasons: Mapping[str, str], expected: PushOutcome | None
) -> None:
    attempt = PushAttempt(is_accepted=False, reasons=reasons)

    assert determine_outcome(build_unit("a", expected=OLD), attempt, remote) == expected


ERROR = UnreachableError("gone")
SAME_COMMIT = "new commit is same with old commit"


@pytest.mark.parametrize(
    ("attempt", "expected"),
    [
        pytest.param(PushAttempt(is_accepted=True), PushDone(), id="accepted"),
        pytest.param(PushAttempt(False, {"refs/for/main": SAME_COMMIT}), PushDone(), id="the-request-has-the-commit"),
        pytest.param(
            PushAttempt(False, {"refs/for/main": "not allowed"}), PushRefused("not allowed"), id="another-reason"
        ),
        pytest.param(
            PushAttempt(False, {"refs/for/main": SAME_COMMIT, "refs/for/b": "not allowed"}),
            PushRefused(SAME_COMMIT),
            id="two-reasons",
        ),
        pytest.param(PushAttempt(is_accepted=False), PushFailed(ERROR), id="no-reason"),
    ],
)
def test_outcome_of_a_push_for_review(attempt: PushAttempt, expected: PushOutcome) -> None:
    unit = PushUnit("a", (RefUpdate("refs/for/main", NEW, None),))

    assert determine_unlisted_outcome(unit, attempt, ERROR) == expected


def test_conflicting_remote_ref_name_is_a_refusal() -> None:
    words = "remote: error: cannot lock ref 'refs/heads/a': 'refs/heads/a/b' exists; cannot create 'refs/heads/a'"
    attempt = PushAttempt(is_accepted=False, reasons={"refs/heads/a": "atomic transaction failed"}, stderr=words)

    [outcome] = push_until_settled([build_unit("a")], lambda _: attempt, dict).values()

    assert isinstance(outcome, PushRefused)
    assert "exists; cannot create" in outcome.message


def raise_unreachable() -> Mapping[str, str]:
    raise UnreachableError("gone")


@pytest.mark.parametrize(
    ("look", "kind"),
    [
        pytest.param(dict, AccessDeniedError, id="the-remote-can-be-read"),
        pytest.param(raise_unreachable, AccessDeniedError, id="nor-can-it-be-read"),
    ],
)
def test_connection_error_fails_all_units(look: Callable[[], Mapping[str, str]], kind: type[GitError]) -> None:
    attempt = PushAttempt(is_accepted=False, error=AccessDeniedError("no"))

    outcomes = push_until_settled([build_unit(str(n)) for n in range(9)], lambda _: attempt, look)

    assert {type(outcome.error) for outcome in outcomes.values() if isinstance(outcome, PushFailed)} == {kind}
    assert len(outcomes) == 9


def test_message_omits_lines_about_other_units() -> None:
    words = "remote: c1 is closed\nremote: error: hook declined to update refs/heads/a\nremote: refs/heads/b is bad\n"
    reasons = {"refs/heads/a": "hook declined", "refs/heads/b": "hook declined"}

    outcomes = push_until_settled(
        [build_unit("a"), build_unit("b")], lambda _: PushAttempt(False, reasons, words), dict
    )

    assert outcomes["a"] == PushRefused("refs/heads/a: hook declined; c1 is closed")
    assert outcomes["b"] == PushRefused("refs/heads/b: hook declined; c1 is closed; refs/heads/b is bad")


def test_last_ref_is_pushed_after_the_others_without_atomic_pushes() -> None:
    host = FakeRemote(poisoned=frozenset({"refs/heads/b"}))

    outcomes = push_in_two_steps([build_unit("a"), build_unit("b")], host.push, host.look)

    assert outcomes["a"] == PushDone()
    assert isinstance(outcomes["b"], PushRefused)
    assert host.refs == {"refs/heads/a": NEW, "refs/state/a": NEW}


@pytest.mark.parametrize(
    ("sizes", "refused", "steps"),
    [
        pytest.param((3, 1), "", [("first", ["a0", "a1"]), ("finish", ["a2", "b0"])], id="units-of-different-sizes"),
        pytest.param((2, 2), "", [("first", ["a0", "b0"]), ("finish", ["a1", "b1"])], id="two-refs"),
        pytest.param((1, 1), "", [("first", ["a0", "b0"])], id="one-ref"),
        pytest.param((2,), "a0", [("first", ["a0"])], id="nothing-follows-a-refusal"),
        pytest.param((2,), "a1", [("first", ["a0"]), ("finish", ["a1"])], id="the-last-ref-is-refused"),
    ],
)
def test_steps_of_a_push_without_atomic_pushes(
    sizes: tuple[int, ...], refused: str, steps: list[tuple[str, list[str]]]
) -> None:
    units = [
        PushUnit(name, tuple(RefUpdate(f"{name}{index}", NEW, None) for index in range(size)))
        for name, size in zip("ab", sizes, strict=False)
    ]
    host = FakeRemote(poisoned=frozenset({refused}))
    pushed: list[tuple[str, list[str]]] = []

    def build_push(step: str) -> Callable[[Sequence[RefUpdate]], PushAttempt]:
        def push(updates: Sequence[RefUpdate]) -> PushAttempt:
            pushed.append((step, [update.ref for update in updates]))
            return host.push(updates)

        return push

    outcomes = push_in_two_steps(units, build_push("first"), host.look, build_push("finish"))

    assert pushed == steps
    assert [name for name, outcome in outcomes.items() if outcome != PushDone()] == ([refused[0]] if refused else [])


def test_parse_porcelain_output() -> None:
    lines = [
        "To /srv/a.git",
        "*\trefs/out/heads/a:refs/heads/a\t[new branch]",
        "!\trefs/out/heads/b:refs/heads/b\t[rejected] (stale info)",
        "!\t:refs/heads/c\t[remote rejected] (deletion of the current branch prohibited)",
        "!\trefs/out/heads/d:refs/heads/d\t[remote failure] (remote failed to report status)",
        "!\trefs/out/heads/e:refs/heads/e\t[remote rejected] (hook declined (see the log))",
        "!\trefs/out/heads/f:refs/heads/f\t[remote rejected]",
        "Done",
    ]

    assert read_porcelain(lines) == {
        "refs/heads/b": "stale info",
        "refs/heads/c": "deletion of the current branch prohibited",
        "refs/heads/d": "remote failed to report status",
        "refs/heads/e": "hook declined (see the log)",
        "refs/heads/f": "[remote rejected]",
    }


@pytest.mark.parametrize(
    ("sizes", "groups"),
    [
        pytest.param([], [], id="nothing"),
        pytest.param([2, 2, 2], [["0", "1"], ["2"]], id="whole-units"),
        pytest.param([9, 1], [["0"], ["1"]], id="a-large-unit-goes-alone"),
        pytest.param([1, 4, 1], [["0", "1"], ["2"]], id="exactly-full"),
    ],
)
def test_group_units(sizes: list[int], groups: list[list[str]]) -> None:
    units = [PushUnit(str(n), (RefUpdate("r", None, None),) * size) for n, size in enumerate(sizes)]

    assert [[unit.name for unit in group] for group in group_units(reversed(units), 5)] == groups


def test_unit_with_options_is_pushed_alone_and_last() -> None:
    units = [PushUnit(name, (), options) for name, options in (("a", ("x",)), ("b", ()), ("c", ("x",)), ("d", ()))]

    assert [[unit.name for unit in group] for group in group_units(units, 5)] == [["b", "d"], ["a"], ["c"]]


def test_waiting_units_are_pushed_first() -> None:
    units = [PushUnit(name, (), options) for name, options in (("a", ()), ("b", ("x",)), ("c", ()), ("d", ()))]

    assert [[unit.name for unit in group] for group in group_units(units, 5, ["d", "b", "gone"])] == [
        ["d"],
        ["b"],
        ["a", "c"],
    ]


@pytest.mark.parametrize("way", [push_until_settled, push_in_two_steps])
def test_unsent_units_are_postponed_without_a_fetch(way: Callable[..., dict[str, PushOutcome]]) -> None:
    units = [build_unit("a"), build_unit("b")]
    waiting = PushAttempt(is_accepted=False, wait_seconds=42)

    outcomes = way(units, lambda updates: waiting, lambda: pytest.fail("nothing was sent"))

    assert outcomes == dict.fromkeys("ab", PushPostponed(RATE_LIMIT_MESSAGE, 42))


@pytest.mark.parametrize(
    ("ref", "new", "clash"),
    [
        pytest.param("refs/heads/a/b", NEW, "refs/heads/a", id="below-a-ref"),
        pytest.param("refs/heads/d", NEW, "refs/heads/d/", id="above-refs"),
        pytest.param("refs/heads/a", NEW, None, id="itself"),
        pytest.param("refs/heads/e", NEW, None, id="free"),
        pytest.param("refs/heads/a/b", None, None, id="a-deletion"),
    ],
)
def test_find_ref_name_conflict(ref: str, new: str | None, clash: str | None) -> None:
    assert find_ref_name_conflict(RefUpdate(ref, new, None), {"refs/heads/a"}, {"refs/heads", "refs/heads/d"}) == clash


@pytest.mark.parametrize(
    ("ref", "folders"),
    [
        pytest.param("refs/heads/a/b", ["refs/heads", "refs/heads/a"], id="in-a-folder"),
        pytest.param("refs/heads/a", ["refs/heads"], id="below-heads"),
    ],
)
def test_list_parent_folders(ref: str, folders: list[str]) -> None:
    assert list_parent_folders(ref) == folders


@pytest.mark.parametrize(("reason", "is_stale"), [("fetch first", True), ("hook declined", False)])
def test_has_stale_reason(reason: str, is_stale: bool) -> None:
    assert has_stale_reason(reason) is is_stale
