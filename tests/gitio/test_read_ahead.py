"""Objects that were read ahead answer as if they had not been."""

from __future__ import annotations

from pathlib import Path

import pytest

from reconciler.gitio.errors import ObjectMissingError, TooLargeError
from reconciler.gitio.mirror import Mirror
from reconciler.gitio.options import GitOptions
from reconciler.gitio.writer import NewCommit, Put
from reconciler.snapshot.objects import BlobId, CommitId, ObjectId, blob_id
from tests.support.git_env import make_bare

NOWHERE = ObjectId("1" * 40)
SMALL, LARGE = b"small\n", b"x" * 5_000


@pytest.fixture
def mirror(tmp_path: Path) -> Mirror:
    remote = make_bare(tmp_path / "remote.git")
    return Mirror.open(tmp_path / "cache", str(remote), GitOptions(max_object_bytes=2_000))


@pytest.fixture
def commit(mirror: Mirror) -> CommitId:
    return mirror.write([NewCommit((), (Put("a/b", SMALL), Put("large", LARGE)), "first", 1)])[0]


def test_what_was_read_ahead_is_the_same(mirror: Mirror, commit: CommitId) -> None:
    with mirror.read() as plain, mirror.read() as reader:
        tree = plain.commit(commit).tree
        ids = [ObjectId(commit), ObjectId(tree), NOWHERE, blob_id(SMALL), ObjectId(commit)]
        reader.read_ahead(map(ObjectId, ids))
        # every answer is there for one question, and the second asks the process again
        for _ in range(2):
            assert reader.commit(commit) == plain.commit(commit)
            assert reader.blobs([blob_id(SMALL)]) == {blob_id(SMALL): SMALL}
        assert reader.tree(tree) == plain.tree(tree)


def test_what_is_missing_or_too_large_says_so_when_asked_for(mirror: Mirror, commit: CommitId) -> None:
    with mirror.read() as reader:
        reader.read_ahead([NOWHERE, blob_id(LARGE), blob_id(SMALL)])

        with pytest.raises(ObjectMissingError):
            reader.blob(BlobId(NOWHERE))
        with pytest.raises(TooLargeError):
            reader.blob(blob_id(LARGE))
        assert reader.blob(blob_id(SMALL)) == SMALL


def test_an_object_of_another_kind_is_still_missing(mirror: Mirror, commit: CommitId) -> None:
    with mirror.read() as reader:
        reader.read_ahead([ObjectId(commit)])

        with pytest.raises(ObjectMissingError, match="no blob"):
            reader.blob(BlobId(commit))
