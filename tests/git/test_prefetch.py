"""Prefetched objects are equal to objects that are read on demand."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.catalog.files import BlobId, CommitId, ObjectId, compute_blob_id
from reconciler.git.errors import ObjectMissingError, TooLargeError
from reconciler.git.mirror import Mirror
from reconciler.git.object_writer import NewCommit, PutFile
from reconciler.git.options import GitOptions
from tests.support.git_repositories import make_bare

pytestmark = pytest.mark.usefixtures("each_git")

NOWHERE = ObjectId("1" * 40)
SMALL, LARGE = b"small\n", b"x" * 5_000


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    remote = make_bare(tmp_path / "remote.git")
    return Mirror.open(tmp_path / "cache", str(remote), GitOptions(max_object_bytes=2_000))


@pytest.fixture
def commit(mirror: Mirror) -> CommitId:
    return mirror.write_commits([NewCommit((), (PutFile("a/b", SMALL), PutFile("large", LARGE)), "first", 1)])[0]


def test_what_was_read_ahead_is_the_same(mirror: Mirror, commit: CommitId) -> None:
    with mirror.open_reader() as plain, mirror.open_reader() as reader:
        tree = plain.read_commit(commit).tree
        ids = [ObjectId(commit), ObjectId(tree), NOWHERE, compute_blob_id(SMALL), ObjectId(commit)]
        reader.prefetch(map(ObjectId, ids))
        # each prefetched object answers one request; the second request goes to the Git process
        for _ in range(2):
            assert reader.read_commit(commit) == plain.read_commit(commit)
            assert reader.read_blobs([compute_blob_id(SMALL)]) == {compute_blob_id(SMALL): SMALL}
        assert reader.read_tree(tree) == plain.read_tree(tree)


def test_a_missing_or_too_large_object_is_reported_when_it_is_read(mirror: Mirror, commit: CommitId) -> None:
    with mirror.open_reader() as reader:
        reader.prefetch([NOWHERE, compute_blob_id(LARGE), compute_blob_id(SMALL)])

        with pytest.raises(ObjectMissingError):
            reader.read_blob(BlobId(NOWHERE))
        with pytest.raises(TooLargeError):
            reader.read_blob(compute_blob_id(LARGE))
        assert reader.read_blob(compute_blob_id(SMALL)) == SMALL


def test_an_object_of_another_kind_is_still_missing(mirror: Mirror, commit: CommitId) -> None:
    with mirror.open_reader() as reader:
        reader.prefetch([ObjectId(commit)])

        with pytest.raises(ObjectMissingError, match="must be a blob"):
            reader.read_blob(BlobId(commit))
