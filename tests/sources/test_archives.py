"""Archives of charts and artifacts: the files that are read, and the archives that are refused."""

from __future__ import annotations

import gzip
import io
import subprocess
import tarfile
import tracemalloc
from dataclasses import replace
from pathlib import Path

import pytest

from reconciler.sources.archives import read_archive
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits
from tests.support.archives import make_entry, pack, pack_chart, pack_files

LIMITS = SourceLimits(
    archive_bytes=1_000_000, unpacked_bytes=8_000_000, files=50, file_bytes=6_000_000, compression_ratio=200
)
LONG = "/".join(["a-long-folder-name"] * 12)


@pytest.mark.parametrize("tar_format", [tarfile.USTAR_FORMAT, tarfile.GNU_FORMAT, tarfile.PAX_FORMAT])
def test_files_of_every_format(tar_format: int) -> None:
    entries = [
        make_entry("./", type=tarfile.DIRTYPE),
        make_entry("./empty", type=tarfile.DIRTYPE),
        make_entry("./run.sh", b"#!/bin/sh\n", mode=0o755),
        make_entry("a/b.yaml", b"x" * 1_500),
        make_entry("a/none", b""),
        make_entry(f"{LONG}/file.yaml", b"long\n"),
    ]
    files = read_archive(pack(entries, tar_format), LIMITS).files
    assert {path: file.data for path, file in files.items()} == {
        "run.sh": b"#!/bin/sh\n", "a/b.yaml": b"x" * 1_500, "a/none": b"", f"{LONG}/file.yaml": b"long\n"
    }  # fmt: skip
    assert [path for path, file in files.items() if file.executable] == ["run.sh"]


def test_non_ascii_names_of_gnu_and_pax() -> None:
    for tar_format in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
        assert list(read_archive(pack([make_entry("größe/ü.yaml")], tar_format), LIMITS).files) == ["größe/ü.yaml"]


@pytest.mark.parametrize("tar_format", ["gnu", "pax", "ustar", "v7"])
def test_archive_of_the_tar_program(tar_format: str, tmp_path: Path) -> None:
    (tmp_path / "app/sub").mkdir(parents=True)
    (tmp_path / "app/sub/x.yaml").write_text("x: 1\n")
    (tmp_path / "app/link").symlink_to("sub/x.yaml")
    command = ["tar", f"--format={tar_format}", "-C", str(tmp_path), "-czf", "-", "app"]
    content = read_archive(subprocess.run(command, check=True, capture_output=True).stdout, LIMITS)
    assert (list(content.files), content.skipped) == (["app/sub/x.yaml"], ("app/link",))


def test_tree_of_a_chart_does_not_depend_on_the_archive() -> None:
    first, second = pack_chart("web", "1.0.0"), pack_chart("web", "1.0.0", seconds=99)
    assert first != second
    trees = [read_archive(data, LIMITS, has_top_folder=True).files for data in (first, second)]
    assert trees[0].id == trees[1].id
    assert list(trees[0]) == ["Chart.yaml"]


def test_links_are_left_out() -> None:
    links = [
        make_entry("web/evil", type=tarfile.SYMTYPE, linkname="/etc/passwd"),
        make_entry("web/hard", type=tarfile.LNKTYPE, linkname="../../x"),
        make_entry("web/Chart.yaml", b"x"),
    ]
    content = read_archive(pack(links), LIMITS, has_top_folder=True)
    assert (list(content.files), content.skipped) == (["Chart.yaml"], ("evil", "hard"))


def test_gzip_members_and_padding() -> None:
    tar = gzip.decompress(pack_files({"a": "1", "b": "2"}))
    split = gzip.compress(tar[:700]) + gzip.compress(tar[700:]) + b"\0" * 100
    assert list(read_archive(split, LIMITS).files) == ["a", "b"]


def make_large_number(name: str) -> bytes:
    """Return an archive whose header has a size of 2^40 as a binary number."""
    block = bytearray(make_entry(name)[0].tobuf(tarfile.USTAR_FORMAT))
    block[124:136] = b"\x80" + (2**40).to_bytes(11, "big")
    block[148:156] = b"%06o\0 " % (sum(block) - sum(block[148:156]) + 256)
    return gzip.compress(bytes(block))


@pytest.mark.parametrize(
    ("archive", "code", "message"),
    [
        pytest.param(pack_files({"../x": ""}), "ArchiveInvalid", 'and ".."', id="parent"),
        pytest.param(pack_files({"a/../../x": ""}), "ArchiveInvalid", 'and ".."', id="parent-inside"),
        pytest.param(pack_files({"/etc/x": ""}), "ArchiveInvalid", "must be relative", id="absolute"),
        pytest.param(pack_files({"a//b": ""}), "ArchiveInvalid", "empty segments", id="empty-segment"),
        pytest.param(pack_files({"a/.git/config": ""}), "ArchiveInvalid", '".git"', id="git"),
        pytest.param(pack_files({"a\\..\\b": ""}), "ArchiveInvalid", "backslashes", id="backslash"),
        pytest.param(pack_files({"a\nb": ""}), "ArchiveInvalid", "control characters", id="newline"),
        pytest.param(pack_files({"x" * 300: ""}), "ArchiveInvalid", "255 bytes", id="long-name"),
        pytest.param(pack_files({"d/" * 70 + "x": ""}), "ArchiveInvalid", "64 segments", id="deep"),
        pytest.param(pack_files({"a/X": "", "a/x": ""}), "ArchiveInvalid", "differ only in case", id="case-twins"),
        pytest.param(pack_files({"A/x": "", "a/y": ""}), "ArchiveInvalid", "differ only in case", id="folder-twins"),
        pytest.param(pack_files({"u\u0308": "", "\u00fc": ""}), "ArchiveInvalid", "differ only", id="unicode-twins"),
        pytest.param(pack([make_entry("a", b"1"), make_entry("a", b"2")]), "ArchiveInvalid", "twice", id="twice"),
        pytest.param(pack_files({"a": "", "a/b": ""}), "ArchiveInvalid", "a file and a folder", id="file-and-folder"),
        pytest.param(pack_files({"a/b": "", "a": ""}), "ArchiveInvalid", "twice", id="folder-and-file"),
        pytest.param(pack([make_entry("a", type=tarfile.CHRTYPE)]), "ArchiveInvalid", "character device", id="device"),
        pytest.param(pack([make_entry("a", type=tarfile.FIFOTYPE)]), "ArchiveInvalid", "pipe", id="pipe"),
        pytest.param(pack([make_entry("a", type=b"Z")]), "ArchiveInvalid", "unknown type", id="unknown-type"),
        pytest.param(pack([make_entry("a", pax_headers={"GNU.sparse.major": "1"})]), "ArchiveInvalid", "sparse", id="sparse"),
        pytest.param(pack([make_entry("a", pax_headers={"path": "../x"})]), "ArchiveInvalid", 'and ".."', id="pax-path"),
        pytest.param(pack([make_entry("a", pax_headers={"comment": "x" * 99_999})]), "ArchiveInvalid", "65,536", id="pax-bomb"),
        pytest.param(pack([make_entry("a", pax_headers={"size": "-1"})]), "ArchiveInvalid", "pax", id="pax-size"),
        pytest.param(pack_files({"a": "x" * 5_000})[:-20], "ArchiveInvalid", "truncated", id="truncated"),
        pytest.param(gzip.compress(gzip.decompress(pack_files({"a": "x" * 900}))[:700]), "ArchiveInvalid", 'inside of the file "a"', id="short"),
        pytest.param(b"PK\x03\x04", "ArchiveInvalid", "gzip", id="zip"),
        pytest.param(gzip.compress(b"not a tar file" * 99), "ArchiveInvalid", "format tar", id="no-tar"),
        pytest.param(b"", "ArchiveInvalid", "truncated", id="empty"),
        pytest.param(pack_files({str(i): "" for i in range(60)}), "SourceTooLarge", "sources.limits.files", id="files"),
        pytest.param(
            pack([make_entry("link", type=tarfile.SYMTYPE)] * 110), "SourceTooLarge", "sources.limits.files", id="links"
        ),
        pytest.param(pack_files({"a" * i + "/b/c": "" for i in range(1, 30)}), "SourceTooLarge", "limits.files", id="folders"),
        pytest.param(pack_files({"a": "x" * 7_000_000}), "SourceTooLarge", "sources.limits.file_bytes", id="file"),
        pytest.param(make_large_number("a"), "SourceTooLarge", "sources.limits.file_bytes", id="declared-size"),
        pytest.param(pack_files({"a": "0" * 5_000_000}), "SourceTooLarge", "compression_ratio", id="ratio"),
        pytest.param(bytes(1_000_001), "SourceTooLarge", "sources.limits.archive_bytes", id="archive"),
        pytest.param(gzip.compress(b"") * 10_001, "ArchiveInvalid", "10,000 gzip members", id="members"),
    ],
)  # fmt: skip
def test_refused_archives(archive: bytes, code: str, message: str) -> None:
    with pytest.raises(SourceError) as caught:
        read_archive(archive, LIMITS)
    assert (caught.value.code, message in caught.value.message) == (code, True), caught.value.message


def test_total_size_is_limited() -> None:
    archive = pack_files({str(i): "x" * 400_000 for i in range(30)})
    with pytest.raises(SourceError, match="unpacked_bytes"):
        read_archive(archive, replace(LIMITS, compression_ratio=100_000))


def test_total_size_does_not_include_headers() -> None:
    archive = pack_files({"a": "x" * 600, "b": "y" * 600})
    assert len(read_archive(archive, replace(LIMITS, unpacked_bytes=1_200)).files) == 2
    with pytest.raises(SourceError, match="unpacked_bytes"):
        read_archive(archive, replace(LIMITS, unpacked_bytes=1_199))


@pytest.mark.parametrize("files", [{}, {"Chart.yaml": ""}, {"web/Chart.yaml": "", "db/Chart.yaml": ""}])
def test_chart_has_one_top_folder(files: dict[str, str]) -> None:
    with pytest.raises(SourceError, match="exactly one top folder"):
        read_archive(pack_files(files), LIMITS, has_top_folder=True)


def test_bomb_uses_little_memory() -> None:
    """An archive of a gigabyte of zeros is refused before its content is in memory."""
    buffer = io.BytesIO()
    with gzip.GzipFile(fileobj=buffer, mode="wb", compresslevel=1) as stream:
        stream.write(make_entry("zeros", size=2**30)[0].tobuf())
        for _ in range(64):
            stream.write(bytes(2**20))
    tracemalloc.start()
    try:
        with pytest.raises(SourceError):
            read_archive(
                buffer.getvalue(), replace(LIMITS, file_bytes=2**31, unpacked_bytes=2**31, compression_ratio=50)
            )
        assert tracemalloc.get_traced_memory()[1] < 30_000_000
    finally:
        tracemalloc.stop()
