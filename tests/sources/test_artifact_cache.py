"""The cache of artifacts: immutable files by digest, records, and the deletion of files that are not used."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from reconciler.sources.artifact_cache import ArtifactCache, compute_content_digest, parse_digest
from reconciler.sources.errors import SourceError

ONE, TWO = compute_content_digest(b"one"), compute_content_digest(b"two!")


def create_error(digest: str) -> SourceError:
    return SourceError("DigestMismatch", f"found {digest}")


def fill(folder: Path, *contents: bytes, max_bytes: int = 100) -> ArtifactCache:
    cache = ArtifactCache(folder, max_bytes)
    for age, content in enumerate(reversed(contents)):
        digest = cache.store([content], "", create_error)
        os.utime(folder / "sha256" / parse_digest(digest), (1_000 - age, 1_000 - age))
    return cache


def test_read_returns_the_stored_content(tmp_path: Path) -> None:
    cache = fill(tmp_path)
    assert cache.store([b"o", b"ne"], ONE, create_error) == ONE
    assert (cache.read(ONE), cache.read(TWO)) == (b"one", None)
    assert (tmp_path / "sha256").stat().st_mode & 0o777 == 0o700


def test_wrong_digest_stores_nothing(tmp_path: Path) -> None:
    with pytest.raises(SourceError, match=f"found {ONE}"):
        fill(tmp_path).store([b"one"], TWO, create_error)
    assert list((tmp_path / "sha256").iterdir()) == []


def test_interrupted_download_stores_nothing(tmp_path: Path) -> None:
    def read_chunks() -> Iterator[bytes]:
        yield b"one"
        raise SourceError("SourceUnreachable", "closed")

    with pytest.raises(SourceError, match="closed"):
        fill(tmp_path).store(read_chunks(), "", create_error)
    assert list((tmp_path / "sha256").iterdir()) == []


def test_damaged_file_is_deleted(tmp_path: Path) -> None:
    cache = fill(tmp_path, b"one")
    file = tmp_path / "sha256" / parse_digest(ONE)
    file.write_bytes(b"other")
    assert (cache.read(ONE), file.exists()) == (None, False)


@pytest.mark.parametrize(
    "digest",
    ["", "sha256:", "sha256:../../../etc/passwd", "sha512:" + "a" * 128, "sha256:" + "A" * 64, ONE + "\n", "md5:x"],
)
def test_other_digests_are_refused(digest: str, tmp_path: Path) -> None:
    with pytest.raises(SourceError, match="must be sha256"):
        fill(tmp_path).read(digest)


@pytest.mark.parametrize(
    ("max_bytes", "used", "expected"),
    [
        pytest.param(7, [], {b"one", b"two!"}, id="small-enough"),
        pytest.param(6, [], {b"two!"}, id="oldest-first"),
        pytest.param(0, [], set(), id="all"),
        pytest.param(6, [ONE], {b"one"}, id="used-digest-stays"),
        pytest.param(0, [ONE, TWO], {b"one", b"two!"}, id="used-digests-exceed-the-limit"),
    ],
)
def test_eviction(max_bytes: int, used: list[str], expected: set[bytes], tmp_path: Path) -> None:
    cache = fill(tmp_path, b"one", b"two!", max_bytes=max_bytes)
    cache.evict(used)
    assert {content for digest in (ONE, TWO) if (content := cache.read(digest))} == expected


def test_read_counts_as_use(tmp_path: Path) -> None:
    cache = fill(tmp_path, b"one", b"two!", max_bytes=6)
    cache.read(ONE)
    cache.evict([])
    assert cache.read(ONE) == b"one"


def test_eviction_keeps_the_layers_of_a_used_manifest(tmp_path: Path) -> None:
    manifest = f'{{"layers": [{{"digest": "{ONE}"}}]}}'.encode()
    index = f'{{"manifests": [{{"digest": "{compute_content_digest(manifest)}"}}]}}'.encode()
    cache = fill(tmp_path, b"one", b"two!", manifest, index, max_bytes=0)
    cache.evict([compute_content_digest(index), "not a digest"])
    assert {content for content in (b"one", b"two!", manifest, index) if cache.read(compute_content_digest(content))} == {
        b"one", manifest, index
    }  # fmt: skip


def test_eviction_deletes_old_records(tmp_path: Path) -> None:
    cache = fill(tmp_path)
    cache.store_record("a", {})
    cache.evict([])
    assert cache.read_record("a")
    os.utime(next((tmp_path / "index").iterdir()), (0, 0))
    cache.evict([])
    assert cache.read_record("a") == {}


def test_eviction_deletes_abandoned_temporary_files(tmp_path: Path) -> None:
    cache = fill(tmp_path, b"one")
    old, new = tmp_path / "sha256/old.part", tmp_path / "sha256/new.part"
    new.write_bytes(b"x")
    old.write_bytes(b"x")
    os.utime(old, (0, 0))
    cache.evict([])
    assert (old.exists(), new.exists()) == (False, True)


def test_records(tmp_path: Path) -> None:
    cache = fill(tmp_path)
    assert cache.read_record("a") == {}
    cache.store_record("a", {"versions": [1]})
    assert ArtifactCache(tmp_path, 0).read_record("a") == {"versions": [1], "key": "a"}


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b'{"key": "b"}', b"\xff", b"[" * 100_000])
def test_damaged_record_is_ignored(content: bytes, tmp_path: Path) -> None:
    cache = fill(tmp_path)
    cache.store_record("a", {})
    next((tmp_path / "index").iterdir()).write_bytes(content)
    assert cache.read_record("a") == {}
