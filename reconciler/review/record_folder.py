"""Folders of the cache with one JSON file for each record of the console: confirmations and jobs."""

from __future__ import annotations

from collections.abc import Iterator
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Generic, TypeVar

from reconciler.git.filesystem import delete_temporary_files, replace_file
from reconciler.review.confirmations import Confirmation
from reconciler.review.review_job import ReviewJob
from reconciler.telemetry.event_log import log

if TYPE_CHECKING:
    from pydantic import TypeAdapter

Record = TypeVar("Record", Confirmation, ReviewJob)


class RecordFolder(Generic[Record]):
    """Stores records of jobs and confirmations for later processes.

    An error is logged and not raised, because the records can be replaced: the results of jobs are also in Git, and a
    person can create a confirmation again.
    """

    def __init__(self, folder: Path, record_type: type[Record]) -> None:
        self.folder = folder
        self._record_type: type[Record] = record_type

    @cached_property
    def _adapter(self) -> TypeAdapter[Record]:
        from pydantic import TypeAdapter

        return TypeAdapter(self._record_type)

    def read_all(self) -> tuple[Record, ...]:
        """Return the records of earlier processes in the order of their creation. Skip files that cannot be read.

        Files that a killed process has not written completely are deleted.
        """
        try:
            delete_temporary_files(self.folder)
        except OSError as error:
            log.warning("review_record_store_failed", file=str(self.folder), message=error.strerror)
        return tuple(sorted(self._read_files(), key=lambda record: record.created_at))

    def _read_files(self) -> Iterator[Record]:
        for file in self.folder.glob("*.json"):
            try:
                yield self._adapter.validate_json(file.read_bytes())
            except (OSError, ValueError) as error:
                # A different version of the program can have written the file.
                log.warning("review_record_unreadable", file=str(file), message=type(error).__name__)

    def write(self, record: Record) -> None:
        """Store a record. An earlier file of the record is replaced."""
        file = self._get_file(record.id)
        try:
            replace_file(file, self._adapter.dump_json(record))
        except OSError as error:
            log.warning("review_record_store_failed", file=str(file), message=error.strerror)

    def delete(self, record_id: str) -> None:
        """Delete the file of a record."""
        file = self._get_file(record_id)
        try:
            file.unlink(missing_ok=True)
        except OSError as error:
            log.warning("review_record_store_failed", file=str(file), message=error.strerror)

    def _get_file(self, record_id: str) -> Path:
        return self.folder / f"{record_id}.json"
