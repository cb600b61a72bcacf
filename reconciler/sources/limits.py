"""Limits of sources, and the error for a source that exceeds a limit."""

from __future__ import annotations

from reconciler.lazy_dataclasses import dataclass
from reconciler.packages.source_codes import SourceCodes
from reconciler.sources.errors import SourceError


@dataclass(frozen=True)
class SourceLimits:
    """The settings group `sources.limits`. The names of the attributes are those of the settings.

    Attributes:
        archive_bytes: The size limit of one archive.
        unpacked_bytes: The size limit of all files of one archive.
        files: The largest number of files and folders in one archive.
        file_bytes: The size limit of one file.
        compression_ratio: The largest ratio of the unpacked size of an archive to its compressed size.
        index_bytes: The size limit of the index file of a chart repository.
        tags: The largest number of tags of one artifact.
    """

    archive_bytes: int = 64 * 1024 * 1024
    unpacked_bytes: int = 256 * 1024 * 1024
    files: int = 20_000
    file_bytes: int = 16 * 1024 * 1024
    compression_ratio: int = 200
    index_bytes: int = 64 * 1024 * 1024
    tags: int = 10_000

    def create_error(self, setting: str, subject: str) -> SourceError:
        """Return the error for a source that exceeds a limit. `setting` is the name of the attribute."""
        return SourceError(
            SourceCodes.SOURCE_TOO_LARGE.name,
            f"{subject} exceeds the limit {getattr(self, setting):,} of the setting `sources.limits.{setting}`",
        )
