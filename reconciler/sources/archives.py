"""A reader for archives in the format tar+gzip, with limits. It writes no files.

The reader supports the formats ustar, pax and GNU, as Helm does. It does not use `tarfile`, because that module reads
headers of any size into memory.
"""

from __future__ import annotations

import re
import unicodedata
import zlib
from collections.abc import Iterator
from typing import NoReturn

from reconciler.catalog.files import File, FileTree
from reconciler.krm.names import validate_tree_path
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.errors import SourceError
from reconciler.sources.limits import SourceLimits

_BLOCK = 512
_CHUNK = 16 * 1024
_GZIP = 31
# Some compressors write one gzip member per block of 64 KiB. An archive with more members than this limit is refused,
# because many small members make decompression slow.
_MAX_MEMBERS = 10_000
# Do not check the compression ratio of shorter archives. Their ratio is high, because tar pads each file and the end of
# the archive with zeros.
_MIN_BYTES_FOR_RATIO = 4 * 1024 * 1024
_MAX_HEADER_BYTES = 64 * 1024
_MAX_PATH_SEGMENTS = 64
_MAX_SEGMENT_BYTES = 255
_MAX_PATH_BYTES = 1_024
_MAX_SHOWN = 100
_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_PAX_RECORD = re.compile(rb"(\d{1,6}) ")
_REGULAR, _FOLDER, _LINKS = frozenset(b"\0" + b"07"), ord("5"), frozenset(b"12")
_LONG_NAME, _LONG_LINK, _PAX, _GLOBAL_PAX = ord("L"), ord("K"), ord("x"), ord("g")
_SPECIAL_TYPES = {ord("3"): "character device", ord("4"): "block device", ord("6"): "pipe", ord("S"): "sparse file"}
_EXECUTABLE = 0o100


@dataclass(frozen=True)
class ArchiveContent:
    """The regular files of an archive, and the paths of its links. The links themselves are left out."""

    files: FileTree
    skipped: tuple[str, ...] = ()


@dataclass(frozen=True)
class _Entry:
    path: str
    type: int
    size: int
    mode: int


def read_archive(data: bytes, limits: SourceLimits, *, has_top_folder: bool = False) -> ArchiveContent:
    """Return the files of an archive.

    Args:
        has_top_folder: Whether the archive must have exactly one top folder, as required for a chart. The name of this
            folder is removed from all paths.

    Raises:
        SourceError: `ArchiveInvalid` if the archive is damaged or contains an entry that is not allowed,
            `SourceTooLarge` if it exceeds a limit.
    """
    if len(data) > limits.archive_bytes:
        raise limits.create_error("archive_bytes", "the archive")
    reader = _TarReader(_Stream(data, limits), limits)
    paths = _Paths(limits)
    files: dict[str, File] = {}
    links: list[str] = []
    for entry in reader.read_entries():
        if entry.type in _REGULAR:
            paths.add(entry.path, is_folder=False)
            files[entry.path] = File(reader.read_content(entry), bool(entry.mode & _EXECUTABLE))
        elif entry.type == _FOLDER:
            paths.add(entry.path, is_folder=True)
        else:
            links.append(entry.path)
    tree = FileTree(files)
    if has_top_folder:
        top = paths.get_top_folder()
        return ArchiveContent(tree.subtree(top), tuple(link.removeprefix(f"{top}/") for link in links))
    return ArchiveContent(tree, tuple(links))


def _fail(message: str) -> NoReturn:
    raise SourceError(SourceCodes.ARCHIVE_INVALID.name, message)


class _Stream:
    """Decompresses an archive in small parts, and stops at the first part that exceeds a limit."""

    def __init__(self, data: bytes, limits: SourceLimits) -> None:
        self._limits = limits
        self._consumed = 0
        self._chunks = self._decompress(data)
        self._buffer = bytearray()
        self._size = 0

    def read(self, size: int) -> bytes:
        """Return the next `size` bytes, or fewer bytes at the end."""
        while len(self._buffer) < size:
            chunk = next(self._chunks, None)
            if chunk is None:
                break
            self._buffer += chunk
        content = bytes(self._buffer[:size])
        del self._buffer[:size]
        return content

    def read_to_end(self) -> None:
        """Read and discard the rest of the archive, so that the checksum of the archive is verified."""
        self._buffer.clear()
        for _ in self._chunks:
            pass

    def _decompress(self, data: bytes) -> Iterator[bytes]:
        decompressor, members = zlib.decompressobj(_GZIP), 1
        for start in range(0, len(data), _CHUNK):
            pending = data[start : start + _CHUNK]
            self._consumed += len(pending)
            while pending:
                yield self._inflate(decompressor, pending)
                pending = decompressor.unconsumed_tail
                if decompressor.eof:
                    pending = decompressor.unused_data
                    if not pending.strip(b"\0"):
                        break
                    decompressor, members = zlib.decompressobj(_GZIP), members + 1
                    if members > _MAX_MEMBERS:
                        _fail(f"the archive must have at most {_MAX_MEMBERS:,} gzip members")
        while not decompressor.eof:
            # The decompressor can still return output after it has read all input.
            chunk = self._inflate(decompressor, b"")
            if not chunk and not decompressor.eof:
                _fail("the archive is truncated")
            yield chunk

    def _inflate(self, decompressor: zlib._Decompress, data: bytes) -> bytes:
        try:
            chunk = decompressor.decompress(data, _CHUNK)
        except zlib.error as error:
            _fail(f"the archive is not in the format gzip, or is damaged ({error})")
        self._size += len(chunk)
        # The limit applies to the contents of files. The output also contains the headers and the padding of tar.
        # Therefore, add their maximum size to the limit.
        if self._size > self._limits.unpacked_bytes + (self._limits.files + 2) * 2 * _BLOCK:
            raise self._limits.create_error("unpacked_bytes", "the unpacked size of the archive in bytes")
        # Compare the output with the bytes that were read until now, and not with the complete archive. This finds a
        # compression bomb at the start of a large archive early.
        if self._size > max(self._limits.compression_ratio * self._consumed, _MIN_BYTES_FOR_RATIO):
            raise self._limits.create_error("compression_ratio", "the compression ratio of the archive")
        return chunk


class _TarReader:
    """Reads the entries of a tar archive in their order."""

    def __init__(self, stream: _Stream, limits: SourceLimits) -> None:
        self._stream = stream
        self._limits = limits
        self._unread = 0
        self._padding = 0
        self._unpacked = 0

    def read_entries(self) -> Iterator[_Entry]:
        """Yield each file, folder and link. The caller reads the content of a file before the next entry."""
        long_name, pax, count = "", dict[str, str](), 0
        while header := self._read_header():
            entry = _parse_header(header)
            count += 1
            if count > 2 * self._limits.files:
                raise self._limits.create_error("files", "the number of entries in the archive")
            match entry.type:
                case t if t == _LONG_NAME:
                    long_name = _decode(self._read_extension(entry).rstrip(b"\0"))
                case t if t == _PAX:
                    pax = _parse_pax(self._read_extension(entry))
                case t if t in {_LONG_LINK, _GLOBAL_PAX}:
                    self._read_extension(entry)
                case _:
                    yield from self._open(_apply_extensions(entry, long_name, pax))
                    long_name, pax = "", {}
        self._stream.read_to_end()

    def _open(self, entry: _Entry) -> Iterator[_Entry]:
        path = _normalize_path(entry.path)
        if entry.type in _SPECIAL_TYPES:
            _fail(f"the entry {_quote(path)} must be a file or a folder, and not a {_SPECIAL_TYPES[entry.type]}")
        if entry.type not in _REGULAR and entry.type != _FOLDER and entry.type not in _LINKS:
            _fail(f"the entry {_quote(path)} has the unknown type {entry.type}")
        # Treat a name with a slash at its end as a folder, because old versions of tar write folders as files.
        is_file = entry.type in _REGULAR and not entry.path.endswith("/")
        size = entry.size if is_file else 0
        if size > self._limits.file_bytes:
            raise self._limits.create_error("file_bytes", f"the file {_quote(path)} ({size:,} bytes)")
        self._unpacked += size
        if self._unpacked > self._limits.unpacked_bytes:
            raise self._limits.create_error("unpacked_bytes", "the unpacked size of the archive in bytes")
        self._unread, self._padding = size, -size % _BLOCK
        if path:
            kind = entry.type if is_file or entry.type in _LINKS else _FOLDER
            yield _Entry(path, kind, size, entry.mode)

    def read_content(self, entry: _Entry) -> bytes:
        """Return the content of the file that `read_entries` returned last."""
        content = self._stream.read(entry.size)
        if len(content) < entry.size:
            _fail(f"the archive ends inside of the file {_quote(entry.path)}")
        self._unread = 0
        return content

    def _read_header(self) -> bytes:
        """Return the next header. Return b"" at the end of the archive."""
        self._stream.read(self._unread + self._padding)
        self._unread = self._padding = 0
        block = self._stream.read(_BLOCK)
        if len(block) < _BLOCK and block.strip(b"\0"):
            _fail("the archive ends inside of a header")
        return block if block.strip(b"\0") else b""

    def _read_extension(self, entry: _Entry) -> bytes:
        if entry.size > _MAX_HEADER_BYTES:
            _fail(f"the archive contains a header of {entry.size:,} bytes, and the limit is {_MAX_HEADER_BYTES:,}")
        content = self._stream.read(entry.size)
        self._padding = -entry.size % _BLOCK
        if len(content) < entry.size:
            _fail("the archive ends inside of a header")
        return content


def _parse_header(block: bytes) -> _Entry:
    checksum = sum(block) - sum(block[148:156]) + 8 * ord(" ")
    if _parse_number(block[148:156]) != checksum:
        _fail("the archive is not in the format tar: a header has a wrong checksum")
    name = block[:100].split(b"\0", 1)[0]
    prefix = block[345:500].split(b"\0", 1)[0] if block[257:263] == b"ustar\0" else b""
    path = _decode(prefix + b"/" + name if prefix else name)
    return _Entry(path, block[156], _parse_number(block[124:136]), _parse_number(block[100:108]))


def _parse_number(field: bytes) -> int:
    """Return the value of a field: octal digits, or a big-endian number that starts with the byte 0x80."""
    if field[:1] == b"\x80":
        return int.from_bytes(field[1:], "big")
    text = field.split(b"\0", 1)[0].strip(b" ")
    if text.strip(b"01234567"):
        _fail("the archive is not in the format tar: a header contains an invalid number")
    return int(text or b"0", 8)


def _parse_pax(content: bytes) -> dict[str, str]:
    """Return the records of a pax header, each of the form `length key=value` with a line break."""
    records: dict[str, str] = {}
    while content:
        match = _PAX_RECORD.match(content)
        length = int(match[1]) if match else 0
        record = content[match.end() : length] if match else b""
        key, separator, value = record.removesuffix(b"\n").partition(b"=")
        if not separator or length > len(content) or not record.endswith(b"\n"):
            _fail("the archive contains an invalid pax header")
        if key.startswith(b"GNU.sparse"):
            _fail("the archive contains a sparse file")
        if key in {b"path", b"size"}:
            records[key.decode()] = _decode(value)
        content = content[length:]
    return records


def _apply_extensions(entry: _Entry, long_name: str, pax: dict[str, str]) -> _Entry:
    size = pax.get("size", str(entry.size))
    if not (size.isascii() and size.isdecimal() and len(size) < 20):
        _fail("the archive contains an invalid pax header")
    return _Entry(pax.get("path") or long_name or entry.path, entry.type, int(size), entry.mode)


def _decode(name: bytes) -> str:
    try:
        return name.decode()
    except UnicodeDecodeError:
        _fail(f"the name of the entry {name[:_MAX_SHOWN]!r} must be UTF-8 text")


def _quote(path: str) -> str:
    return f'"{path}"' if len(path) <= _MAX_SHOWN else f'"{path[:_MAX_SHOWN]}…"'


def _normalize_path(name: str) -> str:
    """Return the path of an entry without leading `./`. Return "" for the root folder."""
    path = name.removesuffix("/")
    while path.startswith("./"):
        path = path[2:]
    if path in {"", "."}:
        return ""
    segments = path.split("/")
    if _CONTROL.search(path) or "\\" in path:
        _fail(f"the entry {_quote(repr(path)[1:-1])} must not contain control characters or backslashes")
    is_too_long = (
        len(path.encode()) > _MAX_PATH_BYTES or max(len(part.encode()) for part in segments) > _MAX_SEGMENT_BYTES
    )
    if is_too_long or len(segments) > _MAX_PATH_SEGMENTS:
        _fail(
            f"the path {_quote(path)} must have at most {_MAX_PATH_SEGMENTS} segments of {_MAX_SEGMENT_BYTES} bytes, "
            f"and at most {_MAX_PATH_BYTES:,} bytes"
        )
    if problem := validate_tree_path(path):
        _fail(f"the archive contains an entry with a path that is not allowed, because {problem}")
    return path


class _Paths:
    """Collects the paths of an archive, and rejects paths that some file systems cannot distinguish."""

    def __init__(self, limits: SourceLimits) -> None:
        self._limits = limits
        self._spellings: dict[str, str] = {}
        self._files: set[str] = set()
        self._folders: set[str] = set()

    def add(self, path: str, *, is_folder: bool) -> None:
        """Add a file or a folder with its parent folders."""
        if path in self._files or (path in self._folders and not is_folder):
            _fail(f"the archive contains the path {_quote(path)} twice")
        segments = path.split("/")
        for count in range(1, len(segments) + is_folder):
            folder = "/".join(segments[:count])
            if folder in self._files:
                _fail(f"{_quote(folder)} is both a file and a folder")
            if folder not in self._folders:
                self._check_spelling(folder)
                self._folders.add(folder)
        if not is_folder:
            self._check_spelling(path)
            self._files.add(path)

    def _check_spelling(self, path: str) -> None:
        key = unicodedata.normalize("NFC", path).casefold()
        known = self._spellings.setdefault(key, path)
        if known != path:
            _fail(f"the archive contains paths that differ only in case: {_quote(known)} and {_quote(path)}")
        if len(self._spellings) > self._limits.files:
            raise self._limits.create_error("files", "the number of files and folders in the archive")

    def get_top_folder(self) -> str:
        """Return the name of the only top folder."""
        tops = sorted({path.split("/", 1)[0] for path in self._files | self._folders})
        if len(tops) != 1 or tops[0] in self._files:
            listed = ", ".join(map(_quote, tops[:5])) or "none"
            _fail(f"the archive of a chart must have exactly one top folder and no other entries, but it has {listed}")
        return tops[0]
