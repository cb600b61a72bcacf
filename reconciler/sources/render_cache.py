"""Stores rendered sources in the cache folder, so that later passes and other processes start no program."""

from __future__ import annotations

import json
import os
from collections import OrderedDict
from pathlib import Path
from threading import Lock

from reconciler.catalog.files import File, FileTree
from reconciler.krm.findings import parse_finding, serialize_finding
from reconciler.packages.charts.request import RenderedSource
from reconciler.sources.cache_files import list_files, write_file
from reconciler.telemetry.event_log import log

# Check the size of the folder once in this number of writes, because a check lists all files.
_WRITES_PER_CHECK = 256
_BYTES_PER_ENTRY = 1_024


class RenderCache:
    """Rendered sources by the key of their inputs, in memory and in files.

    The object is thread-safe, and several processes can use the same folder. An entry that cannot be read or written is
    rendered again.

    Args:
        folder: The folder of the files.
        max_file_bytes: The size limit of the folder. Above this limit, the least recently used files are deleted.
        max_memory_bytes: The size limit of the entries in memory.
    """

    def __init__(self, folder: Path, max_file_bytes: int, max_memory_bytes: int) -> None:
        self._folder = folder
        self._max_file_bytes = max_file_bytes
        self._memory = _MemoryEntries(max_memory_bytes)
        self._lock = Lock()
        self._write_count = 0

    def read(self, key: str) -> RenderedSource | None:
        """Return the rendered source with this key, or None."""
        with self._lock:
            entry = self._memory.get(key)
        if entry is None and (entry := self._read_file(key)):
            self.keep_in_memory(key, entry)
        return entry

    def keep_in_memory(self, key: str, source: RenderedSource) -> None:
        """Keep a rendered source for this process only."""
        with self._lock:
            self._memory.add(key, source)

    def write(self, key: str, source: RenderedSource) -> None:
        """Keep a rendered source for this process and for later processes."""
        self.keep_in_memory(key, source)
        data = {
            "tree": source.files.id,
            "files": {path: file.data.decode() for path, file in source.files.items()},
            "findings": [serialize_finding(finding) for finding in source.findings],
            "templates": dict(source.templates),
        }
        self._write_file(key, json.dumps(data, ensure_ascii=False))

    def read_version(self, digest: str) -> str:
        """Return the version of the program with this digest, or "" if it is not stored."""
        try:
            return self._get_version_path(digest).read_text()
        except OSError:
            return ""

    def write_version(self, digest: str, version: str) -> None:
        """Store the version of the program with this digest."""
        self._write_file(self._get_version_path(digest).name, version)

    def _get_version_path(self, digest: str) -> Path:
        return self._folder / f"version-{digest.removeprefix('sha256:')}"

    def _read_file(self, key: str) -> RenderedSource | None:
        path = self._folder / key
        try:
            source = _parse_entry(path.read_bytes())
            # The time of the last use decides which files are deleted first.
            os.utime(path)
        except FileNotFoundError:
            return None
        except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
            log.warning("render_cache_read_failed", file=str(path), message=str(error))
            return None
        return source

    def _write_file(self, name: str, text: str) -> None:
        try:
            write_file(self._folder / name, text.encode())
            self._delete_old_files()
        except OSError as error:
            log.warning("render_cache_write_failed", file=str(self._folder / name), message=error.strerror)

    def _delete_old_files(self) -> None:
        with self._lock:
            self._write_count += 1
            if self._write_count % _WRITES_PER_CHECK != 1:
                return
        size = 0
        for file in reversed(list_files(self._folder)):
            size += file.size
            if size > self._max_file_bytes:
                file.path.unlink(missing_ok=True)


def _parse_entry(content: bytes) -> RenderedSource:
    """Return the rendered source in a file. Raises ValueError, KeyError, TypeError or AttributeError."""
    data = json.loads(content)
    files = FileTree({name: File(text.encode()) for name, text in data["files"].items()})
    if files.id != data["tree"]:
        raise ValueError("the files do not have the recorded tree ID")
    return RenderedSource(files, tuple(map(parse_finding, data["findings"])), data["templates"])


class _MemoryEntries:
    """The entries in memory. The entry that was unused for the longest time is deleted first."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._entries: OrderedDict[str, RenderedSource] = OrderedDict()
        self._size = 0

    def get(self, key: str) -> RenderedSource | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def add(self, key: str, source: RenderedSource) -> None:
        self._size -= _count_bytes(self._entries.pop(key)) if key in self._entries else 0
        self._entries[key] = source
        self._size += _count_bytes(source)
        while self._size > self._max_bytes and len(self._entries) > 1:
            _, removed = self._entries.popitem(last=False)
            self._size -= _count_bytes(removed)


def _count_bytes(source: RenderedSource) -> int:
    return _BYTES_PER_ENTRY + source.files.byte_count
