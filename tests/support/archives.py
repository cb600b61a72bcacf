"""Archives for tests of sources: tar files with entries of any kind, and packed charts."""

from __future__ import annotations

import gzip
import io
import tarfile
from collections.abc import Iterable, Mapping

CHART = "apiVersion: v2\nname: {name}\nversion: {version}\n"


def make_entry(name: str, content: bytes = b"", **fields: object) -> tuple[tarfile.TarInfo, bytes]:
    """Return an entry for `pack`. `fields` are attributes of TarInfo, such as `type` and `mode`."""
    entry = tarfile.TarInfo(name)
    entry.size = len(content)
    for field, value in fields.items():
        setattr(entry, field, value)
    return entry, content


def pack(entries: Iterable[tuple[tarfile.TarInfo, bytes]], tar_format: int = tarfile.PAX_FORMAT) -> bytes:
    """Return an archive with these entries, which can be invalid."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tar_format) as archive:
        for entry, content in entries:
            archive.addfile(entry, io.BytesIO(content))
    return gzip.compress(buffer.getvalue(), mtime=0)


def pack_files(files: Mapping[str, str], seconds: int = 0) -> bytes:
    """Return an archive with these files. `seconds` is the modification time, which changes only the digest."""
    return pack(make_entry(path, text.encode(), mtime=seconds) for path, text in files.items())


def pack_chart(name: str, version: str, files: Mapping[str, str] | None = None, seconds: int = 0) -> bytes:
    """Return the archive of a chart with these files and a Chart.yaml."""
    content = {"Chart.yaml": CHART.format(name=name, version=version), **(files or {})}
    return pack_files({f"{name}/{path}": text for path, text in content.items()}, seconds)
