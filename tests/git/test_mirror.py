"""Mirrors of real repositories: fetched objects, written commits, and the state after a killed process."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from reconciler.catalog.files import EMPTY_TREE, BlobId, CommitId, File, FileTree, ObjectId, TreeId, compute_blob_id
from reconciler.git.errors import (
    CacheUnusableError,
    GitTimeoutError,
    MirrorBusyError,
    ObjectMissingError,
    TooLargeError,
    UrlRefusedError,
)
from reconciler.git.filesystem import hold_lock
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import DeletePath, NewCommit, NewTag, PutFile, PutObject
from reconciler.git.options import GitOptions
from reconciler.git.push_outcomes import PushUnit, RefUpdate
from reconciler.git.remote_credentials import CredentialSource, RemoteCredentials
from tests.support.examples import examples
from tests.support.full_disk import limit_file_size
from tests.support.git_repositories import assert_sound, commit_files, git, make_bare, read_refs

pytestmark = pytest.mark.usefixtures("each_git")

ABSENT = "1" * 40


@pytest.fixture
def remote(tmp_path: Path) -> Path:
    return make_bare(tmp_path / "remote.git")


@pytest.fixture
def mirror(tmp_path: Path, remote: Path) -> Mirror:
    return Mirror.open(tmp_path / "cache", str(remote))


def test_a_destination_has_heads_and_state_only(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    for ref in ("refs/heads/drafts/c1", "refs/reconciler/state/c1", "refs/tags/v1", "refs/notes/commits"):
        git(remote, "update-ref", ref, commit)

    mirror.fetch("target")

    assert mirror.refs() == dict.fromkeys(
        ["refs/heads/drafts/c1", "refs/heads/main", "refs/reconciler/state/c1"], commit
    )


def test_an_upstream_has_tags_forced_and_peeled(mirror: Mirror, remote: Path) -> None:
    first = commit_files(remote, "refs/heads/main", {"a": b"1"})
    git(remote, "tag", "-a", "-m", "one", "v1", first)
    mirror.fetch("upstream")
    second = commit_files(remote, "refs/heads/main", {"a": b"2"})
    git(remote, "tag", "-f", "-a", "-m", "again", "v1", second)

    mirror.fetch("upstream")

    assert mirror.refs()["refs/tags/v1"] == git(remote, "rev-parse", "refs/tags/v1")
    assert mirror.peel_ref("refs/tags/v1") == second
    assert mirror.peel_ref("refs/heads/main") == second
    assert mirror.peel_ref("refs/tags/v2") is None


def test_a_tag_of_a_tag_is_peeled_to_the_commit(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    git(remote, "tag", "-a", "-m", "one", "inner", commit)
    git(remote, "tag", "-a", "-m", "two", "outer", "inner")

    mirror.fetch("upstream")

    assert mirror.peel_ref("refs/tags/outer") == commit


def test_what_the_remote_lost_is_pruned(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/drafts/c1", {"a": b"1"})
    mirror.fetch("target")
    git(remote, "update-ref", "-d", "refs/heads/drafts/c1")
    git(remote, "update-ref", "refs/heads/drafts/c1/deeper", commit)

    mirror.fetch("target")

    assert mirror.refs() == {"refs/heads/drafts/c1/deeper": commit}


def test_a_rewritten_branch_is_followed(mirror: Mirror, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror.fetch("config")
    git(remote, "update-ref", "-d", "refs/heads/main")
    rewritten = commit_files(remote, "refs/heads/main", {"a": b"2"})

    mirror.fetch("config")

    assert mirror.refs() == {"refs/heads/main": rewritten}


def test_an_absent_branch_is_absent_and_no_error(mirror: Mirror, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})

    mirror.fetch("config", branches=["live"])

    assert mirror.refs() == {}


def test_state_may_stand_among_the_heads(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/reconciler/state/c1", {"a": b"1"})

    mirror.fetch("target", state_ref_prefix="refs/heads/reconciler/state/")

    assert mirror.refs() == {"refs/heads/reconciler/state/c1": commit}


def test_a_repository_may_be_upstream_and_destination(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    git(remote, "update-ref", "refs/tags/v1", commit)
    mirror.fetch("upstream")
    git(remote, "update-ref", "-d", "refs/tags/v1")

    mirror.fetch("target")

    assert mirror.refs() == {"refs/heads/main": commit}


def test_one_fetch_brings_all_of_an_upstream_that_is_a_destination(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    refs = dict.fromkeys(("refs/heads/main", "refs/tags/v1", "refs/reconciler/state/c1"), commit)
    for ref in refs:
        git(remote, "update-ref", ref, commit)

    mirror.fetch("both")

    assert mirror.refs() == refs


def test_every_kind_of_change(mirror: Mirror) -> None:
    start = NewCommit(
        (), (PutFile("a/x", b"1"), PutFile("a/y", b"2"), PutFile("b", b"3")), "start", 5, has_empty_base=True
    )
    [first] = mirror.write_commits([start])
    with mirror.open_reader() as reader:
        folder = reader.find_object_id(reader.read_commit(first).tree, "a")
    changes = (
        DeletePath("a/x"),
        DeletePath("absent"),
        PutFile('we"ird\\\nü', b"4", "100755"),
        PutObject("copy/of/a", TreeId(folder or "")),
        PutObject("run", compute_blob_id(b"3"), "100755"),
        PutObject("other", ObjectId(ABSENT), "160000"),
    )

    [second] = mirror.write_commits([NewCommit((first,), changes, "second", 6)])

    with mirror.open_reader() as reader:
        commit = reader.read_commit(second)
        mapping = {path: (mode, blob_id) for path, mode, blob_id in reader.walk(commit.tree)}
        assert mapping.pop("other") == ("160000", ABSENT)
        assert {path: (mode, reader.read_blob(blob)) for path, (mode, blob) in mapping.items()} == {
            "a/y": ("100644", b"2"),
            "b": ("100644", b"3"),
            "copy/of/a/x": ("100644", b"1"),
            "copy/of/a/y": ("100644", b"2"),
            'we"ird\\\nü': ("100755", b"4"),
            "run": ("100755", b"3"),
        }
        assert (commit.parents, commit.seconds, commit.message) == ((first,), 6, "second\n")


def test_commits_of_one_stream_may_build_on_each_other(mirror: Mirror) -> None:
    root = mirror.write_root_commit()
    commits = [
        NewCommit((root,), (PutFile("a", b"1"),), "left", 1),
        NewCommit((root,), (PutFile("b", b"1"),), "right", 1),
        NewCommit((0, 1), (PutFile("b", b"2"),), "merge", 1),
        NewCommit((2,), (PutFile("only", b"3"),), "fresh", 1, has_empty_base=True),
    ]

    left, right, merge, fresh = mirror.write_commits(commits)

    with mirror.open_reader() as reader:
        assert reader.read_commit(merge).parents == (left, right)
        assert [path for path, _, _ in reader.walk(reader.read_commit(merge).tree)] == ["a", "b"]
        assert [path for path, _, _ in reader.walk(reader.read_commit(fresh).tree)] == ["only"]
        assert reader.read_commit(root).tree == EMPTY_TREE


def test_equal_input_gives_equal_ids_and_moves_no_ref(tmp_path: Path, remote: Path) -> None:
    commits = [NewCommit((), tuple(PutFile(f"d/{i}", b"%d" % i) for i in range(150)), "m", 7, has_empty_base=True)]
    mirrors = [Mirror.open(tmp_path / name, str(remote)) for name in ("one", "two")]

    ids = [[*mirror.write_commits(commits), mirror.write_root_commit()] for mirror in mirrors]

    assert ids[0] == ids[1]
    assert ids[0][1] == "0c4edf8e42509e4cba0c42ab114da282d5ceaf18"  # a constant of all versions: branches start here
    for mirror in mirrors:
        assert read_refs(mirror.folder) == {}
        assert_sound(mirror.folder)


NAMES = st.sampled_from(["a", "b", "a/x", "a/y", "a.b", "a-b", "b/c/d", "ü", "a0", 'q"\\'])


@settings(
    max_examples=examples(25), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)  # the mirror only grows
@given(
    st.dictionaries(NAMES, st.binary(max_size=3), max_size=6),
    st.dictionaries(NAMES, st.binary(max_size=3), max_size=3),
    st.sets(NAMES),
)
def test_what_is_written_is_what_the_pure_trees_say(
    mirror: Mirror, start: dict[str, bytes], put: dict[str, bytes], drop: set[str]
) -> None:
    files = FileTree({path: File(data) for path, data in start.items() if not is_also_folder(path, start)})
    changed = files.without_files(*drop).with_files(put)
    changes = (
        *(DeletePath(path) for path in drop if path in files),
        *(PutFile(path, data) for path, data in put.items()),
    )
    assume(not any(is_also_folder(path, changed) for path in changed))

    commits = mirror.write_commits(
        [
            NewCommit(
                (), tuple(PutFile(path, file.data) for path, file in files.items()), "one", 0, has_empty_base=True
            ),
            NewCommit((0,), changes, "two", 0),
        ]
    )

    with mirror.open_reader() as reader:
        assert [reader.read_commit(commit).tree for commit in commits] == [files.id, changed.id]


def is_also_folder(path: str, paths: Iterable[str]) -> bool:
    return any(other.startswith(f"{path}/") for other in paths)


@pytest.mark.parametrize(
    ("seconds", "written"),
    [
        pytest.param(-1, 0, id="before-1970"),
        pytest.param(2**32 - 1, 2**32 - 1, id="the-latest"),
        pytest.param(2**40, 2**32 - 1, id="beyond-the-latest"),
    ],
)
def test_dates_are_clamped(mirror: Mirror, seconds: int, written: int) -> None:
    [commit] = mirror.write_commits([NewCommit((), (), "m", seconds, has_empty_base=True)])

    with mirror.open_reader() as reader:
        assert reader.read_commit(commit).seconds == written


@pytest.mark.parametrize(
    ("person", "seconds"),
    [
        pytest.param("Ada <a@b> 99999999999999999999999999 +0000", 2**32 - 1, id="absurd"),
        pytest.param("Ada <a@b> -5 +0000", 0, id="negative"),
        pytest.param("Ada <a@b>", 0, id="missing"),
        pytest.param("nobody", 0, id="no-mail"),
        pytest.param("Ada <a@b> 0012 +0000", 12, id="zero-padded"),
    ],
)
def test_broken_dates_of_others_are_read(mirror: Mirror, person: str, seconds: int) -> None:
    content = f"tree {EMPTY_TREE}\nauthor {person}\ncommitter {person}\n\nhello\n".encode()
    git(mirror.folder, "mktree")
    commit = git(mirror.folder, "hash-object", "-t", "commit", "-w", "--literally", "--stdin", stdin=content)

    with mirror.open_reader() as reader:
        assert reader.read_commit(CommitId(commit)).seconds == seconds


def test_only_the_tags_asked_for_are_brought_and_those_gone_forgotten(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    for name in ("c1/api/v1", "c1/api/v2", "c1/web/v1", "c2/api/v1"):
        git(remote, "update-ref", f"refs/tags/{name}", commit)
    mirror.fetch("target")
    none = [ref for ref in mirror.refs() if ref.startswith("refs/tags/")]

    mirror.fetch_tags(["c1/api/v", "c2/gone/v"])
    both = {ref for ref in mirror.refs() if ref.startswith("refs/tags/")}
    git(remote, "update-ref", "-d", "refs/tags/c1/api/v1")
    mirror.fetch_tags(["c1/api/v"])

    assert none == []
    assert both == {"refs/tags/c1/api/v1", "refs/tags/c1/api/v2"}
    assert "refs/tags/c1/api/v1" not in mirror.refs()
    assert mirror.refs()["refs/heads/main"] == commit


def test_a_remote_that_is_an_upstream_too_is_not_asked_for_tags_again(mirror: Mirror, remote: Path) -> None:
    mirror.fetch("both")
    git(remote, "update-ref", "refs/tags/v1", commit_files(remote, "refs/heads/main", {"a": b"1"}))

    mirror.fetch_tags(["v"])

    assert "refs/tags/v1" not in mirror.refs()


def test_a_tag_that_no_name_can_start_with_is_our_bug(mirror: Mirror) -> None:
    with pytest.raises(ValueError, match="valid name of a Git ref"):
        mirror.fetch_tags(["c1/*"])


def test_annotated_tags(mirror: Mirror) -> None:
    [commit] = mirror.write_commits([NewCommit((), (PutFile("a", b"1"),), "m", 1, has_empty_base=True)])

    tags = mirror.write_tags([NewTag(f"c1/api/v{n}", commit, "published", 7) for n in (1, 2)])

    assert git(mirror.folder, "cat-file", "tag", tags[1]) == (
        f"object {commit}\ntype commit\ntag c1/api/v2\ntagger reconciler <reconciler@localhost> 7 +0000\n\npublished"
    )
    assert_sound(mirror.folder)


@pytest.mark.parametrize(
    "commit",
    [
        pytest.param(NewCommit((), (PutFile("../a", b""),), "m", 0), id="parent-folder"),
        pytest.param(NewCommit((), (PutFile("a/.GIT/config", b""),), "m", 0), id="dot-git"),
        pytest.param(NewCommit((), (PutFile("/a", b""),), "m", 0), id="absolute"),
        pytest.param(NewCommit((), (PutFile("a", b"", "160000"),), "m", 0), id="submodule"),
        pytest.param(NewCommit((CommitId("--all"),), (), "m", 0), id="an-option-as-id"),
        pytest.param(NewCommit((0,), (), "m", 0), id="itself-as-parent"),
    ],
)
def test_what_no_tree_may_hold_is_our_bug(mirror: Mirror, commit: NewCommit) -> None:
    with pytest.raises(ValueError, match=r"must|usable|not"):
        mirror.write_commits([commit])


def test_a_missing_graft_is_reported_and_leaves_nothing(mirror: Mirror) -> None:
    with pytest.raises(ObjectMissingError):
        mirror.write_commits([NewCommit((), (PutObject("a", TreeId(ABSENT)),), "m", 0)])

    assert not list(mirror.folder.glob("fast_import_crash_*"))
    assert mirror.write_commits([NewCommit((), (), "m", 0)])


def test_reading_goes_on_after_what_is_missing(mirror: Mirror) -> None:
    mirror.write_commits([NewCommit((), (PutFile("a", b"1"), PutFile("b", b"2")), "m", 0)])
    ids = [compute_blob_id(b"1"), BlobId(ABSENT), compute_blob_id(b"2")]

    with mirror.open_reader() as reader:
        with pytest.raises(ObjectMissingError):
            reader.read_blobs(ids)
        with pytest.raises(ObjectMissingError):
            reader.read_commit(CommitId(compute_blob_id(b"1")))
        assert reader.read_blobs([ids[2], ids[0], ids[2]]) == {ids[0]: b"1", ids[2]: b"2"}


def test_a_large_object_is_refused_and_reading_goes_on(tmp_path: Path, remote: Path) -> None:
    mirror = Mirror.open(tmp_path / "cache", str(remote), GitOptions(max_object_bytes=1000))
    large = b"x" * 1_000_000
    mirror.write_commits([NewCommit((), (PutFile("a", large), PutFile("b", b"2")), "m", 0)])

    with mirror.open_reader() as reader:
        with pytest.raises(TooLargeError, match="1000000 bytes"):
            reader.read_blob(compute_blob_id(large))
        assert reader.read_blob(compute_blob_id(b"2")) == b"2"


def test_thousands_of_blobs_in_one_go(mirror: Mirror) -> None:
    contents = [b"%d" % i * 300 for i in range(3000)]
    mirror.write_commits([NewCommit((), tuple(PutFile(str(i), data) for i, data in enumerate(contents)), "m", 0)])

    with mirror.open_reader() as reader:
        blobs = reader.read_blobs(map(compute_blob_id, contents))

    assert blobs == {compute_blob_id(data): data for data in contents}


def test_a_tree_that_unfolds_without_end_is_refused(mirror: Mirror) -> None:
    files = FileTree({str(n): File(b"") for n in range(10)})
    mirror.write_commits([NewCommit((), tuple(PutFile(path, file.data) for path, file in files.items()), "files", 0)])
    tree = files.id
    for _ in range(9):
        rows = "".join(f"040000 tree {tree}\t{n}\n" for n in range(10))
        tree = TreeId(git(mirror.folder, "mktree", stdin=rows.encode()))

    with mirror.open_reader() as reader, pytest.raises(TooLargeError):
        list(reader.walk(tree, max_entries=5000))


def test_links_and_submodules_are_identified_by_their_mode(mirror: Mirror) -> None:
    rows = f"120000 blob {compute_blob_id(b'1')}\tlink\n160000 commit {ABSENT}\tsub\n"
    mirror.write_commits([NewCommit((), (PutFile("a", b"1"),), "m", 0)])
    tree = TreeId(git(mirror.folder, "mktree", "--missing", stdin=rows.encode()))

    with mirror.open_reader() as reader:
        assert list(reader.walk(tree, "p/")) == [
            ("p/link", "120000", compute_blob_id(b"1")),
            ("p/sub", "160000", BlobId(ABSENT)),
        ]


def test_when_a_path_changed_last_along_first_parents(mirror: Mirror, remote: Path) -> None:
    def put(ref: str, path: str, seconds: int) -> CommitId:
        return CommitId(commit_files(remote, f"refs/heads/{ref}", {path: str(seconds).encode()}, "c", seconds))

    begun = put("main", "gw/a", 100)
    git(remote, "branch", "side", begun)
    put("side", "gw/a", 150)
    side = put("side", "gw/a", 160)
    put("main", "channels/gw*.yaml", 200)
    other = put("main", "channels/gwx.yaml", 300)
    tree = git(remote, "rev-parse", f"{side}^{{tree}}")
    merge = CommitId(git(remote, "commit-tree", tree, "-p", other, "-p", side, "-m", "merge"))
    git(remote, "update-ref", "refs/heads/main", merge)
    mirror.fetch("upstream")
    mapping = {path: mirror.find_last_change(merge, path) for path in ("gw", "gw/a", "nowhere")}

    assert mapping == {"gw": merge, "gw/a": merge, "nowhere": None}
    assert mirror.find_last_change(other, "gw") == begun
    with mirror.open_reader() as reader:
        starred = mirror.find_last_change(other, "channels/gw*.yaml")
        assert starred
        assert reader.read_commit(starred).seconds == 200


def test_who_made_a_tag_and_when(mirror: Mirror, remote: Path) -> None:
    commit = commit_files(remote, "refs/heads/main", {"a": b"1"})
    head = f"object {commit}\ntype commit\ntag t\n"
    odd = [head + f"tagger Ada <a@b> {date} +0100\n\ntagger me 5" for date in ("1234", "-1", "9" * 30)]
    ids = [git(remote, "hash-object", "-t", "tag", "-w", "--literally", "--stdin", stdin=item.encode()) for item in odd]
    ids.append(git(remote, "hash-object", "-t", "tag", "-w", "--stdin", "--literally", stdin=f"{head}\nold".encode()))
    for number, tag in enumerate(ids):
        git(remote, "update-ref", f"refs/tags/t{number}", tag)
    mirror.fetch("upstream")
    with mirror.open_reader() as reader:
        taggers = [reader.read_tagger(ObjectId(tag)) for tag in ids]

    assert [git_identity.seconds if git_identity else None for git_identity in taggers] == [1234, 0, 2**32 - 1, None]


def test_first_parents_from_what_was_seen(mirror: Mirror) -> None:
    start, commit_id, side, merge, other = mirror.write_commits(
        [
            NewCommit((), (), "start", 0),
            NewCommit((0,), (), "one", 0),
            NewCommit((0,), (), "side", 0),
            NewCommit((1, 2), (), "merge", 0),
            NewCommit((), (), "other", 0),
        ]
    )

    assert mirror.list_first_parent_commits(start, merge) == [commit_id, merge]
    assert mirror.list_first_parent_commits(merge, merge) == []
    assert mirror.list_first_parent_commits(side, merge) == [commit_id, merge]
    assert mirror.list_first_parent_commits(merge, commit_id) is None
    assert mirror.list_first_parent_commits(other, merge) is None
    assert mirror.list_first_parent_commits(CommitId(ABSENT), merge) is None
    assert mirror.is_ancestor(side, merge)
    assert not mirror.is_ancestor(side, commit_id)
    assert [mirror.merge_base(side, commit_id), mirror.merge_base(side, merge), mirror.merge_base(side, other)] == [
        start, side, None,
    ]  # fmt: skip


def test_opening_twice_at_once_gives_one_sound_mirror(tmp_path: Path, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})

    def open_and_fetch(_: int) -> dict[str, CommitId]:
        mirror = Mirror.open(tmp_path / "cache", str(remote))
        mirror.fetch("config")
        return dict(mirror.refs())

    with ThreadPoolExecutor(6) as pool:
        result = list(pool.map(open_and_fetch, range(12)))

    assert all(refs == result[0] for refs in result)
    assert len(list((tmp_path / "cache").glob("*.git"))) == 1


@pytest.mark.parametrize("pack", [pytest.param((), id="loose"), pytest.param(("pack-refs", "--all"), id="packed")])
def test_leftovers_of_a_killed_process_are_swept(
    mirror: Mirror, tmp_path: Path, remote: Path, pack: tuple[str, ...]
) -> None:
    [commit] = mirror.write_commits([NewCommit((), (), "m", 0)])
    git(mirror.folder, "update-ref", "refs/out/heads/a", commit)
    git(mirror.folder, "update-ref", "refs/reconciler-tmp/work", commit)
    git(mirror.folder, *(pack or ("version",)))
    debris = ["packed-refs.lock", "refs/remotes/origin/heads/a.lock", "objects/pack/tmp_pack_x", "fast_import_crash_1"]
    for name in debris:
        (mirror.folder / name).parent.mkdir(parents=True, exist_ok=True)
        (mirror.folder / name).write_bytes(b"")

    Mirror.open(tmp_path / "cache", str(remote))

    assert read_refs(mirror.folder) == {}
    assert [name for name in debris if (mirror.folder / name).exists()] == []


def test_who_is_alive_is_left_alone(mirror: Mirror, tmp_path: Path, remote: Path) -> None:
    (mirror.folder / "packed-refs.lock").write_bytes(b"")
    with hold_lock(mirror.folder / "reconciler.lock", 1):
        Mirror.open(tmp_path / "cache", str(remote))

        assert (mirror.folder / "packed-refs.lock").exists()


def test_a_busy_mirror_reports_wait(tmp_path: Path, remote: Path) -> None:
    mirror = Mirror.open(tmp_path / "cache", str(remote), GitOptions(timeout_seconds=0.05))
    with hold_lock(mirror.folder / "reconciler.lock", 1), pytest.raises(MirrorBusyError) as caught:
        mirror.fetch("config")

    assert caught.value.next_step == "wait"


@pytest.mark.slow
def test_a_killed_process_may_leave_anything_and_harms_nothing(tmp_path: Path, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    script = textwrap.dedent(f"""
        import os, signal, threading
        from reconciler.git.mirror import Mirror
        from reconciler.git.push_outcomes import PushUnit, RefUpdate
        from reconciler.git.object_writer import NewCommit, PutFile
        refs = ["refs/heads/drafts/c1", "refs/reconciler/state/c1"]
        mirror = Mirror.open({str(tmp_path / "cache")!r}, {str(remote)!r})
        threading.Timer(DELAY, lambda: os.kill(os.getpid(), signal.SIGKILL)).start()
        while True:
            mirror.fetch("target")
            puts = tuple(PutFile(str(i), os.urandom(99)) for i in range(200))
            [new] = mirror.write_commits([NewCommit((), puts, "m", 0)])
            mirror.push([PushUnit("c1", tuple(RefUpdate(ref, new, mirror.refs().get(ref)) for ref in refs))])
    """)

    for delay in (0.13, 0.21, 0.34):
        killed = subprocess.run([sys.executable, "-c", script.replace("DELAY", str(delay))], check=False)
        mirror = Mirror.open(tmp_path / "cache", str(remote))
        mirror.fetch("target")

        refs = dict(mirror.refs())
        assert killed.returncode == -9
        assert refs.pop("refs/heads/main")
        assert len(set(refs.values())) <= 1
        assert len(refs) in {0, 2}
        assert mirror.push(
            [PushUnit("next", (RefUpdate("refs/heads/next", None, refs.get("refs/heads/next")),))]
        ).is_complete
        assert_sound(mirror.folder)
        assert_sound(remote)


def test_a_remote_that_never_answers_is_given_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    fake.write_text("#!/bin/sh\nexec sleep 60\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    mirror = Mirror.open(tmp_path / "cache", "git@example.com:a/b.git", GitOptions(timeout_seconds=0.3))

    with pytest.raises(GitTimeoutError, match=r"0\.3 seconds") as caught:
        mirror.fetch("config")

    assert caught.value.next_step == "retry"


def test_ssh_never_prompts_and_trusts_only_known_hosts(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    fake = tmp_path / "bin" / "ssh"
    fake.parent.mkdir()
    # the last argument is the command for the remote host
    fake.write_text(
        f'#!/bin/sh\nprintf "%s\\n" "$@" > {tmp_path}/arguments\nfor last; do :; done\nexec sh -c "$last"\n'
    )
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(fake.parent), prepend=":")
    source = CredentialSource(ssh_key_file="/keys/deploy key", known_hosts_file="/keys/known", is_default=True)
    options = GitOptions(credentials=RemoteCredentials(default=source))
    mirror = Mirror.open(tmp_path / "cache", f"ssh://git@example.com:2222{remote}", options)

    mirror.fetch("config")

    line = (tmp_path / "arguments").read_text().splitlines()
    assert {"BatchMode=yes", "StrictHostKeyChecking=yes", "UserKnownHostsFile=/keys/known"} <= set(line)
    assert line[line.index("-i") + 1] == "/keys/deploy key"
    assert list(mirror.refs()) == ["refs/heads/main"]


def test_nobodys_configuration_and_hooks_take_part(
    tmp_path: Path, remote: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    home = tmp_path / "home"
    home.mkdir()
    (home / ".gitconfig").write_text(f'[url "{tmp_path}/elsewhere"]\n\tinsteadOf = {remote}\n')
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", str(home / ".gitconfig"))
    monkeypatch.setenv("GIT_DIR", str(tmp_path / "not-here"))
    monkeypatch.setenv("GIT_INDEX_FILE", str(tmp_path / "index"))
    monkeypatch.setenv("GIT_OBJECT_DIRECTORY", str(tmp_path / "objects"))
    mirror = Mirror.open(tmp_path / "cache", str(remote))
    (mirror.folder / "hooks").mkdir(exist_ok=True)
    hook = mirror.folder / "hooks" / "reference-transaction"
    hook.write_text(f"#!/bin/sh\ntouch {tmp_path}/hooked\n")
    hook.chmod(0o755)

    mirror.fetch("config")

    assert list(mirror.refs()) == ["refs/heads/main"]
    assert not (tmp_path / "hooked").exists()
    assert not (tmp_path / "objects").exists()


@pytest.mark.slow
def test_maintenance_keeps_what_is_not_pushed_yet(mirror: Mirror) -> None:
    commits = [
        mirror.write_commits(
            [NewCommit((), tuple(PutFile(f"{n}/{i}", b"%d %d" % (n, i)) for i in range(101)), "m", 0)]
        )[0]
        for n in range(51)
    ]

    assert mirror.maintain()

    with mirror.open_reader() as reader:
        assert [reader.read_commit(commit).id for commit in commits] == commits
    assert not mirror.maintain()
    assert_sound(mirror.folder)


@pytest.mark.slow
def test_maintenance_packs_loose_objects(tmp_path: Path, mirror: Mirror) -> None:
    files = [tmp_path / f"file-{n}" for n in range(2_400)]
    for number, file in enumerate(files):
        file.write_text(f"object {number}\n")
    names = "".join(f"{file}\n" for file in files)
    ids = git(mirror.folder, "hash-object", "-w", "--stdin-paths", stdin=names.encode()).split()
    assert len(list(mirror.folder.glob("objects/??/*"))) == len(files)

    assert mirror.maintain()

    assert list(mirror.folder.glob("objects/??/*")) == []
    with mirror.open_reader() as reader:
        assert len(reader.read_blobs(BlobId(item) for item in ids)) == len(files)
    assert not mirror.maintain()
    assert_sound(mirror.folder)


def test_a_discarded_mirror_is_fetched_again(tmp_path: Path, mirror: Mirror, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    mirror.fetch("config")

    mirror.discard()
    second_mirror = Mirror.open(tmp_path / "cache", str(remote))
    second_mirror.fetch("config")

    assert second_mirror.refs() == mirror.refs()
    assert_sound(second_mirror.folder)


def test_a_damaged_mirror_is_recreated(tmp_path: Path, mirror: Mirror, remote: Path) -> None:
    commit_files(remote, "refs/heads/main", {"a": b"1"})
    (mirror.folder / "HEAD").unlink()

    second_mirror = Mirror.open(tmp_path / "cache", str(remote))
    second_mirror.fetch("config")

    assert list(second_mirror.refs()) == ["refs/heads/main"]


def test_an_unwritable_cache_is_reported(tmp_path: Path, remote: Path) -> None:
    (tmp_path / "file").write_bytes(b"")

    with pytest.raises(CacheUnusableError) as caught:
        Mirror.open(tmp_path / "file" / "cache", str(remote))

    assert caught.value.next_step == "human"


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        pytest.param("https://example.com/a", ("https://example.org/",), id="another-host"),
        pytest.param("http://example.com/a", (), id="plain-http"),
        pytest.param("ext::sh -c id", (), id="external-helper"),
        pytest.param("git://example.com/a", (), id="git-protocol"),
        pytest.param("--upload-pack=id", (), id="an-option"),
        pytest.param("ssh://-oProxyCommand=id/a", (), id="an-option-as-host"),
    ],
)
def test_an_address_that_is_not_allowed_makes_no_mirror(tmp_path: Path, url: str, allowed: tuple[str, ...]) -> None:
    with pytest.raises(UrlRefusedError) as caught:
        Mirror.open(tmp_path / "cache", url, GitOptions(allowed_urls=allowed)).fetch("config")

    assert caught.value.next_step == "human"
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize("write", ["commits", "tags"])
def test_a_full_disk_is_an_error_of_the_cache(mirror: Mirror, write: str) -> None:
    root = mirror.write_root_commit()
    commit = NewCommit((root,), (PutFile("a.yaml", b"x" * 2_000),), "x", 1)
    tag = NewTag("v1", root, "x" * 100_000, 1)
    with limit_file_size(1_000), pytest.raises(CacheUnusableError, match="cannot be written: File too large"):
        mirror.write_commits([commit]) if write == "commits" else mirror.write_tags([tag])

    assert mirror.write_commits([commit])
