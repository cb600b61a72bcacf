"""Pushes to real repositories: leases, atomic units, the refs that refusals name, and the result on the remote."""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.catalog.files import CommitId, ObjectId
from reconciler.git.errors import GitTimeoutError, HostUntrustedError, RepositoryMissingError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, NewTag, PutFile
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushDone, PushFailed, PushRefused, PushStale, PushUnit, RefUpdate
from tests.support.git_repositories import assert_sound, commit_files, git, make_bare, read_ref, read_refs, write_hook

pytestmark = pytest.mark.usefixtures("each_git")


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "remote.git")


def open_mirror(tmp_path: Path, remote: Path, name: str = "cache", **options: float) -> Mirror:
    mirror = Mirror.open(tmp_path / name, str(remote), GitOptions(**options))  # type: ignore[arg-type]
    mirror.fetch("target")
    return mirror


def write(mirror: Mirror, *texts: str) -> list[CommitId]:
    return mirror.write_commits(
        [NewCommit((), (PutFile("text", text.encode()),), text, 1, has_empty_base=True) for text in texts]
    )


def create(name: str, *commits: CommitId) -> PushUnit:
    refs = [f"refs/heads/drafts/{name}", f"refs/reconciler/state/{name}"]
    return PushUnit(name, tuple(RefUpdate(ref, new, None) for ref, new in zip(refs, commits, strict=False)))


def test_a_unit_arrives_whole_and_is_remembered(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    draft, state = write(mirror, "draft", "state")

    report = mirror.push([create("c1", draft, state)])

    expected = {"refs/heads/drafts/c1": draft, "refs/reconciler/state/c1": state}
    assert report["c1"] == PushDone()
    assert report.is_complete
    assert read_refs(remote) == expected
    assert mirror.refs() == expected
    assert mirror.peel_ref("refs/heads/drafts/c1") == draft
    assert not git(mirror.folder, "for-each-ref", "refs/out")
    assert_sound(remote)
    assert_sound(mirror.folder)


def test_a_parentless_update_and_a_deletion(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    first, second, draft = write(mirror, "one", "two", "draft")
    mirror.push([create("c1", draft, first)])

    report = mirror.push(
        [
            PushUnit(
                "c1",
                (
                    RefUpdate("refs/heads/drafts/c1", None, draft),
                    RefUpdate("refs/reconciler/state/c1", second, first),
                ),
            )
        ]
    )

    assert report.is_complete
    assert read_refs(remote) == {"refs/reconciler/state/c1": second} == mirror.refs()


def test_another_writer_since_the_fetch_wins(tmp_path: Path, remote: Path) -> None:
    commit_files(remote, "refs/heads/drafts/c1", {"a": b"1"})
    mirror = open_mirror(tmp_path, remote)
    commit_id = mirror.refs()["refs/heads/drafts/c1"]
    theirs = commit_files(remote, "refs/heads/drafts/c1", {"a": b"2"})
    ours, state = write(mirror, "ours", "state")

    report = mirror.push(
        [
            PushUnit(
                "c1",
                (
                    RefUpdate("refs/heads/drafts/c1", ours, commit_id),
                    RefUpdate("refs/reconciler/state/c1", state, None),
                ),
            )
        ]
    )

    assert report["c1"] == PushStale("refs/heads/drafts/c1")
    assert report.stale_units == ("c1",)
    assert read_refs(remote) == {"refs/heads/drafts/c1": theirs}


@pytest.mark.parametrize(
    "update",
    [
        pytest.param(RefUpdate("refs/heads/gone", "2" * 40, "1" * 40), id="deleted-concurrently"),
        pytest.param(RefUpdate("refs/heads/main", "2" * 40, None), id="created-concurrently"),
        pytest.param(RefUpdate("refs/heads/main", None, "1" * 40), id="deletion-of-a-moved-ref"),
    ],
)
def test_what_was_planned_on_an_older_fetch_is_lost(tmp_path: Path, remote: Path, update: RefUpdate) -> None:
    before = commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror = open_mirror(tmp_path, remote)

    report = mirror.push([PushUnit("c1", (update,))])

    assert report["c1"] == PushStale(update.ref)
    assert read_refs(remote) == {"refs/heads/main": before}


@pytest.mark.quick_cases(every=2)
def test_what_another_replica_had_pushed_is_done(tmp_path: Path, remote: Path) -> None:
    result, two = open_mirror(tmp_path, remote, "one"), open_mirror(tmp_path, remote, "two")
    units = [create("c1", *write(mirror, "draft", "state")) for mirror in (result, two)]
    result.push([units[0]])

    report = two.push([units[1]])

    assert report["c1"] == PushDone()
    assert two.refs() == result.refs()
    [later] = write(two, "later")
    [old] = write(two, "draft")
    assert two.push([PushUnit("c1", (RefUpdate("refs/heads/drafts/c1", later, old),))]).is_complete


def test_a_deletion_of_a_deleted_ref_is_done(tmp_path: Path, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/drafts/c1", {"a": b"1"})
    git(remote, "update-ref", "refs/heads/drafts/c2", commit)
    mirror = open_mirror(tmp_path, remote)
    refs = mirror.refs()
    git(remote, "update-ref", "-d", "refs/heads/drafts/c1")
    state = write(mirror, "state")[0]

    report = mirror.push(
        [
            PushUnit("c1", (RefUpdate("refs/heads/drafts/c1", None, refs["refs/heads/drafts/c1"]),)),
            PushUnit("c2", (RefUpdate("refs/heads/drafts/c2", None, refs["refs/heads/drafts/c2"]),)),
            create("c3", state),
        ]
    )

    assert report.is_complete
    assert read_refs(remote) == {"refs/heads/drafts/c3": state} == mirror.refs()
    # The mirror in another process reads the tracking refs.
    assert git(mirror.folder, "for-each-ref", "--format=%(refname)") == "refs/remotes/origin/heads/drafts/c3"


def twenty(mirror: Mirror) -> list[PushUnit]:
    commits = write(mirror, *(f"{n}" for n in range(40)))
    return [create(f"c{n:02}", commits[n], commits[20 + n]) for n in range(20)]


def test_a_stale_unit_among_twenty_leaves_alone(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    units = twenty(mirror)
    commit_files(remote, "refs/heads/drafts/c07", {"a": b"1"})

    report = mirror.push(units)

    assert report.stale_units == ("c07",)
    assert sum(outcome == PushDone() for outcome in report.outcomes.values()) == 19
    assert read_ref(remote, "refs/reconciler/state/c07") is None


@pytest.mark.quick_cases(every=4)
@pytest.mark.parametrize(
    ("hook", "script", "words"),
    [
        pytest.param(
            "update",
            'case "$1" in refs/heads/drafts/c13) echo "drafts of c13 are closed"; exit 1;; esac',
            "refs/heads/drafts/c13: hook declined; drafts of c13 are closed",
            id="ref-in-the-message",
        ),
        pytest.param(
            "pre-receive",
            'if grep -q drafts/c13; then echo "a secret was found"; exit 1; fi',
            "pre-receive hook declined; a secret was found",
            id="no-ref-in-the-message",
        ),
    ],
)
def test_a_refused_unit_among_twenty_is_found(tmp_path: Path, remote: Path, hook: str, script: str, words: str) -> None:
    write_hook(remote, hook, script)
    mirror = open_mirror(tmp_path, remote)

    report = mirror.push(twenty(mirror))

    refused = {name: outcome for name, outcome in report.outcomes.items() if outcome != PushDone()}
    assert refused == {"c13": PushRefused(words)}
    assert len(read_refs(remote)) == 38


def test_a_host_that_forbids_force_refuses_with_its_words(tmp_path: Path, remote: Path) -> None:
    git(remote, "config", "receive.denyNonFastForwards", "true")
    mirror = open_mirror(tmp_path, remote)
    first, second, fine = write(mirror, "one", "two", "fine")
    mirror.push([create("c1", first)])

    report = mirror.push([PushUnit("c1", (RefUpdate("refs/heads/drafts/c1", second, first),)), create("c2", fine)])

    assert report["c1"] == PushRefused("refs/heads/drafts/c1: non-fast-forward; error: denying non-fast-forward "
                                   "refs/heads/drafts/c1 (you should pull first)")  # fmt: skip
    assert report["c2"] == PushDone()


def test_a_deleted_folder_frees_its_name(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    old, new, state = write(mirror, "old", "new", "state")
    mirror.push([create("c1", old)])

    report = mirror.push(
        [
            PushUnit(
                "c1",
                (
                    RefUpdate("refs/heads/drafts/c1", None, old),
                    RefUpdate("refs/heads/drafts/c1/api", new, None),
                    RefUpdate("refs/reconciler/state/c1", state, None),
                ),
            )
        ]
    )

    assert report.is_complete
    assert read_refs(remote) == {"refs/heads/drafts/c1/api": new, "refs/reconciler/state/c1": state} == mirror.refs()


def test_a_concurrently_moved_ref_is_not_replaced_by_a_folder(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    old, new = write(mirror, "old", "new")
    mirror.push([create("c1", old)])
    theirs = commit_files(remote, "refs/heads/drafts/c1", {"a": b"theirs"})

    report = mirror.push(
        [
            PushUnit(
                "c1",
                (RefUpdate("refs/heads/drafts/c1", None, old), RefUpdate("refs/heads/drafts/c1/api", new, None)),
            )
        ]
    )

    assert report["c1"] == PushStale("refs/heads/drafts/c1")
    assert read_refs(remote) == {"refs/heads/drafts/c1": theirs}


def test_a_foreign_branch_in_the_way_is_named(tmp_path: Path, remote: Path) -> None:
    commit_files(remote, "refs/heads/drafts", {"a": b"1"})
    mirror = open_mirror(tmp_path, remote)
    draft, state = write(mirror, "draft", "state")
    units = [create("c1", draft), PushUnit("c2", (RefUpdate("refs/reconciler/state/c2", state, None),))]

    report = mirror.push(units)

    assert report["c1"] == PushRefused("refs/heads/drafts/c1 cannot be created while refs/heads/drafts exists")
    assert report["c2"] == PushDone()


def test_a_hidden_ref_in_the_way_is_found_by_halving(tmp_path: Path, remote: Path) -> None:
    git(remote, "config", "transfer.hideRefs", "refs/heads/drafts")
    commit_files(remote, "refs/heads/drafts/c1/old", {"a": b"1"})
    # the later section of the file takes precedence
    git(remote, "config", "--remove-section", "receive")
    git(remote, "config", "receive.hideRefs", "!refs/heads/drafts")
    mirror = open_mirror(tmp_path, remote)
    first, second = write(mirror, "one", "two")

    report = mirror.push([create("c1", first), create("c2", second)])

    assert isinstance(report["c1"], PushRefused)
    assert report["c2"] == PushDone()


def test_without_atomic_pushes_the_state_goes_last(tmp_path: Path) -> None:
    remote = make_bare(tmp_path / "remote.git", receive__advertiseAtomic="false")
    write_hook(remote, "update", f'echo "$1" >> {tmp_path}/order; test "$1" != refs/heads/drafts/c2')
    mirror = open_mirror(tmp_path, remote)
    commits = write(mirror, *"abcdef")
    units = [create(f"c{n}", commits[n], commits[3 + n]) for n in range(3)]

    report = mirror.push(units)

    order = (tmp_path / "order").read_text().splitlines()
    assert report.outcomes == {
        "c0": PushDone(),
        "c1": PushDone(),
        "c2": PushRefused("refs/heads/drafts/c2: hook declined"),
    }
    assert max(order.index(f"refs/heads/drafts/c{n}") for n in range(3)) < order.index("refs/reconciler/state/c0")
    assert "refs/reconciler/state/c2" not in order


def test_more_refs_than_fit_into_one_push(tmp_path: Path, remote: Path) -> None:
    write_hook(remote, "pre-receive", f"wc -l >> {tmp_path}/pushes")
    mirror = open_mirror(tmp_path, remote, max_refs_per_push=7)

    report = mirror.push(twenty(mirror))

    pushes = [int(line) for line in (tmp_path / "pushes").read_text().split()]
    assert report.is_complete
    assert pushes == [6, 6, 6, 6, 6, 6, 4]


def test_a_repository_that_is_gone_fails_every_unit(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    units = twenty(mirror)
    remote.rename(tmp_path / "moved.git")

    report = mirror.push(units)

    [error] = {type(outcome.error) for outcome in report.outcomes.values() if isinstance(outcome, PushFailed)}
    assert error is RepositoryMissingError
    assert len(report.outcomes) == 20


@pytest.mark.parametrize(
    ("hook", "expected"),
    [
        pytest.param("pre-receive", PushFailed, id="before-it-arrived"),
        pytest.param("post-receive", PushDone, id="after-it-arrived"),
    ],
)
def test_after_a_timeout_the_remote_decides(tmp_path: Path, remote: Path, hook: str, expected: type) -> None:
    write_hook(remote, hook, "exec sleep 60 >/dev/null 2>&1")
    [draft] = write(open_mirror(tmp_path, remote), "draft")
    mirror = open_mirror(tmp_path, remote, timeout_seconds=2)

    outcome = mirror.push([create("c1", draft)])["c1"]

    assert type(outcome) is expected
    if isinstance(outcome, PushFailed):
        assert isinstance(outcome.error, GitTimeoutError)
    assert not list(remote.rglob("*.lock"))
    assert not git(mirror.folder, "for-each-ref", "refs/out")


def test_what_a_killed_process_had_staged_does_not_ride_along(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    ours, theirs = write(mirror, "ours", "theirs")
    git(mirror.folder, "update-ref", "refs/out/heads/drafts/c1", theirs)
    git(mirror.folder, "update-ref", "refs/out/heads/drafts/c2", theirs)

    report = mirror.push([create("c1", ours)])

    assert report.is_complete
    assert read_refs(remote) == {"refs/heads/drafts/c1": ours}


@pytest.mark.parametrize(
    "seconds",
    [pytest.param(-5, id="before-1970"), pytest.param(0, id="1970"), pytest.param(2**40, id="far-in-the-future")],
)
def test_strict_hosts_take_what_we_write(tmp_path: Path, seconds: int) -> None:
    remote = make_bare(tmp_path / "remote.git", receive__fsckObjects="true")
    mirror = open_mirror(tmp_path, remote)
    root = mirror.write_root_commit()
    [commit] = mirror.write_commits([NewCommit((root,), (PutFile("é/a", b"1"),), "no newline\n\nbody", seconds)])
    [tag] = mirror.write_tags([NewTag("c1/api/v1", commit, "published", seconds)])

    report = mirror.push([create("c1", commit, root), PushUnit("v1", (RefUpdate("refs/tags/c1/api/v1", tag, None),))])

    assert report.is_complete


def tags_of(mirror: Mirror, *names: str) -> dict[str, ObjectId]:
    commits = write(mirror, *names)
    written = mirror.write_tags(
        [NewTag(name, commit_id, name, 1) for name, commit_id in zip(names, commits, strict=True)]
    )
    return dict(zip(names, written, strict=True))


def test_a_tag_that_a_host_refuses_holds_up_no_other(tmp_path: Path, remote: Path) -> None:
    write_hook(remote, "update", 'case "$1" in */v2) echo protected >&2; exit 1;; esac')
    mirror = open_mirror(tmp_path, remote)
    tags = tags_of(mirror, "api/v1", "api/v2", "api/v3")

    report = mirror.push_tags(tags)

    assert read_refs(remote) == {"refs/tags/api/v1": tags["api/v1"], "refs/tags/api/v3": tags["api/v3"]}
    assert isinstance(report["api/v2"], PushRefused)
    assert "protected" in report["api/v2"].message
    assert (report["api/v1"], report["api/v3"]) == (PushDone(), PushDone())
    assert mirror.peel_ref("refs/tags/api/v1") == git(remote, "rev-parse", "api/v1^{commit}")


def test_a_concurrently_created_tag_is_kept(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    tags = tags_of(mirror, "api/v1", "api/v2")
    theirs = commit_files(remote, "refs/heads/main", {"a": b"1"})
    git(remote, "update-ref", "refs/tags/api/v1", theirs)

    report = mirror.push_tags(tags)

    assert report["api/v1"] == PushStale("refs/tags/api/v1")
    assert report["api/v2"] == PushDone()
    assert read_ref(remote, "refs/tags/api/v1") == theirs


def test_a_tag_that_another_replica_made_meanwhile_is_done(tmp_path: Path, remote: Path) -> None:
    result, other = open_mirror(tmp_path, remote), open_mirror(tmp_path, remote, "other")

    reports = [mirror.push_tags(tags_of(mirror, "api/v1")) for mirror in (result, other)]

    assert [report["api/v1"] for report in reports] == [PushDone(), PushDone()]


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can create a repository of another user")
def test_a_local_repository_of_another_user_must_be_listed(tmp_path: Path, remote: Path) -> None:
    for place in (remote, *remote.rglob("*")):
        os.chown(place, 65534, 65534)
    with pytest.raises(HostUntrustedError):
        open_mirror(tmp_path, remote)
    mirror = Mirror.open(tmp_path / "cache", str(remote), GitOptions(allowed_urls=(str(tmp_path),)))

    mirror.fetch("target")

    assert mirror.push([create("c1", *write(mirror, "draft"))]).is_complete


def test_deleting_what_is_absent_is_done_and_pushes_nothing(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    [draft] = write(mirror, "draft")
    absent = RefUpdate("refs/heads/absent", None, None)
    units = [
        PushUnit("a", (absent,)),
        PushUnit("b", (*create("b", draft).updates, replace(absent, ref="refs/heads/x"))),
    ]

    reports = [mirror.push(units[:1]), mirror.push(units[1:])]

    assert all(report.is_complete for report in reports)
    assert read_refs(remote) == {"refs/heads/drafts/b": draft}


def test_a_unit_may_depend_on_what_it_leaves_alone(tmp_path: Path, remote: Path) -> None:
    result = commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror = open_mirror(tmp_path, remote)
    guard = RefUpdate("refs/heads/main", result, result)
    draft, other = write(mirror, "draft", "other")
    units = [PushUnit(f"c{n}", (guard, *create(f"c{n}", new).updates)) for n, new in enumerate((draft, other))]

    first = mirror.push([PushUnit("guard", (guard,))]), mirror.push(units[:1])
    commit_files(remote, "refs/heads/main", {"a": b"2"})
    second = mirror.push(units[1:])

    assert all(report.is_complete for report in first)
    assert second["c1"] == PushStale("refs/heads/main")
    assert sorted(read_refs(remote)) == ["refs/heads/drafts/c0", "refs/heads/main"]


def test_tags_are_pushed_like_anything_else(tmp_path: Path, remote: Path) -> None:
    mirror = open_mirror(tmp_path, remote)
    [commit] = write(mirror, "published")
    unit = PushUnit("v1", (RefUpdate("refs/tags/c1/api/v1", commit, None),))

    first, second = mirror.push([unit]), open_mirror(tmp_path, remote, "other").push([])

    assert first.is_complete
    assert second.outcomes == {}
    assert read_refs(remote) == {"refs/tags/c1/api/v1": commit}


@pytest.mark.parametrize(
    "updates",
    [
        pytest.param([RefUpdate("refs/heads/../x", None, None)], id="a-ref-with-dots"),
        pytest.param([RefUpdate("main", None, None)], id="a-short-ref"),
        pytest.param([RefUpdate("refs/heads/a", "HEAD", None)], id="no-id"),
        pytest.param([RefUpdate("refs/heads/a", None, None)] * 2, id="one-ref-twice"),
    ],
)
def test_what_cannot_be_pushed_is_our_bug(tmp_path: Path, remote: Path, updates: list[RefUpdate]) -> None:
    mirror = open_mirror(tmp_path, remote)

    with pytest.raises(ValueError, match=r"valid name|full|twice"):
        mirror.push([PushUnit(str(n), (update,)) for n, update in enumerate(updates)])
