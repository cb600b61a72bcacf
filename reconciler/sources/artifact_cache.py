"""The cache of artifacts: immutable files by digest, and small records of lists of versions.

- `<folder>/sha256/<hex digits>`: an archive or a manifest. Its digest is verified each time the file is read.
- `<folder>/index/<hash>.json`: a list of versions, with the time of the last successful request.

Files are written under a temporary name and then renamed, so that a process never reads a part of a file. The folder
can be deleted while no process uses it.
"""

from __future__ import annotations

import hashlib
import json
import os
import time
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from reconciler.krm.json_text import DIGEST_PATTERN, compute_hash, parse_json_object
from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.cache_files import create_temporary_file, list_files, write_file
from reconciler.sources.errors import SourceError

_DIGEST_PREFIX = "sha256:"
# Records that were not written for this time are deleted. A record in use is written again after each poll interval.
# The data of a deleted record can be requested from the server again.
_MAX_RECORD_SECONDS = 180 * 24 * 3600


def parse_digest(text: str) -> str:
    """Return the hexadecimal digits of a digest `sha256:<64 digits>`.

    Raises:
        SourceError: `SourceInvalid` if the text is not a SHA-256 digest. Other algorithms are not accepted, because one
            content would then have several digests.
    """
    if not DIGEST_PATTERN.fullmatch(text):
        raise SourceError(
            SourceCodes.SOURCE_INVALID.name,
            f"a digest must be sha256:<64 lower-case hex digits>, but is {text[:100]!r}",
        )
    return text.removeprefix(_DIGEST_PREFIX)


def compute_content_digest(content: bytes) -> str:
    """Return the digest `sha256:…` of a content."""
    return f"sha256:{hashlib.sha256(content).hexdigest()}"


def _read_manifest_text(file: Path) -> str:
    """Return the text of a manifest. Return "" for an archive, and for a file that does not exist."""
    try:
        with file.open("rb") as stream:
            is_manifest = stream.read(1) == b"{"
            return stream.read().decode("utf-8", "replace") if is_manifest else ""
    except FileNotFoundError:
        return ""


@dataclass(frozen=True)
class ArtifactCache:
    """The cache folder of artifacts. Several threads and processes can use it at once.

    Attributes:
        max_bytes: The size above which `evict` deletes the least recently used files.
    """

    folder: Path
    max_bytes: int

    def read(self, digest: str) -> bytes | None:
        """Return the content with a digest. Return None if it is not in the cache. A damaged file is deleted."""
        file = self._get_file(digest)
        try:
            content = file.read_bytes()
        except FileNotFoundError:
            return None
        if compute_content_digest(content) != digest:
            file.unlink(missing_ok=True)
            return None
        # Set the modification time, which is the time of the last use. Ignore a missing file, because another process
        # can delete the file at any time.
        with suppress(FileNotFoundError):
            os.utime(file)
        return content

    def store(self, chunks: Iterable[bytes], expected_digest: str, create_error: Callable[[str], SourceError]) -> str:
        """Store content, and return its digest.

        Args:
            expected_digest: The digest that the content must have. "" if any digest is accepted.
            create_error: Returns the error for content with a different digest. The argument is the digest of the
                content.

        Raises:
            SourceError: The digest of the content differs from `expected_digest`. Nothing is stored.
        """
        hasher = hashlib.sha256()
        with create_temporary_file(self._archives) as (stream, temporary):
            for chunk in chunks:
                hasher.update(chunk)
                stream.write(chunk)
            stream.close()
            digest = f"sha256:{hasher.hexdigest()}"
            if expected_digest and digest != expected_digest:
                raise create_error(digest)
            temporary.replace(self._get_file(digest))
        return digest

    def read_record(self, key: str) -> Mapping[str, Any]:
        """Return the record with a key. Return {} if there is none, or its file is not valid."""
        try:
            record = parse_json_object(self._get_record_file(key).read_bytes())
        except FileNotFoundError:
            return {}
        return record if record and record.get("key") == key else {}

    def store_record(self, key: str, record: Mapping[str, Any]) -> None:
        """Store a record. `key` identifies the record, and is also stored in the file."""
        content = json.dumps({**record, "key": key}, separators=(",", ":"))
        write_file(self._get_record_file(key), content.encode())

    def evict(self, used_digests: Iterable[str]) -> None:
        """Delete the least recently used archives and manifests until the cache is not larger than its limit.

        Also delete all records that were not written in the last half year.

        Args:
            used_digests: The digests that published and drafted packages use. The files with these digests are not
                deleted. If such a file is a manifest, the files that the manifest refers to are not deleted either.
        """
        self._delete_old_records()
        files = list_files(self._archives)
        size = sum(file.size for file in files)
        if size <= self.max_bytes:
            return
        used = self._find_used_names(used_digests)
        for file in files:
            if size <= self.max_bytes:
                break
            if file.path.name not in used:
                file.path.unlink(missing_ok=True)
                size -= file.size

    def _find_used_names(self, digests: Iterable[str]) -> set[str]:
        """Return the names of the files with these digests, and of all files that a manifest among them refers to."""
        used: set[str] = set()
        pending = list(filter(DIGEST_PATTERN.fullmatch, digests))
        while pending:
            name = parse_digest(pending.pop())
            if name not in used:
                used.add(name)
                pending += DIGEST_PATTERN.findall(_read_manifest_text(self._archives / name))
        return used

    def _delete_old_records(self) -> None:
        oldest = time.time() - _MAX_RECORD_SECONDS
        for file in list_files(self._records):
            if file.last_use < oldest:
                file.path.unlink(missing_ok=True)

    @property
    def _archives(self) -> Path:
        return self.folder / "sha256"

    @property
    def _records(self) -> Path:
        return self.folder / "index"

    def _get_file(self, digest: str) -> Path:
        return self._archives / parse_digest(digest)

    def _get_record_file(self, key: str) -> Path:
        return self._records / f"{compute_hash(key)}.json"
